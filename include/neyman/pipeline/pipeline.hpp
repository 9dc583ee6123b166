#pragma once

#include <string>

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

/// Writes results.json, report.html, run.log, figures/ and, where given, model.h5 into a folder,
/// each file atomically. Problems with drawing are noted as warnings, not thrown.
void write_outputs(Results& results, const Model* model, const std::string& folder, bool figures);

}  // namespace neyman
