#include "neyman/ratios/cross_fit.hpp"

#include <gtest/gtest.h>
#include <unistd.h>

#include <cmath>
#include <filesystem>
#include <set>

#include "neyman/classifiers/mlp.hpp"
#include "neyman/core/error.hpp"
#include "neyman/core/parallel.hpp"
#include "neyman/data/sample_stream.hpp"
#include "neyman/data/writer.hpp"
#include "ratios/two_components.hpp"

namespace neyman {
namespace {

TEST(FoldedSample, EveryEventIsHeldOutOnce) {
  const auto mixture = testing::normals({0.0, 1.0});
  const auto config = testing::logistic_config();
  const auto sample = testing::draw(*mixture, 0, 1000, config);
  std::multiset<std::size_t> seen;
  for (std::size_t k = 0; k < config.folds; ++k)
    for (const std::size_t event : sample.fold_events(k)) {
      EXPECT_EQ(sample.fold(event), k);
      seen.insert(event);
    }
  EXPECT_EQ(seen.size(), 1000U);
  EXPECT_EQ(std::set(seen.begin(), seen.end()).size(), 1000U);
}

TEST(FoldedSample, APartHasTheFoldsAndCountsOfTheWhole) {
  const auto mixture = testing::normals({0.0, 1.0});
  const auto config = testing::logistic_config();
  const auto whole = testing::draw(*mixture, 0, 100, config);
  std::vector<std::size_t> chosen;
  for (std::size_t i = 0; i < 100; i += 3) chosen.push_back(i);
  const FoldedSample part(whole, chosen, std::vector<double>(chosen.size(), 2.0));
  ASSERT_EQ(part.size(), chosen.size());
  const auto counts = whole.replica_weights(4), own = part.replica_weights(4);
  for (std::size_t i = 0; i < chosen.size(); ++i) {
    EXPECT_EQ(part.fold(i), whole.fold(chosen[i]));
    EXPECT_EQ(part.samples().x(i, 0), whole.samples().x(chosen[i], 0));
    EXPECT_EQ(own[i], 2.0 * counts[chosen[i]]);
  }
  EXPECT_THROW(FoldedSample(whole, chosen, {1.0}), ArgumentError);
  EXPECT_THROW(FoldedSample(part, std::vector<std::size_t>{0}, {1.0}), ArgumentError);
}

TEST(FoldedSample, RowsOfOneGroupShareAFold) {
  Samples samples;
  samples.feature_names = {"x"};
  samples.x = Matrix(300, 1);
  for (std::size_t i = 0; i < 300; ++i) {
    samples.x(i, 0) = static_cast<double>(i);
    samples.groups.push_back(static_cast<std::int64_t>(i / 7));
  }
  const FoldedSample sample(samples, testing::logistic_config(), 0);
  for (std::size_t i = 1; i < 300; ++i)
    if (samples.groups[i] == samples.groups[i - 1]) {
      EXPECT_EQ(sample.fold(i), sample.fold(i - 1));
    }
}

TEST(FoldedSample, ReplicaCountsArePoissonAndFollowTheEvent) {
  const auto mixture = testing::normals({0.0, 1.0});
  const auto config = testing::logistic_config();
  const auto sample = testing::draw(*mixture, 0, 30000, config);
  const auto weights = sample.replica_weights(3);
  double sum = 0.0, squares = 0.0;
  for (const double weight : weights) {
    sum += weight;
    squares += weight * weight;
  }
  // Mean 1 ± 0.0058, mean square 2 ± 0.024 for Poisson(1); 5.5 standard errors, false alarm 4e-8.
  EXPECT_NEAR(sum / 30000, 1.0, 5.5 / std::sqrt(30000.0));
  EXPECT_NEAR(squares / 30000, 2.0, 5.5 * std::sqrt(11.0 / 30000.0));
  EXPECT_EQ(weights, sample.replica_weights(3));
  EXPECT_NE(weights, sample.replica_weights(4));
}

TEST(CrossFit, NoClassifierHasSeenTheEventsItScores) {
  // Labels without any information in x: a classifier that had seen an event would lean to its
  // side. With held-out scores the two sides look alike.
  const auto mixture = testing::normals({0.0, 0.0});
  auto config = testing::logistic_config();
  config.classifier = make_classifier("random-forest");
  config.calibrator = make_calibrator("none");
  config.replicas = 0;
  const auto samples = testing::draw_all(*mixture, 2000, config);
  CrossFit pair;
  pair.fit(samples[0], samples[1], config, 0);
  const auto mean_of = [&](const FoldedSample& sample) {
    double sum = 0.0;
    for (const double z : pair.held_out_scores(sample)) sum += std::tanh(z / 2);
    return sum / static_cast<double>(sample.size());
  };
  // 2s − 1 has a spread below 0.5, so the difference of means has one below 0.016; five of
  // these. Scores of training events differ by 0.3 and more.
  EXPECT_NEAR(mean_of(samples[0]), mean_of(samples[1]), 0.08);
}

TEST(CrossFit, SameBitsForAnyNumberOfThreads) {
  const auto mixture = testing::normals({0.0, 1.0});
  const auto config = testing::logistic_config();
  const auto samples = testing::draw_all(*mixture, 1000, config);
  const auto x = testing::grid(-3, 3, 13);
  std::vector<LogRatios> found;
  for (const std::size_t count : {1, 2}) {
    set_threads(count);
    CrossFit pair;
    pair.fit(samples[0], samples[1], config, 0);
    found.push_back(pair.log_ratios(pair.scores(x)));
    found.push_back(pair.log_ratios(pair.scores(x), 5));
  }
  set_threads(0);
  EXPECT_EQ(found[0], found[2]);
  EXPECT_EQ(found[1], found[3]);
  EXPECT_NE(found[0], found[1]);
}

TEST(CrossFit, ReplicasSpreadAsTheEstimateDoes) {
  // The bootstrap spread of the calibrated log-ratio against the spread over independent
  // simulations, at x = 1/2 where log r = 0.
  const auto mixture = testing::normals({0.0, 1.0});
  const Matrix x(1, 1, {0.5});
  std::vector<double> estimates;
  double bootstrap = 0.0;
  constexpr int repetitions = 60;
  for (int repetition = 0; repetition < repetitions; ++repetition) {
    auto config = testing::logistic_config(static_cast<std::uint64_t>(100 + repetition));
    config.replicas = 30;
    const auto samples = testing::draw_all(*mixture, 1500, config);
    CrossFit pair;
    pair.fit(samples[0], samples[1], config, 0);
    const auto scores = pair.scores(x);
    estimates.push_back(pair.log_ratios(scores)[0]);
    std::vector<double> replicas;
    for (std::size_t b = 0; b < pair.replicas(); ++b)
      replicas.push_back(pair.log_ratios(scores, b)[0]);
    double mean = 0.0, square = 0.0;
    for (const double value : replicas) mean += value / 30;
    for (const double value : replicas) square += (value - mean) * (value - mean) / 29;
    bootstrap += square / repetitions;
  }
  double square = 0.0;
  for (const double value : estimates) square += value * value / repetitions;
  // The sample variance over 60 has a relative spread of 0.18; bounds of a factor 2 on the
  // ratio of standard deviations are a false alarm in below 1e-6 of seeds.
  const double ratio = std::sqrt(bootstrap / square);
  EXPECT_GT(ratio, 0.6);
  EXPECT_LT(ratio, 2.0);
}

TEST(CrossFit, EveryFoldOfASavedOneHasACalibrator) {
  const auto mixture = testing::normals({0.0, 1.0});
  const auto config = testing::logistic_config();
  const auto samples = testing::draw_all(*mixture, 200, config);
  CrossFit pair;
  pair.fit(samples[0], samples[1], config, 0);
  Archive whole;
  pair.save(whole);
  CrossFit loaded;
  loaded.load(whole);
  ASSERT_EQ(loaded.folds(), 3U);
  for (std::size_t missing = 0; missing < config.folds; ++missing) {
    Archive damaged;
    damaged.set("folds", config.folds);
    damaged.set("replicas", std::size_t{0});
    for (std::size_t k = 0; k < config.folds; ++k) {
      const auto name = "fold" + std::to_string(k);
      if (k != missing)
        damaged.child(name) = whole.child(name);
      else
        damaged.child(name).child("classifier") = whole.child(name).child("classifier");
    }
    try {
      CrossFit().load(damaged);
      FAIL() << missing;
    } catch (const FileError& error) {
      EXPECT_EQ(std::string(error.what()), "a ratio of 3 folds has 2 calibrators");
    }
  }
  Archive uncalibrated;
  uncalibrated.set("folds", std::size_t{1});
  uncalibrated.set("replicas", std::size_t{0});
  uncalibrated.child("fold0").child("classifier") = whole.child("fold0").child("classifier");
  CrossFit().load(uncalibrated, true);
  EXPECT_THROW(CrossFit().load(uncalibrated), FileError);
}

TEST(CrossFit, RefusesWhatDoesNotFit) {
  const auto mixture = testing::normals({0.0, 1.0});
  auto config = testing::logistic_config();
  EXPECT_THROW(testing::draw(*mixture, 0, 2, config), ArgumentError);  // fewer than folds
  Samples wide;
  wide.feature_names = {"a", "b"};
  wide.x = Matrix(50, 2);
  const FoldedSample other(wide, config, 1);
  CrossFit pair;
  EXPECT_THROW(pair.fit(testing::draw(*mixture, 0, 50, config), other, config, 0), ArgumentError);
}

/// A sample of the component in a file, of which a part is in memory as well.
class Streamed : public ::testing::Test {
 protected:
  void SetUp() override {
    folder =
        std::filesystem::temp_directory_path() / ("neyman cross fit " + std::to_string(getpid()));
    std::filesystem::create_directories(folder);
  }
  void TearDown() override { std::filesystem::remove_all(folder); }

  FoldedSample draw(std::size_t component, std::size_t events, std::size_t in_memory,
                    const RatioConfig& config) const {
    Samples samples;
    samples.feature_names = {"x"};
    samples.x = sample(*mixture->components()[component], std::vector<double>{0.3}, events,
                       derive_seed(config.seed, "draw", component), "test");
    const auto file = (folder / (std::to_string(component) + ".npy")).string();
    write_samples(file, samples);
    auto all = std::make_shared<const SampleStream>(std::vector<SampleStream::Table>{{file}},
                                                    ReadOptions{});
    return FoldedSample(all->read(0, in_memory), config, component, all);
  }

  std::filesystem::path folder;
  std::shared_ptr<const Mixture> mixture = testing::normals({0.0, 1.0});
};

TEST_F(Streamed, AFoldTrainsOnAllEventsThatItDoesNotHoldOut) {
  const auto config = testing::logistic_config();
  const auto streamed = draw(0, 5000, 700, config);
  EXPECT_EQ(streamed.training_events(), 5000U);
  EXPECT_EQ(streamed.size(), 700U);
  const auto in_memory = testing::draw(*mixture, 1, 700, config);
  for (std::size_t fold = 0; fold < config.folds; ++fold)
    for (const auto* sample : {&streamed, &in_memory}) {
      std::multiset<std::int64_t> seen;
      for (std::size_t window = 0; window < 7; ++window) {
        const auto events = sample->training_window(fold, 2, window, 7);
        EXPECT_GT(events.size(), 0U);
        seen.insert(events.groups.begin(), events.groups.end());
      }
      EXPECT_EQ(std::set(seen.begin(), seen.end()).size(), seen.size());
      // Of the events in memory, whose numbers are known here: the other folds', and only they.
      for (std::size_t i = 0; i < sample->size(); ++i)
        EXPECT_EQ(seen.count(static_cast<std::int64_t>(i)), sample->fold(i) == fold ? 0U : 1U);
      // Two thirds of all, by the hash: ± 33, six standard deviations.
      EXPECT_NEAR(static_cast<double>(seen.size()),
                  static_cast<double>(sample->training_events()) * 2 / 3, 200);
    }
}

TEST_F(Streamed, LearnsTheRatioFromAllEvents) {
  auto config = testing::logistic_config();
  config.folds = 2;
  Mlp::Config network;
  network.hidden = {8};
  network.epochs = 8;
  config.classifier = std::make_shared<Mlp>(network);
  // One side on the disk, or both: the other is dealt over the windows, too.
  const auto numerator = draw(0, 40000, 2000, config);
  const auto streamed = draw(1, 40000, 2000, config);
  const auto in_memory = testing::draw(*mixture, 1, 40000, config);
  const auto x = testing::grid(-2.0, 3.0, 51);
  for (const auto* denominator : {&streamed, &in_memory}) {
    CrossFit pair;
    pair.fit(numerator, *denominator, config, 0);
    const auto found = pair.uncalibrated(pair.scores(x));
    // log r = ½ − x; 80 000 events tell it to 0.02 in the middle of the range, 2000 to 0.1.
    double sum = 0.0;
    for (std::size_t i = 0; i < x.rows(); ++i) sum += std::abs(found[i] - (0.5 - x(i, 0)));
    EXPECT_LT(sum / static_cast<double>(x.rows()), 0.06);
    const auto calibrated = pair.log_ratios(pair.scores(x));
    for (std::size_t i = 0; i < x.rows(); ++i) EXPECT_NEAR(calibrated[i], 0.5 - x(i, 0), 0.4);
  }
}

TEST_F(Streamed, NeedsGroupsAndEventsInEachFold) {
  const auto config = testing::logistic_config();
  const auto file = (folder / "x.npy").string();
  Samples samples;
  samples.feature_names = {"x"};
  samples.x = testing::grid(0, 1, 50);
  write_samples(file, samples);
  const auto all =
      std::make_shared<const SampleStream>(std::vector<SampleStream::Table>{{file}}, ReadOptions{});
  EXPECT_THROW(FoldedSample(samples, config, 0, all), ArgumentError);
  EXPECT_THROW(FoldedSample(all->read(0, 1), config, 0, all), ArgumentError);
}

}  // namespace
}  // namespace neyman
