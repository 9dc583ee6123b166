#include "neyman/core/matrix.hpp"

#include <algorithm>

#include "neyman/core/check.hpp"

namespace neyman {

Matrix::Matrix(std::size_t rows, std::size_t cols, std::vector<double> values)
    : values_(std::move(values)), rows_(rows), cols_(cols) {
  check_same_size("Matrix", "values", values_.size(), rows * cols, "rows times columns");
}

Matrix Matrix::take(std::span<const std::size_t> indices) const {
  Matrix out(indices.size(), cols_);
  for (std::size_t i = 0; i < indices.size(); ++i) {
    if (indices[i] >= rows_)
      fail_argument("Matrix::take", "index", std::to_string(indices[i]),
                    "below " + std::to_string(rows_));
    std::copy_n(values_.data() + indices[i] * cols_, cols_, out.data() + i * cols_);
  }
  return out;
}

void Matrix::append(MatrixView other) {
  if (rows_ == 0 && cols_ == 0) cols_ = other.cols();
  check_same_size("Matrix::append", "other", other.cols(), cols_, "columns");
  for (std::size_t i = 0; i < other.rows(); ++i) {
    const auto row = other.row(i);
    values_.insert(values_.end(), row.begin(), row.end());
  }
  rows_ += other.rows();
}

std::vector<double> Matrix::column(std::size_t col) const {
  check_at_least("Matrix::column", "columns", cols_, col + 1);
  std::vector<double> out(rows_);
  for (std::size_t i = 0; i < rows_; ++i) out[i] = (*this)(i, col);
  return out;
}

}  // namespace neyman
