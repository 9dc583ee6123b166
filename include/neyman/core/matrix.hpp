#pragma once

#include <cstddef>
#include <span>
#include <utility>
#include <vector>

namespace neyman {

/// A read-only view of a row-major table of doubles: one row an event, one column a feature.
/// Rows may be strided, so that a block of columns of a wider table is a view too.
class MatrixView {
 public:
  MatrixView() = default;
  MatrixView(const double* data, std::size_t rows, std::size_t cols)
      : MatrixView(data, rows, cols, cols) {}
  MatrixView(const double* data, std::size_t rows, std::size_t cols, std::size_t stride)
      : data_(data), rows_(rows), cols_(cols), stride_(stride) {}

  std::size_t rows() const { return rows_; }
  std::size_t cols() const { return cols_; }
  std::size_t stride() const { return stride_; }
  bool empty() const { return rows_ == 0 || cols_ == 0; }
  const double* data() const { return data_; }

  double operator()(std::size_t row, std::size_t col) const { return data_[row * stride_ + col]; }
  std::span<const double> row(std::size_t i) const { return {data_ + i * stride_, cols_}; }
  /// Rows [begin, end).
  MatrixView rows(std::size_t begin, std::size_t end) const {
    return {data_ + begin * stride_, end - begin, cols_, stride_};
  }

 private:
  const double* data_ = nullptr;
  std::size_t rows_ = 0, cols_ = 0, stride_ = 0;
};

/// A row-major table of doubles that owns its memory.
class Matrix {
 public:
  Matrix() = default;
  Matrix(std::size_t rows, std::size_t cols) : values_(rows * cols), rows_(rows), cols_(cols) {}
  /// Takes `values` (rows x cols, row-major) over.
  Matrix(std::size_t rows, std::size_t cols, std::vector<double> values);

  std::size_t rows() const { return rows_; }
  std::size_t cols() const { return cols_; }
  bool empty() const { return values_.empty(); }
  double* data() { return values_.data(); }
  const double* data() const { return values_.data(); }
  std::span<double> values() { return values_; }
  std::span<const double> values() const { return values_; }

  double& operator()(std::size_t row, std::size_t col) { return values_[row * cols_ + col]; }
  double operator()(std::size_t row, std::size_t col) const { return values_[row * cols_ + col]; }
  std::span<double> row(std::size_t i) { return {values_.data() + i * cols_, cols_}; }
  std::span<const double> row(std::size_t i) const { return {values_.data() + i * cols_, cols_}; }

  MatrixView view() const { return {values_.data(), rows_, cols_}; }
  operator MatrixView() const { return view(); }  // NOLINT: a matrix is a view of itself
  MatrixView rows(std::size_t begin, std::size_t end) const { return view().rows(begin, end); }

  /// The rows with these indices, in this order.
  Matrix take(std::span<const std::size_t> indices) const;
  /// Adds the rows of `other` (same number of columns) below.
  void append(MatrixView other);
  std::vector<double> column(std::size_t col) const;

  bool operator==(const Matrix&) const = default;

 private:
  std::vector<double> values_;
  std::size_t rows_ = 0, cols_ = 0;
};

}  // namespace neyman
