#include "neyman/data/samples.hpp"

#include <limits>

#include "support.hpp"

namespace neyman {
namespace {

using test::message_of;

Samples three_events() {
  Samples samples;
  samples.feature_names = {"a", "b"};
  samples.x = Matrix(3, 2, {1, 2, 3, 4, 5, 6});
  samples.parameter_names = {"alpha"};
  samples.theta = Matrix(3, 1, {0.1, 0.2, 0.3});
  samples.weights = {1, 2, 3};
  samples.groups = {7, 7, 8};
  return samples;
}

TEST(Samples, TotalWeightAndEffectiveSize) {
  Samples samples = three_events();
  EXPECT_EQ(samples.total_weight(), 6);
  EXPECT_DOUBLE_EQ(samples.effective_size(), 36.0 / 14.0);
  samples.weights.clear();
  EXPECT_EQ(samples.total_weight(), 3);
  EXPECT_EQ(samples.effective_size(), 3);
  samples.weights = {0, 0, 0};
  EXPECT_EQ(samples.effective_size(), 0);
}

TEST(Samples, EffectiveSizeOfExtremeWeightsIsFinite) {
  Samples samples = three_events();
  samples.weights = {1e300, 1e300, 1e300};
  EXPECT_DOUBLE_EQ(samples.effective_size(), 3);
  samples.weights = {1e-300, 1e-300, 0};
  EXPECT_DOUBLE_EQ(samples.effective_size(), 2);
}

TEST(Samples, TakeKeepsOrderAndRepeats) {
  const std::vector<std::size_t> indices = {2, 0, 2};
  const Samples taken = three_events().take(indices);
  EXPECT_EQ(taken.x, Matrix(3, 2, {5, 6, 1, 2, 5, 6}));
  EXPECT_EQ(taken.theta, Matrix(3, 1, {0.3, 0.1, 0.3}));
  EXPECT_EQ(taken.weights, (std::vector<double>{3, 1, 3}));
  EXPECT_EQ(taken.groups, (std::vector<std::int64_t>{8, 7, 8}));
  EXPECT_EQ(taken.feature_names, three_events().feature_names);
}

TEST(Samples, TakeRefusesAnIndexBeyondTheEnd) {
  const std::vector<std::size_t> indices = {3};
  EXPECT_EQ(message_of<ArgumentError>([&] { three_events().take(indices); }),
            "Samples::take: index is 3, but must be below the number of events, 3");
}

TEST(Samples, AppendOfTwoPartsIsTheWhole) {
  const Samples whole = three_events();
  Samples joined;
  joined.append(whole.take(std::vector<std::size_t>{0}));
  joined.append(whole.take(std::vector<std::size_t>{1, 2}));
  EXPECT_EQ(joined, whole);
  joined.append(whole.take({}));
  EXPECT_EQ(joined, whole);
}

TEST(Samples, AppendFillsWeightsOfOne) {
  Samples weighted = three_events(), plain = three_events();
  plain.weights.clear();
  Samples joined = weighted;
  joined.append(plain);
  EXPECT_EQ(joined.weights, (std::vector<double>{1, 2, 3, 1, 1, 1}));
  joined = plain;
  joined.append(weighted);
  EXPECT_EQ(joined.weights, (std::vector<double>{1, 1, 1, 1, 2, 3}));
}

TEST(Samples, AppendRefusesOtherColumns) {
  Samples samples = three_events(), other = three_events();
  other.feature_names = {"a", "c"};
  EXPECT_EQ(message_of<ArgumentError>([&] { samples.append(other); }),
            "Samples::append: feature_names is [a, c], but must be [a, b]");
  other = three_events();
  other.parameter_names = {"beta"};
  EXPECT_EQ(message_of<ArgumentError>([&] { samples.append(other); }),
            "Samples::append: parameter_names is [beta], but must be [alpha]");
  other = three_events();
  other.groups.clear();
  EXPECT_CONTAINS(message_of<ArgumentError>([&] { samples.append(other); }), "groups");
  EXPECT_EQ(samples, three_events());
}

TEST(Samples, CheckNamesRowAndColumn) {
  Samples samples = three_events();
  EXPECT_NO_THROW(samples.check("fit"));
  samples.x(1, 1) = std::numeric_limits<double>::quiet_NaN();
  EXPECT_EQ(message_of<ArgumentError>([&] { samples.check("fit"); }),
            "fit: x[1, 'b'] is nan, but must be finite");
  samples = three_events();
  samples.theta(2, 0) = -std::numeric_limits<double>::infinity();
  EXPECT_EQ(message_of<ArgumentError>([&] { samples.check("fit"); }),
            "fit: theta[2, 'alpha'] is -inf, but must be finite");
  samples = three_events();
  samples.weights[1] = std::numeric_limits<double>::infinity();
  EXPECT_EQ(message_of<ArgumentError>([&] { samples.check("fit"); }),
            "fit: weights[1] is inf, but must be finite");
}

TEST(Samples, CheckRefusesSizesThatDisagree) {
  Samples samples = three_events();
  samples.weights.pop_back();
  EXPECT_EQ(message_of<ArgumentError>([&] { samples.check("fit"); }),
            "fit: weights has 2 values, but must have 3 (one for each event)");
  samples = three_events();
  samples.groups.push_back(9);
  EXPECT_CONTAINS(message_of<ArgumentError>([&] { samples.check("fit"); }), "groups has 4");
  samples = three_events();
  samples.theta = Matrix(2, 1);
  EXPECT_CONTAINS(message_of<ArgumentError>([&] { samples.check("fit"); }), "theta has 2");
  samples = three_events();
  samples.feature_names.pop_back();
  EXPECT_CONTAINS(message_of<ArgumentError>([&] { samples.check("fit"); }),
                  "feature_names has 1 values, but must have 2");
}

TEST(Samples, DefaultNames) {
  EXPECT_EQ(default_feature_names(1), (std::vector<std::string>{"x"}));
  EXPECT_EQ(default_feature_names(3), (std::vector<std::string>{"x0", "x1", "x2"}));
}

}  // namespace
}  // namespace neyman
