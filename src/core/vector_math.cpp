#include "core/vector_math.hpp"

#include "core/instruction_set.hpp"

namespace neyman::vector_math {

const Kernels& kernels() {
  static const Kernels& chosen =
      detail::choose("vector_math", detail::supported(vector_math::all_kernels));
  return chosen;
}

}  // namespace neyman::vector_math
