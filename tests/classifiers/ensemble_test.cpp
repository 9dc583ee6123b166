#include "neyman/classifiers/ensemble.hpp"

#include <gtest/gtest.h>

#include <cmath>
#include <map>
#include <mutex>
#include <utility>

#include "classifiers/problems.hpp"
#include "neyman/classifiers/logistic.hpp"
#include "neyman/classifiers/mlp.hpp"
#include "neyman/classifiers/random_forest.hpp"
#include "neyman/core/error.hpp"
#include "neyman/core/parallel.hpp"
#include "neyman/core/random.hpp"

namespace neyman {
namespace {

using problems::Labelled;
using problems::two_normals;
using Table = SettingValue::Table;
using Array = SettingValue::Array;

SettingValue text(const char* value) { return {std::string(value), 1}; }

TEST(Ensemble, LogitIsTheMeanAndSpreadTheDeviationOfTheMembers) {
  const Labelled data = two_normals(300, 300);
  Ensemble ensemble({.members = 3, .bootstrap = true, .of = {std::make_shared<Logistic>()}});
  ensemble.fit(data.set());
  ASSERT_EQ(ensemble.members().size(), 3U);
  std::vector<Logits> each;
  for (const auto& member : ensemble.members()) each.push_back(member->logits(data.x));
  const Logits z = ensemble.logits(data.x);
  const std::vector<double> spread = ensemble.spread(data.x);
  for (std::size_t i = 0; i < z.size(); i += 50) {
    const double mean = (each[0][i] + each[1][i] + each[2][i]) / 3.0;
    double square = 0.0;
    for (const Logits& one : each) square += std::pow(one[i] - mean, 2);
    EXPECT_NEAR(z[i], mean, 1e-12);
    EXPECT_NEAR(spread[i], std::sqrt(square / 2.0), 1e-12);
    EXPECT_GT(spread[i], 0.0);
  }
}

// Without bootstrap a logistic fit does not depend on its seed.
TEST(Ensemble, SpreadVanishesWhereNothingIsRandom) {
  const Labelled data = two_normals(300, 300);
  Ensemble ensemble({.members = 3, .of = {std::make_shared<Logistic>()}});
  ensemble.fit(data.set());
  for (const double spread : ensemble.spread(data.x)) EXPECT_LT(spread, 1e-12);
  Ensemble one({.members = 1, .of = {std::make_shared<RandomForest>()}});
  one.fit(data.set());
  for (const double spread : one.spread(data.x)) EXPECT_EQ(spread, 0.0);
}

// The bootstrap's spread is the statistical error: for the known problem it must cover the
// distance to the truth. Over 200 members the relative error of a standard deviation is 5 %.
TEST(Ensemble, BootstrapSpreadIsTheStatisticalError) {
  const std::size_t n = 1000;
  Ensemble ensemble({.members = 200, .bootstrap = true, .of = {std::make_shared<Logistic>()}});
  ensemble.fit(two_normals(n, n).set());
  const Matrix point(1, 1, std::vector<double>{0.5});
  const double spread = ensemble.spread(point)[0];
  // Repeat the experiment itself.
  double sum = 0.0, square = 0.0;
  constexpr int repeats = 200;
  for (int k = 0; k < repeats; ++k) {
    Logistic logistic;
    logistic.fit(two_normals(n, n, 1, 1000 + static_cast<std::uint64_t>(k)).set());
    const double z = logistic.logits(point)[0];
    sum += z / repeats;
    square += z * z / repeats;
  }
  const double deviation = std::sqrt(square - sum * sum);
  // Both have an error of 5 %: 0.3 is above four standard deviations (false alarms below 1e-4).
  EXPECT_NEAR(spread / deviation, 1.0, 0.3);
}

TEST(Ensemble, ReadsATableANameOrAList) {
  const auto make = [](SettingValue of) {
    Settings settings(Table{{"kind", text("ensemble")}, {"of", std::move(of)}}, "study.toml");
    auto classifier = make_classifier(settings);
    settings.refuse_unread();
    settings.throw_if_problems();
    return dynamic_cast<Ensemble&>(*classifier).config();
  };
  const auto table = make({Table{{"kind", text("logistic")}, {"l2", {0.5, 1}}}, 1});
  ASSERT_EQ(table.of.size(), 1U);
  EXPECT_EQ(dynamic_cast<const Logistic&>(*table.of[0]).config().l2, 0.5);
  EXPECT_EQ(make(text("random-forest")).of[0]->kind(), "random-forest");
  const auto list = make(
      {Array{{Table{{"kind", text("logistic")}}, 1}, {Table{{"kind", text("random-forest")}}, 1}},
       1});
  ASSERT_EQ(list.of.size(), 2U);
  EXPECT_EQ(list.members, 2U);
  EXPECT_EQ(list.of[1]->kind(), "random-forest");
  EXPECT_THROW(make(text("nothing")), StudyError);
}

TEST(Ensemble, MembersOfDifferentKinds) {
  Ensemble mixed(
      {.members = 3, .of = {std::make_shared<Logistic>(), std::make_shared<RandomForest>()}});
  mixed.fit(two_normals(200, 200).set());
  EXPECT_EQ(mixed.members()[0]->kind(), "logistic");
  EXPECT_EQ(mixed.members()[1]->kind(), "random-forest");
  EXPECT_EQ(mixed.members()[2]->kind(), "logistic");
  EXPECT_FALSE(mixed.differentiable());
  EXPECT_THROW(mixed.gradient(Matrix(1, 1)), ArgumentError);
  Archive archive;
  save_classifier(mixed, archive);
  const Matrix points(3, 1, std::vector<double>{-1, 0, 1});
  EXPECT_EQ(load_classifier(archive)->logits(points), mixed.logits(points));
}

TEST(Ensemble, GradientIsTheMeanOfTheMembers) {
  Ensemble ensemble({.members = 4, .bootstrap = true, .of = {std::make_shared<Logistic>()}});
  ensemble.fit(two_normals(200, 200).set());
  ASSERT_TRUE(ensemble.differentiable());
  double mean = 0.0;
  for (const auto& member : ensemble.members()) mean += member->gradient(Matrix(1, 1))(0, 0) / 4.0;
  EXPECT_NEAR(ensemble.gradient(Matrix(1, 1))(0, 0), mean, 1e-12);
}

Mlp::Config small_network() {
  Mlp::Config config;
  config.hidden = {6};
  config.batch_size = 128;
  config.epochs = 4;
  return config;
}

std::vector<float> parameters(const Classifier& member) {
  return dynamic_cast<const Mlp&>(member).parameters();
}

/// Networks of different forms, lengths and batches.
std::vector<std::shared_ptr<const Classifier>> different_networks() {
  auto other = small_network();
  other.hidden = {5, 5};
  other.epochs = 7;
  other.batch_size = 100;
  return {std::make_shared<Mlp>(small_network()), std::make_shared<Mlp>(other)};
}

// The rows are shared, but nothing else: each network takes the steps that it would take alone.
TEST(Ensemble, NetworksAreWhatTheyWouldBeAlone) {
  auto data = two_normals(300, 500, 2);
  for (std::size_t i = 0; i < 800; ++i) data.weights.push_back(0.5 + static_cast<double>(i % 4));
  const auto of = different_networks();
  const auto stream = problems::stream_of(data, 3);
  Ensemble in_memory({.members = 4, .of = of}), streamed({.members = 4, .of = of});
  in_memory.fit(data.set(3));
  streamed.fit_stream(stream);
  for (std::size_t k = 0; k < 4; ++k) {
    const auto alone = of[k % 2]->fresh();
    alone->fit(data.set(derive_seed(3, "ensemble", k)));
    EXPECT_EQ(parameters(*in_memory.members()[k]), parameters(*alone));
    auto own = stream;
    own.seed = derive_seed(stream.seed, "ensemble", k);
    alone->fit_stream(own);
    EXPECT_EQ(parameters(*streamed.members()[k]), parameters(*alone));
  }
  EXPECT_NE(parameters(*in_memory.members()[0]), parameters(*in_memory.members()[2]));
}

TEST(Ensemble, ReadsAStreamOnceForAllNetworks) {
  const auto data = two_normals(300, 300);
  auto stream = problems::stream_of(data, 3);
  std::map<std::pair<std::size_t, std::size_t>, int> reads;
  std::mutex mutex;
  stream.read = [&, read = stream.read](std::size_t epoch, std::size_t window) {
    const std::lock_guard lock(mutex);
    ++reads[{epoch, window}];
    return read(epoch, window);
  };
  Ensemble ensemble({.members = 4, .bootstrap = true, .of = different_networks()});
  ensemble.fit_stream(stream);
  ASSERT_EQ(reads.size(), 3U * 7U);  // the longest of them has seven epochs
  for (const auto& [at, count] : reads) EXPECT_EQ(count, at.first == 0 ? 2 : 1);  // one to survey
}

// One network stops early, the others go on; those with a held-out part of their own see it alone.
TEST(Ensemble, NetworksStopEachByItself) {
  auto noise = two_normals(200, 200);
  for (std::size_t i = 0; i < 400; ++i) noise.x(i, 0) -= noise.denominator[i];
  auto config = small_network();
  config.hidden = {64, 64};
  config.epochs = 40;
  config.held_out = 0.25;
  config.patience = 2;
  auto patient = config;
  patient.patience = 40;
  auto apart = config;
  apart.held_out = 0.5;
  Ensemble ensemble({.members = 3,
                     .of = {std::make_shared<Mlp>(config), std::make_shared<Mlp>(patient),
                            std::make_shared<Mlp>(apart)}});
  ensemble.fit(noise.set());
  const auto epochs = [&](std::size_t k) {
    return dynamic_cast<const Mlp&>(*ensemble.members()[k]).history().size();
  };
  EXPECT_LT(epochs(0), 20U);
  EXPECT_EQ(epochs(1), 40U);
  EXPECT_LT(epochs(2), 20U);
  std::vector<Mlp> both;
  both.emplace_back(config);
  both.emplace_back(apart);
  EXPECT_THROW(Mlp::fit_together({{&both[0], 1}, {&both[1], 2}}, noise.set()), ArgumentError);
}

// A network without hidden layers is a logistic regression, so that its bootstrap has the spread
// of that: 60 members each have an error of 9 %, and 0.5 is beyond four standard deviations of the
// logarithm of the ratio (false alarms below 1e-4 each). In memory and in a stream the rows have
// the same draws, so that members there differ from those here by their course alone.
TEST(Ensemble, BootstrappedNetworksSpreadAsTheStatisticalError) {
  const auto data = two_normals(1000, 2000);
  auto config = small_network();
  config.hidden = {};
  config.epochs = 40;
  config.learning_rate = 0.05;
  config.weight_decay = 0.0;
  const Ensemble::Config networks{
      .members = 60, .bootstrap = true, .of = {std::make_shared<Mlp>(config)}};
  Ensemble reference({.members = 60, .bootstrap = true, .of = {std::make_shared<Logistic>()}});
  Ensemble in_memory(networks), streamed(networks);
  reference.fit(data.set(5));
  in_memory.fit(data.set(5));
  streamed.fit_stream(problems::stream_of(data, 3));
  const Matrix points(3, 1, std::vector<double>{-1.0, 0.5, 2.0});
  const auto spread = reference.spread(points);
  for (const Ensemble* ensemble : {&in_memory, &streamed}) {
    const auto own = ensemble->spread(points);
    for (std::size_t i = 0; i < 3; ++i) EXPECT_NEAR(std::log(own[i] / spread[i]), 0.0, 0.5);
    for (std::size_t k = 0; k < 60; ++k) {
      const auto z = ensemble->members()[k]->logits(points);
      const auto expected = reference.members()[k]->logits(points);
      for (std::size_t i = 0; i < 3; ++i) EXPECT_NEAR(z[i], expected[i], 0.5 * spread[i]);
    }
  }
}

TEST(Ensemble, HasTheSameBitsForAnyNumberOfThreads) {
  const auto data = two_normals(3000, 3000);
  auto config = small_network();
  config.held_out = 0.2;
  config.batch_size = 2500;
  std::vector<Logits> found;
  for (const std::size_t count : {1U, 2U, 5U}) {
    set_threads(count);
    Ensemble ensemble({.members = 3, .bootstrap = true, .of = {std::make_shared<Mlp>(config)}});
    ensemble.fit(data.set());
    found.push_back(ensemble.logits(data.x));
  }
  set_threads(0);
  EXPECT_EQ(found[0], found[1]);
  EXPECT_EQ(found[0], found[2]);
}

TEST(Ensemble, RefusesBadConfiguration) {
  EXPECT_THROW(Ensemble({.members = 0}), ArgumentError);
  EXPECT_THROW(Ensemble({.of = {nullptr}}), ArgumentError);
}

TEST(MakeClassifier, TakesOneThatTheProgramMade) {
  const auto mine = std::make_shared<const Logistic>(Logistic::Config{.l2 = 0.125});
  const SettingValue object{SettingValue::Object(std::make_shared<ClassifierObject>(mine))};
  const Table table{{"kind", text("mine")}, {"object", object}, {"fingerprint", text("1")}};
  Settings settings{Table{{"of", {table}}, {"members", {std::int64_t{2}}}}};
  const Ensemble ensemble(Ensemble::Config::from(settings));
  settings.refuse_unread();
  EXPECT_TRUE(settings.problems().empty());
  ASSERT_EQ(ensemble.config().of.size(), 1U);
  const auto* copy = dynamic_cast<const Logistic*>(ensemble.config().of[0].get());
  ASSERT_NE(copy, nullptr);
  EXPECT_NE(copy, mine.get());
  EXPECT_EQ(copy->config().l2, 0.125);
}

}  // namespace
}  // namespace neyman
