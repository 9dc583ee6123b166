#pragma once

#include <optional>
#include <string>
#include <vector>

#include "neyman/data/samples.hpp"
#include "neyman/pipeline/model.hpp"
#include "neyman/pipeline/study.hpp"
#include "neyman/reports/results.hpp"

namespace neyman {

/// What a run gives: the trained ratio, to keep, and the results, to report.
struct Run {
  Model model;
  Results results;
};

/// The whole chain: simulate, train and calibrate, fit the data, test, run the ensemble,
/// compare with the exact ratio, check. Everything follows from the study and its seed.
Run run(const Study& study);

/// Fits new data with a trained model; nothing is simulated or trained.
/// @throw ArgumentError where the data do not have the model's features.
Results fit_data(const Model& model, const Samples& data, const std::string& source);

/// Checks that need no truth of a ratio between two θ: those that the study's diagnostics name,
/// with events simulated at both, which neither training nor calibration has seen. The verdicts
/// are judged together.
std::vector<Diagnostic> diagnose(const Study& study, const Ratio& ratio,
                                 const std::vector<double>& numerator,
                                 const std::vector<double>& denominator);

/// Fits the study's data with a trained model and checks its ratio: between `at`, or the estimate
/// where that is empty, and the point that the study's diagnostics name (else its reference, else
/// the middle of the ranges). Where the estimate is within a tenth of its error of that point,
/// another θ that the study names takes its place.
/// @throw ArgumentError where the model has other parameters or features than the study.
Results diagnose_model(const Study& study, const Model& model,
                       const std::optional<std::vector<double>>& at = {});

/// Writes results.json, report.html, run.log, figures/ and, where given, model.h5 into a folder,
/// each file atomically. Problems with drawing are noted as warnings, not thrown.
void write_outputs(Results& results, const Model* model, const std::string& folder, bool figures);

}  // namespace neyman
