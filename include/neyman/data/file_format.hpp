#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace neyman {

/// How samples lie in a file.
enum class FileFormat {
  by_extension,  ///< csv, txt: CSV; npy: NPY; h5, hdf5: HDF5
  csv,
  npy,
  hdf5,
};

/// The format of a file: `wanted`, or where that is by_extension, what its extension says.
/// @throw FileError where the extension is unknown, with the known ones.
FileFormat file_format(const std::string& path, FileFormat wanted = FileFormat::by_extension);

/// The format of a name: "csv", "npy", "hdf5".
/// @throw ArgumentError for another name, with the candidates.
FileFormat file_format_by_name(std::string_view name);

/// A file, and where the table is in it.
struct TableName {
  std::string file;
  std::string dataset;  ///< path of a group or a dataset; empty: the file as a whole
};

/// Takes "sims.h5:run1/events" apart, unless there is a file of this very name.
TableName table_name(const std::string& path);

/// The files whose names match a pattern with *, ? or […], sorted by their bytes; a dataset behind
/// a colon stays with each. A name without these, or of a file that exists, matches itself.
/// @throw FileError where no file matches.
std::vector<std::string> matching_files(const std::string& path);

}  // namespace neyman
