// The first example over many seeds, at one budget of simulated events: the error of log r̂,
// the bias of the estimate and the coverage of its interval.
//
//   mixture_accuracy [study.toml] [first seed] [last seed] [ensemble datasets]
//
// Prints a row for each seed and a summary; the targets stand beside it.
#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <string>
#include <vector>

#include "neyman/core/parallel.hpp"
#include "neyman/core/progress.hpp"
#include "neyman/inference/ensemble.hpp"
#include "neyman/inference/statistics.hpp"
#include "neyman/pipeline/pipeline.hpp"
#include "neyman/pipeline/study.hpp"

int main(int argc, char** argv) try {
  using namespace neyman;
  const std::string path = argc > 1 ? argv[1] : "examples/01_mixture/study.toml";
  const long first = argc > 2 ? std::atol(argv[2]) : 1;
  const long last = argc > 3 ? std::atol(argv[3]) : 20;
  const long datasets = argc > 4 ? std::atol(argv[4]) : 1000;

  std::printf("%5s %10s %10s %10s %8s %8s %8s %8s %8s %9s %6s\n", "seed", "decomposed",
              "calibrated", "raw", "bias/sd", "sim/sd", "cover", "cov+sim", "exact", "non-fin.",
              "s");
  std::vector<double> decomposed, calibrated, bias, share, coverage, exact_coverage;
  for (long seed = first; seed <= last; ++seed) {
    const double start = seconds_now();
    auto study = read_study(path);
    reseed(study, static_cast<std::uint64_t>(seed));
    study.test.reset();
    if (datasets > 0)
      study.ensemble->datasets = static_cast<std::size_t>(datasets);
    else
      study.ensemble.reset();
    study.compare->classifiers.resize(1);
    const auto results = run(study).results;
    const auto& entry = results.comparisons.front();
    const auto non_finite = std::count_if(results.log_ratios.begin(), results.log_ratios.end(),
                                          [](double value) { return !std::isfinite(value); });
    decomposed.push_back(*entry.decomposed_error);
    calibrated.push_back(*entry.calibrated_error);
    std::printf("%5ld %10.5f %10.5f %10.5f ", seed, *entry.decomposed_error,
                *entry.calibrated_error, *entry.uncalibrated_error);
    if (results.ensemble) {
      const auto& e = *results.ensemble;
      bias.push_back(e.bias[0]);
      share.push_back(e.simulation_share[0]);
      coverage.push_back(e.coverage_with_simulation[0]);
      exact_coverage.push_back(e.exact->coverage[0]);
      std::printf("%8.3f %8.3f %8.3f %8.3f %8.3f ", e.bias[0], e.simulation_share[0],
                  e.approximate.coverage[0], e.coverage_with_simulation[0], e.exact->coverage[0]);
    }
    std::printf("%9ld %6.1f\n", static_cast<long>(non_finite), seconds_now() - start);
    std::fflush(stdout);
  }
  const auto worst = [](const std::vector<double>& v) {
    return *std::max_element(v.begin(), v.end());
  };
  std::printf("\nmean |log r^ - log r|, decomposed: mean %.5f, worst %.5f (target 0.002, 0.003)\n",
              mean(decomposed), worst(decomposed));
  std::printf("mean |log r^ - log r|, calibrated: mean %.5f, worst %.5f (target 0.010)\n",
              mean(calibrated), worst(calibrated));
  if (!bias.empty()) {
    double square = 0.0, predicted = 0.0;
    for (const double b : bias) square += b * b / static_cast<double>(bias.size());
    for (const double s : share) predicted += s * s / static_cast<double>(share.size());
    std::printf(
        "bias of the estimate / exact sd: RMS %.3f (target 0.25; reported by the fit %.3f)\n",
        std::sqrt(square), std::sqrt(predicted));
    std::printf(
        "68.3 %% interval covers: mean %.3f, lowest %.3f (target 0.665 to 0.705, 0.62; "
        "exact ratio %.3f)\n",
        mean(coverage), *std::min_element(coverage.begin(), coverage.end()), mean(exact_coverage));
  }
  return 0;
} catch (const std::exception& error) {
  std::fprintf(stderr, "%s\n", error.what());
  return 1;
}
