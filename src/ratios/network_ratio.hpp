#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "neyman/core/progress.hpp"
#include "neyman/data/samples.hpp"
#include "neyman/distributed/tasks.hpp"
#include "neyman/ratios/parameterized_ratio.hpp"
#include "neyman/simulators/design.hpp"

namespace neyman {

/// A parameterised ratio from a full network of x and θ, which needs no density of the features:
///
///   log r(x; θ) = v · L(σ(a(x) + b(θ))) + c(x) · d(θ) − log Z(θ)
///
/// with a, b, c, d outputs of networks of x or θ alone, computed once for each event or θ, and L a
/// hidden layer for each pair. It learns to tell an event's own θ from those of other events, drawn
/// anew for every batch (van den Oord et al. 2018; Miller et al., NRE-C, 2022).
///
/// `members` networks are trained, each without one of so many folds, which tells it when to stop.
/// Events of that fold normalise it, too: over all events, posteriors add up to the prior, so that
///
///   Z(θ) = mean_i exp h(x_i, θ) / ∫ π(θ') exp h(x_i, θ') dθ',
///
/// whose logarithm is kept as a polynomial. Where posteriors are too narrow for an integral over a
/// lattice, or parameters too many, Z is left out. The mean of the members is taken at θ + ε(θ), a
/// smooth shift that makes the mean score of events that they have not learned from zero at every
/// θ. The noise of that shift, and the members' scatter, are the uncertainty from finite
/// simulation.
///
/// What is normalised so is normalised only as well as polynomials tell. Of datasets of many events
/// a density, where it can be learned, is the safer model.
class NetworkRatio final : public ParameterizedRatio {
 public:
  struct Config {
    /// Units of each layer, a multiple of 16 (rounded up); 0: by the number of events.
    std::size_t width = 0;
    /// How much the weights that see x are held back, times the rate; < 0: of two strengths the one
    /// that the first member's held-out fold likes better.
    double decay = -1.0;
    std::size_t contrasts = 32;  ///< θ that each event's own is among: 2 to 128
    std::size_t members = 5;
    std::size_t parts = 0;        ///< of the events, of which each member lacks one; 0: as many
    std::size_t epochs = 0;       ///< passes over the data; 0: by their number, 2 to 100
    std::size_t batch_size = 0;   ///< events a step; 0: by their number, 32 to 256
    double learning_rate = 3e-3;  ///< the highest of a cosine with a short rise
    std::uint64_t seed = 0;
  };

  /// Trains on events with θ drawn from the design. Only ratios of their weights matter. Each
  /// member is one of the `tasks` where others share them.
  /// @throw ArgumentError where the events have no θ, a weight is negative, or there are fewer than
  ///   20 events a member.
  NetworkRatio(const Samples& events, const Design& design, const Config& config,
               Progress* progress = nullptr, Tasks* tasks = nullptr);
  /// What `save` wrote.
  NetworkRatio(const Archive& archive, ParameterSpace parameters);
  ~NetworkRatio() override;

  std::string kind() const override { return "network"; }
  std::size_t features() const override;
  LogRatios log_ratios(MatrixView x, std::span<const double> numerator,
                       std::span<const double> denominator) const override;
  Matrix table(MatrixView x, MatrixView points) const override;
  std::unique_ptr<SummedRatio> over(MatrixView x,
                                    std::span<const double> event_weights = {}) const override;
  /// Events with a feature outside the range of the training events.
  std::size_t count_outside(MatrixView x) const override;
  void save(Archive& archive) const override;

  std::size_t members() const;
  /// How much the weights that see x were held back.
  double decay() const;
  /// Whether Z is known.
  bool normalised() const;
  /// For so many events, where the configuration leaves it open.
  static std::size_t default_epochs(std::size_t events);

 private:
  struct Learned;
  class Sum;

  void normalise(const Samples& events, const Design& design,
                 const std::vector<std::vector<std::size_t>>& partition, std::uint64_t seed);
  void recentre(const Samples& events, const std::vector<std::vector<std::size_t>>& partition);

  std::unique_ptr<Learned> learned_;
};

}  // namespace neyman
