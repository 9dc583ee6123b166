#include "calibration/calibrator_list.hpp"

#include <memory>
#include <string>
#include <vector>

#include "neyman/calibration/histogram.hpp"
#include "neyman/calibration/isotonic.hpp"
#include "neyman/calibration/kde.hpp"
#include "neyman/calibration/none.hpp"
#include "neyman/calibration/sigmoid.hpp"
#include "neyman/calibration/smooth.hpp"

namespace neyman::calibration {

namespace {

template <class T>
CalibratorEntry entry(const char* kind, const char* meaning) {
  return {kind, meaning, [](Settings& settings) -> std::unique_ptr<Calibrator> {
            return std::make_unique<T>(T::Config::from(settings));
          }};
}

}  // namespace

// Every kind of calibrator: one line each.
const std::vector<CalibratorEntry>& calibrator_list() {
  static const std::vector<CalibratorEntry> list = {
      entry<SmoothCalibrator>("smooth", "a smooth, monotone curve (spline)"),
      entry<HistogramCalibrator>("histogram", "ratios of histograms of the scores"),
      entry<KdeCalibrator>("kde", "ratios of kernel densities of the scores"),
      entry<IsotonicCalibrator>("isotonic", "monotone steps"),
      entry<SigmoidCalibrator>("sigmoid", "a straight line in the logits"),
      entry<NoneCalibrator>("none", "the classifier's scores as they are"),
  };
  return list;
}

}  // namespace neyman::calibration
