#pragma once

#include <cstddef>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "neyman/core/archive.hpp"
#include "neyman/ratios/ratio.hpp"
#include "neyman/simulators/mixture.hpp"
#include "neyman/simulators/mixture_weights.hpp"

namespace neyman {

/// A ratio of mixtures whose parameters enter through the weights alone,
///
///   p(x|θ) = Σ_c w_c(θ) p_c(x),   r(x; θ0, θ1) = Σ_c w_c(θ0) q_c(x) / Z(θ0),
///   q_c(x) = p_c(x) / p(x|θ1).
///
/// The component ratios q_c do not depend on θ0: they are evaluated once for each event, and a
/// likelihood in θ0 then costs one dot product and a logarithm for each event.
class MixtureRatio : public Ratio {
 public:
  MixtureRatio(MixtureWeights weights, std::vector<double> reference);

  const MixtureWeights& weights() const { return weights_; }
  /// θ1, the denominator of the component ratios.
  const std::vector<double>& reference() const { return reference_; }
  std::size_t components() const { return weights_.size(); }

  /// q_c(x): one row an event, one column a component; positive and finite.
  virtual Matrix component_ratios(MatrixView x) const = 0;
  /// Z_c, the mean of q_c over the denominator, in the order of the components:
  /// Z(θ0) = Σ_c w_c(θ0) Z_c. Ones where the ratio is exact or is not normalised.
  virtual std::vector<double> normalisation() const;

  /// How many replicas of the ratio express the uncertainty from finite simulation.
  virtual std::size_t replicas() const { return 0; }
  /// The same of replica b. `scores` is what `score` returned for x: classifiers run once.
  struct Scores {
    std::vector<Matrix> of_pair;
  };
  virtual Scores score(MatrixView x) const;
  virtual Matrix replica_ratios(const Scores& scores, std::size_t replica) const;
  virtual std::vector<double> replica_normalisation(std::size_t replica) const;

  LogRatios log_ratios(MatrixView x, std::span<const double> numerator,
                       std::span<const double> denominator) const override;

 protected:
  MixtureWeights weights_;
  std::vector<double> reference_;
};

/// θ1 where nobody chooses one, at which every component has a share: the middle of the ranges, or,
/// where the weights there are not all positive, the mean of the points of the ranges where they
/// are.
/// @throw ArgumentError where no such point is found.
std::vector<double> default_reference(const ParameterSpace& parameters,
                                      const MixtureWeights& weights);

/// The exact component ratios of a mixture whose components know their densities.
class ExactMixtureRatio final : public MixtureRatio {
 public:
  /// @throw ArgumentError where a component's density is not known or depends on θ.
  ExactMixtureRatio(std::shared_ptr<const Mixture> mixture, std::vector<double> reference);
  std::string kind() const override { return "exact"; }
  Matrix component_ratios(MatrixView x) const override;

 private:
  std::shared_ptr<const Mixture> mixture_;
};

}  // namespace neyman
