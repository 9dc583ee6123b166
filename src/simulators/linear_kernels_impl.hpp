// The kernel of linear_kernels.hpp in vectors of the compiler; included once for each instruction
// set, by a source that defines NEYMAN_KERNELS_ISA and is compiled with the options of that set.
// Everything here has internal linkage: no function compiled for one set can serve another.
#include "core/register_lanes_impl.hpp"
#include "simulators/linear_kernels.hpp"

namespace neyman::linear_kernels {
namespace {

constexpr std::size_t lanes = register_lanes;
constexpr std::size_t vectors = most_outputs / lanes;

typedef double Reals __attribute__((vector_size(8 * lanes), aligned(8), may_alias));

inline __attribute__((always_inline)) const Reals& at(const double* from) {
  return *reinterpret_cast<const Reals*>(from);
}

void transform(const Input* z, std::size_t inputs, std::size_t events, const double* columns,
               const double* offset, std::size_t outputs, double* __restrict x) {
  const double* at_input[most_inputs];
  std::size_t stride[most_inputs];
  for (std::size_t k = 0; k < inputs; ++k) {
    at_input[k] = z[k].data;
    stride[k] = z[k].stride;
  }
  const auto product = [&](std::size_t i, double* out) __attribute__((always_inline)) {
    Reals sums[vectors];
    const double first = at_input[0][i * stride[0]];
    for (std::size_t v = 0; v < vectors; ++v) sums[v] = at(columns + v * lanes) * first;
    for (std::size_t k = 1; k < inputs; ++k) {
      const double value = at_input[k][i * stride[k]];
      for (std::size_t v = 0; v < vectors; ++v)
        sums[v] += at(columns + k * most_outputs + v * lanes) * value;
    }
    for (std::size_t v = 0; v < vectors; ++v)
      *reinterpret_cast<Reals*>(out + v * lanes) = sums[v] + at(offset + v * lanes);
  };
  // What a row writes beyond its end, the next rows write over, if there are enough of them.
  std::size_t i = 0;
  for (; (events - i) * outputs >= most_outputs; ++i) product(i, x + i * outputs);
  for (; i < events; ++i) {
    double row[most_outputs];
    product(i, row);
    for (std::size_t j = 0; j < outputs; ++j) x[i * outputs + j] = row[j];
  }
}

}  // namespace

NEYMAN_DEFINE_KERNELS(transform);

}  // namespace neyman::linear_kernels
