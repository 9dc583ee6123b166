#include "neyman/data/writer.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <charconv>
#include <set>

#include "data/hdf5.hpp"
#include "data/table_source.hpp"
#include "neyman/core/check.hpp"
#include "neyman/core/error.hpp"
#include "neyman/data/atomic_file.hpp"

namespace neyman {

namespace {

std::vector<std::string> column_names(const Samples& samples, const WriteOptions& options) {
  std::vector<std::string> names = samples.feature_names;
  names.insert(names.end(), samples.parameter_names.begin(), samples.parameter_names.end());
  if (samples.weighted()) names.push_back(options.weight);
  if (!samples.groups.empty()) names.push_back(options.group);
  std::set<std::string_view> seen;
  for (std::size_t i = 0; i < names.size(); ++i) {
    if (names[i].empty()) {
      fail_argument("write_samples", fmt::format("the name of column {}", i), "empty",
                    "at least one character");
    }
    if (!seen.insert(names[i]).second) {
      fail_argument("write_samples", "column '" + names[i] + "'", "there twice",
                    "the only one of its name");
    }
  }
  return names;
}

/// Writes to a file in large pieces.
class Buffered {
 public:
  explicit Buffered(AtomicFile& file) : file_(file) { bytes_.reserve(limit + 4096); }
  void add(std::string_view text) {
    bytes_ += text;
    if (bytes_.size() >= limit) flush();
  }
  template <class Number>
  void add_number(Number value) {
    char text[32];
    const auto result = std::to_chars(text, text + sizeof text, value);
    add({text, static_cast<std::size_t>(result.ptr - text)});
  }
  void flush() {
    file_.write(bytes_);
    bytes_.clear();
  }

 private:
  static constexpr std::size_t limit = 1 << 18;
  AtomicFile& file_;
  std::string bytes_;
};

/// Quoted where it could pass for something else, a number among them.
std::string csv_name(const std::string& name) {
  constexpr std::string_view spaces = " \t";
  const std::string_view digits = std::string_view(name).substr(name.front() == '+' ? 1 : 0);
  double number = 0;
  const bool number_like =
      name == "NA" || std::from_chars(digits.data(), digits.data() + digits.size(), number).ptr ==
                          digits.data() + digits.size();
  const bool special = name.find_first_of(",\"\n\r") != name.npos ||
                       spaces.find(name.front()) != spaces.npos ||
                       spaces.find(name.back()) != spaces.npos || name.front() == '#' ||
                       static_cast<unsigned char>(name.front()) >= 0xEF;  // as byte order marks
  if (!number_like && !special) return name;
  std::string quoted = "\"";
  for (const char c : name) {
    if (c == '"') quoted += '"';
    quoted += c;
  }
  return quoted + '"';
}

void write_csv(const std::string& path, const Samples& samples,
               const std::vector<std::string>& names) {
  AtomicFile file(path);
  Buffered out(file);
  for (std::size_t i = 0; i < names.size(); ++i) {
    if (i > 0) out.add(",");
    out.add(csv_name(names[i]));
  }
  out.add("\n");
  for (std::size_t row = 0; row < samples.size(); ++row) {
    bool first = true;
    const auto add = [&](auto value) {
      if (!first) out.add(",");
      first = false;
      out.add_number(value);
    };
    for (const double value : samples.x.row(row)) add(value);
    if (!samples.theta.empty()) {
      for (const double value : samples.theta.row(row)) add(value);
    }
    if (samples.weighted()) add(samples.weights[row]);
    if (!samples.groups.empty()) add(samples.groups[row]);
    out.add("\n");
  }
  out.flush();
  file.commit();
}

std::string npy_header(std::size_t rows, std::size_t cols) {
  std::string header =
      fmt::format("{{'descr': '{}f8', 'fortran_order': False, 'shape': ({}, {}), }}",
                  std::endian::native == std::endian::little ? '<' : '>', rows, cols);
  // Magic, version and length take 10 bytes; the values begin at a multiple of 64.
  const std::size_t total = (10 + header.size() + 1 + 63) / 64 * 64;
  header.resize(total - 10 - 1, ' ');
  header += '\n';
  std::string start("\x93NUMPY\x01\x00", 8);
  start += static_cast<char>(header.size() & 0xFF);
  start += static_cast<char>(header.size() >> 8);
  return start + header;
}

void write_npy(const std::string& path, const Samples& samples, std::size_t cols) {
  for (std::size_t i = 0; i < samples.groups.size(); ++i) {
    const double value = static_cast<double>(samples.groups[i]);
    if (std::abs(value) >= largest_exact_integer) {
      fail_argument("write_samples", fmt::format("groups[{}]", i),
                    fmt::format("{}", samples.groups[i]),
                    "between -2^53 and 2^53 in an NPY file, which holds it as a double");
    }
  }
  AtomicFile file(path);
  Buffered out(file);
  out.add(npy_header(samples.size(), cols));
  const auto add = [&](std::span<const double> values) {
    out.add({reinterpret_cast<const char*>(values.data()), values.size_bytes()});
  };
  for (std::size_t row = 0; row < samples.size(); ++row) {
    add(samples.x.row(row));
    if (!samples.theta.empty()) add(samples.theta.row(row));
    if (samples.weighted()) add({&samples.weights[row], 1});
    if (!samples.groups.empty()) {
      const double group = static_cast<double>(samples.groups[row]);
      add({&group, 1});
    }
  }
  out.flush();
  file.commit();
}

void write_hdf5_column(const std::string& path, hid_t file, const std::string& name,
                       hid_t file_type, hid_t memory_type, const void* values, std::size_t rows,
                       int compression) {
  const hdf5::Id space = hdf5::simple_space({rows});
  const hdf5::Id layout = hdf5::array_layout({rows}, 8, compression);
  const hdf5::Id dataset(
      H5Dcreate2(file, name.c_str(), file_type, space, H5P_DEFAULT, layout, H5P_DEFAULT), H5Dclose);
  if (!dataset.ok() || H5Dwrite(dataset, memory_type, H5S_ALL, H5S_ALL, H5P_DEFAULT, values) < 0) {
    hdf5::fail(path, "cannot be written");
  }
  hdf5::write_row_checksums(path, dataset, hdf5::checksums_of(values, rows));
}

void write_hdf5(const std::string& path, const Samples& samples,
                const std::vector<std::string>& names, int compression) {
  for (const std::string& name : names) {
    if (name == "." || name.find('/') != name.npos || name.find('\0') != name.npos) {
      fail_argument("write_samples", "column name", "'" + name + "'",
                    "without a slash and not '.' in an HDF5 file");
    }
  }
  const hdf5::Session session;
  const hdf5::FileInMemory file(path);
  std::size_t next = 0;
  const auto write_doubles = [&](const std::vector<double>& values) {
    write_hdf5_column(path, file, names[next++], H5T_IEEE_F64LE, H5T_NATIVE_DOUBLE, values.data(),
                      samples.size(), compression);
  };
  hdf5::write_text_list_attribute(path, file, "columns", names);
  for (std::size_t i = 0; i < samples.features(); ++i) write_doubles(samples.x.column(i));
  for (std::size_t i = 0; i < samples.theta.cols(); ++i) write_doubles(samples.theta.column(i));
  if (samples.weighted()) write_doubles(samples.weights);
  if (!samples.groups.empty()) {
    write_hdf5_column(path, file, names[next], H5T_STD_I64LE, H5T_NATIVE_INT64,
                      samples.groups.data(), samples.size(), compression);
  }
  write_file_atomically(path, file.bytes());
}

}  // namespace

void write_samples(const std::string& path, const Samples& samples, const WriteOptions& options) {
  samples.check("write_samples");
  check_at_least("write_samples", "the number of features", samples.features(), 1);
  check_in_range("write_samples", "compression", options.compression, 0, 9);
  const std::vector<std::string> names = column_names(samples, options);
  switch (file_format(path, options.format)) {
    case FileFormat::npy:
      return write_npy(path, samples, names.size());
    case FileFormat::hdf5:
      return write_hdf5(path, samples, names, options.compression);
    default:
      return write_csv(path, samples, names);
  }
}

}  // namespace neyman
