#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <cstring>
#include <limits>
#include <string_view>

#include "data/input_file.hpp"
#include "data/table_source.hpp"
#include "neyman/core/check.hpp"
#include "neyman/core/error.hpp"
#include "neyman/core/text.hpp"

namespace neyman {

namespace {

/// One record of the file: the bytes from its first to its last, without the line end.
struct Record {
  std::string_view text;
  std::size_t line = 0;  ///< of its first byte
  bool quoted = false;   ///< somewhere in it is a quote
};

struct Field {
  std::string_view text;
  bool quoted = false;
};

enum class Parsed { number, missing, wrong };

/// Parses a number, spaces around it allowed.
Parsed parse_number(std::string_view text, double& value) {
  if (text.empty() || text == "NA") {
    value = std::numeric_limits<double>::quiet_NaN();
    return Parsed::missing;
  }
  if (text.front() == '+' && text.size() > 1 && text[1] != '-') text.remove_prefix(1);
  const char* end = text.data() + text.size();
  const auto [stop, error] = std::from_chars(text.data(), end, value);
  if (stop != end || error == std::errc::invalid_argument) return Parsed::wrong;
  if (error == std::errc::result_out_of_range) {
    // A wider type tells too large from too small.
    long double wide = 0;
    const auto again = std::from_chars(text.data(), end, wide);
    if (again.ec != std::errc{}) return Parsed::wrong;
    value = static_cast<double>(wide);
  }
  return Parsed::number;
}

class CsvSource : public TableSource {
 public:
  CsvSource(const std::string& path, const ReadOptions& options)
      : file_(path), separator_(options.separator) {
    if (std::strchr("\"#\n\r", separator_) != nullptr) {
      fail_argument("read_samples", "separator", fmt::format("'{}'", separator_),
                    "neither a quote, a # nor a line end");
    }
    skip_byte_order_mark();
    read_header(options);
  }

  void read(std::size_t rows, const Selection& selection, TableBlock& block) override;

 private:
  [[noreturn]] void fail(std::size_t line, const std::string& what) const {
    throw FileError(fmt::format("{}:{}: {}", file_.path(), line, what));
  }
  [[noreturn]] void fail_value(std::size_t line, std::size_t column, std::string_view text,
                               std::string_view condition) const {
    fail(line, fmt::format("column '{}' is '{}', but must be {}", shortened(columns_[column]),
                           shortened(text), condition));
  }

  void skip_byte_order_mark();
  void read_header(const ReadOptions& options);
  bool is_header(const Record& record, const std::vector<Field>& fields, Header wanted) const;

  bool fill();
  bool next_record(Record& record);
  bool next_lines(Record& record);
  std::size_t quoted_end(std::size_t begin);
  bool is_blank(std::string_view text) const;
  bool is_space(char c) const { return c == ' ' || (c == '\t' && separator_ != '\t'); }
  std::string_view trim(std::string_view text) const;

  const std::vector<Field>& split(const Record& record);
  void parse_plain(const Record& record, double* values, std::int64_t* group);
  void parse_quoted(const Record& record, double* values, std::int64_t* group);
  void store(std::string_view text, std::size_t line, std::size_t column, double* values,
             std::int64_t* group) const;
  [[noreturn]] void fail_width(std::size_t line, std::size_t found) const;

  // Where a column's value goes: a slot of the block, or one of these.
  static constexpr std::ptrdiff_t ignored = -1, to_group = -2;

  InputFile file_;
  char separator_;
  std::vector<char> buffer_ = std::vector<char>(1 << 20);
  std::size_t begin_ = 0, end_ = 0;  // the bytes of buffer_ not read yet
  bool at_end_ = false;
  std::size_t line_ = 1;
  std::size_t first_line_ = 0;  // of the record that fixed the number of columns
  bool has_pending_ = false;    // the first record was a row, not a header
  Record pending_;
  std::vector<std::ptrdiff_t> slots_;
  bool refuse_invalid_ = true;
  std::vector<Field> fields_;
  std::vector<std::string> unquoted_;  // values of one record whose quotes were doubled
};

/// A record longer than this has a quote that was never closed, or is not text.
constexpr std::size_t longest_record = std::size_t{1} << 26;

/// Reads more bytes behind those left; false at the end of the file.
bool CsvSource::fill() {
  if (at_end_) return false;
  if (begin_ > 0) {
    std::memmove(buffer_.data(), buffer_.data() + begin_, end_ - begin_);
    end_ -= begin_;
    begin_ = 0;
  }
  if (end_ == buffer_.size()) {
    if (buffer_.size() >= longest_record) {
      fail(line_, "a line or a quoted value begins here that does not end within 64 MiB");
    }
    buffer_.resize(2 * buffer_.size());
  }
  const std::size_t got = file_.read(buffer_.data() + end_, buffer_.size() - end_);
  at_end_ = got < buffer_.size() - end_;
  end_ += got;
  return got > 0;
}

void CsvSource::skip_byte_order_mark() {
  fill();
  const std::string_view text(buffer_.data(), end_);
  if (text.empty()) throw FileError(file_.path() + ": is empty");
  if (text.starts_with("\xEF\xBB\xBF")) begin_ = 3;
  if (text.starts_with("\xFF\xFE") || text.starts_with("\xFE\xFF")) {
    throw FileError(file_.path() + ": is UTF-16, but must be UTF-8");
  }
}

bool CsvSource::is_blank(std::string_view text) const {
  return std::all_of(text.begin(), text.end(), [&](char c) { return is_space(c) || c == '\r'; });
}

std::string_view CsvSource::trim(std::string_view text) const {
  while (!text.empty() && is_space(text.front())) text.remove_prefix(1);
  while (!text.empty() && is_space(text.back())) text.remove_suffix(1);
  return text;
}

/// The position behind the last byte of a record that has quotes: its line end outside of them,
/// or the end of the file. Offsets count from `begin_`, which `fill` moves.
std::size_t CsvSource::quoted_end(std::size_t begin) {
  bool inside = false;
  for (std::size_t at = begin;; ++at) {
    if (begin_ + at == end_ && !fill()) {
      if (inside) fail(line_, "a quoted value begins here that does not end");
      return at;
    }
    const char c = buffer_[begin_ + at];
    if (c == '"') inside = !inside;
    if (c == '\n' && !inside) return at;
  }
}

/// The next record as it stands, be it a comment or blank.
bool CsvSource::next_lines(Record& record) {
  const char* newline = nullptr;
  for (std::size_t searched = 0;;) {
    newline = static_cast<const char*>(
        std::memchr(buffer_.data() + begin_ + searched, '\n', end_ - begin_ - searched));
    if (newline != nullptr) break;
    searched = end_ - begin_;
    if (!fill()) break;
  }
  if (begin_ == end_) return false;
  const std::size_t here = begin_;
  std::size_t length =
      (newline != nullptr ? static_cast<std::size_t>(newline - buffer_.data()) : end_) - here;
  const bool comment = buffer_[here] == '#';
  record.line = line_;
  record.quoted = !comment && std::memchr(buffer_.data() + here, '"', length) != nullptr;
  std::size_t lines = 1;
  if (record.quoted) {
    length = quoted_end(0);
    const char* text = buffer_.data() + begin_;
    lines += static_cast<std::size_t>(std::count(text, text + length, '\n'));
  }
  record.text = {buffer_.data() + begin_, length};
  begin_ = std::min(begin_ + length + 1, end_);
  line_ += lines;
  if (record.text.ends_with('\r')) record.text.remove_suffix(1);
  return true;
}

/// The next record that is neither a comment nor blank; its text lasts until the next call.
bool CsvSource::next_record(Record& record) {
  if (has_pending_) {
    has_pending_ = false;
    record = pending_;
    return true;
  }
  while (next_lines(record)) {
    if (record.text.starts_with('#')) continue;
    if (!record.text.empty() && !is_space(record.text.front())) return true;
    if (!is_blank(record.text)) return true;
  }
  return false;
}

const std::vector<Field>& CsvSource::split(const Record& record) {
  fields_.clear();
  unquoted_.clear();
  // Room for every value, so that views of them stay valid.
  unquoted_.reserve(
      static_cast<std::size_t>(std::count(record.text.begin(), record.text.end(), separator_) + 1));
  std::string_view rest = record.text;
  for (;;) {
    std::string_view start = rest;
    while (!start.empty() && is_space(start.front())) start.remove_prefix(1);
    if (start.starts_with('"')) {
      std::string value;
      std::size_t at = 1;
      for (;; ++at) {
        if (at == start.size()) fail(record.line, "a quoted value does not end");
        if (start[at] != '"') {
          value += start[at];
        } else if (at + 1 < start.size() && start[at + 1] == '"') {
          value += start[at++];
        } else {
          break;
        }
      }
      unquoted_.push_back(std::move(value));
      fields_.push_back({unquoted_.back(), true});
      rest = start.substr(at + 1);
      while (!rest.empty() && is_space(rest.front())) rest.remove_prefix(1);
      if (!rest.empty() && rest.front() != separator_) {
        fail(record.line, fmt::format("'{}' follows a quoted value, but must be '{}' or the end "
                                      "of the line",
                                      rest.front(), separator_));
      }
    } else {
      const std::size_t length = std::min(rest.find(separator_), rest.size());
      const std::string_view value = rest.substr(0, length);
      if (std::find(value.begin(), value.end(), '"') != value.end()) {
        fail(record.line,
             fmt::format("'{}' has a quote, but is not quoted as a whole", shortened(value)));
      }
      fields_.push_back({trim(value), false});
      rest = rest.substr(length);
    }
    if (rest.empty()) return fields_;
    rest.remove_prefix(1);
  }
}

bool CsvSource::is_header(const Record& record, const std::vector<Field>& fields,
                          Header wanted) const {
  if (wanted != Header::detect) return wanted == Header::present;
  std::size_t names = 0, numbers = 0;
  for (const Field& field : fields) {
    double value = 0;
    const Parsed parsed = parse_number(field.text, value);
    if (field.quoted || parsed == Parsed::wrong) ++names;
    if (!field.quoted && parsed == Parsed::number) ++numbers;
  }
  if (names > 0 && numbers > 0) {
    fail(record.line,
         "the first row has both names and numbers; correct it, or say whether it is a header");
  }
  return names > 0;
}

void CsvSource::read_header(const ReadOptions& options) {
  Record record;
  if (!next_record(record)) throw FileError(file_.path() + ": has no rows");
  first_line_ = record.line;
  const std::vector<Field>& fields = split(record);
  refuse_too_wide(file_.path(), {}, fields.size());
  if (is_header(record, fields, options.header)) {
    for (const Field& field : fields) columns_.emplace_back(field.text);
    named_ = true;
  } else {
    columns_ = names_for(file_.path(), options, fields.size());
    pending_ = record;  // nothing is read before the first call of `read` uses it
    has_pending_ = true;
  }
}

void CsvSource::fail_width(std::size_t line, std::size_t found) const {
  fail(line, fmt::format("has {} value{}, but must have {} (as line {})", found,
                         found == 1 ? "" : "s", columns_.size(), first_line_));
}

/// The way of every value that is not simply a number that ends where the value does.
void CsvSource::store(std::string_view text, std::size_t line, std::size_t column, double* values,
                      std::int64_t* group) const {
  const std::ptrdiff_t slot = slots_[column];
  if (slot == ignored) return;
  double value = 0;
  const Parsed parsed = parse_number(text, value);
  if (slot == to_group) {
    const auto [stop, error] = std::from_chars(text.data(), text.data() + text.size(), *group);
    if (error == std::errc{} && stop == text.data() + text.size()) return;
    const bool whole = parsed == Parsed::number && value == std::floor(value) &&
                       std::abs(value) <= largest_exact_integer;
    if (!whole) fail_value(line, column, text, "a whole number");
    *group = static_cast<std::int64_t>(value);
    return;
  }
  if (parsed == Parsed::wrong) fail_value(line, column, text, "a number");
  if (refuse_invalid_ && !std::isfinite(value))
    throw InvalidValue(fmt::format("{}:{}: column '{}' is '{}', but must be a finite number",
                                   file_.path(), line, columns_[column], text));
  values[slot] = value;
}

void CsvSource::parse_plain(const Record& record, double* values, std::int64_t* group) {
  const char* at = record.text.data();
  const char* const end = at + record.text.size();
  const std::size_t width = columns_.size();
  for (std::size_t column = 0;; ++column) {
    if (column == width) {
      fail_width(record.line,
                 width + 1 + static_cast<std::size_t>(std::count(at, end, separator_)));
    }
    const char* stop = at;
    bool done = false;
    if (slots_[column] >= 0) {
      double value = 0;
      const auto result = std::from_chars(at, end, value);
      stop = result.ptr;
      done =
          result.ec == std::errc{} && (stop == end || *stop == separator_) && std::isfinite(value);
      if (done) values[slots_[column]] = value;
    }
    if (!done) {
      stop = std::find(at, end, separator_);
      store(trim({at, static_cast<std::size_t>(stop - at)}), record.line, column, values, group);
    }
    if (stop == end) {
      if (column + 1 != width) fail_width(record.line, column + 1);
      return;
    }
    at = stop + 1;
  }
}

void CsvSource::parse_quoted(const Record& record, double* values, std::int64_t* group) {
  const std::vector<Field>& fields = split(record);
  if (fields.size() != columns_.size()) fail_width(record.line, fields.size());
  for (std::size_t column = 0; column < fields.size(); ++column) {
    store(trim(fields[column].text), record.line, column, values, group);
  }
}

void CsvSource::read(std::size_t rows, const Selection& selection, TableBlock& block) {
  slots_.assign(columns_.size(), ignored);
  for (std::size_t slot = 0; slot < selection.values.size(); ++slot) {
    slots_[selection.values[slot]] = static_cast<std::ptrdiff_t>(slot);
  }
  if (selection.group) slots_[*selection.group] = to_group;
  refuse_invalid_ = selection.refuse_invalid;

  const std::size_t width = selection.values.size();
  block.rows = 0;
  block.values.clear();
  block.groups.clear();
  Record record;
  while (block.rows < rows && next_record(record)) {
    block.values.resize((block.rows + 1) * width);
    double* values = block.values.data() + block.rows * width;
    std::int64_t group = 0;
    if (record.quoted) {
      parse_quoted(record, values, &group);
    } else {
      parse_plain(record, values, &group);
    }
    if (selection.group) block.groups.push_back(group);
    ++block.rows;
  }
}

}  // namespace

std::unique_ptr<TableSource> open_csv(const std::string& path, const ReadOptions& options) {
  return std::make_unique<CsvSource>(path, options);
}

}  // namespace neyman
