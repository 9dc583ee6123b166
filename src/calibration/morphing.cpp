#include "calibration/morphing.hpp"

#include <algorithm>
#include <array>
#include <boost/math/special_functions/erf.hpp>
#include <cmath>
#include <numbers>
#include <utility>

#include "neyman/core/parallel.hpp"

namespace neyman::calibration {

namespace {

constexpr std::size_t template_points = 512;
constexpr double template_margin = 0.05;  // in asinh(y)
constexpr double least_share = 0.1;       // of what positive weights give
// Densities that nearly cancel have a ratio of much noise.
constexpr double least_vertical_share = 0.5;

constexpr double largest_quantile = 9.6;
constexpr std::size_t quantile_points = 385;
constexpr double quantile_step = 2.0 * largest_quantile / static_cast<double>(quantile_points - 1);
// A cubic piece whose end slopes lie between these, in units of its secant, rises throughout.
constexpr double least_slope = 0.02, largest_slope = 2.5;
constexpr double least_tail = 1e-300;

double quantile_of_tail(double probability) {
  return std::numbers::sqrt2 *
         boost::math::erfc_inv(2.0 * std::clamp(probability, least_tail, 0.5));
}

double log_normal_density(double v) {
  return -0.5 * v * v - 0.5 * std::log(2.0 * std::numbers::pi);
}

}  // namespace

ScoreGrid::ScoreGrid(double centre, double scale, double first, double step, std::size_t size)
    : centre_(centre), scale_(scale), first_(first), step_(step), size_(size) {}

ScoreGrid ScoreGrid::over(double low, double high, double centre, double scale, double margin,
                          std::size_t size) {
  const double first = std::asinh((low - centre) / scale) - margin;
  const double last = std::asinh((high - centre) / scale) + margin;
  return {centre, scale, first, (last - first) / static_cast<double>(size - 1), size};
}

double ScoreGrid::logit(std::size_t i) const { return centre_ + scale_ * std::sinh(t(i)); }

double ScoreGrid::spread(std::size_t i) const { return scale_ * std::cosh(t(i)); }

double ScoreGrid::position(double logit) const {
  // asinh, three times as fast as the library's, whose relative precision near 0 is of no use here.
  const double y = (logit - centre_) / scale_;
  const double t = std::copysign(std::log(std::abs(y) + std::sqrt(1.0 + y * y)), y);
  return (t - first_) / step_;
}

double ScoreGrid::density(double logit) const {
  const double y = (logit - centre_) / scale_;
  return 1.0 / (step_ * scale_ * std::sqrt(1.0 + y * y));
}

TableValue look_up(std::span<const double> table, double position) {
  const auto last = static_cast<double>(table.size() - 1);
  if (!(position > 0.0)) return {table.front(), 0.0};
  if (!(position < last)) return {table.back(), 0.0};
  const auto i = static_cast<std::size_t>(position);
  const double t = position - static_cast<double>(i), s = 1.0 - t;
  const double b = table[i], c = table[i + 1];
  const double slope_b = i > 0 ? 0.5 * (c - table[i - 1]) : c - b;
  const double slope_c = i + 2 < table.size() ? 0.5 * (table[i + 2] - b) : c - b;
  return {b * s * s * (1.0 + 2.0 * t) + c * t * t * (1.0 + 2.0 * s) +
              t * s * (slope_b * s - slope_c * t),
          6.0 * s * t * (c - b) + slope_b * s * (s - 2.0 * t) - slope_c * t * (2.0 * s - t)};
}

ScoreDensity::ScoreDensity(const ScoreGrid& grid, std::vector<double> log_density)
    : grid_(grid), log_density_(std::move(log_density)) {
  // Relative to the largest, so that nothing overflows; the tails beyond the grid included.
  const double largest = *std::max_element(log_density_.begin(), log_density_.end());
  double sum = 0.0;
  for (std::size_t i = 0; i < grid_.size(); ++i) {
    const double in_t = std::exp(log_density_[i] - largest) * grid_.spread(i);
    const bool end = i == 0 || i + 1 == grid_.size();
    sum += end ? in_t * (0.5 * grid_.step() + 1.0) : in_t * grid_.step();
  }
  log_norm_ = -largest - std::log(sum);
  for (double& value : log_density_) value += log_norm_;
}

double ScoreDensity::log_density(double logit) const {
  const double position = grid_.position(logit);
  const double beyond =
      std::max({0.0, -position, position - static_cast<double>(grid_.size() - 1)});
  return look_up(log_density_, position).value - 2.0 * beyond * grid_.step();
}

void ScoreDensity::quantiles(std::span<const double> v, std::span<double> z,
                             std::span<double> slopes) const {
  const std::size_t n = grid_.size();
  std::vector<double> in_t(n), below(n), above(n);
  for (std::size_t i = 0; i < n; ++i) in_t[i] = std::exp(log_density_[i]) * grid_.spread(i);
  // Summed from both ends, so that neither tail is the difference of large numbers.
  const double half = 0.5 * grid_.step();
  below.front() = in_t.front();
  above.back() = in_t.back();
  for (std::size_t i = 1; i < n; ++i) {
    below[i] = below[i - 1] + half * (in_t[i - 1] + in_t[i]);
    above[n - 1 - i] = above[n - i] + half * (in_t[n - i] + in_t[n - 1 - i]);
  }
  // Points of the quantile function, without those that rounding makes equal.
  std::vector<double> at, value, slope;
  for (std::size_t i = 0; i < n; ++i) {
    const double here =
        below[i] < above[i] ? -quantile_of_tail(below[i]) : quantile_of_tail(above[i]);
    if (!at.empty() && !(here > at.back() + 1e-12)) continue;
    at.push_back(here);
    value.push_back(grid_.logit(i));
    slope.push_back(std::exp(log_normal_density(here) - log_density_[i]));
  }
  for (std::size_t j = 0; j < v.size(); ++j) {
    if (at.size() < 2 || v[j] <= at.front() || v[j] >= at.back()) {
      const std::size_t end = v[j] <= at.front() ? 0 : at.size() - 1;
      z[j] = value[end] + slope[end] * (v[j] - at[end]);
      slopes[j] = slope[end];
      continue;
    }
    const auto next = std::upper_bound(at.begin() + 1, at.end() - 1, v[j]);
    const auto i = static_cast<std::size_t>(next - at.begin()) - 1;
    const double h = at[i + 1] - at[i], secant = (value[i + 1] - value[i]) / h;
    const double a = std::min(slope[i], largest_slope * secant);
    const double b = std::min(slope[i + 1], largest_slope * secant);
    const double x = (v[j] - at[i]) / h, y = 1.0 - x;
    z[j] = value[i] * y * y * (1.0 + 2.0 * x) + value[i + 1] * x * x * (1.0 + 2.0 * y) +
           h * x * y * (a * y - b * x);
    slopes[j] = std::exp(log_normal_density(v[j]) - log_density(z[j]));
  }
}

namespace {

// What smooth and positive weights make of one row of tables each, and the share of the former
// that is used at each point.
struct Mixture {
  double least;  // part of what positive weights give that must be left
  std::vector<double> smooth, positive;
  std::vector<std::vector<double>> smooth_slopes, positive_slopes;  // for each parameter

  Mixture(const Matrix& rows, const NodeWeights& weights, double least_part = least_share)
      : least(least_part),
        smooth(weighted_sum(rows, weights.nodes, weights.smooth)),
        positive(weighted_sum(rows, weights.nodes, weights.positive)) {
    for (std::size_t p = 0; p < weights.smooth_slopes.cols(); ++p) {
      smooth_slopes.push_back(weighted_sum(rows, weights.nodes, weights.smooth_slopes.column(p)));
      positive_slopes.push_back(
          weighted_sum(rows, weights.nodes, weights.positive_slopes.column(p)));
    }
  }

  std::size_t parameters() const { return smooth_slopes.size(); }
  bool too_low(std::size_t j) const { return smooth[j] < least * positive[j]; }
  // The largest share that leaves enough.
  double share(std::size_t j) const {
    return too_low(j) ? (1.0 - least) * positive[j] / (positive[j] - smooth[j]) : 1.0;
  }
  double share_slope(std::size_t j, std::size_t p) const {
    if (!too_low(j)) return 0.0;
    const double gap = positive[j] - smooth[j];
    return (1.0 - least) *
           (positive_slopes[p][j] * gap -
            positive[j] * (positive_slopes[p][j] - smooth_slopes[p][j])) /
           (gap * gap);
  }
  double value(std::size_t j, double share) const {
    return share * smooth[j] + (1.0 - share) * positive[j];
  }
  double slope(std::size_t j, std::size_t p, double share, double share_slope) const {
    return share * smooth_slopes[p][j] + (1.0 - share) * positive_slopes[p][j] +
           share_slope * (smooth[j] - positive[j]);
  }
};

std::vector<double> logarithms(std::vector<double> values) {
  for (double& value : values) value = std::log(value);
  return values;
}

std::vector<double> points_of(const ScoreGrid& grid) {
  std::vector<double> points(grid.size());
  for (std::size_t j = 0; j < points.size(); ++j) points[j] = grid.logit(j);
  return points;
}

// As given, before they were normalised: a ratio that nodes have in common is that of these.
Matrix tabulate(const std::vector<ScoreDensity>& densities, const ScoreGrid& grid) {
  Matrix values(densities.size(), grid.size());
  for (std::size_t k = 0; k < densities.size(); ++k) {
    for (std::size_t j = 0; j < grid.size(); ++j) {
      values(k, j) = std::exp(densities[k].log_density(grid.logit(j)) - densities[k].log_norm());
    }
  }
  return values;
}

// Both sides on one grid: one table of the log-ratio does.
class VerticalRatio : public MorphedRatio {
 public:
  double log_ratio(double logit) const override {
    return look_up(table, grid.position(logit)).value;
  }
  double derivatives(double logit, double& by_logit, std::span<double> by_point) const override {
    const double position = grid.position(logit);
    const TableValue here = look_up(table, position);
    by_logit = here.slope * grid.density(logit);
    for (std::size_t p = 0; p < by_point.size(); ++p) {
      by_point[p] = look_up(slopes[p], position).value;
    }
    return here.value;
  }
  std::vector<double> log_densities(std::span<const double> logits, bool side) const override {
    const ScoreDensity density(grid, logarithms(side ? numerator : denominator));
    std::vector<double> result;
    for (const double z : logits) result.push_back(density.log_density(z));
    return result;
  }

  ScoreGrid grid;
  std::vector<double> table, numerator, denominator;
  std::vector<std::vector<double>> slopes;  // of the table, for each parameter
};

class VerticalMorph : public Morph {
 public:
  explicit VerticalMorph(const MorphNodes& nodes)
      : grid_(nodes.grid),
        numerator_(tabulate(nodes.numerator, grid_)),
        denominator_(tabulate(nodes.denominator, grid_)),
        remainders_(nodes.numerator.size(), grid_.size()) {
    for (std::size_t k = 0; k < remainders_.rows(); ++k) {
      const auto targets = nodes.log_ratios(k, points_of(grid_));
      for (std::size_t j = 0; j < grid_.size(); ++j) {
        remainders_(k, j) = targets[j] - std::log(numerator_(k, j) / denominator_(k, j));
      }
    }
  }

  std::unique_ptr<MorphedRatio> at(const NodeWeights& weights) const override {
    auto result = std::make_unique<VerticalRatio>();
    const Mixture above(numerator_, weights, least_vertical_share);
    const Mixture below(denominator_, weights, least_vertical_share);
    const std::size_t points = grid_.size();
    result->grid = grid_;
    result->numerator.resize(points);
    result->denominator.resize(points);
    result->table = weighted_sum(remainders_, weights.nodes, weights.smooth);
    for (std::size_t p = 0; p < above.parameters(); ++p) {
      result->slopes.push_back(
          weighted_sum(remainders_, weights.nodes, weights.smooth_slopes.column(p)));
    }
    for (std::size_t j = 0; j < points; ++j) {
      const double share0 = above.share(j), share1 = below.share(j);
      const double share = std::min(share0, share1);
      const double f0 = above.value(j, share), f1 = below.value(j, share);
      result->numerator[j] = f0;
      result->denominator[j] = f1;
      result->table[j] += std::log(f0 / f1);
      for (std::size_t p = 0; p < above.parameters(); ++p) {
        const double change = share0 <= share1 ? above.share_slope(j, p) : below.share_slope(j, p);
        result->slopes[p][j] +=
            above.slope(j, p, share, change) / f0 - below.slope(j, p, share, change) / f1;
      }
    }
    return result;
  }

 private:
  ScoreGrid grid_;
  Matrix numerator_, denominator_;  // densities, nodes × points
  Matrix remainders_;
};

// One side's density by itself.
class MorphedDensity {
 public:
  virtual ~MorphedDensity() = default;
  virtual double log_density(double logit) const = 0;
  virtual double derivatives(double logit, double& by_logit, std::span<double> by_point) const = 0;
};

class MorphedSide {
 public:
  virtual ~MorphedSide() = default;
  virtual std::unique_ptr<MorphedDensity> at(const NodeWeights& weights) const = 0;
};

// The ratio of densities that were morphed each by itself, and the remainder.
class SeparateRatio : public MorphedRatio {
 public:
  double log_ratio(double logit) const override {
    return numerator->log_density(logit) - denominator->log_density(logit) +
           look_up(remainder, grid.position(logit)).value;
  }
  double derivatives(double logit, double& by_logit, std::span<double> by_point) const override {
    std::vector<double> below_by_point(by_point.size());
    double below_by_logit = 0.0;
    const double above = numerator->derivatives(logit, by_logit, by_point);
    const double below = denominator->derivatives(logit, below_by_logit, below_by_point);
    const double position = grid.position(logit);
    const TableValue rest = look_up(remainder, position);
    by_logit += rest.slope * grid.density(logit) - below_by_logit;
    for (std::size_t p = 0; p < by_point.size(); ++p) {
      by_point[p] += look_up(remainder_slopes[p], position).value - below_by_point[p];
    }
    return above - below + rest.value;
  }
  std::vector<double> log_densities(std::span<const double> logits, bool side) const override {
    std::vector<double> result;
    for (const double z : logits) {
      result.push_back((side ? numerator : denominator)->log_density(z));
    }
    return result;
  }

  std::unique_ptr<MorphedDensity> numerator, denominator;
  ScoreGrid grid;
  std::vector<double> remainder;
  std::vector<std::vector<double>> remainder_slopes;  // for each parameter
};

class SeparateMorph : public Morph {
 public:
  SeparateMorph(const MorphNodes& nodes, std::unique_ptr<MorphedSide> numerator,
                std::unique_ptr<MorphedSide> denominator)
      : numerator_(std::move(numerator)),
        denominator_(std::move(denominator)),
        grid_(nodes.grid),
        remainders_(nodes.numerator.size(), grid_.size()) {
    parallel_tasks(remainders_.rows(), [&](std::size_t k) {
      const NodeWeights own{{k}, {1.0}, {1.0}, {}, {}};
      const auto above = numerator_->at(own), below = denominator_->at(own);
      std::vector<double> logits = points_of(grid_);
      for (double& z : logits) z = std::clamp(z, nodes.ranges(k, 0), nodes.ranges(k, 1));
      const auto targets = nodes.log_ratios(k, logits);
      for (std::size_t j = 0; j < grid_.size(); ++j) {
        remainders_(k, j) =
            targets[j] - (above->log_density(logits[j]) - below->log_density(logits[j]));
      }
    });
  }

  std::unique_ptr<MorphedRatio> at(const NodeWeights& weights) const override {
    auto result = std::make_unique<SeparateRatio>();
    result->numerator = numerator_->at(weights);
    result->denominator = denominator_->at(weights);
    result->grid = grid_;
    result->remainder = weighted_sum(remainders_, weights.nodes, weights.smooth);
    for (std::size_t p = 0; p < weights.smooth_slopes.cols(); ++p) {
      result->remainder_slopes.push_back(
          weighted_sum(remainders_, weights.nodes, weights.smooth_slopes.column(p)));
    }
    return result;
  }

 private:
  std::unique_ptr<MorphedSide> numerator_, denominator_;
  ScoreGrid grid_;
  Matrix remainders_;
};

class TemplateDensity : public MorphedDensity {
 public:
  double log_density(double logit) const override {
    const double y = (logit - mean) / width;
    return look_up(log_values, grid.position(y)).value - log_width;
  }

  double derivatives(double logit, double& by_logit, std::span<double> by_point) const override {
    const double y = (logit - mean) / width, position = grid.position(y);
    const TableValue here = look_up(log_values, position);
    const double by_y = here.slope * grid.density(y);
    by_logit = by_y / width;
    for (std::size_t p = 0; p < by_point.size(); ++p) {
      const double y_slope = -(mean_slopes[p] + y * width_slopes[p]) / width;
      by_point[p] =
          look_up(value_slopes[p], position).value + by_y * y_slope - width_slopes[p] / width;
    }
    return here.value - log_width;
  }

  ScoreGrid grid;
  std::vector<double> log_values;
  double mean = 0.0, width = 1.0, log_width = 0.0;
  std::vector<std::vector<double>> value_slopes;  // of log_values, for each parameter
  std::vector<double> mean_slopes, width_slopes;
};

class TemplateSide : public MorphedSide {
 public:
  TemplateSide(const std::vector<ScoreDensity>& densities, const std::vector<Moments>& moments,
               double low, double high)
      : grid_(template_grid(moments, low, high)),
        values_(densities.size(), template_points),
        moments_(densities.size(), 2) {
    for (std::size_t k = 0; k < densities.size(); ++k) {
      const auto [mean, width] = moments[k];
      moments_(k, 0) = mean;
      moments_(k, 1) = width;
      for (std::size_t j = 0; j < template_points; ++j) {
        values_(k, j) = width * std::exp(densities[k].log_density(mean + width * grid_.logit(j)));
      }
    }
  }

  std::unique_ptr<MorphedDensity> at(const NodeWeights& weights) const override {
    auto result = std::make_unique<TemplateDensity>();
    const Mixture moments(moments_, weights), values(values_, weights);
    const double width_share = moments.share(1);
    result->grid = grid_;
    result->mean = moments.smooth[0];
    result->width = moments.value(1, width_share);
    result->log_width = std::log(result->width);
    result->log_values.resize(template_points);
    for (std::size_t j = 0; j < template_points; ++j) {
      result->log_values[j] = std::log(values.value(j, values.share(j)));
    }
    for (std::size_t p = 0; p < moments.parameters(); ++p) {
      result->mean_slopes.push_back(moments.smooth_slopes[p][0]);
      result->width_slopes.push_back(moments.slope(1, p, width_share, moments.share_slope(1, p)));
      std::vector<double> slopes(template_points);
      for (std::size_t j = 0; j < template_points; ++j) {
        const double share = values.share(j);
        slopes[j] = values.slope(j, p, share, values.share_slope(j, p)) / values.value(j, share);
      }
      result->value_slopes.push_back(std::move(slopes));
    }
    return result;
  }

 private:
  // Where y may lie for z between low and high.
  static ScoreGrid template_grid(const std::vector<Moments>& moments, double low, double high) {
    double least = 0.0, largest = 0.0;
    for (const auto& [mean, width] : moments) {
      least = std::min(least, (low - mean) / width);
      largest = std::max(largest, (high - mean) / width);
    }
    return ScoreGrid::over(least, largest, 0.0, 1.0, template_margin, template_points);
  }

  ScoreGrid grid_;  // in y
  Matrix values_;   // densities in y, nodes × points
  Matrix moments_;  // mean and width, nodes × 2
};

// z(v) between the points of a table: cubics that rise. Straight beyond.
class QuantileDensity : public MorphedDensity {
 public:
  double log_density(double logit) const override {
    const Place place = find(logit);
    return log_normal_density(place.v) - std::log(place.by_v);
  }

  double derivatives(double logit, double& by_logit, std::span<double> by_point) const override {
    const Place place = find(logit);
    const double twist = place.v + place.by_v_twice / place.by_v;
    by_logit = -twist / place.by_v;
    for (std::size_t p = 0; p < by_point.size(); ++p) {
      const Piece change = piece(z_slopes[p], slope_slopes[p], place.cell);
      const double v_slope = -change.value(place.s) / place.by_v;
      by_point[p] = -twist * v_slope - change.first(place.s) / quantile_step / place.by_v;
    }
    return log_normal_density(place.v) - std::log(place.by_v);
  }

  std::vector<double> z, slopes;                            // at the points, slopes per v
  std::vector<std::vector<double>> z_slopes, slope_slopes;  // by θ, for each parameter

 private:
  // Powers of s in [0, 1] on one cell.
  struct Piece {
    double c0, c1, c2, c3;
    double value(double s) const { return c0 + s * (c1 + s * (c2 + s * c3)); }
    double first(double s) const { return c1 + s * (2.0 * c2 + s * 3.0 * c3); }
    double second(double s) const { return 2.0 * c2 + 6.0 * s * c3; }
  };
  struct Place {
    std::size_t cell;
    double s, v, by_v, by_v_twice;  // s outside [0, 1] beyond the table
  };

  static Piece piece(const std::vector<double>& values, const std::vector<double>& by_v,
                     std::size_t cell) {
    const double rise = values[cell + 1] - values[cell];
    const double a = quantile_step * by_v[cell], b = quantile_step * by_v[cell + 1];
    return {values[cell], a, 3.0 * rise - 2.0 * a - b, a + b - 2.0 * rise};
  }

  Place find(double logit) const {
    // The last cell whose first point is not above the logit.
    std::size_t cell = 0;
    for (std::size_t length = z.size() - 1; length > 1;) {
      const std::size_t part = length / 2;
      cell = z[cell + part] <= logit ? cell + part : cell;
      length -= part;
    }
    const Piece cubic = piece(z, slopes, cell);
    const double rise = z[cell + 1] - z[cell], target = logit - z[cell];
    double s = target / rise;
    if (s < 0.0 || s > 1.0) {
      const double end = s < 0.0 ? 0.0 : 1.0, slope = cubic.first(end);
      s = end + (logit - (z[cell] + end * rise)) / slope;
      return {cell, s, v_at(cell, s), slope / quantile_step, 0.0};
    }
    // Newton's method from the secant's solution, which the ends of the cell bound.
    for (int step = 0; step < 8; ++step) {
      const double miss = cubic.value(s) - logit;
      const double next = std::clamp(s - miss / cubic.first(s), 0.0, 1.0);
      const double change = std::abs(next - s);
      s = next;
      if (change < 1e-5) break;  // quadratic: the next would be 1e-10
    }
    return {cell, s, v_at(cell, s), cubic.first(s) / quantile_step,
            cubic.second(s) / (quantile_step * quantile_step)};
  }

  static double v_at(std::size_t cell, double s) {
    return -largest_quantile + quantile_step * (static_cast<double>(cell) + s);
  }
};

// Quantile functions as rises from point to point, which are kept positive one by one, from a
// middle.
class QuantileSide : public MorphedSide {
 public:
  explicit QuantileSide(const std::vector<ScoreDensity>& densities)
      : middles_(densities.size(), 1),
        rises_(densities.size(), quantile_points - 1),
        slopes_(densities.size(), quantile_points) {
    std::vector<double> v(quantile_points);
    for (std::size_t j = 0; j < v.size(); ++j) {
      v[j] = -largest_quantile + quantile_step * static_cast<double>(j);
    }
    parallel_tasks(densities.size(), [&](std::size_t k) {
      std::vector<double> z(quantile_points);
      densities[k].quantiles(v, z, slopes_.row(k));
      middles_(k, 0) = z[middle];
      const double least = 1e-12 * (1.0 + std::abs(z.front()) + std::abs(z.back()));
      for (std::size_t j = 0; j + 1 < quantile_points; ++j) {
        rises_(k, j) = std::max(z[j + 1] - z[j], least);
      }
      bound_slopes(rises_.row(k), slopes_.row(k));
    });
  }

  std::unique_ptr<MorphedDensity> at(const NodeWeights& weights) const override {
    auto result = std::make_unique<QuantileDensity>();
    const Mixture middles(middles_, weights), rises(rises_, weights), slopes(slopes_, weights);
    std::vector<double> rise(quantile_points - 1);
    for (std::size_t j = 0; j < rise.size(); ++j) rise[j] = rises.value(j, rises.share(j));
    result->z = add_up(middles.smooth[0], rise);
    result->slopes.resize(quantile_points);
    for (std::size_t j = 0; j < quantile_points; ++j) {
      result->slopes[j] = slopes.value(j, slopes.share(j));
    }
    bound_slopes(rise, result->slopes);
    for (std::size_t p = 0; p < rises.parameters(); ++p) {
      for (std::size_t j = 0; j < rise.size(); ++j) {
        rise[j] = rises.slope(j, p, rises.share(j), rises.share_slope(j, p));
      }
      result->z_slopes.push_back(add_up(middles.smooth_slopes[p][0], rise));
      std::vector<double> by_point(quantile_points);
      for (std::size_t j = 0; j < quantile_points; ++j) {
        by_point[j] = slopes.slope(j, p, slopes.share(j), slopes.share_slope(j, p));
      }
      result->slope_slopes.push_back(std::move(by_point));
    }
    return result;
  }

 private:
  static constexpr std::size_t middle = quantile_points / 2;

  // Outwards from the middle, where the probability is.
  static std::vector<double> add_up(double at_middle, const std::vector<double>& rise) {
    std::vector<double> z(quantile_points);
    z[middle] = at_middle;
    for (std::size_t j = middle; j + 1 < quantile_points; ++j) z[j + 1] = z[j] + rise[j];
    for (std::size_t j = middle; j > 0; --j) z[j - 1] = z[j] - rise[j - 1];
    return z;
  }

  // So that every cubic piece rises.
  static void bound_slopes(std::span<const double> rises, std::span<double> slopes) {
    for (std::size_t j = 0; j < slopes.size(); ++j) {
      const double left = rises[j > 0 ? j - 1 : 0];
      const double right = rises[std::min(j, rises.size() - 1)];
      const double flat = std::min(left, right) / quantile_step;
      const double steep = std::max(left, right) / quantile_step;
      slopes[j] = std::clamp(slopes[j], std::min(least_slope * steep, flat), largest_slope * flat);
    }
  }

  Matrix middles_;         // the medians, nodes × 1
  Matrix rises_, slopes_;  // nodes × points
};

// The ends of the grid that all nodes share.
std::pair<double, double> ends(const ScoreGrid& grid) {
  return {grid.logit(0), grid.logit(grid.size() - 1)};
}

}  // namespace

std::unique_ptr<Morph> make_vertical_morph(const MorphNodes& nodes) {
  return std::make_unique<VerticalMorph>(nodes);
}

std::unique_ptr<Morph> make_horizontal_morph(const MorphNodes& nodes) {
  return std::make_unique<SeparateMorph>(nodes, std::make_unique<QuantileSide>(nodes.numerator),
                                         std::make_unique<QuantileSide>(nodes.denominator));
}

std::unique_ptr<Morph> make_moment_morph(const MorphNodes& nodes) {
  const auto [low, high] = ends(nodes.grid);
  return std::make_unique<SeparateMorph>(
      nodes, std::make_unique<TemplateSide>(nodes.numerator, nodes.numerator_moments, low, high),
      std::make_unique<TemplateSide>(nodes.denominator, nodes.denominator_moments, low, high));
}

}  // namespace neyman::calibration
