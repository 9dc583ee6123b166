#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "neyman/core/archive.hpp"
#include "neyman/core/matrix.hpp"
#include "neyman/core/progress.hpp"
#include "ratios/dense_layers.hpp"

namespace neyman::separable {

/// A density of whitened features x given θ, by a network from θ to a mixture of normal densities
/// (Bishop, Mixture density networks, 1994):
///
///   q(x|θ) = Σ_c w_c(θ) |L_c| (2π)^(−d/2) exp(−½ |L_c (x − μ_c)|²),
///
/// with L_c lower triangular, so that a component may be tilted in any direction. Trained by
/// maximum likelihood. Where the shape of p(x|θ) moves with θ (a peak of free position, a
/// correlation, a scale), a density follows it with few numbers, where a polynomial in θ cannot.
///
/// Known weaknesses: features with few values are no mixture of normal densities; edges of a
/// support are smoothed.
class MixtureDensity {
 public:
  struct Options {
    std::size_t components = 8;
    std::vector<std::size_t> hidden = {64, 64, 64};
    double learning_rate = 3e-3;
    std::uint64_t seed = 0;
  };
  /// Components at most so many that the network has no more than this many outputs.
  static constexpr std::size_t most_outputs = 1024;
  /// Whether so many features leave room for one component.
  static bool possible(std::size_t features) { return outputs_each(features) <= most_outputs; }
  static std::size_t most_features();

  MixtureDensity() = default;
  /// Trains on events: rows of whitened features, `stride` floats apart, each with its θ. A tenth
  /// of them chooses when to stop.
  MixtureDensity(const float* x, std::size_t stride, std::size_t features, MatrixView theta,
                 std::span<const double> weights, const Options& options, Progress* progress);

  std::size_t features() const { return features_; }
  std::size_t parameters() const { return centre_.size(); }
  std::size_t components() const { return components_; }
  /// Floats that describe the mixture at one θ.
  std::size_t size() const { return components_ * outputs_each(features_); }

  /// The mixtures at several θ, one after the other: per component the logarithm of its weight
  /// times |L|, then μ, the diagonal of L, and what is below it by rows.
  void describe(MatrixView theta, float* mixtures) const;
  /// h(r, j) += log q(x_r | θ_j), up to a constant, for at most a tile of rows and `count`
  /// mixtures.
  void add(const float* x, std::size_t stride, std::size_t rows, const float* mixtures,
           std::size_t count, float* h, std::size_t h_stride) const;
  /// log q(x_i | θ_i), up to the same constant.
  std::vector<float> own(const float* x, std::size_t stride, MatrixView theta) const;

  /// Σ u_i log q(x_i | θ), and its derivatives by θ where `gradient` is not empty; in double
  /// precision, so that it is as smooth in θ as a fit needs.
  double sum(const float* x, std::size_t stride, std::span<const double> weights,
             std::span<const double> theta, std::span<double> gradient) const;

  /// The covariance of ∂/∂θ Σ u_i log q(x_i | θ) over simulations, as far as the layer to the
  /// mixture carries it: that layer is the estimate of a maximum likelihood, whose information is
  /// taken as a Kronecker product (Martens and Grosse 2015), and so is its covariance. What the
  /// layers before it lose, and what hangs on the first weights, is not in it.
  Matrix gradient_covariance(const float* x, std::size_t stride, std::span<const double> weights,
                             std::span<const double> theta) const;

  void save(Archive& archive) const;
  /// @throw FileError where its parts do not belong together.
  static MixtureDensity load(const Archive& archive);

 private:
  static std::size_t outputs_each(std::size_t d) { return 1 + 2 * d + d * (d - 1) / 2; }
  std::size_t columns() const { return round_up(size(), 8); }
  /// θ as the network takes it: rows of 8 n floats.
  void standardise(MatrixView theta, float* out) const;
  class Training;
  /// The network on its way from θ, and its outputs, in double precision.
  DenseLayers::Trace trace(std::span<const double> theta) const;
  std::vector<double> outputs(const DenseLayers::Trace& trace) const;
  /// Σ u log q, and its derivatives by the outputs.
  struct Sums {
    double value;
    std::vector<double> slopes;
  };
  Sums sums(const float* x, std::size_t stride, std::span<const double> weights,
            const std::vector<double>& outputs, bool derivatives) const;

  std::size_t features_ = 0, components_ = 0;
  std::vector<double> centre_, scale_;  // of each parameter
  DenseLayers layers_;
  std::vector<float> last_;  // the layer to the mixture: (outputs of the layers + 1) × columns
  // Covariance of that layer: of its inputs' side and of its outputs' side.
  Matrix input_covariance_, output_covariance_;
};

}  // namespace neyman::separable
