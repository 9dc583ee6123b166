#include "neyman/core/parameters.hpp"

#include <gtest/gtest.h>

#include <vector>

namespace neyman {
namespace {

TEST(ParameterSpace, KnowsItsMiddleAndWhatIsOfInterest) {
  std::vector<Parameter> parameters{{"a", -1, 3, {}}, {"b", 2, 4, {}}, {"c", 0, 1, {}}};
  parameters[1].nuisance = true;
  const ParameterSpace space(parameters);
  EXPECT_EQ(space.middle(), (std::vector{1.0, 3.0, 0.5}));
  EXPECT_EQ(space.of_interest(), (std::vector<std::size_t>{0, 2}));
  EXPECT_TRUE(ParameterSpace().of_interest().empty());
}

}  // namespace
}  // namespace neyman
