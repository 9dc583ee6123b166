// Epoch, scoring and gradient of the small-network trainer on one thread, in the thread's own CPU
// time. NEYMAN_ISA pins the instruction set. `peak` is the share of the multiply-adds that this
// core does at best with that set, which is measured first.
#include <benchmark/benchmark.h>

#include <algorithm>
#include <cstdint>
#include <string>
#include <vector>

#include "../peak.hpp"
#include "classifiers/mlp_network.hpp"
#include "neyman/classifiers/mlp.hpp"
#include "neyman/core/parallel.hpp"
#include "neyman/core/random.hpp"

namespace neyman {
namespace {

using benchmarks::cpu_seconds;

struct Case {
  std::size_t inputs;
  std::vector<std::size_t> hidden;
  std::string name;
  std::size_t rows;
};

const std::vector<Case> cases{{7, {40, 40}, "7-40-40-1", 1'000'000},
                              {30, {100, 100, 100}, "30-100-100-100-1", 200'000},
                              {28, {256, 256, 256}, "28-256-256-256-1", 50'000}};

struct Data {
  Matrix x;
  std::vector<std::uint8_t> denominator;
};

Data make_data(std::size_t rows, std::size_t columns) {
  Data data{Matrix(rows, columns), std::vector<std::uint8_t>(rows)};
  RandomStream random(1, "benchmark");
  random.fill_normal(data.x.values());
  for (std::size_t i = 0; i < rows; ++i) {
    data.denominator[i] = i % 2;
    data.x(i, 0) += i % 2 ? -0.5 : 0.5;
  }
  return data;
}

enum class Work { training, scoring, gradient };

/// Multiply-adds a row: forward, for training the gradients of weights and activations, and those
/// of the inputs.
double multiply_adds(const Case& c, Work work) {
  double forward = 0.0, in = double(c.inputs);
  for (const std::size_t width : c.hidden) {
    forward += in * double(width);
    in = double(width);
  }
  forward += in;
  return work == Work::training   ? 3.0 * forward - double(c.inputs * c.hidden.front())
         : work == Work::gradient ? 2.0 * forward
                                  : forward;
}

void rates(benchmark::State& state, const Case& c, Work work, double seconds, double peak) {
  state.counters["rows/s"] = double(c.rows) / seconds;
  state.counters["peak"] = multiply_adds(c, work) * double(c.rows) / seconds / peak;
}

void epoch(benchmark::State& state, const Case& c, const Data& data, Mlp::Config config,
           double peak) {
  const auto train = [&](std::size_t epochs) {
    config.epochs = epochs;
    Mlp mlp(config);
    const double start = cpu_seconds();
    mlp.fit({data.x, data.denominator, {}, 1});
    return cpu_seconds() - start;
  };
  // What one epoch more costs: without the checks and the standardising before. The difference
  // of the shortest times is steadier than the shortest difference.
  double one = 1e9, five = 1e9;
  for (auto _ : state) {
    one = std::min(one, train(1));
    five = std::min(five, train(5));
    state.SetIterationTime((five - one) / 4.0);
  }
  const double best = (five - one) / 4.0;
  state.counters["epoch_ms"] = 1e3 * best;
  rates(state, c, Work::training, best, peak);
}

/// Scores, or their derivatives by the inputs.
void evaluate(benchmark::State& state, const Case& c, const Data& data, Mlp::Config config,
              Work work, double peak) {
  config.epochs = 1;
  Mlp mlp(config);
  mlp.fit({data.x.rows(0, 1000), std::span(data.denominator).first(1000), {}, 1});
  double best = 1e9;
  for (auto _ : state) {
    const double start = cpu_seconds();
    if (work == Work::scoring)
      benchmark::DoNotOptimize(mlp.logits(data.x));
    else
      benchmark::DoNotOptimize(mlp.gradient(data.x));
    const double seconds = cpu_seconds() - start;
    best = std::min(best, seconds);
    state.SetIterationTime(seconds);
  }
  rates(state, c, work, best, peak);
}

}  // namespace
}  // namespace neyman

int main(int argc, char** argv) {
  using namespace neyman;
  set_threads(1);
  const double peak = benchmarks::float_multiply_adds();
  benchmark::AddCustomContext("instruction set", mlp::kernels().name);
  benchmark::AddCustomContext("measured peak, multiply-adds a second", std::to_string(peak));
  std::vector<Data> data;
  data.reserve(cases.size());
  for (const Case& c : cases) {
    const Data& rows = data.emplace_back(make_data(c.rows, c.inputs));
    for (const auto& [activation, word] : {std::pair{Mlp::Activation::relu, "relu"},
                                           {Mlp::Activation::tanh, "tanh"},
                                           {Mlp::Activation::silu, "silu"}}) {
      Mlp::Config config;
      config.hidden = c.hidden;
      config.activation = activation;
      const std::string tail = "/" + c.name + "/" + word;
      for (const std::size_t batch : {128, 512, 4096}) {
        config.batch_size = batch;
        benchmark::RegisterBenchmark(
            ("epoch" + tail + "/batch:" + std::to_string(batch)).c_str(),
            [&rows, &c, config, peak](auto& state) { epoch(state, c, rows, config, peak); })
            ->UseManualTime()
            ->Iterations(3)
            ->Unit(benchmark::kMillisecond);
      }
      for (const auto& [work, verb] :
           {std::pair{Work::scoring, "score"}, {Work::gradient, "gradient"}})
        benchmark::RegisterBenchmark((verb + tail).c_str(),
                                     [&rows, &c, config, peak, work = work](auto& state) {
                                       evaluate(state, c, rows, config, work, peak);
                                     })
            ->UseManualTime()
            ->Iterations(5)
            ->Unit(benchmark::kMillisecond);
    }
  }
  benchmark::Initialize(&argc, argv);
  benchmark::RunSpecifiedBenchmarks();
}
