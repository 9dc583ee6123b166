#include "neyman/diagnostics/normalisation.hpp"

#include <fmt/format.h>

#include <cmath>

#include "diagnostics/tails.hpp"
#include "diagnostics/weighted_events.hpp"
#include "neyman/core/check.hpp"

namespace neyman {

Diagnostic diagnose_normalisation(const RatioEvents& events, const NormalisationConfig& config) {
  const char* function = "diagnose_normalisation";
  check_in_range(function, "tolerance", config.tolerance, 0.0, 1.0);
  const auto ratios = event_weights(function, events, events.denominator_log_ratios);
  const auto plain = plain_weights(function, "denominator_weights", events.denominator_weights,
                                   events.denominator_log_ratios.size());
  // Everything in units of e^log_scale, so that large log r̂ do not overflow.
  double total = 0.0, sum = 0.0;
  for (std::size_t i = 0; i < plain.size(); ++i) {
    total += plain[i];
    sum += ratios.denominator[i];
  }
  const double scaled_mean = sum / total;
  double square = 0.0, cube = 0.0;  // of the mean's parts w (r − mean) / Σw
  for (std::size_t i = 0; i < plain.size(); ++i) {
    const double part = (ratios.denominator[i] - plain[i] * scaled_mean) / total;
    square += part * part;
    cube += part * part * part;
  }
  const double unit = std::exp(std::min(ratios.log_scale, 700.0));
  const double mean = scaled_mean * unit;
  const double error = std::sqrt(square) * unit;
  const double skewness = square > 0.0 ? cube / (square * std::sqrt(square)) : 0.0;
  const double effective = effective_size(ratios.denominator);

  Diagnostic out;
  out.name = "normalisation";
  out.tolerance = config.tolerance;
  const double deviation = mean - 1.0;
  // What the tolerance allows is not counted.
  const double counted =
      std::copysign(std::max(0.0, std::abs(deviation) - config.tolerance), deviation);
  // Equal ratios have no error but rounding.
  const double pull = counted / std::max(error, 1e-12);
  out.statistic = counted == 0.0 ? 0.0 : without_skewness(pull, skewness);
  out.p_value = student_two_sided(out.statistic, std::max(1.0, effective - 1.0));
  out.verdict = verdict_of(*out.p_value);
  out.explanation = fmt::format(
      "The mean of r̂ over events of the denominator is {:.4f} ± {:.4f}; for a ratio of densities "
      "it "
      "is 1. The weights of these {} events are worth {:.0f} equal ones.",
      mean, error, plain.size(), effective);
  if (effective < config.least_effective) {
    out.note = fmt::format(
        "Only {:.1f} events carry the weights: the two hypotheses overlap too little here for the "
        "mean, or anything reweighted, to be trusted.",
        effective);
    out.verdict = Diagnostic::Verdict::no_power;
  }
  out.numbers = {{"mean", mean},
                 {"error", error},
                 {"effective_size", effective},
                 {"effective_share", effective / effective_size(plain)}};
  return out;
}

}  // namespace neyman
