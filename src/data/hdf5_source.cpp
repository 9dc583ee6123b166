#include <fmt/format.h>

#include <algorithm>
#include <initializer_list>

#include "data/hdf5.hpp"
#include "data/table_source.hpp"
#include "neyman/core/error.hpp"
#include "neyman/core/progress.hpp"
#include "neyman/core/text.hpp"

namespace neyman {

namespace {

enum class Number { floating, integer, natural, none };

/// Whether a type is that of IEEE 754 with 2 bytes, for which HDF5 1.10 has no name.
bool is_half(hid_t type) {
  std::size_t sign = 0, exponent = 0, exponent_bits = 0, mantissa = 0, mantissa_bits = 0;
  return H5Tget_size(type) == 2 &&
         H5Tget_fields(type, &sign, &exponent, &exponent_bits, &mantissa, &mantissa_bits) >= 0 &&
         sign == 15 && exponent == 10 && exponent_bits == 5 && mantissa == 0 && mantissa_bits == 10;
}

/// Only types that machines have: in a damaged file HDF5 makes numbers of any bits.
Number number_kind(hid_t dataset) {
  const hdf5::Id type(H5Dget_type(dataset), H5Tclose);
  const auto one_of = [&](std::initializer_list<hid_t> known) {
    return std::any_of(known.begin(), known.end(),
                       [&](hid_t one) { return H5Tequal(type, one) > 0; });
  };
  if (one_of({H5T_IEEE_F64LE, H5T_IEEE_F64BE, H5T_IEEE_F32LE, H5T_IEEE_F32BE, H5T_NATIVE_LDOUBLE}))
    return Number::floating;
  if (one_of({H5T_STD_I64LE, H5T_STD_I64BE, H5T_STD_I32LE, H5T_STD_I32BE, H5T_STD_I16LE,
              H5T_STD_I16BE, H5T_STD_I8LE, H5T_STD_I8BE}))
    return Number::integer;
  if (one_of({H5T_STD_U64LE, H5T_STD_U64BE, H5T_STD_U32LE, H5T_STD_U32BE, H5T_STD_U16LE,
              H5T_STD_U16BE, H5T_STD_U8LE, H5T_STD_U8BE}))
    return Number::natural;
  return H5Tget_class(type) == H5T_FLOAT && is_half(type) ? Number::floating : Number::none;
}

bool is_compound(hid_t dataset) {
  const hdf5::Id type(H5Dget_type(dataset), H5Tclose);
  return H5Tget_class(type) == H5T_COMPOUND;
}

/// A dataset, or one column of it.
struct Column {
  hid_t dataset = -1;
  bool in_table = false;              ///< the dataset has two dimensions
  hsize_t index = 0;                  ///< of the column there
  hdf5::RowChecksums checksums = {};  ///< as neyman's own files have them
  std::vector<bool> compared = {};    ///< which of them
};

class Hdf5Source : public TableSource {
 public:
  Hdf5Source(const std::string& path, const ReadOptions& options) : path_(path) {
    const hdf5::Session session;
    file_ = hdf5::open_file(path);
    try {
      open_columns(options);
    } catch (...) {
      close();
      throw;
    }
  }
  ~Hdf5Source() override {
    const hdf5::Session session;
    close();
  }

  void read(std::size_t rows, const Selection& selection, TableBlock& block) override {
    const hdf5::Session session;
    block.rows = static_cast<std::size_t>(std::min<hsize_t>(rows, rows_ - row_));
    const std::size_t width = selection.values.size();
    block.values.resize(block.rows * width);
    block.groups.clear();
    if (block.rows == 0) return;
    check_stop();
    table_.clear();
    for (std::size_t slot = 0; slot < width; ++slot) {
      read_column(selection.values[slot], slot, width, block);
    }
    if (selection.group) read_groups(*selection.group, block);
    if (selection.refuse_invalid) {
      refuse_invalid_values(path_, columns_, selection, block, row_);
    }
    row_ += block.rows;
  }

  std::optional<std::uint64_t> rows() const override { return rows_; }
  void seek(std::uint64_t row) override { row_ = std::min<std::uint64_t>(row, rows_); }

 private:
  void close() {
    datasets_.clear();
    file_ = {};
  }

  void open_columns(const ReadOptions& options);
  void open_table(const ReadOptions& options, hdf5::Id dataset);
  void open_group(const ReadOptions& options, hid_t group);
  void add_column(hid_t dataset, const std::string& name, bool in_table = false, hsize_t index = 0);
  void compare_checksums(std::size_t column, std::size_t rows);
  void read_hyperslab(std::size_t column, hid_t type, hsize_t row, std::size_t rows, hsize_t first,
                      hsize_t cols, void* out) const;
  void read_column(std::size_t column, std::size_t slot, std::size_t width, TableBlock& block);
  void read_groups(std::size_t column, TableBlock& block);

  std::string path_;
  hdf5::Id file_;
  std::vector<hdf5::Id> datasets_;
  std::vector<Column> sources_;  // one for each column
  hsize_t rows_ = 0, row_ = 0;
  std::vector<double> table_;  // the block's rows of a dataset with two dimensions
};

void Hdf5Source::open_columns(const ReadOptions& options) {
  if (options.dataset.empty()) {
    const hdf5::Id root(H5Gopen2(file_, "/", H5P_DEFAULT), H5Gclose);
    if (!root.ok()) hdf5::fail(path_, "is damaged");
    open_group(options, root);
  } else {
    hdf5::Id object = hdf5::open_path(path_, file_, options.dataset);
    if (!object.ok()) {
      const hdf5::Id root(H5Gopen2(file_, "/", H5P_DEFAULT), H5Gclose);
      throw FileError(fmt::format("{}: has no dataset or group '{}'; at the root are {}", path_,
                                  options.dataset, list_names(hdf5::member_names(path_, root))));
    }
    if (H5Iget_type(object) == H5I_DATASET) {
      open_table(options, std::move(object));
    } else {
      open_group(options, object);
    }
  }
  if (rows_ == 0) throw FileError(path_ + ": has no rows");
}

/// One dataset that is the whole table, with one column or several.
void Hdf5Source::open_table(const ReadOptions& options, hdf5::Id dataset) {
  const std::vector<hsize_t> extents = hdf5::extents_of(dataset);
  if (is_compound(dataset)) {
    throw FileError(path_ +
                    ": holds records with fields (a compound type), but must hold one dataset for "
                    "each column or one two-dimensional dataset of numbers");
  }
  if (extents.empty() || extents.size() > 2) {
    throw FileError(fmt::format("{}: a dataset has {} dimensions, but must have 1 or 2", path_,
                                extents.size()));
  }
  if (number_kind(dataset) == Number::none) {
    throw FileError(path_ + ": its dataset does not hold numbers");
  }
  rows_ = extents[0];
  const hsize_t cols = extents.size() == 2 ? extents[1] : 1;
  if (cols == 0) throw FileError(path_ + ": has no columns");
  refuse_too_wide(path_, rows_, cols);
  columns_ = hdf5::read_text_attribute(path_, dataset, "columns");
  named_ = !columns_.empty();
  if (!named_) columns_ = names_for(path_, options, cols);
  if (columns_.size() != cols) {
    throw FileError(fmt::format("{}: its attribute 'columns' has {} names, but must have {}", path_,
                                columns_.size(), cols));
  }
  hdf5::check_stored(path_, dataset, hdf5::name_of(dataset));
  for (hsize_t i = 0; i < cols; ++i) add_column(dataset, columns_[i], extents.size() == 2, i);
  datasets_.push_back(std::move(dataset));
}

/// A group with one dataset for each column, or with one table alone.
void Hdf5Source::open_group(const ReadOptions& options, hid_t group) {
  std::vector<std::string> names = hdf5::read_text_attribute(path_, group, "columns");
  const bool ordered = !names.empty();
  if (!ordered) names = hdf5::member_names(path_, group);
  for (const std::string& name : names) {
    if (ordered && H5Lexists(group, name.c_str(), H5P_DEFAULT) <= 0) {
      throw FileError(
          fmt::format("{}: its attribute 'columns' names '{}', but there is no such "
                      "dataset",
                      path_, name));
    }
    hdf5::Id member = hdf5::open_member(path_, group, name);
    if (H5Iget_type(member) != H5I_DATASET) continue;
    columns_.push_back(name);
    datasets_.push_back(std::move(member));
  }
  if (datasets_.empty()) throw FileError(path_ + ": has no datasets; name one, or their group");
  const bool single = datasets_.size() == 1 && !ordered;
  if (single && (hdf5::extents_of(datasets_[0]).size() != 1 || is_compound(datasets_[0]))) {
    hdf5::Id table = std::move(datasets_[0]);
    datasets_.clear();
    open_table(options, std::move(table));
    return;
  }
  named_ = true;
  for (std::size_t i = 0; i < datasets_.size(); ++i) {
    const std::vector<hsize_t> extents = hdf5::extents_of(datasets_[i]);
    if (extents.size() != 1) {
      throw FileError(fmt::format(
          "{}: dataset '{}' has {} dimensions, but must have 1 where there are several datasets; "
          "name the one to read, of {}",
          path_, columns_[i], extents.size(), list_names(columns_)));
    }
    if (i == 0) rows_ = extents[0];
    if (extents[0] != rows_) {
      throw FileError(fmt::format("{}: dataset '{}' has {} rows, but must have {} (as '{}')", path_,
                                  columns_[i], extents[0], rows_, columns_[0]));
    }
    hdf5::check_stored(path_, datasets_[i], columns_[i]);
    add_column(datasets_[i], columns_[i]);
  }
}

void Hdf5Source::add_column(hid_t dataset, const std::string& name, bool in_table, hsize_t index) {
  Column column{dataset, in_table, index};
  if (!in_table) column.checksums = hdf5::read_row_checksums(path_, dataset, name);
  column.compared.resize(column.checksums.sums.size(), false);
  sources_.push_back(std::move(column));
}

/// Of the block's rows, and of those that share a checksum with them.
void Hdf5Source::compare_checksums(std::size_t column, std::size_t rows) {
  Column& source = sources_[column];
  hdf5::check_rows_stored(path_, source.dataset, columns_[column], row_, rows);
  if (source.checksums.sums.empty()) return;
  const hid_t type =
      number_kind(source.dataset) == Number::floating ? H5T_NATIVE_DOUBLE : H5T_NATIVE_INT64;
  std::vector<char> values;
  for (hsize_t k = row_ / source.checksums.rows; k * source.checksums.rows < row_ + rows; ++k) {
    if (source.compared[k]) continue;
    const hsize_t first = k * source.checksums.rows;
    const hsize_t count = std::min(source.checksums.rows, rows_ - first);
    hdf5::check_rows_stored(path_, source.dataset, columns_[column], first, count);
    values.resize(count * sizeof(double));
    read_hyperslab(column, type, first, count, 0, 1, values.data());
    const std::uint64_t found = hdf5::checksum_of(values.data(), count);
    if (found != source.checksums.sums[k])
      throw FileError(fmt::format(
          "{}: rows {} to {} of column '{}' are damaged: their checksum is {:016x}, but must be "
          "{:016x}; where another program has changed them on purpose, it must remove the "
          "attribute 'row_checksums'",
          path_, first, first + count - 1, shortened(columns_[column]), found,
          source.checksums.sums[k]));
    source.compared[k] = true;
  }
}

/// Reads rows [row, row + rows) of columns [first, first + cols) of a dataset.
void Hdf5Source::read_hyperslab(std::size_t column, hid_t type, hsize_t row, std::size_t rows,
                                hsize_t first, hsize_t cols, void* out) const {
  const Column& source = sources_[column];
  const hsize_t start[2] = {row, first};
  const hsize_t count[2] = {rows, cols};
  const hdf5::Id file_space(H5Dget_space(source.dataset), H5Sclose);
  // Of the same shape: between shapes that differ HDF5 maps each value by itself.
  const hdf5::Id memory_space = hdf5::simple_space(
      source.in_table ? std::vector<hsize_t>{rows, cols} : std::vector<hsize_t>{rows});
  if (H5Sselect_hyperslab(file_space, H5S_SELECT_SET, start, nullptr, count, nullptr) < 0 ||
      H5Dread(source.dataset, type, memory_space, file_space, H5P_DEFAULT, out) < 0) {
    hdf5::fail(path_, fmt::format("rows {} to {} of column '{}' cannot be read", row,
                                  row + rows - 1, shortened(columns_[column])));
  }
}

void Hdf5Source::read_column(std::size_t column, std::size_t slot, std::size_t width,
                             TableBlock& block) {
  const Column& source = sources_[column];
  if (number_kind(source.dataset) == Number::none) {
    throw FileError(fmt::format("{}: column '{}' does not hold numbers", path_, columns_[column]));
  }
  if (source.in_table) {
    const std::size_t cols = columns_.size();
    if (table_.empty()) {  // all columns of a table are read together
      hdf5::check_rows_stored(path_, source.dataset, hdf5::name_of(source.dataset), row_,
                              block.rows);
      table_.resize(block.rows * cols);
      read_hyperslab(column, H5T_NATIVE_DOUBLE, row_, block.rows, 0, cols, table_.data());
    }
    for (std::size_t i = 0; i < block.rows; ++i) {
      block.values[i * width + slot] = table_[i * cols + source.index];
    }
    return;
  }
  compare_checksums(column, block.rows);
  std::vector<double> values(block.rows);
  read_hyperslab(column, H5T_NATIVE_DOUBLE, row_, block.rows, 0, 1, values.data());
  for (std::size_t i = 0; i < block.rows; ++i) block.values[i * width + slot] = values[i];
}

void Hdf5Source::read_groups(std::size_t column, TableBlock& block) {
  compare_checksums(column, block.rows);
  const Column& source = sources_[column];
  const Number kind = number_kind(source.dataset);
  if (kind == Number::integer) {
    block.groups.resize(block.rows);
    read_hyperslab(column, H5T_NATIVE_INT64, row_, block.rows, source.index, 1,
                   block.groups.data());
    return;
  }
  const auto read_as = [&](auto value, hid_t type) {
    std::vector<decltype(value)> values(block.rows);
    read_hyperslab(column, type, row_, block.rows, source.index, 1, values.data());
    for (std::size_t i = 0; i < block.rows; ++i) {
      block.groups.push_back(whole_group(path_, columns_[column], values[i], row_ + i));
    }
  };
  if (kind == Number::natural) {
    read_as(std::uint64_t{}, H5T_NATIVE_UINT64);
  } else if (kind == Number::floating) {
    read_as(double{}, H5T_NATIVE_DOUBLE);
  } else {
    throw FileError(fmt::format("{}: column '{}' does not hold numbers", path_, columns_[column]));
  }
}

}  // namespace

std::unique_ptr<TableSource> open_hdf5(const std::string& path, const ReadOptions& options) {
  return std::make_unique<Hdf5Source>(path, options);
}

}  // namespace neyman
