#include "calibration/score_kernels.hpp"

#include "core/instruction_set.hpp"

namespace neyman::calibration::score_kernels {

const Kernels& kernels() {
  static const Kernels& chosen =
      detail::choose("Calibrator", detail::supported(score_kernels::all_kernels));
  return chosen;
}

}  // namespace neyman::calibration::score_kernels
