#pragma once

#include <cstddef>

#include "core/kernel_sets.hpp"

// The product of a small matrix with many rows, compiled once for each instruction set. Plain
// structs and pointers only: this header is included where the compiler may use instructions that
// the machine does not have, so it must not bring in inline functions of the library.
//
// Every set gives the same bits: each sum is made in the order of the columns, never contracted.
namespace neyman::linear_kernels {

/// The most rows of the matrix.
inline constexpr std::size_t most_outputs = 8;

struct Kernels {
  const char* name;
  /// x = A z + b of each row z of `inputs` numbers, x of `outputs`. `columns` has those of A, each
  /// with zeros up to most_outputs, and so has `offset`.
  void (*transform)(const double* z, std::size_t rows, std::size_t inputs, const double* columns,
                    const double* offset, std::size_t outputs, double* x);
};

NEYMAN_DECLARE_KERNELS;

/// Those of this machine; see core/instruction_set.hpp.
const Kernels& kernels();

}  // namespace neyman::linear_kernels
