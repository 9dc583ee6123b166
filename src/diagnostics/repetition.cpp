#include "neyman/diagnostics/repetition.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <boost/math/distributions/binomial.hpp>
#include <cmath>
#include <map>

#include "neyman/core/check.hpp"
#include "neyman/inference/statistics.hpp"

namespace neyman {

namespace {

/// Twice the smaller tail, the observed count in both.
double binomial_p_value(std::size_t inside, std::size_t datasets, double probability) {
  const auto n = static_cast<double>(datasets), k = static_cast<double>(inside);
  const boost::math::binomial distribution(n, probability);
  const double at_most = boost::math::cdf(distribution, k);
  const double at_least =
      inside == 0 ? 1.0 : boost::math::cdf(boost::math::complement(distribution, k - 1.0));
  return std::min(1.0, 2.0 * std::min(at_most, at_least));
}

/// "alpha:0.683", another for each count.
std::vector<std::string> names_of(std::span<const CoverageCount> counts) {
  std::vector<std::string> out;
  std::map<std::string, int> seen;
  for (const auto& count : counts) {
    auto name = fmt::format("{}{}{:g}", count.of, count.of.empty() ? "" : ":", count.level);
    if (const int times = ++seen[name]; times > 1) name += fmt::format("#{}", times);
    out.push_back(std::move(name));
  }
  return out;
}

}  // namespace

Diagnostic diagnose_coverage(std::span<const CoverageCount> counts,
                             const CoverageTestConfig& config) {
  const char* function = "diagnose_coverage";
  check_at_least(function, "counts", counts.size(), 1);
  check_in_range(function, "tolerance", config.tolerance, 0.0, 1.0);
  Diagnostic out;
  out.name = "coverage";
  out.explanation =
      "Of datasets simulated at a known θ, the share whose region of a level holds θ must be that "
      "level; the statistic is the largest difference.";
  out.tolerance = config.tolerance;
  Diagnostic::Series nominal{"nominal", Diagnostic::Series::Style::line, {0, 1}, {0, 1}, {}, {}};
  Diagnostic::Series observed{"observed", Diagnostic::Series::Style::points, {}, {}, {}, {}};
  double smallest = 1.0;
  const auto names = names_of(counts);
  for (std::size_t i = 0; i < counts.size(); ++i) {
    const auto& count = counts[i];
    check_in_range(function, "level", count.level, 1e-9, 1.0 - 1e-9);
    check_at_least(function, "datasets", count.datasets, 1);
    check_in_range(function, "inside", static_cast<double>(count.inside), 0.0,
                   static_cast<double>(count.datasets));
    const auto n = static_cast<double>(count.datasets);
    const double share = static_cast<double>(count.inside) / n;
    const double fitting =
        std::clamp(share, count.level - config.tolerance, count.level + config.tolerance);
    const double p =
        binomial_p_value(count.inside, count.datasets, std::clamp(fitting, 1e-12, 1.0 - 1e-12));
    smallest = std::min(smallest, p);
    if (std::abs(share - count.level) > std::abs(out.statistic))
      out.statistic = share - count.level;
    out.numbers.emplace_back("coverage:" + names[i], share);
    out.numbers.emplace_back("p_value:" + names[i], p);
    const double error = std::sqrt(count.level * (1.0 - count.level) / n);
    observed.x.push_back(count.level);
    observed.y.push_back(share);
    observed.low.push_back(share - error);
    observed.high.push_back(share + error);
  }
  out.p_value = std::min(1.0, smallest * static_cast<double>(counts.size()));
  out.verdict = verdict_of(*out.p_value);
  out.panels.push_back(
      {"Coverage", "level", "share of the datasets", {std::move(nominal), std::move(observed)}});
  return out;
}

Diagnostic diagnose_wilks(std::span<const double> statistics, double degrees) {
  const char* function = "diagnose_wilks";
  check_at_least(function, "statistics", statistics.size(), 1);
  check_non_negative(function, "statistics", statistics);
  check_positive(function, "degrees", degrees);
  const auto test = ks_test_chi2(statistics, degrees);
  Diagnostic out;
  out.name = "wilks";
  out.explanation = fmt::format(
      "Over datasets simulated at a known θ, −2 log Λ at that θ should follow χ² with {:g} "
      "degree{} of freedom; the statistic is the Kolmogorov–Smirnov distance.",
      degrees, degrees == 1.0 ? "" : "s");
  out.statistic = test.statistic;
  out.p_value = test.p_value;
  out.verdict = verdict_of(test.p_value);
  std::vector<double> sorted(statistics.begin(), statistics.end());
  std::sort(sorted.begin(), sorted.end());
  const auto n = static_cast<double>(sorted.size());
  Diagnostic::Series points{"datasets", Diagnostic::Series::Style::points, {}, {}, {}, {}};
  for (std::size_t i = 0; i < sorted.size(); ++i) {
    points.x.push_back(chi2_quantile((static_cast<double>(i) + 0.5) / n, degrees));
    points.y.push_back(sorted[i]);
  }
  const double reach = std::max(points.x.back(), points.y.back());
  Diagnostic::Series line{
      "expected", Diagnostic::Series::Style::line, {0.0, reach}, {0.0, reach}, {}, {}};
  out.panels.push_back({"Quantiles of −2 log Λ",
                        "quantile of χ²",
                        "quantile of −2 log Λ",
                        {std::move(line), std::move(points)}});
  return out;
}

}  // namespace neyman
