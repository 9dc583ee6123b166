// Toys for some minutes under a limit of memory: does the process grow?
//
//   endurance [--minutes 30] [--limit 256] [--threads 2]
//
// Simulates and fits (all parameters, and with one fixed) toys of 5000 events with one parameter of
// interest and five nuisance parameters, with intervals for some of them. The kernel refuses memory
// beyond the limit (MiB of data, RLIMIT_DATA). Prints the resident memory as it goes. Grown has the
// process whose largest resident memory in the last third of the time is more than 1 MiB above that
// of the second.
#include <fmt/format.h>
#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <string>
#include <vector>

#include "../search_example.hpp"
#include "neyman/core/memory.hpp"
#include "neyman/core/parallel.hpp"
#include "neyman/inference/ensemble.hpp"
#include "neyman/inference/fit.hpp"

namespace {

using namespace neyman;

constexpr double mebibyte = 1024.0 * 1024.0;
constexpr double most_growth = 1.0;  // MiB

double option(int argc, char** argv, const std::string& name, double fallback) {
  for (int i = 1; i + 1 < argc; i += 2)
    if (argv[i] == "--" + name) return std::atof(argv[i + 1]);
  return fallback;
}

double resident() {
  std::ifstream file("/proc/self/statm");
  double size = 0.0, pages = 0.0;
  file >> size >> pages;
  return pages * static_cast<double>(sysconf(_SC_PAGESIZE)) / mebibyte;
}

struct Reading {
  double minute, resident;
};

double largest(const std::vector<Reading>& readings, double from, double to) {
  double out = 0.0;
  for (const auto& reading : readings)
    if (reading.minute >= from && reading.minute <= to) out = std::max(out, reading.resident);
  return out;
}

}  // namespace

int main(int argc, char** argv) {
  keep_freed_memory();
  const double minutes = option(argc, argv, "minutes", 30.0);
  const double limit = option(argc, argv, "limit", 256.0);
  set_threads(static_cast<std::size_t>(option(argc, argv, "threads", 2.0)));
  const auto bytes = static_cast<rlim_t>(limit * mebibyte);
  const rlimit data{bytes, bytes};
  if (setrlimit(RLIMIT_DATA, &data) != 0) {
    fmt::print(stderr, "endurance: the limit of {} MiB cannot be set\n", limit);
    return 2;
  }
  const benchmarks::SearchExample model;
  EnsembleConfig config;
  config.datasets = 500;
  config.events = 5000;
  config.point = benchmarks::search_truth();
  config.interest = {0};
  std::vector<Reading> readings;
  std::size_t toys = 0, failed = 0;
  const auto start = std::chrono::steady_clock::now();
  const auto elapsed = [&] {
    return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count() / 60.0;
  };
  fmt::print("minute  resident MiB        toys\n");
  double next = 0.0;
  while (elapsed() < minutes) {
    ++config.seed;
    const auto found = run_ensemble(config, model.parameters, model.experiment(config.events));
    toys += config.datasets;
    failed += found.failed;
    RandomStream random(config.seed, "endurance");
    const auto likelihood = model.experiment(config.events)(config.point, random);
    const auto best = fit(*likelihood);
    for (const double level : {0.683, 0.95})
      likelihood_interval(*likelihood, best, 0, level, false);
    readings.push_back({elapsed(), resident()});
    if (readings.back().minute >= next) {
      fmt::print("{:6.2f}  {:12.2f}  {:10}\n", readings.back().minute, readings.back().resident,
                 toys);
      std::fflush(stdout);
      next += minutes / 30.0;
    }
  }
  const double end = readings.back().minute;
  const double before = largest(readings, end / 3.0, 2.0 * end / 3.0);
  const double after = largest(readings, 2.0 * end / 3.0, end);
  const bool grown = after > before + most_growth;
  fmt::print(
      "{} toys in {:.1f} minutes, {} failed fits, limit {} MiB; at most {:.2f} MiB resident in "
      "the second third, {:.2f} in the last: {}\n",
      toys, end, failed, limit, before, after, grown ? "GROWN" : "no growth");
  return grown ? 1 : 0;
}
