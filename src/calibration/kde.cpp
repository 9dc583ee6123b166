#include "neyman/calibration/kde.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numbers>
#include <optional>
#include <string>
#include <utility>

#include "calibration/counts.hpp"
#include "calibration/line.hpp"
#include "calibration/lookup.hpp"
#include "calibration/scores.hpp"
#include "neyman/core/check.hpp"
#include "neyman/core/error.hpp"
#include "neyman/core/parallel.hpp"

namespace neyman {

using namespace calibration;

namespace {

constexpr std::size_t grid_points = 1024;
constexpr double kernel_reach = 5.0;    // in bandwidths
constexpr double smallest_width = 1.0;  // in steps of the grid
// Bandwidths to choose from, relative to Silverman's. Much smaller ones would see the prior only
// when an event is left out, and the event only when it is not.
constexpr double smallest_candidate = 0.5, candidate_ratio = 1.25;
constexpr std::size_t candidates = 11;

const std::vector<std::string> bandwidth_names = {"silverman", "likelihood"};

double to_t(double logit, double centre, double scale) {
  return std::asinh((logit - centre) / scale);
}

double from_t(double t, double centre, double scale) { return centre + scale * std::sinh(t); }

// How far a score is from one node to the next; nodes of scores that are all alike may coincide.
double share_between(const std::vector<double>& nodes, std::size_t left, double logit) {
  const double width = nodes[left + 1] - nodes[left];
  return width > 0.0 ? std::clamp((logit - nodes[left]) / width, 0.0, 1.0) : 0.0;
}

// Each event shared between its two neighbours on the grid. Between them t is as good as straight
// in the score. Scores come in increasing order.
class LinearBins {
 public:
  explicit LinearBins(const std::vector<double>& nodes)
      : nodes_(nodes), counts_(grid_points, 0.0) {}

  void add(double logit, double weight) {
    while (left_ + 2 < grid_points && nodes_[left_ + 1] <= logit) ++left_;
    const double right_share = share_between(nodes_, left_, logit);
    counts_[left_] += weight * (1.0 - right_share);
    counts_[left_ + 1] += weight * right_share;
  }

  std::vector<double> release() { return std::move(counts_); }

 private:
  const std::vector<double>& nodes_;
  std::vector<double> counts_;
  std::size_t left_ = 0;
};

std::vector<double> bin_linearly(const SortedSide& side, const std::vector<double>& nodes) {
  LinearBins bins(nodes);
  for (std::size_t i = 0; i < side.size(); ++i) bins.add(side.scores[i], side.weight(i));
  return bins.release();
}

// Of one side's fine counts.
std::vector<double> bin_linearly(const FineCounts& counts, const std::vector<double>& side,
                                 const std::vector<double>& nodes) {
  LinearBins bins(nodes);
  for (std::size_t i = 0; i < counts.size(); ++i)
    if (side[i] > 0.0) bins.add(counts.middle(i), side[i]);
  return bins.release();
}

// Weights of a Gaussian kernel at 0, 1, 2 … steps, relative to the one at 0.
std::vector<double> kernel(double width_in_steps) {
  const auto reach = static_cast<std::size_t>(
      std::min(std::ceil(kernel_reach * width_in_steps), static_cast<double>(grid_points - 1)));
  std::vector<double> weights(reach + 1);
  for (std::size_t k = 0; k <= reach; ++k) {
    const double x = static_cast<double>(k) / width_in_steps;
    weights[k] = std::exp(-0.5 * x * x);
  }
  return weights;
}

// Σ_j counts_j K(i − j) / K(0), reflected at both ends.
std::vector<double> smooth(const std::vector<double>& counts, const std::vector<double>& weights) {
  const std::size_t n = counts.size(), reach = weights.size() - 1;
  std::vector<double> padded(n + 2 * reach);
  for (std::size_t i = 0; i < padded.size(); ++i) {
    const auto from = static_cast<std::ptrdiff_t>(i) - static_cast<std::ptrdiff_t>(reach);
    const auto last = static_cast<std::ptrdiff_t>(n) - 1;
    const auto mirrored = from < 0 ? -from : from > last ? 2 * last - from : from;
    const bool own_image = mirrored == 0 || mirrored == last;
    padded[i] = (own_image ? 2.0 : 1.0) * counts[static_cast<std::size_t>(mirrored)];
  }
  std::vector<double> result(n);
  for (std::size_t i = 0; i < n; ++i) result[i] = weights[0] * padded[i + reach];
  for (std::size_t k = 1; k <= reach; ++k) {
    const double* left = padded.data() + (reach - k);
    const double* right = padded.data() + (reach + k);
    for (std::size_t i = 0; i < n; ++i) result[i] += weights[k] * (left[i] + right[i]);
  }
  return result;
}

struct Grid {
  std::vector<double> numerator, denominator;
  double numerator_total, denominator_total;
  std::vector<double> logits;
};

// What a smoothing says about each grid point: the effective counts √2 Σ w K/K(0) are what a
// boxcar of the same variance would count.
std::vector<Estimate> estimate(const Grid& grid, const Line& line, double width_in_steps) {
  const auto weights = kernel(width_in_steps);
  const auto n0 = smooth(grid.numerator, weights), n1 = smooth(grid.denominator, weights);
  std::vector<Estimate> result(grid_points);
  for (std::size_t i = 0; i < grid_points; ++i) {
    result[i] =
        estimate_from_counts(std::numbers::sqrt2 * n0[i], std::numbers::sqrt2 * n1[i],
                             grid.numerator_total, grid.denominator_total, line, grid.logits[i]);
  }
  return result;
}

// Log-likelihood of the sides where each event's own kernel is left out.
double leave_one_out(const Grid& grid, const Line& line, double width_in_steps) {
  const auto weights = kernel(width_in_steps);
  const auto n0 = smooth(grid.numerator, weights), n1 = smooth(grid.denominator, weights);
  const double odds = std::log(grid.denominator_total / grid.numerator_total);
  const auto log_ratio = [&](double a, double b, std::size_t i) {
    return estimate_from_counts(std::numbers::sqrt2 * std::max(a, 0.0),
                                std::numbers::sqrt2 * std::max(b, 0.0), grid.numerator_total,
                                grid.denominator_total, line, grid.logits[i])
        .log_ratio;
  };
  double sum = 0.0;
  for (std::size_t i = 0; i < grid_points; ++i) {
    const double c0 = grid.numerator[i], c1 = grid.denominator[i];
    if (c0 > 0.0) {
      sum += side_log_likelihood(c0, 0.0, log_ratio(n0[i] - std::min(c0, 1.0), n1[i], i), odds);
    }
    if (c1 > 0.0) {
      sum += side_log_likelihood(0.0, c1, log_ratio(n0[i], n1[i] - std::min(c1, 1.0), i), odds);
    }
  }
  return sum;
}

// Silverman's rule of one side, in steps of the grid.
double silverman(const std::vector<double>& counts, double total) {
  double mean = 0.0, square = 0.0, below = 0.0, quarter = 0.0, three_quarters = 0.0;
  for (std::size_t i = 0; i < counts.size(); ++i) {
    const double at = static_cast<double>(i);
    mean += counts[i] * at / total;
    square += counts[i] * at * at / total;
    if (below < 0.25 * total) quarter = at;
    if (below < 0.75 * total) three_quarters = at;
    below += counts[i];
  }
  const double sd = std::sqrt(std::max(square - mean * mean, 0.0));
  const double iqr = (three_quarters - quarter) / 1.34;
  return 0.9 * (iqr > 0.0 ? std::min(sd, iqr) : sd) * std::pow(std::max(total, 1.0), -0.2);
}

double choose_by_likelihood(const Grid& grid, const Line& line, double rule) {
  std::vector<double> widths(candidates), values(candidates);
  parallel_tasks(candidates, [&](std::size_t i) {
    const double factor = smallest_candidate * std::pow(candidate_ratio, static_cast<double>(i));
    widths[i] = std::max(rule * factor, smallest_width);
    values[i] = leave_one_out(grid, line, widths[i]);
  });
  const auto best = std::max_element(values.begin(), values.end()) - values.begin();
  return widths[static_cast<std::size_t>(best)];
}

}  // namespace

KdeCalibrator::Config KdeCalibrator::Config::from(Settings& settings) {
  Config config;
  const std::string name = settings.choice({"bandwidth", "rule for the width of the kernels"},
                                           bandwidth_names[0], bandwidth_names);
  const auto at = std::find(bandwidth_names.begin(), bandwidth_names.end(), name);
  config.bandwidth = static_cast<Bandwidth>(at - bandwidth_names.begin());
  config.adjust = settings.number({"adjust", "the bandwidth is multiplied by this"}, config.adjust,
                                  Limits::between(0.01, 100.0));
  return config;
}

KdeCalibrator::KdeCalibrator(Config config) : config_(config) {
  check_in_range("KdeCalibrator", "adjust", config_.adjust, 0.01, 100.0);
}

std::unique_ptr<Calibrator> KdeCalibrator::fresh() const {
  return std::make_unique<KdeCalibrator>(config_);
}

void KdeCalibrator::fit(const CalibrationSet& data) {
  const CheckedScores scores = check_scores(data);
  const auto fine = count_finely(scores);
  std::optional<SortedScores> sorted;
  if (!fine) sorted = sort_scores(scores);
  const Cells cells = fine ? make_cells(*fine) : make_cells(*sorted);
  const Line line = fit_line(cells);
  const Spread range = spread(cells);
  centre_ = range.centre;
  scale_ = range.scale;
  low_ = cells.low;
  high_ = cells.high;
  first_ = to_t(low_, centre_, scale_);
  const double last = to_t(high_, centre_, scale_);
  // One score only: any grid will do.
  const double length = last > first_ ? last - first_ : 1.0;
  step_ = length / static_cast<double>(grid_points - 1);
  prepare();

  Grid grid;
  grid.numerator_total = scores.numerator.total;
  grid.denominator_total = scores.denominator.total;
  parallel_tasks(2, [&](std::size_t side) {
    const bool numerator = side == numerator_side;
    auto& counts = numerator ? grid.numerator : grid.denominator;
    counts = fine ? bin_linearly(*fine, numerator ? fine->numerator : fine->denominator, nodes_)
                  : bin_linearly(numerator ? sorted->numerator : sorted->denominator, nodes_);
  });
  for (const double node : nodes_) grid.logits.push_back(std::clamp(node, low_, high_));

  double width = std::min(silverman(grid.numerator, grid.numerator_total),
                          silverman(grid.denominator, grid.denominator_total));
  if (config_.bandwidth == Bandwidth::likelihood) width = choose_by_likelihood(grid, line, width);
  width = std::clamp(width * config_.adjust, smallest_width, static_cast<double>(grid_points));
  width_ = width * step_;
  values_.clear();
  errors_.clear();
  for (const Estimate& point : estimate(grid, line, width)) {
    values_.push_back(point.log_ratio);
    errors_.push_back(point.error);
  }
}

void KdeCalibrator::prepare() {
  nodes_.resize(grid_points);
  for (std::size_t i = 0; i < grid_points; ++i)
    nodes_[i] = from_t(first_ + step_ * static_cast<double>(i), centre_, scale_);
}

void KdeCalibrator::interpolate(const std::vector<double>& table, const Logits& logits,
                                std::span<double> out) const {
  const Lookup lookup(nodes_, logits.size());
  parallel_blocks(logits.size(), default_block, [&](Block block) {
    for (std::size_t i = block.begin; i < block.end; ++i) {
      const double inside = std::clamp(logits[i], low_, high_);
      const std::size_t left =
          std::clamp<std::size_t>(lookup.count_up_to(inside), 1, grid_points - 1) - 1;
      const double share = share_between(nodes_, left, inside);
      out[i] = (1.0 - share) * table[left] + share * table[left + 1];
    }
  });
}

LogRatios KdeCalibrator::log_ratios(const Logits& logits) const {
  check_evaluation(*this, "KdeCalibrator::log_ratios", logits);
  LogRatios result(logits.size());
  interpolate(values_, logits, result.values());
  return result;
}

std::vector<double> KdeCalibrator::errors(const Logits& logits) const {
  check_evaluation(*this, "KdeCalibrator::errors", logits);
  std::vector<double> result(logits.size());
  interpolate(errors_, logits, result);
  return result;
}

void KdeCalibrator::save(Archive& archive) const {
  archive.set("bandwidth_rule", bandwidth_names[static_cast<std::size_t>(config_.bandwidth)]);
  archive.set("adjust", config_.adjust);
  archive.set("low", low_);
  archive.set("high", high_);
  archive.set("centre", centre_);
  archive.set("scale", scale_);
  archive.set("first", first_);
  archive.set("step", step_);
  archive.set("bandwidth", width_);
  archive.set("values", values_);
  archive.set("errors", errors_);
}

void KdeCalibrator::load(const Archive& archive) {
  const std::string& rule = archive.text("bandwidth_rule");
  const auto name = std::find(bandwidth_names.begin(), bandwidth_names.end(), rule);
  if (name == bandwidth_names.end()) {
    throw FileError(unknown_name(rule, "rule for bandwidths", bandwidth_names));
  }
  config_.bandwidth = static_cast<Bandwidth>(name - bandwidth_names.begin());
  config_.adjust = archive.number("adjust");
  low_ = archive.number("low");
  high_ = archive.number("high");
  centre_ = archive.number("centre");
  scale_ = archive.number("scale");
  first_ = archive.number("first");
  step_ = archive.number("step");
  width_ = archive.number("bandwidth");
  values_ = archive.numbers("values");
  errors_ = archive.numbers("errors");
  if (!values_.empty() && (values_.size() != grid_points || errors_.size() != grid_points)) {
    throw FileError("calibrator: values and errors must have 1024 entries");
  }
  prepare();
}

}  // namespace neyman
