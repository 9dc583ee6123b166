#pragma once

#include <memory>

#include "neyman/core/parameters.hpp"
#include "neyman/simulators/design.hpp"
#include "neyman/simulators/distribution.hpp"

namespace neyman::python {

/// A distribution with the parameters that its θ are of.
struct Simulator {
  DistributionPtr distribution;
  ParameterSpace parameters;
};

/// The names of a distribution's features: its own, else x0, x1, ….
std::vector<std::string> feature_names_of(const Distribution& of);

/// A simulator that is written in Python as a value of a study.
SettingValue::Object as_object(const Simulator& simulator);

/// A function of Python that draws θ, as a value of a study.
struct DesignFunction {
  std::shared_ptr<const DesignObject> object;
};

}  // namespace neyman::python
