#pragma once

#include "neyman/simulators/distribution.hpp"

namespace neyman {

/// The Ricker model of a population, seen through counts (Wood 2010):
///   N_{t+1} = r N_t exp(−N_t + e_t),  e_t ~ N(0, σ_e²),  y_t ~ Poisson(φ N_t).
/// An event is a series y of T counts after a burn-in that is not observed, begun at N = 1.
/// Its likelihood is an integral over all e_t and is not known: no density.
///
/// In a study: kind = "ricker", log_r, phi, sigma_e, observations (T), burn_in.
class Ricker final : public Distribution {
 public:
  struct Config {
    std::size_t observations = 50;  ///< T
    std::size_t burn_in = 50;       ///< steps before the first observation
  };

  /// @throw ArgumentError where phi or sigma_e are numbers and negative, or T is 0.
  Ricker(Expression log_r, Expression phi, Expression sigma_e, Config config);
  Ricker(Expression log_r, Expression phi, Expression sigma_e);
  static DistributionPtr make(Settings settings, const ParameterSpace& parameters,
                              const std::string& folder);

  std::string kind() const override { return "ricker"; }
  std::size_t dimension() const override { return config_.observations; }
  /// @throw ArgumentError where the expected count exceeds a million.
  void sample(std::span<const double> point, RandomStream& random, Matrix& out) const override;

 private:
  Expression log_r_, phi_, sigma_e_;
  Config config_;
};

}  // namespace neyman
