#include "neyman/diagnostics/data_range.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "neyman/core/check.hpp"
#include "neyman/data/samples.hpp"

namespace neyman {

namespace {

/// P(K >= k) of n events outside the range of N others: K ~ beta-binomial(n; 2, N − 1).
double tail_outside(std::size_t k, std::size_t n, std::size_t simulated) {
  if (k == 0) return 1.0;
  const auto events = static_cast<double>(n), many = static_cast<double>(simulated);
  const auto log_beta = [](double a, double b) {
    return std::lgamma(a) + std::lgamma(b) - std::lgamma(a + b);
  };
  const auto log_probability = [&](double outside) {
    return std::lgamma(events + 1.0) - std::lgamma(outside + 1.0) -
           std::lgamma(events - outside + 1.0) +
           log_beta(outside + 2.0, events - outside + many - 1.0) - log_beta(2.0, many - 1.0);
  };
  // The shorter side is summed.
  double below = 0.0, above = 0.0;
  if (2 * k <= n) {
    for (std::size_t i = 0; i < k; ++i) below += std::exp(log_probability(static_cast<double>(i)));
    if (below < 0.99) return std::clamp(1.0 - below, 0.0, 1.0);
  }
  for (std::size_t i = k; i <= n; ++i) {
    const double term = std::exp(log_probability(static_cast<double>(i)));
    above += term;
    if (term < 1e-17 * above) break;
  }
  return std::clamp(above, 0.0, 1.0);
}

}  // namespace

Diagnostic diagnose_data_range(MatrixView data, MatrixView simulated,
                               const DataRangeConfig& config) {
  const char* function = "diagnose_data_range";
  check_at_least(function, "data", data.rows(), 1);
  check_at_least(function, "simulated", simulated.rows(), 2);
  check_same_size(function, "a row of simulated", simulated.cols(), data.cols(),
                  "features, as the data");
  check_in_range(function, "harmful", config.harmful, 0.0, 1.0);
  const auto names =
      config.names.size() == data.cols() ? config.names : default_feature_names(data.cols());

  Diagnostic out;
  out.name = "range";
  std::size_t worst = 0, most = 0, any = 0;
  double least = 1.0;
  std::vector<bool> event_outside(data.rows(), false);
  for (std::size_t j = 0; j < data.cols(); ++j) {
    double low = simulated(0, j), high = low;
    for (std::size_t i = 1; i < simulated.rows(); ++i) {
      low = std::min(low, simulated(i, j));
      high = std::max(high, simulated(i, j));
    }
    std::size_t outside = 0;
    for (std::size_t i = 0; i < data.rows(); ++i) {
      if (data(i, j) >= low && data(i, j) <= high) continue;
      ++outside;
      event_outside[i] = true;
    }
    const double p = tail_outside(outside, data.rows(), simulated.rows());
    if (p < least || (p == least && outside > most)) {
      worst = j;
      most = outside;
    }
    least = std::min(least, p);
    if (outside > 0) out.numbers.emplace_back("outside:" + names[j], static_cast<double>(outside));
  }
  any = static_cast<std::size_t>(std::count(event_outside.begin(), event_outside.end(), true));
  const double share = static_cast<double>(any) / static_cast<double>(data.rows());
  const auto features = static_cast<double>(data.cols());
  out.p_value =
      least < 1e-9 ? std::min(1.0, features * least) : 1.0 - std::pow(1.0 - least, features);
  out.statistic = share;
  out.worst = share < config.harmful ? Diagnostic::Verdict::warn : Diagnostic::Verdict::fail;
  out.verdict = std::min(verdict_of(*out.p_value), out.worst);
  out.explanation = fmt::format(
      "{} of {} events of the data lie outside the range of {} simulated events in some feature{}; "
      "{:.2g} of as many simulated ones would in each.",
      any, data.rows(), simulated.rows(),
      any > 0 ? fmt::format(", most surely in {} ({})", names[worst], most) : "",
      2.0 * static_cast<double>(data.rows()) / (static_cast<double>(simulated.rows()) + 1.0));
  out.numbers.emplace_back("share_outside", share);
  return out;
}

}  // namespace neyman
