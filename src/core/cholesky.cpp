#include "core/cholesky.hpp"

#include <algorithm>
#include <cmath>
#include <memory>
#include <vector>

#include "core/cholesky_kernels.hpp"
#include "core/instruction_set.hpp"
#include "neyman/core/parallel.hpp"

namespace neyman {

namespace {

const cholesky_kernels::Kernels& kernels() {
  static const auto& chosen =
      detail::choose("cholesky", detail::supported(cholesky_kernels::all_kernels));
  return chosen;
}

/// Rows of U = Lᵀ that are found at a time: enough of them that the time goes into products, few
/// enough that what they are multiplied with stays in the cache.
constexpr std::size_t most_rows = 192;

/// Strips of a matrix, as wide as a tile is, row after row.
class Strips {
 public:
  Strips(std::size_t width, std::size_t depth, std::size_t columns)
      : width_(width),
        depth_(depth),
        values_(std::make_unique_for_overwrite<double[]>(columns * depth)) {}

  double* operator[](std::size_t strip) { return values_.get() + strip * width_ * depth_; }
  /// Copies rows of a strip from a matrix whose rows are `stride` apart.
  void copy(std::size_t strip, std::size_t begin, std::size_t end, const double* from,
            std::size_t stride) {
    for (std::size_t k = begin; k < end; ++k)
      std::copy_n(from + k * stride, width_, (*this)[strip] + k * width_);
  }

 private:
  std::size_t width_, depth_;
  std::unique_ptr<double[]> values_;
};

/// UᵀU = A, a block of rows after the other, in strips of columns. Within a block, a strip goes
/// through squares, as high as it is wide, whose diagonal ones are factored number by number.
class Factorisation {
 public:
  /// Filled up to whole strips by a unit matrix.
  Factorisation(const double* matrix, std::size_t size)
      : size_((size + width_ - 1) / width_ * width_),
        most_(std::min(most_rows, size_)),
        u_(std::make_unique_for_overwrite<double[]>(size_ * size_)),
        inverses_(height_, width_, most_),
        above_(height_, most_, most_),
        wide_(width_, most_, size_),
        narrow_(height_, most_, size_) {
    for (std::size_t i = 0; i < size_; ++i) {
      double* row = u_.get() + i * size_;
      std::fill(row + i / width_ * width_, row + size_, 0.0);
      if (i < size)
        std::copy(matrix + i * size + i, matrix + (i + 1) * size, row + i);
      else
        row[i] = 1.0;
    }
  }

  bool run() {
    for (first_ = 0; first_ < size_; first_ += rows_) {
      rows_ = std::min(most_, size_ - first_);
      const std::size_t squares = rows_ / width_, strips = (size_ - first_) / width_;
      for (std::size_t strip = 0; strip < squares; ++strip)
        if (!factor(strip)) return false;
      for_each(squares, strips, [&](std::size_t strip) {
        finish(strip, squares);
        for (std::size_t i = 0; i < width_ / height_; ++i)
          narrow_.copy(strip * width_ / height_ + i, 0, rows_, at(0, strip) + i * height_, size_);
      });
      for_each(squares, strips, [&](std::size_t strip) {
        for (std::size_t i = squares * width_; i < (strip + 1) * width_; i += height_)
          kernels_.subtract(narrow_[i / height_], wide_[strip], rows_, at(i, strip), size_);
      });
    }
    return true;
  }

  void copy_to(double* matrix, std::size_t size) const {
    for (std::size_t i = 0; i < size; ++i)
      std::copy(u_.get() + i * size_ + i, u_.get() + i * size_ + size, matrix + i * size + i);
  }

 private:
  /// A row of a strip, both counted from the block's first.
  double* at(std::size_t row, std::size_t strip) {
    return u_.get() + (first_ + row) * size_ + first_ + strip * width_;
  }

  /// Of a square, the share of the squares above it.
  void reduce(std::size_t strip, std::size_t square) {
    for (std::size_t i = square * width_; i < (square + 1) * width_; i += height_)
      kernels_.subtract(above_[i / height_], wide_[strip], square * width_, at(i, strip), size_);
  }

  /// The first squares of a strip, from those of the diagonal: U_ii⁻ᵀ times what is left.
  void finish(std::size_t strip, std::size_t squares) {
    for (std::size_t square = 0; square < squares; ++square) {
      const std::size_t begin = square * width_, end = begin + width_;
      reduce(strip, square);
      wide_.copy(strip, begin, end, at(0, strip), size_);
      for (std::size_t i = begin; i < end; ++i) std::fill_n(at(i, strip), width_, 0.0);
      for (std::size_t i = begin; i < end; i += height_)
        kernels_.subtract(inverses_[i / height_], wide_[strip] + begin * width_, width_,
                          at(i, strip), size_);
      wide_.copy(strip, begin, end, at(0, strip), size_);
    }
  }

  /// A strip that ends on the diagonal.
  bool factor(std::size_t strip) {
    finish(strip, strip);
    for (std::size_t i = 0; i < width_ / height_; ++i)
      above_.copy(strip * width_ / height_ + i, 0, strip * width_, at(0, strip) + i * height_,
                  size_);
    reduce(strip, strip);
    double* u = at(strip * width_, strip);
    for (std::size_t k = 0; k < width_; ++k) {
      double* row = u + k * size_;
      if (!(row[k] > 0.0) || !std::isfinite(row[k])) return false;
      const double root = std::sqrt(row[k]);
      for (std::size_t j = k; j < width_; ++j) row[j] /= root;
      for (std::size_t i = k + 1; i < width_; ++i)
        for (std::size_t j = i; j < width_; ++j) u[i * size_ + j] -= row[i] * row[j];
    }
    invert(u, strip);
    return true;
  }

  /// V = −U⁻¹ from V U = −1, row by row.
  void invert(const double* u, std::size_t strip) {
    std::vector<double> row(width_);
    for (std::size_t i = 0; i < width_; ++i) {
      std::fill(row.begin(), row.end(), 0.0);
      row[i] = -1.0;
      for (std::size_t k = i; k < width_; ++k) {
        row[k] /= u[k * size_ + k];
        for (std::size_t j = k + 1; j < width_; ++j) row[j] -= row[k] * u[k * size_ + j];
      }
      for (std::size_t j = 0; j < width_; ++j)
        inverses_[(strip * width_ + j) / height_][i * height_ + j % height_] = row[j];
    }
  }

  /// Calls work(strip) from begin to end, the last, which have most to do, first.
  template <class Work>
  static void for_each(std::size_t begin, std::size_t end, const Work& work) {
    constexpr std::size_t few = 16;  // not worth to wake threads for
    if (end <= begin + few)
      for (std::size_t strip = begin; strip < end; ++strip) work(strip);
    else
      parallel_blocks(end - begin, 1, [&](Block block) { work(end - 1 - block.index); });
  }

  const cholesky_kernels::Kernels& kernels_ = kernels();
  const std::size_t width_ = kernels_.columns, height_ = kernels_.rows;  // of a tile
  const std::size_t size_, most_;
  std::size_t first_ = 0, rows_ = 0;  // of the block
  std::unique_ptr<double[]> u_;
  // Of the block: −U_ii⁻¹, what is above the diagonal squares, and all strips in both widths.
  Strips inverses_, above_, wide_, narrow_;
};

}  // namespace

bool cholesky(double* matrix, std::size_t size) {
  Factorisation factorisation(matrix, size);
  if (!factorisation.run()) return false;
  factorisation.copy_to(matrix, size);
  return true;
}

}  // namespace neyman
