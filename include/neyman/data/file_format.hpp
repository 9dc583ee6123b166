#pragma once

#include <string>
#include <string_view>

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

}  // namespace neyman
