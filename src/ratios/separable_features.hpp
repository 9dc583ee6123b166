#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "classifiers/mlp_kernels.hpp"
#include "classifiers/mlp_network.hpp"
#include "neyman/core/archive.hpp"
#include "neyman/core/matrix.hpp"
#include "ratios/dense_layers.hpp"

namespace neyman::separable {

/// Linear functions of the features that φ has, at most: of more features, so many directions. All
/// that grows faster than the number of features (covariances, second derivatives) is bounded so.
inline constexpr std::size_t most_linear = 64;

/// Makes the features of events uncorrelated, with mean 0 and variance 1; more than `most_linear`
/// features only of mean 0 and variance 1, each for itself. A feature with heavy
/// tails (the range of all but 2·10⁻⁴ is above twelve times that of the middle half) is
/// compressed first, x → asinh((x − median)/width), so that single events do not rule.
class Whitening {
 public:
  Whitening() = default;
  Whitening(MatrixView x, std::span<const double> weights);

  std::size_t features() const { return median_.size(); }
  /// Rows of `round_up(features, 8)` floats.
  void apply(MatrixView x, float* out) const;

  void save(Archive& archive) const;
  void load(const Archive& archive);

 private:
  double compressed(std::size_t feature, double value) const;
  void scale_each(MatrixView x, std::span<const double> weights, const std::vector<double>& units);

  std::vector<double> median_, width_;  // width 0: not compressed
  std::vector<double> mean_;
  Matrix map_;  // features × features; one row: the factor of each feature for itself
};

/// φ(x): the last hidden layer of a network (after `condition`, made independent of the rest),
/// then the whitened inputs, or directions among them, then 1.
class Features {
 public:
  Features() = default;
  /// Random weights. `directions`, inputs × functions, take the place of the inputs in φ; empty:
  /// the inputs themselves. The network sees all inputs.
  Features(std::size_t inputs, std::vector<std::size_t> hidden, std::uint64_t seed,
           Matrix directions = {});

  std::size_t inputs() const { return inputs_; }
  std::size_t hidden() const { return layers_.outputs(); }
  std::size_t linear() const { return directions_.empty() ? inputs_ : directions_.cols(); }
  std::size_t size() const { return hidden() + linear() + 1; }
  std::size_t stride() const { return round_up(size(), 8); }
  std::size_t input_stride() const { return round_up(inputs_, 8); }

  /// Makes the hidden part free of what the linear part says already, uncorrelated, and of
  /// variance 1 over these events (rows of whitened inputs), so that coefficients of φ can be
  /// fitted well. Directions that hardly vary are left out. Coefficients (features × terms, rows of
  /// `term_stride`) are changed with it, so that φ A stays what it is.
  void condition(const float* x, std::span<const double> weights, std::vector<float>& coefficients,
                 std::size_t term_stride);

  /// Memory for one tile.
  struct Workspace : DenseLayers::Workspace {
    mlp::Buffer mixed;  // tile × hidden
    mlp::Buffer along;  // tile × directions
  };
  Workspace workspace() const;

  /// φ of `rows` rows (at most a tile, a multiple of 8) of whitened inputs.
  void forward(const float* x, std::size_t rows, float* phi, Workspace& work,
               bool derivatives) const;

  /// Weights and biases, one after the other, in one block of memory.
  std::size_t parameters() const { return layers_.parameters(); }
  float* weights() { return layers_.weights(); }
  /// Adds the gradient of a loss; `work.above` holds ∂loss/∂φ of the hidden part (rows × hidden).
  void backward(const float* x, std::size_t rows, Workspace& work, float* gradient) const;

  void save(Archive& archive) const;
  void load(const Archive& archive);

 private:
  void set_directions(Matrix directions);

  std::size_t inputs_ = 0;
  DenseLayers layers_;
  Matrix directions_;         // inputs × linear(); empty: the inputs
  std::vector<float> along_;  // the same, each row filled up to a multiple of 8
  std::vector<float> mix_;    // size() × hidden(): hidden part from φ; empty before `condition`
};

}  // namespace neyman::separable
