// Toys a second of q-tilde on one core, by workspace:
//
//   build/benchmarks/measurements/measurement_toys tests/measurements/data/control.json …
//
// Each line has the statistic of the data too, to compare with that of toys_pyhf.py.
#include "neyman/measurements/toys.hpp"

#include <ctime>
#include <filesystem>
#include <iostream>

#include "neyman/core/parallel.hpp"

int main(int argc, char** argv) {
  neyman::set_threads(1);
  for (int i = 1; i < argc; ++i) {
    const neyman::StatisticalModel model(neyman::read_workspace(argv[i]));
    const auto statistic = neyman::TestStatistic::q_tilde;
    const auto observed = neyman::test_statistic(model, model.observed(), statistic, 1.0);
    neyman::ToyOptions options;
    options.toys = 20000;
    const std::clock_t begin = std::clock();
    const auto toys = neyman::toy_statistics(model, model.start(), statistic, 1.0, options);
    const double seconds = static_cast<double>(std::clock() - begin) / CLOCKS_PER_SEC;
    std::cout << std::filesystem::path(argv[i]).stem().string() << ": q-tilde " << observed.value
              << ", " << static_cast<double>(options.toys) / seconds << " toys/s of CPU, "
              << toys.failed << " failed\n";
  }
}
