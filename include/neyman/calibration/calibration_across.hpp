#pragma once

#include <cstddef>
#include <span>
#include <string>
#include <vector>

#include "neyman/core/archive.hpp"
#include "neyman/core/matrix.hpp"
#include "neyman/core/scales.hpp"

namespace neyman {

/// A calibration at every θ: the log-ratio of the densities of a parameterised score,
/// log p(z|θ)/p(z|θ1) for z = z(x; θ), as a function of z and θ.
class CalibrationAcross {
 public:
  virtual ~CalibrationAcross() = default;

  virtual std::string kind() const = 0;  ///< "on-demand", "interpolate", "smooth", "none"
  /// The calibrated log-ratio of logits that the classifier gave at θ; finite.
  /// @throw ArgumentError before the fit, on NaN or infinite logits, and on a point of another
  /// number of parameters or that is not finite.
  virtual LogRatios log_ratios(const Logits& logits, std::span<const double> point) const = 0;

  /// Whether log r varies smoothly, so that `derivatives` may be asked for.
  virtual bool differentiable() const { return false; }
  struct Derivatives {
    LogRatios value;
    std::vector<double> by_logit;  ///< ∂ log r / ∂z, one an event
    Matrix by_point;               ///< ∂ log r / ∂θ at fixed z, events × parameters
  };
  /// The log-ratio with its derivatives with respect to z, and to θ at fixed z.
  /// @throw ArgumentError where the kind has none, and as for `log_ratios`.
  virtual Derivatives derivatives(const Logits& logits, std::span<const double> point) const;

  /// How many logits lie outside the calibrated range at θ.
  virtual std::size_t count_outside(const Logits& logits, std::span<const double> point) const = 0;

  virtual void save(Archive& archive) const = 0;
  virtual void load(const Archive& archive) = 0;
};

}  // namespace neyman
