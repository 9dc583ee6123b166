#pragma once

#include <cstddef>
#include <vector>

#include "neyman/measurements/measurement_summary.hpp"
#include "neyman/reports/figure.hpp"

namespace neyman::reports {

/// The figures of a measurement, each where the summary has what it shows, in this order:
///   measurement-strength     the estimate with its errors beside the upper limits
///   measurement-profile      −2 log Λ of the parameter of interest, with the others profiled and
///                            held
///   measurement-limit        CL_s against the parameter of interest, observed and expected with
///                            the bands of ±1 and ±2σ
///   measurement-impacts      pulls and constraints of nuisance parameters beside their impacts,
///                            ranked: the 30 largest
///   measurement-correlations of the parameters: of many, the 30 that are correlated most
///   measurement-channel-…    what was counted in each channel and what is expected there, before
///                            and after the fit
std::vector<Figure> measurement_figures(const MeasurementSummary& summary);

/// The last of these, for one histogram. Of more than eight samples the smallest are drawn as one.
Figure channel_figure(const ChannelHistogram& histogram);

}  // namespace neyman::reports
