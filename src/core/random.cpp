#include "neyman/core/random.hpp"

#include <Random123/philox.h>

#include <cmath>

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

/// 52 bits and a half: in (0, 1), symmetric, never 0 or 1.
double to_unit(std::uint64_t bits) { return (static_cast<double>(bits >> 12) + 0.5) * 0x1.0p-52; }

}  // namespace

RandomStream::RandomStream(std::uint64_t seed, std::string_view purpose, std::uint64_t block)
    : seed_(seed), key_(hash(seed, purpose)), block_(block) {}

RandomStream RandomStream::child(std::string_view purpose, std::uint64_t block) const {
  // The child's key depends on this stream's whole name, so children of different blocks differ.
  return RandomStream(mix(key_ ^ mix(block_)), purpose, block);
}

void RandomStream::refill() {
  const auto low = [](std::uint64_t v) { return static_cast<std::uint32_t>(v); };
  const auto high = [](std::uint64_t v) { return static_cast<std::uint32_t>(v >> 32); };
  r123::Philox4x32::ctr_type counter{{low(counter_), high(counter_), low(block_), high(block_)}};
  const r123::Philox4x32::key_type key{{low(key_), high(key_)}};
  const auto out = r123::Philox4x32()(counter, key);
  buffer_[0] = (std::uint64_t{out[1]} << 32) | out[0];
  buffer_[1] = (std::uint64_t{out[3]} << 32) | out[2];
  left_ = 2;
  ++counter_;
}

std::uint64_t RandomStream::bits() {
  if (left_ == 0) refill();
  return buffer_[--left_];
}

double RandomStream::uniform() { return to_unit(bits()); }

double RandomStream::normal() {
  // Box–Muller: exact, no rejection, so a stream's use is the same on every machine.
  if (has_spare_) {
    has_spare_ = false;
    return spare_normal_;
  }
  const double radius = std::sqrt(-2.0 * std::log(uniform()));
  const double angle = 6.283185307179586477 * uniform();
  spare_normal_ = radius * std::sin(angle);
  has_spare_ = true;
  return radius * std::cos(angle);
}

double RandomStream::exponential() { return -std::log(uniform()); }

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
  for (double& value : out) value = uniform();
}

void RandomStream::fill_normal(std::span<double> out) {
  for (double& value : out) value = normal();
}

std::uint64_t derive_seed(std::uint64_t seed, std::string_view purpose, std::uint64_t index) {
  return mix(hash(seed, purpose) ^ mix(index));
}

}  // namespace neyman
