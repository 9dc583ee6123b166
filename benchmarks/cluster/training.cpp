// What ranks gain that train one network together:
//   mpirun -n 2 build/benchmarks/cluster/training [batch = 4096] [rows = 200000]
// Two epochs of a 28-256-256-256-1 network, by every rank for itself and by all together, one
// thread each. Prints one JSON object: seconds of both, and whether the networks have the same
// bits.
#include <fmt/format.h>

#include <algorithm>
#include <string>
#include <vector>

#include "neyman/classifiers/mlp.hpp"
#include "neyman/core/parallel.hpp"
#include "neyman/core/progress.hpp"
#include "neyman/core/random.hpp"
#include "neyman/distributed/communicator.hpp"

using namespace neyman;

int main(int count, char** arguments) {
  const auto ranks = connect();
  set_threads(1);
  Mlp::Config config;
  config.hidden = {256, 256, 256};
  config.epochs = 2;
  config.batch_size = count > 1 ? std::stoul(arguments[1]) : 4096;
  const std::size_t rows = count > 2 ? std::stoul(arguments[2]) : 200000;
  Matrix x(rows, 28);
  RandomStream(1, "rows").fill_normal(x.values());
  std::vector<std::uint8_t> denominator(rows);
  for (std::size_t i = 0; i < rows; ++i) {
    denominator[i] = i % 2 == 1;
    if (denominator[i] != 0) x(i, 0) += 1.0;
  }
  const auto train = [&](Communicator* with, double& seconds) {
    Mlp network(config);
    ranks->gather("");  // all begin at once
    const double start = seconds_now();
    network.fit({x, denominator, {}, 1, nullptr, with});
    seconds = seconds_now() - start;
    return network.parameters();
  };
  double alone = 0.0, together = 0.0;
  const auto expected = train(nullptr, alone);
  const bool same = train(ranks.get(), together) == expected;
  if (ranks->first())
    fmt::print(
        "{{\"ranks\": {}, \"batch\": {}, \"parameters\": {}, \"alone\": {:.3g}, \"together\": "
        "{:.3g}, \"same_bits\": {}}}\n",
        ranks->size(), config.batch_size, expected.size(), alone, together, same);
}
