#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include "classifiers/mlp_network.hpp"
#include "neyman/core/matrix.hpp"
#include "neyman/core/polynomial_basis.hpp"
#include "neyman/core/progress.hpp"
#include "neyman/simulators/design.hpp"
#include "neyman/simulators/design_region.hpp"
#include "ratios/separable_features.hpp"

// The three steps of SeparableRatio: training the features, fitting the coefficients A, and the
// normalisation. h(x, θ) = φ(x) A P(θ).
namespace neyman::separable {

/// Events with whitened features and the θ each was simulated at.
struct EventRows {
  const float* x;
  std::size_t x_stride;
  MatrixView theta;
  std::vector<double> weights;  ///< one an event, none negative
  /// The events' own weights, of either sign, where `weights` are what is expected at their x and
  /// θ: these fluctuate, and the influence of events is theirs. Else empty.
  std::vector<double> own_weights = {};

  std::size_t size() const { return theta.rows(); }
  EventRows first(std::size_t count) const;
  /// With the weights that fluctuate.
  EventRows with_own_weights() const;
};

/// How ∫ π(θ) exp h(x_i, θ) dθ is taken.
enum class Integral {
  exact,    ///< the mean over all points of a design that has few
  lattice,  ///< the mean over a randomly shifted lattice: good where it has nodes in each region
  contrast  ///< the mean over random θ and the event's own θ_i: the loss of telling θ_i among them,
            ///< which is least for the true ratio however few they are (van den Oord et al. 2018)
};

/// P of sets of θ nodes over the design: integrals over θ are means over one set's nodes.
class NodeSets {
 public:
  /// `exact` where the design has no more than `count` points, whatever is asked for.
  NodeSets(const Design& design, const PolynomialBasis& basis, Integral integral, std::size_t count,
           std::uint64_t seed);

  Integral integral() const { return integral_; }

  struct Set {
    bool with_own;               ///< whether the event's own θ is one more node
    std::size_t nodes;           ///< that count; the others fill up the columns
    const mlp::Buffer& by_node;  ///< columns() × stride
    const mlp::Buffer& by_term;  ///< terms × columns()
    const mlp::Buffer& bias;     ///< columns(): 0, or so low that exp vanishes
  };
  Set operator[](std::size_t block) const;
  std::size_t columns() const { return columns_; }

 private:
  struct Terms {
    Matrix theta;
    mlp::Buffer by_node, by_term, bias;
  };

  Integral integral_;
  std::size_t columns_ = 0;
  std::shared_ptr<const std::vector<Terms>> sets_;
};

/// A, features × terms, by rows of `round_up(terms, 8)`.
using Coefficients = std::vector<float>;

/// One tile of events through φ, f = φ A and the posterior of θ over the nodes.
struct TilePass {
  TilePass(const Features& features, const PolynomialBasis& basis, std::size_t columns);

  /// Returns Σ w (log ∫ π exp h − h(x_i, θ_i)) of the events [begin, begin + count).
  double run(const EventRows& events, std::size_t begin, std::size_t count,
             const Coefficients& coefficients, const NodeSets::Set& nodes, bool derivatives);
  /// Σ w / Σ_j p_j²: the effective number of nodes in the posterior of each event.
  double resolution() const;

  const Features& features;
  const PolynomialBasis& basis;
  const std::size_t columns, term_stride;
  std::size_t rows = 0;  ///< of the tile, filled up to a multiple of 8 with rows of weight 0
  Features::Workspace work;
  mlp::Buffer x, phi, f;
  mlp::Buffer posterior;             ///< rows × columns: exp h / Σ exp h
  mlp::Buffer own;                   ///< rows × terms: P(θ_i)
  std::vector<float> own_posterior;  ///< of θ_i itself, where it is one of the nodes
  mlp::Buffer mean;                  ///< rows × terms: P averaged over the posterior
  mlp::Buffer residual;              ///< rows × terms: w (mean − P(θ_i))
  mlp::Buffer log_integrals;         ///< log ∫ π exp h
  std::vector<float> weights;

 private:
  /// Makes an event's own θ one of its nodes; `log_sum` and what is returned are log Σ exp h.
  double include_own(std::size_t row, double h, double log_sum);
};

struct TrainingOptions {
  std::size_t epochs, batch_size;
  double learning_rate;
  std::uint64_t seed;
  Progress* progress;  ///< or null
};

/// Whether so small an effective number of nodes in an event's posterior is too few. (A number that
/// is none is too few as well.)
inline bool too_coarse(const NodeSets& nodes, double resolution) {
  constexpr double least = 5.0;
  return nodes.integral() == Integral::lattice && !(resolution >= least);
}

/// Step 1: trains features and coefficients together on `events`. Returns false, with both half
/// trained, where a lattice turns out to be too coarse.
bool train(Features& features, Coefficients& coefficients, const PolynomialBasis& basis,
           const EventRows& events, const NodeSets& nodes, const TrainingOptions& options);

/// What Newton's method found.
struct CoefficientFit {
  Coefficients coefficients;
  Matrix influence;         ///< groups × (features · terms): how each group moved A
  double effective = 0.0;   ///< coefficients that the events determine
  double resolution = 0.0;  ///< effective nodes in an event's posterior, averaged
  bool converged = false;
};

/// Step 2. With `evidence`, widths of the priors are chosen, from events that training has not
/// seen; without, the priors are wide.
CoefficientFit fit_coefficients(const Features& features, const Coefficients& start,
                                const PolynomialBasis& basis, const EventRows& events,
                                const NodeSets& nodes, bool evidence, Progress* progress = nullptr);

/// Where step 2 should begin if training may have learned its events by heart, as it does of many
/// features: the coefficients of training, or shares of them, whichever has the least loss on these
/// events. The fit itself is convex, but the widths of its priors are found from where it begins.
Coefficients held_out_start(const Features& features, const Coefficients& trained,
                            const PolynomialBasis& basis, const EventRows& events,
                            const NodeSets& nodes);

/// Step 3: c(θ) as coefficients of a polynomial, and how each group moved them.
struct Normalisation {
  std::vector<double> coefficients;
  Matrix influence;  ///< groups × coefficients
};
Normalisation normalise(const Features& features, const CoefficientFit& fit,
                        const PolynomialBasis& basis, const PolynomialBasis& normaliser,
                        const ParameterSpace& parameters, const DesignRegion& region,
                        const EventRows& events, const NodeSets& nodes, std::uint64_t seed);

}  // namespace neyman::separable
