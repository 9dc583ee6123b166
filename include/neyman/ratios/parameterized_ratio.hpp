#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "neyman/core/archive.hpp"
#include "neyman/core/matrix.hpp"
#include "neyman/core/parameters.hpp"
#include "neyman/ratios/ratio.hpp"
#include "neyman/simulators/design_region.hpp"

namespace neyman {

/// log r summed over one dataset, as a function of θ: ℓ(θ) = Σ_i u_i log r(x_i; θ) up to a
/// constant that does not depend on θ. It keeps what it needs of the events.
class SummedRatio {
 public:
  virtual ~SummedRatio() = default;
  /// ℓ(θ), and ∂ℓ/∂θ where `gradient` is not empty.
  virtual double operator()(std::span<const double> point, std::span<double> gradient) const = 0;
  /// ℓ at many θ, one per row.
  virtual std::vector<double> at(MatrixView points) const;
  /// Whether `gradient` may be asked for.
  virtual bool differentiable() const = 0;
  /// The covariance of ∂ℓ/∂θ at θ from finite simulation (training or calibration events);
  /// zero where it is not known.
  virtual Matrix simulation_gradient_covariance(std::span<const double> point) const = 0;
  /// What ℓ would be had other events been simulated: `count` replicas (rows) of ℓ at `points` (a
  /// column for each row of it), up to a constant of each replica; empty where the fluctuation is
  /// not known. Here to first order: ℓ plus a normal gradient, times the way from the points'
  /// mean, where `simulation_gradient_covariance` is taken.
  virtual Matrix simulation_replicas(MatrixView points, std::size_t count,
                                     std::uint64_t seed) const;

 protected:
  /// ℓ at points plus normal multiples of deviations: a row of these per thing that fluctuates.
  static Matrix replicas_of(std::span<const double> values, const Matrix& deviations,
                            std::size_t count, std::uint64_t seed);
};

/// A learned ratio whose numerator is any θ within the ranges of the parameters: one model for
/// all θ. What the denominator is does not matter to a likelihood; `log_ratios` takes two θ.
///
/// Outside of its `region`, where the design has no events, it is an extrapolation: a likelihood
/// does not allow such θ.
class ParameterizedRatio : public Ratio {
 public:
  explicit ParameterizedRatio(ParameterSpace parameters) : parameters_(std::move(parameters)) {}

  const ParameterSpace& parameters() const { return parameters_; }
  /// The θ that it was trained at. Everywhere in what older versions saved.
  const DesignRegion& region() const { return region_; }
  virtual std::size_t features() const = 0;
  /// The likelihood of a dataset. `event_weights`: one an event, or empty: all 1. The ratio must
  /// outlive it.
  virtual std::unique_ptr<SummedRatio> over(MatrixView x,
                                            std::span<const double> event_weights = {}) const = 0;
  /// log r(x_i; θ_j) up to a function of x alone: one row per event, one column per point.
  virtual Matrix table(MatrixView x, MatrixView points) const;
  virtual void save(Archive& archive) const = 0;

 protected:
  /// `log_ratios` of a model whose `table` is its own.
  /// @throw ArgumentError where a point is outside the ranges.
  LogRatios from_table(const char* function, MatrixView x, std::span<const double> numerator,
                       std::span<const double> denominator) const;
  void save_region(Archive& archive) const;
  void load_region(const Archive& archive);

  ParameterSpace parameters_;
  DesignRegion region_;
};

}  // namespace neyman
