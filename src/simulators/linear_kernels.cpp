#include "simulators/linear_kernels.hpp"

#include "core/instruction_set.hpp"

namespace neyman::linear_kernels {

const Kernels& kernels() {
  static const Kernels& chosen =
      detail::choose("linear-transform", detail::supported(linear_kernels::all_kernels));
  return chosen;
}

}  // namespace neyman::linear_kernels
