#include "neyman/classifiers/ensemble.hpp"

#include <gtest/gtest.h>

#include <cmath>

#include "classifiers/problems.hpp"
#include "neyman/classifiers/logistic.hpp"
#include "neyman/classifiers/random_forest.hpp"
#include "neyman/core/error.hpp"

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
