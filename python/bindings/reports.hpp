#pragma once

#include <pybind11/pybind11.h>

#include "neyman/reports/figure.hpp"
#include "neyman/reports/results.hpp"

namespace neyman::python {

/// A figure as plain dicts and arrays, each series with the key "type": what neyman.plot draws.
pybind11::dict figure_dict(const reports::Figure& figure);
/// What a check found, as a dict, with its figure.
pybind11::dict diagnostic_dict(const Diagnostic& found);
/// Those of the report of a study.
pybind11::list figures_of(const Results& results);

}  // namespace neyman::python
