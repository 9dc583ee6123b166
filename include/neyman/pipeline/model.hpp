#pragma once

#include <memory>
#include <string>
#include <vector>

#include "neyman/core/parameters.hpp"
#include "neyman/inference/constraint.hpp"
#include "neyman/ratios/decomposed_ratio.hpp"
#include "neyman/ratios/parameterized_ratio.hpp"

namespace neyman {

/// A trained and calibrated ratio with what is needed to use it on new data.
struct MeasurementSummary;

struct Model {
  std::string name;
  std::uint64_t seed = 0;
  ParameterSpace parameters;
  std::vector<std::string> feature_names, component_names;
  std::string classifier, calibration;  ///< kinds
  std::vector<double> levels;
  std::size_t scan_points = 101;
  std::shared_ptr<const DecomposedRatio> ratio;             ///< of a mixture's components, or null
  std::shared_ptr<const ParameterizedRatio> parameterized;  ///< where `ratio` is null
  std::vector<Constraint> constraints;
  /// What a measurement found, for its report, or null; not saved.
  std::shared_ptr<const MeasurementSummary> measurement;
  /// Whether it can be used without the simulator, and so be saved.
  bool complete = true;
};

/// Schema "neyman.model/1": an HDF5 file, written atomically, with a checksum.
void save_model(const Model& model, const std::string& path);
/// @throw FileError where the file is missing, damaged, or of a newer version.
Model load_model(const std::string& path);

}  // namespace neyman
