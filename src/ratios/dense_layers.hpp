#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "classifiers/mlp_kernels.hpp"
#include "classifiers/mlp_network.hpp"
#include "neyman/core/archive.hpp"

namespace neyman::separable {

/// Rows that are carried through layers, products and softmax together.
inline constexpr std::size_t tile = 128;

inline std::size_t round_up(std::size_t n, std::size_t to) { return (n + to - 1) / to * to; }

/// The hidden layers of a network, each followed by z σ(z): what comes after the last one is its
/// user's.
class DenseLayers {
 public:
  DenseLayers() = default;
  /// Widths are rounded up to multiples of 16. All weights are zero.
  DenseLayers(std::size_t inputs, std::vector<std::size_t> hidden);
  /// Random weights, from the stream of this name.
  void initialise(std::uint64_t seed, const std::string& name);

  std::size_t inputs() const { return inputs_; }
  /// Of the last layer; without layers: 0.
  std::size_t outputs() const { return layers_.empty() ? 0 : layers_.back().out; }

  /// Memory for one tile.
  struct Workspace {
    std::vector<mlp::Buffer> values, derivatives;  // of each layer
    mlp::Buffer above, below, transposed;          // of a backward pass
  };
  Workspace workspace() const;

  /// The values of the last layer, or the inputs where there is none. `rows`: at most a tile, a
  /// multiple of 8.
  mlp::Dense forward(mlp::Dense x, std::size_t rows, Workspace& work, bool derivatives) const;
  /// Adds the gradient of a loss; `work.above` holds its derivatives by the outputs. Returns those
  /// by the inputs where they are asked for.
  mlp::Dense backward(mlp::Dense x, std::size_t rows, Workspace& work, float* gradient,
                      bool to_inputs = false) const;

  /// The derivatives of a loss by the inputs, rows × inputs; `work.above` holds those by the
  /// outputs.
  mlp::Dense backward_to_inputs(std::size_t rows, Workspace& work) const;

  /// Weights and biases, one after the other, in one block of memory.
  std::size_t parameters() const { return weights_.size(); }
  float* weights() { return weights_.data(); }

  void save(Archive& archive) const;
  /// @throw FileError where the layers and their weights do not fit.
  static DenseLayers load(const Archive& archive);

 private:
  struct Layer {
    std::size_t in, out;          // out a multiple of 16
    std::size_t weights, biases;  // offsets
  };

  std::size_t inputs_ = 0;
  std::vector<Layer> layers_;
  std::vector<float> weights_;
};

}  // namespace neyman::separable
