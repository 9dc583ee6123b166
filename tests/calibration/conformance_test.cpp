// What every calibrator must do, run on every kind and on the variants that differ in code.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <memory>
#include <numeric>
#include <ostream>
#include <string>
#include <vector>

#include "calibration/problems.hpp"
#include "neyman/calibration/calibrator.hpp"
#include "neyman/core/error.hpp"
#include "neyman/core/parallel.hpp"
#include "neyman/core/random.hpp"
#include "not_finite.hpp"

namespace neyman {
namespace {

using testing::draw_scores;
using testing::Scores;

struct Variant {
  std::string name;
  SettingValue::Table table;
};

void PrintTo(const Variant& variant, std::ostream* out) { *out << variant.name; }

SettingValue text(const char* value) { return {std::string(value), 0}; }
SettingValue flag(bool value) { return {value, 0}; }
SettingValue integer(std::int64_t value) { return {value, 0}; }

// Every kind with its defaults (so that a new line in the list is tested), and more.
std::vector<Variant> variants() {
  std::vector<Variant> list;
  for (const auto& kind : calibrator_kinds())
    list.push_back({kind, {{"kind", text(kind.c_str())}}});
  list.push_back({"histogram_steps", {{"kind", text("histogram")}, {"interpolate", flag(false)}}});
  list.push_back({"histogram_uniform", {{"kind", text("histogram")}, {"edges", text("uniform")}}});
  list.push_back({"histogram_50_uniform_steps",
                  {{"kind", text("histogram")},
                   {"edges", text("uniform")},
                   {"bins", integer(50)},
                   {"interpolate", flag(false)}}});
  list.push_back(
      {"histogram_blocks", {{"kind", text("histogram")}, {"edges", text("bayesian-blocks")}}});
  list.push_back({"kde_likelihood", {{"kind", text("kde")}, {"bandwidth", text("likelihood")}}});
  list.push_back({"isotonic_steps", {{"kind", text("isotonic")}, {"interpolate", flag(false)}}});
  list.push_back({"smooth_free", {{"kind", text("smooth")}, {"monotone", flag(false)}}});
  list.push_back({"smooth_100", {{"kind", text("smooth")}, {"knots", integer(100)}}});
  return list;
}

class CalibratorConformance : public ::testing::TestWithParam<Variant> {
 protected:
  std::unique_ptr<Calibrator> make() const {
    Settings settings(GetParam().table);
    auto calibrator = make_calibrator(settings);
    settings.refuse_unread();
    settings.throw_if_problems();
    return calibrator;
  }

  std::unique_ptr<Calibrator> fitted(const CalibrationSet& data) const {
    auto calibrator = make();
    calibrator->fit(data);
    return calibrator;
  }

  bool is_none() const { return GetParam().name == "none"; }
};

// Points inside, at the ends of, between and far outside of the scores.
Logits probe(const Calibrator& calibrator) {
  const double low = calibrator.low(), high = calibrator.high();
  std::vector<double> z{-1e300, -1e6, -700.0, -40.0, 0.0, 40.0, 700.0, 1e6, 1e300};
  for (int i = -10; i <= 30; ++i) z.push_back(low + (high - low) * i / 20.0);
  return Logits(z);
}

void expect_finite(const Calibrator& calibrator) {
  const Logits z = probe(calibrator);
  for (const double value : calibrator.log_ratios(z)) {
    ASSERT_TRUE(std::isfinite(value));
    ASSERT_LE(std::abs(value), 2e6);
  }
  for (const double error : calibrator.errors(z)) {
    ASSERT_TRUE(std::isfinite(error));
    ASSERT_GE(error, 0.0);
  }
}

void expect_same(const Calibrator& a, const Calibrator& b, double tolerance) {
  EXPECT_EQ(a.low(), b.low());
  EXPECT_EQ(a.high(), b.high());
  const Logits z = probe(a);
  const auto ra = a.log_ratios(z), rb = b.log_ratios(z);
  const auto ea = a.errors(z), eb = b.errors(z);
  for (std::size_t i = 0; i < z.size(); ++i) {
    EXPECT_NEAR(ra[i], rb[i], tolerance * (1.0 + std::abs(ra[i]))) << "at " << z[i];
    EXPECT_NEAR(ea[i], eb[i], tolerance * (1.0 + std::abs(ea[i]))) << "at " << z[i];
  }
}

// Sums of the same numbers in another order differ by rounding.
constexpr double rounding = 1e-7;

TEST_P(CalibratorConformance, WholeWeightsEqualRepetition) {
  const Scores scores = draw_scores(1, 3000, 1.0);
  RandomStream random(1, "multiplicities");
  Scores repeated;
  std::vector<double> weights0, weights1;
  for (const double z : scores.numerator) {
    const auto count = random.poisson(1.0);
    weights0.push_back(static_cast<double>(count));
    repeated.numerator.insert(repeated.numerator.end(), count, z);
  }
  for (const double z : scores.denominator) {
    const auto count = random.poisson(2.0);
    weights1.push_back(static_cast<double>(count));
    repeated.denominator.insert(repeated.denominator.end(), count, z);
  }
  expect_same(*fitted({scores.numerator, scores.denominator, weights0, weights1}),
              *fitted(repeated.set()), rounding);
}

TEST_P(CalibratorConformance, WholeWeightsEqualRepetitionOfManyEventsInAnyOrder) {
  // So many that they are counted where others are sorted.
  const Scores scores = draw_scores(15, 40000, 1.0);
  RandomStream random(15, "multiplicities");
  Scores repeated;
  std::vector<double> weights0, weights1;
  const auto repeat = [&](const std::vector<double>& side, std::vector<double>& weights,
                          std::vector<double>& out) {
    for (const double z : side) {
      const auto count = random.poisson(1.0);
      weights.push_back(static_cast<double>(count));
      out.insert(out.end(), count, z);
    }
  };
  repeat(scores.numerator, weights0, repeated.numerator);
  repeat(scores.denominator, weights1, repeated.denominator);
  std::reverse(repeated.numerator.begin(), repeated.numerator.end());
  expect_same(*fitted({scores.numerator, scores.denominator, weights0, weights1}),
              *fitted(repeated.set()), rounding);
}

TEST_P(CalibratorConformance, UnitOfOtherWeightsPlaysNoRole) {
  const Scores scores = draw_scores(2, 3000, 1.0);
  RandomStream random(2, "weights");
  std::vector<double> w0(3000), w1(3000), v0, v1;
  random.fill_uniform(w0);
  random.fill_uniform(w1);
  for (const double w : w0) v0.push_back(std::ldexp(w, 900));
  for (const double w : w1) v1.push_back(std::ldexp(w, -900));
  expect_same(*fitted({scores.numerator, scores.denominator, w0, w1}),
              *fitted({scores.numerator, scores.denominator, v0, v1}), rounding);
}

TEST_P(CalibratorConformance, OrderIsIrrelevant) {
  Scores scores = draw_scores(3, 3000, 1.0);
  const auto first = fitted(scores.set());
  std::reverse(scores.numerator.begin(), scores.numerator.end());
  std::rotate(scores.denominator.begin(), scores.denominator.begin() + 1234,
              scores.denominator.end());
  expect_same(*first, *fitted(scores.set()), 0.0);
  Scores many = draw_scores(3, 40000, 1.0);
  const auto of_many = fitted(many.set());
  std::reverse(many.numerator.begin(), many.numerator.end());
  expect_same(*of_many, *fitted(many.set()), 0.0);
}

TEST_P(CalibratorConformance, ThreadsAreIrrelevant) {
  const Scores scores = draw_scores(4, 20000, 1.0);
  set_threads(1);
  const auto one = fitted(scores.set());
  set_threads(0);
  expect_same(*one, *fitted(scores.set()), 0.0);
}

TEST_P(CalibratorConformance, LoadsWhatItSaved) {
  const Scores scores = draw_scores(5, 2000, 1.5);
  const auto calibrator = fitted(scores.set());
  Archive archive;
  save_calibrator(*calibrator, archive);
  const auto loaded = load_calibrator(archive);
  EXPECT_EQ(loaded->kind(), calibrator->kind());
  expect_same(*calibrator, *loaded, 0.0);
  // The configuration is kept too: the loaded one fits as the saved one does.
  const Scores others = draw_scores(6, 2000, 1.5, [](double t) { return t + 0.2 * t * t * t; });
  const auto again = loaded->fresh();
  EXPECT_FALSE(again->fitted());
  again->fit(others.set());
  expect_same(*fitted(others.set()), *again, 0.0);
}

TEST_P(CalibratorConformance, ReplicasEqualFitsOfRepeatedEvents) {
  const Scores scores = draw_scores(7, 2000, 1.0);
  const auto fill = [](std::size_t replica, std::span<double> a, std::span<double> b) {
    RandomStream random(7, "replica", replica);
    for (double& m : a) m = static_cast<double>(random.poisson(1.0));
    for (double& m : b) m = static_cast<double>(random.poisson(1.0));
  };
  const auto replicas = make()->fit_replicas(scores.set(), 3, fill);
  ASSERT_EQ(replicas.size(), 3u);
  for (std::size_t replica = 0; replica < replicas.size(); ++replica) {
    std::vector<double> w0(2000), w1(2000);
    fill(replica, w0, w1);
    const auto direct = fitted({scores.numerator, scores.denominator, w0, w1});
    // Kinds that prepare once keep the complexity and the cells of the whole sample.
    const double tolerance = direct->kind() == "smooth" ? 0.1 : 1e-9;
    const Logits z{-1.0, -0.5, 0.0, 0.5, 1.0};
    const auto a = replicas[replica]->log_ratios(z), b = direct->log_ratios(z);
    for (std::size_t i = 0; i < z.size(); ++i) EXPECT_NEAR(a[i], b[i], tolerance);
  }
}

TEST_P(CalibratorConformance, ReplicaWithoutEventsIsTheWholeSample) {
  const Scores scores = draw_scores(8, 100, 1.0);
  const auto replicas = make()->fit_replicas(
      scores.set(), 1, [](std::size_t, std::span<double> a, std::span<double> b) {
        std::fill(a.begin(), a.end(), 0.0);
        std::fill(b.begin(), b.end(), 1.0);
      });
  expect_same(*fitted(scores.set()), *replicas[0], 1e-9);
}

TEST_P(CalibratorConformance, RefusesBadInput) {
  const double inf = std::numeric_limits<double>::infinity();
  const std::vector<double> good{0.0, 1.0, 2.0}, with_nan{0.0, nan, 2.0}, with_inf{0.0, inf, 2.0};
  const std::vector<double> negative{1.0, -1.0, 1.0}, zero{0.0, 0.0, 0.0}, two{1.0, 1.0}, empty;
  const auto calibrator = make();
  const auto message = [&](const CalibrationSet& data) -> std::string {
    try {
      calibrator->fit(data);
    } catch (const ArgumentError& error) {
      return error.what();
    }
    return "nothing thrown";
  };
  EXPECT_EQ(message({with_nan, good}), "Calibrator::fit: numerator[1] is nan, but must be finite");
  EXPECT_EQ(message({good, with_inf}),
            "Calibrator::fit: denominator[1] is inf, but must be finite");
  EXPECT_EQ(message({good, good, negative, good}),
            "Calibrator::fit: numerator_weights[1] is -1, but must be finite and not negative");
  EXPECT_EQ(message({good, good, {}, zero}),
            "Calibrator::fit: denominator_weights total is 0, but must be positive");
  EXPECT_EQ(message({good, good, two, {}}),
            "Calibrator::fit: numerator_weights has 2 values, but must have 3 "
            "(one for each score)");
  EXPECT_EQ(message({empty, good}),
            "Calibrator::fit: numerator.size() is 0, but must be at least 1");
  EXPECT_THROW(calibrator->log_ratios(Logits{0.0}), ArgumentError);  // not fitted
  calibrator->fit({good, good});
  EXPECT_THROW(calibrator->log_ratios(Logits{0.0, nan}), ArgumentError);
  EXPECT_THROW(calibrator->errors(Logits{inf}), ArgumentError);
}

TEST_P(CalibratorConformance, CountsEventsOutside) {
  const std::vector<double> a{-1.0, 0.5}, b{0.0, 2.0};
  const auto calibrator = fitted({a, b});
  EXPECT_EQ(calibrator->low(), -1.0);
  EXPECT_EQ(calibrator->high(), 2.0);
  EXPECT_EQ(calibrator->count_outside(Logits{-1.0, 2.0, 0.0, -1.0001, 2.0001, 1e300}), 3u);
  // Events without weight were not seen.
  const std::vector<double> weights{0.0, 1.0};
  EXPECT_EQ(fitted({a, b, weights, weights})->low(), 0.5);
}

TEST_P(CalibratorConformance, ExtrapolationIsBounded) {
  if (is_none()) return;  // −z, by its definition
  const Scores scores = draw_scores(9, 5000, 2.0);
  const auto calibrator = fitted(scores.set());
  const auto edge = calibrator->log_ratios(Logits{calibrator->low(), calibrator->high()});
  const auto far = calibrator->log_ratios(Logits{-1e6, 1e6});
  EXPECT_LE(std::abs(far[0] - edge[0]), 10.0 + 1e-9);
  EXPECT_LE(std::abs(far[1] - edge[1]), 10.0 + 1e-9);
}

TEST_P(CalibratorConformance, EqualConstantsHaveRatioOne) {
  const std::vector<double> a(50, 0.3), b(80, 0.3);
  const auto calibrator = fitted({a, b});
  expect_finite(*calibrator);
  if (!is_none()) {
    // Platt's targets of sides of different sizes leave 5e-4.
    EXPECT_NEAR(calibrator->log_ratios(Logits{0.3})[0], 0.0, 1e-3);
  }
}

TEST_P(CalibratorConformance, TiesTakeTheirOwnRatio) {
  // Two scores; the numerator has the lower one in 300 of 400 events, the denominator in 100.
  std::vector<double> a(400, 1.0), b(400, 1.0);
  std::fill(a.begin(), a.begin() + 300, -1.0);
  std::fill(b.begin(), b.begin() + 100, -1.0);
  const auto calibrator = fitted({a, b});
  expect_finite(*calibrator);
  if (is_none()) return;
  const auto log_r = calibrator->log_ratios(Logits{-1.0, 1.0});
  EXPECT_NEAR(log_r[0], std::log(3.0), 0.05);
  EXPECT_NEAR(log_r[1], -std::log(3.0), 0.05);
}

TEST_P(CalibratorConformance, FiniteForHardSamples) {
  const std::vector<double> one{0.0}, other{1.0};
  expect_finite(*fitted({one, other}));
  expect_finite(*fitted({other, one}));  // the wrong way round
  expect_finite(*fitted({one, one}));

  const Scores ten = draw_scores(10, 5, 1.0);
  expect_finite(*fitted(ten.set()));

  const std::vector<double> saturated0{-700.0, -700.0, -700.0, 700.0};
  const std::vector<double> saturated1{700.0, 700.0, -700.0, 699.0};
  expect_finite(*fitted({saturated0, saturated1}));
  const std::vector<double> huge0{-1e300, -1e299, 0.0}, huge1{1e300, 1e299, 1.0};
  expect_finite(*fitted({huge0, huge1}));

  Scores separated = draw_scores(11, 500, 1.0);
  for (double& z : separated.denominator) z += 100.0;
  expect_finite(*fitted(separated.set()));
  std::swap(separated.numerator, separated.denominator);
  expect_finite(*fitted(separated.set()));

  // One event far out, among many.
  Scores outlier = draw_scores(12, 2000, 1.0);
  outlier.numerator[7] = 700.0;
  outlier.denominator[7] = -700.0;
  expect_finite(*fitted(outlier.set()));

  // Differences at the limit of resolution.
  std::vector<double> near0(100, 0.3), near1(100, 0.3);
  near0[0] = std::nextafter(0.3, 0.0);
  near1[0] = std::nextafter(0.3, 1.0);
  expect_finite(*fitted({near0, near1}));
}

TEST_P(CalibratorConformance, FiniteForExtremeWeights) {
  const Scores scores = draw_scores(13, 200, 1.0);
  std::vector<double> tiny(200, 1e-300), huge(200, 1e300), mixed(200, 1.0), denormal(200, 5e-324);
  mixed[3] = 1e300;
  mixed[4] = 1e-300;
  for (const auto& w0 : {tiny, huge, mixed, denormal}) {
    for (const auto& w1 : {tiny, huge, mixed, denormal}) {
      for (const auto meaning :
           {WeightMeaning::automatic, WeightMeaning::counts, WeightMeaning::relative}) {
        expect_finite(*fitted({scores.numerator, scores.denominator, w0, w1, meaning}));
      }
    }
  }
}

TEST_P(CalibratorConformance, UnbalancedSidesChangeNothingButTheNoise) {
  // 20 000 against 2000 events at distance 1: the answer is −t. The error of the worst kinds
  // is below 0.3 on average here; a forgotten log(n1/n0) would be 2.3 everywhere.
  Scores scores = draw_scores(14, 20000, 1.0);
  scores.denominator.resize(2000);
  const auto calibrator = fitted(scores.set());
  EXPECT_LT(testing::deviation(*calibrator, testing::logit_grid(0.5)).mean, 0.3);
}

INSTANTIATE_TEST_SUITE_P(Kinds, CalibratorConformance, ::testing::ValuesIn(variants()),
                         [](const auto& test) { return test.param.name; });

TEST(CalibratorList, UnknownKindNamesTheCandidates) {
  try {
    make_calibrator(std::string("smoth"));
    FAIL();
  } catch (const ArgumentError& error) {
    const std::string message = error.what();
    EXPECT_NE(message.find("smoth"), std::string::npos);
    EXPECT_NE(message.find("smooth, histogram"), std::string::npos);
  }
}

TEST(CalibratorList, SettingsDefaultToSmoothAndReportProblems) {
  EXPECT_EQ(make_calibrator(Settings{})->kind(), "smooth");
  Settings settings({{"kind", {std::string("histogram"), 3}},
                     {"edges", {std::string("unifrom"), 4}},
                     {"bins", {std::int64_t{-5}, 5}}},
                    "study.toml");
  make_calibrator(settings);
  EXPECT_EQ(settings.problems().size(), 2u);
  EXPECT_THROW(settings.throw_if_problems(), StudyError);
}

TEST(CalibratorList, RefusesAFutureVersion) {
  Archive archive;
  archive.set("version", std::int64_t{99});
  archive.set("kind", "none");
  EXPECT_THROW(load_calibrator(archive), FileError);
}

}  // namespace
}  // namespace neyman
