#pragma once

#include <cstddef>
#include <vector>

// What events that no classifier has learned from say about a learned log-ratio: whether it is
// better than none, and how much of it is best.
namespace neyman::detail {

/// Two sides that are told apart by log p₁ / p₀ = offset + strength · direction + constant, as
/// their events have it.
struct Comparison {
  struct Side {
    /// Sides with the same number are of the same events, row by row: what one row adds to several
    /// of them is one contribution.
    std::size_t rows = 0;
    std::vector<double> weights;         ///< may be negative
    std::vector<double> offset = {};     ///< or empty: 0
    std::vector<double> direction = {};  ///< one an event
  };
  Side numerator, denominator;
};

/// The slope of the log-likelihood in `strength` at 0, over its standard deviation from the
/// contributions of the rows, over √2; 0 where nothing fluctuates.
///
/// The √2: directions are learned in folds, from the events of all other folds. To first order they
/// are Σ_j y_j k(x, x_j), and the slope is Σ y_i y_j k(x_i, x_j) over pairs of different folds,
/// each of which is there twice. Its variance is twice what it seems from one fold's view. With ν
/// equally large eigenvalues of k the slope is (s − ν) / √(2 s), s of a χ² of ν degrees of freedom:
/// above 3.3 with a probability of 1e-6 (ν = 1), 3e-5 (10), 1e-4 (50), 5e-4 (many).
double significance(
    const std::vector<Comparison>& comparisons);  /// Where the false-alarm rate of the larger of
                                                  /// two `significance` is at most 1e-3.
inline constexpr double least_significance = 3.3;

/// The strength in [0, 4] of the highest log-likelihood: above 1 where each side of a variation was
/// weakened for noise that their difference does not have.
double best_strength(const std::vector<Comparison>& comparisons);
/// What a strength gains in log-likelihood over none, sides having weight one.
double gain(const std::vector<Comparison>& comparisons, double strength);

}  // namespace neyman::detail
