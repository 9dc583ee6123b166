#pragma once

#include <memory>
#include <string>
#include <vector>

#include "neyman/core/parameters.hpp"
#include "neyman/inference/constraint.hpp"
#include "neyman/ratios/decomposed_ratio.hpp"
#include "neyman/ratios/onnx_export.hpp"
#include "neyman/ratios/parameterized_ratio.hpp"

namespace neyman {

struct LearnedMeasurement;

/// A trained and calibrated ratio, or a measurement, with what is needed to use it on new data.
struct Model {
  std::string name;
  std::uint64_t seed = 0;
  ParameterSpace parameters;
  std::vector<std::string> feature_names, component_names;
  std::string classifier, calibration;  ///< kinds
  std::vector<double> levels;
  std::size_t scan_points = 101;
  std::shared_ptr<const DecomposedRatio> ratio;             ///< of a mixture's components, or null
  std::shared_ptr<const ParameterizedRatio> parameterized;  ///< where the others are null
  std::shared_ptr<const LearnedMeasurement> measurement;  ///< or null: see learned_measurement.hpp
  std::vector<Constraint> constraints;
  /// Whether it can be used without the simulator, and so be saved.
  bool complete = true;
};

/// Schema "neyman.model/1": an HDF5 file, written atomically, with a checksum.
void save_model(const Model& model, const std::string& path);
/// Nothing in a file is executed; formulas of yields are parsed.
/// @throw FileError where the file is missing, damaged, or of a newer version.
Model load_model(const std::string& path);

/// The model as one graph of ONNX: that of its ratio (ratios/onnx_export.hpp), or that of a
/// measurement's channel (measurements/onnx_channel.hpp), whose metadata have the formulas of the
/// yields. Names of features are the model's.
/// @throw ArgumentError as these say, and where points are given for a measurement.
std::string export_onnx(const Model& model, OnnxOptions options = {});

}  // namespace neyman
