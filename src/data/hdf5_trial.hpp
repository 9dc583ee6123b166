#pragma once

#include <string>

namespace neyman::hdf5 {

/// Goes through the structure of a file in a process of its own, once for each version of a file:
/// HDF5 1.10 may crash on a damaged one, or not come to an end, which ends that process alone.
/// What HDF5 itself reports is left to the caller.
/// @throw FileError where HDF5 did not survive; Interrupted on a requested stop.
void try_structure(const std::string& path);

}  // namespace neyman::hdf5
