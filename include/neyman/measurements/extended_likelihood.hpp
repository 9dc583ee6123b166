#pragma once

#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "neyman/core/matrix.hpp"
#include "neyman/core/parameters.hpp"
#include "neyman/inference/likelihood.hpp"
#include "neyman/simulators/mixture.hpp"

namespace neyman {

/// The exact extended likelihood of events, where the densities of all components are known:
///
///   ℓ(θ) = Σ_i w_i log Σ_c ν_c(θ) p_c(x_i | θ) − Σ_c ν_c(θ).
///
/// What learned ratios are compared with. Derivatives are exact but for those of log p_c and ν_c,
/// which are central differences over a thousandth of the parameters' ranges. Components that are
/// joins of independent distributions are evaluated part by part: what does not depend on θ is
/// computed once.
///
/// Constraints are added by a ConstrainedLikelihood.
class ExtendedLikelihood final : public Likelihood {
 public:
  /// `weights`: one an event, or empty: all 1.
  /// @throw ArgumentError where the mixture has no yields or no density, sizes disagree or a value
  ///   is not finite.
  ExtendedLikelihood(ParameterSpace parameters, const Mixture& mixture, MatrixView x,
                     std::vector<double> weights = {});

  const ParameterSpace& parameters() const override { return parameters_; }
  std::size_t events() const override { return events_; }
  double operator()(std::span<const double> point, std::span<double> gradient = {}) const override;
  std::optional<double> second_derivatives(std::span<const double> point,
                                           std::span<double> gradient,
                                           Matrix& hessian) const override;

 private:
  /// An independent factor of a component's density.
  struct Part {
    DistributionPtr density;
    Matrix x;                       // its columns
    std::vector<std::size_t> uses;  // parameters
  };
  struct Component {
    Expression yield;
    std::vector<double> fixed;      // log density of the parts without parameters, by event
    std::vector<Part> parts;        // the others
    std::vector<std::size_t> uses;  // parameters of the parts, each once
  };
  struct Jet;

  void add_parts(const DistributionPtr& density, MatrixView x, Component& to) const;
  Jet jet_of(const Component& component, std::span<const double> point, int order) const;
  double evaluate(std::span<const double> point, int order, std::span<double> gradient,
                  Matrix* hessian) const;
  double step(std::size_t parameter) const;

  ParameterSpace parameters_;
  std::vector<Component> components_;
  std::vector<double> weights_;
  std::size_t events_ = 0;
};

}  // namespace neyman
