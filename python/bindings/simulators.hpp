#pragma once

#include "neyman/core/parameters.hpp"
#include "neyman/simulators/distribution.hpp"

namespace neyman::python {

/// A distribution with the parameters that its θ are of.
struct Simulator {
  DistributionPtr distribution;
  ParameterSpace parameters;
};

}  // namespace neyman::python
