#pragma once

#include <cstddef>
#include <span>
#include <string>
#include <vector>

#include "neyman/diagnostics/diagnostic.hpp"

// Checks of what the method does in repetition, on datasets simulated at a known θ.
namespace neyman {

/// How many of the simulated datasets have θ inside the region of a level.
struct CoverageCount {
  double level = 0.683;
  std::size_t inside = 0, datasets = 0;
  std::string of = {};  ///< what the region is of ("alpha"), where there are several of one level
};

struct CoverageTestConfig {
  double tolerance = 0.01;  ///< of the coverage
};

/// Coverage against its nominal level: exact two-sided binomial p-values for the coverage within
/// the tolerance of the level that fits best, the smallest corrected for the number of levels. The
/// further results are named `coverage:0.683` and `p_value:0.683`, with `of` between where it is
/// not empty, and `#2`, `#3`, … after names that would be the same.
/// @throw ArgumentError without counts, with a level outside (0, 1) or more inside than datasets.
Diagnostic diagnose_coverage(std::span<const CoverageCount> counts,
                             const CoverageTestConfig& config = {});

/// Wilks' theorem: −2 log Λ(θ) at the simulated θ against χ², by Kolmogorov and Smirnov; the
/// figure has its quantiles against those of χ².
/// @throw ArgumentError without values, or where one is negative.
Diagnostic diagnose_wilks(std::span<const double> statistics, double degrees);

}  // namespace neyman
