#pragma once

#include <memory>
#include <string>
#include <vector>

#include "neyman/calibration/calibrator.hpp"

namespace neyman::calibration {

/// A kind's name, what it is, and how to make one from a settings table.
struct CalibratorEntry {
  std::string kind;
  std::string meaning;
  std::unique_ptr<Calibrator> (*make)(Settings& settings);
};

const std::vector<CalibratorEntry>& calibrator_list();

}  // namespace neyman::calibration
