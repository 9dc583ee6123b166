#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <vector>

#include "neyman/reports/results.hpp"

// Results in words, shared by the report and the terminal summary. A result that is not finite
// is written as "—": a report of a run that went wrong must still be written.
namespace neyman::reports {

std::string number(double value, int digits = 4);
std::string percent(double fraction, int decimals = 1);
std::string p_value(double p);
/// "p = 0.25", or "p < 0.0001"
std::string p_equals(double p);
std::string measurement(double value, double error);
/// An estimate with its error, or alone where the error is not known, as at an edge.
std::string measurement(const Fit& fit, std::size_t parameter);
/// A value to the digits of its error.
std::string rounded(double value, double error);
/// Limits to the digits of half the band of ±1σ that is expected of them.
template <class Limit>
std::string rounded_limit(double value, const Limit& limit) {
  return rounded(value, 0.5 * (limit.expected[3] - limit.expected[1]));
}
/// "−0.02": correlations have two decimals.
std::string correlation_words(double rho);
/// "[0.0394, 0.0528]", to the digits of the error that belongs to it.
/// The pieces of an interval, of which old results and other programs tell only the hull.
std::vector<FitRange> pieces_of(const Interval& interval);
/// The piece that a value lies in, or the nearest.
FitRange piece_at(const Interval& interval, double value);
/// Whether a piece of a periodic parameter's interval goes over the ends of the period.
bool over_seam(const Interval& interval, const Parameter& parameter);
std::string interval_words(const Interval& interval, double error = 0.0);
/// "68.3 %"
std::string level_words(double level);
/// A level by its number of standard deviations, "2σ (95.4 %)", where it is that of 1 to 5 of them.
std::string sigma_words(double level);
/// "68.0 ± 1.5 %": an observed share of n datasets, with its binomial error.
std::string share_words(double share, std::size_t n);
double binomial_error(double share, std::size_t n);
/// "a, b and c"
std::string join_words(const std::vector<std::string>& words);
/// "1 event", "5000 events"
std::string count_words(std::size_t count, const std::string& one);

/// A point in words; "the reference" where it is not one.
std::string theta_words(const Results& results, const std::vector<double>& point);
/// Correlations of the estimates, finite simulation included; 0 for those without variance. Empty
/// where there is no covariance.
Matrix correlation_of(const Fit& fit);

/// Which end of its range a fitted parameter is at, if any.
enum class End { low, high };
std::optional<End> at_bound(const Results& results, const FitReport& report, std::size_t parameter);

/// "γ = 0.0459 ± 0.0067", or at a bound "γ = 0 (the lower end of its range)".
std::string estimate_words(const Results& results, const FitReport& report, std::size_t parameter);
/// Of more parameters of interest a sentence with their estimates is not read: a table is.
inline constexpr std::size_t most_in_a_sentence = 2;
/// All parameters, with the first level's intervals, from so many events; or how many they are.
std::string answer(const Results& results);
/// "5000 events from `observed.csv`", or "5000 events simulated at the truth".
std::string data_words(const Results& results, bool code = true);
/// The test in words: what was tested, the p-value, what follows from it at the test's size.
std::string test_words(const Results& results);
/// How far the learned estimate is from the exact one, in exact standard errors; absent
/// where there is no exact fit or its error is zero.
std::optional<double> distance_to_exact(const Results& results, std::size_t parameter);
/// "1000 datasets of 5000 events at γ = 0.05"
std::string ensemble_words(const Results& results);
/// What was counted at the points of the coverage study.
std::string coverage_words(const Results& results);
/// A composite hypothesis: "α = 1, β at least 0".
std::string hypothesis_words(const Results& results, const CompositeHypothesis& hypothesis);
/// A composite test in a sentence.
std::string composite_words(const Results& results, const CompositeTest& test);

/// The worst verdict of all diagnostics, and what it rests on: "3 of 4 diagnostics pass; closure
/// warns".
struct Together {
  Diagnostic::Verdict verdict = Diagnostic::Verdict::pass;
  std::string words = {};
};
Together together(const Results& results);
/// What none of the checks has looked at: "not checked: how often the interval contains the true
/// value"; empty where there is no such thing.
std::string unchecked_words(const Results& results);

/// The name of a check, with the symbol of the parameter that it may end with: "reference: α".
std::string check_words(const Results& results, const std::string& name);
/// A next step in a sentence: what, the keys to set, why.
std::string step_words(const NextStep& step);
/// What a run with `Results::quick` is.
std::string quick_words();

/// Title of the study, or its name.
const std::string& title_of(const Results& results);
double total_seconds(const Results& results);

}  // namespace neyman::reports
