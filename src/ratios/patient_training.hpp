#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "neyman/core/progress.hpp"

namespace neyman::across {

/// How the networks of a density and of a ratio learn: steps of Adam over batches, at a rate that
/// rises and falls, with looks at events that they do not learn from. After several looks without a
/// better one training goes back to the best, and ends with a rate that falls to nothing.
class PatientTraining {
 public:
  struct Options {
    std::size_t epochs = 20, batch_size = 512;
    double learning_rate = 3e-3;  ///< the highest
    std::uint64_t seed = 0;
  };

  virtual ~PatientTraining() = default;
  /// Learns from these rows, and leaves the weights as they were at the best look, whose merit it
  /// returns.
  double run(std::span<const std::uint32_t> rows, const Options& options, Progress* progress);

 protected:
  /// What is learned: numbers, and their gradient, which a step leaves at zero.
  struct Weights {
    float* values;
    std::vector<float> gradient;
    double decay = 0.0;  ///< they fall by this times the rate with each step
  };
  std::vector<Weights> weights_;

  /// The rows of one pass in their order; by default each of them once.
  virtual std::vector<std::uint32_t> pass(std::span<const std::uint32_t> rows, std::uint64_t seed,
                                          std::size_t epoch);
  /// Adds the gradient of the mean loss of one batch.
  virtual void learn(std::span<const std::uint32_t> batch) = 0;
  /// How good the weights are for events that do not learn: the higher the better.
  virtual double look() = 0;

 private:
  void shorten();
};

}  // namespace neyman::across
