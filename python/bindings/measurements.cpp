#include <pybind11/stl.h>

#include <limits>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "arrays.hpp"
#include "inference.hpp"
#include "neyman/core/check.hpp"
#include "neyman/measurements/asymptotics.hpp"
#include "neyman/measurements/measurement_summary.hpp"
#include "neyman/measurements/model_fit.hpp"
#include "neyman/measurements/toys.hpp"
#include "neyman/reports/measurement_figures.hpp"
#include "neyman/reports/measurement_report.hpp"
#include "reports.hpp"
#include "work.hpp"

namespace neyman::python {

namespace {

using Data = std::shared_ptr<const MeasurementData>;

py::list band_of(const std::array<double, 5>& values) {
  py::list out;
  for (const double value : values) out.append(value);
  return out;
}

// ------------------------------------------------------------------------------------ the model

Modifier read_modifier(const py::dict& given) {
  const auto kind = given["type"].cast<std::string>(), name = given["name"].cast<std::string>();
  if (kind == "normfactor") return Modifier::norm_factor(name);
  if (kind == "lumi") return Modifier::lumi(name);
  return Modifier::norm_sys(name, given["lo"].cast<double>(), given["hi"].cast<double>());
}

std::shared_ptr<const UnbinnedEvents> read_events(py::handle given) {
  if (given.is_none()) return nullptr;
  const auto entries = py::reinterpret_borrow<py::dict>(given);
  auto out = std::make_shared<UnbinnedEvents>();
  const auto table = [&](const char* name) {
    return copy_of(as_table(entries[name], "UnbinnedEvents", name).view);
  };
  out->ratios = table("ratios");
  if (!entries["functions"].is_none()) out->functions = table("functions");
  out->weights = as_vector(entries["weights"], "UnbinnedEvents", "weights").copy();
  return out;
}

UnbinnedChannel read_channel(const py::dict& given) {
  UnbinnedChannel out;
  out.name = given["name"].cast<std::string>();
  for (const auto& entry : given["components"].cast<std::vector<py::dict>>()) {
    UnbinnedComponent component;
    component.name = entry["name"].cast<std::string>();
    component.yield = entry["yield"].cast<double>();
    for (const auto& modifier : entry["modifiers"].cast<std::vector<py::dict>>())
      component.modifiers.push_back(read_modifier(modifier));
    for (const auto& parameter : entry["shapes"].cast<std::vector<std::string>>())
      component.shapes.push_back(variation(parameter));
    using Powers = std::vector<std::pair<std::string, double>>;
    for (const auto& [value, powers] :
         entry["coefficient"].cast<std::vector<std::pair<double, Powers>>>())
      component.coefficient.terms.push_back({value, powers});
    out.components.push_back(std::move(component));
  }
  out.observed = read_events(given["observed"]);
  out.simulated = read_events(given["simulated"]);
  out.normalise = given["normalise"].cast<bool>();
  return out;
}

std::shared_ptr<StatisticalModel> make_model(const Workspace& workspace,
                                             const std::vector<py::dict>& unbinned,
                                             const std::string& measurement) {
  std::vector<UnbinnedChannel> channels;
  for (const auto& channel : unbinned) channels.push_back(read_channel(channel));
  return long_work(
      [&] { return std::make_shared<StatisticalModel>(workspace, channels, measurement); });
}

std::vector<double> model_point(const StatisticalModel& model, py::handle theta,
                                const char* function) {
  const auto point = as_point(theta, model.parameters(), function, "theta");
  model.parameters().check_inside(function, point);
  return point;
}

Data make_data(const StatisticalModel& model, py::handle counts, py::handle auxiliary) {
  auto out = std::make_shared<MeasurementData>(model.observed());
  if (!counts.is_none()) out->counts = as_vector(counts, "data", "counts").copy();
  if (!auxiliary.is_none()) out->auxiliary = as_vector(auxiliary, "data", "auxiliary").copy();
  model.check_data("data", *out);
  return out;
}

py::list constraints_of(const StatisticalModel& model) {
  py::list out;
  for (const auto& constraint : model.constraints()) {
    py::dict entry;
    entry["parameter"] = model.parameters()[constraint.parameter()].name;
    entry["kind"] = to_string(constraint.kind());
    entry["observed"] = constraint.observed();
    entry["width"] = constraint.width();
    out.append(entry);
  }
  return out;
}

py::list bins_of(const StatisticalModel& model) {
  py::list out;
  for (std::size_t b = 0; b < model.bins(); ++b) {
    const auto name = model.bin_name(b);
    out.append(py::make_tuple(name.channel, name.bin));
  }
  return out;
}

// -------------------------------------------------------------------------------------- the fit

Fit best_fit_of(const StatisticalModel& model, const Data& data, py::handle start,
                const py::dict& fixed, std::optional<double> tolerance) {
  ModelFitOptions options;
  if (!start.is_none()) options.start = as_point(start, model.parameters(), "fit_model", "start");
  if (!fixed.empty()) options.fixed = read_fixed(fixed, model.parameters());
  if (tolerance) options.tolerance = *tolerance;
  return long_work([&] { return fit_model(model, *data, options); });
}

py::dict interval_of(const StatisticalModel& model, const Data& data, const Fit& best,
                     const std::string& parameter, std::optional<double> level) {
  const auto p = model.parameters().index(parameter);
  return interval_dict(long_work([&] {
    return level ? profile_interval(model, *data, best, p, *level)
                 : profile_interval(model, *data, best, p);
  }));
}

py::dict scan_dict(ProfileScan&& scan) {
  py::dict out;
  out["values"] = to_array(std::move(scan.values));
  out["statistic"] = to_array(std::move(scan.statistic));
  out["held_statistic"] = to_array(std::move(scan.held_statistic));
  out["failed"] = scan.failed;
  return out;
}

py::dict scan_of(const StatisticalModel& model, const Data& data, const Fit& best,
                 const std::string& parameter, py::handle values) {
  const auto p = model.parameters().index(parameter);
  auto given = as_vector(values, "profile_scan", "values").copy();
  return scan_dict(
      long_work([&] { return profile_scan(model, *data, best, p, std::move(given)); }));
}

py::list pulls_of(const StatisticalModel& model, const std::vector<Pull>& found) {
  py::list out;
  for (const auto& pull : found) {
    py::dict entry;
    entry["parameter"] = model.parameters()[pull.parameter].name;
    entry["pull"] = pull.pull;
    entry["constraint"] = pull.constraint;
    out.append(entry);
  }
  return out;
}

py::list impacts_of(const StatisticalModel& model, const std::vector<Impact>& found) {
  py::list out;
  for (const auto& impact : found) {
    py::dict entry;
    entry["parameter"] = model.parameters()[impact.parameter].name;
    entry["up"] = impact.up;
    entry["down"] = impact.down;
    entry["ok"] = impact.ok;
    out.append(entry);
  }
  return out;
}

using Groups = std::vector<std::pair<std::string, std::vector<std::string>>>;

py::dict parts_of(const std::vector<ErrorPart>& parts) {
  py::dict out;
  for (const auto& part : parts) out[py::str(part.group)] = part.error;
  return out;
}

// ------------------------------------------------------------------------------ tests and limits

py::dict statistic_of(const StatisticalModel& model, const Data& data, const std::string& name,
                      double tested) {
  const auto statistic = test_statistic_named(name);
  auto found = long_work([&] { return test_statistic(model, *data, statistic, tested); });
  py::dict out;
  out["value"] = found.value;
  out["estimate"] = found.estimate;
  out["ok"] = found.ok;
  out["best"] = to_array(std::move(found.best));
  out["at_tested"] = to_array(std::move(found.at_tested));
  return out;
}

py::dict test_dict(const SignalTest& test) {
  py::dict out;
  out["tested"] = test.tested;
  out["statistic"] = test.statistic;
  out["asimov_statistic"] = test.asimov_statistic;
  out["estimate"] = test.estimate;
  out["cl_sb"] = test.cl_sb;
  out["cl_b"] = test.cl_b;
  out["cl_s"] = test.cl_s;
  out["expected_cl_s"] = band_of(test.expected_cl_s);
  out["ok"] = test.ok;
  return out;
}

py::list tests_at(const StatisticalModel& model, const Data& data, py::handle values,
                  const std::string& name) {
  const auto statistic = test_statistic_named(name);
  const auto given = as_vector(values, "asymptotic_scan", "values").copy();
  check_finite("asymptotic_scan", "values", given);
  py::list out;
  for (const auto& test :
       long_work([&] { return asymptotic_scan(model, *data, given, statistic); }))
    out.append(test_dict(test));
  return out;
}

template <class Limit>
py::dict limit_dict(const Limit& limit) {
  py::dict out;
  out["level"] = limit.level;
  out["observed"] = limit.observed;
  out["expected"] = band_of(limit.expected);
  return out;
}

py::dict limit_of(const StatisticalModel& model, const Data& data, std::optional<double> level,
                  const std::string& statistic, std::optional<double> highest) {
  UpperLimitOptions options;
  if (level) options.level = *level;
  options.statistic = test_statistic_named(statistic);
  options.highest = highest;
  const auto found = long_work([&] { return upper_limit(model, *data, options); });
  auto out = limit_dict(found);
  out["estimate"] = found.estimate;
  return out;
}

py::dict discovery_dict(const Discovery& found) {
  py::dict out;
  out["statistic"] = found.statistic;
  out["p_value"] = found.p_value;
  out["significance"] = found.significance;
  out["estimate"] = found.estimate;
  out["expected_significance"] = found.expected_significance;
  out["impossible"] = found.impossible;
  out["ok"] = found.ok;
  return out;
}

ToyOptions toy_options(const py::dict& given) {
  ToyOptions out;
  if (given.contains("toys")) out.toys = given["toys"].cast<std::size_t>();
  if (given.contains("seed")) out.seed = given["seed"].cast<std::uint64_t>();
  if (given.contains("first")) out.first = given["first"].cast<std::uint64_t>();
  return out;
}

py::tuple probability(const ToyProbability& found) {
  return py::make_tuple(found.value, found.error);
}

py::dict toy_test_dict(const ToyTest& test) {
  py::dict out;
  out["tested"] = test.tested;
  out["statistic"] = test.statistic;
  out["estimate"] = test.estimate;
  out["cl_sb"] = probability(test.cl_sb);
  out["cl_b"] = probability(test.cl_b);
  out["cl_s"] = probability(test.cl_s);
  out["expected_cl_s"] = band_of(test.expected_cl_s);
  out["failed"] = test.failed;
  return out;
}

py::dict toy_limit_dict(const ToyLimit& limit) {
  auto out = limit_dict(limit);
  py::list tests;
  for (const auto& test : limit.tests) tests.append(toy_test_dict(test));
  out["tests"] = tests;
  return out;
}

py::dict toys_at(const StatisticalModel& model, py::handle theta, const std::string& name,
                 double tested, const py::dict& given) {
  const auto point = model_point(model, theta, "toy_statistics");
  const auto statistic = test_statistic_named(name);
  const auto options = toy_options(given);
  auto found = long_work([&] { return toy_statistics(model, point, statistic, tested, options); });
  py::dict out;
  out["statistics"] = to_array(std::move(found.statistics));
  out["estimates"] = to_array(std::move(found.estimates));
  out["failed"] = found.failed;
  return out;
}

py::dict unified(const StatisticalModel& model, const Data& data, py::handle values,
                 std::optional<double> level, const py::dict& given) {
  const auto scan = as_vector(values, "feldman_cousins", "values").copy();
  const auto options = toy_options(given);
  auto found = long_work([&] {
    return feldman_cousins(model, *data, scan, level.value_or(UnifiedInterval().level), options);
  });
  py::dict out;
  out["level"] = found.level;
  out["low"] = found.low;
  out["high"] = found.high;
  out["low_at_bound"] = found.low_at_bound;
  out["high_at_bound"] = found.high_at_bound;
  out["values"] = to_array(std::move(found.values));
  out["p_values"] = to_array(std::move(found.p_values));
  out["failed"] = found.failed;
  return out;
}

// ------------------------------------------------------------------------------------- histograms

py::dict counts_dict(const ExpectedCounts& counts) {
  py::dict out;
  out["parts"] = to_array(Matrix(counts.parts));
  out["total"] = to_array(std::vector<double>(counts.total));
  out["error"] = to_array(std::vector<double>(counts.error));
  return out;
}

py::dict histogram_dict(const ChannelHistogram& histogram) {
  py::dict out;
  out["channel"] = histogram.channel;
  out["feature"] = histogram.feature;
  out["edges"] = to_array(std::vector<double>(histogram.edges));
  out["samples"] = histogram.samples;
  out["observed"] = to_array(std::vector<double>(histogram.observed));
  out["before"] = counts_dict(histogram.before);
  out["after"] = counts_dict(histogram.after);
  out["figure"] = figure_dict(reports::channel_figure(histogram));
  return out;
}

py::dict feature_of(const StatisticalModel& model, const Data& data, const Fit& best,
                    const py::dict& given) {
  FeatureEvents events;
  events.channel = given["channel"].cast<std::string>();
  events.feature = given["feature"].cast<std::string>();
  const auto numbers = [&](const char* name) {
    return as_vector(given[name], "feature_histogram", name).copy();
  };
  events.edges = numbers("edges");
  events.observed = numbers("observed");
  events.weights = numbers("weights");
  events.simulated = numbers("simulated");
  events.components = given["components"].cast<std::vector<std::string>>();
  const auto function = given["expected"].cast<py::object>();
  const auto names = model.parameters().names();
  if (!function.is_none())
    events.expected = [&](std::span<const double> point) {
      Matrix out;
      in_python([&] {
        py::dict theta;
        for (std::size_t p = 0; p < names.size(); ++p) theta[py::str(names[p])] = point[p];
        out = copy_of(as_table(function(theta), "feature_histogram", "expected").view);
      });
      return out;
    };
  return histogram_dict(long_work([&] { return feature_histogram(model, *data, best, events); }));
}

// ---------------------------------------------------------------------------------------- summary

using SummaryPtr = std::shared_ptr<MeasurementSummary>;

SummaryPtr summary_of(const StatisticalModel& model, const Data& data, const py::dict& given) {
  MeasurementOptions options;
  if (given.contains("level")) options.level = given["level"].cast<double>();
  if (given.contains("statistic"))
    options.statistic = test_statistic_named(given["statistic"].cast<std::string>());
  if (given.contains("toys")) options.toys = given["toys"].cast<std::size_t>();
  if (given.contains("scan_points")) options.scan_points = given["scan_points"].cast<std::size_t>();
  if (given.contains("seed")) options.seed = given["seed"].cast<std::uint64_t>();
  if (given.contains("curve_points"))
    options.curve_points = given["curve_points"].cast<std::size_t>();
  if (given.contains("groups")) options.groups = given["groups"].cast<Groups>();
  return long_work(
      [&] { return std::make_shared<MeasurementSummary>(summarise(model, *data, options)); });
}

py::list summary_figures(const MeasurementSummary& summary) {
  py::list out;
  for (const auto& figure : reports::measurement_figures(summary)) out.append(figure_dict(figure));
  return out;
}

std::string summary_report(const MeasurementSummary& summary, const std::string& title,
                           const std::string& folder) {
  return long_work([&] {
    reports::MeasurementOrigin origin{title};
    std::vector<reports::DrawnFigure> drawn;
    if (!folder.empty())
      drawn = reports::draw_all(reports::measurement_figures(summary), folder, origin.warnings);
    return reports::measurement_report(summary, origin, drawn);
  });
}

void bind_model(py::module_& module) {
  py::class_<Workspace, std::shared_ptr<Workspace>>(module, "Workspace")
      .def_static("read", &read_workspace)
      .def_static("parse", [](const std::string& json,
                              const std::string& source) { return parse_workspace(json, source); })
      .def("json", &workspace_json)
      .def("__eq__", [](const Workspace& a, const Workspace& b) { return a == b; });
  py::class_<MeasurementData, std::shared_ptr<MeasurementData>>(module, "MeasurementData")
      .def_property_readonly(
          "counts",
          [](py::object self) { return view_of(self.cast<const MeasurementData&>().counts, self); })
      .def_property_readonly("auxiliary",
                             [](py::object self) {
                               return view_of(self.cast<const MeasurementData&>().auxiliary, self);
                             })
      .def_property_readonly("events",
                             [](const MeasurementData& self) {
                               std::vector<std::size_t> sizes;
                               for (const auto& events : self.events)
                                 sizes.push_back(events->size());
                               return sizes;
                             })
      .def("weights", [](const MeasurementData& self, std::size_t channel) {
        return to_array(std::vector<double>(self.events.at(channel)->weights));
      });
  py::class_<StatisticalModel, std::shared_ptr<StatisticalModel>>(module, "StatisticalModel")
      .def(py::init(&make_model))
      .def_property_readonly("parameters", &StatisticalModel::parameters)
      .def_property_readonly(
          "interest",
          [](const StatisticalModel& self) { return self.parameters()[self.interest()].name; })
      .def_property_readonly(
          "start", [](const StatisticalModel& self) { return to_array(std::vector(self.start())); })
      .def_property_readonly("fixed", &StatisticalModel::fixed)
      .def_property_readonly("constraints", &constraints_of)
      .def_property_readonly("bins", &bins_of)
      .def_property_readonly("samples", &StatisticalModel::sample_names)
      .def_property_readonly("unbinned", &StatisticalModel::unbinned_channels)
      .def_property_readonly("observed",
                             [](const StatisticalModel& self) {
                               return std::make_shared<MeasurementData>(self.observed());
                             })
      .def("data",
           [](const StatisticalModel& self, py::handle counts, py::handle auxiliary) {
             return std::const_pointer_cast<MeasurementData>(make_data(self, counts, auxiliary));
           })
      .def("expected",
           [](const StatisticalModel& self, py::handle theta) {
             return to_array(self.expected(model_point(self, theta, "expected")));
           })
      .def("expected_by_sample",
           [](const StatisticalModel& self, py::handle theta) {
             return to_array(
                 self.expected_by_sample(model_point(self, theta, "expected_by_sample")));
           })
      .def("expected_events",
           [](const StatisticalModel& self, py::handle theta) {
             return to_array(self.expected_events(model_point(self, theta, "expected_events")));
           })
      .def("asimov",
           [](const StatisticalModel& self, py::handle theta) {
             const auto point = model_point(self, theta, "asimov");
             return short_work(
                 [&] { return std::make_shared<MeasurementData>(self.asimov(point)); });
           })
      .def("sampled", [](const StatisticalModel& self, py::handle theta, std::uint64_t seed) {
        const auto point = model_point(self, theta, "sampled");
        return short_work([&] {
          RandomStream random(seed, "sampled");
          return std::make_shared<MeasurementData>(self.sampled(point, random));
        });
      });
  py::class_<ModelLikelihood, std::shared_ptr<ModelLikelihood>>(module, "ModelLikelihood")
      .def(py::init([](const StatisticalModel& model, const Data& data) {
        return std::make_shared<ModelLikelihood>(model, *data);
      }))
      .def("__call__",
           [](const ModelLikelihood& self, py::handle theta) {
             const auto point = as_point(theta, self.parameters(), "ModelLikelihood", "theta");
             for (std::size_t p = 0; p < point.size(); ++p)
               if (point[p] < self.parameters()[p].low || point[p] > self.parameters()[p].high)
                 return -std::numeric_limits<double>::infinity();
             const double found = short_work([&] { return self(point); });
             return found <= Likelihood::forbidden ? -std::numeric_limits<double>::infinity()
                                                   : found;
           })
      .def("value_and_gradient",
           [](const ModelLikelihood& self, py::handle theta) {
             const auto point = as_point(theta, self.parameters(), "gradient", "theta");
             self.parameters().check_inside("gradient", point);
             std::vector<double> gradient(point.size());
             const double found = short_work([&] { return self(point, gradient); });
             return py::make_tuple(found, to_array(std::move(gradient)));
           })
      .def("information", [](const ModelLikelihood& self, py::handle theta) {
        const auto point = as_point(theta, self.parameters(), "information", "theta");
        self.parameters().check_inside("information", point);
        return to_array(short_work([&] { return self.information(point); }));
      });
}

}  // namespace

void bind_measurements(py::module_& module) {
  bind_model(module);
  module.def("fit_model", &best_fit_of);
  module.def("profile_interval", &interval_of);
  module.def("profile_scan", &scan_of);
  module.def("pulls", [](const StatisticalModel& model, const Data& data, const Fit& best) {
    return pulls_of(model, pulls(model, *data, best));
  });
  module.def("impacts", [](const StatisticalModel& model, const Data& data, const Fit& best) {
    return impacts_of(model, long_work([&] { return impacts(model, *data, best); }));
  });
  module.def("error_breakdown", [](const StatisticalModel& model, const Data& data, const Fit& best,
                                   const Groups& groups) {
    return parts_of(error_breakdown(model, *data, best, groups));
  });
  module.def("test_statistic", &statistic_of);
  module.def("asymptotic_tests", &tests_at);
  module.def("upper_limit", &limit_of);
  module.def("discovery", [](const StatisticalModel& model, const Data& data, double expected) {
    return discovery_dict(long_work([&] { return discovery(model, *data, expected); }));
  });
  module.def("toy_statistics", &toys_at);
  module.def("toy_test", [](const StatisticalModel& model, const Data& data, double tested,
                            const std::string& name, const py::dict& given) {
    const auto statistic = test_statistic_named(name);
    const auto options = toy_options(given);
    return toy_test_dict(
        long_work([&] { return toy_test(model, *data, tested, statistic, options); }));
  });
  module.def("toy_upper_limit",
             [](const StatisticalModel& model, const Data& data, py::handle values,
                std::optional<double> level, const std::string& name, const py::dict& given) {
               const auto scan = as_vector(values, "toy_upper_limit", "values").copy();
               const auto statistic = test_statistic_named(name);
               const auto options = toy_options(given);
               return toy_limit_dict(long_work([&] {
                 return toy_upper_limit(model, *data, scan, level.value_or(ToyLimit().level),
                                        statistic, options);
               }));
             });
  module.def("feldman_cousins", &unified);
  module.def("channel_histograms", [](const StatisticalModel& model, const Data& data,
                                      const Fit& best) {
    py::list out;
    for (const auto& histogram : long_work([&] { return channel_histograms(model, *data, best); }))
      out.append(histogram_dict(histogram));
    return out;
  });
  module.def("feature_histogram", &feature_of);
  py::class_<MeasurementSummary, SummaryPtr>(module, "MeasurementSummary")
      .def(py::init(&summary_of))
      .def_property_readonly("fit", [](const MeasurementSummary& self) { return self.fit; })
      .def_property_readonly("model",
                             [](const MeasurementSummary& self) {
                               return std::make_shared<StatisticalModel>(self.model);
                             })
      .def("json", &summary_json)
      .def("text", &summary_text)
      .def("figures", &summary_figures)
      .def("report", &summary_report);
}

}  // namespace neyman::python
