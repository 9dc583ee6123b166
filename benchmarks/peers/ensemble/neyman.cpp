// neyman's side of the ensemble: the first example's datasets, fitted with decomposed ratios.
#include <memory>
#include <vector>

#include "../worker.hpp"
#include "neyman/core/parallel.hpp"
#include "neyman/inference/ensemble.hpp"
#include "neyman/inference/fit.hpp"
#include "neyman/inference/likelihood.hpp"
#include "neyman/pipeline/study.hpp"
#include "neyman/ratios/decomposed_ratio.hpp"
#include "neyman/simulators/distribution.hpp"

namespace {

using namespace neyman;
using peers::Json;

class Contender {
 public:
  Json answer(const Json& request) {
    const auto task = request.at("task").get<std::string>();
    if (task == "prepare") return prepare(request);
    if (task == "ensemble") return ensemble(request);
    if (task == "stages") return stages(request);
    throw std::runtime_error("unknown task " + task);
  }

 private:
  Json prepare(const Json& request) {
    study_ = read_study(request.at("study"));
    reseed(study_, request.at("seed").get<std::uint64_t>());
    study_.learning.replicas = 0;  // what finite simulation adds is no part of the comparison
    const std::size_t each =
        request.at("samples").get<std::size_t>() / study_.mixture->components().size();
    return peers::timed([&] {
      std::vector<FoldedSample> samples;
      for (std::size_t c = 0; c < study_.mixture->components().size(); ++c) {
        Samples drawn;
        drawn.feature_names = {"x"};
        drawn.x = sample(*study_.mixture->components()[c], study_.reference, each,
                         derive_seed(study_.seed, "peers", c), "training");
        samples.emplace_back(std::move(drawn), study_.learning, c);
      }
      const MixtureWeights weights(study_.mixture->weight_expressions(),
                                   study_.mixture->components().size());
      ratio_ =
          std::make_unique<DecomposedRatio>(samples, weights, study_.reference, study_.learning);
    });
  }

  EnsembleConfig config(const Json& request) const {
    EnsembleConfig config;
    config.datasets = request.at("datasets");
    config.events = request.at("events");
    config.point = {request.at("gamma").get<double>()};
    config.seed = request.at("seed");
    return config;
  }

  /// Everything: simulate, score, calibrate, fit.
  Json ensemble(const Json& request) const {
    EnsembleResult result;
    Json out = peers::timed([&] {
      result =
          run_ensemble(config(request), study_.parameters, *study_.simulator, *ratio_, nullptr);
    });
    out["mean"] = result.approximate.means[0];
    out["sd"] = result.approximate.spreads[0];
    out["failed"] = result.approximate.failed;
    return out;
  }

  /// The same work one stage after the other, events scored one by one.
  Json stages(const Json& request) const {
    const auto c = config(request);
    std::vector<Matrix> x(c.datasets, Matrix(c.events, 1)), ratios(c.datasets);
    Json out;
    out["simulate"] = peers::timed([&] {
      for (std::size_t d = 0; d < c.datasets; ++d) {
        RandomStream random(c.seed, "ensemble", d);
        study_.simulator->sample(c.point, random, x[d]);
      }
    });
    out["score"] = peers::timed([&] {
      for (std::size_t d = 0; d < c.datasets; ++d) ratios[d] = ratio_->component_ratios(x[d]);
    });
    std::vector<double> estimates;
    out["fit"] = peers::timed([&] {
      for (const auto& q : ratios) {
        const MixtureLikelihood likelihood(study_.parameters, ratio_->weights(), q,
                                           ratio_->normalisation());
        FitOptions options;
        options.start = c.point;
        estimates.push_back(fit(likelihood, options).point[0]);
      }
    });
    out["mean"] = mean(estimates);
    out["sd"] = standard_deviation(estimates);
    return out;
  }

  Study study_;
  std::unique_ptr<DecomposedRatio> ratio_;
};

}  // namespace

int main() {
  set_threads(1);
  Contender contender;
  return peers::serve([&](const Json& request) { return contender.answer(request); });
}
