// neyman's side of toys with one parameter of interest and five nuisance parameters.
#include <memory>
#include <stdexcept>
#include <string>
#include <vector>

#include "../../search_example.hpp"
#include "../worker.hpp"
#include "neyman/core/parallel.hpp"
#include "neyman/inference/ensemble.hpp"

namespace {

using namespace neyman;
using peers::Json;

class Contender {
 public:
  Json answer(const Json& request) const {
    const auto task = request.at("task").get<std::string>();
    if (task == "toys") return toys(request);
    if (task == "one") return one(request);
    throw std::runtime_error("unknown task " + task);
  }

 private:
  /// Simulate, fit all, fit with the share of the signal at its true value.
  Json toys(const Json& request) const {
    EnsembleConfig config;
    config.datasets = request.at("toys");
    config.events = request.at("events");
    config.point = benchmarks::search_truth();
    config.seed = request.at("seed");
    config.interest = {0};
    EnsembleSide found;
    Json out = peers::timed(
        [&] { found = run_ensemble(config, model_.parameters, model_.experiment(config.events)); });
    out["mean"] = found.means[0];
    out["sd"] = found.spreads[0];
    out["failed"] = found.failed;
    out["statistic"] = mean(found.profiles[0].statistic);
    return out;
  }

  /// The fit of given events and auxiliary measurements, to compare with the peer's.
  Json one(const Json& request) const {
    const auto x = request.at("x").get<std::vector<double>>();
    const auto likelihood = model_.likelihood(Matrix(x.size(), 1, x),
                                              request.at("measured").get<std::vector<double>>());
    FitOptions options;
    options.start = benchmarks::search_truth();
    const auto best = fit(*likelihood, options);
    std::vector<std::optional<double>> fixed(options.start.size());
    fixed[0] = options.start[0];
    return {{"point", best.point},
            {"sigma", best.statistical_error(0)},
            {"statistic", profile_statistic(*likelihood, best, fixed)}};
  }

  const benchmarks::SearchExample model_;
};

}  // namespace

int main() {
  set_threads(1);
  const Contender contender;
  return peers::serve([&](const Json& request) { return contender.answer(request); });
}
