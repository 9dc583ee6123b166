#include "simulators.hpp"

#include <pybind11/stl.h>

#include <algorithm>

#include "arrays.hpp"
#include "neyman/core/check.hpp"
#include "neyman/data/samples.hpp"
#include "neyman/simulators/describe.hpp"
#include "neyman/simulators/design.hpp"
#include "neyman/simulators/distribution.hpp"
#include "neyman/simulators/empirical.hpp"
#include "neyman/simulators/histogram.hpp"
#include "neyman/simulators/kde.hpp"
#include "settings.hpp"
#include "work.hpp"

namespace neyman::python {

namespace {

Simulator make_simulator(py::handle settings, const ParameterSpace& parameters,
                         const std::string& folder) {
  Settings table(to_settings(settings, "distribution"));
  const auto kind = table.is_text("kind") ? table.text("kind", "") : "distribution";
  auto made = from_arguments(kind, table, [&](Settings& all) {
    return long_work([&] { return make_distribution(all, parameters, folder); });
  });
  return {std::move(made), parameters};
}

std::vector<double> point_of(const Simulator& self, py::handle theta, const char* function) {
  return as_point(theta, self.parameters, function, "theta");
}

py::array draw(const Simulator& self, std::size_t n, py::handle theta, std::uint64_t seed,
               const std::string& purpose) {
  const auto point = point_of(self, theta, "sample");
  return to_array(long_work([&] { return sample(*self.distribution, point, n, seed, purpose); }));
}

py::array density(const Simulator& self, py::handle x, py::handle theta) {
  const auto point = point_of(self, theta, "log_density");
  const auto table = as_table(x, "log_density", "x", feature_names_of(*self.distribution));
  return to_array(short_work([&] { return log_density(*self.distribution, point, table.view); }));
}

/// One of the functions of one number, of many.
py::array each(const Simulator& self, py::handle values, py::handle theta, const char* function,
               double (Distribution::*of)(std::span<const double>, double) const) {
  const auto point = point_of(self, theta, function);
  const auto vector = as_vector(values, function, function == std::string("cdf") ? "x" : "p");
  check_finite(function, function == std::string("cdf") ? "x" : "p", vector.values);
  std::vector<double> out(vector.values.size());
  for (std::size_t i = 0; i < out.size(); ++i)
    out[i] = ((*self.distribution).*of)(point, vector.values[i]);
  return to_array(std::move(out));
}

py::dict fit_to(const Simulator& self, py::handle x, py::handle weights, py::handle start,
                const std::vector<std::string>& fixed) {
  const auto table = as_table(x, "fit", "x", feature_names_of(*self.distribution));
  const auto event_weights = as_vector(weights, "fit", "weights");
  std::vector<double> from;
  if (!start.is_none()) from = as_point(start, self.parameters, "fit", "start");
  std::vector<bool> stays(fixed.empty() ? 0 : self.parameters.size());
  for (const auto& name : fixed) stays[self.parameters.index(name)] = true;
  auto fitted = long_work([&] {
    return fit(*self.distribution, self.parameters, table.view, event_weights.values, from, stays);
  });
  py::dict out;
  out["point"] = to_array(std::move(fitted.point));
  out["log_likelihood"] = fitted.log_likelihood;
  out["converged"] = fitted.converged;
  out["evaluations"] = fitted.evaluations;
  out["at_limit"] = fitted.at_limit;
  return out;
}

Design make_design(py::handle design, const ParameterSpace& parameters, const std::string& folder) {
  py::dict wrapped;
  wrapped["design"] = design;
  return from_arguments("Design", Settings(to_settings(wrapped, "Design")), [&](Settings& all) {
    // A function of Python may be asked for θ.
    return long_work([&] { return Design::from(all, "design", parameters, folder); });
  });
}

/// Parameters whose ranges may have ends that are not finite, by a design.
ParameterSpace bounded_parameters(const std::vector<py::dict>& entries, py::handle design,
                                  const std::string& folder) {
  py::dict wrapped;
  wrapped["design"] = design;
  auto parameters = parameters_from(entries);
  std::vector<std::string> names;
  for (const auto& parameter : parameters) names.push_back(parameter.name);
  const auto config =
      from_arguments("Design", Settings(to_settings(wrapped, "Design")),
                     [&](Settings& all) { return Design::read(all, "design", names, folder); });
  return long_work([&] { return Design::bounded(parameters, config); });
}

/// The design that events were simulated at; ends of ranges that are not finite are those of θ.
Design design_of_events(const Samples& events, const std::vector<py::dict>& entries) {
  auto parameters = parameters_from(entries);
  check_same_size("Design", "a row of theta", events.theta.cols(), parameters.size(),
                  "one for each parameter");
  return long_work([&] {
    return empirical_design(events,
                            Design::bounded(std::move(parameters),
                                            {.kind = Design::Kind::table, .rows = events.theta}));
  });
}

Samples draw_events(const Simulator& self, const Design& design, std::size_t n, std::uint64_t seed,
                    const std::string& purpose) {
  return long_work(
      [&] { return simulate(*self.distribution, self.parameters, design, n, seed, purpose); });
}

/// Events that a distribution is made of, with their weights.
struct Given {
  Matrix x;
  std::vector<double> weights;
};

Given given_events(const char* function, py::handle events, py::handle weights) {
  Given out{copy_of(as_table(events, function, "events").view),
            as_vector(weights, function, "weights").copy()};
  if (!weights.is_none())
    check_same_size(function, "weights", out.weights.size(), out.x.rows(), "one for each event");
  return out;
}

Simulator make_empirical(py::handle events, py::handle weights) {
  auto given = given_events("Empirical", events, weights);
  return {std::make_shared<Empirical>(std::move(given.x), std::move(given.weights)), {}};
}

Simulator make_kde(py::handle events, py::handle weights, py::handle bandwidth) {
  auto given = given_events("Kde", events, weights);
  Kde::Config config;
  if (py::isinstance<py::str>(bandwidth)) {
    const auto rule = bandwidth.cast<std::string>();
    if (rule != "scott" && rule != "silverman")
      throw ArgumentError("Kde: bandwidth is " +
                          unknown_name(rule, "a rule", {"scott", "silverman"}));
    config.rule = rule == "scott" ? Kde::Rule::scott : Kde::Rule::silverman;
  } else if (!bandwidth.is_none()) {
    config.bandwidth = as_vector(bandwidth, "Kde", "bandwidth").copy();
    check_at_least("Kde", "bandwidth", config.bandwidth.size(), 1);
  }
  return {std::make_shared<Kde>(given.x, std::move(given.weights), config), {}};
}

py::tuple fill_histogram(py::handle events, py::handle weights, py::handle edges,
                         const py::dict& options) {
  const char* function = "Histogram.fill";
  const auto given = given_events(function, events, weights);
  const auto filled = [&] {
    if (!edges.is_none()) {
      std::vector<std::vector<double>> axes;
      for (const auto axis : edges) axes.push_back(as_vector(axis, function, "edges").copy());
      return Histogram::filled(given.x, given.weights, std::move(axes));
    }
    Histogram::Config config;
    if (options.contains("bins")) config.bins = options["bins"].cast<std::size_t>();
    if (options.contains("false_alarm")) config.false_alarm = options["false_alarm"].cast<double>();
    if (options.contains("binning")) {
      const std::vector<std::string> names = {"uniform", "equal-probability", "bayesian-blocks"};
      const auto name = options["binning"].cast<std::string>();
      const auto found = std::find(names.begin(), names.end(), name);
      if (found == names.end())
        throw ArgumentError(std::string(function) +
                            ": binning: " + unknown_name(name, "a binning", names));
      config.binning = static_cast<Histogram::Binning>(found - names.begin());
    }
    return Histogram::filled(given.x, given.weights, config);
  }();
  return py::make_tuple(filled.edges(), filled.contents(), filled.outside());
}

}  // namespace

std::vector<std::string> feature_names_of(const Distribution& of) {
  auto names = of.feature_names();
  return names.empty() ? default_feature_names(of.dimension()) : names;
}

void bind_simulators(py::module_& module) {
  const auto none = py::none();
  module.def("distribution_kinds", &distribution_kinds);
  py::class_<Simulator, std::shared_ptr<Simulator>>(module, "Simulator")
      .def(py::init(&make_simulator), py::arg("settings"), py::arg("parameters"),
           py::arg("folder") = ".")
      .def_readonly("parameters", &Simulator::parameters)
      .def_property_readonly("kind",
                             [](const Simulator& self) { return self.distribution->kind(); })
      .def_property_readonly("dimension",
                             [](const Simulator& self) { return self.distribution->dimension(); })
      .def_property_readonly(
          "feature_names", [](const Simulator& self) { return self.distribution->feature_names(); })
      .def_property_readonly("has_density",
                             [](const Simulator& self) { return self.distribution->has_density(); })
      .def_property_readonly("has_cdf",
                             [](const Simulator& self) { return self.distribution->has_cdf(); })
      .def("describe", [](const Simulator& self) { return describe(*self.distribution); })
      .def("sample", &draw, py::arg("n"), py::arg("theta") = none, py::arg("seed") = 0,
           py::arg("purpose") = "sample")
      .def("log_density", &density, py::arg("x"), py::arg("theta") = none)
      .def("cdf", [](const Simulator& self, py::handle x,
                     py::handle theta) { return each(self, x, theta, "cdf", &Distribution::cdf); })
      .def("quantile",
           [](const Simulator& self, py::handle p, py::handle theta) {
             return each(self, p, theta, "quantile", &Distribution::quantile);
           })
      .def("fit", &fit_to, py::arg("x"), py::arg("weights"), py::arg("start"), py::arg("fixed"));

  module.def("empirical", &make_empirical);
  module.def("kde", &make_kde);
  module.def("fill_histogram", &fill_histogram);

  py::class_<Design, std::shared_ptr<Design>>(module, "Design")
      .def(py::init(&make_design), py::arg("design"), py::arg("parameters"),
           py::arg("folder") = ".")
      .def_property_readonly("kind", &Design::kind)
      .def_property_readonly("parameters", &Design::parameters)
      .def(
          "draw",
          [](const Design& self, std::size_t n, std::uint64_t seed, const std::string& purpose) {
            return to_array(long_work([&] { return self.draw(n, seed, purpose); }));
          },
          py::arg("n"), py::arg("seed") = 0, py::arg("purpose") = "design");
  module.def("design_kinds", &Design::kinds);
  module.def("bounded_parameters", &bounded_parameters);
  module.def("design_of_events", &design_of_events);
  module.def("simulate", &draw_events, py::arg("simulator"), py::arg("design"), py::arg("n"),
             py::arg("seed"), py::arg("purpose"));
}

}  // namespace neyman::python
