#pragma once

#include <string>
#include <vector>

#include "neyman/reports/gnuplot.hpp"
#include "neyman/reports/results.hpp"

namespace neyman::reports {

/// The report of a study as one self-contained HTML page: the answer first, then what could be
/// wrong with it, then how it came about. `figures` are those of study_figures that were drawn,
/// or none; each stands in its section, and those it does not know come last. Of a measurement,
/// what `add_measurement` says follows the result, with its figures.
std::string study_report(const Results& results, const std::vector<DrawnFigure>& figures = {});

}  // namespace neyman::reports
