#pragma once

#include <cstddef>

#include "core/kernel_sets.hpp"

// Functions of many numbers at once, compiled once for each instruction set. Plain structs and
// pointers only: this header is included where the compiler may use instructions that the machine
// does not have, so it must not bring in inline functions of the library.
//
// Every set gives the same bits: one order of operations, never contracted.
namespace neyman::vector_math {

struct Kernels {
  const char* name;
  /// x becomes e^x, to a relative 4e-16; beyond ±708, e^±708.
  void (*exponentiate)(double* values, std::size_t count);
};

NEYMAN_DECLARE_KERNELS;

/// Those of this machine; see core/instruction_set.hpp.
const Kernels& kernels();

}  // namespace neyman::vector_math
