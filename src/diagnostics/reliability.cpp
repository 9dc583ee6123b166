#include "neyman/diagnostics/reliability.hpp"

#include <Eigen/Dense>
#include <algorithm>
#include <cmath>
#include <numeric>

#include "diagnostics/tails.hpp"
#include "diagnostics/weighted_events.hpp"
#include "neyman/core/check.hpp"

namespace neyman {

namespace {

using Eigen::Index;

/// 1 / (1 + r), for any log r.
double score(double log_ratio) {
  return log_ratio > 0.0 ? std::exp(-log_ratio) / (1.0 + std::exp(-log_ratio))
                         : 1.0 / (1.0 + std::exp(log_ratio));
}

constexpr double least_information = 20.0;  // Σ ŝ(1 − ŝ) of a bin, in effective events

struct Side {
  std::vector<double> scores, weights;  // the weights have sum ½
  double effective = 0.0;
};

Side make_side(const char* name, std::span<const double> log_ratios,
               std::span<const double> weights) {
  Side side;
  check_finite("diagnose_reliability", name, log_ratios);
  side.weights = plain_weights("diagnose_reliability", name, weights, log_ratios.size());
  side.effective = effective_size(side.weights);
  const double total = std::accumulate(side.weights.begin(), side.weights.end(), 0.0);
  for (double& w : side.weights) w /= 2.0 * total;
  for (const double value : log_ratios) side.scores.push_back(score(value));
  return side;
}

/// Upper edges of bins of equal Σ ŝ(1 − ŝ); the last is above every score.
std::vector<double> bin_edges(const Side& numerator, const Side& denominator, std::size_t most) {
  std::vector<std::pair<double, double>> information;  // (score, what it adds)
  double total = 0.0;
  for (const Side* side : {&numerator, &denominator})
    for (std::size_t i = 0; i < side->scores.size(); ++i) {
      const double s = side->scores[i];
      information.emplace_back(s, side->weights[i] * s * (1.0 - s));
      total += information.back().second;
    }
  std::sort(information.begin(), information.end());
  const double events = 2.0 * std::min(numerator.effective, denominator.effective);
  const auto bins = std::clamp<std::size_t>(
      static_cast<std::size_t>(total * events / least_information), 1, most);
  std::vector<double> edges;
  double sum = 0.0;
  for (std::size_t i = 0; i + 1 < information.size(); ++i) {
    sum += information[i].second;
    const double next = total * static_cast<double>(edges.size() + 1) / static_cast<double>(bins);
    if (edges.size() + 1 < bins && sum >= next && information[i + 1].first > information[i].first)
      edges.push_back(0.5 * (information[i].first + information[i + 1].first));
  }
  edges.push_back(2.0);
  return edges;
}

}  // namespace

Diagnostic diagnose_reliability(const RatioEvents& events, const ReliabilityConfig& config) {
  const char* function = "diagnose_reliability";
  check_at_least(function, "bins", config.bins, 1);
  check_in_range(function, "tolerance", config.tolerance, 0.0, 1.0);
  const auto numerator =
      make_side("numerator_log_ratios", events.numerator_log_ratios, events.numerator_weights);
  const auto denominator = make_side("denominator_log_ratios", events.denominator_log_ratios,
                                     events.denominator_weights);
  const auto edges = bin_edges(numerator, denominator, config.bins);
  const auto bins = static_cast<Index>(edges.size());

  Eigen::VectorXd deviation = Eigen::VectorXd::Zero(bins), weight = deviation,
                  predicted = deviation, observed = deviation;
  Eigen::MatrixXd covariance = Eigen::MatrixXd::Zero(bins, bins);
  for (const Side* side : {&numerator, &denominator}) {
    const double label = side == &denominator ? 1.0 : 0.0;
    Eigen::VectorXd sum = Eigen::VectorXd::Zero(bins), sum_of_squares = sum, weighted_twice = sum;
    double squares = 0.0;
    for (std::size_t i = 0; i < side->scores.size(); ++i) {
      const Index bin =
          std::upper_bound(edges.begin(), edges.end(), side->scores[i]) - edges.begin();
      const double w = side->weights[i], part = w * (label - side->scores[i]);
      sum[bin] += part;
      sum_of_squares[bin] += part * part;
      weighted_twice[bin] += w * part;
      squares += w * w;
      weight[bin] += w;
      predicted[bin] += w * side->scores[i];
      observed[bin] += w * label;
    }
    deviation += sum;
    // Of Σ w (c − mean c) with fixed Σw = ½: what is sure of a sample of fixed size is taken off.
    const Eigen::VectorXd mean = 2.0 * sum;
    covariance.diagonal() += sum_of_squares;
    covariance += squares * mean * mean.transpose() - weighted_twice * mean.transpose() -
                  mean * weighted_twice.transpose();
  }
  for (Index b = 0; b < bins; ++b) covariance(b, b) += std::pow(config.tolerance * weight[b], 2);
  const auto test =
      test_deviations(deviation, covariance, std::min(numerator.effective, denominator.effective));

  Diagnostic out;
  out.name = "reliability";
  out.explanation =
      "Among events with the same calibrated score, the share that comes from the denominator must "
      "be that score; the statistic is χ² over bins of the score.";
  out.statistic = test.value;
  out.p_value = test.p_value;
  out.tolerance = config.tolerance;
  out.verdict = verdict_of(test.p_value);
  out.numbers = {{"degrees_of_freedom", test.degrees}};
  Diagnostic::Series points{"observed", Diagnostic::Series::Style::points, {}, {}, {}, {}};
  for (Index b = 0; b < bins; ++b) {
    if (!(weight[b] > 0.0)) continue;
    const double share = observed[b] / weight[b];
    const double error = std::sqrt(std::max(0.0, covariance(b, b))) / weight[b];
    points.x.push_back(predicted[b] / weight[b]);
    points.y.push_back(share);
    points.low.push_back(share - error);
    points.high.push_back(share + error);
  }
  // As long as what was observed: scores near one half should fill the frame.
  const auto [low, high] = std::minmax_element(points.x.begin(), points.x.end());
  const std::vector<double> ends = {std::max(0.0, *low - 0.01), std::min(1.0, *high + 0.01)};
  Diagnostic::Series line{"expected", Diagnostic::Series::Style::line, ends, ends, {}, {}};
  out.panels.push_back({"Reliability",
                        "calibrated score",
                        "share of the denominator",
                        {std::move(line), std::move(points)}});
  return out;
}

}  // namespace neyman
