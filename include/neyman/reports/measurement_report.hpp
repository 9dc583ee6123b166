#pragma once

#include <string>
#include <vector>

#include "neyman/measurements/measurement_summary.hpp"
#include "neyman/reports/gnuplot.hpp"
#include "neyman/reports/html.hpp"

namespace neyman::reports {

/// Adds a measurement to a page, with those figures that are its own ("measurement-…"), in the
/// sections "Measurement", "Upper limit", "Nuisance parameters" and "Before and after the fit",
/// each where there is something to say.
void add_measurement(Page& page, const MeasurementSummary& summary,
                     const std::vector<DrawnFigure>& figures);

/// What the report of a measurement says about where it comes from.
struct MeasurementOrigin {
  std::string title;         ///< of the page
  std::string source = {};   ///< the file of the model
  std::string data = {};     ///< what the data are, where they are not those observed
  std::string command = {};  ///< that makes the report again
  std::vector<std::string> warnings = {};
};

/// A measurement as one self-contained HTML page.
std::string measurement_report(const MeasurementSummary& summary, const MeasurementOrigin& origin,
                               const std::vector<DrawnFigure>& figures = {});

}  // namespace neyman::reports
