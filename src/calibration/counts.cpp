#include "calibration/counts.hpp"

#include <algorithm>
#include <cmath>

namespace neyman::calibration {

namespace {

constexpr double prior_events = 2.0;
constexpr double largest_prior = 30.0;  // of the prior's log-ratio, in size

}  // namespace

Estimate estimate_from_counts(double numerator, double denominator, double numerator_total,
                              double denominator_total, const Line& line, double logit) {
  const double odds = std::log(denominator_total / numerator_total);
  const double prior = std::clamp(line.log_ratio(logit), -largest_prior, largest_prior) - odds;
  // log((n0 + k π0) / (n1 + k π1)) with both parts exact for large priors of either sign
  const double e = std::exp(-std::abs(prior));
  const double likely = prior_events / (1.0 + e), unlikely = prior_events * e / (1.0 + e);
  const double n0 = numerator + (prior >= 0.0 ? likely : unlikely);
  const double n1 = denominator + (prior >= 0.0 ? unlikely : likely);
  const double variance = 1.0 / (numerator + 0.5) + 1.0 / (denominator + 0.5) -
                          1.0 / numerator_total - 1.0 / denominator_total;
  return {std::log(n0) - std::log(n1) + odds, std::sqrt(std::max(variance, 0.0))};
}

double side_log_likelihood(double numerator, double denominator, double log_ratio,
                           double prior_odds) {
  const double eta = prior_odds - log_ratio;  // log-odds of the denominator
  return denominator * eta -
         (numerator + denominator) * (std::max(eta, 0.0) + std::log1p(std::exp(-std::abs(eta))));
}

}  // namespace neyman::calibration
