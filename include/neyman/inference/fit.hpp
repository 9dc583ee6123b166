#pragma once

#include <cstddef>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "neyman/core/matrix.hpp"
#include "neyman/inference/likelihood.hpp"

namespace neyman {

class Tasks;

enum class FitStatus {
  converged,
  at_bound,  ///< converged, with a parameter at an end of its range, or at the edge of where the
             ///< likelihood is allowed
  failed,    ///< the best point found is reported; it is not known to be the maximum
};
std::string to_string(FitStatus status);

/// A local maximum of ℓ.
struct Maximum {
  std::vector<double> point;
  double log_likelihood = 0.0;
  /// What finite simulation makes of ℓ(θ̂) − ℓ here: its standard deviation; 0 where not known.
  double simulation_error = 0.0;
};

/// The maximum-likelihood estimate and how it was found.
struct Fit {
  FitStatus status = FitStatus::failed;
  std::vector<double> point;    ///< θ̂
  double log_likelihood = 0.0;  ///< ℓ(θ̂), relative to the likelihood's reference
  /// Statistical covariance: the inverse of −∂²ℓ/∂θ∂θ', as if the ranges went on: of a parameter
  /// at a bound, too, it says how far an estimate scatters. Rows and columns of parameters that are
  /// fixed are zero, and those of one at a bound where ℓ bends upwards.
  Matrix covariance;
  /// What finite simulation adds to the covariance.
  Matrix simulation_covariance;
  /// Expected distance of ℓ to its maximum, ½ gᵀ C g, with the gradient g inside the bounds.
  double distance = 0.0;
  int evaluations = 0;
  /// By parameter: θ̂ ends at its range, and ℓ still rises outwards.
  std::vector<bool> at_bound = {};
  /// Without gradients: the RMS deviation of ℓ from a smooth curve within a standard error of θ̂,
  /// what a likelihood from simulations fluctuates by. 0 with gradients.
  double roughness = 0.0;
  std::string message = {};  ///< why the fit failed, or at which edge it ended; else empty
  /// Whether what finite simulation adds is known; zero is known where nothing is simulated.
  bool simulation_known = false;
  /// The maxima that the search has met with −2 log Λ at most `Fit::far`, θ̂ first, then the
  /// highest.
  std::vector<Maximum> maxima = {};
  static constexpr double far = 30.0;
  /// The covariance of ∂ℓ/∂θ over simulations, where `simulation_covariance` comes from it.
  Matrix gradient_covariance = {};

  bool ok() const { return status != FitStatus::failed; }
  /// Whether ℓ fluctuates so much (a tenth) that where it crosses a threshold says little.
  bool rough() const { return roughness >= 0.1; }
  /// Standard deviation of a parameter: statistical, and from finite simulation.
  double statistical_error(std::size_t parameter) const;
  double simulation_error(std::size_t parameter) const;
  /// Whether the two are known: not the first at a bound where ℓ bends upwards, nor the second
  /// without `simulation_known`. What is not known is 0 above.
  bool statistical_error_known(std::size_t parameter) const;
  bool simulation_error_known(std::size_t parameter) const;
  /// Both, added in quadrature.
  double error(std::size_t parameter) const;
};

enum class FitMethod {
  gradient,         ///< SLSQP with ∂ℓ/∂θ; without gradients where the likelihood has none
  derivative_free,  ///< Sbplx and BOBYQA: values of ℓ alone
};

/// Both ends belong to it.
struct FitRange {
  double low = 0.0, high = 1.0;
};

struct FitOptions {
  FitMethod method = FitMethod::gradient;
  std::vector<double> start = {};                 ///< empty: points spread over the ranges
  std::vector<std::optional<double>> fixed = {};  ///< one a parameter, or empty: none is fixed
  /// Narrower ranges of some parameters: one a parameter, or empty.
  std::vector<std::optional<FitRange>> ranges = {};
  /// Points of a low-discrepancy sequence over the ranges, beside `start`. Those that are higher
  /// than all near them are followed to their maximum, up to max(3, starts / 4), and the highest
  /// maximum is taken. 0: none where there is a start, else 20 for one parameter and 10 + 20 n for
  /// n, of which up to 16 are followed, fewer where the last ones lead to maxima that are known;
  /// with more than 20 000 events half as many, and up to 6.
  std::size_t starts = 0;
  /// Of `distance`, for status converged; where all searches end above it, what rounding to single
  /// precision may hide of ℓ.
  double tolerance = 1e-6;
  /// False: no second derivatives, which cost some evaluations a parameter; the covariance is
  /// zero. For the many fits of a profile.
  bool covariance = true;
  /// Without covariance: where the first attempt does not arrive and ℓ is below this, the search is
  /// given up. For profiles far from the maximum.
  double least = 2.0 * Likelihood::forbidden;
  /// Typical errors of the parameters, one each, in whose units the search is done; empty: the
  /// ranges.
  std::vector<double> scale = {};
};

/// Maximises ℓ within the parameters' ranges.
///
/// With gradients: SLSQP, then Newton steps, then a derivative-free search where these do not
/// arrive. Second derivatives are differences of gradients. Without: Sbplx and BOBYQA, restarted
/// until nothing is gained; second derivatives come from polynomials fitted to ℓ over about one
/// standard error, which average its fluctuations, and the fit counts as converged where the
/// fitted maximum is nearer than the tolerance plus five times the `roughness`.
///
/// A periodic parameter has no bound: searches go over the seam, and maxima are told apart by the
/// shorter way round.
///
/// A direction in which ℓ changes by less than the tolerance over the whole range is a failed
/// fit that names the parameters. Where the maximum lies at the edge of the forbidden region, the
/// fit follows that edge, and ends `at_bound` with a message. Deterministic.
///
/// Never throws for a fit that fails: the status and the message say so. A maximum narrower than
/// the spread of the starts can be missed.
/// @throw ArgumentError where sizes disagree, or a fixed value or a range is not finite or a range
///   is empty or outside that of the parameter.
Fit fit(const Likelihood& likelihood, const FitOptions& options = {});

/// Sets the fit's `simulation_covariance` from the replicas of the ratio that it was made with;
/// without replicas it stays unknown.
void add_simulation_covariance(Fit& fit, const ParameterSpace& parameters,
                               const MixtureRatio& ratio, MatrixView x,
                               std::span<const double> event_weights);
/// The same from the covariance of ∂ℓ/∂θ over simulations, G: C G C, with C the statistical
/// covariance.
void add_simulation_covariance(Fit& fit, const Matrix& gradient_covariance);

/// −2 log Λ at θ: twice the drop of ℓ from its maximum; never negative.
double test_statistic(const Likelihood& likelihood, const Fit& fit, std::span<const double> point);

/// −2 log Λ with some parameters fixed and the others profiled: 2 (ℓ(θ̂) − max ℓ), where the
/// maximum is over the others. Never negative.
/// @throw ArgumentError where `fixed` has not one value a parameter.
double profile_statistic(const Likelihood& likelihood, const Fit& best,
                         const std::vector<std::optional<double>>& fixed);

/// A confidence interval for one parameter: a set, of one piece or of several.
///
/// Of a periodic parameter it is a set on the circle, and its pieces are told as they surround the
/// estimate: a piece with the estimate inside may begin below the parameter's range or end above
/// it, where it goes over the seam. Another piece is told with its middle in the range. A piece is
/// as wide as its ends are apart, and holds a value that is inside it after some whole turns. Where
/// no value is excluded, the one piece is the range; no end is ever at a bound.
struct Interval {
  double level = 0.683;
  double low = 0.0, high = 0.0;                      ///< of the first piece and of the last
  bool low_at_bound = false, high_at_bound = false;  ///< ends at the parameter's range
  /// Ends where θ beyond, or beside, are not allowed: where the design of a learned ratio has no
  /// events, or the likelihood is forbidden for another reason.
  bool low_at_edge = false, high_at_edge = false;
  /// False where an end is not to be trusted: the fit or one of the profile failed, or a higher
  /// likelihood was found on the way. The message says which.
  bool ok = true;
  std::string message = {};
  std::vector<FitRange> pieces = {};  ///< in rising order, with gaps between them
  std::vector<double> higher = {};    ///< a point where ℓ is higher than at the fit, or empty

  /// Whether a value lies in one of the pieces, after whole turns where the parameter is periodic.
  bool holds(double value, const Parameter& parameter) const;
};

/// The values of a parameter with −2 log Λ at most the χ²₁ quantile of the level, the other
/// parameters profiled. With `include_simulation`, the threshold is multiplied by
/// 1 + σ²_simulation / σ²_statistical: the likelihood widened by what finite simulation adds.
/// Around another maximum it is raised further, by 2 √t times the standard deviation over
/// simulations of how much lower that one is, up to where it is as high as the first. At a
/// bound where ℓ bends upwards there is no such ratio: the threshold t is then raised to
/// t + 2 √(t v) at θ, with v the variance over simulations of ℓ(θ̂) − ℓ(θ), to first order.
///
/// It is looked for over the parameter's whole range: on a grid, whose profile fits follow every
/// known maximum and come from both sides, in the valleys between its nodes, and around each of the
/// fit's `maxima` in steps of about a standard error. Each end is then found by root finding, so
/// that the pieces are asymmetric where ℓ is. A piece can be missed that is narrower than a step of
/// the grid (a hundredth of the range for one parameter, a thirty-second with others, twice that
/// with more than 20 000 events) and leads to none of the maxima.
///
/// Where ℓ turns out to be higher than at the fit, the interval is that of the higher maximum, and
/// the message says so. Where ℓ is rough, its crossings are an accident: the ends are then those of
/// the parabola of the covariance, which averages the fluctuations.
/// @throw ArgumentError where the level or the parameter is out of range.
Interval likelihood_interval(const Likelihood& likelihood, const Fit& best, std::size_t parameter,
                             double level, bool include_simulation);

/// The same with a threshold of −2 log Λ of one's own, for example from simulated data; the level
/// is only carried along.
Interval likelihood_interval(const Likelihood& likelihood, const Fit& best, std::size_t parameter,
                             double level, double threshold);

/// A better fit: from a point where ℓ is higher than at the fit that is known. It keeps the other's
/// maxima.
Fit refit(const Likelihood& likelihood, const Fit& best, const Maximum& higher);

/// −2 log Λ along one parameter, the others profiled.
struct Scan {
  std::size_t parameter = 0;
  std::vector<double> values;
  std::vector<double> statistic;
  std::size_t failed =
      0;  ///< profile fits that did not converge: their statistic is an upper bound
  /// Where ℓ is higher than at the fit: −2 log Λ is then that of the higher maximum. Else empty.
  std::string message = {};
  std::vector<double> higher = {};  ///< the point; or empty
};
/// Each profile fit follows the neighbours on both sides and every known maximum.
Scan scan(const Likelihood& likelihood, const Fit& best, std::size_t parameter, double low,
          double high, std::size_t points);

/// −2 log Λ over two parameters, the others profiled.
struct Surface {
  std::size_t first = 0, second = 1;
  std::vector<double> x, y;  ///< values of the first and of the second parameter
  Matrix statistic;          ///< a row for each y, a column for each x
  std::size_t failed = 0;    ///< profile fits that did not converge: upper bounds
  std::string message = {};  ///< as of a scan
  std::vector<double> higher = {};
};
/// On the grid x × y. Rows run in parallel, each from the estimate's x outwards and back with warm
/// starts of its own: the same numbers for any number of threads. They are `tasks` where others
/// share them.
/// @throw ArgumentError where the parameters are the same or out of range, or a list is empty or
///   not inside the parameter's range.
Surface scan_surface(const Likelihood& likelihood, const Fit& best, std::size_t first,
                     std::size_t second, std::vector<double> x, std::vector<double> y,
                     Tasks* tasks = nullptr);

}  // namespace neyman
