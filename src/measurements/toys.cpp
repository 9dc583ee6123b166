#include "neyman/measurements/toys.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <numeric>

#include "measurements/tested_value.hpp"
#include "measurements/toy_source.hpp"
#include "neyman/core/check.hpp"
#include "neyman/core/parallel.hpp"
#include "neyman/core/progress.hpp"
#include "neyman/distributed/tasks.hpp"
#include "neyman/inference/statistics.hpp"
#include "neyman/measurements/kept_tasks.hpp"

namespace neyman {

namespace {

constexpr std::size_t toy_block = 64;
// Of ℓ before the last step of a fit, after which it is a few 1e-9, or 1e-6 where events without
// bins make ties between toys and data impossible: statistics of toys need no more.
double toy_tolerance(const StatisticalModel& model) {
  return model.unbinned_channels() > 0 ? 1e-4 : 1e-6;
}
constexpr std::array toy_band{-2.0, -1.0, 0.0, 1.0, 2.0};

// Data are discrete, so that toys often have the statistic of the data: those count as at least it,
// whatever the rounding of two fits.
double tie(double observed) { return observed - 1e-7 * (1.0 + observed); }

/// The fit of the data with μ held: where toys are drawn.
std::vector<double> best_at(const StatisticalModel& model, const MeasurementData& data,
                            double tested, std::string_view function) {
  detail::TestedValue test(model, TestStatistic::t_tilde);
  if (!test.fit_held(data, tested, model.start()).ok)
    fail_argument(
        function,
        fmt::format("the fit with {} = {:g}", model.parameters()[model.interest()].name, tested),
        "failed", "converged");
  return {test.point().begin(), test.point().end()};
}

ToyProbability ratio(const ToyProbability& a, const ToyProbability& b) {
  if (!(b.value > 0.0)) return {1.0, 0.0};
  const double value = a.value / b.value;
  const double relative = std::hypot(a.value > 0.0 ? a.error / a.value : 0.0, b.error / b.value);
  return {value, value * relative};
}

void check_rising(std::string_view function, const std::vector<double>& values) {
  check_at_least(function, "values", values.size(), 2);
  check_finite(function, "values", values);
  for (std::size_t i = 1; i < values.size(); ++i)
    if (!(values[i] > values[i - 1]))
      fail_argument(function, fmt::format("values[{}]", i), fmt::format("{:g}", values[i]),
                    fmt::format("above {:g}, the one before", values[i - 1]));
}

/// Where a straight line between two points crosses a height.
double crossing(double x0, double y0, double x1, double y1, double height) {
  return y0 == y1 ? 0.5 * (x0 + x1) : x0 + (x1 - x0) * (height - y0) / (y1 - y0);
}

/// The first value above which CL_s stays below `size`.
double limit_between(const std::vector<double>& values, const std::vector<double>& cl_s,
                     double size, const char* name) {
  std::size_t last = values.size();  // the last that is not excluded
  for (std::size_t i = 0; i < values.size(); ++i)
    if (cl_s[i] >= size) last = i;
  if (last + 1 == values.size() || last == values.size()) {
    const bool above = last + 1 == values.size();
    fail_argument("toy_upper_limit",
                  fmt::format("CL_s of the {} limit at {:g}, the {} value", name,
                              above ? values.back() : values.front(), above ? "last" : "first"),
                  fmt::format("{:.3g}", above ? cl_s.back() : cl_s.front()),
                  fmt::format("{} {:g} for the limit to lie between the values",
                              above ? "below" : "at least", size));
  }
  // Without a single toy as extreme the logarithm is that of half a toy's worth.
  const auto height = [](double p) { return std::log(std::max(p, 1e-6)); };
  return crossing(values[last], height(cl_s[last]), values[last + 1], height(cl_s[last + 1]),
                  std::log(size));
}

/// Toys of one hypothesis.
struct ToyJob {
  std::vector<double> point;
  double tested = 0.0;
  std::uint64_t seed = 0;
};

/// What a block of toys gave.
struct ToyBlock {
  std::vector<detail::TestedValue::Value> values;

  static constexpr auto fields = [](auto& bytes, auto& block) { bytes(block.values); };
};

/// The toys of several hypotheses, all blocks of all of them side by side. Where others do some of
/// the blocks and keep them, those are left out.
std::vector<ToySample> make_toys(const StatisticalModel& model, TestStatistic statistic,
                                 const std::vector<ToyJob>& jobs, const ToyOptions& options) {
  const std::size_t blocks = (options.toys + toy_block - 1) / toy_block;
  const std::size_t count = jobs.size() * blocks;
  std::vector<detail::ToySource> sources;
  for (const auto& job : jobs) sources.emplace_back(model, job.point);
  const auto* kept = dynamic_cast<const KeptTasks*>(options.tasks);
  const std::size_t left = kept == nullptr ? count : kept->left(count);
  Progress progress("toys", std::min(left * toy_block, jobs.size() * options.toys), "toys");
  const auto one = [&](std::size_t task) {
    const auto& job = jobs[task / blocks];
    const std::size_t begin = (task % blocks) * toy_block;
    const std::size_t end = std::min(begin + toy_block, options.toys);
    detail::TestedValue test(model, statistic, toy_tolerance(model), true);
    MeasurementData data;
    ToyBlock out;
    for (std::size_t i = begin; i < end; ++i) {
      RandomStream random(job.seed, "measurement toys", options.first + i);
      sources[task / blocks].draw(random, data);
      out.values.push_back(test(data, job.tested, job.point, job.point));
    }
    progress.advance(end - begin);
    return out;
  };
  const auto made = spread<ToyBlock>(options.tasks, count, one, ToyBlock::fields);
  std::vector<ToySample> out(jobs.size());
  for (std::size_t task = 0; task < count; ++task) {
    auto& sample = out[task / blocks];
    for (const auto& value : made[task].values) {
      if (!value.ok) {
        ++sample.failed;
        continue;
      }
      sample.statistics.push_back(value.statistic);
      sample.estimates.push_back(value.estimate);
    }
  }
  return out;
}

}  // namespace

ToySample toy_statistics(const StatisticalModel& model, std::span<const double> point,
                         TestStatistic statistic, double tested, const ToyOptions& options) {
  constexpr const char* function = "toy_statistics";
  check_at_least(function, "toys", options.toys, 1);
  model.parameters().check_inside(function, point);
  detail::check_tested(function, model, statistic, tested);
  const ToyJob job{{point.begin(), point.end()}, tested, options.seed};
  return std::move(make_toys(model, statistic, {job}, options).front());
}

ToyProbability toy_p_value(const ToySample& sample, double observed) {
  const double least = tie(observed);
  const auto above =
      static_cast<double>(sample.failed + static_cast<std::size_t>(std::count_if(
                                              sample.statistics.begin(), sample.statistics.end(),
                                              [&](double value) { return value >= least; })));
  const auto count = static_cast<double>(sample.failed + sample.statistics.size());
  if (!(count > 0.0)) return {};
  const double p = above / count;
  return {p, std::sqrt(p * (1.0 - p) / count)};
}

namespace {

/// The test of one value, as far as toys are not needed.
struct PreparedTest {
  ToyTest test;
  ToyJob with, without;  // signal
};

PreparedTest prepare_test(const StatisticalModel& model, const MeasurementData& data, double tested,
                          TestStatistic statistic, std::uint64_t seed) {
  constexpr const char* function = "toy_test";
  if (statistic != TestStatistic::q && statistic != TestStatistic::q_tilde)
    fail_argument(function, "statistic", to_string(statistic), "q or q-tilde");
  const auto observed = test_statistic(model, data, statistic, tested);
  if (!observed.ok)
    fail_argument(function,
                  fmt::format("a fit of the data with {} = {:g}",
                              model.parameters()[model.interest()].name, tested),
                  "failed", "converged");
  PreparedTest out;
  out.test.tested = tested;
  out.test.statistic = observed.value;
  out.test.estimate = observed.estimate;
  out.with = {observed.at_tested, tested, seed};
  out.without = {best_at(model, data, 0.0, function), tested, derive_seed(seed, "without signal")};
  return out;
}

ToyTest finish_test(const StatisticalModel& model, ToyTest out, const ToySample& with,
                    ToySample& without) {
  if (with.statistics.empty() || without.statistics.empty())
    fail_argument("toy_test",
                  fmt::format("the fits of the toys with {} = {:g}",
                              model.parameters()[model.interest()].name, out.tested),
                  "all failed", "converged");
  out.cl_sb = toy_p_value(with, out.statistic);
  out.cl_b = toy_p_value(without, out.statistic);
  out.cl_s = ratio(out.cl_sb, out.cl_b);
  out.failed = with.failed + without.failed;
  std::sort(without.statistics.begin(), without.statistics.end());
  for (std::size_t i = 0; i < toy_band.size(); ++i) {
    // The strongest exclusion has the largest statistic.
    const double share = 0.5 * std::erfc(toy_band[i] / std::sqrt(2.0));
    const auto rank =
        static_cast<std::size_t>(share * static_cast<double>(without.statistics.size() - 1) + 0.5);
    const double value = without.statistics[rank];
    out.expected_cl_s[i] = ratio(toy_p_value(with, value), toy_p_value(without, value)).value;
  }
  return out;
}

/// The tests of several values with the toys of each, with signal and without in turn.
struct LimitToys {
  std::vector<PreparedTest> tests;
  std::vector<ToySample> samples;
};

LimitToys make_limit_toys(const StatisticalModel& model, const MeasurementData& data,
                          const std::vector<double>& values, TestStatistic statistic,
                          const ToyOptions& options) {
  check_at_least("toy_statistics", "toys", options.toys, 1);
  LimitToys out;
  std::vector<ToyJob> jobs;
  for (std::size_t i = 0; i < values.size(); ++i) {
    const auto seed =
        values.size() == 1 ? options.seed : derive_seed(options.seed, "tested value", i);
    out.tests.push_back(prepare_test(model, data, values[i], statistic, seed));
    jobs.push_back(out.tests.back().with);
    jobs.push_back(out.tests.back().without);
  }
  out.samples = make_toys(model, statistic, jobs, options);
  return out;
}

}  // namespace

ToyTest toy_test(const StatisticalModel& model, const MeasurementData& data, double tested,
                 TestStatistic statistic, const ToyOptions& options) {
  auto toys = make_limit_toys(model, data, {tested}, statistic, options);
  return finish_test(model, toys.tests[0].test, toys.samples[0], toys.samples[1]);
}

void simulate_limit_toys(const StatisticalModel& model, const MeasurementData& data,
                         const std::vector<double>& values, TestStatistic statistic,
                         const ToyOptions& options) {
  check_rising("simulate_limit_toys", values);
  make_limit_toys(model, data, values, statistic, options);
}

ToyLimit toy_upper_limit(const StatisticalModel& model, const MeasurementData& data,
                         const std::vector<double>& values, double level, TestStatistic statistic,
                         const ToyOptions& options) {
  check_rising("toy_upper_limit", values);
  check_in_range("toy_upper_limit", "level", level, 0.5, 1.0 - 1e-9);
  auto toys = make_limit_toys(model, data, values, statistic, options);
  ToyLimit out;
  out.level = level;
  for (std::size_t i = 0; i < values.size(); ++i)
    out.tests.push_back(
        finish_test(model, toys.tests[i].test, toys.samples[2 * i], toys.samples[2 * i + 1]));
  const auto limit = [&](const char* name, auto&& cl_s) {
    std::vector<double> of_values;
    for (const auto& test : out.tests) of_values.push_back(cl_s(test));
    return limit_between(values, of_values, 1.0 - level, name);
  };
  out.observed = limit("observed", [](const ToyTest& test) { return test.cl_s.value; });
  constexpr std::array names{"expected −2σ", "expected −1σ", "expected median", "expected +1σ",
                             "expected +2σ"};
  for (std::size_t i = 0; i < names.size(); ++i)
    out.expected[i] = limit(names[i], [&](const ToyTest& test) { return test.expected_cl_s[i]; });
  return out;
}

UnifiedInterval feldman_cousins(const StatisticalModel& model, const MeasurementData& data,
                                const std::vector<double>& values, double level,
                                const ToyOptions& options) {
  constexpr const char* function = "feldman_cousins";
  check_rising(function, values);
  check_in_range(function, "level", level, 0.01, 1.0 - 1e-9);
  const auto& parameter = model.parameters()[model.interest()];
  const auto statistic = parameter.low < 0.0 ? TestStatistic::t : TestStatistic::t_tilde;
  UnifiedInterval out;
  out.level = level;
  out.values = values;
  check_at_least("toy_statistics", "toys", options.toys, 1);
  std::vector<ToyJob> jobs;
  std::vector<double> statistics;
  for (std::size_t i = 0; i < values.size(); ++i) {
    const auto observed = test_statistic(model, data, statistic, values[i]);
    if (!observed.ok)
      fail_argument(function,
                    fmt::format("a fit of the data with {} = {:g}", parameter.name, values[i]),
                    "failed", "converged");
    statistics.push_back(observed.value);
    jobs.push_back({observed.at_tested, values[i], derive_seed(options.seed, "tested value", i)});
  }
  const auto samples = make_toys(model, statistic, jobs, options);
  for (std::size_t i = 0; i < values.size(); ++i) {
    out.failed += samples[i].failed;
    out.p_values.push_back(toy_p_value(samples[i], statistics[i]).value);
  }
  const double size = 1.0 - level;
  std::size_t first = values.size(), last = 0;
  for (std::size_t i = 0; i < values.size(); ++i)
    if (out.p_values[i] >= size) {
      first = std::min(first, i);
      last = i;
    }
  if (first == values.size())
    fail_argument(
        function, "the largest p-value of the scan",
        fmt::format("{:.3g}", *std::max_element(out.p_values.begin(), out.p_values.end())),
        fmt::format("at least {:g}; the interval is narrower than the steps", size));
  const auto end = [&](std::size_t inside, bool at_end, double bound, std::size_t outside,
                       bool& at_bound) {
    if (!at_end) {
      return crossing(values[inside], out.p_values[inside], values[outside], out.p_values[outside],
                      size);
    }
    if (values[inside] != bound)
      fail_argument(function,
                    fmt::format("the p-value at {:g}, where the scan ends", values[inside]),
                    fmt::format("{:.3g}", out.p_values[inside]),
                    fmt::format("below {:g}, or the scan must go on to {:g}", size, bound));
    at_bound = true;
    return bound;
  };
  out.low = end(first, first == 0, parameter.low, first - 1, out.low_at_bound);
  out.high = end(last, last + 1 == values.size(), parameter.high, last + 1, out.high_at_bound);
  return out;
}

}  // namespace neyman
