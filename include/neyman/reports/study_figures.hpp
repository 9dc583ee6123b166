#pragma once

#include <vector>

#include "neyman/reports/figure.hpp"
#include "neyman/reports/results.hpp"

namespace neyman::reports {

/// The figures of a study, each where the results have what it shows, in this order:
///   data        one feature: its histogram with p(x|θ0) and p(x|θ1); up to eight: a scatter
///               matrix; more: the histograms of the first twelve
///   scores      for each pair of components, the densities of the score and (1 + r̂)⁻¹
///   ratio       log r̂(x) of each classifier beside the exact one
///   log-ratio   distribution of log r̂ at θ0 beside the exact one
///   likelihood  −2 log Λ of each parameter, learned and exact, with intervals
///   surface-<first>-<second>   for each pair of parameters, −2 log Λ as found in each way, with
///               contours, truth and estimates, and the points where it was evaluated
///   contours-<first>-<second>  all its contours together
///   correlation of the estimates, from three parameters
///   ensemble    estimates over the ensemble, and −2 log Λ against χ²
///   coverage    at each θ by level, with χ² and with simulated thresholds
///   test        the test statistic under both hypotheses, and the observed one
///   diagnostic-<name>          the panels of each diagnostic
///   measurement-<name>         those of measurement_figures but the correlations, of a measurement
/// Each caption states in words and numbers what the figure shows.
std::vector<Figure> study_figures(const Results& results);

}  // namespace neyman::reports
