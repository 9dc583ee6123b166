#pragma once

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "neyman/inference/constraint.hpp"
#include "neyman/inference/experiment.hpp"
#include "neyman/inference/likelihood.hpp"
#include "neyman/ratios/mixture_ratio.hpp"
#include "neyman/simulators/mixture.hpp"
#include "neyman/simulators/normal.hpp"

namespace neyman::benchmarks {

/// μ and the nuisance parameters ν at which toys are drawn.
inline std::vector<double> search_truth() { return {0.05, 0.0, 0.0, 0.0, 0.0, 0.0}; }

/// The search for a narrow signal over six kinds of background, whose shares are known to some
/// percent: p(x) = μ s(x) + (1 − μ) Σ_k b_k (1 + 0.2 ν_k) p_k(x), where the sixth kind has what the
/// others leave. Each ν_k has an auxiliary measurement a_k ~ N(ν_k, 1).
struct SearchExample {
  static constexpr std::size_t nuisances = 5;

  ParameterSpace parameters;
  std::shared_ptr<const Mixture> mixture;
  std::shared_ptr<const ExactMixtureRatio> ratio;

  SearchExample() {
    std::vector<Parameter> all{{"mu", 0.0, 0.5, 0.05}};
    for (std::size_t k = 1; k <= nuisances; ++k)
      all.push_back({std::string("nu").append(std::to_string(k)), -4.5, 4.5, 0.0, true});
    parameters = ParameterSpace(std::move(all));
    const std::vector<std::pair<double, double>> shapes{
        {5.0, 0.3}, {0.0, 1.0}, {2.0, 1.0}, {4.0, 1.5}, {6.0, 1.5}, {8.0, 1.0}, {5.0, 4.0}};
    std::vector<DistributionPtr> components;
    for (const auto& [mean, sigma] : shapes)
      components.push_back(std::make_shared<Normal>(mean, sigma));
    const char* const shares[nuisances] = {"0.10", "0.15", "0.20", "0.15", "0.10"};
    std::vector<Expression> weights{{"mu", parameters}};
    for (std::size_t k = 1; k <= nuisances; ++k)
      weights.emplace_back(
          "(1 - mu) * " + std::string(shares[k - 1]) + " * (1 + 0.2 * nu" + std::to_string(k) + ")",
          parameters);
    mixture = std::make_shared<Mixture>(std::move(components), std::move(weights));
    ratio = std::make_shared<ExactMixtureRatio>(mixture, search_truth());
  }

  std::vector<Constraint> constraints(const std::vector<double>& measured = {}) const {
    std::vector<Constraint> out;
    for (std::size_t k = 0; k < nuisances; ++k)
      out.push_back(Constraint::gaussian(k + 1, measured.empty() ? 0.0 : measured[k], 1.0));
    return out;
  }

  /// Of given events and auxiliary measurements.
  std::unique_ptr<Likelihood> likelihood(MatrixView x, const std::vector<double>& measured) const {
    return std::make_unique<ConstrainedLikelihood>(
        std::make_shared<MixtureLikelihood>(parameters, *ratio, x), constraints(measured));
  }

  Experiment experiment(std::size_t events) const {
    return make_experiment(
        *mixture, events,
        [this](Matrix x) { return std::make_unique<MixtureLikelihood>(parameters, *ratio, x); },
        constraints());
  }
};

}  // namespace neyman::benchmarks
