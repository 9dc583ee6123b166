#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string_view>
#include <vector>

#include "classifiers/mlp_kernels.hpp"
#include "core/large_vector.hpp"

namespace neyman::mlp {

/// Zeroed floats that start on a cache line. (Moved, but not copied by accident.)
class Buffer {
 public:
  Buffer() = default;
  explicit Buffer(std::size_t size) : values_(size, 0.0f) {}
  Buffer(Buffer&&) = default;
  Buffer& operator=(Buffer&&) = default;
  std::size_t size() const { return values_.size(); }
  float* data() { return values_.data(); }
  const float* data() const { return values_.data(); }
  float& operator[](std::size_t i) { return values_[i]; }
  float operator[](std::size_t i) const { return values_[i]; }

 private:
  LargeVector<float, 64> values_;
};

/// The shape of a network and how its parameters lie in memory. Outside of the kernels the
/// parameters are `plain`: for each layer the weights W[output][input], then the biases.
class Network {
 public:
  /// `widths`: the inputs, then each hidden layer; one output is implied.
  Network(const std::vector<std::size_t>& widths, Activation activation);

  const Shape& shape() const { return shape_; }
  std::size_t plain_size() const;
  void pack(std::span<const float> plain, float* parameters) const;
  std::vector<float> unpack(const float* parameters) const;
  /// Memory for a kernel; what is in it does not matter.
  LargeVector<float, 64> scratch() const { return LargeVector<float, 64>(shape_.scratch); }

  Network(const Network&) = delete;
  Network& operator=(const Network&) = delete;

 private:
  std::size_t place(std::size_t layer, std::size_t output, std::size_t input) const;
  std::vector<Layer> layers_;
  Shape shape_;
};

/// The best kernels that this machine runs, or those that NEYMAN_ISA names (v2, v3, v4).
/// @throw ArgumentError where NEYMAN_ISA names none, or one that this machine does not run.
const Kernels& kernels();
/// All that this machine runs, the best last.
std::vector<const Kernels*> supported_kernels();

/// Fills `order` with a random permutation of 0 … n − 1, a new one for each (seed, epoch).
///
/// Up to 4096 rows it is drawn exactly uniformly (Fisher and Yates). Beyond, it is a Feistel
/// network of six rounds over the bits of the index, each round a table of random numbers: the
/// tables stay in cache, where the swaps of an exact shuffle would not, which makes it several
/// times faster.
void random_order(std::vector<std::uint32_t>& order, std::uint64_t seed, std::uint64_t epoch);

}  // namespace neyman::mlp
