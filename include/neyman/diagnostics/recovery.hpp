#pragma once

#include <cstddef>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "neyman/core/matrix.hpp"
#include "neyman/diagnostics/diagnostic.hpp"
#include "neyman/inference/constraint.hpp"
#include "neyman/inference/fit.hpp"
#include "neyman/inference/likelihood.hpp"

namespace neyman {

/// What the fit of many events that were simulated at an estimate θ̂ has found: the bias of the
/// whole estimate at θ̂, as far as their number shows it. All for every parameter in order; rows and
/// columns of those that the estimate does not determine (fixed, at a bound) are zero.
struct Recovery {
  std::vector<double> from;   ///< θ̂
  std::vector<double> shift;  ///< where the events are fitted, less θ̂
  Matrix noise;               ///< covariance of the shift, as there are so many events
  Matrix simulation;          ///< the same from finite simulation, as reported
  Matrix statistical;         ///< covariance of θ̂ from the data: what a shift is measured by
  /// Standard deviation of the scores of the events, over what the curvature of the likelihood
  /// promises: an error that is right has 1 of it.
  std::vector<double> spread;
  double events = 0.0;
  double parts = 0.0;  ///< from which the noise is estimated
};

/// Fits events that were simulated at the estimate.
///
/// The sum of the parts' likelihoods is maximised from θ̂, by steps with the curvature of the data's
/// fit (scaled to the number of events) that are halved where they do not help. Constraints enter
/// as if their auxiliary measurements were those expected at θ̂, scaled likewise. The noise comes
/// from the scatter of the parts' gradients, so that it holds for a likelihood that is wrong.
/// @param estimate of the data, with its covariance.
/// @param data_events the sum of the weights of the data.
/// @param parts likelihoods of events simulated at θ̂, of about equally many, without constraints.
///   Those without gradients are followed for one step, by differences over a standard error.
/// @param gradient_covariance of the gradient of all parts together, from finite simulation; empty:
///   none known.
/// @throw ArgumentError with fewer parts than 4, or than two more than parameters that are
///   determined, or where sizes disagree.
Recovery recover(const Fit& estimate, double data_events,
                 std::span<const std::unique_ptr<const Likelihood>> parts,
                 const Matrix& gradient_covariance, std::span<const Constraint> constraints = {});

struct RecoveryConfig {
  /// A shift of so many statistical errors of the data does no harm.
  double tolerance = 0.1;
  double harmful = 1.0;  ///< of these: a shift that fails, and does not only warn
  /// Where the noise of the shift is larger than so many statistical errors of the data, the check
  /// sees nothing that matters.
  double power = 1.0;
  std::vector<std::string> names = {};  ///< of the parameters
};

/// Are parameters found again where events are simulated at the estimate? The statistic is the
/// shift dᵀ (N + S)⁻¹ d in its own noise N and in what finite simulation is reported to add, S; by
/// Hotelling's distribution, as N is estimated. A shift beyond the tolerance is what is counted.
/// The p-value decides whether the estimate is biased; how far, in errors of the data, whether that
/// is a warning or a failure. It has no power where the noise is large in those.
///
/// False-alarm rate with exact likelihoods and tolerance 0, by simulation at a level of 1 %: 0.5 to
/// 1.5 %.
/// @throw ArgumentError where sizes disagree or nothing is determined.
Diagnostic diagnose_recovery(const Recovery& recovery, const RecoveryConfig& config = {});

/// Adds the shift to the simulation covariance of a fit, d dᵀ, where it is more than the noise and
/// what was reported explain (the warning level): the error then holds the bias that was measured.
/// Returns whether it did.
bool add_recovered_shift(Fit& fit, const Recovery& recovery, const Diagnostic& judged);

}  // namespace neyman
