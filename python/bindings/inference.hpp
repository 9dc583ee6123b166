#pragma once

#include <optional>
#include <vector>

#include "bindings.hpp"
#include "neyman/core/parameters.hpp"
#include "neyman/inference/fit.hpp"

namespace neyman::python {

/// Values of parameters that are held, by name: { "alpha": 1.0 }.
std::vector<std::optional<double>> read_fixed(const py::dict& given,
                                              const ParameterSpace& parameters);

py::dict interval_dict(const Interval& interval);

}  // namespace neyman::python
