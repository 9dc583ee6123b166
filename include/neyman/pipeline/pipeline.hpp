#pragma once

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "neyman/data/samples.hpp"
#include "neyman/pipeline/model.hpp"
#include "neyman/pipeline/study.hpp"
#include "neyman/reports/results.hpp"

namespace neyman {

class Communicator;
class Tasks;

/// What a run gives: the trained ratio, to keep, and the results, to report.
struct Run {
  Model model;
  Results results;
};

/// The whole chain: simulate, train and calibrate, fit the data, test, run the ensemble,
/// compare with the exact ratio, check. Everything follows from the study and its seed.
Run run(const Study& study);

/// The stages of a run in their order: simulate, train, calibrate, fit, toys (pseudo-experiments:
/// tests, ensemble, coverage, comparison), diagnose, report.
const std::vector<std::string>& stage_names();

/// What became of a stage, or of one part of it.
struct StageNote {
  enum class State {
    kept,     ///< an earlier run has done it, and nothing that it depends on has changed
    done,     ///< now
    skipped,  ///< this kind of run does not have it: the message says why
    damaged,  ///< what an earlier run left cannot be used, as the message says; it is done again
  };
  std::string stage, part;  ///< the part is empty where the stage has none
  State state = State::done;
  double seconds = 0.0;
  std::string message = {};
};

/// One of several jobs that share a run's pseudo-experiments and surfaces without knowing of each
/// other.
struct Part {
  std::size_t number = 1, of = 1;  ///< counted from 1
};

/// How a run in a folder goes on from what earlier ones have left there.
struct RunOptions {
  std::string folder;   ///< for all files; empty: nothing is kept or written
  std::string from;     ///< forget this stage and all after it; empty: keep what can be kept
  std::string until;    ///< the last stage to do; empty: all
  bool fresh = false;   ///< forget all stages
  bool figures = true;  ///< draw, where the study does not say otherwise
  std::string command;  ///< how to repeat the run, for the report
  std::function<void(const StageNote&)> note;  ///< told of each stage; empty: nobody is
  /// Processes that do the run together: each calls `run` with the same study and options, and all
  /// see the folder. Null: this process alone.
  Communicator* ranks = nullptr;
  /// Do this part alone, write it to <folder>/parts/ and stop. Stages before it are read from the
  /// folder or done, and not kept; jobs of other parts may run at the same time.
  std::optional<Part> part = {};
  /// The files of all parts, from which their share is taken instead of being done.
  std::vector<std::string> parts = {};
};

/// What a run in a folder gives.
struct StagedRun {
  Results results;        ///< so far
  bool finished = true;   ///< false where it stopped after `until` or a part
  std::string part = {};  ///< the file of a part that was done
};

/// The same chain in a folder: each stage writes what it gives into <folder>/stages/, atomically,
/// with a checksum and under a fingerprint of all that it depends on (its part of the study, the
/// content of the files named there, the seed, the program, the stages before it). A stage whose
/// fingerprint is there is kept; a damaged file is noticed and made again. However a run ends, the
/// next one goes on after the last stage that was written and ends with the same results to the
/// bit, times aside; so does a run that ranks do together, or that parts were done for. A stage's
/// time is that of the run that did it. The last stage, report, writes what `write_outputs` does.
/// @throw FileError where a file cannot be written, another run is at work in the folder, or a part
///   is missing, there twice, damaged, or of another study.
/// @throw ArgumentError where a stage is not one of `stage_names`, or the study was not read from a
///   file or a text: of fields that were set otherwise, the seed by `reseed` alone is followed; or
///   where there is nothing to do in parts.
StagedRun run(const Study& study, const RunOptions& options);

/// What all stages of a run simulate, before it begins.
struct SimulationPlan {
  /// Events by purpose, as in Results::budget; at most, for checks.
  std::vector<std::pair<std::string, std::size_t>> events;
  /// Calibrations at θ that are not known yet, or epochs with new events, need more.
  bool open = false;
  /// Seconds that a simulator outside of the library needs for these, from what its trial took: as
  /// if a run cost what the trial did, and as if an event did. Nothing where it was not tried, or
  /// events are drawn here.
  std::optional<std::pair<double, double>> seconds;

  std::size_t total() const;
};
SimulationPlan plan_simulation(const Study& study);

/// Fits new data with a trained model; nothing is simulated or trained. Of a measurement: with
/// discovery, limits and all that a run gives, but the exact fit. Columns are taken by their names;
/// those with default names or none in order. The checks are those that need no simulator: whether
/// the data lie where the model has seen events ("range"), and what the model knows of its own
/// normalisation.
/// @throw ArgumentError where the data do not have the model's features.
Results fit_data(const Model& model, const Samples& data, const std::string& source);

/// Checks that need no truth of a ratio between two θ: those that the study's diagnostics name,
/// with events simulated at both, which neither training nor calibration has seen. The verdicts
/// are judged together.
std::vector<Diagnostic> diagnose(const Study& study, const Ratio& ratio,
                                 const std::vector<double>& numerator,
                                 const std::vector<double>& denominator, Tasks* tasks = nullptr);

/// Fits the study's data with a trained model and checks its ratio: between `at`, or the estimate
/// where that is empty, and the point that the study's diagnostics name (else its reference, else
/// the middle of the ranges). Where the estimate is within a tenth of its error of that point,
/// another θ that the study names takes its place.
/// @throw ArgumentError where the model has other parameters or features than the study, or is of a
///   measurement.
Results diagnose_model(const Study& study, const Model& model,
                       const std::optional<std::vector<double>>& at = {});

/// Writes results.json, report.html, run.log, figures/ and, where given, model.h5 into a folder,
/// each file atomically, and returns their paths. Problems with drawing are noted as warnings, not
/// thrown.
std::vector<std::string> write_outputs(Results& results, const Model* model,
                                       const std::string& folder, bool figures);

}  // namespace neyman
