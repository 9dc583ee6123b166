#include "neyman/pipeline/pipeline.hpp"

#include "neyman/core/check.hpp"
#include "neyman/core/parallel.hpp"
#include "pipeline/stages.hpp"

namespace neyman {

Run run(const Study& study) {
  auto done = study.mixture ? pipeline::run_decomposed(study) : pipeline::run_parameterized(study);
  pipeline::note_simulator(study, "tests and checks", done.results);
  return done;
}

Results fit_data(const Model& model, const Samples& data, const std::string& source) {
  check_same_size("fit", "data", data.features(), model.feature_names.size(),
                  "feature columns, as the model was trained with");
  Results results;
  results.name = results.title = model.name;
  results.seed = model.seed;
  results.parameters = model.parameters;
  results.component_names = model.component_names;
  results.feature_names = model.feature_names;
  results.classifier = model.classifier;
  results.calibration = model.calibration;
  results.levels = model.levels;
  results.threads = threads();
  results.data_source = source;
  results.events = data.size();
  results.data = data.x;
  if (model.ratio)
    pipeline::fit_decomposed(model, data, results);
  else
    pipeline::fit_parameterized(model, data, results);
  return results;
}

}  // namespace neyman
