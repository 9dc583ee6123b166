// Epoch and scoring of the small-network trainer on one thread, in the thread's own CPU time.
// NEYMAN_ISA pins the instruction set. `peak` is the share of the multiply-adds that this core
// does at best with that set, which is measured first.
#include <benchmark/benchmark.h>

#include <algorithm>
#include <cstdint>
#include <ctime>
#include <string>
#include <vector>

#include "classifiers/mlp_network.hpp"
#include "neyman/classifiers/mlp.hpp"
#include "neyman/core/parallel.hpp"
#include "neyman/core/random.hpp"

namespace neyman {
namespace {

double cpu_seconds() {
  std::timespec now{};
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
  return double(now.tv_sec) + 1e-9 * double(now.tv_nsec);
}

// Multiply-adds a second of ten independent chains in registers.
#define NEYMAN_PEAK(name, isa, bytes)                                                      \
  __attribute__((target(isa), noinline, optimize("O3,fp-contract=fast"))) double name() {  \
    typedef float Vector __attribute__((vector_size(bytes)));                              \
    float factor = 0.999f;                                                                 \
    benchmark::DoNotOptimize(factor);                                                      \
    const Vector b = Vector{} + factor;                                                    \
    Vector v0 = b, v1 = b * 2, v2 = b * 3, v3 = b * 4, v4 = b * 5, v5 = b * 6, v6 = b * 7, \
           v7 = b * 8, v8 = b * 9, v9 = b * 10;                                            \
    const std::int64_t rounds = 20'000'000;                                                \
    const double start = cpu_seconds();                                                    \
    for (std::int64_t i = 0; i < rounds; ++i) {                                            \
      v0 = v0 * b + b, v1 = v1 * b + b, v2 = v2 * b + b, v3 = v3 * b + b, v4 = v4 * b + b; \
      v5 = v5 * b + b, v6 = v6 * b + b, v7 = v7 * b + b, v8 = v8 * b + b, v9 = v9 * b + b; \
    }                                                                                      \
    const double seconds = cpu_seconds() - start;                                          \
    const Vector sum = v0 + v1 + v2 + v3 + v4 + v5 + v6 + v7 + v8 + v9;                    \
    float any = sum[0];                                                                    \
    benchmark::DoNotOptimize(any);                                                         \
    return 10.0 * (bytes / 4) * double(rounds) / seconds;                                  \
  }

#if defined(__x86_64__)
NEYMAN_PEAK(peak_v4, "avx512f,avx512vl,fma", 64)
NEYMAN_PEAK(peak_v3, "avx2,fma", 32)
NEYMAN_PEAK(peak_v2, "sse4.2", 16)
double measured_peak() {
  const std::string isa = mlp::kernels().name;
  return isa == "v4" ? peak_v4() : isa == "v3" ? peak_v3() : peak_v2();
}
#else
NEYMAN_PEAK(measured_peak, "default", 16)
#endif

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

/// Multiply-adds a row: forward, and for training the gradients of weights and activations.
double multiply_adds(const Case& c, bool training) {
  double forward = 0.0, in = double(c.inputs);
  for (const std::size_t width : c.hidden) {
    forward += in * double(width);
    in = double(width);
  }
  forward += in;
  return training ? 3.0 * forward - double(c.inputs * c.hidden.front()) : forward;
}

void rates(benchmark::State& state, const Case& c, bool training, double seconds, double peak) {
  state.counters["rows/s"] = double(c.rows) / seconds;
  state.counters["peak"] = multiply_adds(c, training) * double(c.rows) / seconds / peak;
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
  rates(state, c, true, best, peak);
}

void score(benchmark::State& state, const Case& c, const Data& data, Mlp::Config config,
           double peak) {
  config.epochs = 1;
  Mlp mlp(config);
  mlp.fit({data.x.rows(0, 1000), std::span(data.denominator).first(1000), {}, 1});
  double best = 1e9;
  for (auto _ : state) {
    const double start = cpu_seconds();
    benchmark::DoNotOptimize(mlp.logits(data.x));
    best = std::min(best, cpu_seconds() - start);
    state.SetIterationTime(cpu_seconds() - start);
  }
  rates(state, c, false, best, peak);
}

}  // namespace
}  // namespace neyman

int main(int argc, char** argv) {
  using namespace neyman;
  set_threads(1);
  const double peak = measured_peak();
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
      benchmark::RegisterBenchmark(
          ("score" + tail).c_str(),
          [&rows, &c, config, peak](auto& state) { score(state, c, rows, config, peak); })
          ->UseManualTime()
          ->Iterations(5)
          ->Unit(benchmark::kMillisecond);
    }
  }
  benchmark::Initialize(&argc, argv);
  benchmark::RunSpecifiedBenchmarks();
}
