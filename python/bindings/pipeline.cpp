#include "neyman/pipeline/pipeline.hpp"

#include <pybind11/stl.h>

#include <filesystem>

#include "arrays.hpp"
#include "neyman/core/error.hpp"
#include "neyman/data/feature_columns.hpp"
#include "neyman/pipeline/learned_measurement.hpp"
#include "neyman/pipeline/model.hpp"
#include "neyman/pipeline/study.hpp"
#include "neyman/reports/results_json.hpp"
#include "neyman/reports/study_report.hpp"
#include "neyman/reports/summary.hpp"
#include "ratios.hpp"
#include "reports.hpp"
#include "settings.hpp"
#include "simulators.hpp"
#include "stored.hpp"
#include "work.hpp"

namespace neyman::python {

namespace {

/// What a run gave; without a model where that is in the run's folder alone, or cannot be kept.
struct AnyRun {
  Results results;
  std::shared_ptr<const Model> model;
  bool finished = true;
};

AnyRun run_study(const Study& study, const std::string& folder, const py::dict& given) {
  AnyRun out;
  if (folder.empty()) {
    auto done = long_work([&] { return run(study); });
    out.results = std::move(done.results);
    if (done.model.ratio || done.model.parameterized || done.model.measurement)
      out.model = std::make_shared<const Model>(std::move(done.model));
    return out;
  }
  RunOptions options;
  options.folder = folder;
  if (given.contains("start")) options.from = given["start"].cast<std::string>();
  if (given.contains("until")) options.until = given["until"].cast<std::string>();
  if (given.contains("fresh")) options.fresh = given["fresh"].cast<bool>();
  if (given.contains("figures")) options.figures = given["figures"].cast<bool>();
  options.command = "neyman.run(…) in Python";
  study.simulator->set_cache_folder(folder + "/cache");
  auto done = long_work([&] { return run(study, options); });
  out.results = std::move(done.results);
  out.finished = done.finished;
  const auto file = std::filesystem::path(folder) / "model.h5";
  if (out.finished && std::filesystem::exists(file))
    out.model = std::make_shared<const Model>(load_model(file.string()));
  return out;
}

AnyRatio ratio_of(const Model& model) {
  if (model.measurement)
    throw ArgumentError(
        "ratio: the model is of a measurement, whose likelihood is not one ratio; use fit, or "
        "statistical_model with neyman.measurements");
  RatioPtr ratio = model.ratio;
  if (!ratio) ratio = model.parameterized;
  return {std::move(ratio), model.parameters, model.feature_names};
}

}  // namespace

void bind_pipeline(py::module_& module) {
  py::class_<Study, std::shared_ptr<Study>>(module, "Study")
      .def_static("read",
                  [](const std::string& path, const std::shared_ptr<Samples>& observed) {
                    return long_work([&] { return read_study(path, observed); });
                  })
      .def_static("parse",
                  [](const std::string& text, const std::string& name, const std::string& folder) {
                    return long_work([&] { return parse_study(text, name, folder); });
                  })
      .def_static(
          "make",
          [](py::handle settings, const std::string& folder,
             const std::shared_ptr<Samples>& observed) {
            auto table = to_settings(settings, "study");
            return long_work([&] { return make_study(std::move(table), "", folder, observed); });
          })
      .def_readonly("name", &Study::name)
      .def_readonly("seed", &Study::seed)
      .def_readonly("folder", &Study::folder)
      .def_readonly("parameters", &Study::parameters)
      .def_property_readonly("settings", [](const Study& self) { return to_dict(self.settings); })
      .def_property_readonly("simulator",
                             [](const Study& self) {
                               return Simulator{self.simulator, self.parameters};
                             })
      .def("keep_in", [](const Study& self,
                         const std::string& folder) { self.simulator->set_cache_folder(folder); })
      .def("reseed", [](Study& self, std::uint64_t seed) { reseed(self, seed); });
  module.def("stage_names", &stage_names);

  py::class_<AnyRun, std::shared_ptr<AnyRun>>(module, "Run")
      .def_readonly("finished", &AnyRun::finished)
      .def_property_readonly("fitted",
                             [](const AnyRun& self) { return !self.results.fit.fit.point.empty(); })
      .def_property_readonly("name", [](const AnyRun& self) { return self.results.name; })
      .def_property_readonly("seed", [](const AnyRun& self) { return self.results.seed; })
      .def_property_readonly(
          "model", [](const AnyRun& self) { return std::const_pointer_cast<Model>(self.model); })
      .def_property_readonly(
          "measurement_summary",
          [](const AnyRun& self) {
            return std::const_pointer_cast<MeasurementSummary>(self.results.measurement_summary);
          })
      .def_property_readonly(
          "data",
          [](py::object self) { return view_of(self.cast<const AnyRun&>().results.data, self); })
      .def("json", [](const AnyRun& self) { return reports::results_json(self.results).text; })
      .def("summary", [](const AnyRun& self) { return reports::summary(self.results, false); })
      .def("figures", [](const AnyRun& self) { return figures_of(self.results); })
      .def("report", [](const AnyRun& self) { return reports::study_report(self.results); })
      .def("write", [](const AnyRun& self, const std::string& folder, bool figures, bool model) {
        auto results = self.results;
        return long_work([&] {
          return write_outputs(results, model ? self.model.get() : nullptr, folder, figures);
        });
      });
  module.def("run", &run_study);

  py::class_<Model, std::shared_ptr<Model>>(module, "Model")
      .def_static("load", &load_model)
      .def("save", [](const Model& self, const std::string& path) { save_model(self, path); })
      .def_readonly("name", &Model::name)
      .def_readonly("parameters", &Model::parameters)
      .def_readonly("feature_names", &Model::feature_names)
      .def_readonly("component_names", &Model::component_names)
      .def_readonly("classifier", &Model::classifier)
      .def_readonly("calibration", &Model::calibration)
      .def_property_readonly("ratio", &ratio_of)
      .def_property_readonly("is_measurement",
                             [](const Model& self) { return self.measurement != nullptr; })
      .def("onnx",
           [](const Model& self, py::handle numerator, py::handle denominator) {
             return py::bytes(
                 export_onnx(self, onnx_options(self.parameters, numerator, denominator)));
           })
      .def("statistical_model",
           [](const Model& self, const Samples& data) {
             return long_work([&] {
               std::string note;
               const auto events = with_features("statistical_model", data, self.feature_names,
                                                 OtherColumns::leave_out, note);
               return std::make_shared<StatisticalModel>(
                   measurement_model(self, events.x, events.weights));
             });
           })
      .def("fit",
           [](const Model& self, const Samples& data, const std::string& source) {
             return AnyRun{long_work([&] { return fit_data(self, data, source); }), nullptr};
           })
      .def("_dump",
           [](const Model& self) {
             return file_bytes([&](const std::string& path) { save_model(self, path); });
           })
      .def_static("_load", [](const py::bytes& bytes) {
        Model model;
        with_file(bytes, [&](const std::string& path) { model = load_model(path); });
        return model;
      });
}

}  // namespace neyman::python
