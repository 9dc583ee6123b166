#pragma once

#include <vector>

#include "neyman/reports/figure.hpp"
#include "neyman/reports/results.hpp"

namespace neyman::reports {

/// The figures of a study, each where the results have what it shows, in this order:
///   data        histogram of each feature; with one feature, p(x|θ0) and p(x|θ1) over it
///   scores      for each pair of components, the densities of the score and (1 + r̂)⁻¹
///   ratio       log r̂(x) of each classifier beside the exact one
///   log-ratio   distribution of log r̂ at θ0 beside the exact one
///   likelihood  −2 log Λ of each parameter, learned and exact, with intervals
///   ensemble    estimates over the ensemble, and −2 log Λ against χ²
///   test        the test statistic under both hypotheses, and the observed one
/// Each caption states in words and numbers what the figure shows.
std::vector<Figure> study_figures(const Results& results);

}  // namespace neyman::reports
