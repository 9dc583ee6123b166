#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "neyman/data/reader.hpp"
#include "neyman/data/samples.hpp"

namespace neyman {

/// Events in NPY or HDF5 files that need not fit into memory: read in any order, any number of
/// times, by any number of threads.
///
/// Every event has a group: that of its column, where `options.group` names one, else its row,
/// counted from 0 over all files. So it is known again wherever it is met (see `hashed`).
class SampleStream {
 public:
  /// A file, and θ of all its events; empty: in the columns `options.parameters`, or not known.
  struct Table {
    std::string file;
    std::vector<double> point = {};
  };
  /// Opens the files. `parameters` are the names for θ of the tables.
  /// @throw FileError where a file cannot be read, is CSV, or has other features than the first.
  /// @throw ArgumentError without a table, or where invalid rows are to be dropped: their places
  ///   would not be known.
  SampleStream(std::vector<Table> tables, ReadOptions options,
               std::vector<std::string> parameters = {});

  /// Rows of the files, those that are left out included.
  std::size_t rows() const { return first_.back(); }
  const std::vector<std::string>& feature_names() const { return feature_names_; }

  /// Leaves out events of which `hashed(group, seed)` is below a share.
  void leave_out(double share, std::uint64_t seed);

  /// The events of rows [begin, end), without those that are left out.
  /// @throw FileError where a row cannot be read or is invalid.
  Samples read(std::size_t begin, std::size_t end) const;

  /// One of `count` windows that together hold every event once: `stretches` pieces from all over
  /// the files, dealt anew for every seed and epoch.
  struct Window {
    std::uint64_t seed = 0;
    std::size_t epoch = 0, number = 0, count = 1;
  };
  static constexpr std::size_t stretches = 16;
  Samples window(const Window& which) const;

 private:
  void read_table(std::size_t table, std::size_t begin, std::size_t end, Samples& into) const;

  std::vector<Table> tables_;
  ReadOptions options_;
  std::vector<std::string> feature_names_, parameter_names_;
  std::vector<std::size_t> first_;  // row of each table, and the end
  double left_out_ = 0.0;
  std::uint64_t left_out_seed_ = 0;
};

}  // namespace neyman
