#include "neyman/measurements/test_statistics.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "measurements/tested_value.hpp"
#include "neyman/core/check.hpp"
#include "neyman/core/error.hpp"

namespace neyman {

namespace {

constexpr std::array all_statistics{TestStatistic::t, TestStatistic::t_tilde, TestStatistic::q0,
                                    TestStatistic::q, TestStatistic::q_tilde};

bool bounded_at_zero(TestStatistic statistic) {
  return statistic == TestStatistic::t_tilde || statistic == TestStatistic::q_tilde;
}

}  // namespace

std::string to_string(TestStatistic statistic) {
  switch (statistic) {
    case TestStatistic::t:
      return "t";
    case TestStatistic::t_tilde:
      return "t-tilde";
    case TestStatistic::q0:
      return "q0";
    case TestStatistic::q:
      return "q";
    case TestStatistic::q_tilde:
      return "q-tilde";
  }
  return "t";
}

TestStatistic test_statistic_named(std::string_view name) {
  std::vector<std::string> names;
  for (const auto statistic : all_statistics) {
    if (to_string(statistic) == name) return statistic;
    names.push_back(to_string(statistic));
  }
  throw ArgumentError("test_statistic_named: " + unknown_name(name, "a test statistic", names));
}

namespace detail {

TestedValue::TestedValue(const StatisticalModel& model, TestStatistic statistic, double tolerance,
                         bool tables)
    : statistic_(statistic),
      interest_(model.interest()),
      low_(model.parameters()[interest_].low),
      high_(model.parameters()[interest_].high),
      single_(model.compiled().interfering.empty()),
      minimise_(model.compiled(), tolerance, tables),
      free_point_(model.size()) {
  if (bounded_at_zero(statistic)) low_ = std::max(low_, 0.0);
}

const Minimiser::Outcome& TestedValue::fit_free(const MeasurementData& data,
                                                std::span<const double> start) {
  minimise_.set_range(interest_, low_, high_);
  free_ = minimise_.search(data, start);
  std::copy(minimise_.point().begin(), minimise_.point().end(), free_point_.begin());
  return free_;
}

Minimiser::Outcome TestedValue::fit_held(const MeasurementData& data, double tested,
                                         std::span<const double> start) {
  minimise_.hold(interest_, tested);
  return minimise_.search(data, start);
}

TestedValue::Value TestedValue::compare(const MeasurementData& data, double tested,
                                        std::span<const double> start) {
  Value out{0.0, free_point_[interest_], free_.ok};
  const bool upper = statistic_ == TestStatistic::q || statistic_ == TestStatistic::q_tilde;
  if (upper && out.estimate > tested) return out;
  if (statistic_ == TestStatistic::q0 && out.estimate < 0.0) return out;
  const auto held = fit_held(data, tested, start);
  out.ok = out.ok && held.ok;
  out.statistic = std::max(0.0, 2.0 * (held.value - free_.value));
  return out;
}

TestedValue::Value TestedValue::operator()(const MeasurementData& data, double tested,
                                           std::span<const double> free_start,
                                           std::span<const double> held_start) {
  // What the fit of all found says more of where the other one ends than any point before it,
  // unless it was one of several.
  if (!fit_free(data, free_start).ok || !single_) return compare(data, tested, held_start);
  minimise_.follow(interest_, tested);
  return compare(data, tested, minimise_.point());
}

void check_tested(std::string_view function, const StatisticalModel& model, TestStatistic statistic,
                  double tested) {
  const auto& parameter = model.parameters()[model.interest()];
  check_in_range(function, parameter.name, tested, parameter.low, parameter.high);
  if (model.fixed()[model.interest()])
    fail_argument(function, parameter.name, "fixed by the measurement", "free");
  if (statistic == TestStatistic::q0 && tested != 0.0)
    fail_argument(function, parameter.name, fmt::format("{:g}", tested), "0, which q0 tests");
  if ((statistic == TestStatistic::t || statistic == TestStatistic::q) && parameter.low >= 0.0)
    fail_argument(
        function, "the range of " + parameter.name,
        fmt::format("[{:g}, {:g}]", parameter.low, parameter.high),
        fmt::format("below 0 too for {0}; with it {0} is {0}-tilde", to_string(statistic)));
  if (bounded_at_zero(statistic) && tested < 0.0)
    fail_argument(function, parameter.name, fmt::format("{:g}", tested),
                  fmt::format("at least 0 for {}", to_string(statistic)));
}

}  // namespace detail

TestStatisticValue test_statistic(const StatisticalModel& model, const MeasurementData& data,
                                  TestStatistic statistic, double tested) {
  model.check_data("test_statistic", data);
  detail::check_tested("test_statistic", model, statistic, tested);
  detail::TestedValue test(model, statistic);
  TestStatisticValue out;
  const bool free = test.fit_free(data, model.start()).ok;
  out.best = test.free_point();
  const auto value = test.compare(data, tested, out.best);
  const bool held = test.fit_held(data, tested, out.best).ok;
  out.at_tested.assign(test.point().begin(), test.point().end());
  out.value = value.statistic;
  out.estimate = value.estimate;
  out.ok = free && held && value.ok;
  return out;
}

}  // namespace neyman
