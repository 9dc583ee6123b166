#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <bit>
#include <charconv>
#include <cstring>
#include <optional>
#include <string_view>

#include "data/input_file.hpp"
#include "data/table_source.hpp"
#include "neyman/core/error.hpp"
#include "neyman/core/text.hpp"

namespace neyman {

namespace {

/// The kinds of numbers, by NumPy's letters.
enum class Kind : char { floating = 'f', integer = 'i', natural = 'u', boolean = 'b' };

struct NpyHeader {
  Kind kind = Kind::floating;
  std::size_t item_size = 8;
  bool swapped = false;  ///< of the other byte order than this machine
  bool fortran_order = false;
  std::uint64_t rows = 0, cols = 0;
  std::uint64_t offset = 0;  ///< of the first item in the file
};

/// Reads the Python dictionary of a header: {'descr': '<f8', 'fortran_order': False,
/// 'shape': (3, 2), }.
class HeaderParser {
 public:
  HeaderParser(const std::string& path, std::string_view text) : path_(path), text_(text) {}

  NpyHeader parse() {
    NpyHeader header;
    bool has_type = false, has_order = false, has_shape = false;
    expect('{');
    while (!accept('}')) {
      const std::string_view key = quoted();
      expect(':');
      if (key == "descr") {
        parse_type(header);
        has_type = true;
      } else if (key == "fortran_order") {
        header.fortran_order = parse_flag();
        has_order = true;
      } else if (key == "shape") {
        parse_shape(header);
        has_shape = true;
      } else {
        fail("its header has the unknown key '" + shortened(key) + "'");
      }
      if (!accept(',')) {
        expect('}');
        break;
      }
    }
    if (!has_type || !has_order || !has_shape)
      fail("its header lacks descr, fortran_order or shape");
    return header;
  }

 private:
  [[noreturn]] void fail(const std::string& what) const {
    throw FileError(path_ + ": is not a readable NPY file: " + what);
  }
  void skip_spaces() {
    const std::size_t first = text_.find_first_not_of(" \n\t");
    text_.remove_prefix(std::min(first, text_.size()));
  }
  bool accept(char c) {
    skip_spaces();
    if (!text_.starts_with(c)) return false;
    text_.remove_prefix(1);
    return true;
  }
  void expect(char c) {
    if (!accept(c)) fail(fmt::format("its header lacks a '{}'", c));
  }
  std::string_view quoted() {
    const char quote = accept('"') ? '"' : '\'';
    if (quote == '\'') expect('\'');
    const std::size_t length = text_.find(quote);
    if (length == text_.npos) fail("its header has a text that does not end");
    const std::string_view value = text_.substr(0, length);
    text_.remove_prefix(length + 1);
    return value;
  }
  bool parse_flag() {
    skip_spaces();
    const bool value = text_.starts_with("True");
    if (!value && !text_.starts_with("False")) fail("fortran_order is neither True nor False");
    text_.remove_prefix(value ? 4 : 5);
    return value;
  }

  void parse_type(NpyHeader& header) {
    skip_spaces();
    if (text_.starts_with('[') || text_.starts_with('(')) {
      throw FileError(path_ +
                      ": holds records with fields (a structured dtype), but must hold a plain "
                      "array of numbers; save its columns as one two-dimensional array");
    }
    const std::string type(quoted());
    const bool known =
        type.size() == 3 && std::string_view("<>|=").find(type[0]) != std::string::npos;
    const std::string_view item = known ? std::string_view(type).substr(1) : "";
    constexpr std::array<std::string_view, 11> supported = {"f4", "f8", "i1", "i2", "i4", "i8",
                                                            "u1", "u2", "u4", "u8", "b1"};
    if (std::find(supported.begin(), supported.end(), item) == supported.end()) {
      throw FileError(fmt::format(
          "{}: holds values of the NumPy type '{}', but must hold float32, float64, integers or "
          "bool",
          path_, shortened(type)));
    }
    header.kind = static_cast<Kind>(item[0]);
    header.item_size = static_cast<std::size_t>(item[1] - '0');
    constexpr char native = std::endian::native == std::endian::little ? '<' : '>';
    header.swapped = header.item_size > 1 && type[0] != native && type[0] != '=';
  }

  std::uint64_t parse_extent() {
    skip_spaces();
    std::uint64_t value = 0;
    const auto [stop, error] = std::from_chars(text_.data(), text_.data() + text_.size(), value);
    if (error != std::errc{}) fail("its shape is not a tuple of numbers");
    text_.remove_prefix(static_cast<std::size_t>(stop - text_.data()));
    if (text_.starts_with('L')) text_.remove_prefix(1);  // as Python 2 wrote them
    return value;
  }

  void parse_shape(NpyHeader& header) {
    std::vector<std::uint64_t> shape;
    expect('(');
    while (!accept(')')) {
      shape.push_back(parse_extent());
      if (!accept(',')) {
        expect(')');
        break;
      }
    }
    if (shape.empty() || shape.size() > 2) {
      throw FileError(fmt::format("{}: has {} dimensions, but must have 1 or 2 (rows × columns)",
                                  path_, shape.size()));
    }
    header.rows = shape[0];
    header.cols = shape.size() == 2 ? shape[1] : 1;
  }

  std::string path_;
  std::string_view text_;
};

NpyHeader read_npy_header(const InputFile& file) {
  const std::string& path = file.path();
  const std::uint64_t size = file.size();
  if (size == 0) throw FileError(path + ": is empty");
  std::array<unsigned char, 12> start{};
  file.read_at(0, reinterpret_cast<char*>(start.data()), std::min<std::uint64_t>(size, 12));
  if (size < 10 || std::memcmp(start.data(), "\x93NUMPY", 6) != 0) {
    throw FileError(path + ": is not an NPY file");
  }
  const unsigned version = start[6];
  if (version < 1 || version > 3) {
    throw FileError(
        fmt::format("{}: is NPY version {}.{}, but must be 1, 2 or 3", path, version, start[7]));
  }
  const std::uint64_t begin = version == 1 ? 10 : 12;
  std::uint64_t length = start[8] | std::uint64_t{start[9]} << 8;
  if (version > 1) length |= std::uint64_t{start[10]} << 16 | std::uint64_t{start[11]} << 24;
  if (begin + length > size) throw FileError(path + ": is truncated within its header");
  constexpr std::uint64_t longest_header = 1 << 20;
  if (length > longest_header)
    throw FileError(
        fmt::format("{}: is not a readable NPY file: its header has {} bytes", path, length));
  std::string text(length, '\0');
  file.read_at(begin, text.data(), length);
  NpyHeader header = HeaderParser(path, text).parse();
  header.offset = begin + length;
  return header;
}

void check_npy_size(const InputFile& file, const NpyHeader& header) {
  if (header.cols == 0) throw FileError(file.path() + ": has no columns");
  if (header.rows == 0) throw FileError(file.path() + ": has no rows");
  const std::uint64_t available = (file.size() - header.offset) / header.item_size;
  // Divided rather than multiplied: a product of extents from a broken header may overflow.
  if (available / header.cols >= header.rows) return;
  throw FileError(fmt::format("{}: is truncated: it has {} values, but its header says {} × {}",
                              file.path(), available, header.rows, header.cols));
}

template <class T>
T load(const char* bytes, bool swapped) {
  std::array<char, sizeof(T)> copy;
  std::memcpy(copy.data(), bytes, sizeof(T));
  if (swapped) std::reverse(copy.begin(), copy.end());
  T value;
  std::memcpy(&value, copy.data(), sizeof(T));
  return value;
}

/// Calls `use` with the number at `bytes`, in its own type.
template <class Use>
void visit_item(const NpyHeader& header, const char* bytes, Use&& use) {
  const bool swapped = header.swapped;
  switch (header.kind) {
    case Kind::floating:
      if (header.item_size == 8) return use(load<double>(bytes, swapped));
      return use(static_cast<double>(load<float>(bytes, swapped)));
    case Kind::integer:
      if (header.item_size == 8) return use(load<std::int64_t>(bytes, swapped));
      if (header.item_size == 4) return use(std::int64_t{load<std::int32_t>(bytes, swapped)});
      if (header.item_size == 2) return use(std::int64_t{load<std::int16_t>(bytes, swapped)});
      return use(std::int64_t{load<std::int8_t>(bytes, false)});
    default:
      if (header.item_size == 8) return use(load<std::uint64_t>(bytes, swapped));
      if (header.item_size == 4) return use(std::uint64_t{load<std::uint32_t>(bytes, swapped)});
      if (header.item_size == 2) return use(std::uint64_t{load<std::uint16_t>(bytes, swapped)});
      return use(std::uint64_t{load<std::uint8_t>(bytes, false)});
  }
}

class NpySource : public TableSource {
 public:
  NpySource(const std::string& path, const ReadOptions& options)
      : file_(path), header_(read_npy_header(file_)) {
    check_npy_size(file_, header_);
    refuse_too_wide(path, header_.rows, header_.cols);
    columns_ = names_for(path, options, header_.cols);
  }

  void read(std::size_t rows, const Selection& selection, TableBlock& block) override {
    block.rows = static_cast<std::size_t>(std::min<std::uint64_t>(rows, header_.rows - row_));
    block.values.resize(block.rows * selection.values.size());
    block.groups.resize(selection.group ? block.rows : 0);
    if (block.rows == 0) return;
    if (header_.fortran_order) {
      read_columns(selection, block);
    } else {
      read_rows(selection, block);
    }
    if (selection.refuse_invalid) {
      refuse_invalid_values(file_.path(), columns_, selection, block, row_);
    }
    row_ += block.rows;
  }

  std::optional<std::uint64_t> rows() const override { return header_.rows; }
  void seek(std::uint64_t row) override { row_ = std::min<std::uint64_t>(row, header_.rows); }

 private:
  void fetch(std::uint64_t item, std::uint64_t count) {
    bytes_.resize(count * header_.item_size);
    file_.read_at(header_.offset + item * header_.item_size, bytes_.data(), bytes_.size());
  }

  // A column of the block lies in bytes_ from item `first` on, `stride` items apart.
  void convert(std::size_t slot, std::size_t width, std::size_t first, std::size_t stride,
               TableBlock& block) const {
    const char* bytes = bytes_.data() + first * header_.item_size;
    const std::size_t step = stride * header_.item_size;
    for (std::size_t i = 0; i < block.rows; ++i) {
      visit_item(header_, bytes + i * step,
                 [&](auto value) { block.values[i * width + slot] = static_cast<double>(value); });
    }
  }
  void convert_group(std::size_t column, std::size_t first, std::size_t stride,
                     TableBlock& block) const {
    const char* bytes = bytes_.data() + first * header_.item_size;
    const std::size_t step = stride * header_.item_size;
    for (std::size_t i = 0; i < block.rows; ++i) {
      visit_item(header_, bytes + i * step,
                 [&](auto value) { block.groups[i] = to_group(value, column, row_ + i); });
    }
  }

  std::int64_t to_group(std::int64_t value, std::size_t, std::size_t) const { return value; }
  template <class T>
  std::int64_t to_group(T value, std::size_t column, std::size_t row) const {
    return whole_group(file_.path(), columns_[column], value, row);
  }

  void read_rows(const Selection& selection, TableBlock& block) {
    const std::size_t cols = header_.cols;
    fetch(row_ * cols, block.rows * cols);
    const std::size_t width = selection.values.size();
    for (std::size_t slot = 0; slot < width; ++slot)
      convert(slot, width, selection.values[slot], cols, block);
    if (selection.group) convert_group(*selection.group, *selection.group, cols, block);
  }

  void read_columns(const Selection& selection, TableBlock& block) {
    const std::size_t width = selection.values.size();
    for (std::size_t slot = 0; slot < width; ++slot) {
      fetch(selection.values[slot] * header_.rows + row_, block.rows);
      convert(slot, width, 0, 1, block);
    }
    if (selection.group) {
      fetch(*selection.group * header_.rows + row_, block.rows);
      convert_group(*selection.group, 0, 1, block);
    }
  }

  InputFile file_;
  NpyHeader header_;
  std::uint64_t row_ = 0;
  std::vector<char> bytes_;
};

}  // namespace

std::unique_ptr<TableSource> open_npy(const std::string& path, const ReadOptions& options) {
  return std::make_unique<NpySource>(path, options);
}

}  // namespace neyman
