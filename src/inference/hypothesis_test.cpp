#include "neyman/inference/hypothesis_test.hpp"

#include <algorithm>
#include <optional>

#include "inference/datasets.hpp"
#include "neyman/core/check.hpp"
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
                       const Ratio& ratio, MatrixView data, Tasks* tasks) {
  check_at_least("simple_test", "datasets", config.datasets, 1);
  check_at_least("simple_test", "events", data.rows(), 1);
  check_in_range("simple_test", "size", config.size, 0.0, 1.0);
  SimpleTest out;
  out.config = config;
  out.statistic = statistic(config, ratio, data);
  Progress progress("test", 2 * config.datasets, "datasets");
  const auto one = [&](std::size_t task) {
    const bool null = task < config.datasets;
    const auto& point = null ? config.null : config.alternative;
    auto toy = attempt<ToyStatistic>([&](ToyStatistic& into) {
      Matrix x(data.rows(), simulator.dimension());
      RandomStream random(config.seed, null ? "test null" : "test alternative",
                          null ? task : task - config.datasets);
      simulator.sample(point, random, x);
      into.statistic = statistic(config, ratio, x);
    });
    progress.advance();
    return toy;
  };
  // Datasets of the null, then of the alternative.
  const auto toys = spread<ToyStatistic>(tasks, 2 * config.datasets, one, ToyStatistic::fields);
  const auto statistics = [&](std::span<const ToyStatistic> of) {
    throw_where_all_failed(of);
    std::vector<double> found;
    for (const auto& toy : of)
      if (toy.statistic) found.push_back(*toy.statistic);
    out.failed += of.size() - found.size();
    std::sort(found.begin(), found.end());
    return found;
  };
  out.null_statistics = statistics(std::span(toys).first(config.datasets));
  out.alternative_statistics = statistics(std::span(toys).last(config.datasets));
  out.p_value = p_value(out.null_statistics, config.datasets, out.statistic);
  const auto rejected = std::count_if(
      out.alternative_statistics.begin(), out.alternative_statistics.end(), [&](double value) {
        return p_value(out.null_statistics, config.datasets, value) <= config.size;
      });
  out.power = static_cast<double>(rejected) / static_cast<double>(config.datasets);
  return out;
}

}  // namespace neyman
