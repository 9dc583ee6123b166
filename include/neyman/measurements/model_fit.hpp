#pragma once

#include <cstddef>
#include <functional>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "neyman/core/matrix.hpp"
#include "neyman/inference/fit.hpp"
#include "neyman/measurements/statistical_model.hpp"

namespace neyman {

struct ModelFitOptions {
  std::vector<double> start = {};  ///< empty: the model's
  /// Values of parameters that are held, beside those that the model fixes: one a parameter, or
  /// empty.
  std::vector<std::optional<double>> fixed = {};
  /// Other ranges of some parameters: one a parameter, or empty.
  std::vector<std::optional<FitRange>> ranges = {};
  double tolerance = 1e-9;  ///< of the expected distance of ℓ to its maximum before the last step
  bool covariance = true;   ///< false: it is zero
  /// Where ℓ may have several maxima: so many further starts, drawn (always the same) in the ranges
  /// of the parameters that make them, beside two near the ends of each range; 0: none. Default: 4
  /// where the coefficients of an unbinned channel have both signs, else none. In models without
  /// such coefficients the parameters without constraint are drawn.
  std::optional<std::size_t> starts = {};
};

/// The maximum of ℓ inside the parameters' ranges, the highest of those found: Newton's method with
/// exact second derivatives, whose last step leaves about 1e-9 of a standard error.
///
/// The covariance is the inverse of the exact information. With parameters at a bound it is the
/// inverse of the information expected at θ̂, as if the ranges went on: where ℓ has a slope, its
/// second derivatives depend on the parameterisation. Rows and columns of parameters that are held,
/// or end at a bound where nothing tells of them, are zero. A fit that does not arrive, or whose
/// information is not positive (the data do not determine some parameter), has the status failed
/// and a message; it never throws for that.
/// @throw ArgumentError where sizes disagree or a value is not finite or outside of its range.
Fit fit_model(const StatisticalModel& model, const MeasurementData& data,
              const ModelFitOptions& options = {});
/// The same for the observed data.
Fit fit_model(const StatisticalModel& model, const ModelFitOptions& options = {});

/// ρ_ij = C_ij / √(C_ii C_jj); zero where a parameter has no variance, one on the diagonal.
Matrix correlations(const Fit& fit);

/// The values of a parameter with −2 log Λ at most the χ²₁ quantile of the level, the others
/// profiled: the asymmetric errors of MINOS. `ok` is false where a profile fit failed or found a
/// better maximum. With `include_simulation`, the quantile is multiplied by 1 + σ²_simulation /
/// σ²_statistical of the fit: wider by what finite simulation adds.
/// @throw ArgumentError where the level or the parameter is out of range, or the fit failed
///   or holds the parameter.
Interval profile_interval(const StatisticalModel& model, const MeasurementData& data,
                          const Fit& best, std::size_t parameter, double level = 0.6826894921370859,
                          bool include_simulation = false);

/// Sets the fit's `simulation_covariance`, what finite simulation adds to its errors: the
/// covariance of the estimates over replicas of the model with their own observed data, which is
/// the same data as described by other simulations (LearnedChannel makes such channels). Each is
/// fitted from the estimate; parameters that the fit held are held. Where estimates end at a bound,
/// they do not scatter: what counts is then how far the slopes of the replicas at the estimate move
/// it, as if the range went on. Returns how many of the fits failed, which do not count.
/// @throw ArgumentError where the fit failed, a replica has other parameters, or fewer than two
///   converge.
std::size_t add_simulation_covariance(Fit& best, const StatisticalModel& model,
                                      std::size_t replicas,
                                      const std::function<StatisticalModel(std::size_t)>& replica);

/// −2 log Λ of a parameter.
struct ProfileScan {
  std::size_t parameter = 0;
  std::vector<double> values;
  std::vector<double> statistic;       ///< the others profiled; at most 10^6
  std::vector<double> held_statistic;  ///< the others held at their best fit: counts alone
  /// Profile fits that did not converge: their statistic is an upper bound.
  std::size_t failed = 0;
};
/// @throw ArgumentError where there are no values, one is outside of the parameter's range, or the
///   fit failed.
ProfileScan profile_scan(const StatisticalModel& model, const MeasurementData& data,
                         const Fit& best, std::size_t parameter, std::vector<double> values);

/// What the data say about a constrained parameter, in units of its constraint; log-normal
/// constraints: of the logarithms, σ = log κ.
struct Pull {
  std::size_t parameter = 0;
  double pull = 0.0;  ///< (θ̂ − θ_a) / σ, where θ_a is the auxiliary observation's best value
  double constraint = 1.0;  ///< error of θ̂ over σ: 1 where the data say nothing
};
/// One for each constraint of a parameter that is not held.
std::vector<Pull> pulls(const StatisticalModel& model, const MeasurementData& data,
                        const Fit& best);

/// How the estimate of interest moves with one auxiliary observation.
struct Impact {
  std::size_t parameter = 0;    ///< whose constraint it is
  double up = 0.0, down = 0.0;  ///< change of the estimate for ± one standard deviation
  bool ok = true;               ///< false where a fit failed; the changes are then zero
};
/// Fits again with each auxiliary observation moved by a standard deviation of its own at θ̂, and
/// ranks the constraints by the larger change. The changes of all and the statistical part add in
/// quadrature to the error of the estimate, for small ones, unlike those of shifted parameters.
std::vector<Impact> impacts(const StatisticalModel& model, const MeasurementData& data,
                            const Fit& best);

/// A part of an estimate's error.
struct ErrorPart {
  std::string group;
  double error = 0.0;
};
/// The error of the parameter of interest by groups of constraints, given as (name, names of
/// parameters or of modifiers); then "other" (constraints in no group) and "statistical" (the
/// counts). The variance is C_μμ = Σ_k C_μp² I_k + (C I_counts C)_μμ, where I_k is the information
/// of the constraint k of the parameter p: what the fluctuation of its auxiliary observation adds,
/// to first order. So the squares of the parts add up to the variance.
/// @throw ArgumentError where a name is unknown or has no constraint, or is in two groups, or the
///   fit has no covariance.
std::vector<ErrorPart> error_breakdown(
    const StatisticalModel& model, const MeasurementData& data, const Fit& best,
    const std::vector<std::pair<std::string, std::vector<std::string>>>& groups);

}  // namespace neyman
