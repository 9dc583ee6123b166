#pragma once

#include <cstddef>
#include <limits>
#include <optional>
#include <string>
#include <vector>

#include "measurements/interpolation.hpp"
#include "measurements/unbinned_terms.hpp"
#include "neyman/measurements/statistical_model.hpp"

// A model as loops run over it. Parameters that act on whole samples come first, then those of one
// bin each.
namespace neyman::detail {

inline constexpr std::size_t no_parameter = std::numeric_limits<std::size_t>::max();

/// A factor of a whole sample: the parameter itself, or an interpolation in it.
struct FactorTerm {
  std::size_t parameter = 0;
  std::size_t slot = 0;  ///< of the parameter in the channel's `shared`
  std::optional<FactorInterpolation> interpolation = {};
};

/// A shift of all bins of a sample.
struct ShiftTerm {
  std::size_t parameter = 0;
  std::size_t slot = 0;
  std::vector<double> up, down;
};

/// A factor of each bin, a parameter of its own.
struct BinFactorTerm {
  std::vector<std::size_t> parameters;  ///< one a bin, or no_parameter
  std::vector<std::size_t> entries;     ///< one a bin: where in the channel's `bin_parameters`
};

struct CompiledSample {
  std::size_t name = 0;  ///< index into the model's names of samples
  std::vector<double> yields;
  std::vector<FactorTerm> factors;
  std::vector<ShiftTerm> shifts;
  std::vector<BinFactorTerm> bin_factors;
};

struct CompiledChannel {
  std::string name;
  std::size_t first_bin = 0, bins = 0;
  std::vector<CompiledSample> samples;
  std::vector<std::size_t> shared;  ///< parameters of factors and shifts, each once
  /// The parameters of bin b are bin_parameters[bin_begin[b]] to [bin_begin[b + 1]), each once.
  std::vector<std::size_t> bin_begin, bin_parameters;
};

struct CompiledModel {
  ParameterSpace parameters;
  std::optional<std::size_t> interest;
  std::vector<double> start;
  std::vector<bool> fixed;
  std::vector<Constraint> constraints;
  std::vector<std::size_t> constraint_of;  ///< by parameter, or no_parameter
  MeasurementData observed;
  std::vector<std::string> sample_names;
  std::vector<CompiledChannel> channels;
  std::size_t bins = 0;
  std::vector<CompiledUnbinned> unbinned;
  /// Parameters of coefficients that add up with both signs, for which ℓ may have several maxima.
  std::vector<std::size_t> interfering;
};

/// @throw ArgumentError as StatisticalModel says.
CompiledModel compile(const Workspace& workspace, const std::vector<UnbinnedChannel>& unbinned,
                      const MeasurementSettings& measurement);

}  // namespace neyman::detail
