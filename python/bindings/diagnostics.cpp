#include <pybind11/stl.h>

#include <algorithm>
#include <utility>

#include "arrays.hpp"
#include "neyman/classifiers/classifier.hpp"
#include "neyman/core/check.hpp"
#include "neyman/diagnostics/closure.hpp"
#include "neyman/diagnostics/normalisation.hpp"
#include "neyman/diagnostics/ratio_diagnostics.hpp"
#include "neyman/diagnostics/reference.hpp"
#include "neyman/diagnostics/reliability.hpp"
#include "neyman/diagnostics/repetition.hpp"
#include "neyman/diagnostics/reweighting.hpp"
#include "reports.hpp"
#include "work.hpp"

namespace neyman::python {

py::dict diagnostic_dict(const Diagnostic& found) {
  py::dict out, numbers;
  for (const auto& [name, value] : found.numbers) numbers[py::str(name)] = value;
  out["name"] = found.name;
  out["verdict"] = to_string(found.verdict);
  out["statistic"] = found.statistic;
  out["p_value"] = found.p_value;
  out["tolerance"] = found.tolerance;
  out["numbers"] = numbers;
  out["note"] = found.note;
  out["description"] = found.explanation;
  Results alone;
  alone.diagnostics = {found};
  const auto figures = figures_of(alone);
  out["figure"] = figures.empty() ? py::object(py::none()) : py::object(figures[0]);
  return out;
}

namespace {

/// Events of both sides of a ratio and what it says about them, in arrays that Python owns.
struct AnyRatioEvents {
  Table numerator, denominator;
  Vector numerator_log_ratios, denominator_log_ratios;
  Vector numerator_weights, denominator_weights, exact_log_ratios;
  std::vector<std::string> feature_names;

  RatioEvents view() const {
    return {numerator.view,
            denominator.view,
            numerator_log_ratios.values,
            denominator_log_ratios.values,
            numerator_weights.values,
            denominator_weights.values,
            exact_log_ratios.values,
            feature_names};
  }
};

constexpr const char* made = "RatioEvents";

Table finite_table(py::handle value, const char* name) {
  auto table = as_table(value, made, name);
  check_at_least(made, name, table.view.rows(), 1);
  for (std::size_t i = 0; i < table.view.rows(); ++i) check_finite(made, name, table.view.row(i));
  return table;
}

/// One value for each event; none, where that is allowed.
Vector for_each_event(py::handle value, const char* name, const Table& events, bool required) {
  auto vector = as_vector(value, made, name);
  if (vector.values.empty() && !required && value.is_none()) return vector;
  check_same_size(made, name, vector.values.size(), events.view.rows(), "one for each event");
  check_finite(made, name, vector.values);
  return vector;
}

AnyRatioEvents make_events(py::handle numerator, py::handle denominator,
                           py::handle numerator_log_ratios, py::handle denominator_log_ratios,
                           py::handle numerator_weights, py::handle denominator_weights,
                           py::handle exact_log_ratios, std::vector<std::string> feature_names) {
  AnyRatioEvents out;
  out.numerator = finite_table(numerator, "numerator");
  out.denominator = finite_table(denominator, "denominator");
  const std::size_t features = out.numerator.view.cols();
  check_same_size(made, "a row of denominator", out.denominator.view.cols(), features,
                  "as numerator has");
  out.numerator_log_ratios =
      for_each_event(numerator_log_ratios, "numerator_log_ratios", out.numerator, true);
  out.denominator_log_ratios =
      for_each_event(denominator_log_ratios, "denominator_log_ratios", out.denominator, true);
  out.numerator_weights =
      for_each_event(numerator_weights, "numerator_weights", out.numerator, false);
  out.denominator_weights =
      for_each_event(denominator_weights, "denominator_weights", out.denominator, false);
  out.exact_log_ratios =
      for_each_event(exact_log_ratios, "exact_log_ratios", out.denominator, false);
  if (!feature_names.empty())
    check_same_size(made, "feature_names", feature_names.size(), features, "one for each feature");
  out.feature_names = std::move(feature_names);
  return out;
}

template <class T>
void take(const py::dict& given, const char* key, T& field) {
  if (given.contains(key)) field = given[key].cast<T>();
}

py::dict closure(const AnyRatioEvents& events, const py::dict& given) {
  ClosureConfig config;
  take(given, "bins", config.bins);
  take(given, "tolerance", config.tolerance);
  return diagnostic_dict(long_work([&] { return diagnose_closure(events.view(), config); }));
}

py::dict normalisation(const AnyRatioEvents& events, const py::dict& given) {
  NormalisationConfig config;
  take(given, "tolerance", config.tolerance);
  take(given, "least_effective", config.least_effective);
  return diagnostic_dict(long_work([&] { return diagnose_normalisation(events.view(), config); }));
}

py::dict reliability(const AnyRatioEvents& events, const py::dict& given) {
  ReliabilityConfig config;
  take(given, "bins", config.bins);
  take(given, "tolerance", config.tolerance);
  return diagnostic_dict(long_work([&] { return diagnose_reliability(events.view(), config); }));
}

py::dict reweighting(const AnyRatioEvents& events, std::shared_ptr<Classifier> classifier,
                     const py::dict& given) {
  ReweightingConfig config;
  config.classifier = std::move(classifier);
  take(given, "training_share", config.training_share);
  take(given, "tolerance", config.tolerance);
  take(given, "seed", config.seed);
  return diagnostic_dict(long_work([&] { return diagnose_reweighting(events.view(), config); }));
}

py::dict one_by_name(const std::string& name, const AnyRatioEvents& events, std::uint64_t seed) {
  return diagnostic_dict(long_work([&] { return diagnose_events(name, events.view(), seed); }));
}

py::dict coverage(const std::vector<std::tuple<double, std::size_t, std::size_t>>& given_counts,
                  const py::dict& given) {
  CoverageTestConfig config;
  take(given, "tolerance", config.tolerance);
  std::vector<CoverageCount> counts;
  for (const auto& [level, inside, datasets] : given_counts)
    counts.push_back({level, inside, datasets, ""});
  return diagnostic_dict(diagnose_coverage(counts, config));
}

py::dict wilks(py::handle statistics, double degrees) {
  const auto values = as_vector(statistics, "wilks", "statistics");
  return diagnostic_dict(diagnose_wilks(values.values, degrees));
}

/// Curves of one parameter, each a name, ℓ on the grid and, or none, replicas of it.
py::dict reference(py::handle grid,
                   const std::vector<std::tuple<std::string, py::object, py::object>>& given_curves,
                   const py::dict& given) {
  const char* function = "reference";
  const auto points = as_vector(grid, function, "grid");
  check_at_least(function, "grid", points.values.size(), 3);
  for (std::size_t i = 1; i < points.values.size(); ++i)
    if (!(points.values[i] > points.values[i - 1]))
      fail_argument(function, "grid[" + std::to_string(i) + "]", std::to_string(points.values[i]),
                    "above the one before");
  ReferenceConfig config;
  take(given, "tolerance", config.tolerance);
  take(given, "draws", config.draws);
  take(given, "seed", config.seed);
  std::vector<ReferenceCurve> curves;
  for (const auto& [name, values, replicas] : given_curves) {
    const auto curve = as_vector(values, function, "log_likelihoods");
    check_same_size(function, "log_likelihoods", curve.values.size(), points.values.size(),
                    "one for each point of grid");
    check_finite(function, "log_likelihoods", curve.values);
    Table others;
    if (!replicas.is_none()) {
      others = as_table(replicas, function, "replicas");
      check_same_size(function, "a row of replicas", others.view.cols(), points.values.size(),
                      "one for each point of grid");
    }
    curves.push_back(reference_curve(name, points.values, curve.values, others.view,
                                     points.values.front(), points.values.back()));
  }
  const MatrixView column(points.values.data(), points.values.size(), 1);
  return diagnostic_dict(long_work([&] { return diagnose_reference(curves, column, config); }));
}

/// The verdicts of a set, from each one's verdict, p-value and note.
py::tuple judge_all(
    const std::vector<std::tuple<std::string, std::optional<double>, std::string>>& entries) {
  using Verdict = Diagnostic::Verdict;
  std::vector<Diagnostic> all;
  for (const auto& [verdict, p_value, note] : entries) {
    auto& one = all.emplace_back();
    one.p_value = p_value;
    one.note = note;
    for (const auto known : {Verdict::pass, Verdict::no_power, Verdict::warn, Verdict::fail})
      if (verdict == to_string(known)) one.verdict = known;
  }
  const auto judgement = judge(all);
  py::list verdicts;
  for (const auto& one : all) verdicts.append(to_string(one.verdict));
  return py::make_tuple(verdicts, to_string(judgement.verdict), judgement.p_value);
}

struct Sides {
  Vector numerator, denominator, numerator_weights, denominator_weights;
};

Sides sides(const char* function, py::handle numerator, py::handle denominator,
            py::handle numerator_weights, py::handle denominator_weights) {
  Sides out{as_vector(numerator, function, "numerator"),
            as_vector(denominator, function, "denominator"),
            as_vector(numerator_weights, function, "numerator_weights"),
            as_vector(denominator_weights, function, "denominator_weights")};
  check_at_least(function, "numerator", out.numerator.values.size(), 1);
  check_at_least(function, "denominator", out.denominator.values.size(), 1);
  check_finite(function, "numerator", out.numerator.values);
  check_finite(function, "denominator", out.denominator.values);
  return out;
}

py::dict area(py::handle numerator, py::handle denominator, py::handle numerator_weights,
              py::handle denominator_weights) {
  const auto all =
      sides("area_under_curve", numerator, denominator, numerator_weights, denominator_weights);
  const auto found = short_work([&] {
    return area_under_curve(all.numerator.values, all.denominator.values,
                            all.numerator_weights.values, all.denominator_weights.values);
  });
  py::dict out;
  out["area"] = found.area;
  out["error"] = found.error;
  out["degrees"] = found.degrees;
  out["p_value"] = found.p_value();
  return out;
}

py::tuple curve(py::handle numerator, py::handle denominator, py::handle numerator_weights,
                py::handle denominator_weights, const py::dict& given) {
  const auto all =
      sides("roc_curve", numerator, denominator, numerator_weights, denominator_weights);
  const auto of = [&](auto... points) {
    return roc_curve(all.numerator.values, all.denominator.values, all.numerator_weights.values,
                     all.denominator_weights.values, points...);
  };
  auto found = given.contains("points") ? of(given["points"].cast<std::size_t>()) : of();
  return py::make_tuple(to_array(std::move(found.x)), to_array(std::move(found.y)));
}

}  // namespace

void bind_diagnostics(py::module_& module) {
  py::class_<AnyRatioEvents, std::shared_ptr<AnyRatioEvents>>(module, "RatioEvents")
      .def(py::init(&make_events));
  module.def("ratio_diagnostics", &ratio_diagnostics);
  module.def("diagnose", &one_by_name);
  module.def("diagnose_closure", &closure);
  module.def("diagnose_normalisation", &normalisation);
  module.def("diagnose_reliability", &reliability);
  module.def("diagnose_reweighting", &reweighting);
  module.def("diagnose_coverage", &coverage);
  module.def("diagnose_wilks", &wilks);
  module.def("diagnose_reference", &reference);
  module.def("judge", &judge_all);
  module.def("area_under_curve", &area);
  module.def("roc_curve", &curve);
}

}  // namespace neyman::python
