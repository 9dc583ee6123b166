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
CalibratorEntry entry(const char* kind) {
  return {kind, [](Settings& settings) -> std::unique_ptr<Calibrator> {
            return std::make_unique<T>(T::Config::from(settings));
          }};
}

}  // namespace

// Every kind of calibrator: one line each.
const std::vector<CalibratorEntry>& calibrator_list() {
  static const std::vector<CalibratorEntry> list = {
      entry<SmoothCalibrator>("smooth"),        //
      entry<HistogramCalibrator>("histogram"),  //
      entry<KdeCalibrator>("kde"),              //
      entry<IsotonicCalibrator>("isotonic"),    //
      entry<SigmoidCalibrator>("sigmoid"),      //
      entry<NoneCalibrator>("none"),
  };
  return list;
}

}  // namespace neyman::calibration
