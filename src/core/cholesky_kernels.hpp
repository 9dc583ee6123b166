#pragma once

#include <cstddef>

#include "core/kernel_sets.hpp"

// The inner loop of cholesky.hpp, compiled once for each instruction set. Plain structs and
// pointers only: this header is included where the compiler may use instructions that the machine
// does not have, so it must not bring in inline functions of the library.
namespace neyman::cholesky_kernels {

struct Kernels {
  const char* name;
  /// C[r][j] −= Σ_k a[k][r] b[k][j] for a tile of C, whose rows are `stride` apart; a and b lie
  /// together.
  void (*subtract)(const double* a, const double* b, std::size_t depth, double* c,
                   std::size_t stride);
  std::size_t rows, columns;  ///< of the tile; the columns are a multiple of the rows
};

NEYMAN_DECLARE_KERNELS;

}  // namespace neyman::cholesky_kernels
