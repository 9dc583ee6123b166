#include "neyman/core/check.hpp"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "neyman/core/error.hpp"
#include "neyman/core/matrix.hpp"
#include "neyman/core/parameters.hpp"

namespace neyman {
namespace {

template <class Call>
std::string message_of(Call&& call) {
  try {
    call();
  } catch (const ArgumentError& error) {
    return error.what();
  }
  return "nothing was thrown";
}

TEST(Check, OneMessageForm) {
  EXPECT_EQ(message_of([] { check_positive("fit", "sigma", -1.5); }),
            "fit: sigma is -1.5, but must be positive and finite");
  EXPECT_EQ(message_of([] { check_in_range("fit", "level", 1.5, 0, 1); }),
            "fit: level is 1.5, but must be between 0 and 1");
  EXPECT_EQ(message_of([] { check_same_size("fit", "weights", 3, 4, "one an event"); }),
            "fit: weights has 3 values, but must have 4 (one an event)");
}

TEST(Check, NamesTheIndexOfAnElement) {
  const std::vector<double> values{1.0, std::nan(""), 2.0};
  EXPECT_EQ(message_of([&] { check_finite("fit", "x", values); }),
            "fit: x[1] is nan, but must be finite");
  const std::vector<double> negative{1.0, 2.0, -0.5};
  EXPECT_EQ(message_of([&] { check_non_negative("fit", "weights", negative); }),
            "fit: weights[2] is -0.5, but must be finite and not negative");
}

TEST(Check, RefusesNaNAndInfinityWhereARangeIsAskedFor) {
  EXPECT_THROW(check_in_range("f", "x", std::nan(""), 0, 1), ArgumentError);
  EXPECT_THROW(check_positive("f", "x", std::numeric_limits<double>::infinity()), ArgumentError);
  EXPECT_THROW(check_positive("f", "x", std::nan("")), ArgumentError);
}

TEST(Check, UnknownNamesListCandidatesAndTheNearest) {
  EXPECT_EQ(unknown_name("mpl", "a classifier", {"logistic", "mlp"}),
            "'mpl' is not a classifier; candidates are logistic, mlp (did you mean 'mlp'?)");
  EXPECT_EQ(unknown_name("zzzzzzzz", "a classifier", {"logistic", "mlp"}),
            "'zzzzzzzz' is not a classifier; candidates are logistic, mlp");
  EXPECT_EQ(unknown_name("c", "a parameter", {"a", "b"}),
            "'c' is not a parameter; candidates are a, b");
}

TEST(Parameters, RefuseTwinsAndEmptyRanges) {
  EXPECT_THROW(ParameterSpace({{"a", 0, 1, {}}, {"a", 0, 1, {}}}), ArgumentError);
  EXPECT_THROW(ParameterSpace({{"a", 1, 1, {}}}), ArgumentError);
  const ParameterSpace space({{"a", 0, 1, {}}, {"b", -1, 1, 0.5}});
  EXPECT_EQ(space.index("b"), 1U);
  EXPECT_THROW(space.index("c"), ArgumentError);
  EXPECT_NO_THROW(space.check_inside("f", std::vector{0.0, 1.0}));
  EXPECT_THROW(space.check_inside("f", std::vector{0.0, 1.1}), ArgumentError);
  EXPECT_THROW(space.check_inside("f", std::vector{0.0}), ArgumentError);
}

TEST(Matrix, TakesAppendsAndViews) {
  Matrix m(2, 2, {1, 2, 3, 4});
  m.append(Matrix(1, 2, {5, 6}));
  EXPECT_EQ(m, Matrix(3, 2, {1, 2, 3, 4, 5, 6}));
  const std::vector<std::size_t> indices{2, 0};
  EXPECT_EQ(m.take(indices), Matrix(2, 2, {5, 6, 1, 2}));
  EXPECT_EQ(m.column(1), (std::vector<double>{2, 4, 6}));
  EXPECT_EQ(m.rows(1, 3)(1, 0), 5.0);
  EXPECT_THROW(m.append(Matrix(1, 3)), ArgumentError);
  EXPECT_THROW(Matrix(2, 2, {1.0}), ArgumentError);
  const std::vector<std::size_t> beyond{3};
  EXPECT_THROW(m.take(beyond), ArgumentError);
}

TEST(Check, NamesOfOtherLibrariesAreUnderstood) {
  const std::vector<std::string> kinds{"boosted-trees", "exponential", "mlp", "normal"};
  for (const auto& [name, ours] :
       std::vector<std::pair<std::string, std::string>>{{"gaussian", "normal"},
                                                        {"Gaussian", "normal"},
                                                        {"xgboost", "boosted-trees"},
                                                        {"boosted_trees", "boosted-trees"},
                                                        {"neural_network", "mlp"},
                                                        {"NN", "mlp"}})
    EXPECT_NE(candidates_for(name, kinds).find("did you mean '" + ours + "'"), std::string::npos)
        << name;
  // Only where there is such a candidate.
  EXPECT_EQ(candidates_for("gaussian", {"mlp", "logistic"}), "mlp, logistic");
}

TEST(Check, NumbersHaveAsManyDigitsAsAreNeeded) {
  const auto message = [](double value, double low, double high) {
    try {
      check_in_range("f", "x", value, low, high);
    } catch (const ArgumentError& error) {
      return std::string(error.what());
    }
    return std::string("no error");
  };
  EXPECT_EQ(message(-0.10000000000000003, 0, 1), "f: x is -0.1, but must be between 0 and 1");
  EXPECT_EQ(message(-1.0000990290137679e-05, 0, 1),
            "f: x is -1.0001e-05, but must be between 0 and 1");
  EXPECT_EQ(message(1.0000000000000002, 0, 1),
            "f: x is 1.0000000000000002, but must be between 0 and 1");
  EXPECT_EQ(message(0.30000004, 0, 0.3), "f: x is 0.30000004, but must be between 0 and 0.3");
  EXPECT_EQ(message(1234567.0, 0, 1), "f: x is 1234567, but must be between 0 and 1");
}

}  // namespace
}  // namespace neyman
