// What every kind of classifier must do, run on each name of the room's list.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>
#include <numeric>

#include "classifiers/problems.hpp"
#include "neyman/classifiers/classifier.hpp"
#include "neyman/core/error.hpp"
#include "neyman/core/parallel.hpp"

namespace neyman {
namespace {

using problems::Labelled;
using problems::mean_difference;
using problems::mean_error;
using problems::two_normals;

/// How close a kind comes. Random numbers are fixed, so a test fails only where the code changes;
/// the limits are some 1.5 to 2 times what was measured.
struct Limit {
  double known_answer;  ///< mean |z − z*| after 10 000 + 10 000 events of one feature
  double same_data;     ///< mean |Δz| between two forms of one sample (rows repeated, shuffled)
};

Limit limit(const std::string& kind) {
  static const std::map<std::string, Limit> limits = {
      {"boosted-trees", {0.15, 0.20}}, {"ensemble", {0.10, 0.10}},      {"logistic", {0.02, 1e-9}},
      {"mlp", {0.08, 0.10}},           {"random-forest", {0.22, 0.10}},
  };
  const auto found = limits.find(kind);
  EXPECT_NE(found, limits.end()) << "give the new kind " << kind << " its limits here";
  return found == limits.end() ? Limit{0.0, 0.0} : found->second;
}

/// Restores the number of threads.
class Threads {
 public:
  explicit Threads(std::size_t count) { set_threads(count); }
  ~Threads() { set_threads(0); }
};

class EveryClassifier : public ::testing::TestWithParam<std::string> {
 protected:
  std::unique_ptr<Classifier> make() const { return make_classifier(GetParam()); }
  std::unique_ptr<Classifier> fitted(const Labelled& data, std::uint64_t seed = 1) const {
    auto classifier = make();
    classifier->fit(data.set(seed));
    return classifier;
  }
};

INSTANTIATE_TEST_SUITE_P(, EveryClassifier, ::testing::ValuesIn(classifier_kinds()),
                         [](const auto& test) {
                           std::string name = test.param;
                           std::replace(name.begin(), name.end(), '-', '_');
                           return name;
                         });

/// Expects an ArgumentError whose message holds `part`.
template <class Call>
void expect_message(Call&& call, const std::string& part) {
  try {
    call();
    ADD_FAILURE() << "no error, but expected: " << part;
  } catch (const ArgumentError& error) {
    EXPECT_NE(std::string(error.what()).find(part), std::string::npos) << error.what();
  }
}

TEST_P(EveryClassifier, LearnsFromRowsMadeAnewForEachEpoch) {
  const auto epochs = [](std::size_t epoch) {
    auto data = two_normals(2000, 2000, 1, 1000 + epoch);
    return TrainingRows{std::move(data.x), std::move(data.denominator), {}};
  };
  const Labelled test = two_normals(5000, 5000, 1, 99);
  auto classifier = make();
  classifier->fit_epochs(epochs, 1);
  // 4000 rows at least, where the limits are of 20 000.
  EXPECT_LT(mean_error(*classifier, test.x), 2.0 * limit(GetParam()).known_answer + 0.03);
  const auto again = make();
  again->fit_epochs(epochs, 1);
  EXPECT_EQ(classifier->logits(test.x), again->logits(test.x));
}

TEST_P(EveryClassifier, LearnsFromAStreamOrSaysThatItDoesNot) {
  TrainingStream stream;
  stream.rows = 20000;
  stream.windows = 4;
  stream.seed = 1;
  stream.read = [](std::size_t, std::size_t window) {
    auto data = two_normals(2500, 2500, 1, 1000 + window);
    TrainingRows out{std::move(data.x), std::move(data.denominator), {}, {}};
    for (std::int64_t i = 0; i < 5000; ++i)
      out.groups.push_back(i + 5000 * static_cast<std::int64_t>(window));
    return out;
  };
  auto classifier = make();
  if (!classifier->streams())
    return expect_message([&] { classifier->fit_stream(stream); }, "to learn from a stream");
  const Labelled test = two_normals(5000, 5000, 1, 99);
  classifier->fit_stream(stream);
  EXPECT_LT(mean_error(*classifier, test.x), 1.5 * limit(GetParam()).known_answer);
  const auto again = make();
  again->fit_stream(stream);
  EXPECT_EQ(classifier->logits(test.x), again->logits(test.x));
}

TEST_P(EveryClassifier, LearnsTheKnownAnswer) {
  const auto classifier = fitted(two_normals(10000, 10000));
  const Labelled fresh = two_normals(5000, 5000, 1, 99);
  EXPECT_LT(mean_error(*classifier, fresh.x), limit(GetParam()).known_answer);
  EXPECT_EQ(classifier->kind(), GetParam());
  EXPECT_EQ(classifier->features(), 1U);
}

// A feature in units in which its squares are beyond the range of doubles.
TEST_P(EveryClassifier, UnitsOfAFeatureDoNotMatter) {
  const Labelled fresh = two_normals(5000, 5000, 1, 99);
  for (const double unit : {1e200, 1e-200}) {
    const auto in_units = [unit](Labelled data) {
      for (double& value : data.x.values()) value *= unit;
      return data;
    };
    const auto error_of = [&](const Classifier& classifier) {
      const Logits z = classifier.logits(in_units(fresh).x);
      double sum = 0.0;
      for (std::size_t i = 0; i < z.size(); ++i)
        sum += std::abs(z[i] - problems::exact_logit(fresh.x(i, 0)));
      return sum / static_cast<double>(z.size());
    };
    EXPECT_LT(error_of(*fitted(in_units(two_normals(10000, 10000)))),
              1.2 * limit(GetParam()).known_answer)
        << unit;
    const auto streamed = make();
    if (!streamed->streams()) continue;
    TrainingStream stream;
    stream.rows = 20000;
    stream.windows = 2;
    stream.seed = 1;
    stream.read = [&](std::size_t, std::size_t window) {
      auto data = in_units(two_normals(5000, 5000, 1, 1000 + window));
      TrainingRows out{std::move(data.x), std::move(data.denominator), {}, {}};
      for (std::int64_t i = 0; i < 10000; ++i)
        out.groups.push_back(i + 10000 * static_cast<std::int64_t>(window));
      return out;
    };
    streamed->fit_stream(stream);
    EXPECT_LT(error_of(*streamed), 1.5 * limit(GetParam()).known_answer) << unit;
  }
}

// Ten times as many events of one side: without weights z would be off by log 10 = 2.3.
TEST_P(EveryClassifier, BalancesTheSides) {
  const auto classifier = fitted(two_normals(20000, 2000));
  const Labelled fresh = two_normals(5000, 5000, 1, 99);
  const Logits z = classifier->logits(fresh.x);
  double bias = 0.0;
  for (std::size_t i = 0; i < z.size(); ++i)
    bias += (z[i] - problems::exact_logit(fresh.x(i, 0))) / static_cast<double>(z.size());
  // The smaller side alone gives a standard deviation of about 1/√2000 = 0.022.
  EXPECT_LT(std::abs(bias), 0.07 + limit(GetParam()).known_answer);
  EXPECT_LT(mean_error(*classifier, fresh.x), 2.5 * limit(GetParam()).known_answer + 0.03);
}

TEST_P(EveryClassifier, WeightsOnOneSideDoNotMoveTheOther) {
  Labelled data = two_normals(5000, 5000);
  const auto plain = fitted(data);
  data.weights.assign(data.x.rows(), 1.0);
  for (std::size_t i = 0; i < data.weights.size(); ++i)
    if (data.denominator[i] == 0) data.weights[i] = 1e-6;
  const auto scaled = fitted(data);
  const Labelled fresh = two_normals(1000, 1000, 1, 99);
  EXPECT_LT(mean_difference(plain->logits(fresh.x), scaled->logits(fresh.x)), 1e-4);
}

TEST_P(EveryClassifier, WeightsEqualRepetition) {
  Labelled weighted = two_normals(6000, 6000);
  std::vector<std::size_t> rows;
  for (std::size_t i = 0; i < weighted.x.rows(); ++i) {
    const std::size_t times = i % 3;  // 0, 1 or 2
    weighted.weights.push_back(static_cast<double>(times));
    rows.insert(rows.end(), times, i);
  }
  Labelled repeated = problems::take(weighted, rows);
  repeated.weights.clear();
  const Labelled fresh = two_normals(5000, 5000, 1, 99);
  const Logits a = fitted(weighted)->logits(fresh.x), b = fitted(repeated)->logits(fresh.x);
  EXPECT_LT(mean_difference(a, b), limit(GetParam()).same_data);
}

TEST_P(EveryClassifier, IgnoresRowsWithoutWeight) {
  Labelled data = two_normals(6000, 6000);
  data.weights.assign(data.x.rows(), 1.0);
  for (std::size_t i = 0; i < data.x.rows(); i += 5) {
    data.weights[i] = 0.0;
    data.denominator[i] = data.x(i, 0) > 0.5 ? 0 : 1;  // a lie
  }
  const Labelled fresh = two_normals(5000, 5000, 1, 99);
  EXPECT_LT(mean_error(*fitted(data), fresh.x), 1.5 * limit(GetParam()).known_answer + 0.02);
}

TEST_P(EveryClassifier, OrderOfRowsIsIrrelevant) {
  const Labelled data = two_normals(6000, 6000);
  std::vector<std::size_t> rows(data.x.rows());
  std::iota(rows.rbegin(), rows.rend(), std::size_t{0});
  const Labelled fresh = two_normals(5000, 5000, 1, 99);
  const Logits a = fitted(data)->logits(fresh.x);
  const Logits b = fitted(problems::take(data, rows))->logits(fresh.x);
  EXPECT_LT(mean_difference(a, b), limit(GetParam()).same_data);
}

TEST_P(EveryClassifier, SameSeedGivesTheSameBitsOnAnyNumberOfThreads) {
  const Labelled data = two_normals(4000, 4000, 3);
  const Labelled fresh = two_normals(5000, 5000, 3, 99);
  Logits one, two, again;
  {
    const Threads threads(1);
    one = fitted(data, 7)->logits(fresh.x);
  }
  {
    const Threads threads(2);
    two = fitted(data, 7)->logits(fresh.x);
    again = fitted(data, 7)->logits(fresh.x);
  }
  EXPECT_EQ(one, two);
  EXPECT_EQ(two, again);
}

TEST_P(EveryClassifier, SaveAndLoadAreExact) {
  const Labelled data = two_normals(3000, 3000, 2);
  const auto classifier = fitted(data, 5);
  Archive archive, second;
  save_classifier(*classifier, archive);
  const auto loaded = load_classifier(archive);
  save_classifier(*loaded, second);
  EXPECT_EQ(archive, second);
  EXPECT_EQ(loaded->kind(), GetParam());
  EXPECT_EQ(loaded->features(), 2U);
  const Labelled fresh = two_normals(500, 500, 2, 99);
  EXPECT_EQ(loaded->logits(fresh.x), classifier->logits(fresh.x));
  // The configuration came along: trained again, it is the same.
  loaded->fit(data.set(5));
  EXPECT_EQ(loaded->logits(fresh.x), classifier->logits(fresh.x));
}

TEST_P(EveryClassifier, IsNotSavedBeforeFit) {
  Archive archive;
  expect_message([&] { save_classifier(*make(), archive); },
                 "not fitted, but must be fitted before");
  EXPECT_EQ(archive, Archive());
}

TEST_P(EveryClassifier, FreshCopyIsUnfittedAndAlike) {
  const Labelled data = two_normals(1000, 1000);
  const auto classifier = fitted(data);
  const auto copy = classifier->fresh();
  EXPECT_FALSE(copy->fitted());
  copy->fit(data.set());
  EXPECT_EQ(copy->logits(data.x), classifier->logits(data.x));
}

TEST_P(EveryClassifier, RefusesWhatIsNotFinite) {
  for (const double bad : {std::nan(""), std::numeric_limits<double>::infinity()}) {
    Labelled data = two_normals(50, 50, 2);
    data.x(7, 1) = bad;
    auto classifier = make();
    expect_message([&] { classifier->fit(data.set()); }, "x[row 7, column 1] is ");
    EXPECT_FALSE(classifier->fitted());
  }
  const auto classifier = fitted(two_normals(50, 50, 2));
  Matrix x(3, 2);
  x(2, 0) = std::nan("");
  expect_message([&] { classifier->logits(x); }, "x[row 2, column 0] is nan, but must be finite");
}

TEST_P(EveryClassifier, RefusesAnEmptySide) {
  Labelled data = two_normals(50, 50);
  auto classifier = make();
  data.weights.assign(100, 1.0);
  for (std::size_t i = 0; i < 100; ++i)
    if (data.denominator[i] == 0) data.weights[i] = 0.0;
  expect_message([&] { classifier->fit(data.set()); },
                 "numerator's weight is 0, but must be positive");
  data.weights.clear();
  std::fill(data.denominator.begin(), data.denominator.end(), std::uint8_t{0});
  expect_message([&] { classifier->fit(data.set()); },
                 "denominator's weight is 0, but must be positive");
  EXPECT_THROW(classifier->fit(TrainingSet{}), ArgumentError);
}

TEST_P(EveryClassifier, RefusesBadWeightsAndSizes) {
  Labelled data = two_normals(50, 50);
  auto classifier = make();
  data.weights.assign(100, 1.0);
  data.weights[3] = -0.5;
  expect_message([&] { classifier->fit(data.set()); },
                 "weights[3] is -0.5, but must be finite and not");
  data.weights[3] = std::nan("");
  expect_message([&] { classifier->fit(data.set()); }, "weights[3] is nan");
  data.weights.assign(99, 1.0);
  expect_message([&] { classifier->fit(data.set()); }, "weights has 99 values, but must have 100");
  data.weights.clear();
  data.denominator.pop_back();
  expect_message([&] { classifier->fit(data.set()); },
                 "denominator has 99 values, but must have 100");
}

TEST_P(EveryClassifier, RefusesToScoreBeforeFitAndOtherColumns) {
  const auto unfitted = make();
  EXPECT_FALSE(unfitted->fitted());
  expect_message([&] { unfitted->logits(Matrix(1, 1)); }, "not fitted, but must be fitted before");
  const auto classifier = fitted(two_normals(50, 50));
  expect_message([&] { classifier->logits(Matrix(1, 2)); }, "has 2 values, but must have 1");
  EXPECT_EQ(classifier->logits(Matrix(0, 1)).size(), 0U);
}

TEST_P(EveryClassifier, ConstantFeatureTellsNothing) {
  Labelled data = two_normals(5000, 5000, 2);
  for (std::size_t i = 0; i < data.x.rows(); ++i) data.x(i, 1) = 1e6 / 3.0;
  const auto classifier = fitted(data);
  Labelled fresh = two_normals(2500, 2500, 2, 99);
  for (std::size_t i = 0; i < fresh.x.rows(); ++i) fresh.x(i, 1) = 1e6 / 3.0;
  EXPECT_LT(mean_error(*classifier, fresh.x), 2.0 * limit(GetParam()).known_answer + 0.02);
}

TEST_P(EveryClassifier, AllFeaturesConstantGivesEvenOdds) {
  Labelled data = two_normals(30, 300);
  for (double& value : data.x.values()) value = 3.0;
  const Logits z = fitted(data)->logits(Matrix(1, 1, std::vector<double>{3.0}));
  EXPECT_NEAR(z[0], 0.0, 0.1);
}

TEST_P(EveryClassifier, OneEventASide) {
  Labelled data{Matrix(2, 1, std::vector<double>{-1.0, 1.0}), {0, 1}};
  for (const double z : fitted(data)->logits(data.x)) EXPECT_TRUE(std::isfinite(z));
}

TEST_P(EveryClassifier, LogitsAreFiniteEverywhere) {
  const Matrix far(6, 1, std::vector<double>{-1e308, -1e30, 0.0, 5e-324, 1e30, 1e308});
  const auto expect_finite = [&](const Labelled& data) {
    const auto classifier = fitted(data);
    for (const double z : classifier->logits(far)) EXPECT_TRUE(std::isfinite(z)) << z;
    for (const double z : classifier->logits(data.x)) EXPECT_TRUE(std::isfinite(z)) << z;
  };
  expect_finite(two_normals(200, 200));
  Labelled separated = two_normals(200, 200);
  for (std::size_t i = 0; i < 400; ++i)
    if (separated.denominator[i] != 0) separated.x(i, 0) += 1e3;
  expect_finite(separated);
  Labelled heavy = two_normals(200, 200);
  for (double& value : heavy.x.values()) value = std::sinh(150.0 * value);
  expect_finite(heavy);
  Labelled extreme = two_normals(200, 200);
  extreme.weights.assign(400, 1e-300);
  extreme.weights[0] = 1e300;
  expect_finite(extreme);
}

TEST_P(EveryClassifier, ReadsStridedRows) {
  const Labelled wide = two_normals(500, 500, 3);
  const MatrixView narrow(wide.x.data(), wide.x.rows(), 2, 3);
  Matrix copy(wide.x.rows(), 2);
  for (std::size_t i = 0; i < copy.rows(); ++i)
    for (std::size_t j = 0; j < 2; ++j) copy(i, j) = wide.x(i, j);
  auto strided = make(), compact = make();
  strided->fit({narrow, wide.denominator, {}, 1});
  compact->fit({copy, wide.denominator, {}, 1});
  EXPECT_EQ(strided->logits(narrow), compact->logits(copy));
}

TEST_P(EveryClassifier, GradientIsThatOfTheLogit) {
  const auto classifier = fitted(two_normals(1000, 1000, 2));
  const Labelled points = two_normals(10, 10, 2, 99);
  if (!classifier->differentiable()) {
    expect_message([&] { classifier->gradient(points.x); }, "but must be differentiable");
    return;
  }
  const Matrix gradient = classifier->gradient(points.x);
  // Wide enough for classifiers that compute in float.
  constexpr double step = 1e-2;
  for (std::size_t j = 0; j < 2; ++j) {
    Matrix low = points.x, high = points.x;
    for (std::size_t i = 0; i < low.rows(); ++i) {
      low(i, j) -= step;
      high(i, j) += step;
    }
    const Logits below = classifier->logits(low), above = classifier->logits(high);
    for (std::size_t i = 0; i < low.rows(); ++i)
      EXPECT_NEAR(gradient(i, j), (above[i] - below[i]) / (2.0 * step), 1e-2);
  }
}

TEST(ClassifierList, UnknownNamesListTheCandidates) {
  expect_message([&] { make_classifier("logistik"); }, "did you mean 'logistic'?");
  Archive archive;
  archive.set("kind", "logistik");
  EXPECT_THROW(load_classifier(archive), FileError);
}

TEST(ClassifierList, ReadsAStudysTable) {
  using Table = SettingValue::Table;
  Settings settings(Table{{"kind", {std::string("logistic"), 3}}, {"l2", {-1.0, 4}}}, "study.toml");
  make_classifier(settings);
  ASSERT_EQ(settings.problems().size(), 1U);
  EXPECT_NE(to_string(settings.problems()[0]).find("study.toml:4: l2 is -1"), std::string::npos)
      << to_string(settings.problems()[0]);
  Settings unknown(Table{{"kind", {std::string("forest"), 3}}}, "study.toml");
  make_classifier(unknown);
  EXPECT_EQ(unknown.problems().size(), 1U);
}

}  // namespace
}  // namespace neyman
