#include "neyman/simulators/expression.hpp"

#include <cmath>
#include <limits>

#include "neyman/core/parallel.hpp"
#include "simulators/reference.hpp"

namespace neyman {
namespace {

using reference::contains;
using reference::error_of;

const ParameterSpace expression_space({{"alpha", -3, 3, {}}, {"gamma", 0, 1, {}}});

TEST(Expression, EvaluatesFormulasOfTheParameters) {
  const std::vector<double> point{1.5, 0.25};
  EXPECT_DOUBLE_EQ(Expression("0.5 - gamma/2", expression_space)(point), 0.375);
  EXPECT_DOUBLE_EQ(Expression("alpha^2*exp(-gamma)", expression_space)(point),
                   2.25 * std::exp(-0.25));
  EXPECT_DOUBLE_EQ(Expression("log(alpha) + ln(alpha)", expression_space)(point),
                   2 * std::log(1.5));
  EXPECT_DOUBLE_EQ(Expression("alpha > 1 ? max(alpha, 2) : _pi", expression_space)(point), 2.0);
  EXPECT_DOUBLE_EQ(
      Expression("alpha >= 1.5 && gamma != 1 && gamma == 0.25", expression_space)(point), 1.0);
}

TEST(Expression, PowersAreWrittenAsInPythonToo) {
  const std::vector<double> point{1.5, 0.25};
  const auto value = [&](const char* formula) {
    return Expression(formula, expression_space)(point);
  };
  EXPECT_DOUBLE_EQ(value("alpha**2"), 2.25);
  EXPECT_DOUBLE_EQ(value("2 ** alpha*gamma"), std::exp2(1.5) * 0.25);
  EXPECT_DOUBLE_EQ(value("pow(alpha, 2) + gamma"), 2.5);
  EXPECT_DOUBLE_EQ(value("0*alpha + 2**3**2"), 512.0);
  EXPECT_DOUBLE_EQ(value("-alpha**2"), -2.25);
  EXPECT_EQ(Expression("alpha**2", expression_space).text(), "alpha**2");
  const auto message = error_of([] { Expression("alpha**gama", expression_space); });
  EXPECT_TRUE(contains(message, "position 8: 'gama'")) << message;
  EXPECT_TRUE(contains(error_of([] {
                         Expression("1", ParameterSpace({{"pow", 0, 1, {}}}));
                       }),
                       "different from the functions"));
}

TEST(Expression, KnowsWhichParametersItUses) {
  EXPECT_EQ(Expression("gamma*gamma", expression_space).uses(), (std::vector<std::size_t>{1}));
  EXPECT_EQ(Expression("gamma + alpha", expression_space).uses(), (std::vector<std::size_t>{0, 1}));
  EXPECT_FALSE(Expression("gamma", expression_space).constant());
}

TEST(Expression, FoldsConstants) {
  const Expression formula("sqrt(16) - 1", expression_space);
  EXPECT_TRUE(formula.constant());
  EXPECT_EQ(formula({}), 3.0);  // needs no point
  EXPECT_TRUE(formula.uses().empty());
  EXPECT_EQ(formula.text(), "sqrt(16) - 1");
  EXPECT_EQ(Expression(2.5)({}), 2.5);
}

TEST(Expression, NamesTheUnknownAndItsPlace) {
  const auto message = error_of([] { Expression("0.5 - gama/2", expression_space); });
  EXPECT_TRUE(contains(message, "Expression: formula is \"0.5 - gama/2\"")) << message;
  EXPECT_TRUE(contains(message, "position 7: 'gama' is not a parameter")) << message;
  EXPECT_TRUE(contains(message, "did you mean 'gamma'")) << message;
}

TEST(Expression, RefusesWhatIsNoFormula) {
  EXPECT_TRUE(contains(error_of([] { Expression("1 + * 2", expression_space); }), "position 5"));
  EXPECT_TRUE(contains(error_of([] { Expression("(1 + 2", expression_space); }), "position"));
  EXPECT_THROW(Expression("", expression_space), ArgumentError);
  EXPECT_THROW(Expression("gamma alpha", expression_space), ArgumentError);
  EXPECT_THROW(Expression("\"text\"", expression_space), ArgumentError);
  EXPECT_TRUE(
      contains(error_of([] { Expression("gamma = 2", expression_space); }), "position 7: '='"));
  EXPECT_TRUE(contains(error_of([] { Expression("1, 2", expression_space); }), "several values"));
  EXPECT_TRUE(contains(error_of([] { Expression("1/0", expression_space); }), "inf"));
  EXPECT_THROW(Expression(std::numeric_limits<double>::quiet_NaN()), ArgumentError);
}

TEST(Expression, RefusesNamesThatCannotStandInAFormula) {
  for (const auto* name : {"my-name", "2x", "sin", "_pi", "", "α"})
    EXPECT_THROW(Expression("1 + 1", ParameterSpace({{name, 0, 1, {}}})), ArgumentError) << name;
}

TEST(Expression, RefusesValuesThatAreNotFinite) {
  const Expression inverse("1/gamma", expression_space);
  EXPECT_DOUBLE_EQ(inverse(std::vector<double>{0.0, 0.5}), 2.0);
  const auto message = error_of([&] { inverse(std::vector<double>{0.0, 0.0}); });
  EXPECT_EQ(message, "Expression: \"1/gamma\" at gamma = 0 is inf, but must be finite");
}

TEST(Expression, RefusesAPointOfAnotherSize) {
  EXPECT_THROW(Expression("gamma", expression_space)(std::vector<double>{1.0}), ArgumentError);
}

TEST(Expression, IsSafeFromSeveralThreads) {
  const Expression formula("alpha*alpha + gamma", expression_space);
  std::vector<double> out(20000);
  set_threads(4);
  parallel_blocks(out.size(), 100, [&](Block block) {
    const Expression copy = formula;
    for (std::size_t i = block.begin; i < block.end; ++i) {
      const double x = static_cast<double>(i);
      out[i] = copy(std::vector<double>{x, 0.5});
    }
  });
  set_threads(0);
  for (std::size_t i = 0; i < out.size(); ++i)
    ASSERT_EQ(out[i], static_cast<double>(i) * static_cast<double>(i) + 0.5);
}

}  // namespace
}  // namespace neyman
