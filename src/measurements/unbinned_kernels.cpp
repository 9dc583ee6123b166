#include "measurements/unbinned_kernels.hpp"

#include "core/instruction_set.hpp"

namespace neyman::unbinned {

const Kernels& kernels() {
  static const Kernels& chosen =
      detail::choose("unbinned", detail::supported(unbinned::all_kernels));
  return chosen;
}

}  // namespace neyman::unbinned
