#pragma once

#include <cstddef>
#include <optional>
#include <span>
#include <string_view>
#include <vector>

#include "neyman/calibration/calibrator.hpp"

// What all calibrators do to scores before they fit: check, scale the weights, sort or count, and
// summarise in cells.
namespace neyman::calibration {

/// Logits larger than this in size count as this.
inline constexpr double largest_logit = 1e6;
double clamp_logit(double logit);

/// One side's weights in units of events.
struct SideWeights {
  std::vector<double> values;  ///< one a score; empty: all 1
  double total = 0.0;          ///< Σ values, the effective number of events
};

/// Checks one side and scales its weights as `WeightMeaning` says.
SideWeights scale_weights(std::string_view side, std::span<const double> scores,
                          std::span<const double> weights, WeightMeaning meaning);

/// One side's scores in their given order, checked and within ±largest_logit, without the events
/// that have no weight.
struct CheckedSide {
  std::span<const double> given;
  std::vector<double> changed;  ///< in place of `given` where some were changed or left out
  std::vector<double> weights;  ///< one a score; empty: all 1
  double total = 0.0;
  double low = 0.0, high = 0.0;  ///< extremes of the scores

  std::span<const double> scores() const {
    return changed.empty() ? given : std::span<const double>(changed);
  }
};

struct CheckedScores {
  CheckedSide numerator, denominator;
};

/// Checks both sides and scales their weights.
CheckedScores check_scores(const CalibrationSet& data);

/// One side's scores in increasing order.
struct SortedSide {
  std::vector<double> scores;
  std::vector<double> weights;  ///< in the order of `scores`; empty: all 1
  double total = 0.0;

  std::size_t size() const { return scores.size(); }
  double weight(std::size_t i) const { return weights.empty() ? 1.0 : weights[i]; }
};

struct SortedScores {
  SortedSide numerator, denominator;
  double low() const;
  double high() const;
};

/// The sides of `visit_in_order`, and what an event of weight 1 adds to the one and to the other.
inline constexpr std::size_t numerator_side = 0, denominator_side = 1;
inline constexpr double to_numerator[2] = {1.0, 0.0}, to_denominator[2] = {0.0, 1.0};

/// Calls visit(score, side, weight) for the events of both sides in increasing order; among equal
/// scores the denominator's come first. Which side is next cannot be predicted, so nothing here
/// branches on it, and a visitor should not either.
template <class Visit>
void visit_in_order(const SortedScores& scores, Visit&& visit) {
  const SortedSide &num = scores.numerator, &den = scores.denominator;
  const std::size_t size0 = num.size(), size1 = den.size();
  const double *z0 = num.scores.data(), *z1 = den.scores.data();
  std::size_t i = 0, j = 0;
  const auto merge = [&](auto weight_of) {
    while (i < size0 && j < size1) {
      const double a = z0[i], b = z1[j];
      const std::size_t side = b <= a ? denominator_side : numerator_side;
      const double weight = weight_of(side);
      i += 1 - side;
      j += side;
      visit(b < a ? b : a, side, weight);
    }
  };
  if (num.weights.empty() && den.weights.empty())
    merge([](std::size_t) { return 1.0; });
  else
    merge([&](std::size_t side) { return side == 0 ? num.weight(i) : den.weight(j); });
  for (; i < size0; ++i) visit(z0[i], numerator_side, num.weight(i));
  for (; j < size1; ++j) visit(z1[j], denominator_side, den.weight(j));
}

SortedScores sort_scores(CheckedScores scores);
/// Checks, scales and sorts both sides; events without weight are left out.
SortedScores sort_scores(const CalibrationSet& data);

/// The scores in increasing order; the weights, where there are any, are put in the same order.
/// Radix sort: O(n).
std::vector<double> sort_with_weights(std::span<const double> scores, std::vector<double>& weights);

/// Both sides summarised in cells of neighbouring scores, in increasing order. Within a cell
/// only the mean score is kept, so cells are fine: about 1/512 of the balanced sample each,
/// down to single events at both ends, and equal scores always share a cell.
struct Cells {
  std::vector<double> score;  ///< weighted mean over both sides, each side normalised
  std::vector<double> upper;  ///< largest score in the cell
  std::vector<double> numerator, denominator;  ///< number of events
  double numerator_total = 0.0, denominator_total = 0.0;
  double low = 0.0, high = 0.0;  ///< extremes of all scores

  std::size_t size() const { return score.size(); }
  /// The share of the cell in the sample in which both sides count the same; they sum to 1.
  double share(std::size_t i) const {
    return 0.5 * (numerator[i] / numerator_total + denominator[i] / denominator_total);
  }
  std::size_t find(double logit) const;  ///< the cell that holds, or would hold, a score
};

inline constexpr double usual_cell_share = 1.0 / 512;

Cells make_cells(const SortedScores& scores, double cell_share = usual_cell_share);

/// Both sides counted in narrow cells of equal width between the extreme scores: of many events
/// all that a calibrator needs which does not look at single ones, for a tenth of the time of a
/// sort.
struct FineCounts {
  std::vector<double> numerator, denominator;  ///< number of events, in the order of scores
  double numerator_total = 0.0, denominator_total = 0.0;
  double low = 0.0, high = 0.0;  ///< extremes of all scores
  double width = 0.0;            ///< of a cell

  std::size_t size() const { return numerator.size(); }
  /// Cell i holds upper(i − 1) < z <= upper(i), up to rounding.
  double upper(std::size_t i) const { return high - width * static_cast<double>(size() - 1 - i); }
  double middle(std::size_t i) const {
    return high - width * (static_cast<double>(size() - 1 - i) + 0.5);
  }
};

/// The number of cells is a multiple of `multiple`. Nothing where the order of the scores says
/// more: of few events, or where one cell holds more than half of `cell_share`, as with scores of
/// few values or with some that are far from all others.
std::optional<FineCounts> count_finely(const CheckedScores& scores,
                                       double cell_share = usual_cell_share,
                                       std::size_t multiple = 1);

/// Of the same kind as those of sorted scores, with ends between fine cells.
Cells make_cells(const FineCounts& counts, double cell_share = usual_cell_share);
/// From fine counts where they do, else from the sorted scores.
Cells make_cells(const CheckedScores& scores, double cell_share = usual_cell_share);

/// Throws ArgumentError unless the calibrator is fitted and all logits are finite.
void check_evaluation(const Calibrator& calibrator, std::string_view function,
                      const Logits& logits);

}  // namespace neyman::calibration
