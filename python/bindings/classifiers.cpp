#include <pybind11/stl.h>

#include "arrays.hpp"
#include "neyman/classifiers/classifier.hpp"
#include "neyman/core/check.hpp"
#include "settings.hpp"
#include "stored.hpp"
#include "work.hpp"

namespace neyman::python {

namespace {

using ClassifierPtr = std::shared_ptr<Classifier>;

ClassifierPtr make_classifier(py::handle settings) {
  Settings table(to_settings(settings, "classifier"));
  const auto kind = table.is_text("kind") ? table.text("kind", "") : "classifier";
  return from_arguments(kind, table, [](Settings& all) { return make_classifier(all); });
}

void fit_classifier(Classifier& self, py::handle x, py::handle denominator, py::handle weights,
                    std::optional<std::uint64_t> seed) {
  const auto function = self.kind() + ".fit";
  const auto table = as_table(x, function.c_str(), "x");
  const auto labels = as_integers(denominator, function.c_str(), "y");
  const auto row_weights = as_vector(weights, function.c_str(), "sample_weight");
  if (!weights.is_none())
    check_same_size(function, "sample_weight", row_weights.values.size(), table.view.rows(),
                    "one for each row");
  std::vector<std::uint8_t> sides;
  for (const auto label : labels) sides.push_back(label != 0 ? 1 : 0);
  TrainingSet data{table.view, sides, row_weights.values};
  if (seed) data.seed = *seed;
  long_work([&] { self.fit(data); });
}

py::array logits(const Classifier& self, py::handle x) {
  const auto table = as_table(x, (self.kind() + ".logits").c_str(), "x");
  return to_array(long_work([&] { return self.logits(table.view).release(); }));
}

py::array gradient(const Classifier& self, py::handle x) {
  const auto table = as_table(x, (self.kind() + ".gradient").c_str(), "x");
  return to_array(long_work([&] { return self.gradient(table.view); }));
}

}  // namespace

void bind_classifiers(py::module_& module) {
  module.def("classifier_kinds", &classifier_kinds);
  py::class_<Classifier, ClassifierPtr>(module, "Classifier")
      .def(py::init(&make_classifier), py::arg("settings"))
      .def_property_readonly("kind", &Classifier::kind)
      .def_property_readonly("fitted", &Classifier::fitted)
      .def_property_readonly("features", &Classifier::features)
      .def_property_readonly("differentiable", &Classifier::differentiable)
      .def("fit", &fit_classifier, py::arg("x"), py::arg("denominator"), py::arg("weights"),
           py::arg("seed"))
      .def("logits", &logits, py::arg("x"))
      .def("gradient", &gradient, py::arg("x"))
      .def("_dump",
           [](const Classifier& self) {
             return dump("classifier", [&](Archive& archive) { save_classifier(self, archive); });
           })
      .def_static("_load", [](const py::bytes& bytes) -> ClassifierPtr {
        return load("classifier", bytes,
                    [](const Archive& archive) { return load_classifier(archive); });
      });
}

}  // namespace neyman::python
