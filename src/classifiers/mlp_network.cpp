#include "classifiers/mlp_network.hpp"

#include <algorithm>
#include <array>
#include <cstdlib>
#include <cstring>
#include <string>

#if defined(__linux__)
#include <sys/mman.h>
#endif

#include "neyman/core/check.hpp"
#include "neyman/core/error.hpp"
#include "neyman/core/random.hpp"

namespace neyman::mlp {
namespace {

std::size_t padded(std::size_t width) { return (width + unit - 1) / unit * unit; }

bool runs(const Kernels& kernels) {
#if defined(__x86_64__)
  if (&kernels == &kernels_v4) {
    return __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512vl") &&
           __builtin_cpu_supports("avx512bw") && __builtin_cpu_supports("avx512dq") &&
           __builtin_cpu_supports("avx512cd");
  }
  if (&kernels == &kernels_v3) {
    return __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma") &&
           __builtin_cpu_supports("bmi") && __builtin_cpu_supports("bmi2");
  }
#endif
  (void)kernels;
  return true;
}

}  // namespace

Buffer::Buffer(std::size_t size) : size_(size) {
  constexpr std::size_t huge_page = std::size_t{1} << 21;
  const std::size_t bytes = std::max<std::size_t>(size, 1) * sizeof(float);
  const bool large = bytes >= 2 * huge_page;
  const std::align_val_t alignment{large ? huge_page : 64};
  data_ = {static_cast<float*>(::operator new[](bytes, alignment)), Free{alignment}};
#if defined(__linux__)
  if (large) madvise(data_.get(), bytes, MADV_HUGEPAGE);  // only advice: failure changes nothing
#endif
  std::fill_n(data_.get(), size, 0.0f);
}

Network::Network(const std::vector<std::size_t>& widths, Activation activation) {
  shape_ = {};
  shape_.activation = activation;
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
    shape_.values += tile * layer.in_pad;
    layers_.push_back(layer);
  }
  shape_.layers = layers_.data();
  shape_.count = layers_.size();
  shape_.scratch = 2 * shape_.values + 3 * tile;
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

std::vector<const Kernels*> supported_kernels() {
#if defined(__x86_64__)
  std::vector<const Kernels*> all{&kernels_v2, &kernels_v3, &kernels_v4};
#else
  std::vector<const Kernels*> all{&kernels_generic};
#endif
  std::erase_if(all, [](const Kernels* k) { return !runs(*k); });
  return all;
}

const Kernels& kernels() {
  const auto supported = supported_kernels();
  const char* wanted = std::getenv("NEYMAN_ISA");
  if (!wanted || !*wanted) return *supported.back();
  std::string names;
  for (const Kernels* k : supported) {
    if (std::strcmp(k->name, wanted) == 0) return *k;
    names += (names.empty() ? "" : ", ") + std::string(k->name);
  }
  fail_argument("mlp", "NEYMAN_ISA", wanted, "one of " + names + " on this machine");
}

namespace {

/// Sixteen random bits at a time.
class ShortDraws {
 public:
  explicit ShortDraws(RandomStream& random) : random_(random) {}

  /// Uniform in {0, …, n − 1}, n <= 65536: the high half of a product, and the draws that would
  /// make some values more likely refused (Lemire).
  std::uint32_t below(std::uint32_t n) {
    std::uint32_t product = next() * n;
    if ((product & 0xffffu) < n) {
      const std::uint32_t uneven = 65536u % n;
      while ((product & 0xffffu) < uneven) product = next() * n;
    }
    return product >> 16;
  }

 private:
  std::uint32_t next() {
    if (left_ == 0) {
      bits_ = random_.bits();
      left_ = 4;
    }
    --left_;
    const auto draw = static_cast<std::uint32_t>(bits_ & 0xffffu);
    bits_ >>= 16;
    return draw;
  }

  RandomStream& random_;
  std::uint64_t bits_ = 0;
  unsigned left_ = 0;
};

}  // namespace

void shuffle(std::vector<std::uint32_t>& order, std::vector<std::uint32_t>& spare,
             std::uint64_t seed, std::uint64_t epoch) {
  constexpr std::size_t small = 65536;
  RandomStream random(seed, "mlp-shuffle", epoch);
  ShortDraws draws(random);
  const auto shuffle_part = [&](std::uint32_t* first, std::size_t count) {
    for (std::size_t i = count; i > 1; --i) {
      const std::size_t j =
          i <= small ? draws.below(static_cast<std::uint32_t>(i)) : random.below(i);
      std::swap(first[i - 1], first[j]);
    }
  };
  if (order.size() <= small) return shuffle_part(order.data(), order.size());

  constexpr std::size_t parts = 256;
  spare.resize(order.size());
  std::vector<std::uint8_t> part(order.size());
  std::array<std::size_t, parts + 1> begin{};
  for (std::size_t i = 0; i < order.size(); i += 8) {
    const std::uint64_t bits = random.bits();
    const std::size_t count = std::min<std::size_t>(8, order.size() - i);
    std::memcpy(part.data() + i, &bits, count);
    for (std::size_t k = 0; k < count; ++k) ++begin[part[i + k] + 1u];
  }
  for (std::size_t p = 0; p < parts; ++p) begin[p + 1] += begin[p];
  auto next = begin;
  for (std::size_t i = 0; i < order.size(); ++i) spare[next[part[i]]++] = order[i];
  order.swap(spare);
  for (std::size_t p = 0; p < parts; ++p)
    shuffle_part(order.data() + begin[p], begin[p + 1] - begin[p]);
}

}  // namespace neyman::mlp
