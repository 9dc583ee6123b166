#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "neyman/calibration/calibration_across.hpp"
#include "neyman/core/matrix.hpp"
#include "neyman/core/parameters.hpp"
#include "neyman/core/settings.hpp"

namespace neyman {

/// One calibration for all θ: log r as a function of the logit that varies smoothly with θ,
///
///   log r = −z + Σ_jk β_jk q_j(z) P_k(θ),
///
/// with q_0 = 1 (offset), q_1 ∝ z (slope), q_2 … bends (cubic splines on `knots` knots at
/// quantiles of the scores, straight outside of them), made orthonormal over the scores, and P_k
/// the constant and the Legendre products of PolynomialBasis up to a degree for each of the three.
///
/// β is the maximum of the likelihood of the logistic model P(numerator | z, θ) = r / (r + 1) (for
/// sides of equal weight) of all rows at once with normal priors N(0, 1/α); the precisions α, one
/// for each degree in θ of offset, slope and bends, maximise the marginal likelihood (MacKay,
/// Bayesian interpolation, 1992), so that a correction that the events do not ask for vanishes: a
/// score that is right is left alone but for the noise of few coefficients.
///
/// Rows of the same event are not independent; the likelihood is scaled so that its curvature
/// is, on average over the coefficients, the variance of its gradient over events. The
/// uncertainty is the posterior covariance of β.
///
/// Monotone: where the fitted log r would rise with z at some θ (looked for on some thousand
/// places) the slope and bends of all θ are shrunk towards −z as far as needed and the offsets
/// fitted again.
///
/// Beyond the range of the scores by more than `extrapolation` the log-ratio stays what it is
/// there. θ outside the ranges is extrapolated by the polynomials, and should not be asked for.
///
/// Known weaknesses: what the calibration needs beyond the degree in θ is not corrected; the
/// uncertainty does not tell of it.
class SmoothAcross final : public CalibrationAcross {
 public:
  struct Config {
    std::size_t offset_degree = 0;  ///< in θ; 0: 4 for one or two parameters, 3 to four, else 2
    std::size_t slope_degree = 2;   ///< in θ, at most that of the offset
    std::size_t bend_degree = 1;    ///< in θ, at most that of the slope
    std::size_t knots = 5;          ///< of the bends, 0 or at least 3: knots − 2 bends
    double extrapolation = 10.0;    ///< of z beyond the range of the scores
  };

  /// What it is fitted to: scores with the θ that each was made at. One event may have several
  /// rows, which stand together.
  struct Rows {
    std::span<const double> logits;
    MatrixView points;                          ///< θ of each row
    std::span<const std::uint8_t> denominator;  ///< 0 numerator, 1 denominator
    std::span<const double> weights = {};       ///< one a row, or empty: all 1
    /// A number of the event of each row, or empty: each its own.
    std::span<const std::uint32_t> events = {};
  };

  /// An empty one, to load into.
  SmoothAcross() = default;
  /// @throw ArgumentError where a degree is above 10, the degrees rise, or knots is 1, 2 or above
  ///   20.
  explicit SmoothAcross(ParameterSpace parameters)
      : SmoothAcross(std::move(parameters), Config{}) {}
  SmoothAcross(ParameterSpace parameters, Config config);

  /// @throw ArgumentError on sizes that disagree, values that are not finite, negative weights, or
  ///   a side without weight.
  void fit(const Rows& rows);
  bool fitted() const { return model_ != nullptr; }

  std::string kind() const override { return "smooth"; }
  LogRatios log_ratios(const Logits& logits, std::span<const double> point) const override;
  bool differentiable() const override { return true; }
  Derivatives derivatives(const Logits& logits, std::span<const double> point) const override;
  std::size_t count_outside(const Logits& logits, std::span<const double> point) const override;
  void save(Archive& archive) const override;
  void load(const Archive& archive) override;

  /// Standard deviation of each log-ratio from the finite calibration sample.
  std::vector<double> errors(const Logits& logits, std::span<const double> point) const;
  /// The covariance, from the finite calibration sample, of d/dθ Σ_i u_i log r(z_i(θ), θ), where
  /// `logit_gradients` are ∂z_i/∂θ (events × parameters) and `weights` are u (empty: 1).
  Matrix gradient_covariance(const Logits& logits, std::span<const double> point,
                             MatrixView logit_gradients, std::span<const double> weights) const;

  /// Effective number of coefficients, those that the events determine, and their number.
  double complexity() const;
  std::size_t coefficients() const;
  /// By how much slope and bends were shrunk to keep log r falling with z: 1 where not.
  double shrinkage() const;

 private:
  struct Model;
  const Model& model(const char* function, const Logits& logits,
                     std::span<const double> point) const;

  ParameterSpace parameters_;
  Config config_;
  std::shared_ptr<const Model> model_;
};

}  // namespace neyman
