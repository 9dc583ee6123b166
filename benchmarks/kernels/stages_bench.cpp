// The stages after the classifier on one thread, in the thread's own CPU time: calibrators, drawing
// events, Σ log r and fits. `peak` is the share of the bytes a second that this core reads at best
// from as much memory, counting each number that must be read or written once; the label has the
// measured peak.
#include <benchmark/benchmark.h>
#include <fmt/format.h>

#include <algorithm>
#include <memory>
#include <string>
#include <vector>

#include "../peak.hpp"
#include "../search_example.hpp"
#include "../second_example.hpp"
#include "neyman/calibration/calibrator.hpp"
#include "neyman/core/parallel.hpp"
#include "neyman/core/random.hpp"
#include "neyman/inference/fit.hpp"
#include "neyman/inference/likelihood.hpp"

namespace neyman {
namespace {

using benchmarks::cpu_seconds;

constexpr std::size_t million = 1'000'000;

/// Times `work`, which touches this many bytes at least, in passes over `resident` bytes.
template <class Work>
void measure(benchmark::State& state, double items, double bytes, std::size_t resident,
             Work&& work) {
  const double bandwidth = benchmarks::read_bandwidth(resident);
  work();  // pages, tables
  double best = 1e9;
  for (auto _ : state) {
    const double start = cpu_seconds();
    work();
    const double seconds = cpu_seconds() - start;
    best = std::min(best, seconds);
    state.SetIterationTime(seconds);
  }
  state.counters["best_ms"] = 1e3 * best;
  state.counters["items/s"] = items / best;
  state.counters["peak"] = bytes / best / bandwidth;
  state.SetLabel(fmt::format("of {:.1f} GB/s", bandwidth / 1e9));
}

template <class Run>
void add(const std::string& name, Run run, int iterations = 10) {
  benchmark::RegisterBenchmark(name.c_str(), run)
      ->UseManualTime()
      ->Iterations(iterations)
      ->Unit(benchmark::kMillisecond);
}

/// Half of the million on each side; float32 values, as networks give.
struct Scores {
  std::vector<double> numerator = std::vector<double>(million / 2), denominator = numerator;
  Logits all = Logits(million);

  Scores() {
    RandomStream random(1, "benchmark");
    random.fill_normal(numerator);
    random.fill_normal(denominator);
    for (std::size_t i = 0; i < million / 2; ++i) {
      all[i] = numerator[i] = static_cast<float>(1.5 * numerator[i] - 1.0);
      all[million / 2 + i] = denominator[i] = static_cast<float>(1.5 * denominator[i] + 1.0);
    }
  }
};

void add_calibrators(const std::shared_ptr<const Scores>& scores) {
  constexpr std::size_t bytes = million * sizeof(double);
  for (const std::string& kind : calibrator_kinds()) {
    const int iterations = kind == "smooth" ? 3 : 10;
    add(
        "calibration/fit/" + kind,
        [=](auto& state) {
          const auto calibrator = make_calibrator(kind);
          measure(state, million, bytes, bytes, [&] {
            calibrator->fit({scores->numerator, scores->denominator});
          });
        },
        iterations);
    add(
        "calibration/evaluate/" + kind,
        [=](auto& state) {
          const auto calibrator = make_calibrator(kind);
          calibrator->fit({scores->numerator, scores->denominator});
          measure(state, million, 2 * bytes, 2 * bytes,
                  [&] { benchmark::DoNotOptimize(calibrator->log_ratios(scores->all)); });
        },
        iterations);
  }
}

void add_sampling() {
  add("sample/second example", [](auto& state) {
    const ParameterSpace space({{"alpha", -3.0, 3.0, {}}, {"beta", -3.0, 3.0, {}}});
    const auto simulator = benchmarks::second_example(space);
    const std::vector<double> point{1.0, -1.0};
    Matrix x(million, 5);
    const std::size_t bytes = x.values().size() * sizeof(double);
    measure(state, million, double(bytes), bytes,
            [&] { sample_into(*simulator, point, 1, "benchmark", x); });
  });
}

void add_likelihood(std::size_t events) {
  const std::string tail = fmt::format("/7 components, {} events", events);
  const auto model = std::make_shared<const benchmarks::SearchExample>();
  const auto data = [model, events] {
    Matrix x(events, 1);
    sample_into(*model->mixture, benchmarks::search_truth(), 1, "benchmark", x);
    return x;
  };
  const std::size_t bytes = 7 * events * sizeof(double);
  const int iterations = events > 100'000 ? 10 : 200;
  add(
      "sum of log r" + tail,
      [=](auto& state) {
        const MixtureLikelihood likelihood(model->parameters, *model->ratio, data());
        measure(state, double(events), double(bytes), bytes,
                [&] { benchmark::DoNotOptimize(likelihood(benchmarks::search_truth())); });
      },
      iterations);
  add(
      "sum of log r and gradient" + tail,
      [=](auto& state) {
        const MixtureLikelihood likelihood(model->parameters, *model->ratio, data());
        std::vector<double> gradient(6);
        measure(state, double(events), double(bytes), bytes, [&] {
          benchmark::DoNotOptimize(likelihood(benchmarks::search_truth(), gradient));
        });
      },
      iterations);
  add(
      "one fit" + tail,
      [=](auto& state) {
        const auto likelihood = model->likelihood(data(), {0.0, 0.0, 0.0, 0.0, 0.0});
        FitOptions options;
        options.start = benchmarks::search_truth();
        const double passes = fit(*likelihood, options).evaluations;
        measure(state, 1.0, passes * double(bytes), bytes,
                [&] { benchmark::DoNotOptimize(fit(*likelihood, options)); });
        state.counters["evaluations"] = passes;
      },
      events > 100'000 ? 2 : 50);
}

}  // namespace
}  // namespace neyman

int main(int argc, char** argv) {
  using namespace neyman;
  set_threads(1);
  add_calibrators(std::make_shared<const Scores>());
  add_sampling();
  add_likelihood(5000);
  add_likelihood(million);
  benchmark::Initialize(&argc, argv);
  benchmark::RunSpecifiedBenchmarks();
}
