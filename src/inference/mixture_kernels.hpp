#pragma once

#include <cstddef>

#include "core/kernel_sets.hpp"

// The inner loops of MixtureLikelihood, compiled once for each instruction set. Plain structs and
// pointers only: this header is included where the compiler may use instructions that the machine
// does not have, so it must not bring in inline functions of the library.
//
// Every set gives the same bits: sums run in eight lanes, in one order, never contracted.
namespace neyman::mixture {

/// Events that are worked on together.
inline constexpr std::size_t chunk = 256;

/// What is known of some events.
struct Events {
  const double* const* ratios;  ///< q_c of the events, one pointer a component
  const double* weights;        ///< u, one an event, or null: all 1
  std::size_t components, count;
};

/// Sums over events, with m = Σ_c w_c q_c; added to what is there.
struct Sums {
  double logs;     ///< Σ u log m
  double* shares;  ///< Σ u q_c / m, by component; null: not wanted
  double* gram;    ///< Σ u q_c q_d / m², at c · components + d for d <= c; null: not wanted
};

struct Kernels {
  const char* name;
  /// `room` has chunk · components numbers where `shares` are wanted.
  void (*add)(const Events&, const double* mixture_weights, double* room, Sums&);
};

NEYMAN_DECLARE_KERNELS;

}  // namespace neyman::mixture
