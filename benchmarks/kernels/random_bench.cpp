// Random numbers a second on one thread. NEYMAN_ISA pins the instruction set. `peak` is the share
// of the bytes that this core reads at best from as much memory, which is measured first.
#include <benchmark/benchmark.h>

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "../peak.hpp"
#include "neyman/core/random.hpp"

namespace neyman {
namespace {

constexpr std::size_t numbers = 8192;  // a block of a simulation

template <class Fill>
void measure(benchmark::State& state, Fill fill, double bandwidth) {
  RandomStream random(1, "bench");
  std::vector<double> values(numbers);
  const double start = benchmarks::cpu_seconds();
  for (auto _ : state) {
    fill(random, std::span(values));
    benchmark::DoNotOptimize(values.data());
    benchmark::ClobberMemory();
  }
  const double seconds = benchmarks::cpu_seconds() - start;
  state.counters["peak"] =
      double(state.iterations()) * numbers * sizeof(double) / seconds / bandwidth;
  state.SetItemsProcessed(state.iterations() * static_cast<std::int64_t>(values.size()));
}

void register_all() {
  const double bandwidth = benchmarks::read_bandwidth(numbers * sizeof(double));
  benchmark::AddCustomContext("bytes a second read from 64 KiB", std::to_string(bandwidth));
  const auto add = [bandwidth](const char* name, auto fill) {
    benchmark::RegisterBenchmark(
        name, [fill, bandwidth](auto& state) { measure(state, fill, bandwidth); });
  };
  using Values = std::span<double>;
  add("fill_uniform", [](RandomStream& random, Values out) { random.fill_uniform(out); });
  add("fill_normal", [](RandomStream& random, Values out) { random.fill_normal(out); });
  add("fill_exponential", [](RandomStream& random, Values out) { random.fill_exponential(out); });
  add("uniform", [](RandomStream& random, Values out) {
    for (double& value : out) value = random.uniform();
  });
  add("normal", [](RandomStream& random, Values out) {
    for (double& value : out) value = random.normal();
  });
  add("below", [](RandomStream& random, Values out) {
    for (double& value : out) value = static_cast<double>(random.below(1000));
  });
}

}  // namespace
}  // namespace neyman

int main(int argc, char** argv) {
  neyman::register_all();
  benchmark::Initialize(&argc, argv);
  benchmark::RunSpecifiedBenchmarks();
}
