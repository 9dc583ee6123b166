#pragma once

#include <cstddef>

#include "core/kernel_sets.hpp"

// The product of a small matrix with many events, compiled once for each instruction set. Plain
// structs and pointers only: this header is included where the compiler may use instructions that
// the machine does not have, so it must not bring in inline functions of the library.
//
// Every set gives the same bits: each sum is made in the order of the columns, never contracted.
namespace neyman::linear_kernels {

/// The most columns and rows of the matrix.
inline constexpr std::size_t most_inputs = 7, most_outputs = 8;

/// One number of each event: the i-th is data[i · stride].
struct Input {
  const double* data;
  std::size_t stride;
};

struct Kernels {
  const char* name;
  /// x = A z + b of each event, z of `inputs` numbers, x of `outputs` in a row. `columns` has those
  /// of A, each with zeros up to most_outputs, and so has `offset`.
  void (*transform)(const Input* z, std::size_t inputs, std::size_t events, const double* columns,
                    const double* offset, std::size_t outputs, double* x);
};

NEYMAN_DECLARE_KERNELS;

/// Those of this machine; see core/instruction_set.hpp.
const Kernels& kernels();

}  // namespace neyman::linear_kernels
