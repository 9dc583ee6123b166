#include <pybind11/stl.h>

#include "arrays.hpp"
#include "neyman/calibration/calibrator.hpp"
#include "neyman/core/check.hpp"
#include "settings.hpp"
#include "stored.hpp"
#include "work.hpp"

namespace neyman::python {

namespace {

using CalibratorPtr = std::shared_ptr<Calibrator>;

CalibratorPtr make_calibrator(py::handle settings) {
  Settings table(to_settings(settings, "calibrator"));
  const auto kind = table.is_text("kind") ? table.text("kind", "") : "calibrator";
  return from_arguments(kind, table, [](Settings& all) { return make_calibrator(all); });
}

WeightMeaning meaning_of(const std::string& name) {
  const std::vector<std::string> names = {"automatic", "counts", "relative"};
  for (std::size_t i = 0; i < names.size(); ++i)
    if (names[i] == name) return static_cast<WeightMeaning>(i);
  throw ArgumentError("fit: " + unknown_name(name, "a meaning of weights", names));
}

void fit_calibrator(Calibrator& self, py::handle numerator, py::handle denominator,
                    py::handle numerator_weights, py::handle denominator_weights,
                    const std::optional<std::string>& meaning) {
  const auto function = self.kind() + ".fit";
  const auto side = [&](py::handle value, const char* name) {
    return as_vector(value, function.c_str(), name);
  };
  const auto top = side(numerator, "numerator"), bottom = side(denominator, "denominator");
  const auto top_weights = side(numerator_weights, "numerator_weights");
  const auto bottom_weights = side(denominator_weights, "denominator_weights");
  CalibrationSet data{top.values, bottom.values, top_weights.values, bottom_weights.values};
  if (meaning) data.weight_meaning = meaning_of(*meaning);
  long_work([&] { self.fit(data); });
}

Logits as_logits(const Calibrator& self, py::handle logits, const char* what) {
  return Logits(as_vector(logits, (self.kind() + what).c_str(), "logits").copy());
}

}  // namespace

void bind_calibration(py::module_& module) {
  module.def("calibrator_kinds", &calibrator_kinds);
  py::class_<Calibrator, CalibratorPtr>(module, "Calibrator")
      .def(py::init(&make_calibrator), py::arg("settings"))
      .def_property_readonly("kind", &Calibrator::kind)
      .def_property_readonly("fitted", &Calibrator::fitted)
      .def_property_readonly("low", &Calibrator::low)
      .def_property_readonly("high", &Calibrator::high)
      .def("fit", &fit_calibrator, py::arg("numerator"), py::arg("denominator"),
           py::arg("numerator_weights"), py::arg("denominator_weights"), py::arg("weight_meaning"))
      .def("log_ratios",
           [](const Calibrator& self, py::handle logits) {
             const auto z = as_logits(self, logits, ".log_ratios");
             return to_array(short_work([&] { return self.log_ratios(z).release(); }));
           })
      .def("errors",
           [](const Calibrator& self, py::handle logits) {
             const auto z = as_logits(self, logits, ".errors");
             return to_array(short_work([&] { return self.errors(z); }));
           })
      .def("count_outside",
           [](const Calibrator& self, py::handle logits) {
             return self.count_outside(as_logits(self, logits, ".count_outside"));
           })
      .def("_dump",
           [](const Calibrator& self) {
             return dump("calibrator", [&](Archive& archive) { save_calibrator(self, archive); });
           })
      .def_static("_load", [](const py::bytes& bytes) -> CalibratorPtr {
        return load("calibrator", bytes,
                    [](const Archive& archive) { return load_calibrator(archive); });
      });
}

}  // namespace neyman::python
