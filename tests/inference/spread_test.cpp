#include <gtest/gtest.h>

#include <cmath>
#include <memory>

#include "distributed/thread_ranks.hpp"
#include "known_likelihoods.hpp"
#include "neyman/core/error.hpp"
#include "neyman/distributed/tasks.hpp"
#include "neyman/inference/composite_test.hpp"
#include "neyman/inference/contour.hpp"
#include "neyman/inference/coverage.hpp"

// Toys and scans give the same bits whoever shares them.
namespace neyman {
namespace {

using testing::FunctionLikelihood;
using testing::ThreadRanks;

const ParameterSpace space({{"mu", -3.0, 3.0, {}}, {"sigma", 0.2, 5.0, {}}});

/// Twelve normal events; about one dataset in eight cannot be simulated.
std::unique_ptr<Likelihood> experiment(std::span<const double> point, RandomStream& random) {
  if (random.uniform() < 0.125) throw SimulatorError("no luck");
  double sum = 0.0, squares = 0.0;
  for (int i = 0; i < 12; ++i) {
    const double x = point[0] + point[1] * random.normal();
    sum += x / 12.0;
    squares += x * x / 12.0;
  }
  return std::make_unique<FunctionLikelihood>(
      testing::normal_likelihood(12.0, sum, squares - sum * sum, space));
}

template <class Work, class Same>
void expect_same(Work&& work, Same&& same) {
  const auto alone = work(nullptr);
  for (const std::size_t size : {2, 3, 7})
    ThreadRanks::run(size, [&](Communicator& ranks) {
      RankTasks tasks(ranks);
      same(alone, work(&tasks));
    });
}

TEST(SpreadInference, Coverage) {
  CoverageConfig config;
  config.points = Matrix(2, 2, {0.0, 1.0, 0.5, 1.2});
  config.datasets = 25;
  config.critical_datasets = 19;
  config.interest = {0};
  expect_same([&](Tasks* tasks) { return run_coverage(config, space, experiment, tasks); },
              [](const auto& a, const auto& b) {
                ASSERT_EQ(a.size(), b.size());
                for (std::size_t i = 0; i < a.size(); ++i) {
                  EXPECT_GT(a[i].ensemble.failed, 0U);
                  EXPECT_EQ(a[i].ensemble.failed, b[i].ensemble.failed);
                  EXPECT_TRUE(a[i].ensemble.estimates == b[i].ensemble.estimates);
                  EXPECT_EQ(a[i].ensemble.statistic, b[i].ensemble.statistic);
                  EXPECT_EQ(a[i].ensemble.profiles[0].statistic,
                            b[i].ensemble.profiles[0].statistic);
                  EXPECT_EQ(a[i].critical[0].toys, b[i].critical[0].toys);
                  EXPECT_EQ(a[i].coverage_critical, b[i].coverage_critical);
                }
              });
}

TEST(SpreadInference, AnEnsembleThatCannotBeSimulatedSaysWhyOnEveryRank) {
  EnsembleConfig config;
  config.datasets = 9;
  config.point = {0.0, 1.0};
  const Experiment broken = [](std::span<const double>,
                               RandomStream&) -> std::unique_ptr<Likelihood> {
    throw SimulatorError("the disk is full");
  };
  std::atomic<int> told{0};
  ThreadRanks::run(3, [&](Communicator& ranks) {
    RankTasks tasks(ranks);
    try {
      run_ensemble(config, space, broken, nullptr, &tasks);
    } catch (const SimulatorError& error) {
      EXPECT_STREQ(error.what(), "the disk is full");
      ++told;
    }
  });
  EXPECT_EQ(told, 3);
}

TEST(SpreadInference, CompositeTest) {
  CompositeTestConfig config;
  config.null.fixed = {0.3, {}};
  config.datasets = 30;
  const auto data = testing::normal_likelihood(12.0, 0.8, 1.1, space);
  expect_same([&](Tasks* tasks) { return composite_test(config, data, experiment, tasks); },
              [](const auto& a, const auto& b) {
                EXPECT_GT(a.failed, 0U);
                EXPECT_EQ(a.failed, b.failed);
                EXPECT_EQ(a.null_statistics, b.null_statistics);
                EXPECT_EQ(a.simulated_p_value, b.simulated_p_value);
              });
}

TEST(SpreadInference, SurfacesAndContours) {
  const auto likelihood = testing::normal_likelihood(12.0, 0.8, 1.1, space);
  const auto best = fit(likelihood);
  expect_same(
      [&](Tasks* tasks) {
        return std::pair(contours(likelihood, best, 0, 1, {}, tasks),
                         scan_surface(likelihood, best, 0, 1, {-0.5, 0.0, 1.0, 2.0},
                                      {0.5, 0.9, 1.1, 1.8, 3.0}, tasks));
      },
      [](const auto& a, const auto& b) {
        ASSERT_EQ(a.first.size(), b.first.size());
        for (std::size_t k = 0; k < a.first.size(); ++k) {
          EXPECT_EQ(a.first[k].level, b.first[k].level);
          EXPECT_EQ(a.first[k].touches_bound, b.first[k].touches_bound);
          ASSERT_EQ(a.first[k].lines.size(), b.first[k].lines.size());
          EXPECT_EQ(a.first[k].lines.at(0).x, b.first[k].lines.at(0).x);
          EXPECT_EQ(a.first[k].lines.at(0).y, b.first[k].lines.at(0).y);
          EXPECT_TRUE(b.first[k].lines.at(0).closed);
        }
        EXPECT_TRUE(a.second.statistic == b.second.statistic);
      });
}

}  // namespace
}  // namespace neyman
