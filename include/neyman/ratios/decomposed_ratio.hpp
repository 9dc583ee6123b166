#pragma once

#include <string>
#include <vector>

#include "neyman/ratios/cross_fit.hpp"
#include "neyman/ratios/mixture_ratio.hpp"

namespace neyman {

/// The ratio of two mixtures from calibrated ratios between pairs of components,
///
///   r(x; θ0, θ1) = Σ_c [ Σ_c' w_c'(θ1)/w_c(θ0) · p_c'(x)/p_c(x) ]⁻¹,
///
/// that is q_c(x) = [ Σ_c' w_c'(θ1) ρ_c'c(x) ]⁻¹. Each unordered pair is trained once,
/// ρ_cc' = 1/ρ_c'c, ρ_cc = 1, and one sample of each component serves all its pairs.
class DecomposedRatio final : public MixtureRatio {
 public:
  /// Bound of |log ρ| between two components: sums of e^±300 and their inverses stay doubles.
  static constexpr double pair_limit = 300.0;

  /// `samples` holds one sample for each component. Each fold of each pair is one of the `tasks`
  /// where others share them.
  DecomposedRatio(const std::vector<FoldedSample>& samples, MixtureWeights weights,
                  std::vector<double> reference, const RatioConfig& config, Tasks* tasks = nullptr);
  /// The same in two steps: what is only trained can be saved and loaded, and gives no ratios
  /// before `calibrate`, which takes the same samples.
  static DecomposedRatio trained(const std::vector<FoldedSample>& samples, MixtureWeights weights,
                                 std::vector<double> reference, const RatioConfig& config,
                                 Tasks* tasks = nullptr);
  void calibrate(const std::vector<FoldedSample>& samples, const RatioConfig& config,
                 Tasks* tasks = nullptr);
  /// What `save` wrote.
  DecomposedRatio(const Archive& archive, const ParameterSpace& parameters);

  std::string kind() const override { return "decomposed"; }
  Matrix component_ratios(MatrixView x) const override;
  std::vector<double> normalisation() const override { return normalisation_; }
  std::size_t replicas() const override;
  Scores score(MatrixView x) const override;
  Matrix replica_ratios(const Scores& scores, std::size_t replica) const override;
  std::vector<double> replica_normalisation(std::size_t replica) const override;
  std::size_t count_outside(MatrixView x) const override;

  /// q_c of each event of a sample that it was trained with, by classifiers that have not seen it.
  Matrix held_out_ratios(const FoldedSample& sample) const;
  /// log r̂ between the components c and c' of every event.
  LogRatios pair_log_ratios(MatrixView x, std::size_t numerator, std::size_t denominator) const;
  /// The trained pair c < c'.
  const CrossFit& pair(std::size_t numerator, std::size_t denominator) const;
  void save(Archive& archive) const;

 private:
  DecomposedRatio(MixtureWeights weights, std::vector<double> reference)
      : MixtureRatio(std::move(weights), std::move(reference)) {}

  std::vector<CrossFit::Pair> members(const std::vector<FoldedSample>& samples) const;
  std::size_t pair_index(std::size_t c, std::size_t d) const;
  template <class PairLogRatio>
  Matrix compose(std::size_t events, PairLogRatio&& pair_log_ratio) const;
  std::vector<double> held_out_means(const std::vector<FoldedSample>& samples,
                                     const std::vector<std::vector<Logits>>& scores,
                                     std::size_t replica) const;

  std::vector<CrossFit> pairs_;  // (0,1), (0,2), …, (1,2), …
  std::vector<double> normalisation_;
  std::vector<std::vector<double>> replica_normalisation_;
};

}  // namespace neyman
