#include "neyman/core/random.hpp"

#include <algorithm>
#include <cmath>

#include "core/instruction_set.hpp"
#include "core/random_kernels.hpp"

namespace neyman {

namespace {

std::uint64_t mix(std::uint64_t h) {  // finaliser of splitmix64
  h += 0x9e3779b97f4a7c15ULL;
  h = (h ^ (h >> 30)) * 0xbf58476d1ce4e5b9ULL;
  h = (h ^ (h >> 27)) * 0x94d049bb133111ebULL;
  return h ^ (h >> 31);
}

std::uint64_t hash(std::uint64_t seed, std::string_view purpose) {
  std::uint64_t h = mix(seed) ^ 0xcbf29ce484222325ULL;
  for (unsigned char c : purpose) h = (h ^ c) * 0x100000001b3ULL;  // FNV-1a
  return mix(h);
}

/// As the kernels do it.
double to_unit(std::uint64_t bits) { return (static_cast<double>(bits >> 12) + 0.5) * 0x1.0p-52; }

/// Numbers that stay in L1 between their uniform and their last form.
constexpr std::size_t chunk = 1024;

/// Chosen once: every set gives the same numbers.
const philox::Kernels& kernels() {
  static const philox::Kernels& chosen =
      detail::choose("RandomStream", detail::supported(philox::all_kernels));
  return chosen;
}

}  // namespace

RandomStream::RandomStream(std::uint64_t seed, std::string_view purpose, std::uint64_t block)
    : key_(hash(seed, purpose)), block_(block) {}

RandomStream RandomStream::child(std::string_view purpose, std::uint64_t block) const {
  // The child's key depends on this stream's whole name, so children of different blocks differ.
  return RandomStream(mix(key_ ^ mix(block_)), purpose, block);
}

void RandomStream::refill() {
  static_assert(std::tuple_size_v<decltype(buffer_)> == philox::group_words);
  kernels().bits({key_, block_, counter_}, buffer_.data(), 1);
  counter_ += philox::group;
  used_ = 0;
}

std::uint64_t RandomStream::bits() {
  if (used_ == buffer_.size()) refill();
  return buffer_[used_++];
}

double RandomStream::uniform() { return to_unit(bits()); }

double RandomStream::normal() {
  double out = 0.0;
  fill_normal({&out, 1});
  return out;
}

double RandomStream::exponential() {
  double out = 0.0;
  fill_exponential({&out, 1});
  return out;
}

double RandomStream::gamma(double shape) {
  // Marsaglia and Tsang (2000); shapes below 1 by the boost U^(1/shape).
  if (shape < 1.0) return gamma(shape + 1.0) * std::pow(uniform(), 1.0 / shape);
  const double d = shape - 1.0 / 3.0, c = 1.0 / std::sqrt(9.0 * d);
  for (;;) {
    const double x = normal();
    const double v = std::pow(1.0 + c * x, 3);
    if (v <= 0.0) continue;
    if (std::log(uniform()) < 0.5 * x * x + d - d * v + d * std::log(v)) return d * v;
  }
}

std::uint64_t RandomStream::below(std::uint64_t n) {
  // Lemire (2019): multiply and reject the few biased values.
  __extension__ using Wide = unsigned __int128;
  Wide product = static_cast<Wide>(bits()) * n;
  if (static_cast<std::uint64_t>(product) < n) {
    const std::uint64_t threshold = (0 - n) % n;
    while (static_cast<std::uint64_t>(product) < threshold) product = static_cast<Wide>(bits()) * n;
  }
  return static_cast<std::uint64_t>(product >> 64);
}

std::uint64_t RandomStream::poisson(double mean) {
  if (!(mean > 0.0)) return 0;
  if (mean < 12.0) {  // multiply uniforms until below e^-mean
    const double limit = std::exp(-mean);
    std::uint64_t count = 0;
    for (double product = uniform(); product > limit; product *= uniform()) ++count;
    return count;
  }
  // Split by a gamma variate (Ahrens and Dieter 1974): exact for any mean, O(log mean).
  const auto order = static_cast<std::uint64_t>(mean * 0.875);
  const double time = gamma(static_cast<double>(order));
  if (time <= mean) return order + poisson(mean - time);
  // The first `order` − 1 arrivals are uniform in (0, time): a binomial number before `mean`.
  std::uint64_t count = 0;
  for (std::uint64_t i = 0; i + 1 < order; ++i) count += uniform() * time < mean ? 1 : 0;
  return count;
}

void RandomStream::fill_uniform(std::span<double> out) {
  std::size_t i = 0;
  while (i < out.size() && used_ < buffer_.size()) out[i++] = uniform();
  if (const std::size_t groups = (out.size() - i) / philox::group_words; groups > 0) {
    kernels().uniform({key_, block_, counter_}, out.data() + i, groups);
    counter_ += groups * philox::group;
    i += groups * philox::group_words;
  }
  while (i < out.size()) out[i++] = uniform();
}

void RandomStream::fill_normal(std::span<double> out) {
  // Box–Muller: exact, no rejection, so a stream's use is the same on every machine. One at a
  // time or many at once, the pairs are the same.
  if (has_spare_ && !out.empty()) {
    has_spare_ = false;
    out.front() = spare_normal_;
    out = out.subspan(1);
  }
  while (out.size() > 1) {
    const auto part = out.first(std::min(chunk, out.size() / 2 * 2));
    fill_uniform(part);
    kernels().normal(part.data(), part.size() / 2);
    out = out.subspan(part.size());
  }
  if (out.empty()) return;
  std::array<double, 2> pair{uniform(), uniform()};
  kernels().normal(pair.data(), 1);
  out.front() = pair[0];
  spare_normal_ = pair[1];
  has_spare_ = true;
}

void RandomStream::fill_exponential(std::span<double> out) {
  while (!out.empty()) {
    const auto part = out.first(std::min(chunk, out.size()));
    fill_uniform(part);
    kernels().exponential(part.data(), part.size());
    out = out.subspan(part.size());
  }
}

std::uint64_t derive_seed(std::uint64_t seed, std::string_view purpose, std::uint64_t index) {
  return mix(hash(seed, purpose) ^ mix(index));
}

}  // namespace neyman
