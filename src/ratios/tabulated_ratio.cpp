#include "neyman/ratios/tabulated_ratio.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>

#include "neyman/core/check.hpp"
#include "neyman/core/error.hpp"
#include "neyman/core/parallel.hpp"

namespace neyman {

namespace {

using Cubic = std::array<double, 4>;  // powers of the position t in a cell, 0 <= t <= 1

/// Through f(0), f(1/3), f(2/3), f(1).
Cubic through(double f0, double f1, double f2, double f3) {
  return {f0, 0.5 * (-11.0 * f0 + 18.0 * f1 - 9.0 * f2 + 2.0 * f3),
          0.5 * (18.0 * f0 - 45.0 * f1 + 36.0 * f2 - 9.0 * f3),
          0.5 * (-9.0 * f0 + 27.0 * f1 - 27.0 * f2 + 9.0 * f3)};
}

double value(const double* cubic, double t) {
  return cubic[0] + t * (cubic[1] + t * (cubic[2] + t * cubic[3]));
}

}  // namespace

TabulatedRatio::TabulatedRatio(const MixtureRatio& of, double low, double high, Config config)
    : MixtureRatio(of.weights(), of.reference()), of_(of), low_(low) {
  check_at_least("TabulatedRatio", "cells", config.cells, 1);
  check_positive("TabulatedRatio", "tolerance", config.tolerance);
  if (!(low < high) || !std::isfinite(high - low))
    fail_argument("TabulatedRatio", "high", fmt::format("{}", high),
                  fmt::format("above {} and finite", low));
  const std::size_t count = components();
  const double width = (high - low) / static_cast<double>(config.cells);
  cells_per_unit_ = 1.0 / width;

  Matrix x(evaluations(config), 1);
  for (std::size_t i = 0; i < x.rows(); ++i) x(i, 0) = low + width * static_cast<double>(i) / 6.0;
  const auto ratios = of.component_ratios(x);
  cubics_.resize(4 * count * config.cells);
  direct_.assign(config.cells, 0);
  for (std::size_t cell = 0; cell < config.cells; ++cell)
    for (std::size_t c = 0; c < count; ++c) {
      const auto at = [&](std::size_t sixth) { return ratios(6 * cell + sixth, c); };
      const Cubic cubic = through(at(0), at(2), at(4), at(6));
      std::copy(cubic.begin(), cubic.end(), cubics_.data() + 4 * (cell * count + c));
      for (const std::size_t sixth : {1, 3, 5}) {
        const double found = value(cubic.data(), static_cast<double>(sixth) / 6.0);
        if (!(std::abs(found - at(sixth)) <= config.tolerance * at(sixth))) direct_[cell] = 1;
      }
    }
}

double TabulatedRatio::direct_share() const {
  return static_cast<double>(std::count(direct_.begin(), direct_.end(), 1)) /
         static_cast<double>(direct_.size());
}

Matrix TabulatedRatio::component_ratios(MatrixView x) const {
  check_same_size("TabulatedRatio", "x", x.cols(), 1, "columns");
  const std::size_t count = components();
  const double cells = static_cast<double>(direct_.size());
  Matrix out(x.rows(), count);
  parallel_blocks(x.rows(), default_block, [&](Block block) {
    std::vector<std::size_t> rest;
    for (std::size_t i = block.begin; i < block.end; ++i) {
      const double position = (x(i, 0) - low_) * cells_per_unit_;
      const bool inside = position >= 0.0 && position < cells;  // false where x is not a number
      const auto cell = inside ? static_cast<std::size_t>(position) : 0;
      if (!inside || direct_[cell] != 0) {
        rest.push_back(i);
        continue;
      }
      const double t = position - static_cast<double>(cell);
      const double* cubic = cubics_.data() + 4 * count * cell;
      for (std::size_t c = 0; c < count; ++c, cubic += 4) out(i, c) = value(cubic, t);
    }
    if (rest.empty()) return;
    Matrix events(rest.size(), 1);
    for (std::size_t k = 0; k < rest.size(); ++k) events(k, 0) = x(rest[k], 0);
    const auto ratios = of_.component_ratios(events);
    for (std::size_t k = 0; k < rest.size(); ++k)
      std::copy_n(ratios.row(k).begin(), count, out.row(rest[k]).begin());
  });
  return out;
}

std::unique_ptr<const TabulatedRatio> tabulate(const MixtureRatio& of, MatrixView typical,
                                               std::size_t events) {
  constexpr std::size_t worth_a_table = 10;  // evaluations for each that the table takes
  const TabulatedRatio::Config config;
  if (typical.cols() != 1 || typical.rows() == 0 || of.kind() == "exact" ||
      events < worth_a_table * TabulatedRatio::evaluations(config))
    return nullptr;
  double low = typical(0, 0), high = low;
  for (std::size_t i = 0; i < typical.rows(); ++i) {
    low = std::min(low, typical(i, 0));
    high = std::max(high, typical(i, 0));
  }
  const double margin = (high - low) / 8.0;  // hardly an event lies beyond
  if (!(margin > 0.0) || !std::isfinite(margin)) return nullptr;
  return std::make_unique<const TabulatedRatio>(of, low - margin, high + margin, config);
}

}  // namespace neyman
