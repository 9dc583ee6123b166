#pragma once

#include <string>

namespace neyman::hdf5 {

/// Goes through the structure of a file in a process of its own, once for each version of a file:
/// HDF5 1.10 may crash on a damaged one, or not come to an end, which ends that process alone. A
/// file that HDF5 reports as damaged is not opened in this process either, because HDF5 1.10 may
/// then fail to let go of it and print so when the process ends.
/// @throw FileError where HDF5 did not survive, or what it reports; Interrupted on a requested
/// stop.
void try_structure(const std::string& path);

}  // namespace neyman::hdf5
