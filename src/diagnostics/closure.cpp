#include "neyman/diagnostics/closure.hpp"

#include <fmt/format.h>

#include <Eigen/Dense>
#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>

#include "diagnostics/tails.hpp"
#include "diagnostics/weighted_events.hpp"
#include "neyman/core/check.hpp"
#include "neyman/core/parallel.hpp"

namespace neyman {

namespace {

using Eigen::Index;

constexpr double least_effective = 20.0;  // events of a bin, on each side

/// A histogram of shares: Σ w in a bin over Σ w, with sums of squares.
struct Shares {
  std::vector<double> share, squares;  // Σ w / W, Σ w² / W²

  void merge(std::size_t into, std::size_t from) {
    share[into] += share[from];
    squares[into] += squares[from];
    share.erase(share.begin() + static_cast<std::ptrdiff_t>(from));
    squares.erase(squares.begin() + static_cast<std::ptrdiff_t>(from));
  }
  double effective(std::size_t bin) const {
    return squares[bin] > 0.0 ? share[bin] * share[bin] / squares[bin] : 0.0;
  }
};

Shares fill(MatrixView x, std::size_t column, std::span<const double> weights,
            const std::vector<double>& upper) {
  Shares out{std::vector<double>(upper.size()), std::vector<double>(upper.size())};
  double total = 0.0;
  for (std::size_t i = 0; i < x.rows(); ++i) {
    const auto bin = static_cast<std::size_t>(
        std::lower_bound(upper.begin(), upper.end(), x(i, column)) - upper.begin());
    out.share[bin] += weights[i];
    out.squares[bin] += weights[i] * weights[i];
    total += weights[i];
  }
  for (std::size_t b = 0; b < upper.size(); ++b) {
    out.share[b] /= total;
    out.squares[b] /= total * total;
  }
  return out;
}

/// Upper edges of bins with equal shares of the numerator; the last is infinite. Equal values
/// share a bin.
std::vector<double> quantile_edges(MatrixView x, std::size_t column,
                                   std::span<const double> weights, std::size_t bins) {
  std::vector<std::pair<double, double>> sorted;
  double total = 0.0;
  for (std::size_t i = 0; i < x.rows(); ++i) {
    sorted.emplace_back(x(i, column), weights[i]);
    total += weights[i];
  }
  std::sort(sorted.begin(), sorted.end());
  std::vector<double> upper;
  double sum = 0.0;
  for (std::size_t i = 0; i + 1 < sorted.size(); ++i) {
    sum += sorted[i].second;
    const double next = total * static_cast<double>(upper.size() + 1) / static_cast<double>(bins);
    if (upper.size() + 1 < bins && sum >= next && sorted[i + 1].first > sorted[i].first)
      upper.push_back(sorted[i].first);
  }
  upper.push_back(std::numeric_limits<double>::infinity());
  return upper;
}

/// Covariance of shares whose weights are random: Σ w² (1_b − p_b)(1_c − p_c) / W².
Eigen::MatrixXd covariance_of(const Shares& shares) {
  const auto bins = static_cast<Index>(shares.share.size());
  const Eigen::Map<const Eigen::VectorXd> p(shares.share.data(), bins);
  const Eigen::Map<const Eigen::VectorXd> q(shares.squares.data(), bins);
  Eigen::MatrixXd out = q.sum() * p * p.transpose() - q * p.transpose() - p * q.transpose();
  out.diagonal() += q;
  return out;
}

struct FeatureClosure {
  QuadraticForm test;
  Diagnostic::Panel panel;
};

FeatureClosure close_feature(const RatioEvents& events, const EventWeights& weights,
                             std::size_t column, const std::string& name,
                             const ClosureConfig& config) {
  const double effective =
      std::min(effective_size(weights.numerator), effective_size(weights.denominator));
  const auto bins = std::clamp<std::size_t>(
      static_cast<std::size_t>(effective / (2.0 * least_effective)), 1, config.bins);
  auto upper = quantile_edges(events.numerator, column, weights.numerator, bins);
  auto expected = fill(events.numerator, column, weights.numerator, upper);
  auto found = fill(events.denominator, column, weights.denominator, upper);
  // Bins with few effective events join the neighbour that has fewer.
  for (std::size_t b = 0; upper.size() > 1 && b < upper.size();) {
    if (std::min(expected.effective(b), found.effective(b)) >= least_effective) {
      ++b;
      continue;
    }
    const bool left =
        b + 1 == upper.size() || (b > 0 && found.effective(b - 1) < found.effective(b + 1));
    const std::size_t into = left ? b - 1 : b;
    expected.merge(into, into + 1);
    found.merge(into, into + 1);
    upper.erase(upper.begin() + static_cast<std::ptrdiff_t>(into));
    b = into;
  }

  FeatureClosure out;
  const auto count = static_cast<Index>(upper.size());
  const Eigen::Map<const Eigen::VectorXd> p0(expected.share.data(), count);
  const Eigen::Map<const Eigen::VectorXd> p1(found.share.data(), count);
  Eigen::MatrixXd covariance = covariance_of(expected) + covariance_of(found);
  if (count > 1) {
    // The shares have sum one: the last bin says nothing new.
    const Eigen::MatrixXd allowed = (config.tolerance * p0).array().square().matrix().asDiagonal();
    covariance += allowed;
    out.test = test_deviations((p1 - p0).head(count - 1),
                               covariance.topLeftCorner(count - 1, count - 1), effective);
  }

  double low = std::numeric_limits<double>::infinity(), high = -low;
  for (const MatrixView x : {events.numerator, events.denominator})
    for (std::size_t i = 0; i < x.rows(); ++i) {
      low = std::min(low, x(i, column));
      high = std::max(high, x(i, column));
    }
  Diagnostic::Series of_numerator{"numerator", Diagnostic::Series::Style::steps, {}, {}, {}, {}};
  Diagnostic::Series reweighted{
      "reweighted denominator", Diagnostic::Series::Style::points, {}, {}, {}, {}};
  double from = low;
  for (std::size_t b = 0; b < upper.size(); ++b) {
    const double to = b + 1 == upper.size() ? high : upper[b];
    const double width = std::max(to - from, std::numeric_limits<double>::min());
    const double error = std::sqrt(std::max(0.0, found.squares[b]));
    if (b == 0) of_numerator.x.push_back(from);
    of_numerator.x.push_back(to);
    of_numerator.y.push_back(expected.share[b] / width);
    reweighted.x.push_back(0.5 * (from + to));
    reweighted.y.push_back(found.share[b] / width);
    reweighted.low.push_back((found.share[b] - error) / width);
    reweighted.high.push_back((found.share[b] + error) / width);
    from = to;
  }
  out.panel = {name, name, "density", {std::move(of_numerator), std::move(reweighted)}};
  return out;
}

}  // namespace

Diagnostic diagnose_closure(const RatioEvents& events, const ClosureConfig& config) {
  const char* function = "diagnose_closure";
  check_at_least(function, "bins", config.bins, 2);
  check_in_range(function, "tolerance", config.tolerance, 0.0, 1.0);
  check_at_least(function, "numerator", events.numerator.rows(), 1);
  check_at_least(function, "denominator", events.denominator.rows(), 1);
  check_same_size(function, "denominator", events.denominator.cols(), events.numerator.cols(),
                  "features, as the numerator");
  const auto weights = event_weights(function, events, events.denominator_log_ratios);
  const std::size_t features = events.numerator.cols();
  const auto names = feature_names_of(events);
  std::vector<FeatureClosure> closures(features);
  parallel_tasks(features, [&](std::size_t f) {
    closures[f] = close_feature(events, weights, f, names[f], config);
  });

  Diagnostic out;
  out.name = "closure";
  out.explanation =
      "Each feature's histogram of the denominator, weighted by r̂, must be that of the numerator; "
      "the statistic is the largest χ² per degree of freedom, the p-value is corrected for the "
      "number of features.";
  out.tolerance = config.tolerance;
  double smallest = 1.0;
  double tests = 0.0;
  for (std::size_t f = 0; f < features; ++f) {
    const auto& test = closures[f].test;
    out.numbers.emplace_back("p_value:" + names[f], test.p_value);
    out.panels.push_back(std::move(closures[f].panel));
    if (test.degrees == 0.0) continue;
    tests += 1.0;
    smallest = std::min(smallest, test.p_value);
    out.statistic = std::max(out.statistic, test.value / test.degrees);
  }
  if (tests > 0.0) {
    out.p_value = -std::expm1(tests * std::log1p(-std::min(smallest, 1.0 - 1e-16)));
    out.verdict = verdict_of(*out.p_value);
  } else {
    out.note = "Too few effective events, or only constant features: nothing can be compared.";
    out.verdict = Diagnostic::Verdict::no_power;
  }
  const double effective = effective_size(weights.denominator);
  if (tests > 0.0 && effective < config.least_effective) {
    out.note = fmt::format(
        "Only {:.1f} effective events remain after reweighting: this check sees little.",
        effective);
    out.verdict = Diagnostic::Verdict::no_power;
  }
  return out;
}

}  // namespace neyman
