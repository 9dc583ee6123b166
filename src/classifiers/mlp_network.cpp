#include "classifiers/mlp_network.hpp"

#include <algorithm>
#include <array>
#include <bit>
#include <numeric>

#include "core/instruction_set.hpp"
#include "neyman/core/random.hpp"

namespace neyman::mlp {
namespace {

std::size_t padded(std::size_t width) { return (width + unit - 1) / unit * unit; }

/// A tile's activations of narrow layers stay in the first-level cache. Those of wide ones do not
/// anyway, and neither do gradients, which are read and written once a tile: the fewer tiles the
/// better, as long as all is in the second level.
std::size_t tile_of(const std::vector<std::size_t>& widths) {
  return *std::max_element(widths.begin(), widths.end()) > 64 ? 4 * part_rows : part_rows;
}

}  // namespace

Network::Network(const std::vector<std::size_t>& widths, Activation activation) {
  shape_ = {};
  shape_.activation = activation;
  shape_.tile = tile_of(widths);
  for (std::size_t l = 0; l < widths.size(); ++l) {
    Layer layer{};
    layer.in = widths[l];
    layer.in_pad = padded(layer.in);
    const bool hidden = l + 1 < widths.size();
    layer.out = hidden ? widths[l + 1] : 1;
    layer.out_pad = padded(layer.out);
    layer.parameters = shape_.parameters;
    layer.transposed = shape_.transposed;
    layer.values = shape_.values;
    shape_.parameters += hidden ? (layer.in + 1) * layer.out_pad : layer.in_pad + unit;
    shape_.transposed += hidden ? layer.out * layer.in_pad : 0;
    shape_.values += shape_.tile * layer.in_pad;
    layers_.push_back(layer);
  }
  shape_.layers = layers_.data();
  shape_.count = layers_.size();
  shape_.scratch = 2 * shape_.values + 3 * shape_.tile;
}

std::size_t Network::plain_size() const {
  std::size_t size = 0;
  for (const Layer& layer : layers_) size += (layer.in + 1) * layer.out;
  return size;
}

/// Where W[output][input] lies among the packed parameters; input = in is the bias.
std::size_t Network::place(std::size_t l, std::size_t output, std::size_t input) const {
  const Layer& layer = layers_[l];
  if (l + 1 == layers_.size()) return layer.parameters + (input < layer.in ? input : layer.in_pad);
  std::size_t p = 0;
  while (panel(layer.out_pad, p).begin + panel(layer.out_pad, p).width <= output) ++p;
  const Panel columns = panel(layer.out_pad, p);
  return layer.parameters + (layer.in + 1) * columns.begin + input * columns.width + output -
         columns.begin;
}

void Network::pack(std::span<const float> plain, float* parameters) const {
  std::fill_n(parameters, shape_.parameters, 0.0f);
  std::size_t at = 0;
  for (std::size_t l = 0; l < layers_.size(); ++l) {
    for (std::size_t j = 0; j < layers_[l].out; ++j)
      for (std::size_t i = 0; i < layers_[l].in; ++i) parameters[place(l, j, i)] = plain[at++];
    for (std::size_t j = 0; j < layers_[l].out; ++j)
      parameters[place(l, j, layers_[l].in)] = plain[at++];
  }
}

std::vector<float> Network::unpack(const float* parameters) const {
  std::vector<float> plain;
  plain.reserve(plain_size());
  for (std::size_t l = 0; l < layers_.size(); ++l) {
    for (std::size_t j = 0; j < layers_[l].out; ++j)
      for (std::size_t i = 0; i < layers_[l].in; ++i) plain.push_back(parameters[place(l, j, i)]);
    for (std::size_t j = 0; j < layers_[l].out; ++j)
      plain.push_back(parameters[place(l, j, layers_[l].in)]);
  }
  return plain;
}

std::vector<const Kernels*> supported_kernels() { return detail::supported(all_kernels); }

const Kernels& kernels() { return detail::choose("mlp", supported_kernels()); }

void random_order(std::vector<std::uint32_t>& order, std::uint64_t seed, std::uint64_t epoch) {
  const std::size_t n = order.size();
  RandomStream random(seed, "mlp-order", epoch);
  if (n <= 4096) {
    std::iota(order.begin(), order.end(), 0u);
    for (std::size_t i = n; i > 1; --i) std::swap(order[i - 1], order[random.below(i)]);
    return;
  }

  // The index's low and high bits in turn are changed by a random function of the others.
  constexpr std::size_t rounds = 6;
  const auto bits = static_cast<unsigned>(std::bit_width(n - 1));
  const unsigned low_bits = bits / 2, high_bits = bits - low_bits;
  const std::uint32_t low_mask = (1u << low_bits) - 1, high_mask = (1u << high_bits) - 1;
  const std::size_t size = std::size_t{1} << high_bits;
  std::vector<std::uint16_t> tables(rounds * size);
  for (std::size_t i = 0; i < tables.size(); i += 4) {
    const std::uint64_t draw = random.bits();
    const std::uint32_t mask = i / size % 2 == 0 ? low_mask : high_mask;
    for (std::size_t k = 0; k < 4; ++k)
      tables[i + k] = static_cast<std::uint16_t>((draw >> (16 * k)) & mask);
  }
  // What falls beyond n is left out, so that the rest is a permutation of those below. (In parts,
  // because looking up would wait for the places of what is written.)
  const auto table = [&](std::size_t round) { return tables.data() + round * size; };
  constexpr std::uint32_t part = 32;  // the high bits, and so the first round, are the same in one
  std::array<std::uint32_t, part> values;
  std::size_t kept = 0;
  for (std::uint32_t begin = 0; kept < n; begin += part) {
    const std::size_t top = begin >> low_bits;
    const std::size_t start = (begin & low_mask) ^ table(0)[top];
    for (std::size_t k = 0; k < part; ++k) {
      std::size_t low = start ^ k, high = top ^ table(1)[low];
      for (std::size_t r = 2; r < rounds; r += 2) {
        low ^= table(r)[high];
        high ^= table(r + 1)[low];
      }
      values[k] = static_cast<std::uint32_t>(high << low_bits | low);
    }
    for (const std::uint32_t value : values) {
      if (kept == n) break;
      order[kept] = value;
      kept += value < n ? 1 : 0;
    }
  }
}

}  // namespace neyman::mlp
