#pragma once

#include <algorithm>
#include <cmath>

#include "neyman/inference/constraint.hpp"

namespace neyman::detail {

/// What an auxiliary observation says about its parameter by itself.
struct AuxiliaryValue {
  double value = 0.0, error = 1.0;
};

inline AuxiliaryValue auxiliary_value(const Constraint& constraint) {
  const double observed = constraint.observed(), width = constraint.width();
  switch (constraint.kind()) {
    case Constraint::Kind::gaussian:
      return {observed, width};
    case Constraint::Kind::log_normal:
      return {observed, observed * width};
    case Constraint::Kind::poisson:
      return {observed / width, std::sqrt(std::max(observed, 1.0)) / width};
  }
  return {};
}

}  // namespace neyman::detail
