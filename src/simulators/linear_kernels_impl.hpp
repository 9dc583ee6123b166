// The kernel of linear_kernels.hpp in vectors of the compiler; included once for each instruction
// set, by a source that defines NEYMAN_KERNELS_ISA and is compiled with the options of that set.
// Everything here has internal linkage: no function compiled for one set can serve another.
#include "core/vectors_impl.hpp"
#include "simulators/linear_kernels.hpp"

namespace neyman::linear_kernels {
namespace {

static_assert(lanes == most_outputs);

void transform(const Input* z, std::size_t inputs, std::size_t events, const double* columns,
               const double* offset, std::size_t outputs, double* __restrict x) {
  const double* at_input[most_inputs];
  std::size_t stride[most_inputs];
  for (std::size_t k = 0; k < inputs; ++k) {
    at_input[k] = z[k].data;
    stride[k] = z[k].stride;
  }
  const auto product = [&](std::size_t i, Reals & sum) __attribute__((always_inline)) {
    sum = at(columns) * at_input[0][i * stride[0]];
    for (std::size_t k = 1; k < inputs; ++k)
      sum += at(columns + k * lanes) * at_input[k][i * stride[k]];
    sum += at(offset);
  };
  // What a row writes beyond its end, the next rows write over, if there are enough of them.
  std::size_t i = 0;
  for (; (events - i) * outputs >= lanes; ++i) {
    Reals sum;
    product(i, sum);
    at(x + i * outputs) = sum;
  }
  for (; i < events; ++i) {
    Reals sum;
    product(i, sum);
    for (std::size_t l = 0; l < outputs; ++l) x[i * outputs + l] = sum[l];
  }
}

}  // namespace

NEYMAN_DEFINE_KERNELS(transform);

}  // namespace neyman::linear_kernels
