// What it costs ranks to talk: mpirun -n 2 build/benchmarks/cluster/communication
// Prints one JSON object: seconds to take a task from the counter (by one rank while the others
// wait, and by all at once), and to gather 8 bytes and 16 MB from each rank.
#include <fmt/format.h>

#include <algorithm>
#include <limits>
#include <string>

#include "neyman/core/progress.hpp"
#include "neyman/distributed/communicator.hpp"

namespace {

using neyman::seconds_now;

/// The seconds that a repetition takes at best: what else the machine does only adds to them.
template <class Work>
double seconds_of(int repetitions, Work&& work) {
  double best = std::numeric_limits<double>::infinity();
  for (int i = 0; i < repetitions; ++i) {
    const double start = seconds_now();
    work();
    best = std::min(best, seconds_now() - start);
  }
  return best;
}

}  // namespace

int main() {
  const auto ranks = neyman::connect();
  constexpr int takes = 2000;
  const auto take = [&] {
    for (int i = 0; i < takes; ++i) ranks->take(1);
  };
  ranks->restart();
  double one = 0.0;
  if (ranks->rank() + 1 == ranks->size()) one = seconds_of(11, take) / takes;
  one = std::stod(ranks->gather(fmt::format("{}", one)).back());
  ranks->restart();
  const double all = seconds_of(11, take) / takes;
  ranks->restart();
  const double small = seconds_of(1001, [&] { ranks->gather("12345678"); });
  const std::string large(16 << 20, 'x');
  const double bulk = seconds_of(101, [&] { ranks->gather(large); });
  if (ranks->first())
    fmt::print(
        "{{\"ranks\": {}, \"take\": {:.3g}, \"take_all\": {:.3g}, \"gather_8\": {:.3g}, "
        "\"gather_16M\": {:.3g}}}\n",
        ranks->size(), one, all, small, bulk);
}
