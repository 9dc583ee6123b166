#include "neyman/reports/results_archive.hpp"

#include <concepts>
#include <string>
#include <type_traits>

#include "neyman/core/error.hpp"

namespace neyman {

namespace {

// ---- The fields of each type are listed once, for writing and for reading; a field that is added
// to a type does not compile before it is added here.

template <class T, class U>
concept Is = std::same_as<std::remove_const_t<T>, U>;

template <class F>
void fields(F& f, Is<Parameter> auto& v) {
  auto& [name, low, high, truth, nuisance, periodic] = v;
  f("name", name), f("low", low), f("high", high), f("truth", truth), f("nuisance", nuisance);
  f("periodic", periodic);
}

template <class F>
void fields(F& f, Is<Maximum> auto& v) {
  auto& [point, log_likelihood, simulation_error] = v;
  f("point", point), f("log_likelihood", log_likelihood), f("simulation_error", simulation_error);
}

template <class F>
void fields(F& f, Is<Fit> auto& v) {
  auto& [status, point, log_likelihood, covariance, simulation_covariance, distance, evaluations,
         at_bound, roughness, message, simulation_known, maxima, gradient_covariance] = v;
  f("status", status), f("point", point), f("log_likelihood", log_likelihood),
      f("covariance", covariance), f("simulation_covariance", simulation_covariance),
      f("distance", distance), f("evaluations", evaluations), f("at_bound", at_bound),
      f("roughness", roughness), f("message", message), f("simulation_known", simulation_known),
      f("maxima", maxima), f("gradient_covariance", gradient_covariance);
}

template <class F>
void fields(F& f, Is<FitRange> auto& v) {
  auto& [low, high] = v;
  f("low", low), f("high", high);
}

template <class F>
void fields(F& f, Is<Interval> auto& v) {
  auto& [level, low, high, low_at_bound, high_at_bound, low_at_edge, high_at_edge, ok, message,
         pieces, higher] = v;
  f("level", level), f("low", low), f("high", high), f("low_at_bound", low_at_bound),
      f("high_at_bound", high_at_bound), f("low_at_edge", low_at_edge),
      f("high_at_edge", high_at_edge), f("ok", ok), f("message", message), f("pieces", pieces),
      f("higher", higher);
}

template <class F>
void fields(F& f, Is<Scan> auto& v) {
  auto& [parameter, values, statistic, failed, message, higher] = v;
  f("parameter", parameter), f("values", values), f("statistic", statistic), f("failed", failed),
      f("message", message), f("higher", higher);
}

template <class F>
void fields(F& f, Is<FitReport> auto& v) {
  auto& [fit, intervals, statistical_intervals, scans] = v;
  f("fit", fit), f("intervals", intervals), f("statistical_intervals", statistical_intervals),
      f("scans", scans);
}

template <class F>
void fields(F& f, Is<SimpleTestConfig> auto& v) {
  auto& [null, alternative, datasets, size, seed] = v;
  f("null", null), f("alternative", alternative), f("datasets", datasets), f("size", size),
      f("seed", seed);
}

template <class F>
void fields(F& f, Is<SimpleTest> auto& v) {
  auto& [config, statistic, p_value, power, null_statistics, alternative_statistics, failed] = v;
  f("config", config), f("statistic", statistic), f("p_value", p_value), f("power", power),
      f("null_statistics", null_statistics), f("alternative_statistics", alternative_statistics),
      f("failed", failed);
}

template <class F>
void fields(F& f, Is<CompositeHypothesis> auto& v) {
  auto& [fixed, ranges] = v;
  f("fixed", fixed), f("ranges", ranges);
}

template <class F>
void fields(F& f, Is<CompositeTestConfig> auto& v) {
  auto& [null, datasets, seed, starts] = v;
  f("null", null), f("datasets", datasets), f("seed", seed), f("starts", starts);
}

template <class F>
void fields(F& f, Is<CompositeTest> auto& v) {
  auto& [config, best, null_fit, statistic, degrees, mixed, p_value, simulated_p_value,
         null_statistics, failed] = v;
  f("config", config), f("best", best), f("null_fit", null_fit), f("statistic", statistic),
      f("degrees", degrees), f("mixed", mixed), f("p_value", p_value),
      f("simulated_p_value", simulated_p_value), f("null_statistics", null_statistics),
      f("failed", failed);
}

template <class F>
void fields(F& f, Is<KolmogorovSmirnov> auto& v) {
  auto& [statistic, p_value] = v;
  f("statistic", statistic), f("p_value", p_value);
}

template <class F>
void fields(F& f, Is<ProfileSide> auto& v) {
  auto& [parameter, statistic, coverage, wilks] = v;
  f("parameter", parameter), f("statistic", statistic), f("coverage", coverage), f("wilks", wilks);
}

template <class F>
void fields(F& f, Is<EnsembleSide> auto& v) {
  auto& [estimates, statistic, failed, means, spreads, coverage, wilks, profiles] = v;
  f("estimates", estimates), f("statistic", statistic), f("failed", failed), f("means", means),
      f("spreads", spreads), f("coverage", coverage), f("wilks", wilks), f("profiles", profiles);
}

template <class F>
void fields(F& f, Is<EnsembleConfig> auto& v) {
  auto& [datasets, events, point, levels, seed, interest, starts] = v;
  f("datasets", datasets), f("events", events), f("point", point), f("levels", levels),
      f("seed", seed), f("interest", interest), f("starts", starts);
}

template <class F>
void fields(F& f, Is<EnsembleResult> auto& v) {
  auto& [config, approximate, exact, bias, simulation_share, coverage_with_simulation] = v;
  f("config", config), f("approximate", approximate), f("exact", exact), f("bias", bias),
      f("simulation_share", simulation_share),
      f("coverage_with_simulation", coverage_with_simulation);
}

template <class F>
void fields(F& f, Is<CriticalValue> auto& v) {
  auto& [level, asymptotic, toys, low, high, enough] = v;
  f("level", level), f("asymptotic", asymptotic), f("toys", toys), f("low", low), f("high", high),
      f("enough", enough);
}

template <class F>
void fields(F& f, Is<CoverageConfig> auto& v) {
  auto& [points, datasets, critical_datasets, levels, seed, interest, starts] = v;
  f("points", points), f("datasets", datasets), f("critical_datasets", critical_datasets),
      f("levels", levels), f("seed", seed), f("interest", interest), f("starts", starts);
}

template <class F>
void fields(F& f, Is<CoveragePoint> auto& v) {
  auto& [point, ensemble, coverage_error, critical_failed, critical, coverage_critical,
         profile_critical, profile_coverage_critical] = v;
  f("point", point), f("ensemble", ensemble), f("coverage_error", coverage_error),
      f("critical_failed", critical_failed), f("critical", critical),
      f("coverage_critical", coverage_critical), f("profile_critical", profile_critical),
      f("profile_coverage_critical", profile_coverage_critical);
}

template <class F>
void fields(F& f, Is<CoverageReport> auto& v) {
  auto& [config, points] = v;
  f("config", config), f("points", points);
}

template <class F>
void fields(F& f, Is<Surface> auto& v) {
  auto& [first, second, x, y, statistic, failed, message, higher] = v;
  f("first", first), f("second", second), f("x", x), f("y", y), f("statistic", statistic),
      f("failed", failed), f("message", message), f("higher", higher);
}

template <class F>
void fields(F& f, Is<Polyline> auto& v) {
  auto& [x, y, closed] = v;
  f("x", x), f("y", y), f("closed", closed);
}

template <class F>
void fields(F& f, Is<Contour> auto& v) {
  auto& [level, threshold, lines, touches_bound, touches_edge, failed, message, higher] = v;
  f("level", level), f("threshold", threshold), f("lines", lines),
      f("touches_bound", touches_bound), f("touches_edge", touches_edge), f("failed", failed),
      f("message", message), f("higher", higher);
}

template <class F>
void fields(F& f, Is<SurfaceReport> auto& v) {
  auto& [label, surface, contours, minimum, evaluated, deviation] = v;
  f("label", label), f("surface", surface), f("contours", contours), f("minimum", minimum),
      f("evaluated", evaluated), f("deviation", deviation);
}

template <class F>
void fields(F& f, Is<Diagnostic::Series> auto& v) {
  auto& [name, style, x, y, low, high] = v;
  f("name", name), f("style", style), f("x", x), f("y", y), f("low", low), f("high", high);
}

template <class F>
void fields(F& f, Is<Diagnostic::Panel> auto& v) {
  auto& [title, x_label, y_label, series] = v;
  f("title", title), f("x_label", x_label), f("y_label", y_label), f("series", series);
}

template <class F>
void fields(F& f, Is<std::pair<std::string, double>> auto& v) {
  auto& [first, second] = v;
  f("name", first), f("value", second);
}

template <class F>
void fields(F& f, Is<Diagnostic> auto& v) {
  auto& [name, explanation, statistic, p_value, tolerance, verdict, worst, note, numbers, panels] =
      v;
  f("name", name), f("explanation", explanation), f("statistic", statistic), f("p_value", p_value),
      f("tolerance", tolerance), f("verdict", verdict), f("worst", worst), f("note", note),
      f("numbers", numbers), f("panels", panels);
}

template <class F>
void fields(F& f, Is<PairScores> auto& v) {
  auto& [numerator, denominator, edges, numerator_density, denominator_density, scores,
         calibrated] = v;
  f("numerator", numerator), f("denominator", denominator), f("edges", edges),
      f("numerator_density", numerator_density), f("denominator_density", denominator_density),
      f("scores", scores), f("calibrated", calibrated);
}

template <class F>
void fields(F& f, Is<RatioComparison> auto& v) {
  auto& [classifier, uncalibrated_error, calibrated_error, decomposed_error, x, exact, uncalibrated,
         calibrated, decomposed] = v;
  f("classifier", classifier), f("uncalibrated_error", uncalibrated_error),
      f("calibrated_error", calibrated_error), f("decomposed_error", decomposed_error), f("x", x),
      f("exact", exact), f("uncalibrated", uncalibrated), f("calibrated", calibrated),
      f("decomposed", decomposed);
}

template <class F>
void fields(F& f, Is<LearnedRatio::Candidate> auto& v) {
  auto& [name, trained, score, behind, behind_error, seconds, share, chosen, note] = v;
  f("name", name), f("trained", trained), f("score", score), f("behind", behind),
      f("behind_error", behind_error), f("seconds", seconds), f("share", share),
      f("chosen", chosen), f("note", note);
}

template <class F>
void fields(F& f, Is<NextStep> auto& v) {
  auto& [what, keys, values, reason] = v;
  f("what", what), f("keys", keys), f("values", values), f("reason", reason);
}

template <class F>
void fields(F& f, Is<Results> auto& v) {
  auto& [name, title, version, command, seed, parameters, reference, feature_names, component_names,
         simulator, ratio, classifier, calibration, data_source, data_note, events, levels, quick,
         fit, exact_fit, models, unused_features, test, ensemble, surfaces, composite_tests,
         coverage, diagnostics, outside, measurement, measurement_words, not_kept, compared_point,
         data, pair_scores, comparisons, density_x, numerator_density, denominator_density,
         log_ratios, exact_log_ratios, budget, timing, threads, warnings, next_steps,
         simulator_log] = v;
  f("name", name), f("title", title), f("version", version), f("command", command), f("seed", seed),
      f("parameters", parameters), f("reference", reference), f("feature_names", feature_names),
      f("component_names", component_names), f("simulator", simulator), f("ratio", ratio),
      f("classifier", classifier), f("calibration", calibration), f("data_source", data_source),
      f("data_note", data_note), f("events", events), f("levels", levels), f("quick", quick),
      f("fit", fit), f("exact_fit", exact_fit), f("models", models),
      f("unused_features", unused_features), f("test", test), f("ensemble", ensemble),
      f("surfaces", surfaces), f("composite_tests", composite_tests), f("coverage", coverage),
      f("diagnostics", diagnostics), f("outside", outside), f("measurement", measurement),
      f("measurement_words", measurement_words), f("compared_point", compared_point),
      f("data", data), f("pair_scores", pair_scores), f("comparisons", comparisons),
      f("density_x", density_x), f("numerator_density", numerator_density),
      f("denominator_density", denominator_density), f("log_ratios", log_ratios),
      f("exact_log_ratios", exact_log_ratios), f("budget", budget), f("timing", timing),
      f("threads", threads), f("warnings", warnings), f("next_steps", next_steps),
      f("simulator_log", simulator_log);
}

// ---- How a field of each kind is written and read.

/// What an Archive holds as it is.
template <class T>
concept Plain = std::same_as<T, bool> || std::same_as<T, double> || std::same_as<T, std::string> ||
    std::same_as<T, std::vector<double>> || std::same_as<T, std::vector<std::string>> ||
    std::same_as<T, Matrix>;

template <class T>
concept Whole = !std::same_as<T, bool> && (std::integral<T> || std::is_enum_v<T>);

class Writer {
 public:
  explicit Writer(Archive& archive) : archive_(archive) {}

  template <class T>
  void operator()(const std::string& key, const T& value) {
    if constexpr (Plain<T>) {
      archive_.set(key, Archive::Value(value));
    } else if constexpr (Whole<T>) {
      archive_.set(key, Archive::Value(static_cast<std::int64_t>(value)));
    } else {
      Writer inner(archive_.child(key));
      fields(inner, value);
    }
  }
  template <class T>
  void operator()(const std::string& key, const std::optional<T>& value) {
    if (value) (*this)(key, *value);
  }
  template <class T>
  requires(!Plain<std::vector<T>>) void operator()(const std::string& key,
                                                   const std::vector<T>& values) {
    if constexpr (Whole<T> || std::same_as<T, bool>) {
      archive_.set(key, Archive::Value(std::vector<std::int64_t>(values.begin(), values.end())));
    } else {
      Writer inner(archive_.child(key));
      inner("count", values.size());
      for (std::size_t i = 0; i < values.size(); ++i) inner(std::to_string(i), values[i]);
    }
  }
  void operator()(const std::string& key, const ParameterSpace& space) {
    (*this)(key, std::vector<Parameter>(space.begin(), space.end()));
  }
  void operator()(const std::string& key, const std::map<std::string, std::size_t>& counts) {
    Writer inner(archive_.child(key));
    std::vector<std::string> names;
    std::vector<std::size_t> values;
    for (const auto& [name, count] : counts) names.push_back(name), values.push_back(count);
    inner("names", names), inner("counts", values);
  }

 private:
  Archive& archive_;
};

class Reader {
 public:
  explicit Reader(const Archive& archive) : archive_(archive) {}

  template <class T>
  void operator()(const std::string& key, T& value) {
    if constexpr (Plain<T>) {
      value = archive_.get<T>(key);
    } else if constexpr (Whole<T>) {
      value = static_cast<T>(archive_.integer(key));
    } else {
      Reader inner(archive_.child(key));
      fields(inner, value);
    }
  }
  template <class T>
  void operator()(const std::string& key, std::optional<T>& value) {
    value.reset();
    if (archive_.has(key) || archive_.has_child(key)) (*this)(key, value.emplace());
  }
  template <class T>
  requires(!Plain<std::vector<T>>) void operator()(const std::string& key, std::vector<T>& values) {
    values.clear();
    if constexpr (Whole<T> || std::same_as<T, bool>) {
      for (const auto value : archive_.get<std::vector<std::int64_t>>(key))
        values.push_back(static_cast<T>(value));
    } else {
      Reader inner(archive_.child(key));
      std::size_t count = 0;
      inner("count", count);
      for (std::size_t i = 0; i < count; ++i) inner(std::to_string(i), values.emplace_back());
    }
  }
  void operator()(const std::string& key, ParameterSpace& space) {
    std::vector<Parameter> parameters;
    (*this)(key, parameters);
    space = ParameterSpace(std::move(parameters));
  }
  void operator()(const std::string& key, std::map<std::string, std::size_t>& counts) {
    Reader inner(archive_.child(key));
    std::vector<std::string> names;
    std::vector<std::size_t> values;
    inner("names", names), inner("counts", values);
    if (names.size() != values.size()) throw FileError(key + " has not one count for each name");
    counts.clear();
    for (std::size_t i = 0; i < names.size(); ++i) counts[names[i]] = values[i];
  }

 private:
  const Archive& archive_;
};

}  // namespace

void save_results(const Results& results, Archive& archive) {
  Writer writer(archive);
  fields(writer, results);
}

Results load_results(const Archive& archive) {
  Results results;
  Reader reader(archive);
  fields(reader, results);
  return results;
}

}  // namespace neyman
