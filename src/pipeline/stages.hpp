#pragma once

#include <optional>
#include <string>
#include <vector>

#include "neyman/core/progress.hpp"
#include "neyman/inference/likelihood.hpp"
#include "neyman/pipeline/pipeline.hpp"

// What the two kinds of runs share.
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
/// What is known of a run before it starts.
Results start_results(const Study& study);
/// The data of a study: its file, or events simulated at the truth.
Samples load_data(const Study& study, Results& results);
/// Adds what a simulator that is another program has to tell since it was last asked; `purpose` is
/// what the events were for.
void note_simulator(const Study& study, const char* purpose, Results& results);
Model start_model(const Study& study, const Results& results);

/// Intervals and curves of a fit.
FitReport report_fit(const Likelihood& likelihood, Fit best, const std::vector<double>& levels,
                     std::size_t scan_points);
void note_fit(const FitReport& report, const ParameterSpace& parameters, const char* which,
              Results& results);
void note_outside(const Ratio& ratio, const Samples& data, Results& results);

/// "alpha = 0.98, beta = -1.1"
std::string describe_point(const ParameterSpace& parameters, const std::vector<double>& point);
/// Checks r̂ between the estimate, or `at`, and the point of the study's diagnostics. Where the
/// estimate is that point, another θ that the study names takes its place.
void diagnose_ratio(const Study& study, const Ratio& ratio, Results& results,
                    std::optional<std::vector<double>> at = {});
/// Learns the ratio again with other θ1 and compares −2 log Λ of the data along each parameter of
/// interest, where the study asks for `reference`.
void diagnose_references(const Study& study, const Ratio& ratio, const Samples& data,
                         Results& results);
/// Checks what pseudo-experiments gave, where there are any.
void diagnose_repetition(Results& results);

/// Ratios between components of a mixture serve every θ.
Run run_decomposed(const Study& study);
/// One model for all θ.
Run run_parameterized(const Study& study);
/// The results that a model gives for new data, beside what is known before.
void fit_decomposed(const Model& model, const Samples& data, Results& results);
void fit_parameterized(const Model& model, const Samples& data, Results& results);

}  // namespace neyman::pipeline
