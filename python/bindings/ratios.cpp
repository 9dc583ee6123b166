#include "ratios.hpp"

#include <pybind11/stl.h>

#include "neyman/core/check.hpp"
#include "neyman/core/parameters_archive.hpp"
#include "neyman/core/progress.hpp"
#include "neyman/core/random.hpp"
#include "neyman/data/feature_columns.hpp"
#include "neyman/ratios/classifier_across.hpp"
#include "neyman/ratios/classifier_ratio.hpp"
#include "neyman/ratios/decomposed_ratio.hpp"
#include "neyman/ratios/density_ratio.hpp"
#include "neyman/ratios/learned_ratio.hpp"
#include "neyman/ratios/onnx_export.hpp"
#include "neyman/ratios/separable_ratio.hpp"
#include "settings.hpp"
#include "simulators.hpp"
#include "stored.hpp"
#include "work.hpp"

namespace neyman::python {

namespace {

using ClassifierPtr = std::shared_ptr<Classifier>;
using CalibratorPtr = std::shared_ptr<Calibrator>;

/// The two points of a ratio between two samples, whose θ play no role.
const std::vector<double> first_point = {0.0}, second_point = {1.0};

template <class T>
void take(const py::dict& given, const char* key, T& field) {
  if (given.contains(key)) field = given[key].cast<T>();
}

Samples copied(const Events& events, const char* function,
               const std::vector<std::string>& names = {}) {
  Samples out;
  out.x = copy_of(events.table.view);
  out.feature_names = names.empty() ? default_feature_names(out.x.cols()) : names;
  out.weights = events.weights;
  out.check(function);
  return out;
}

/// The kinds that a study has where it names none.
ClassifierPtr or_default(ClassifierPtr classifier) {
  return classifier ? std::move(classifier) : ClassifierPtr(make_classifier(Settings()));
}
CalibratorPtr or_default(CalibratorPtr calibrator) {
  return calibrator ? std::move(calibrator) : CalibratorPtr(make_calibrator(Settings()));
}

RatioConfig ratio_config(ClassifierPtr classifier, CalibratorPtr calibrator,
                         const py::dict& given) {
  RatioConfig config;
  config.classifier = or_default(std::move(classifier));
  config.calibrator = or_default(std::move(calibrator));
  take(given, "folds", config.folds);
  take(given, "replicas", config.replicas);
  take(given, "normalise", config.normalise);
  take(given, "seed", config.seed);
  return config;
}

/// The names that events were given; empty: none.
std::vector<std::string> names_of(py::handle events) {
  if (py::isinstance<Samples>(events)) {
    const auto& samples = events.cast<const Samples&>();
    const bool chosen = samples.feature_names != default_feature_names(samples.features());
    return chosen ? samples.feature_names : std::vector<std::string>();
  }
  const auto names = py::module_::import("neyman._arrays").attr("column_names")(events);
  return names.is_none() ? std::vector<std::string>() : names.cast<std::vector<std::string>>();
}

AnyRatio two_samples(py::handle numerator, py::handle denominator, py::handle numerator_weights,
                     py::handle denominator_weights, ClassifierPtr classifier,
                     CalibratorPtr calibrator, const py::dict& given) {
  const char* function = "ClassifierRatio";
  const auto config = ratio_config(std::move(classifier), std::move(calibrator), given);
  const auto top = as_events(numerator, numerator_weights, function, "numerator");
  const auto names = names_of(numerator);
  const auto bottom = as_events(denominator, denominator_weights, function, "denominator", names);
  check_same_size(function, "a row of denominator", bottom.table.view.cols(), top.table.view.cols(),
                  "as numerator has");
  auto ratio = long_work([&] {
    const FoldedSample first(copied(top, function), config, 0);
    const FoldedSample second(copied(bottom, function), config, 1);
    return std::make_shared<const ClassifierRatio>(first, second, first_point, second_point,
                                                   config);
  });
  return {std::move(ratio), {}, names};
}

const Mixture& mixture_of(const Simulator& simulator, const char* function) {
  const auto* mixture = dynamic_cast<const Mixture*>(simulator.distribution.get());
  if (mixture == nullptr)
    fail_argument(function, "simulator", simulator.distribution->kind(), "a mixture");
  return *mixture;
}

AnyRatio decomposed(const Simulator& simulator, py::handle reference, std::size_t samples,
                    ClassifierPtr classifier, CalibratorPtr calibrator, const py::dict& given) {
  const char* function = "DecomposedRatio";
  const auto& mixture = mixture_of(simulator, function);
  const auto point = reference.is_none()
                         ? default_reference(simulator.parameters, {mixture.weight_expressions(),
                                                                    mixture.components().size()})
                         : as_point(reference, simulator.parameters, function, "reference");
  const auto config = ratio_config(std::move(classifier), std::move(calibrator), given);
  auto ratio = long_work([&] {
    for (const auto& component : mixture.components())
      for (std::size_t p = 0; p < simulator.parameters.size(); ++p)
        if (depends_on(*component, simulator.parameters, p))
          fail_argument(function, "a component", "a function of " + simulator.parameters[p].name,
                        "the same at every θ: θ may enter through the weights alone");
    std::vector<FoldedSample> parts;
    const std::size_t count = mixture.components().size();
    for (std::size_t c = 0; c < count; ++c) {
      const std::size_t events = samples / count + (c < samples % count ? 1 : 0);
      Samples part;
      part.x = sample(*mixture.components()[c], point, events,
                      derive_seed(config.seed, "component", c), "training");
      part.feature_names = default_feature_names(mixture.dimension());
      parts.emplace_back(std::move(part), config, c);
    }
    return std::make_shared<const DecomposedRatio>(
        parts, MixtureWeights(mixture.weight_expressions(), count), point, config);
  });
  return {std::move(ratio), simulator.parameters, feature_names_of(mixture)};
}

ParameterizedClassifierRatio::Across across_of(const std::string& name) {
  const std::vector<std::string> names = {"none", "on-demand", "interpolate", "smooth"};
  for (std::size_t i = 0; i < names.size(); ++i)
    if (names[i] == name) return static_cast<ParameterizedClassifierRatio::Across>(i);
  throw ArgumentError("ParameterizedRatio: " + unknown_name(name, "a calibration across θ", names));
}

ParameterizedClassifierRatio::Config parameterized_config(const ParameterSpace& parameters,
                                                          ClassifierPtr classifier,
                                                          py::handle reference,
                                                          CalibratorPtr calibrator,
                                                          const py::dict& given) {
  ParameterizedClassifierRatio::Config config;
  config.classifier = or_default(std::move(classifier));
  config.calibrator = std::move(calibrator);
  if (!reference.is_none()) {
    config.denominator = ParameterizedClassifierRatio::Denominator::point;
    config.reference = as_point(reference, parameters, "ParameterizedRatio", "reference");
  }
  take(given, "samples", config.samples);
  take(given, "folds", config.folds);
  take(given, "fresh", config.fresh);
  take(given, "calibration_events", config.calibration_events);
  take(given, "nodes", config.nodes);
  take(given, "seed", config.seed);
  if (given.contains("across")) config.calibration = across_of(given["across"].cast<std::string>());
  return config;
}

AnyRatio parameterized(const Simulator& simulator, const Design& design, ClassifierPtr classifier,
                       py::handle reference, CalibratorPtr calibrator, const py::dict& given) {
  const auto config = parameterized_config(simulator.parameters, std::move(classifier), reference,
                                           std::move(calibrator), given);
  auto ratio = long_work([&] {
    Progress progress("train", config.folds * Progress::fine);
    return std::make_shared<const ParameterizedClassifierRatio>(simulator.distribution, design,
                                                                config, &progress);
  });
  return {std::move(ratio), simulator.parameters, feature_names_of(*simulator.distribution)};
}

/// Of events that exist, each of which serves both sides.
AnyRatio parameterized_of_events(const Samples& events, const Design& design,
                                 ClassifierPtr classifier, const py::dict& given) {
  auto config =
      parameterized_config(design.parameters(), std::move(classifier), py::none(), nullptr, given);
  config.samples = events.size();
  config.calibration_events = 0;
  auto ratio = long_work([&] {
    Progress progress("train", config.folds * Progress::fine);
    return std::make_shared<const ParameterizedClassifierRatio>(events, Samples(), design, config,
                                                                nullptr, &progress);
  });
  return {std::move(ratio), design.parameters(), events.feature_names};
}

AnyRatio separable(const Samples& events, const Design& design, const py::dict& given) {
  auto config = from_arguments(
      "SeparableRatio", Settings(to_settings(given, "SeparableRatio")), [](Settings& all) {
        auto read = SeparableRatio::Config::from(all);
        all.skip("kind");
        read.folds = static_cast<std::size_t>(
            all.integer("folds", static_cast<std::int64_t>(read.folds), 2, 1000));
        read.seed = static_cast<std::uint64_t>(all.integer("seed", 0));
        return read;
      });
  auto ratio = long_work([&] {
    Progress progress("train", 2 * config.folds * Progress::fine);
    return std::make_shared<const SeparableRatio>(events, design, config, &progress);
  });
  return {std::move(ratio), design.parameters(), events.feature_names};
}

AnyRatio density(const Samples& events, const Design& design, const py::dict& given) {
  auto config = from_arguments("DensityRatio", Settings(to_settings(given, "DensityRatio")),
                               [](Settings& all) {
                                 auto read = DensityRatio::Config::from(all);
                                 all.skip("kind");
                                 read.seed = static_cast<std::uint64_t>(all.integer("seed", 0));
                                 return read;
                               });
  auto ratio = long_work([&] {
    Progress progress("train", config.members * Progress::fine);
    return std::make_shared<const DensityRatio>(events, design, config, &progress);
  });
  return {std::move(ratio), design.parameters(), events.feature_names};
}

AnyRatio learned(const Samples& events, const Design& design, const py::dict& given) {
  auto config = from_arguments("LearnedRatio", Settings(to_settings(given, "LearnedRatio")),
                               [](Settings& all) {
                                 auto read = LearnedRatio::Config::from(all);
                                 read.one_event = all.flag("one_event", read.one_event);
                                 all.skip("kind");
                                 read.seed = static_cast<std::uint64_t>(all.integer("seed", 0));
                                 return read;
                               });
  auto ratio = long_work([&] {
    Progress progress("train", Progress::fine);
    return std::make_shared<const LearnedRatio>(events, design, config, &progress);
  });
  return {std::move(ratio), design.parameters(), events.feature_names};
}

py::list candidates(const AnyRatio& self) {
  py::list out;
  const auto* learned = dynamic_cast<const LearnedRatio*>(self.ratio.get());
  if (learned == nullptr) return out;
  for (const auto& one : learned->candidates()) {
    py::dict row;
    row["name"] = one.name;
    row["trained"] = one.trained;
    row["score"] = one.score;
    row["behind"] = one.behind;
    row["behind_error"] = one.behind_error;
    row["seconds"] = one.seconds;
    row["share"] = one.share;
    row["chosen"] = one.chosen;
    row["note"] = one.note;
    out.append(std::move(row));
  }
  return out;
}

std::vector<std::string> untold(const AnyRatio& self) {
  std::vector<std::string> out;
  if (const auto* learned = dynamic_cast<const LearnedRatio*>(self.ratio.get()))
    for (const std::size_t p : learned->untold()) out.push_back(self.parameters[p].name);
  return out;
}

std::vector<std::string> unused(const AnyRatio& self) {
  const auto* learned = dynamic_cast<const LearnedRatio*>(self.ratio.get());
  return learned == nullptr ? std::vector<std::string>() : learned->unused();
}

py::array table_of(const AnyRatio& self, py::handle x, py::handle points) {
  const auto* across = dynamic_cast<const ParameterizedRatio*>(self.ratio.get());
  if (across == nullptr) fail_argument("table", "the ratio", self.ratio->kind(), "one across θ");
  const auto events = as_events(x, py::none(), "table", "x", self.feature_names).table;
  const auto theta = as_table(points, "table", "points", self.parameters.names());
  return to_array(long_work([&] { return across->table(events.view, theta.view); }));
}

py::array log_ratios(const AnyRatio& self, py::handle x, py::handle numerator,
                     py::handle denominator) {
  const auto table = as_events(x, py::none(), "log_ratios", "x", self.feature_names).table;
  const bool fixed = dynamic_cast<const ClassifierRatio*>(self.ratio.get()) != nullptr;
  const auto top =
      fixed ? first_point : as_point(numerator, self.parameters, "log_ratios", "numerator");
  const auto bottom =
      fixed ? second_point : as_point(denominator, self.parameters, "log_ratios", "denominator");
  return to_array(
      long_work([&] { return self.ratio->log_ratios(table.view, top, bottom).release(); }));
}

void save(const AnyRatio& self, Archive& archive) {
  archive.set("kind", self.ratio->kind());
  archive.set("feature_names", self.feature_names);
  save_parameters(self.parameters, archive);
  auto& content = archive.child("ratio");
  if (const auto* two = dynamic_cast<const ClassifierRatio*>(self.ratio.get())) {
    archive.set("kind", "two-samples");
    two->save(content);
  } else if (const auto* mixed = dynamic_cast<const DecomposedRatio*>(self.ratio.get())) {
    mixed->save(content);
  } else if (const auto* one = dynamic_cast<const ParameterizedRatio*>(self.ratio.get())) {
    one->save(content);
  } else {
    fail_argument("save", "ratio", self.ratio->kind(), "a learned one");
  }
}

AnyRatio loaded(const Archive& archive) {
  const auto& kind = archive.text("kind");
  AnyRatio out{nullptr, load_parameters(archive),
               archive.get<std::vector<std::string>>("feature_names")};
  const auto& content = archive.child("ratio");
  if (kind == "two-samples")
    out.ratio = std::make_shared<const ClassifierRatio>(content);
  else if (kind == "decomposed")
    out.ratio = std::make_shared<const DecomposedRatio>(content, out.parameters);
  else if (kind == "separable")
    out.ratio = std::make_shared<const SeparableRatio>(content, out.parameters);
  else if (kind == "density")
    out.ratio = std::make_shared<const DensityRatio>(content, out.parameters);
  else if (kind == "learned")
    out.ratio = std::make_shared<const LearnedRatio>(content, out.parameters);
  else if (kind == "classifier")
    out.ratio = std::make_shared<const ParameterizedClassifierRatio>(content, out.parameters);
  else
    throw FileError("has a ratio of kind '" + kind + "', which this version does not know");
  return out;
}

}  // namespace

Events as_events(py::handle value, py::handle weights, const char* function, const char* name,
                 const std::vector<std::string>& columns) {
  Events out;
  if (py::isinstance<Samples>(value)) {
    const auto& samples = value.cast<const Samples&>();
    out.table = {py::reinterpret_borrow<py::object>(value), samples.x};
    out.weights = samples.weights;
    if (!columns.empty() && samples.feature_names != columns) {
      std::string note;
      const auto taken = std::make_shared<Samples>(
          with_features(function, samples, columns, OtherColumns::leave_out, note));
      out.table = {py::cast(taken), taken->x};
    }
  } else {
    out.table = as_table(value, function, name, columns);
  }
  if (!weights.is_none()) out.weights = as_vector(weights, function, "weights").copy();
  if (!out.weights.empty())
    check_same_size(function, "weights", out.weights.size(), out.table.view.rows(),
                    "one for each event");
  return out;
}

OnnxOptions onnx_options(const ParameterSpace& parameters, py::handle numerator,
                         py::handle denominator) {
  OnnxOptions options;
  const auto point = [&](py::handle given, const char* name) {
    return as_point(given, parameters, "export_onnx", name);
  };
  if (!numerator.is_none()) options.numerator = point(numerator, "numerator");
  if (!denominator.is_none()) options.denominator = point(denominator, "denominator");
  return options;
}

void bind_ratios(py::module_& module) {
  py::class_<AnyRatio, std::shared_ptr<AnyRatio>>(module, "Ratio")
      .def_property_readonly("kind", [](const AnyRatio& self) { return self.ratio->kind(); })
      .def_readonly("parameters", &AnyRatio::parameters)
      .def_readonly("feature_names", &AnyRatio::feature_names)
      .def("log_ratios", &log_ratios, py::arg("x"), py::arg("numerator") = py::none(),
           py::arg("denominator") = py::none())
      .def_property_readonly("candidates", &candidates)
      .def_property_readonly("untold", &untold)
      .def_property_readonly("unused", &unused)
      .def("table", &table_of, py::arg("x"), py::arg("points"))
      .def("count_outside",
           [](const AnyRatio& self, py::handle x) {
             const auto table =
                 as_events(x, py::none(), "count_outside", "x", self.feature_names).table;
             return long_work([&] { return self.ratio->count_outside(table.view); });
           })
      .def("onnx",
           [](const AnyRatio& self, py::handle numerator, py::handle denominator) {
             auto options = onnx_options(self.parameters, numerator, denominator);
             options.feature_names = self.feature_names;
             return py::bytes(export_onnx(*self.ratio, options));
           })
      .def("_dump",
           [](const AnyRatio& self) {
             return dump("ratio", [&](Archive& archive) { save(self, archive); });
           })
      .def_static("_load", [](const py::bytes& bytes) { return load("ratio", bytes, loaded); });
  module.def("exact_ratio", [](const Simulator& simulator) {
    return AnyRatio{std::make_shared<const ExactRatio>(simulator.distribution),
                    simulator.parameters, feature_names_of(*simulator.distribution),
                    simulator.distribution};
  });
  module.def("two_sample_ratio", &two_samples);
  module.def("decomposed_ratio", &decomposed);
  module.def("parameterized_ratio_of_events", &parameterized_of_events);
  module.def("parameterized_ratio", &parameterized);
  module.def("separable_ratio", &separable);
  module.def("density_ratio", &density);
  module.def("learned_ratio", &learned);
}

}  // namespace neyman::python
