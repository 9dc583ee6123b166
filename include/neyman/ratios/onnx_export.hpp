#pragma once

#include <optional>
#include <string>
#include <vector>

#include "neyman/ratios/ratio.hpp"

namespace neyman {

struct OnnxOptions {
  /// θ0 and θ1 where they are to be constants of the graph.
  std::optional<std::vector<double>> numerator = {}, denominator = {};
  std::vector<std::string> feature_names = {};  ///< of the columns of x, for the metadata
};

/// A learned ratio as one graph of ONNX (https://onnx.ai), from the features of events to log r:
/// standardisation, classifiers, calibration, average over the folds and normalisation. What comes
/// back are the bytes of an .onnx file, which other programs can evaluate without neyman.
///
/// Inputs, all tables of doubles:
/// - `x`, one row an event;
/// - of a decomposed mixture `numerator_weights` and `denominator_weights`, the weights w_c(θ0) and
///   w_c(θ1) of the components, which are not checked;
/// - of a parameterised ratio `numerator` and `denominator`, that is θ0 and θ1.
/// The latter have one row for all events, or one for each; they are not there where the options
/// fix them. A classifier ratio has none of them, and one that was trained against a fixed point
/// has that as its denominator where the options name no other. Output: `log_r`, a list of doubles.
///
/// Networks compute in float, as here, all else in double; trees add up in float. Differences from
/// `log_ratios` are those of rounding: below 10⁻⁵ in log r for networks, 10⁻¹² for logistic
/// regression, as long as the calibration has no steps. Inputs are not checked: NaN gives NaN, and
/// θ outside of the ranges is extrapolated.
///
/// IR version 7, operators version 13 and, for trees, ai.onnx.ml 1: for ONNX 1.8 (2020) and later.
/// @throw ArgumentError for ratios that are exact or tabulated, for classifiers made outside of the
///   library, for calibrations that are interpolated between nodes of θ or made on demand, and
///   where a point does not fit.
std::string export_onnx(const Ratio& ratio, const OnnxOptions& options = {});

}  // namespace neyman
