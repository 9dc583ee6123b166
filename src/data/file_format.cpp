#include "neyman/data/file_format.hpp"

#include <fmt/format.h>
#include <glob.h>

#include <algorithm>
#include <cctype>
#include <filesystem>

#include "neyman/core/check.hpp"
#include "neyman/core/error.hpp"

namespace neyman {

namespace {

namespace fs = std::filesystem;

std::string lower_extension(const std::string& path) {
  std::string extension = fs::path(path).extension().string();
  std::transform(extension.begin(), extension.end(), extension.begin(),
                 [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
  return extension;
}

/// How to make a file that can be read of one that people have.
std::string conversion_of(const std::string& path, const std::string& extension) {
  const auto name = fs::path(path).filename().string();
  const auto stem = fs::path(path).stem().string();
  if (extension == ".root")
    return fmt::format(
        "files of ROOT are not read; convert it, in Python: import uproot; "
        "uproot.open('{}')['TREE'].arrays(library='pd').to_csv('{}.csv', index=False)",
        name, stem);
  if (extension == ".parquet" || extension == ".feather" || extension == ".pkl")
    return fmt::format(
        "{} files are not read; convert it, in Python: import pandas; "
        "pandas.read_{}('{}').to_csv('{}.csv', index=False)",
        extension, extension == ".pkl" ? "pickle" : extension.substr(1), name, stem);
  if (extension == ".npz")
    return fmt::format(
        "archives of NumPy are not read; save one array of it, in Python: import "
        "numpy; numpy.save('{}.npy', numpy.load('{}')['NAME'])",
        stem, name);
  if (extension == ".gz" || extension == ".bz2" || extension == ".xz" || extension == ".zip" ||
      extension == ".zst")
    return "is compressed; unpack it";
  return {};
}

bool is_file(const std::string& path) {
  std::error_code error;
  return fs::is_regular_file(path, error);
}

}  // namespace

FileFormat file_format(const std::string& path, FileFormat wanted) {
  if (wanted != FileFormat::by_extension) return wanted;
  const auto extension = lower_extension(path);
  if (extension == ".csv" || extension == ".txt") return FileFormat::csv;
  if (extension == ".npy") return FileFormat::npy;
  if (extension == ".h5" || extension == ".hdf5") return FileFormat::hdf5;
  if (const auto conversion = conversion_of(path, extension); !conversion.empty())
    throw FileError(fmt::format("{}: {}", path, conversion));
  throw FileError(fmt::format(
      "{}: has {}, which names no format; say which of csv, npy and hdf5 it is (format = \"csv\" "
      "in a "
      "study, --format csv on the command line), or name the file .csv, .txt, .npy, .h5 or .hdf5",
      path, extension.empty() ? "no extension" : "the extension '" + extension + "'"));
}

FileFormat file_format_by_name(std::string_view name) {
  if (name == "csv") return FileFormat::csv;
  if (name == "npy") return FileFormat::npy;
  if (name == "hdf5") return FileFormat::hdf5;
  throw ArgumentError("file_format_by_name: " +
                      unknown_name(name, "a file format", {"csv", "npy", "hdf5"}));
}

TableName table_name(const std::string& path) {
  if (is_file(path)) return {path, {}};
  for (std::size_t colon = path.find(':'); colon != path.npos; colon = path.find(':', colon + 1)) {
    const auto file = path.substr(0, colon);
    const auto extension = lower_extension(file);
    if (colon + 1 < path.size() && (is_file(file) || extension == ".h5" || extension == ".hdf5"))
      return {file, path.substr(colon + 1)};
  }
  return {path, {}};
}

std::vector<std::string> matching_files(const std::string& path) {
  const auto [pattern, dataset] = table_name(path);
  if (pattern.find_first_of("*?[") == pattern.npos || is_file(pattern)) return {path};
  glob_t found{};
  const int status = glob(pattern.c_str(), GLOB_NOSORT, nullptr, &found);
  std::vector<std::string> out(found.gl_pathv, found.gl_pathv + found.gl_pathc);
  globfree(&found);
  std::erase_if(out, [](const std::string& name) { return !is_file(name); });
  if (status != 0 || out.empty()) throw FileError(pattern + ": no file matches this pattern");
  std::sort(out.begin(), out.end());
  if (!dataset.empty())
    for (auto& name : out) name += ':' + dataset;
  return out;
}

}  // namespace neyman
