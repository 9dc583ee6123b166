#pragma once

#include <memory>
#include <string>
#include <vector>

#include "neyman/calibration/calibrator.hpp"

namespace neyman::calibration {

/// A kind's name and how to make one from a settings table.
struct CalibratorEntry {
  std::string kind;
  std::unique_ptr<Calibrator> (*make)(Settings& settings);
};

const std::vector<CalibratorEntry>& calibrator_list();

}  // namespace neyman::calibration
