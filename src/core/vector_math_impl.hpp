// The kernels of vector_math.hpp in vectors of the compiler; included once for each instruction
// set, by a source that defines NEYMAN_KERNELS_ISA and is compiled with the options of that set.
// Everything here has internal linkage: no function compiled for one set can serve another.
#include "core/vector_math.hpp"
#include "core/vectors_impl.hpp"

namespace neyman::vector_math {
namespace {

/// x becomes e^x = 2^n e^r with |r| ≤ ½ log 2, and e^r by its series to r¹³.
inline __attribute__((always_inline)) void exponentiate(Reals& x) {
  constexpr double limit = 708.0;
  constexpr double log2_e = 1.44269504088896340736;
  constexpr double ln2_high = 6.93147180369123816490e-01, ln2_low = 1.90821492927058770002e-10;
  constexpr double shift = 6755399441055744.0;  // 1.5 · 2^52: adding it rounds to a whole number
  x = x > limit ? Reals{} + limit : x;
  x = x < -limit ? Reals{} - limit : x;
  const Reals shifted = x * log2_e + shift;
  const Reals n = shifted - shift;
  const Reals r = (x - n * ln2_high) - n * ln2_low;
  Reals sum = Reals{} + 1.0 / 6227020800.0;
  sum = sum * r + 1.0 / 479001600.0;
  sum = sum * r + 1.0 / 39916800.0;
  sum = sum * r + 1.0 / 3628800.0;
  sum = sum * r + 1.0 / 362880.0;
  sum = sum * r + 1.0 / 40320.0;
  sum = sum * r + 1.0 / 5040.0;
  sum = sum * r + 1.0 / 720.0;
  sum = sum * r + 1.0 / 120.0;
  sum = sum * r + 1.0 / 24.0;
  sum = sum * r + 1.0 / 6.0;
  sum = sum * r + 0.5;
  sum = (sum * r) * r + r;
  const Reals fraction = sum + 1.0;
  // The low bits of `shifted` hold n.
  const Words power = reinterpret_cast<const Words&>(shifted) << 52;
  const Words out = reinterpret_cast<const Words&>(fraction) + power;
  x = reinterpret_cast<const Reals&>(out);
}

void exponentiate(double* values, std::size_t count) {
  std::size_t i = 0;
  for (; i + lanes <= count; i += lanes) {
    Reals here = *reinterpret_cast<const Reals*>(values + i);
    exponentiate(here);
    *reinterpret_cast<Reals*>(values + i) = here;
  }
  if (i == count) return;
  Reals rest{};
  for (std::size_t l = 0; i + l < count; ++l) rest[l] = values[i + l];
  exponentiate(rest);
  for (std::size_t l = 0; i + l < count; ++l) values[i + l] = rest[l];
}

}  // namespace

NEYMAN_DEFINE_KERNELS(exponentiate);

}  // namespace neyman::vector_math
