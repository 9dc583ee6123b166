#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "neyman/core/archive.hpp"
#include "neyman/core/matrix.hpp"
#include "neyman/core/progress.hpp"
#include "neyman/data/samples.hpp"
#include "neyman/measurements/learned_variation.hpp"
#include "neyman/measurements/shape.hpp"
#include "neyman/measurements/unbinned_channel.hpp"
#include "neyman/ratios/cross_fit.hpp"
#include "neyman/ratios/separable_ratio.hpp"
#include "neyman/simulators/design.hpp"

// A channel without bins whose ratios and shapes are learned from simulated events.
namespace neyman {

class Tasks;

/// Simulated events of one component: at nominal parameters, and what its shape is learned from.
struct ComponentSamples {
  /// Events at other values of one parameter α: −1 and +1, where the nominal ones have 0.
  struct Variation {
    std::string parameter;
    Samples low, high;
  };
  /// Events with θ from a design over the parameters of the shape, and the θ of the nominal events.
  /// Parameters that are `nuisance` are constrained by N(nominal, 1) unless the measurement's
  /// settings say otherwise; the others are free.
  struct Across {
    Samples events;
    Design design;
    std::vector<double> nominal;
  };

  std::string name;
  Samples nominal;     ///< weights of all samples may be negative where the density is positive
  double share = 1.0;  ///< of the component in the reference, such as its yield; only ratios matter
  std::optional<Across> across = std::nullopt;
  std::vector<Variation> variations = {};
};

/// The ratios r_c(x) = p_c(x) / p_ref(x) of the components of a channel, and their shapes, learned
/// from samples.
///
/// Nominal ratios, one of
/// - pairs: each unordered pair of components is told apart once (section 3.4 of Cranmer, Pavez and
///   Louppe 2015); p_ref is the mixture of the components with their shares, and
///   r_c = 1 / Σ_k w_k p_k / p_c (DecomposedRatio);
/// - to one reference: each component against the sample of one of them, or another sample.
///
/// Shapes: of variations, log p(x | ∓1) / p(x | 0) by a classifier each, as far as held-out events
/// see them (`variations()`); across parameters by a SeparableRatio, log p(x | θ) / p(x | nominal).
/// Both may be there. Every classifier is calibrated and cross-fitted: no simulated event is
/// described by one that has learned from it.
///
/// Negative weights: the classifiers learn m(x), the density of the events with weights |w|. One
/// more classifier tells the events of negative weight from the others, which gives the mean sign
/// of an event at x, and p(x) = m(x) · sign(x) / mean sign: exactly (N₊ p₊ − N₋ p₋) / (N₊ − N₋), so
/// that no event is dropped and no weight is clipped. The reference is made of m. Across parameters
/// that classifier has x and θ as inputs, and the SeparableRatio learns from weights |w| · sign(x,
/// θ), which are those of p(x | θ) times a function of θ alone. Fewer than ten negative events a
/// fold are too few to learn from: the mean sign is then the same everywhere.
///
/// Cheap to copy; may be used from several threads.
class LearnedChannel {
 public:
  struct Config {
    /// Of nominal ratios and variations. Without a classifier: "mlp"; without a calibrator:
    /// "smooth".
    RatioConfig ratios = {};
    SeparableRatio::Config shape = {};  ///< of events across parameters
    std::size_t members = 1;            ///< networks of each such shape, whose mean is taken
    /// The component that all others are compared with; empty: pairs, and the mixture of all.
    std::string reference = {};
    /// Another reference: events with the features of the components, in place of `reference`.
    std::optional<Samples> reference_sample = std::nullopt;
    /// Events of the reference that are kept: they normalise, and toys are drawn from them. At
    /// most; evenly from the components.
    std::size_t simulated = 200000;
    std::uint64_t seed = 0;  ///< of everything; those of `ratios` and `shape` are not used
  };

  /// Trains everything. Folds are `tasks` where others share them.
  /// @throw ArgumentError that names the component, before anything is trained, where
  ///   - there are no components, or two of one name; a share is not positive;
  ///   - a sample has no events, or other features than the first, or fewer events than folds;
  ///   - the weights of a sample have no positive sum;
  ///   - a parameter has two shapes of a component, or θ of events across are not the design's;
  ///   - the reference is not a component.
  LearnedChannel(const std::vector<ComponentSamples>& components, const Config& config,
                 Progress* progress = nullptr, Tasks* tasks = nullptr);
  /// What `save` wrote. @throw FileError where entries are absent or do not belong together.
  explicit LearnedChannel(const Archive& archive);
  void save(Archive& archive) const;

  std::vector<std::string> components() const;
  const std::vector<std::string>& feature_names() const;
  /// The shapes of a component, as its UnbinnedComponent has them.
  const std::vector<ShapePtr>& shapes(std::size_t component) const;

  /// Of each variation, how significant its shape is and what was kept of it, in the order of the
  /// components; of models from before this was asked, significances are NaN.
  std::vector<LearnedVariation> variations() const;

  /// Ratios and functions of the shapes of new events. Weights: one an event, or empty: all 1.
  /// @throw ArgumentError where x has other columns or is not finite.
  UnbinnedEvents describe(MatrixView x, std::span<const double> weights = {}) const;
  /// The events of the reference, each described by networks that have not seen it.
  const std::shared_ptr<const UnbinnedEvents>& simulated() const;
  /// Their features, one row an event.
  const Matrix& simulated_features() const;
  /// How many rows of x lie where no pair of components was calibrated.
  std::size_t count_outside(MatrixView x) const;

  /// The channel of these observed events. `components` say yields, modifiers and coefficients, by
  /// the names that were trained, in any order; their shapes are filled in.
  /// @throw ArgumentError where a component was not trained, or one that was is missing.
  UnbinnedChannel channel(std::string name, std::vector<UnbinnedComponent> components,
                          MatrixView observed) const;

  /// How many replicas of calibrations express the uncertainty from finite simulation.
  std::size_t replicas() const;
  /// The same channel as replica b of the simulation makes it: a fit of it has moved by what finite
  /// simulation does to the result (see `add_simulation_covariance` in model_fit.hpp).
  UnbinnedChannel channel(std::string name, std::vector<UnbinnedComponent> components,
                          MatrixView observed, std::size_t replica) const;

  /// log r_ij + log r_jk + log r_ki of three components over events: zero where the pairs agree.
  struct Cycle {
    std::array<std::size_t, 3> components;
    double mean = 0.0, rms = 0.0;
    double scale = 0.0;  ///< rms of the three log r themselves
  };
  /// One for each three components that are told apart in pairs; else none. Each over the events
  /// where none of the three densities is below `least` of another: where one is, how far below is
  /// extrapolated. Without such events there is none of these three.
  std::vector<Cycle> consistency(MatrixView x, double least = 0.0) const;

 private:
  struct State;
  std::shared_ptr<const State> state_;
};

}  // namespace neyman
