#pragma once

#include <cstdint>
#include <functional>
#include <span>

#include "neyman/simulators/distribution.hpp"
#include "neyman/simulators/mixture_weights.hpp"

namespace neyman {

/// p(x|θ) = Σ wᵢ(θ) pᵢ(x|θ), with wᵢ >= 0 and Σ wᵢ = 1 at every θ where it is used.
///
/// In a study: kind = "mixture", components = [{kind = …, name = …}, …],
/// weights = ["(1 - gamma)/2", "(1 - gamma)/2", "gamma"]; with one weight fewer than components
/// the last is one minus their sum. Names default to c0, c1, …
///
/// Or with `yields`, the expected events νᵢ(θ) of each component, in the place of weights:
/// wᵢ = νᵢ / Σ ν, and a dataset has a Poisson number of events around Σ ν (a measurement).
class Mixture final : public Distribution {
 public:
  /// @throw ArgumentError where there is no component, their dimensions differ, the weights are
  ///   neither one for each nor one fewer, or they are numbers and not allowed.
  Mixture(std::vector<DistributionPtr> components, std::vector<Expression> weights,
          std::vector<std::string> names = {});
  /// The same with yields, one for each component, which are formulas of these parameters.
  static std::shared_ptr<const Mixture> of_yields(std::vector<DistributionPtr> components,
                                                  std::vector<Expression> yields,
                                                  const ParameterSpace& parameters,
                                                  std::vector<std::string> names = {});
  static DistributionPtr make(Settings settings, const ParameterSpace& parameters,
                              const std::string& folder);

  /// Expected events of each component; empty where it was made with weights.
  const std::vector<Expression>& yields() const { return yields_; }
  const std::vector<DistributionPtr>& components() const { return components_; }
  const std::vector<std::string>& names() const { return names_; }
  /// As given: the last may be implied and so absent.
  const std::vector<Expression>& weight_expressions() const { return weights_.expressions(); }
  /// One for each component, the implied one too.
  /// @throw ArgumentError unless they are not negative and their sum is 1.
  std::vector<double> weights(std::span<const double> point) const { return weights_(point); }

  std::string kind() const override { return "mixture"; }
  std::size_t dimension() const override { return components_.front()->dimension(); }
  /// Of the first component that has some; all that have some have the same.
  std::vector<std::string> feature_names() const override;
  std::vector<DistributionPtr> parts() const override { return components_; }
  std::optional<bool> depends_on(std::size_t parameter) const override;
  void sample(std::span<const double> point, RandomStream& random, Matrix& out) const override;
  void sample_each(MatrixView points, RandomStream& random, Matrix& out) const override;
  bool has_density() const override;
  void log_density(std::span<const double> point, MatrixView x,
                   std::span<double> out) const override;
  bool has_cdf() const override;
  double cdf(std::span<const double> point, double x) const override;
  double quantile(std::span<const double> point, double probability) const override;

 private:
  using DrawComponent = std::function<void(std::size_t k, Matrix& drawn)>;
  void draw(std::span<const std::uint32_t> choice, std::span<const std::size_t> sizes, Matrix& out,
            const DrawComponent& draw_component) const;

  std::vector<DistributionPtr> components_;
  MixtureWeights weights_;
  std::vector<Expression> yields_ = {};
  std::vector<std::string> names_;
};

}  // namespace neyman
