#include "neyman/inference/hypothesis_test.hpp"

#include <algorithm>
#include <exception>

#include "neyman/core/check.hpp"
#include "neyman/core/error.hpp"
#include "neyman/core/parallel.hpp"
#include "neyman/core/progress.hpp"

namespace neyman {

namespace {

double statistic(const SimpleTestConfig& config, const Ratio& ratio, MatrixView x) {
  const auto logs = ratio.log_ratios(x, config.null, config.alternative);
  double sum = 0.0;
  for (const double value : logs) sum += value;
  return sum;
}

/// (1 + number of null datasets with a statistic at most this) / (1 + their number); those that are
/// missing from so many count as at most this.
double p_value(const std::vector<double>& sorted_null, std::size_t datasets, double value) {
  const auto above =
      sorted_null.end() - std::upper_bound(sorted_null.begin(), sorted_null.end(), value);
  const auto all = static_cast<double>(datasets);
  return (1.0 + all - static_cast<double>(above)) / (1.0 + all);
}

}  // namespace

SimpleTest simple_test(const SimpleTestConfig& config, const Distribution& simulator,
                       const Ratio& ratio, MatrixView data) {
  check_at_least("simple_test", "datasets", config.datasets, 1);
  check_at_least("simple_test", "events", data.rows(), 1);
  check_in_range("simple_test", "size", config.size, 0.0, 1.0);
  SimpleTest out;
  out.config = config;
  out.statistic = statistic(config, ratio, data);
  Progress progress("test", 2 * config.datasets, "datasets");
  const auto simulate = [&](const std::vector<double>& point, const char* purpose) {
    std::vector<double> found(config.datasets), statistics;
    std::vector<std::exception_ptr> errors(config.datasets);
    parallel_tasks(config.datasets, [&](std::size_t d) {
      try {
        Matrix x(data.rows(), simulator.dimension());
        RandomStream random(config.seed, purpose, d);
        simulator.sample(point, random, x);
        found[d] = statistic(config, ratio, x);
      } catch (const Interrupted&) {
        throw;
      } catch (const Error&) {
        errors[d] = std::current_exception();
      }
      progress.advance();
    });
    for (std::size_t d = 0; d < config.datasets; ++d)
      if (!errors[d]) statistics.push_back(found[d]);
    if (statistics.empty()) std::rethrow_exception(errors.front());
    out.failed += config.datasets - statistics.size();
    std::sort(statistics.begin(), statistics.end());
    return statistics;
  };
  out.null_statistics = simulate(config.null, "test null");
  out.alternative_statistics = simulate(config.alternative, "test alternative");
  out.p_value = p_value(out.null_statistics, config.datasets, out.statistic);
  const auto rejected = std::count_if(
      out.alternative_statistics.begin(), out.alternative_statistics.end(), [&](double value) {
        return p_value(out.null_statistics, config.datasets, value) <= config.size;
      });
  out.power = static_cast<double>(rejected) / static_cast<double>(config.datasets);
  return out;
}

}  // namespace neyman
