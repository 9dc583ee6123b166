#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "neyman/data/reader.hpp"

namespace neyman {

/// Which columns of a table are wanted, by index.
struct Selection {
  std::vector<std::size_t> values;   ///< columns of numbers, in the order of the block
  std::optional<std::size_t> group;  ///< column of whole numbers
  bool refuse_invalid = true;        ///< a number that is not finite is an error
};

/// Some rows of a table.
struct TableBlock {
  std::size_t rows = 0;
  std::vector<double> values;  ///< rows × selected columns
  std::vector<std::int64_t> groups;
};

/// A table in a file, read from the top to the end, or from any row on.
class TableSource {
 public:
  virtual ~TableSource() = default;
  const std::vector<std::string>& columns() const { return columns_; }
  /// Whether the file names its columns; else their names are those of `names_for`.
  bool named() const { return named_; }
  /// Reads at most `rows` further rows of the selected columns; none at the end. With
  /// `refuse_invalid` the source throws for a value that is not finite.
  virtual void read(std::size_t rows, const Selection& selection, TableBlock& block) = 0;
  /// How many rows there are, where the file tells it before it is read: then `seek` may be called.
  virtual std::optional<std::uint64_t> rows() const { return std::nullopt; }
  /// The row that is read next.
  virtual void seek(std::uint64_t) {}

 protected:
  std::vector<std::string> columns_;
  bool named_ = false;
};

std::unique_ptr<TableSource> open_csv(const std::string& path, const ReadOptions& options);
std::unique_ptr<TableSource> open_npy(const std::string& path, const ReadOptions& options);
std::unique_ptr<TableSource> open_hdf5(const std::string& path, const ReadOptions& options);

/// Names for `count` columns of a file that gives none: those of the options, or x0, x1, …
std::vector<std::string> names_for(const std::string& path, const ReadOptions& options,
                                   std::size_t count);

/// Throws FileError for more columns than anybody's events have: the table is transposed, or its
/// shape is broken. `rows` where they are known.
void refuse_too_wide(const std::string& path, std::optional<std::uint64_t> rows,
                     std::uint64_t columns);

// For sources that number their rows instead of lines: "file.npy: row 17 (counted from 0): ".

/// Throws FileError for the first value of the block that is not finite.
void refuse_invalid_values(const std::string& path, const std::vector<std::string>& columns,
                           const Selection& selection, const TableBlock& block,
                           std::size_t first_row);

/// A number as a group; throws FileError unless it is whole and a double holds it exactly.
std::int64_t whole_group(const std::string& path, const std::string& column, double value,
                         std::size_t row);
/// The same for an unsigned integer, which may be too large.
std::int64_t whole_group(const std::string& path, const std::string& column, std::uint64_t value,
                         std::size_t row);

/// The largest integer below which every one is a double: 2^53.
inline constexpr double largest_exact_integer = 9007199254740992.0;

}  // namespace neyman
