// The kernels of cholesky_kernels.hpp in vectors of the compiler; included once for each
// instruction set, by a source that defines NEYMAN_KERNELS_ISA and is compiled with the options of
// that set. Everything here has internal linkage: no function compiled for one set can serve
// another.
#include <cstddef>

#include "core/cholesky_kernels.hpp"
#include "core/register_lanes_impl.hpp"

namespace neyman::cholesky_kernels {
namespace {

typedef double Register __attribute__((vector_size(8 * register_lanes), aligned(8), may_alias));

// The sums of a tile fill most of the registers: 24 of 32, or 12 or 8 of 16.
constexpr std::size_t rows = register_lanes == 8 ? 8 : 4;
constexpr std::size_t across = register_lanes == 2 ? 2 : 3;
constexpr std::size_t columns = across * register_lanes;

void subtract(const double* a, const double* b, std::size_t depth, double* c, std::size_t stride) {
  Register sums[rows][across] = {};
  for (std::size_t k = 0; k < depth; ++k, a += rows, b += columns) {
    Register right[across];
#pragma GCC unroll 3
    for (std::size_t v = 0; v < across; ++v)
      right[v] = *reinterpret_cast<const Register*>(b + v * register_lanes);
#pragma GCC unroll 8
    for (std::size_t r = 0; r < rows; ++r)
#pragma GCC unroll 3
      for (std::size_t v = 0; v < across; ++v) sums[r][v] += a[r] * right[v];
  }
#pragma GCC unroll 8
  for (std::size_t r = 0; r < rows; ++r)
#pragma GCC unroll 3
    for (std::size_t v = 0; v < across; ++v)
      *reinterpret_cast<Register*>(c + r * stride + v * register_lanes) -= sums[r][v];
}

}  // namespace

NEYMAN_DEFINE_KERNELS(subtract, rows, columns);

}  // namespace neyman::cholesky_kernels
