#pragma once

#include <pybind11/pybind11.h>

#include "neyman/reports/results.hpp"

namespace neyman::python {

/// The figures of a report as plain dicts and arrays, each series with the key "type": what
/// neyman.plot draws.
pybind11::list figures_of(const Results& results);

}  // namespace neyman::python
