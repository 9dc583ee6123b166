// The kernels of vector_math.hpp in vectors of the compiler; included once for each instruction
// set, by a source that defines NEYMAN_KERNELS_ISA and is compiled with the options of that set.
// Everything here has internal linkage: no function compiled for one set can serve another.
#include <cstddef>
#include <cstdint>

#include "core/register_lanes_impl.hpp"
#include "core/vector_math.hpp"

namespace neyman::vector_math {
namespace {

constexpr std::size_t width = register_lanes;
// Registers that go through a chain of operations side by side: one alone would wait for each
// result.
constexpr std::size_t together = 4;
typedef double Register __attribute__((vector_size(8 * width), aligned(8), may_alias));
typedef std::int64_t Integers __attribute__((vector_size(8 * width), aligned(8), may_alias));

/// x becomes e^x = 2^n e^r with |r| ≤ ½ log 2, and e^r by its series to r¹³.
template <std::size_t count>
inline __attribute__((always_inline)) void exponentiate(Register* x) {
  constexpr double limit = 708.0;
  constexpr double log2_e = 1.44269504088896340736;
  constexpr double ln2_high = 6.93147180369123816490e-01, ln2_low = 1.90821492927058770002e-10;
  constexpr double shift = 6755399441055744.0;  // 1.5 · 2^52: adding it rounds to a whole number
  constexpr double series[] = {1.0 / 479001600.0,
                               1.0 / 39916800.0,
                               1.0 / 3628800.0,
                               1.0 / 362880.0,
                               1.0 / 40320.0,
                               1.0 / 5040.0,
                               1.0 / 720.0,
                               1.0 / 120.0,
                               1.0 / 24.0,
                               1.0 / 6.0,
                               0.5};
  Register shifted[count], r[count], sum[count];
#pragma GCC unroll 4
  for (std::size_t v = 0; v < count; ++v) {
    x[v] = x[v] > limit ? Register{} + limit : x[v];
    x[v] = x[v] < -limit ? Register{} - limit : x[v];
    shifted[v] = x[v] * log2_e + shift;
    const Register n = shifted[v] - shift;
    r[v] = (x[v] - n * ln2_high) - n * ln2_low;
    sum[v] = Register{} + 1.0 / 6227020800.0;
  }
#pragma GCC unroll 11
  for (const double term : series)
#pragma GCC unroll 4
    for (std::size_t v = 0; v < count; ++v) {
      sum[v] = sum[v] * r[v] + term;
#if defined(__AVX512F__)
      asm volatile("" : "+v"(sum[v]));  // or the compiler would do one vector after the other
#elif defined(__x86_64__)
      asm volatile("" : "+x"(sum[v]));
#endif
    }
#pragma GCC unroll 4
  for (std::size_t v = 0; v < count; ++v) {
    sum[v] = (sum[v] * r[v]) * r[v] + r[v];
    const Register fraction = sum[v] + 1.0;
    // The low bits of `shifted` hold n.
    const Integers power = reinterpret_cast<const Integers&>(shifted[v]) << 52;
    const Integers out = reinterpret_cast<const Integers&>(fraction) + power;
    x[v] = reinterpret_cast<const Register&>(out);
  }
}

void exponentiate(double* values, std::size_t count) {
  std::size_t i = 0;
  for (; i + together * width <= count; i += together * width) {
    Register here[together];
#pragma GCC unroll 4
    for (std::size_t v = 0; v < together; ++v)
      here[v] = *reinterpret_cast<Register*>(values + i + v * width);
    exponentiate<together>(here);
#pragma GCC unroll 4
    for (std::size_t v = 0; v < together; ++v)
      *reinterpret_cast<Register*>(values + i + v * width) = here[v];
  }
  for (; i + width <= count; i += width) {
    Register here = *reinterpret_cast<Register*>(values + i);
    exponentiate<1>(&here);
    *reinterpret_cast<Register*>(values + i) = here;
  }
  if (i == count) return;
  Register rest{};
  for (std::size_t l = 0; i + l < count; ++l) rest[l] = values[i + l];
  exponentiate<1>(&rest);
  for (std::size_t l = 0; i + l < count; ++l) values[i + l] = rest[l];
}

/// Of the eight columns from `column`, or as many as there are.
void add_moments(const Table& x, const double* weights, const double* centre, double* first,
                 double* second, std::size_t column) {
  constexpr std::size_t registers = 8 / width;
  const std::size_t count = x.columns - column < 8 ? x.columns - column : 8;
  Register middle[registers] = {}, sums[registers] = {}, squares[registers] = {};
  __builtin_memcpy(middle, centre + column, count * sizeof(double));
  const auto add = [&](const double* row, double weight) __attribute__((always_inline)) {
#pragma GCC unroll 4
    for (std::size_t v = 0; v < registers; ++v) {
      const Register d = *reinterpret_cast<const Register*>(row + v * width) - middle[v];
      sums[v] += weight * d;
      squares[v] += weight * d * d;
    }
  };
  // A register may reach beyond the end of its row, but not beyond the table's.
  std::size_t i = 0;
  for (; i < x.rows && (x.rows - 1 - i) * x.stride + x.columns >= column + 8; ++i)
    add(x.data + i * x.stride + column, weights[i]);
  for (; i < x.rows; ++i) {
    double row[8] = {};
    __builtin_memcpy(row, x.data + i * x.stride + column, count * sizeof(double));
    add(row, weights[i]);
  }
  for (std::size_t c = 0; c < count; ++c) {
    first[column + c] += sums[c / width][c % width];
    second[column + c] += squares[c / width][c % width];
  }
}

void add_moments(const Table& x, const double* weights, const double* centre, double* first,
                 double* second) {
  for (std::size_t column = 0; column < x.columns; column += 8)
    add_moments(x, weights, centre, first, second, column);
}

}  // namespace

NEYMAN_DEFINE_KERNELS(exponentiate, add_moments);

}  // namespace neyman::vector_math
