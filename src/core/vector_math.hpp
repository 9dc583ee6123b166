#pragma once

#include <cstddef>

#include "core/kernel_sets.hpp"

// Functions of many numbers at once, compiled once for each instruction set. Plain structs and
// pointers only: this header is included where the compiler may use instructions that the machine
// does not have, so it must not bring in inline functions of the library.
//
// Every set gives the same bits: one order of operations, never contracted.
namespace neyman::vector_math {

/// Rows of numbers, `stride` apart.
struct Table {
  const double* data;
  std::size_t rows, columns, stride;
};

struct Kernels {
  const char* name;
  /// x becomes e^x, to a relative 4e-16; beyond ±708, e^±708.
  void (*exponentiate)(double* values, std::size_t count);
  /// Adds Σ w d and Σ w d², d = x − centre, of each column, over the rows in their order.
  void (*add_moments)(const Table& x, const double* weights, const double* centre, double* first,
                      double* second);
};

NEYMAN_DECLARE_KERNELS;

/// Those of this machine; see core/instruction_set.hpp.
const Kernels& kernels();

}  // namespace neyman::vector_math
