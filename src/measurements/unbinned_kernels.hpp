#pragma once

#include <cstddef>

#include "core/kernel_sets.hpp"

// The inner loops of channels without bins, compiled once for each instruction set. Plain structs
// and pointers only: this header is included where the compiler may use instructions that the
// machine does not have, so it must not bring in inline functions of the library.
//
// Every set gives the same bits: sums run in eight lanes over all events, in one order, never
// contracted.
namespace neyman::unbinned {

/// Events that are worked on together.
inline constexpr std::size_t chunk = 128;

/// The shape of a component at a point: the exponent of an event is Σ_k b_k f_k.
struct Shape {
  const double* const* rows;  ///< f_k of the events, one pointer a function
  std::size_t functions;
  const double* coefficients;  ///< b_k
  std::size_t moving;          ///< directions e_s = Σ_k slope_sk f_k, one a parameter for example
  /// ∂b_k/∂φ_s, by rows s; null: the directions are the functions themselves.
  const double* slopes;
};

struct Component {
  const double* ratios;  ///< of the events
  double scale;          ///< part of an event: scale · ratio · e^exponent
  Shape shape;
  /// Of the directions of the shape among the channel's. Components may share them, but not where
  /// they are the functions: these have places one after the other.
  const std::size_t* places;
};

struct Events {
  const Component* components;
  std::size_t count;      ///< components
  std::size_t moving;     ///< directions of all shapes, each once
  const double* weights;  ///< one an event, or null: all 1
  std::size_t events;
};

/// Sums over events, with λ the sum of the parts and u_c the part of a component over λ; added to
/// what is there. Null: not wanted; each needs those before it.
struct Sums {
  double logs;      ///< Σ w log λ
  double* shares;   ///< Σ w u_c, by component
  double* moments;  ///< Σ w u_c f_k, by function, one component after the other
  double* own;      ///< Σ w u_c e_s e_t (t <= s) of the directions of c: moving × moving of each
  /// Σ w y y' (lower triangle) of y = (u_1, …, Σ_c u_c e_s of every direction).
  double* gram;
};

/// Numbers of `room` that a kernel needs. `slopes` counts the directions of each component's shape,
/// `moving` those of the channel.
static constexpr std::size_t room_for(std::size_t components, std::size_t functions,
                                      std::size_t slopes, std::size_t moving) {
  const std::size_t width = components + moving;
  return chunk * (width + 2 * components + 2 * slopes + 8 + functions) +
         8 * (1 + components + functions + slopes * slopes + width * width);
}

/// The same for `normalise_lattice`.
static constexpr std::size_t room_for_lattice(std::size_t functions, std::size_t dimensions,
                                              std::size_t nodes) {
  std::size_t rows = 1, sums = nodes;
  for (std::size_t d = 1; d < dimensions; ++d) rows *= nodes, sums *= nodes;
  return chunk * (2 * rows + dimensions * (nodes + 1) + 3 + functions) + 8 * (1 + sums);
}

struct Kernels {
  const char* name;
  /// False where the density λ of an event is not positive; the sums are then not set.
  /// `exponentiate` is vector_math's.
  bool (*add)(const Events&, void (*exponentiate)(double*, std::size_t), double* room, Sums&);
  /// λ of each event, of either sign.
  void (*densities)(const Events&, void (*exponentiate)(double*, std::size_t), double* room,
                    double* out);
  /// Σ_j w_j e^exponent of weighted events, Σ w e^… f_k and Σ w e^… e_s e_t (t <= s), added; null:
  /// not wanted.
  void (*normalise)(const Shape&, const double* weights, std::size_t events,
                    void (*exponentiate)(double*, std::size_t), double* room, double* sum,
                    double* moments, double* own);
  /// Σ_j w_j e^exponent for many coefficients b (by rows) at once; set.
  void (*normalise_each)(const Shape&, const double* coefficients, std::size_t count,
                         const double* weights, std::size_t events,
                         void (*exponentiate)(double*, std::size_t), double* room, double* sums);
  /// Σ_j w_j exp(Σ_k b_k f_k + Σ_s u_s e_s) for every u of a lattice: each of the directions e (up
  /// to three) at all `nodes`, which are symmetric, the last one fastest. Half an exponential a
  /// direction and node. Set.
  void (*normalise_lattice)(const Shape&, const double* nodes, std::size_t count,
                            const double* weights, std::size_t events,
                            void (*exponentiate)(double*, std::size_t), double* room, double* sums);
};

NEYMAN_DECLARE_KERNELS;

/// Those of this machine; see core/instruction_set.hpp.
const Kernels& kernels();

}  // namespace neyman::unbinned
