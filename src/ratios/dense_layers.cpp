#include "ratios/dense_layers.hpp"

#include <algorithm>
#include <cmath>
#include <utility>

#include "neyman/core/error.hpp"
#include "neyman/core/random.hpp"

namespace neyman::separable {

DenseLayers::DenseLayers(std::size_t inputs, std::vector<std::size_t> hidden) : inputs_(inputs) {
  std::size_t in = inputs, at = 0;
  for (std::size_t out : hidden) {
    out = round_up(out, 16);
    layers_.push_back({in, out, at, at + in * out});
    at += (in + 1) * out;
    in = out;
  }
  weights_.assign(at, 0.0f);
}

void DenseLayers::initialise(std::uint64_t seed, const std::string& name) {
  RandomStream random(seed, name);
  for (const auto& layer : layers_) {
    const double spread = std::sqrt(2.0 / static_cast<double>(layer.in));
    for (std::size_t i = 0; i < layer.in * layer.out; ++i)
      weights_[layer.weights + i] = static_cast<float>(spread * random.normal());
    // Kinks at different places of the first layer's inputs.
    if (layer.weights == 0)
      for (std::size_t i = 0; i < layer.out; ++i)
        weights_[layer.biases + i] = static_cast<float>(0.5 * random.normal());
  }
}

DenseLayers::Workspace DenseLayers::workspace() const {
  Workspace work;
  std::size_t widest = std::max<std::size_t>(8, round_up(inputs_, 8)), largest = 0;
  for (const auto& layer : layers_) {
    work.values.emplace_back(tile * layer.out);
    work.derivatives.emplace_back(tile * layer.out);
    widest = std::max({widest, layer.out, round_up(layer.in, 8)});
    largest = std::max(largest, round_up(layer.in, 8) * layer.out);
  }
  work.above = mlp::Buffer(tile * widest);
  work.below = mlp::Buffer(tile * widest);
  work.transposed = mlp::Buffer(largest);
  return work;
}

mlp::Dense DenseLayers::forward(mlp::Dense x, std::size_t rows, Workspace& work,
                                bool derivatives) const {
  const auto& kernels = mlp::kernels();
  for (std::size_t l = 0; l < layers_.size(); ++l) {
    const Layer& layer = layers_[l];
    float* values = work.values[l].data();
    kernels.multiply(x, layer.in, {weights_.data() + layer.weights, layer.out},
                     weights_.data() + layer.biases, {values, layer.out}, rows, layer.out);
    kernels.silu(values, derivatives ? work.derivatives[l].data() : nullptr, rows * layer.out);
    x = {values, layer.out};
  }
  return x;
}

mlp::Dense DenseLayers::backward(mlp::Dense x, std::size_t rows, Workspace& work, float* gradient,
                                 bool to_inputs) const {
  const auto& kernels = mlp::kernels();
  float* above = work.above.data();
  float* below = work.below.data();
  std::size_t stride = outputs();
  for (std::size_t l = layers_.size(); l-- > 0;) {
    const Layer& layer = layers_[l];
    const float* slope = work.derivatives[l].data();
    float* biases = gradient + layer.biases;
    for (std::size_t r = 0; r < rows; ++r)
      for (std::size_t c = 0; c < layer.out; ++c) {
        const std::size_t at = r * layer.out + c;
        above[at] *= slope[at];
        biases[c] += above[at];
      }
    const mlp::Dense input = l == 0 ? x : mlp::Dense{work.values[l - 1].data(), layer.in};
    kernels.add_outer(input, layer.in, {above, layer.out}, {gradient + layer.weights, layer.out},
                      rows, layer.out);
    if (l == 0 && !to_inputs) break;
    stride = round_up(layer.in, 8);
    float* transposed = work.transposed.data();
    for (std::size_t i = 0; i < layer.in; ++i)
      for (std::size_t o = 0; o < layer.out; ++o)
        transposed[o * stride + i] = weights_[layer.weights + i * layer.out + o];
    kernels.multiply({above, layer.out}, layer.out, {transposed, stride}, nullptr, {below, stride},
                     rows, stride);
    std::swap(above, below);
  }
  return {above, stride};
}

mlp::Dense DenseLayers::backward_to_inputs(std::size_t rows, Workspace& work) const {
  const auto& kernels = mlp::kernels();
  float* above = work.above.data();
  float* below = work.below.data();
  std::size_t stride = 8;
  for (std::size_t l = layers_.size(); l-- > 0;) {
    const Layer& layer = layers_[l];
    const float* slope = work.derivatives[l].data();
    for (std::size_t i = 0; i < rows * layer.out; ++i) above[i] *= slope[i];
    stride = round_up(layer.in, 8);
    float* transposed = work.transposed.data();
    for (std::size_t i = 0; i < layer.in; ++i)
      for (std::size_t o = 0; o < layer.out; ++o)
        transposed[o * stride + i] = weights_[layer.weights + i * layer.out + o];
    kernels.multiply({above, layer.out}, layer.out, {transposed, stride}, nullptr, {below, stride},
                     rows, stride);
    std::swap(above, below);
  }
  return {above, stride};
}

void DenseLayers::save(Archive& archive) const {
  std::vector<std::int64_t> hidden;
  for (const auto& layer : layers_) hidden.push_back(static_cast<std::int64_t>(layer.out));
  archive.set("inputs", inputs_);
  archive.set("hidden", hidden);
  archive.set("weights", weights_);
}

DenseLayers DenseLayers::load(const Archive& archive) {
  std::vector<std::size_t> hidden;
  for (const auto width : archive.get<std::vector<std::int64_t>>("hidden")) {
    if (width < 16 || width % 16 != 0 || width > 65536)
      throw FileError("a hidden layer of a network has a width that is not allowed");
    hidden.push_back(static_cast<std::size_t>(width));
  }
  const auto inputs = archive.integer("inputs");
  if (inputs < 1 || inputs > 1000000) throw FileError("a network has no inputs, or too many");
  DenseLayers out(static_cast<std::size_t>(inputs), std::move(hidden));
  const auto& weights = archive.get<std::vector<float>>("weights");
  if (weights.size() != out.weights_.size())
    throw FileError("the weights of a network do not fit its layers");
  out.weights_ = weights;
  return out;
}

}  // namespace neyman::separable
