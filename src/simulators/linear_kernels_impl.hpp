// The kernel of linear_kernels.hpp in vectors of the compiler; included once for each instruction
// set, by a source that defines NEYMAN_KERNELS_ISA and is compiled with the options of that set.
// Everything here has internal linkage: no function compiled for one set can serve another.
#include "core/vectors_impl.hpp"
#include "simulators/linear_kernels.hpp"

namespace neyman::linear_kernels {
namespace {

static_assert(lanes == most_outputs);

void transform(const double* z, std::size_t rows, std::size_t inputs, const double* columns,
               const double* offset, std::size_t outputs, double* x) {
  const auto product = [&](const double* row, Reals& sum) __attribute__((always_inline)) {
    sum = at(columns) * row[0];
    for (std::size_t k = 1; k < inputs; ++k) sum += at(columns + k * lanes) * row[k];
    sum += at(offset);
  };
  // What a row writes beyond its end, the next rows write over, if there are enough of them.
  std::size_t i = 0;
  for (; (rows - i) * outputs >= lanes; ++i) {
    Reals sum;
    product(z + i * inputs, sum);
    at(x + i * outputs) = sum;
  }
  for (; i < rows; ++i) {
    Reals sum;
    product(z + i * inputs, sum);
    for (std::size_t l = 0; l < outputs; ++l) x[i * outputs + l] = sum[l];
  }
}

}  // namespace

NEYMAN_DEFINE_KERNELS(transform);

}  // namespace neyman::linear_kernels
