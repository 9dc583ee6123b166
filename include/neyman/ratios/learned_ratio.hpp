#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "neyman/core/progress.hpp"
#include "neyman/core/settings.hpp"
#include "neyman/data/samples.hpp"
#include "neyman/distributed/tasks.hpp"
#include "neyman/ratios/density_ratio.hpp"
#include "neyman/ratios/parameterized_ratio.hpp"
#include "neyman/ratios/separable_ratio.hpp"
#include "neyman/simulators/design.hpp"

namespace neyman {

namespace across {
class FeatureRanges;
}

/// A parameterised ratio whose model is chosen by evidence: several are trained on most of the
/// events and compared on the others.
///
/// The candidates are a SeparableRatio, a DensityRatio of the features, one of the parameters, and
/// a full network of x and θ, of more than 24 features. Each tells, for held-out events (x_i,
/// θ_i), which of some θ is x_i's own: the mean of
///
///   log [r(x_i; θ_i) / mean_j r(x_i; θ_j) w_j]
///
/// is its score, in nats: what it knows of θ from one event, largest for the true ratio whatever
/// the θ_j (van den Oord et al. 2018). These are drawn from a candidate's q(θ|x_i), which w_j
/// undoes, so that candidates are compared where they matter; and some over all of the design.
///
/// - Datasets of several events take the candidate with the highest score among those that are
///   normalised in x at every θ: what another one is off by adds up over the events. Between equals
///   it is the density; the network only where it is better than the others by two standard errors.
/// - A dataset of one event takes the mean of all log r with the convex weights that have the
///   highest score (stacking, Wolpert 1992).
///
/// Densities are tried with one member and a third of the passes, the network with one member.
/// Where that shows that one cannot win, it is not trained in full.
///
/// Features that seem to tell nothing are left out where a density of the parameters is as good
/// without them on held-out events: what networks learn of them is noise, and a density of the
/// features takes one network for each.
class LearnedRatio final : public ParameterizedRatio {
 public:
  enum class Effort {
    quick,     ///< densities and the network as they are tried
    normal,    ///< of those that may win five members
    thorough,  ///< ten members, and three times the steps
  };
  struct Config {
    Effort effort = Effort::normal;
    SeparableRatio::Config separable;
    /// Whether datasets of one event are to be expected: then what has a share in their mean is
    /// trained in full.
    bool one_event = true;
    std::uint64_t seed = 0;

    /// Reads the keys of a [classifier] table: `effort`, and those of the separable ratio.
    static Config from(Settings settings);
  };
  /// One model, and how it did.
  struct Candidate {
    std::string name;      ///< "separable", "features", "parameters", "network"
    bool trained = false;  ///< all of it
    double score = 0.0;
    double behind = 0.0, behind_error = 0.0;  ///< of the highest score, with its standard error
    double seconds = 0.0;                     ///< of training; not saved
    double share = 0.0;                       ///< in the mean that serves one event
    bool chosen = false;                      ///< serves several events
    std::string note = {};                    ///< why it was not trained, or not all of it

    void save(Archive& archive) const;
    static Candidate load(const Archive& archive);
  };

  /// Trains on events with θ drawn from the design, of which a part chooses. Weights are not
  /// negative; only their ratios matter.
  /// @throw ArgumentError where the events have no θ, a weight is negative, there are fewer than
  ///   200 events, or the design is one point.
  LearnedRatio(const Samples& events, const Design& design, const Config& config,
               Progress* progress = nullptr, Tasks* tasks = nullptr);
  /// What `save` wrote.
  LearnedRatio(const Archive& archive, ParameterSpace parameters);

  std::string kind() const override { return "learned"; }
  std::size_t features() const override { return features_; }
  /// Of several events: by the model for these; of one, by the mean.
  LogRatios log_ratios(MatrixView x, std::span<const double> numerator,
                       std::span<const double> denominator) const override;
  Matrix table(MatrixView x, MatrixView points) const override;
  std::unique_ptr<SummedRatio> over(MatrixView x,
                                    std::span<const double> event_weights = {}) const override;
  /// Events with a feature, used or not, outside of the range of the training events.
  std::size_t count_outside(MatrixView x) const override;
  void save(Archive& archive) const override;

  const std::vector<Candidate>& candidates() const { return candidates_; }
  /// Indices of the parameters that the features do not tell of, as far as the held-out events
  /// show: where all others are known, the model for several events does not tell an event's own
  /// value from others by two standard errors. What a likelihood says of such a parameter is noise,
  /// unless its effect is small and the data are far more than the held-out events.
  const std::vector<std::size_t>& untold() const { return untold_; }
  /// Indices of the features that the models see.
  const std::vector<std::size_t>& used() const { return used_; }
  /// Names of the features that are left out.
  const std::vector<std::string>& unused() const { return unused_; }
  /// What serves datasets of several events; of the features that are used alone.
  const ParameterizedRatio& several() const { return *models_[chosen_]; }

 private:
  class Choice;
  class Training;
  struct Tried;
  struct Mean;

  void leave_out(Training& training, const Samples& events, const Config& config);
  static void train_in_full(std::vector<Tried>& tried, const Choice& choice, const Config& config);
  void choose(const std::vector<Tried>& tried, const Choice& choice);

  void use_all();
  bool uses_all() const { return used_.size() == features_; }
  /// The features that are used; `own` holds them where others are left out.
  MatrixView used(MatrixView x, Matrix& own) const;
  Samples used(const Samples& events) const;

  std::vector<Candidate> candidates_;
  // Those that are used, with their shares in the mean.
  std::vector<std::shared_ptr<const ParameterizedRatio>> models_;
  std::vector<double> shares_;
  std::size_t chosen_ = 0;
  std::size_t features_ = 0;
  std::vector<std::size_t> used_;
  std::vector<std::string> unused_;
  // Of all features, where some are left out: data may be unlike the simulation there.
  std::shared_ptr<const across::FeatureRanges> ranges_;
  std::vector<std::size_t> untold_;
};

}  // namespace neyman
