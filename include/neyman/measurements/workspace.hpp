#pragma once

#include <array>
#include <cstddef>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

// A binned measurement as plain values: what a workspace of pyhf holds, and the same names. It is
// read, written and edited here; a StatisticalModel (statistical_model.hpp) is made of it.
namespace neyman {

/// How a parameter changes the expected yields of a sample. Modifiers of the same name share their
/// parameter, over samples, channels and kinds.
///
/// - norm_factor: × μ, free.
/// - lumi: × λ, constrained by N(a, σ²), both from the measurement.
/// - norm_sys: × f(α), constrained by N(0, 1): high^α for α ≥ 1, low^(−α) for α ≤ −1, between
///   them a polynomial with the same first and second derivatives at both ends.
/// - histo_sys: + δ_b(α), constrained by N(0, 1): α (high_b − ν_b) for α ≥ 1, α (ν_b − low_b)
///   for α ≤ −1, between them a polynomial with the same derivatives as before.
/// - shape_factor: × γ_b, one a bin, free.
/// - shape_sys: × γ_b, one a bin, constrained by n_b ~ Poisson(γ_b τ_b), where τ_b =
///   (ν_b / uncertainty_b)².
/// - stat_error: × γ_b, shared by the samples of the channel, constrained by N(1, σ_b²), where
///   σ_b² = Σ uncertainty² / (Σ ν)² over the samples with this modifier (Barlow and Beeston's
///   light form).
///
/// Where a bin of shape_sys or stat_error has no yield or no uncertainty it has no parameter.
struct Modifier {
  enum class Kind { norm_factor, norm_sys, histo_sys, shape_sys, stat_error, shape_factor, lumi };
  Kind kind = Kind::norm_factor;
  std::string name;
  /// norm_sys: one value each; histo_sys: the yields of the sample, one a bin.
  std::vector<double> low = {}, high = {};
  /// shape_sys and stat_error: the absolute uncertainty of the yield, one a bin.
  std::vector<double> uncertainty = {};

  static Modifier norm_factor(std::string name);
  static Modifier norm_sys(std::string name, double low, double high);
  static Modifier histo_sys(std::string name, std::vector<double> low, std::vector<double> high);
  static Modifier shape_sys(std::string name, std::vector<double> uncertainty);
  static Modifier stat_error(std::string name, std::vector<double> uncertainty);
  static Modifier shape_factor(std::string name);
  static Modifier lumi(std::string name = "lumi");

  bool operator==(const Modifier&) const = default;
};

/// The name of a kind in a workspace of pyhf: "normfactor", "histosys", …
std::string to_string(Modifier::Kind kind);

/// A component of a channel: signal, or one of the backgrounds.
struct BinnedSample {
  std::string name;
  std::vector<double> yields;  ///< expected events, one a bin
  std::vector<Modifier> modifiers = {};

  bool operator==(const BinnedSample&) const = default;
};

/// A histogram of counts and the samples that are expected to make it.
struct BinnedChannel {
  std::string name;
  std::vector<BinnedSample> samples;
  std::vector<double> observed;  ///< one a bin

  bool operator==(const BinnedChannel&) const = default;
};

/// What a measurement says about a parameter beside its modifiers: each list empty (the default of
/// the modifier), or with one value for each parameter of that name.
struct ParameterSettings {
  std::string name;
  std::vector<double> start = {};
  std::vector<std::array<double, 2>> range = {};
  std::vector<double> auxiliary = {};  ///< the auxiliary observations of the constraint
  std::vector<double> sigma = {};      ///< standard deviations of Gaussian constraints
  std::vector<double> tau = {};        ///< of Poisson constraints
  /// Factors of one standard deviation of log-normal constraints: of normfactor, shapefactor and
  /// the parameters of shapes and of yield functions, or in place of sigma for a luminosity. pyhf
  /// has none.
  std::vector<double> kappa = {};
  std::optional<bool> fixed = {};  ///< at the start value

  bool operator==(const ParameterSettings&) const = default;
};

/// What is measured: the parameter of interest (may be empty: none) and the settings of others.
struct MeasurementSettings {
  std::string name;
  std::string interest;
  std::vector<ParameterSettings> parameters = {};

  bool operator==(const MeasurementSettings&) const = default;
};

struct Workspace {
  std::vector<BinnedChannel> channels;
  std::vector<MeasurementSettings> measurements;

  bool operator==(const Workspace&) const = default;
};

/// Reads a workspace of pyhf (JSON, schema 1.0.0).
/// @throw FileError "path: channels[0].samples[1].data is …, but must be …" where the file
///   cannot be read, is not JSON, or does not hold what it should: an unknown key or kind of
///   modifier, a channel without observations, a number that is not finite. Whether the numbers fit
///   together is checked where the model is made.
Workspace read_workspace(const std::string& path);
/// The same from text; `source` is named in errors.
Workspace parse_workspace(std::string_view json, const std::string& source = "workspace");

/// The workspace as JSON that pyhf reads; reading it again gives the same workspace.
/// @throw ArgumentError where a parameter has a log-normal constraint, which pyhf does not have.
std::string workspace_json(const Workspace& workspace);
/// Writes it, whole or not at all. @throw FileError where it cannot be written.
void write_workspace(const Workspace& workspace, const std::string& path);

}  // namespace neyman
