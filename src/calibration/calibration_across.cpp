#include "neyman/calibration/calibration_across.hpp"

#include "neyman/core/check.hpp"

namespace neyman {

CalibrationAcross::Derivatives CalibrationAcross::derivatives(const Logits&,
                                                              std::span<const double>) const {
  fail_argument("CalibrationAcross::derivatives", "calibration", kind(), "differentiable");
}

}  // namespace neyman
