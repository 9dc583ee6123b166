#pragma once

#include <atomic>
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

 private:
  void count() const {
    if (progress_ != nullptr) progress_->merit("evaluations", static_cast<double>(++count_));
  }

  const Likelihood& of_;
  Progress* progress_;
  mutable std::atomic<std::size_t> count_{0};
};

/// Intervals and curves of a fit.
FitReport report_fit(const Likelihood& likelihood, Fit best, const FitPlan& plan);
void note_fit(const FitReport& report, const ParameterSpace& parameters, const char* which,
              Results& results);
/// Of datasets of a test that could not be simulated.
void note_test(Results& results);
/// Where `outside` counts some of the events.
void warn_outside(Results& results);
void note_outside(const Ratio& ratio, const Samples& data, Results& results);

/// "alpha = 0.98, beta = -1.1"
std::string describe_point(const ParameterSpace& parameters, const std::vector<double>& point);
/// Checks r̂ between the estimate, or `at`, and the point of the study's diagnostics. Where the
/// estimate is that point, another θ that the study names takes its place.
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
