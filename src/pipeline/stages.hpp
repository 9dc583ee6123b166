#pragma once

#include <atomic>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "neyman/core/progress.hpp"
#include "neyman/inference/likelihood.hpp"
#include "neyman/pipeline/pipeline.hpp"
#include "pipeline/chain.hpp"

// What the kinds of runs share.
namespace neyman::pipeline {

/// Times a stage and notes it in the results.
template <class Work>
auto timed(Results& results, const char* stage, Work&& work) {
  const double start = seconds_now();
  struct Note {
    Results& results;
    const char* stage;
    double start;
    ~Note() { results.timing.emplace_back(stage, seconds_now() - start); }
  } note{results, stage, start};
  return work();
}

Samples make_samples(Matrix x, const std::vector<std::string>& names);

/// The names of a simulator's features: its own, else x0, x1, ….
std::vector<std::string> feature_names_of(const Distribution& simulator);

/// A step of a run with what it depends on; for `report`, how it was called is left to add.
Step step_of(const Study& study, const std::string& stage, const std::string& part = {});

/// @throw ArgumentError where a part is missing that every study of its kind has, or every model:
///   those that a program put together.
void check_whole(const char* function, const Study& study);
void check_whole(const char* function, const Model& model);

/// What is known of a run before it starts.
void describe_study(const Study& study, Results& results);

/// The events of a simulator that holds events, as far as a quick study takes them; `which` tells
/// several apart.
Samples training_events(const Study& study, const Distribution& of, std::uint64_t which = 0);
/// All of them on the disk, where they train a study that is not quick.
std::shared_ptr<const SampleStream> training_stream(const Study& study, const Distribution& of);

/// The data of a study: its files, events that a program gave, or events simulated at the truth.
struct Observed {
  Samples events;
  std::string source;
  std::size_t rows = 0, dropped = 0;  ///< of the files
  std::string note = {};              ///< how their columns were taken
};
Observed observe(const Study& study);
void note_data(const Observed& observed, Results& results);

/// Adds what a simulator that is another program has to tell; `purpose` is what the events were
/// for.
void note_tally(const SimulatorTally& tally, const ParameterSpace& parameters, const char* purpose,
                Results& results);
/// Whether calibrations are made at each θ that is asked for. How many there are, and so the
/// budget, depends on who was asked for what: such a run's fits are not spread over ranks or parts.
bool calibrates_on_demand(const Study& study);
Model start_model(const Study& study, const Results& results);

/// What is asked of a fit beside the estimate, and who is told how far it is.
struct FitPlan {
  std::vector<double> levels;
  std::size_t scan_points = 101;
  Progress* progress = nullptr;

  /// Steps by which a fit and its report advance the progress.
  std::size_t steps(const ParameterSpace& parameters) const {
    return 1 + parameters.size() * (levels.size() + scan_points);
  }
};

/// A likelihood that tells how often it was evaluated.
class CountedLikelihood final : public Likelihood {
 public:
  CountedLikelihood(const Likelihood& of, Progress* progress) : of_(of), progress_(progress) {}
  const ParameterSpace& parameters() const override { return of_.parameters(); }
  std::size_t events() const override { return of_.events(); }
  double operator()(std::span<const double> point, std::span<double> gradient = {}) const override {
    const double value = of_(point, gradient);
    count();
    return value;
  }
  std::optional<double> second_derivatives(std::span<const double> point,
                                           std::span<double> gradient,
                                           Matrix& hessian) const override {
    const auto value = of_.second_derivatives(point, gradient, hessian);
    if (value) count();
    return value;
  }
  bool differentiable() const override { return of_.differentiable(); }
  const DesignRegion* region() const override { return of_.region(); }

 private:
  void count() const {
    if (progress_ != nullptr) progress_->merit("evaluations", static_cast<double>(++count_));
  }

  const Likelihood& of_;
  Progress* progress_;
  mutable std::atomic<std::size_t> count_{0};
};

/// How many events the checks simulate where the study's keys leave it open (see Study).
struct CheckEvents {
  std::size_t recovery = 0;  ///< at the estimate
  std::size_t each = 0;      ///< at each θ of the checks of the ratio
  std::size_t points = 0;    ///< beside the estimate, near it
  bool wide = true;          ///< whether the ratio to a point far from it is looked at, too
  std::size_t total() const;
};
CheckEvents events_of_checks(const Study& study, std::size_t data_events);

/// The intervals of a report from its fit: again, where its errors have changed.
void set_intervals(const Likelihood& likelihood, const std::vector<double>& levels,
                   FitReport& report, Progress* progress = nullptr);
/// Intervals and curves of a fit, which begins again where they come upon a higher maximum.
/// `add_simulation` adds what finite simulation does to a fit; empty: that is known already.
FitReport report_fit(const Likelihood& likelihood, Fit best, const FitPlan& plan,
                     const std::function<void(Fit&)>& add_simulation = {});
/// That nothing is simulated of an exact likelihood.
inline void without_simulation(Fit& fit) { fit.simulation_known = true; }
/// `region`: where the design of a learned ratio has events, or null.
void note_fit(const FitReport& report, const ParameterSpace& parameters, const char* which,
              Results& results, const DesignRegion* region = nullptr);
/// Of datasets of a test that could not be simulated.
void note_test(Results& results);
/// Where `outside` counts some of the events.
void warn_outside(Results& results);
void note_outside(const Ratio& ratio, const Samples& data, Results& results);
/// The check that new data allow without the simulator: whether they lie where the model has seen
/// events. Adds to the diagnostics what `outside` counts.
void check_outside(Results& results);

/// "alpha = 0.98, beta = -1.1"
std::string describe_point(const ParameterSpace& parameters, const std::vector<double>& point);
/// How datasets at the estimate are fitted: as the data are, without constraints.
struct RecoveryOf {
  std::function<std::unique_ptr<const Likelihood>(MatrixView x, std::span<const double> weights)>
      likelihood;
  /// Of the gradient at a point, from finite simulation; empty where it is not known.
  std::function<Matrix(MatrixView x, const std::vector<double>& point)> gradient_covariance;
};
RecoveryOf recovery_of(const ParameterizedRatio& ratio);
RecoveryOf recovery_of(const ParameterSpace& parameters, const MixtureRatio& ratio);
/// The same for data that a model was fitted to.
void recheck_recovery(const Study& study, const Model& model, const Samples& data,
                      Results& results);
/// The checks of a ratio between two θ that the study asks for.
std::vector<std::string> ratio_checks(const Study& study);
/// Whether the study's diagnostics name a check.
bool asks_for(const Study& study, const char* check);
/// Simulates events at the estimate and fits them, where the study asks for `recovery`. Where the
/// shift is more than the reported simulation error explains, that error and the intervals of the
/// report, from `likelihood` of the data, are enlarged, and a warning says so.
void check_recovery(const Study& study, const RecoveryOf& of, const Samples& data,
                    const Likelihood& likelihood, Tasks* tasks, Results& results);
/// Checks r̂ near the estimate, and between it and a point far from it; or between `at` and that
/// point alone.
void diagnose_ratio(const Study& study, const Ratio& ratio, Tasks* tasks, Results& results,
                    std::optional<std::vector<double>> at = {});
/// Learns the ratio again with other θ1 and compares −2 log Λ of the data along each parameter of
/// interest, where the study asks for `reference`.
void diagnose_references(const Study& study, const Ratio& ratio, const Samples& data, Tasks* tasks,
                         Results& results);
/// Checks what pseudo-experiments gave, where there are any.
void diagnose_repetition(Results& results);

/// All stages up to diagnose where ratios between components of a mixture serve every θ. The model
/// is made from the results when it is asked for.
Lazy<Model> run_decomposed(const Study& study, Chain& chain);
/// The same with one model for all θ.
Lazy<Model> run_parameterized(const Study& study, Chain& chain);
/// The same for a measurement: a mixture with yields.
Lazy<Model> run_measurement(const Study& study, Chain& chain);
/// The results that a model gives for new data, beside what is known before.
void fit_decomposed(const Model& model, const Samples& data, Results& results);
void fit_parameterized(const Model& model, const Samples& data, Results& results);
void fit_measurement(const Model& model, const Samples& data, Results& results);

}  // namespace neyman::pipeline
