#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "measurements/compiled_model.hpp"

namespace neyman::detail {

/// Counts and auxiliary observations at their expectations.
MeasurementData expected_counts(const StatisticalModel& model, std::span<const double> point);

/// Draws data at one point, many times. The model must outlive it.
class ToySource {
 public:
  ToySource(const StatisticalModel& model, std::span<const double> point);
  void draw(RandomStream& random, MeasurementData& out) const;

 private:
  /// Events, one a row: ratios, then functions. Rows begin with lines of memory.
  class Rows {
   public:
    static constexpr std::size_t line = 8;  // numbers
    Rows(std::size_t rows, std::size_t columns);
    double* operator[](std::size_t row) { return values_.data() + first_ + row * stride_; }
    const double* operator[](std::size_t row) const {
      return values_.data() + first_ + row * stride_;
    }

    /// Has a row fetched that will be read soon.
    void ask(std::size_t row) const {
      for (std::size_t c = 0; c < stride_; c += line) __builtin_prefetch((*this)[row] + c);
    }

   private:
    std::size_t stride_, first_ = 0;
    std::vector<double> values_;
  };
  /// A cell of an alias table in few bytes, for the sake of memory that is near: probabilities are
  /// whole numbers of 2^−32.
  struct Cell {
    std::uint32_t accept, alias;
  };
  static std::vector<Cell> cells_of(std::span<const double> weights);
  static void choose(std::span<const Cell> cells, std::span<const double> uniform, const Rows& rows,
                     std::size_t begin, std::size_t end, std::span<std::uint32_t> out);
  static void take(const Rows& rows, std::span<const std::uint32_t> drawn, std::size_t begin,
                   std::size_t end, Matrix& ratios, Matrix& functions);

  const CompiledModel& model_;
  MeasurementData expected_;
  std::vector<double> events_;             // ν of the unbinned channels
  std::vector<double> values_;             // of the parameters of the constraints
  std::vector<std::vector<Cell>> tables_;  // of the simulated events
  std::vector<Rows> simulated_;            // events of each channel
};

}  // namespace neyman::detail
