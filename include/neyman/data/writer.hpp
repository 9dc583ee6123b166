#pragma once

#include <string>

#include "neyman/data/file_format.hpp"
#include "neyman/data/samples.hpp"

namespace neyman {

struct WriteOptions {
  FileFormat format = FileFormat::by_extension;
  std::string weight = "weight";  ///< name of the column of the weights, where there are any
  std::string group = "group";    ///< name of the column of the groups, where there are any
  int compression = 1;            ///< deflate level of HDF5, 0 (none) to 9
};

/// Writes events to a file, whole or not at all: features, parameters, weight, group, in this
/// order. `read_samples` reads the same bits back.
///
/// CSV: a header, and numbers with as many digits as bring the same double back. NPY: float64, C
/// order, rows × columns; the names are lost. HDF5: one dataset for each column, named after it,
/// in the root group, whose attribute `columns` gives their order; the file is made in memory
/// before it is written.
///
/// @throw ArgumentError where `samples` are inconsistent or not finite, or where a column has no
///   name, the name of another, or one that the format cannot hold ("." or with a slash in HDF5;
///   in NPY, a group beyond ±2^53).
/// @throw FileError where the file cannot be written.
void write_samples(const std::string& path, const Samples& samples,
                   const WriteOptions& options = {});

}  // namespace neyman
