#pragma once

#include <cstddef>

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

#if defined(__x86_64__)
extern const Kernels kernels_v2, kernels_v3, kernels_v4;
inline constexpr const Kernels* all_kernels[] = {&kernels_v2, &kernels_v3, &kernels_v4};
#else
extern const Kernels kernels_generic;
inline constexpr const Kernels* all_kernels[] = {&kernels_generic};
#endif

/// Those of this machine; see core/instruction_set.hpp.
const Kernels& kernels();

}  // namespace neyman::vector_math
