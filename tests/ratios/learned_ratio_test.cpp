#include "neyman/ratios/learned_ratio.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <string_view>
#include <utility>
#include <vector>

#include "neyman/core/error.hpp"
#include "neyman/core/parallel.hpp"
#include "neyman/core/random.hpp"
#include "neyman/ratios/onnx_export.hpp"
#include "ratios/two_means.hpp"

namespace neyman {
namespace {

using test::data_at;
using test::exact_log_density;
using test::plane;
using test::plane_design;
using test::simulate_plane;

LearnedRatio::Config quick_learned(std::uint64_t seed = 1) {
  LearnedRatio::Config config;
  config.effort = LearnedRatio::Effort::quick;
  config.separable.hidden = {16};
  config.seed = seed;
  return config;
}

const LearnedRatio& trained_learned() {
  static const LearnedRatio ratio(simulate_plane(plane_design(), 10000, 1), plane_design(),
                                  quick_learned());
  return ratio;
}

const LearnedRatio::Candidate& candidate(const LearnedRatio& ratio, std::string_view name) {
  return *std::find_if(ratio.candidates().begin(), ratio.candidates().end(),
                       [&](const auto& one) { return one.name == name; });
}

/// The columns of x that the models see.
Matrix used_of(const LearnedRatio& ratio, const Matrix& x) {
  Matrix out(x.rows(), ratio.used().size());
  for (std::size_t i = 0; i < x.rows(); ++i)
    for (std::size_t f = 0; f < out.cols(); ++f) out(i, f) = x(i, ratio.used()[f]);
  return out;
}

/// A fifth of the events in a peak of width 0.1 at t, over a flat background.
const ParameterSpace line({{"t", -1, 1, {}}});
Samples simulate_peak(std::size_t n, std::uint64_t seed) {
  Samples events;
  events.feature_names = {"x"};
  events.parameter_names = {"t"};
  events.theta = Design(line).draw(n, seed, "theta");
  events.x = Matrix(n, 1);
  RandomStream random(seed, "events");
  for (std::size_t i = 0; i < n; ++i)
    events.x(i, 0) = random.uniform() < 0.2 ? events.theta(i, 0) + 0.1 * random.normal()
                                            : 3.0 * (random.uniform() - 0.5);
  return events;
}

// What is polynomial in θ is the separable network's; a peak that moves is the density's.
TEST(LearnedRatio, TakesTheModelThatSuitsTheProblem) {
  EXPECT_TRUE(candidate(trained_learned(), "separable").chosen);
  const LearnedRatio peak(simulate_peak(10000, 1), Design(line), quick_learned());
  const auto& density = candidate(peak, "features");
  EXPECT_TRUE(density.chosen);
  EXPECT_EQ(peak.several().kind(), "density");
  const auto& separable = candidate(peak, "separable");
  EXPECT_GT(separable.behind, 2.0 * separable.behind_error);
  // Of one feature a density needs no help.
  EXPECT_NE(candidate(peak, "network").note.find("at most 24 features"), std::string::npos);
}

// Of more than 24 features that tell no density is tried, and a peak that moves is no polynomial in
// θ: the network is ahead of the separable ratio, and needs two standard errors.
TEST(LearnedRatio, TakesANetworkOfManyFeatures) {
  const auto few = simulate_peak(8000, 3);
  auto events = few;
  events.feature_names = default_feature_names(26);
  events.x = Matrix(8000, 26);
  RandomStream random(4, "noise");
  for (std::size_t i = 0; i < 8000; ++i) {
    for (double& value : events.x.row(i)) value = few.x(i, 0) + random.normal();
    events.x(i, 7) = few.x(i, 0);
  }
  const LearnedRatio ratio(events, Design(line), quick_learned());
  EXPECT_NE(candidate(ratio, "features").note.find("24 features"), std::string::npos);
  EXPECT_TRUE(ratio.unused().empty());
  EXPECT_TRUE(candidate(ratio, "network").chosen);
  EXPECT_EQ(ratio.several().kind(), "network");
  EXPECT_THROW(export_onnx(ratio, {}), ArgumentError);
  Archive archive;
  ratio.save(archive);
  const auto x = events.x.rows(0, 30);
  EXPECT_EQ(LearnedRatio(archive, line).log_ratios(x, std::vector{0.5}, std::vector{-0.5}),
            ratio.log_ratios(x, std::vector{0.5}, std::vector{-0.5}));
}

TEST(LearnedRatio, SharesAreAConvexCombination) {
  double sum = 0.0, best = -1e9;
  for (const auto& one : trained_learned().candidates()) {
    EXPECT_GE(one.share, 0.0);
    EXPECT_GE(one.behind, 0.0);
    EXPECT_EQ(one.seconds > 0.0, one.name != "network");  // not tried
    sum += one.share;
    best = std::max(best, one.score);
  }
  EXPECT_NEAR(sum, 1.0, 1e-12);
  for (const auto& one : trained_learned().candidates())
    if (one.seconds > 0.0) {
      EXPECT_NEAR(one.behind, best - one.score, 1e-12);
    }
}

// What an event knows of θ, which the exact likelihood gives by a sum over a lattice.
TEST(LearnedRatio, ScoresAreInformation) {
  const std::size_t n = 4000, grid = 40;
  const auto events = simulate_plane(plane_design(), n, 50);
  double exact = 0.0;
  for (std::size_t i = 0; i < n; ++i) {
    double sum = 0.0;
    for (std::size_t a = 0; a < grid; ++a)
      for (std::size_t b = 0; b < grid; ++b) {
        const std::vector<double> theta{-2.0 + 4.0 * (static_cast<double>(a) + 0.5) / grid,
                                        -2.0 + 4.0 * (static_cast<double>(b) + 0.5) / grid};
        sum += std::exp(exact_log_density(events.x.row(i), theta)) / (grid * grid);
      }
    exact += (exact_log_density(events.x.row(i), events.theta.row(i)) - std::log(sum)) /
             static_cast<double>(n);
  }
  // The mean over 1250 held-out events has an error of 0.025, that of 4000 of 0.015.
  EXPECT_NEAR(candidate(trained_learned(), "separable").score, exact, 0.12);
}

// One event is the mean's; several are the chosen model's.
TEST(LearnedRatio, OneEventTakesTheMean) {
  const Matrix x = data_at({0.3, 0.7}, 40, 4);
  const Matrix points(3, 2, {0.5, -0.5, 1.9, 2.0, -2.0, 0.1});
  const Matrix used = used_of(trained_learned(), x);
  EXPECT_EQ(trained_learned().table(x, points), trained_learned().several().table(used, points));
  EXPECT_EQ(trained_learned().log_ratios(x, points.row(0), points.row(1)),
            trained_learned().several().log_ratios(used, points.row(0), points.row(1)));
  const auto one = trained_learned().over(x.rows(0, 1));
  const auto at = one->at(points);
  const Matrix table = trained_learned().table(x.rows(0, 1), points);
  for (std::size_t j = 0; j < 3; ++j) {
    EXPECT_NEAR((*one)(points.row(j), {}), at[j], 1e-3);
    EXPECT_NEAR(table(0, j), at[j], 1e-9);
  }
  std::vector<double> gradient(2), point{0.2, -1.1};
  (*one)(point, gradient);
  for (std::size_t p = 0; p < 2; ++p) {
    auto up = point, down = point;
    up[p] += 1e-3;
    down[p] -= 1e-3;
    EXPECT_NEAR(gradient[p], ((*one)(up, {}) - (*one)(down, {})) / 2e-3, 0.02);
  }
}

TEST(LearnedRatio, ComesCloseToTheExactRatioOfOneEvent) {
  const std::vector<double> theta0{0.5, -0.5}, theta1{-0.5, 1.0};
  const Matrix x = data_at(theta0, 500, 3);
  double squares = 0.0;
  for (std::size_t i = 0; i < x.rows(); ++i)
    squares +=
        std::pow(trained_learned().log_ratios(x.rows(i, i + 1), theta0, theta1)[0] -
                     exact_log_density(x.row(i), theta0) + exact_log_density(x.row(i), theta1),
                 2);
  EXPECT_LT(std::sqrt(squares / 500.0), 0.15);
}

TEST(LearnedRatio, AGridHasNoDensityOfTheParameters) {
  Design::Config config;
  config.kind = Design::Kind::grid;
  config.points = {4, 4};
  const Design grid(plane, config);
  const LearnedRatio ratio(simulate_plane(grid, 4000, 11), grid, quick_learned());
  const auto& parameters = candidate(ratio, "parameters");
  EXPECT_FALSE(parameters.trained);
  EXPECT_NE(parameters.note.find("4 values of a, of which no density"), std::string::npos)
      << parameters.note;
  EXPECT_EQ(parameters.share, 0.0);
}

// θ of a table that fill half of the plane: a density of them is learned, and the other half is out
// of its range.
TEST(LearnedRatio, KnowsWhereATableHasEvents) {
  Matrix rows(4000, 2);
  RandomStream random(5, "half");
  for (std::size_t i = 0; i < rows.rows(); ++i) {
    rows(i, 0) = -2.0 + 4.0 * random.uniform();
    rows(i, 1) = -2.0 + 2.0 * random.uniform();
  }
  const Design half(plane, {.kind = Design::Kind::table, .rows = rows});
  const LearnedRatio ratio(simulate_plane(half, 4000, 11), half, quick_learned());
  EXPECT_EQ(candidate(ratio, "parameters").note, "tried, but not trained in full");
  EXPECT_GT(candidate(ratio, "parameters").score, 0.3);
  EXPECT_TRUE(ratio.region().holds(std::vector<double>{1.9, -0.1}));
  EXPECT_FALSE(ratio.region().holds(std::vector<double>{0.0, 1.0}));
  Archive archive;
  ratio.save(archive);
  const LearnedRatio loaded(archive, plane);
  EXPECT_FALSE(loaded.region().holds(std::vector<double>{0.0, 1.0}));
  EXPECT_TRUE(loaded.region().holds(std::vector<double>{1.9, -0.1}));
  EXPECT_TRUE(trained_learned().region().everywhere());
}

TEST(LearnedRatio, SameBitsOnAnyNumberOfThreads) {
  const auto events = simulate_plane(plane_design(), 1000, 8);
  const Matrix x = data_at({0.0, 0.0}, 50, 9);
  const std::vector<double> theta0{0.5, 0.5}, theta1{-0.5, -0.5};
  const auto learned = [&](std::size_t count) {
    set_threads(count);
    const LearnedRatio ratio(events, plane_design(), quick_learned());
    return std::pair(ratio.log_ratios(x, theta0, theta1),
                     ratio.log_ratios(x.rows(0, 1), theta0, theta1));
  };
  const auto one = learned(1), four = learned(4);
  set_threads(0);
  EXPECT_EQ(one, four);
}

TEST(LearnedRatio, SavesAndLoads) {
  Archive archive;
  trained_learned().save(archive);
  const LearnedRatio loaded(archive, plane);
  const std::vector<double> theta0{0.5, 0.5}, theta1{-0.5, -0.5};
  const Matrix x = data_at({0.0, 0.0}, 50, 10);
  for (const std::size_t rows : {std::size_t{1}, std::size_t{50}})
    EXPECT_EQ(loaded.log_ratios(x.rows(0, rows), theta0, theta1),
              trained_learned().log_ratios(x.rows(0, rows), theta0, theta1));
  ASSERT_EQ(loaded.candidates().size(), trained_learned().candidates().size());
  for (std::size_t c = 0; c < loaded.candidates().size(); ++c) {
    EXPECT_EQ(loaded.candidates()[c].name, trained_learned().candidates()[c].name);
    EXPECT_EQ(loaded.candidates()[c].score, trained_learned().candidates()[c].score);
    EXPECT_EQ(loaded.candidates()[c].share, trained_learned().candidates()[c].share);
  }
  Archive broken = archive;
  broken.set("chosen", std::int64_t{7});
  EXPECT_THROW(LearnedRatio(broken, plane), FileError);
  broken = archive;
  broken.set("shares", std::vector<double>(50, 0.02));
  EXPECT_THROW(LearnedRatio(broken, plane), FileError);
}

// The second parameter does nothing. Of noise alone, one training in fifty shows two errors.
TEST(LearnedRatio, SaysWhatTheFeaturesDoNotTellOf) {
  EXPECT_TRUE(trained_learned().untold().empty());
  const ParameterSpace two({{"t", -1, 1, {}}, {"idle", -1, 1, {}}});
  auto events = simulate_peak(8000, 40);
  const Matrix of_t = events.theta;
  events.parameter_names = {"t", "idle"};
  events.theta = Design(two).draw(8000, 40, "theta");
  const LearnedRatio neither(events, Design(two), quick_learned());
  EXPECT_EQ(neither.untold(), (std::vector<std::size_t>{0, 1}));
  for (std::size_t i = 0; i < 8000; ++i) events.theta(i, 0) = of_t(i, 0);
  const LearnedRatio first(events, Design(two), quick_learned());
  EXPECT_EQ(first.untold(), std::vector<std::size_t>{1});
  Archive archive;
  first.save(archive);
  EXPECT_EQ(LearnedRatio(archive, two).untold(), first.untold());
  archive.set("untold", std::vector<std::int64_t>{2});
  EXPECT_THROW(LearnedRatio(archive, two), FileError);
}

// A graph for other programs is that of the model that serves several events.
TEST(LearnedRatio, ADensityHasNoGraph) {
  auto config = DensityRatio::Config{.hidden = {16}, .members = 2, .epochs = 1};
  const DensityRatio density(simulate_plane(plane_design(), 400, 1), plane_design(), config);
  EXPECT_THROW(export_onnx(density, {}), ArgumentError);
}

// Of 40 features two tell, as does the noise of one of them; a density of the features would take
// 40 networks, and has none.
TEST(LearnedRatio, LeavesOutFeaturesThatTellNothing) {
  Samples events;
  events.feature_names = default_feature_names(40);
  events.parameter_names = {"a", "b"};
  events.theta = plane_design().draw(6000, 50, "theta");
  events.x = Matrix(6000, 40);
  const auto fill = [](std::span<const double> theta, RandomStream& random, std::span<double> x) {
    for (double& value : x) value = random.normal();
    x[5] += theta[0] + 2.0 * x[31];
    x[17] *= std::exp(0.5 * theta[1]);
  };
  for (std::size_t i = 0; i < 6000; ++i) {
    RandomStream random(50, "events", i);
    fill(events.theta.row(i), random, events.x.row(i));
  }
  const LearnedRatio ratio(events, plane_design(), quick_learned());
  EXPECT_EQ(ratio.used(), (std::vector<std::size_t>{5, 17, 31}));
  EXPECT_EQ(ratio.features(), 40U);
  EXPECT_EQ(ratio.several().features(), 3U);
  EXPECT_NE(candidate(ratio, "features").score, 0.0);

  // What is left out does not matter, and what is used does, saved or not.
  Archive archive;
  ratio.save(archive);
  const LearnedRatio loaded(archive, plane);
  Matrix x(0, 40), other;
  x.append(events.x.view().rows(0, 20));
  other = x;
  for (std::size_t i = 0; i < 20; ++i) other(i, 4) += 3.0;
  const std::vector<double> top{0.5, 0.5}, bottom{-0.5, 1.0};
  const auto expected = ratio.log_ratios(x, top, bottom);
  EXPECT_EQ(loaded.log_ratios(x, top, bottom), expected);
  EXPECT_EQ(ratio.log_ratios(other, top, bottom), expected);
  Matrix ordinary(1, 40);
  EXPECT_EQ(ratio.count_outside(ordinary), 0U);
  // Data that no simulation explains are seen in features that are left out, too.
  for (const std::size_t f : {4, 5}) {
    Matrix odd = ordinary;
    odd(0, f) = 1e6;
    EXPECT_EQ(ratio.count_outside(odd), 1U);
    EXPECT_EQ(loaded.count_outside(odd), 1U);
  }
  for (std::size_t i = 0; i < 20; ++i) other(i, 31) += 1.0;
  EXPECT_NE(ratio.log_ratios(other, top, bottom), expected);
  EXPECT_THROW(ratio.over(MatrixView(x.data(), 1, 3)), ArgumentError);
  archive.set("used", std::vector<std::int64_t>{5, 17, 40});
  EXPECT_THROW(LearnedRatio(archive, plane), FileError);
  archive.set("used", std::vector<std::int64_t>{5, 5, 31});
  EXPECT_THROW(LearnedRatio(archive, plane), FileError);
}

// Events of one run of a simulator stay together, in training or among those that choose.
TEST(LearnedRatio, GroupsStayTogether) {
  auto events = simulate_plane(plane_design(), 2000, 30);
  events.groups.resize(2000);
  for (std::size_t i = 0; i < 2000; ++i) events.groups[i] = static_cast<std::int64_t>(i / 4);
  const LearnedRatio ratio(events, plane_design(), quick_learned());
  EXPECT_GT(candidate(ratio, "separable").score, 0.0);
}

TEST(LearnedRatio, RefusesWhatItCannotLearnFrom) {
  EXPECT_THROW(
      LearnedRatio(simulate_plane(plane_design(), 199, 22), plane_design(), quick_learned()),
      ArgumentError);
  auto negative = simulate_plane(plane_design(), 400, 22);
  negative.weights.assign(400, 1.0);
  negative.weights[7] = -1.0;
  EXPECT_THROW(LearnedRatio(negative, plane_design(), quick_learned()), ArgumentError);
  auto without = simulate_plane(plane_design(), 400, 22);
  without.theta = Matrix();
  EXPECT_THROW(LearnedRatio(without, plane_design(), quick_learned()), ArgumentError);
}

}  // namespace
}  // namespace neyman
