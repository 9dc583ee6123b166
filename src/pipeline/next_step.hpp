#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "neyman/pipeline/study.hpp"
#include "neyman/ratios/learning_curve.hpp"
#include "neyman/reports/results.hpp"

// What would make a result better, from evidence: the one place that turns it into proposals.
namespace neyman::pipeline {

/// What is known of a run beside its results, and what was tried to find out what helps.
struct Evidence {
  bool files = false;               ///< the events come from files, not from a simulator
  std::vector<std::size_t> untold;  ///< parameters that the features do not tell of
  std::optional<LearningCurve> curve;
  /// Other models that know significantly more with as many events, the best first.
  struct Better {
    NextStep step;  ///< the key that asks for it
    LearningCurve::Estimate advantage;
  };
  std::vector<Better> better;
};

/// Another model to try.
struct OtherModel {
  NextStep step;
  LearningCurve::Train train;
  /// What it is compared with, where that is not the model of the curve. Such a model is tried
  /// only where the curve does not rise.
  LearningCurve::Train than = {};
};

/// Trains a model on parts of the events, and the others on a half of them. Where the events are
/// too few for that, nothing is known.
void add_trials(const Samples& events, const LearningCurve::Train& model,
                std::span<const OtherModel> others, std::uint64_t seed, Evidence& evidence);

/// The next steps, best first; none where checks pass and the simulation error is small. Those that
/// the results hold already, as training noted them, are among them.
std::vector<NextStep> next_steps(const Results& results, const Evidence& evidence = {});

/// Notes the next steps. `try_more`, which costs time, is asked where there is something to mend.
void note_next_steps(Results& results, Evidence evidence = {},
                     const std::function<void(Evidence&)>& try_more = {});

}  // namespace neyman::pipeline
