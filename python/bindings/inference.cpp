#include "inference.hpp"

#include <pybind11/stl.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <memory>
#include <numeric>

#include "arrays.hpp"
#include "neyman/core/check.hpp"
#include "neyman/core/progress.hpp"
#include "neyman/diagnostics/recovery.hpp"
#include "neyman/inference/composite_test.hpp"
#include "neyman/inference/constraint.hpp"
#include "neyman/inference/contour.hpp"
#include "neyman/inference/coverage.hpp"
#include "neyman/inference/ensemble.hpp"
#include "neyman/inference/experiment.hpp"
#include "neyman/inference/fit.hpp"
#include "neyman/inference/hypothesis_test.hpp"
#include "neyman/inference/likelihood.hpp"
#include "neyman/inference/parameterized_likelihood.hpp"
#include "neyman/pipeline/model.hpp"
#include "neyman/ratios/mixture_ratio.hpp"
#include "neyman/ratios/parameterized_ratio.hpp"
#include "ratios.hpp"
#include "reports.hpp"
#include "settings.hpp"
#include "simulators.hpp"
#include "work.hpp"

namespace neyman::python {

std::vector<std::optional<double>> read_fixed(const py::dict& given,
                                              const ParameterSpace& parameters) {
  std::vector<std::optional<double>> out(parameters.size());
  for (const auto& [name, fixed] : given)
    out[parameters.index(py::str(name).cast<std::string>())] = fixed.cast<double>();
  return out;
}

py::dict interval_dict(const Interval& interval) {
  py::dict out;
  out["level"] = interval.level;
  out["low"] = interval.low;
  out["high"] = interval.high;
  out["low_at_bound"] = interval.low_at_bound;
  out["high_at_bound"] = interval.high_at_bound;
  out["low_at_edge"] = interval.low_at_edge;
  out["high_at_edge"] = interval.high_at_edge;
  out["ok"] = interval.ok;
  out["message"] = interval.message;
  py::list pieces;
  for (const auto& piece : interval.pieces) pieces.append(py::make_tuple(piece.low, piece.high));
  out["pieces"] = pieces;
  return out;
}

namespace {

using LikelihoodPtr = std::shared_ptr<const Likelihood>;

/// A likelihood with what it is made from, which must outlive it.
struct AnyLikelihood {
  LikelihoodPtr likelihood;
  std::shared_ptr<const AnyRatio> ratio;
  std::vector<Constraint> constraints = {};
  Matrix x = {};  ///< the events, which the simulation's part of an error needs again
  std::vector<double> weights = {};

  const ParameterSpace& parameters() const { return likelihood->parameters(); }
};

std::unique_ptr<Likelihood> over(const AnyRatio& ratio, Matrix x, std::vector<double> weights) {
  if (const auto* mixture = dynamic_cast<const MixtureRatio*>(ratio.ratio.get()))
    return std::make_unique<MixtureLikelihood>(ratio.parameters, *mixture, x, std::move(weights));
  if (const auto* one = dynamic_cast<const ParameterizedRatio*>(ratio.ratio.get()))
    return std::make_unique<ParameterizedLikelihood>(*one, x, weights);
  if (ratio.exact != nullptr) {
    check_same_size("Likelihood", "a row of x", x.cols(), ratio.exact->dimension(),
                    "the dimension of the distribution");
    return std::make_unique<DensityLikelihood>(ratio.parameters, ratio.exact, std::move(x),
                                               std::move(weights));
  }
  fail_argument("Likelihood", "ratio", ratio.ratio->kind(), "one with parameters");
}

std::vector<Constraint> read_constraints(py::handle given, const ParameterSpace& parameters) {
  std::vector<Constraint> out;
  if (given.is_none()) return out;
  from_arguments("Likelihood", Settings(to_settings(given, "constraints")), [&](Settings& all) {
    for (const auto& name : all.keys())
      if (auto made = make_constraint(all.table(name), parameters.index(name)))
        out.push_back(*made);
    return 0;
  });
  return out;
}

AnyLikelihood make_likelihood(std::shared_ptr<const AnyRatio> ratio, py::handle x,
                              py::handle weights, py::handle constraints) {
  auto events = as_events(x, weights, "Likelihood", "x", ratio->feature_names);
  check_at_least("Likelihood", "the number of events of x", events.table.view.rows(), 1);
  for (std::size_t i = 0; i < events.table.view.rows(); ++i)
    check_finite("Likelihood", "x[" + std::to_string(i) + "]", events.table.view.row(i));
  check_non_negative("Likelihood", "weights", events.weights);
  AnyLikelihood out{nullptr, ratio, read_constraints(constraints, ratio->parameters),
                    copy_of(events.table.view), events.weights};
  out.likelihood =
      long_work([&]() -> LikelihoodPtr { return over(*ratio, out.x, events.weights); });
  if (!out.constraints.empty())
    out.likelihood = std::make_shared<ConstrainedLikelihood>(out.likelihood, out.constraints);
  return out;
}

bool inside(const ParameterSpace& parameters, std::span<const double> point) {
  for (std::size_t p = 0; p < parameters.size(); ++p)
    if (!parameters[p].periodic &&
        !(point[p] >= parameters[p].low && point[p] <= parameters[p].high))
      return false;
  return true;
}

/// ℓ at many θ.
py::array values(const AnyLikelihood& self, py::handle points) {
  const auto table = as_table(points, "Likelihood", "theta", self.parameters().names());
  check_same_size("Likelihood", "a row of theta", table.view.cols(), self.parameters().size(),
                  "one for each parameter");
  auto found = long_work([&] { return self.likelihood->at(table.view); });
  for (double& one : found)
    if (one <= Likelihood::forbidden) one = -std::numeric_limits<double>::infinity();
  return to_array(std::move(found));
}

double value(const AnyLikelihood& self, py::handle theta) {
  const auto point = as_point(theta, self.parameters(), "Likelihood", "theta");
  if (!inside(self.parameters(), point)) return -std::numeric_limits<double>::infinity();
  const double found = short_work([&] { return (*self.likelihood)(point); });
  return found <= Likelihood::forbidden ? -std::numeric_limits<double>::infinity() : found;
}

py::tuple value_and_gradient(const AnyLikelihood& self, py::handle theta) {
  const auto point = as_point(theta, self.parameters(), "gradient", "theta");
  self.parameters().check_inside("gradient", point);
  if (!self.likelihood->differentiable())
    fail_argument("gradient", "the likelihood", "rough", "differentiable");
  std::vector<double> gradient(point.size());
  const double found = short_work([&] { return (*self.likelihood)(point, gradient); });
  return py::make_tuple(found, to_array(std::move(gradient)));
}

/// The points of the maxima, ℓ at them, and what finite simulation makes of these heights.
py::tuple maxima_of(const Fit& fit) {
  std::vector<std::vector<double>> points;
  std::vector<double> values, errors;
  for (const auto& maximum : fit.maxima) {
    points.push_back(maximum.point);
    values.push_back(maximum.log_likelihood);
    errors.push_back(maximum.simulation_error);
  }
  return py::make_tuple(points, values, errors);
}

/// What pickle keeps of a fit: plain values.
py::tuple state_of(const Fit& fit) {
  return py::make_tuple(static_cast<int>(fit.status), fit.point, fit.log_likelihood,
                        to_array(Matrix(fit.covariance)),
                        to_array(Matrix(fit.simulation_covariance)), fit.distance, fit.evaluations,
                        fit.at_bound, fit.roughness, fit.message, fit.simulation_known,
                        maxima_of(fit), to_array(Matrix(fit.gradient_covariance)));
}

Fit fit_from(const py::tuple& state) {
  Fit fit;
  fit.status = static_cast<FitStatus>(state[0].cast<int>());
  fit.point = state[1].cast<std::vector<double>>();
  fit.log_likelihood = state[2].cast<double>();
  fit.covariance = copy_of(as_table(state[3], "Fit", "covariance").view);
  fit.simulation_covariance = copy_of(as_table(state[4], "Fit", "simulation_covariance").view);
  fit.distance = state[5].cast<double>();
  fit.evaluations = state[6].cast<int>();
  fit.at_bound = state[7].cast<std::vector<bool>>();
  fit.roughness = state[8].cast<double>();
  fit.message = state[9].cast<std::string>();
  fit.simulation_known = state[10].cast<bool>();
  const auto maxima = state[11].cast<py::tuple>();
  const auto points = maxima[0].cast<std::vector<std::vector<double>>>();
  const auto values = maxima[1].cast<std::vector<double>>();
  const auto errors = maxima.size() > 2 ? maxima[2].cast<std::vector<double>>()
                                        : std::vector<double>(points.size(), 0.0);
  for (std::size_t m = 0; m < points.size(); ++m)
    fit.maxima.push_back({points[m], values[m], errors[m]});
  if (py::len(state[12]) > 0)
    fit.gradient_covariance = copy_of(as_table(state[12], "Fit", "gradient_covariance").view);
  return fit;
}

Fit find_best(const AnyLikelihood& self, py::handle start, const py::dict& fixed,
              const py::dict& given) {
  FitOptions options;
  if (!start.is_none()) options.start = as_point(start, self.parameters(), "fit", "start");
  if (!fixed.empty()) options.fixed = read_fixed(fixed, self.parameters());
  if (given.contains("starts")) options.starts = given["starts"].cast<std::size_t>();
  if (given.contains("tolerance")) options.tolerance = given["tolerance"].cast<double>();
  if (given.contains("gradient") && !given["gradient"].cast<bool>())
    options.method = FitMethod::derivative_free;
  return long_work([&] {
    auto best = fit(*self.likelihood, options);
    if (!best.ok()) return best;
    const auto* ratio = self.ratio == nullptr ? nullptr : self.ratio->ratio.get();
    if (const auto* mixture = dynamic_cast<const MixtureRatio*>(ratio)) {
      add_simulation_covariance(best, self.parameters(), *mixture, self.x, self.weights);
    } else if (const auto* one = dynamic_cast<const ParameterizedRatio*>(ratio)) {
      add_simulation(best, ParameterizedLikelihood(*one, self.x, self.weights));
    } else {
      best.simulation_known = true;  // nothing is simulated
    }
    return best;
  });
}

py::dict interval(const AnyLikelihood& self, const Fit& best, const std::string& parameter,
                  std::optional<double> level, bool include_simulation,
                  std::optional<double> threshold) {
  const auto p = self.parameters().index(parameter);
  const double at = level.value_or(Interval().level);
  const auto found = long_work([&] {
    return threshold ? likelihood_interval(*self.likelihood, best, p, at, *threshold)
                     : likelihood_interval(*self.likelihood, best, p, at, include_simulation);
  });
  auto out = interval_dict(found);
  out["higher"] = found.higher;
  return out;
}

py::dict scan_one(const AnyLikelihood& self, const Fit& best, const std::string& parameter,
                  std::optional<double> low, std::optional<double> high,
                  std::optional<std::size_t> points) {
  const auto p = self.parameters().index(parameter);
  const auto& range = self.parameters()[p];
  for (const auto& [name, end] : {std::pair("low", low), std::pair("high", high)})
    if (end && range.periodic)
      check_finite("scan", name, *end);
    else if (end)
      check_in_range("scan", name, *end, range.low, range.high);
  auto found = long_work([&] {
    return scan(*self.likelihood, best, p, low.value_or(range.low), high.value_or(range.high),
                points.value_or(Model().scan_points));
  });
  py::dict out;
  out["values"] = to_array(std::move(found.values));
  out["statistic"] = to_array(std::move(found.statistic));
  out["failed"] = found.failed;
  out["message"] = found.message;
  out["higher"] = found.higher;
  return out;
}

py::dict scan_two(const AnyLikelihood& self, const Fit& best, const std::string& first,
                  const std::string& second, py::handle x, py::handle y) {
  const auto& parameters = self.parameters();
  const auto one = parameters.index(first), two = parameters.index(second);
  auto along = as_vector(x, "surface", "x").copy(), across = as_vector(y, "surface", "y").copy();
  auto found =
      long_work([&] { return scan_surface(*self.likelihood, best, one, two, along, across); });
  py::dict out;
  out["x"] = to_array(std::move(found.x));
  out["y"] = to_array(std::move(found.y));
  out["statistic"] = to_array(std::move(found.statistic));
  out["failed"] = found.failed;
  out["message"] = found.message;
  out["higher"] = found.higher;
  return out;
}

py::list trace(const AnyLikelihood& self, const Fit& best, const std::string& first,
               const std::string& second, const py::dict& given) {
  const auto& parameters = self.parameters();
  const auto one = parameters.index(first), two = parameters.index(second);
  ContourConfig config;
  if (given.contains("levels")) config.levels = given["levels"].cast<std::vector<double>>();
  if (given.contains("thresholds"))
    config.thresholds = given["thresholds"].cast<std::vector<double>>();
  if (given.contains("cells")) config.cells = given["cells"].cast<std::size_t>();
  auto found = long_work([&] { return contours(*self.likelihood, best, one, two, config); });
  py::list out;
  for (auto& contour : found) {
    py::list lines;
    for (const auto& line : contour.lines) {
      const std::size_t count = line.x.size();
      Matrix vertices(count + (line.closed && count > 0 ? 1 : 0), 2);
      for (std::size_t i = 0; i < vertices.rows(); ++i) {
        vertices(i, 0) = line.x[i % count];
        vertices(i, 1) = line.y[i % count];
      }
      lines.append(to_array(std::move(vertices)));
    }
    py::dict entry;
    entry["level"] = contour.level;
    entry["threshold"] = contour.threshold;
    entry["lines"] = lines;
    entry["touches_bound"] = contour.touches_bound;
    entry["touches_edge"] = contour.touches_edge;
    entry["failed"] = contour.failed;
    entry["message"] = contour.message;
    entry["higher"] = contour.higher;
    out.append(entry);
  }
  return out;
}

py::dict to_dict(EnsembleSide&& side, const ParameterSpace& parameters) {
  py::dict out;
  out["estimates"] = to_array(std::move(side.estimates));
  out["statistic"] = to_array(std::move(side.statistic));
  out["failed"] = side.failed;
  out["means"] = to_array(std::move(side.means));
  out["spreads"] = to_array(std::move(side.spreads));
  out["coverage"] = to_array(std::move(side.coverage));
  out["wilks_p_value"] = side.wilks.p_value;
  py::dict profiles;
  for (auto& profile : side.profiles)
    profiles[py::str(parameters[profile.parameter].name)] = to_array(std::move(profile.coverage));
  out["profile_coverage"] = profiles;
  return out;
}

/// Pseudo-experiments of a simulator, each with the likelihood of a ratio.
Experiment experiment_of(const Simulator& simulator, std::shared_ptr<const AnyRatio> ratio,
                         std::size_t events, std::vector<Constraint> constraints) {
  return make_experiment(
      *simulator.distribution, events, [ratio](Matrix x) { return over(*ratio, std::move(x), {}); },
      std::move(constraints));
}

std::vector<std::size_t> indices_of(const std::vector<std::string>& names,
                                    const ParameterSpace& parameters) {
  std::vector<std::size_t> out;
  for (const auto& name : names) out.push_back(parameters.index(name));
  return out;
}

py::dict toys(const Simulator& simulator, std::shared_ptr<const AnyRatio> ratio, py::handle theta,
              const py::dict& given, py::handle constraints) {
  const auto& parameters = ratio->parameters;
  EnsembleConfig config;
  config.point = as_point(theta, parameters, "toys", "theta");
  parameters.check_inside("toys", config.point);
  if (given.contains("datasets")) config.datasets = given["datasets"].cast<std::size_t>();
  if (given.contains("events")) config.events = given["events"].cast<std::size_t>();
  if (given.contains("levels")) config.levels = given["levels"].cast<std::vector<double>>();
  if (given.contains("seed")) config.seed = given["seed"].cast<std::uint64_t>();
  if (given.contains("starts")) config.starts = given["starts"].cast<std::size_t>();
  if (given.contains("interest"))
    config.interest = indices_of(given["interest"].cast<std::vector<std::string>>(), parameters);
  const auto terms = read_constraints(constraints, parameters);
  auto side = long_work([&] {
    return run_ensemble(config, parameters, experiment_of(simulator, ratio, config.events, terms));
  });
  auto out = to_dict(std::move(side), parameters);
  out["theta"] = to_array(std::move(config.point));
  out["levels"] = config.levels;
  return out;
}

py::list coverage(const Simulator& simulator, std::shared_ptr<const AnyRatio> ratio,
                  py::handle points, std::size_t events, const py::dict& given,
                  py::handle constraints) {
  const auto& parameters = ratio->parameters;
  CoverageConfig config;
  config.points = copy_of(as_table(points, "coverage", "points", parameters.names()).view);
  if (given.contains("datasets")) config.datasets = given["datasets"].cast<std::size_t>();
  if (given.contains("critical_datasets"))
    config.critical_datasets = given["critical_datasets"].cast<std::size_t>();
  if (given.contains("levels")) config.levels = given["levels"].cast<std::vector<double>>();
  if (given.contains("seed")) config.seed = given["seed"].cast<std::uint64_t>();
  const auto terms = read_constraints(constraints, parameters);
  auto found = long_work([&] {
    return run_coverage(config, parameters, experiment_of(simulator, ratio, events, terms));
  });
  py::list out;
  for (auto& point : found) {
    py::dict entry;
    entry["theta"] = to_array(std::move(point.point));
    entry["levels"] = config.levels;
    entry["coverage"] = to_array(std::move(point.ensemble.coverage));
    entry["error"] = to_array(std::move(point.coverage_error));
    entry["failed"] = point.ensemble.failed;
    py::list critical;
    for (const auto& value : point.critical)
      critical.append(py::make_tuple(value.level, value.asymptotic, value.toys));
    entry["critical"] = critical;
    entry["coverage_critical"] = to_array(std::move(point.coverage_critical));
    out.append(entry);
  }
  return out;
}

py::dict test_simple(const Simulator& simulator, std::shared_ptr<const AnyRatio> ratio,
                     py::handle x, py::handle null, py::handle alternative, const py::dict& given) {
  const auto& parameters = ratio->parameters;
  SimpleTestConfig config;
  config.null = as_point(null, parameters, "simple_test", "null");
  config.alternative = as_point(alternative, parameters, "simple_test", "alternative");
  if (given.contains("datasets")) config.datasets = given["datasets"].cast<std::size_t>();
  if (given.contains("size")) config.size = given["size"].cast<double>();
  if (given.contains("seed")) config.seed = given["seed"].cast<std::uint64_t>();
  const auto events = as_events(x, py::none(), "simple_test", "x", ratio->feature_names);
  auto found = long_work([&] {
    return simple_test(config, *simulator.distribution, *ratio->ratio, events.table.view);
  });
  py::dict out;
  out["statistic"] = found.statistic;
  out["p_value"] = found.p_value;
  out["power"] = found.power;
  out["null_statistics"] = to_array(std::move(found.null_statistics));
  out["alternative_statistics"] = to_array(std::move(found.alternative_statistics));
  return out;
}

py::dict test_composite(const AnyLikelihood& self, const py::dict& fixed, const py::dict& ranges,
                        const py::dict& given, std::shared_ptr<const Simulator> simulator) {
  const auto& parameters = self.parameters();
  CompositeTestConfig config;
  if (!fixed.empty()) config.null.fixed = read_fixed(fixed, parameters);
  if (!ranges.empty()) {
    config.null.ranges.resize(parameters.size());
    for (const auto& [name, range] : ranges) {
      const auto [low, high] = range.cast<std::pair<double, double>>();
      config.null.ranges[parameters.index(py::str(name).cast<std::string>())] = {low, high};
    }
  }
  if (given.contains("datasets")) config.datasets = given["datasets"].cast<std::size_t>();
  if (given.contains("seed")) config.seed = given["seed"].cast<std::uint64_t>();
  if (given.contains("starts")) config.starts = given["starts"].cast<std::size_t>();
  Experiment experiment;
  if (simulator != nullptr)
    experiment = experiment_of(*simulator, self.ratio, self.likelihood->events(), self.constraints);
  auto found = long_work([&] { return composite_test(config, *self.likelihood, experiment); });
  py::dict out;
  out["statistic"] = found.statistic;
  out["degrees"] = found.degrees;
  out["p_value"] = found.p_value;
  out["simulated_p_value"] = found.simulated_p_value;
  out["null_statistics"] = to_array(std::move(found.null_statistics));
  out["failed"] = found.failed;
  out["ok"] = found.ok();
  out["best"] = found.best;
  out["null_fit"] = found.null_fit;
  return out;
}

/// Events that are simulated at an estimate, fitted as the data of a likelihood were.
py::dict recover_estimate(const AnyLikelihood& self, const Fit& best, const Simulator& simulator,
                          std::size_t times, const py::dict& given) {
  const char* function = "recovery";
  constexpr std::size_t most_parts = 40, in_part = 5, for_simulation = 10000;
  const auto& distribution = *simulator.distribution;
  check_same_size(function, "the features of the simulator", distribution.dimension(),
                  self.x.cols(), "as the data of the likelihood have");
  if (!best.ok()) fail_argument(function, "best", "a fit that failed", "one that converged");
  std::size_t events =
      given.contains("events") ? given["events"].cast<std::size_t>() : times * self.x.rows();
  const std::uint64_t seed = given.contains("seed") ? given["seed"].cast<std::uint64_t>() : 0;
  RecoveryConfig config;
  if (given.contains("tolerance")) config.tolerance = given["tolerance"].cast<double>();
  config.names = self.parameters().names();
  const std::size_t least = std::max<std::size_t>(4, best.point.size() + 2);
  check_at_least(function, "events", events, least);
  const std::size_t parts = std::clamp(events / in_part, least, most_parts);
  double weight = static_cast<double>(self.x.rows());
  if (!self.weights.empty())
    weight = std::accumulate(self.weights.begin(), self.weights.end(), 0.0);
  return diagnostic_dict(long_work([&] {
    const Matrix x = sample(distribution, best.point, events, seed, function);
    std::vector<std::unique_ptr<const Likelihood>> likelihoods;
    for (std::size_t k = 0; k < parts; ++k)
      likelihoods.push_back(over(
          *self.ratio, copy_of(x.view().rows(events * k / parts, events * (k + 1) / parts)), {}));
    const MatrixView some = x.view().rows(0, std::min(events, for_simulation));
    Matrix covariance;
    if (const auto* mixture = dynamic_cast<const MixtureRatio*>(self.ratio->ratio.get())) {
      covariance =
          simulation_gradient_covariance(self.parameters(), *mixture, some, {}, best.point);
    } else if (const auto* one = dynamic_cast<const ParameterizedRatio*>(self.ratio->ratio.get())) {
      const ParameterizedLikelihood first(*one, some);
      if (first.differentiable()) covariance = first.simulation_gradient_covariance(best.point);
    }
    const double more = static_cast<double>(events) / static_cast<double>(some.rows());
    for (double& value : covariance.values()) value *= more * more;
    return diagnose_recovery(recover(best, weight, likelihoods, covariance, self.constraints),
                             config);
  }));
}

}  // namespace

void bind_inference(py::module_& module) {
  py::class_<Fit, std::shared_ptr<Fit>>(module, "Fit")
      .def_property_readonly("status", [](const Fit& self) { return to_string(self.status); })
      .def_property_readonly("ok", &Fit::ok)
      .def_property_readonly("message", [](const Fit& self) { return self.message; })
      .def_property_readonly(
          "point", [](py::object self) { return view_of(self.cast<const Fit&>().point, self); })
      .def_readonly("log_likelihood", &Fit::log_likelihood)
      .def_property_readonly(
          "covariance",
          [](py::object self) { return view_of(self.cast<const Fit&>().covariance, self); })
      .def_property_readonly("simulation_covariance",
                             [](py::object self) {
                               return view_of(self.cast<const Fit&>().simulation_covariance, self);
                             })
      .def_readonly("simulation_known", &Fit::simulation_known)
      .def_property_readonly("maxima", &maxima_of)
      .def_readonly("distance", &Fit::distance)
      .def_readonly("evaluations", &Fit::evaluations)
      .def_readonly("at_bound", &Fit::at_bound)
      .def(py::pickle(&state_of, &fit_from))
      .def("errors", [](const Fit& self) {
        std::vector<double> total, statistical, simulation;
        constexpr double unknown = std::numeric_limits<double>::quiet_NaN();
        for (std::size_t p = 0; p < self.point.size(); ++p) {
          const bool bent = self.statistical_error_known(p);
          total.push_back(bent ? self.error(p) : unknown);
          statistical.push_back(bent ? self.statistical_error(p) : unknown);
          simulation.push_back(self.simulation_error_known(p) ? self.simulation_error(p) : unknown);
        }
        return py::make_tuple(to_array(std::move(total)), to_array(std::move(statistical)),
                              to_array(std::move(simulation)));
      });
  py::class_<AnyLikelihood, std::shared_ptr<AnyLikelihood>>(module, "Likelihood")
      .def(py::init(&make_likelihood), py::arg("ratio"), py::arg("x"), py::arg("weights"),
           py::arg("constraints"))
      .def_property_readonly("parameters", &AnyLikelihood::parameters)
      .def_property_readonly("events",
                             [](const AnyLikelihood& self) { return self.likelihood->events(); })
      .def_property_readonly(
          "differentiable",
          [](const AnyLikelihood& self) { return self.likelihood->differentiable(); })
      .def(
          "__call__",
          [](const AnyLikelihood& self, py::handle theta) -> py::object {
            if (is_one_point(theta, self.parameters().size())) return py::cast(value(self, theta));
            const auto many = py::module_::import("neyman._arrays")
                                  .attr("as_points")(theta, self.parameters().names());
            if (many.is_none()) return py::cast(value(self, theta));
            return values(self, many);
          },
          py::arg("theta"))
      .def("value_and_gradient", &value_and_gradient, py::arg("theta"))
      // How long one evaluation takes without Python, for benchmarks.
      .def("_seconds",
           [](const AnyLikelihood& self, py::handle theta, std::size_t times) {
             const auto point = as_point(theta, self.parameters(), "seconds", "theta");
             return short_work([&] {
               const double start = seconds_now();
               for (std::size_t i = 0; i < times; ++i) (*self.likelihood)(point);
               return (seconds_now() - start) / static_cast<double>(times);
             });
           })
      .def("fit", &find_best)
      .def("interval", &interval)
      .def("scan", &scan_one)
      .def("surface", &scan_two)
      .def("contours", &trace)
      .def("test_statistic",
           [](const AnyLikelihood& self, const Fit& best, py::handle theta) {
             const auto point = as_point(theta, self.parameters(), "test_statistic", "theta");
             self.parameters().check_inside("test_statistic", point);
             return short_work([&] { return test_statistic(*self.likelihood, best, point); });
           })
      .def("profile_statistic",
           [](const AnyLikelihood& self, const Fit& best, const py::dict& fixed) {
             const auto values = read_fixed(fixed, self.parameters());
             return long_work([&] { return profile_statistic(*self.likelihood, best, values); });
           })
      .def("composite_test", &test_composite);
  module.def("toys", &toys);
  module.def("coverage", &coverage);
  module.def("simple_test", &test_simple);
  module.def("recover", &recover_estimate);
}

}  // namespace neyman::python
