#pragma once

#include <cstddef>
#include <cstdint>

#include "core/kernel_sets.hpp"

// The inner loops of RandomStream, compiled once for each instruction set. Plain structs and
// pointers only: this header is included where the compiler may use instructions that the machine
// does not have, so it must not bring in inline functions of the library.
//
// Every set gives the same bits: only integers and operations that IEEE 754 rounds correctly (sum,
// product, quotient, square root), in one order, never contracted.
namespace neyman::philox {

/// Where a stream stands: Philox4x32-10 of (counter, block) under the key. Each counter gives two
/// words of 64 bits, of which the upper is used first.
struct State {
  std::uint64_t key, block, counter;
};

/// Counters that are worked on together, and the words that they give.
inline constexpr std::size_t group = 8;
inline constexpr std::size_t group_words = 2 * group;

struct Kernels {
  const char* name;
  /// The words of `groups` groups of counters, beginning with the state's.
  void (*bits)(const State&, std::uint64_t* out, std::size_t groups);
  /// The same words as uniform numbers: the upper 52 bits and a half, over 2^52.
  void (*uniform)(const State&, double* out, std::size_t groups);
  /// Pairs of uniform numbers (u, v) become √(−2 log u) (cos 2πv, sin 2πv).
  void (*normal)(double* values, std::size_t pairs);
  /// Uniform numbers u become −log u.
  void (*exponential)(double* values, std::size_t count);
};

NEYMAN_DECLARE_KERNELS;

}  // namespace neyman::philox
