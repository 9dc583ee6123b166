#include "neyman/pipeline/model.hpp"

#include "neyman/core/error.hpp"
#include "neyman/data/archive_file.hpp"

namespace neyman {

namespace {
constexpr const char* schema = "neyman.model";
constexpr int version = 1;

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
  const auto& names = archive.get<std::vector<std::string>>("parameters");
  const auto& ranges = archive.get<Matrix>("ranges");
  std::vector<Parameter> parameters;
  for (std::size_t p = 0; p < names.size(); ++p)
    parameters.push_back({names[p], ranges(p, 0), ranges(p, 1), {}});
  model.parameters = ParameterSpace(std::move(parameters));
  model.ratio = std::make_shared<DecomposedRatio>(archive.child("ratio"), model.parameters);
  return model;
}

}  // namespace

void save_model(const Model& model, const std::string& path) {
  Archive archive;
  archive.set("name", model.name);
  archive.set("seed", static_cast<std::int64_t>(model.seed));
  archive.set("classifier", model.classifier);
  archive.set("calibration", model.calibration);
  archive.set("feature_names", model.feature_names);
  archive.set("component_names", model.component_names);
  archive.set("levels", model.levels);
  archive.set("scan_points", model.scan_points);
  archive.set("parameters", model.parameters.names());
  Matrix ranges(model.parameters.size(), 2);
  for (std::size_t p = 0; p < model.parameters.size(); ++p) {
    ranges(p, 0) = model.parameters[p].low;
    ranges(p, 1) = model.parameters[p].high;
  }
  archive.set("ranges", ranges);
  model.ratio->save(archive.child("ratio"));
  write_archive(path, archive, schema, version);
}

Model load_model(const std::string& path) {
  const Archive archive = read_archive(path, schema, version).tree;
  try {
    return from_archive(archive);
  } catch (const FileError& error) {
    throw FileError(path + ": is not a whole model: " + error.what());
  }
}

}  // namespace neyman
