#include "neyman/diagnostics/ratio_events.hpp"

#include <algorithm>
#include <cmath>

#include "diagnostics/weighted_events.hpp"
#include "neyman/core/check.hpp"

namespace neyman {

RatioEvents ratio_events(const Samples& numerator, const Samples& denominator,
                         std::span<const double> numerator_log_ratios,
                         std::span<const double> denominator_log_ratios) {
  RatioEvents out;
  out.numerator = numerator.x;
  out.denominator = denominator.x;
  out.numerator_log_ratios = numerator_log_ratios;
  out.denominator_log_ratios = denominator_log_ratios;
  out.numerator_weights = numerator.weights;
  out.denominator_weights = denominator.weights;
  out.feature_names = numerator.feature_names;
  return out;
}

std::vector<double> plain_weights(const char* function, const char* name,
                                  std::span<const double> weights, std::size_t count) {
  check_at_least(function, "events", count, 1);
  if (weights.empty()) return std::vector<double>(count, 1.0);
  check_same_size(function, name, weights.size(), count, "one for each event");
  check_non_negative(function, name, weights);
  std::vector<double> out(weights.begin(), weights.end());
  if (std::all_of(out.begin(), out.end(), [](double w) { return w == 0.0; }))
    fail_argument(function, name, "zero for all events", "positive for some");
  return out;
}

EventWeights event_weights(const char* function, const RatioEvents& events,
                           std::span<const double> log_ratios) {
  EventWeights out;
  const std::size_t n0 =
      events.numerator.rows() > 0 ? events.numerator.rows() : events.numerator_log_ratios.size();
  // Some diagnostics look at the denominator alone.
  if (n0 > 0)
    out.numerator = plain_weights(function, "numerator_weights", events.numerator_weights, n0);
  out.denominator =
      plain_weights(function, "denominator_weights", events.denominator_weights, log_ratios.size());
  if (events.denominator.rows() > 0)
    check_same_size(function, "log_ratios", log_ratios.size(), events.denominator.rows(),
                    "one for each event of the denominator");
  check_finite(function, "log_ratios", log_ratios);
  out.log_scale = *std::max_element(log_ratios.begin(), log_ratios.end());
  for (std::size_t i = 0; i < log_ratios.size(); ++i)
    out.denominator[i] *= std::exp(log_ratios[i] - out.log_scale);
  return out;
}

double effective_size(std::span<const double> weights) {
  double sum = 0.0, squares = 0.0;
  for (const double w : weights) {
    sum += w;
    squares += w * w;
  }
  return squares > 0.0 ? sum * sum / squares : 0.0;
}

std::vector<std::string> feature_names_of(const RatioEvents& events) {
  return events.feature_names.size() == events.numerator.cols()
             ? events.feature_names
             : default_feature_names(events.numerator.cols());
}

}  // namespace neyman
