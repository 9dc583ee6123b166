#pragma once

#include <cstddef>
#include <functional>
#include <memory>
#include <span>
#include <vector>

#include "calibration/node_weights.hpp"

// Densities of a score at nodes, and what lies between them.
namespace neyman::calibration {

/// Points uniform in t = asinh((z − centre)/scale): fine where the scores are, and a far score
/// costs few of them.
class ScoreGrid {
 public:
  ScoreGrid() = default;
  ScoreGrid(double centre, double scale, double first, double step, std::size_t size);
  /// From low to high, and `margin` in t beyond.
  static ScoreGrid over(double low, double high, double centre, double scale, double margin,
                        std::size_t size);

  std::size_t size() const { return size_; }
  double centre() const { return centre_; }
  double scale() const { return scale_; }
  double first() const { return first_; }
  double step() const { return step_; }
  double t(std::size_t i) const { return first_ + step_ * static_cast<double>(i); }
  double logit(std::size_t i) const;
  /// dz/dt at a point of the grid.
  double spread(std::size_t i) const;
  /// In steps from the first point; any sign.
  double position(double logit) const;
  /// The derivative of `position`.
  double density(double logit) const;

 private:
  double centre_ = 0.0, scale_ = 1.0, first_ = 0.0, step_ = 1.0;
  std::size_t size_ = 0;
};

/// A value and its derivative with respect to the position.
struct TableValue {
  double value, slope;
};
/// A table's value between its points, by cubics through the nearest four (Catmull and Rom 1974);
/// beyond its ends that of the end, with slope 0.
TableValue look_up(std::span<const double> table, double position);

/// A positive density of a score, from its logarithm at the points of a grid, normalised. Beyond
/// the grid it falls as 1/z².
class ScoreDensity {
 public:
  ScoreDensity(const ScoreGrid& grid, std::vector<double> log_density);

  double log_density(double logit) const;
  /// log of the factor that normalised.
  double log_norm() const { return log_norm_; }

  /// z and dz/dv at given, increasing quantiles v of the standard normal distribution: z(v) has
  /// the probability Φ(v) below it. Beyond the grid it goes on straight in v.
  void quantiles(std::span<const double> v, std::span<double> z, std::span<double> slopes) const;

 private:
  ScoreGrid grid_;
  std::vector<double> log_density_;  // in z
  double log_norm_ = 0.0;
};

/// The densities of both sides at one point between the nodes.
class MorphedRatio {
 public:
  virtual ~MorphedRatio() = default;
  /// log of numerator over denominator; finite for any logit.
  virtual double log_ratio(double logit) const = 0;
  /// The same with ∂/∂z and, one a parameter, ∂/∂θ at fixed z; only where the weights had slopes.
  virtual double derivatives(double logit, double& by_logit, std::span<double> by_point) const = 0;
  /// log of one side's density, normalised.
  virtual std::vector<double> log_densities(std::span<const double> logits,
                                            bool numerator) const = 0;
};

/// Location and width that a density is taken to have.
struct Moments {
  double mean = 0.0, width = 1.0;
};

/// What is known at the nodes, each list one a node.
struct MorphNodes {
  std::vector<ScoreDensity> numerator, denominator;
  std::vector<Moments> numerator_moments, denominator_moments;  ///< for moment morphing
  ScoreGrid grid;                                               ///< over the scores of all nodes
  Matrix ranges;  ///< lowest and highest score of each node, nodes × 2
  /// The log-ratio to be had at a node. What the densities have differently inside of the node's
  /// range is tabulated on the grid, interpolated with the smooth weights and added.
  std::function<std::vector<double>(std::size_t node, std::vector<double> logits)> log_ratios;
};

/// Densities at nodes, ready to be interpolated. With slopes where the weights have them.
class Morph {
 public:
  virtual ~Morph() = default;
  virtual std::unique_ptr<MorphedRatio> at(const NodeWeights& weights) const = 0;
};

/// f(z|θ) = Σ w_k f_k(z) of the densities before they were normalised. Where smooth weights leave
/// less of either side than half of what positive ones do, both sides are mixed with the latter
/// alike as far as is needed: a ratio that all nodes share is left as it is.
std::unique_ptr<Morph> make_vertical_morph(const MorphNodes& nodes);

/// Quantile functions added, z(v|θ) = Σ w_k z_k(v), for each side. Where smooth weights would let a
/// quantile function rise less than a tenth of what positive ones do, it rises by that tenth.
std::unique_ptr<Morph> make_horizontal_morph(const MorphNodes& nodes);

/// f(z|θ) = Σ w_k h_k((z − μ)/σ) / σ for each side, with h_k the density of (z − μ_k)/σ_k,
/// μ = Σ w_k μ_k and σ = Σ w_k σ_k. Neither σ nor the sum falls below a tenth of what positive
/// weights give.
std::unique_ptr<Morph> make_moment_morph(const MorphNodes& nodes);

}  // namespace neyman::calibration
