#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "neyman/core/progress.hpp"
#include "neyman/core/settings.hpp"
#include "neyman/data/samples.hpp"
#include "neyman/distributed/tasks.hpp"
#include "neyman/ratios/parameterized_ratio.hpp"
#include "neyman/simulators/design.hpp"

namespace neyman {

/// A parameterised ratio from a learned density, one of two:
///
/// - `of = features`: log r(x; θ) = log q(x|θ). It follows peaks that move, correlations, scales
///   and values in steps, and is normalised in x at every θ, so that its errors do not add up over
///   the events of a dataset.
/// - `of = parameters`: log r(x; θ) = log q(θ|x) − log π(θ), with π the design, whose density,
/// where
///   it is not known (a table, a function), is learned from the θ of the events. It needs no
///   density of many features. What it is off by at one θ is the same for all events, so that it is
///   for datasets of one event, or few.
///
/// Either density is a product of one-dimensional mixtures, each by a network of its own:
/// q(u|v) = Π_j Σ_c w_c N(u_j; μ_c, σ_c), whose numbers are functions of v and u_1 … u_{j−1}.
/// Features go to their normal scores first, so that heavy tails, edges and units do not matter;
/// values in steps (counts), categories and values that many events share have probabilities.
///
/// Parameters and features that are periodic (`ParameterSpace`, `Config::periodic`) come to the
/// networks as cosine and sine, so that nothing is told apart at the seam. Their densities are
/// mixtures on the circle: q(φ) = Σ_c w_c exp(a_c cos φ + b_c sin φ) / (2π I_0(√(a_c² + b_c²))), of
/// von Mises densities (Mardia and Jupp, Directional Statistics, 2000), normalised over it. Values
/// outside of the period are wrapped. Periodic features of a few values, or in steps, are described
/// as others of their kind.
///
/// `members` densities are trained, each without one of so many folds, which tells it when to stop.
/// Their mean is taken, and, of the features, at θ + ε(θ): a smooth shift that makes the mean score
/// of events that the members have not learned from zero at every θ, because what it is off by adds
/// up over the events of a dataset. The noise of that shift is the uncertainty from finite
/// simulation; of the parameters it is the members' scatter.
///
/// Features that end at edges which move with θ are told from there (see moving_edges.hpp), and the
/// likelihood then has kinks, and no gradient. A density of many features takes as many networks.
class DensityRatio final : public ParameterizedRatio {
 public:
  enum class Of { features, parameters };
  struct Config {
    Of of = Of::features;
    std::size_t components = 12;  ///< of each mixture, at most 64
    /// Widths, multiples of 16 (rounded up); {}: by the number of events.
    std::vector<std::size_t> hidden = {};
    std::size_t members = 5;
    std::size_t parts = 0;        ///< of the events, of which each member lacks one; 0: as many
    std::size_t epochs = 0;       ///< passes over the data; 0: by their number, 4 to 200
    std::size_t batch_size = 0;   ///< rows a step; 0: by their number, 32 to 512
    double learning_rate = 3e-3;  ///< the highest of a cosine with a short rise
    std::uint64_t seed = 0;
    std::vector<PeriodicFeature> periodic = {};  ///< angles among the features

    /// Reads the keys of a [classifier] table, which have these fields' names.
    static Config from(Settings settings);
  };

  /// Trains on events with θ drawn from the design. Only ratios of their weights matter. Each
  /// member is one of the `tasks` where others share them.
  /// @throw ArgumentError where the events have no θ, a weight is negative, there are fewer than 20
  ///   events a member, the design has no density (of = parameters; see `no_prior`), or no feature
  ///   has the name of a periodic one, or its period is empty.
  DensityRatio(const Samples& events, const Design& design, const Config& config,
               Progress* progress = nullptr, Tasks* tasks = nullptr);
  /// What `save` wrote.
  DensityRatio(const Archive& archive, ParameterSpace parameters);
  ~DensityRatio() override;

  std::string kind() const override { return "density"; }
  Of of() const { return of_; }
  std::size_t features() const override;
  LogRatios log_ratios(MatrixView x, std::span<const double> numerator,
                       std::span<const double> denominator) const override;
  Matrix table(MatrixView x, MatrixView points) const override;
  std::unique_ptr<SummedRatio> over(MatrixView x,
                                    std::span<const double> event_weights = {}) const override;
  /// Events with a feature outside the range of the training events.
  std::size_t count_outside(MatrixView x) const override;
  void save(Archive& archive) const override;

  /// Why there is no density of a design to be learned from the θ of events: these have too few
  /// values. Empty where there is one, or it is known.
  static std::string no_prior(const Design& design, MatrixView theta);

  std::size_t members() const;
  /// For so many events, where the configuration leaves it open.
  static std::size_t default_epochs(std::size_t events);
  static std::vector<std::size_t> default_hidden(std::size_t events);

  /// Of a density of the parameters: θ drawn from q(θ|x) of its first member.
  Matrix draw(std::span<const double> x, std::size_t count, std::uint64_t seed) const;
  /// log q(θ|x) − log π(θ) of the first member at each θ.
  std::vector<double> log_weights(std::span<const double> x, MatrixView points) const;

 private:
  struct Learned;
  class Sum;

  void recentre(const Samples& events, const std::vector<std::vector<std::size_t>>& partition);
  void check_proposal(const char* function, std::size_t features_given) const;

  Of of_ = Of::features;
  std::unique_ptr<Learned> learned_;
};

}  // namespace neyman
