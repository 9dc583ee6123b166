#pragma once

#include <span>
#include <vector>

#include "neyman/diagnostics/ratio_events.hpp"

namespace neyman {

/// Weights of the events of both sides, checked: `numerator` u and `denominator` w·r̂/e^log_scale.
struct EventWeights {
  std::vector<double> numerator, denominator;
  double log_scale = 0.0;  ///< the largest log r̂, taken out so that nothing overflows
};
/// @throw ArgumentError where sizes disagree, a value is not finite, or a side has no weight.
EventWeights event_weights(const char* function, const RatioEvents& events,
                           std::span<const double> log_ratios);

/// Weights of `count` events: those given, or ones.
std::vector<double> plain_weights(const char* function, const char* name,
                                  std::span<const double> weights, std::size_t count);

/// (Σw)² / Σw².
double effective_size(std::span<const double> weights);

std::vector<std::string> feature_names_of(const RatioEvents& events);

}  // namespace neyman
