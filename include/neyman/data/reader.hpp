#pragma once

#include <cstddef>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "neyman/core/error.hpp"
#include "neyman/data/file_format.hpp"
#include "neyman/data/samples.hpp"

namespace neyman {

/// What to do with a row that has a NaN, infinite or missing value in a column that is used.
enum class OnInvalid {
  refuse,  ///< throw FileError that names the row and the column
  drop,    ///< leave the row out and count it
};

/// Whether the first row of a CSV file holds the names of the columns.
enum class Header {
  detect,  ///< names if no value of it is a number; a quoted value is a name
  present,
  absent,
};

/// Which columns of a file are what, and how the file is read.
struct ReadOptions {
  std::vector<std::string> features;    ///< empty: every column not named below
  std::vector<std::string> parameters;  ///< columns of θ
  std::string weight;                   ///< column of the weights; empty: none
  std::string group;                    ///< column of the groups (whole numbers); empty: none
  OnInvalid on_invalid = OnInvalid::refuse;
  FileFormat format = FileFormat::by_extension;
  /// Rows that a SampleReader holds at once, fewer where there are more than 512 columns.
  std::size_t block_rows = 65536;
  /// Names of the columns in order, where the file gives none (NPY, CSV without a header).
  /// Empty: x0, x1, … (x for one column).
  std::vector<std::string> columns;
  Header header = Header::detect;  ///< of a CSV file
  char separator = ',';            ///< of a CSV file
  std::string dataset;             ///< path of the dataset or group in an HDF5 file; empty: root
};

/// A value is missing or not finite where it must not be: `OnInvalid::drop` leaves such rows out.
class InvalidValue : public FileError {
 public:
  using FileError::FileError;
};

/// Reads a file of events block by block, so that it may be larger than memory.
///
/// CSV: RFC 4180 quoting (a quoted value may hold separators, line ends and doubled quotes), LF or
/// CRLF, an optional UTF-8 byte order mark. Lines that begin with # and blank lines are skipped.
/// Spaces around an unquoted value are ignored. An empty value and NA are missing values. A pipe
/// can be read.
///
/// NPY: versions 1 to 3; floating point of 4 or 8 bytes, integers and bool; either byte order;
/// C or Fortran order; one dimension (one column) or two (rows × columns).
///
/// HDF5: one dataset of one dimension for each column, in the order of the group's attribute
/// `columns` where it has one (otherwise sorted by name); or one dataset of two dimensions
/// (rows × columns) whose attribute `columns`, where it has one, names its columns. Behind a colon
/// the name of a file may go on with a group or a dataset in it: "sims.h5:run1/events". Values must
/// lie in the file itself, all of them: where some were never written, HDF5 would give zeros.
/// Columns that neyman has written carry checksums of their rows (attribute `row_checksums`), which
/// are compared.
///
/// Integers beyond 2^53 are rounded to a double, except in the group column.
class SampleReader {
 public:
  /// Opens the file and finds the columns.
  /// @throw FileError where the file cannot be read, is empty, has columns of the same name or more
  ///   than 100 000 of them, or lacks one that `options` names (the message lists those present).
  /// @throw ArgumentError where `options` contradict themselves.
  explicit SampleReader(const std::string& path, ReadOptions options = {});
  ~SampleReader();
  SampleReader(SampleReader&&) noexcept;
  SampleReader& operator=(SampleReader&&) noexcept;

  /// The next at most block_rows events; nullopt at the end of the file.
  /// @throw FileError for a row that is broken or invalid, and where no row is left at the end;
  ///   Interrupted on a requested stop.
  std::optional<Samples> next();

  /// Every column of the file, in its order.
  const std::vector<std::string>& columns() const;
  const std::vector<std::string>& feature_names() const;
  std::size_t rows() const;     ///< read so far, dropped ones included
  std::size_t dropped() const;  ///< left out so far

  /// How many rows the file has, where it tells before they are read: not CSV.
  std::optional<std::size_t> file_rows() const;
  /// Goes on with this row. @throw FileError where `file_rows` is not known.
  void seek(std::size_t row);

 private:
  struct State;
  std::unique_ptr<State> state_;
};

struct ReadResult {
  Samples samples;
  std::size_t rows = 0;     ///< in the file
  std::size_t dropped = 0;  ///< of them left out, with on_invalid = drop
};

/// Reads a whole file of events; see SampleReader for formats and errors.
ReadResult read_samples(const std::string& path, const ReadOptions& options = {});

/// The names of the columns of a file.
struct TableColumns {
  std::vector<std::string> names;
  bool named = false;  ///< in the file or by `options`; else they are x0, x1, …
};

/// The names of the columns of a file, without reading its rows. Of `options` only how the file is
/// read counts, not which columns are wanted.
TableColumns table_columns(const std::string& path, const ReadOptions& options = {});
/// The same names alone.
std::vector<std::string> file_columns(const std::string& path, const ReadOptions& options = {});

}  // namespace neyman
