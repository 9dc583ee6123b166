// Random numbers a second on one thread. NEYMAN_ISA pins the instruction set.
#include <benchmark/benchmark.h>

#include <cstdint>
#include <span>
#include <vector>

#include "neyman/core/random.hpp"

namespace neyman {
namespace {

/// 8192 numbers, a block of a simulation.
template <class Fill>
void measure(benchmark::State& state, Fill fill) {
  RandomStream random(1, "bench");
  std::vector<double> values(8192);
  for (auto _ : state) {
    fill(random, std::span(values));
    benchmark::DoNotOptimize(values.data());
    benchmark::ClobberMemory();
  }
  state.SetItemsProcessed(state.iterations() * static_cast<std::int64_t>(values.size()));
}

void register_all() {
  const auto add = [](const char* name, auto fill) {
    benchmark::RegisterBenchmark(name, [fill](auto& state) { measure(state, fill); });
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
