#include "neyman/data/file_format.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <filesystem>

#include "neyman/core/check.hpp"
#include "neyman/core/error.hpp"

namespace neyman {

FileFormat file_format(const std::string& path, FileFormat wanted) {
  if (wanted != FileFormat::by_extension) return wanted;
  std::string extension = std::filesystem::path(path).extension().string();
  std::transform(extension.begin(), extension.end(), extension.begin(),
                 [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
  if (extension == ".csv" || extension == ".txt") return FileFormat::csv;
  if (extension == ".npy") return FileFormat::npy;
  if (extension == ".h5" || extension == ".hdf5") return FileFormat::hdf5;
  throw FileError(fmt::format(
      "{}: has {}, which names no format; name the format, or the file .csv, .txt, .npy, .h5 "
      "or .hdf5",
      path, extension.empty() ? "no extension" : "the extension '" + extension + "'"));
}

FileFormat file_format_by_name(std::string_view name) {
  if (name == "csv") return FileFormat::csv;
  if (name == "npy") return FileFormat::npy;
  if (name == "hdf5") return FileFormat::hdf5;
  throw ArgumentError("file_format_by_name: " +
                      unknown_name(name, "a file format", {"csv", "npy", "hdf5"}));
}

}  // namespace neyman
