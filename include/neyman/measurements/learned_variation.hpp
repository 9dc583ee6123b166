#pragma once

#include <string>
#include <vector>

namespace neyman {

/// What held-out events say about the shape of a variation that was learned: how significant it is,
/// and how much of it is kept.
struct LearnedVariation {
  /// Where the events at −1 and +1 come from: the nominal ones themselves with their weights (there
  /// is no shape then), the nominal ones with weights of their own, or others.
  enum class Events { nominal, weighted, own };
  /// Both sides are judged by two parts, "difference" (between +1 and −1) and "mean" (of the two,
  /// from the nominal events); where one side has the nominal events, by the other, "low" or
  /// "high".
  struct Part {
    std::string name;
    double significance = 0.0;  ///< in standard deviations; negative: worse than no shape
    /// What log r, the mean over the folds, is multiplied by. 0: pruned, there is no such shape. A
    /// mean has less noise than each of the folds, so that it may be above 1.
    double strength = 0.0;
    /// What log r by the one fold that has not seen an event is multiplied by, so that it moves as
    /// much as the mean.
    double held_out = 0.0;
    bool operator==(const Part&) const = default;
  };

  std::string component, parameter;
  Events events = Events::own;
  std::vector<Part> parts = {};

  /// Whether anything is left of the shape.
  bool kept() const;
  bool operator==(const LearnedVariation&) const = default;
};

/// "nominal", "weighted" or "own".
std::string to_string(LearnedVariation::Events events);

}  // namespace neyman
