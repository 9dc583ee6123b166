// Vectors of doubles for kernels (kernel_sets.hpp). Everything here has internal linkage: no
// function compiled for one instruction set can serve another.
#pragma once

#include <cstddef>
#include <cstdint>

namespace neyman {
namespace {

constexpr std::size_t lanes = 8;

typedef double Reals __attribute__((vector_size(8 * lanes), aligned(8), may_alias));
typedef std::int64_t Words __attribute__((vector_size(8 * lanes), aligned(8), may_alias));

inline __attribute__((always_inline)) const Reals& at(const double* from) {
  return *reinterpret_cast<const Reals*>(from);
}
inline __attribute__((always_inline)) Reals& at(double* to) {
  return *reinterpret_cast<Reals*>(to);
}
inline __attribute__((always_inline)) double sum(const Reals& values) {
  double out = 0.0;
  for (std::size_t l = 0; l < lanes; ++l) out += values[l];
  return out;
}

/// The product of positive normal numbers in each lane, as that of their mantissas in [1, 2) and
/// the sum of their exponents with 1023 added to each: nothing overflows up to 1000 a lane.
struct Product {
  Reals mantissas;
  Words exponents;
};
inline __attribute__((always_inline)) Product multiply(const double* values, std::size_t count) {
  constexpr std::int64_t mantissa = 0x000fffffffffffffLL, one = 0x3ff0000000000000LL;
  Product out{Reals{} + 1.0, Words{}};
  for (std::size_t i = 0; i < count; i += lanes) {
    const Words bits = *reinterpret_cast<const Words*>(values + i);
    const Words fraction = (bits & mantissa) | one;
    out.mantissas *= reinterpret_cast<const Reals&>(fraction);
    out.exponents += bits >> 52;
  }
  return out;
}

}  // namespace
}  // namespace neyman
