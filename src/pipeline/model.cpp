#include "neyman/pipeline/model.hpp"

#include <cmath>

#include "neyman/core/error.hpp"
#include "neyman/core/parameters_archive.hpp"
#include "neyman/data/archive_file.hpp"
#include "neyman/measurements/onnx_channel.hpp"
#include "neyman/pipeline/learned_measurement.hpp"
#include "neyman/ratios/classifier_across.hpp"
#include "neyman/ratios/density_ratio.hpp"
#include "neyman/ratios/learned_ratio.hpp"
#include "neyman/ratios/separable_ratio.hpp"
#include "pipeline/stages.hpp"

namespace neyman {

namespace {
constexpr const char* model_schema = "neyman.model";
constexpr int model_version = 1;

/// A row for each constraint: kind, parameter, observed value, width.
Matrix write_constraints(const std::vector<Constraint>& constraints) {
  Matrix out(constraints.size(), 4);
  for (std::size_t i = 0; i < constraints.size(); ++i) {
    out(i, 0) = static_cast<double>(constraints[i].kind());
    out(i, 1) = static_cast<double>(constraints[i].parameter());
    out(i, 2) = constraints[i].observed();
    out(i, 3) = constraints[i].width();
  }
  return out;
}

std::vector<Constraint> read_constraints(const Matrix& rows, std::size_t parameters) {
  std::vector<Constraint> out;
  for (std::size_t i = 0; i < rows.rows(); ++i) {
    if (rows.cols() != 4 || !(rows(i, 1) >= 0.0 && rows(i, 1) < static_cast<double>(parameters)))
      throw FileError("has a constraint of a parameter that it does not have");
    const auto parameter = static_cast<std::size_t>(rows(i, 1));
    if (rows(i, 0) == static_cast<double>(Constraint::Kind::gaussian))
      out.push_back(Constraint::gaussian(parameter, rows(i, 2), rows(i, 3)));
    else if (rows(i, 0) == static_cast<double>(Constraint::Kind::log_normal))
      out.push_back(Constraint::log_normal(parameter, rows(i, 2), std::exp(rows(i, 3))));
    else
      out.push_back(Constraint::poisson(parameter, rows(i, 2), rows(i, 3)));
  }
  return out;
}

Model from_archive(const Archive& archive) {
  Model model;
  model.name = archive.text("name");
  model.seed = static_cast<std::uint64_t>(archive.integer("seed"));
  model.classifier = archive.text("classifier");
  model.calibration = archive.text("calibration");
  model.feature_names = archive.get<std::vector<std::string>>("feature_names");
  model.component_names = archive.get<std::vector<std::string>>("component_names");
  model.levels = archive.numbers("levels");
  model.scan_points = static_cast<std::size_t>(archive.integer("scan_points"));
  model.parameters = load_parameters(archive);
  if (archive.has("constraints"))
    model.constraints =
        read_constraints(archive.get<Matrix>("constraints"), model.parameters.size());
  if (archive.has_child("measurement")) {
    model.measurement = std::make_shared<LearnedMeasurement>(
        LearnedMeasurement::load(archive.child("measurement"), model.parameters));
    return model;
  }
  const Archive& ratio = archive.child("ratio");
  // Models without a kind are from before there were others.
  const std::string kind = archive.has("ratio_kind") ? archive.text("ratio_kind") : "decomposed";
  if (kind == "decomposed") {
    const auto decomposed = std::make_shared<DecomposedRatio>(ratio, model.parameters);
    if (decomposed->normalisation().size() != decomposed->components())
      throw FileError("its ratio is not calibrated");
    model.ratio = decomposed;
  } else if (kind == "learned")
    model.parameterized = std::make_shared<LearnedRatio>(ratio, model.parameters);
  else if (kind == "density")
    model.parameterized = std::make_shared<DensityRatio>(ratio, model.parameters);
  else if (kind == "separable")
    model.parameterized = std::make_shared<SeparableRatio>(ratio, model.parameters);
  else if (kind == "classifier")
    model.parameterized = std::make_shared<ParameterizedClassifierRatio>(ratio, model.parameters);
  else
    throw FileError("has a ratio of kind '" + kind + "', which this version does not know");
  return model;
}

}  // namespace

void save_model(const Model& model, const std::string& path) {
  pipeline::check_whole("save_model", model);
  Archive archive;
  archive.set("name", model.name);
  archive.set("seed", static_cast<std::int64_t>(model.seed));
  archive.set("classifier", model.classifier);
  archive.set("calibration", model.calibration);
  archive.set("feature_names", model.feature_names);
  archive.set("component_names", model.component_names);
  archive.set("levels", model.levels);
  archive.set("scan_points", model.scan_points);
  save_parameters(model.parameters, archive);
  if (!model.constraints.empty()) archive.set("constraints", write_constraints(model.constraints));
  if (model.measurement) {
    model.measurement->save(archive.child("measurement"));
  } else {
    archive.set("ratio_kind", model.ratio ? model.ratio->kind() : model.parameterized->kind());
    if (model.ratio)
      model.ratio->save(archive.child("ratio"));
    else
      model.parameterized->save(archive.child("ratio"));
  }
  write_archive(path, archive, model_schema, model_version);
}

Model load_model(const std::string& path) {
  const Archive archive = read_archive(path, model_schema, model_version).tree;
  try {
    return from_archive(archive);
  } catch (const Interrupted&) {
    throw;
  } catch (const std::exception& error) {
    // Also what a size or a value in it breaks: the seal is a checksum that anybody can make.
    throw FileError(path + ": is not a whole model: " + error.what());
  }
}

std::string export_onnx(const Model& model, OnnxOptions options) {
  pipeline::check_whole("export_onnx", model);
  if (!model.measurement) {
    options.feature_names = model.feature_names;
    if (model.ratio) return export_onnx(*model.ratio, options);
    return export_onnx(*model.parameterized, options);
  }
  if (options.numerator || options.denominator)
    throw ArgumentError(
        "export_onnx: numerator and denominator are given, but must be absent: the graph of a "
        "measurement is that of its components, with their parameters as inputs");
  std::vector<std::string> yields;
  for (const auto& yield : model.measurement->yields) yields.push_back(yield.text());
  return export_onnx(model.measurement->channel, yields);
}

}  // namespace neyman
