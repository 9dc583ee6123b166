#include "simulators/events.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "neyman/core/check.hpp"

namespace neyman::detail {

void check_events(std::string_view function, MatrixView events, std::span<const double> weights) {
  check_at_least(function, "the number of events", events.rows(), 1);
  check_at_least(function, "the number of columns of events", events.cols(), 1);
  for (std::size_t i = 0; i < events.rows(); ++i)
    check_finite(function, fmt::format("event {}", i), events.row(i));
  if (weights.empty()) return;
  check_same_size(function, "weights", weights.size(), events.rows(), "one for each event");
  check_non_negative(function, "weights", weights);
  if (std::all_of(weights.begin(), weights.end(), [](double w) { return w == 0.0; }))
    fail_argument(function, "the sum of weights", "0", "positive");
}

}  // namespace neyman::detail
