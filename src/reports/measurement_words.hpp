#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "neyman/measurements/measurement_summary.hpp"

// A measurement in words, shared by its figures and its report.
namespace neyman::reports {

/// The parameter of interest as people write it.
std::string interest_symbol(const MeasurementSummary& summary);
/// A text of at most so many characters: of a longer one, its beginning and its end.
std::string elided(std::string_view text, std::size_t most);
/// The name of a parameter, short enough for an axis.
std::string short_name(const MeasurementSummary& summary, std::size_t parameter);
/// Those of several; names that would become the same are longer.
std::vector<std::string> short_names(const MeasurementSummary& summary,
                                     const std::vector<std::size_t>& parameters);
/// "+0.120", "−0.030": three digits of what has this scale, the same decimals for all beside it.
std::string signed_number(double value, double scale);
/// The largest impact, which gives all of them their digits.
double impact_scale(const MeasurementSummary& summary);
/// The part of the error that comes from the counts.
std::optional<double> statistical_part(const MeasurementSummary& summary);

/// What is known of a nuisance parameter.
struct NuisanceRow {
  std::size_t parameter = 0;
  const Pull* pull = nullptr;
  const Impact* impact = nullptr;  ///< null where there is none
};
/// Those with a pull, by their impact, the largest first.
std::vector<NuisanceRow> nuisance_rows(const MeasurementSummary& summary);

/// "μ = 1.2 +0.4 −0.3 (statistical 0.3, systematic 0.2)."
std::string estimate_words(const MeasurementSummary& summary);
/// "The background alone is excluded with 2.3σ (p = 0.01)."
std::string discovery_words(const MeasurementSummary& summary);
/// "μ < 2.1 at 95 % (expected 1.8, ±1σ 1.2 to 2.6)."
std::string limit_words(const MeasurementSummary& summary);
/// All of these that there are.
/// "35σ", of a part of a variation; "unknown" where an older model does not say.
std::string significance_words(const LearnedVariation::Part& part);
std::string result_words(const MeasurementSummary& summary);

}  // namespace neyman::reports
