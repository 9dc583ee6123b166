#include "neyman/core/parameters.hpp"

#include <gtest/gtest.h>

#include <vector>

#include "neyman/core/error.hpp"
#include "neyman/core/parameters_archive.hpp"

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

TEST(ParameterSpaceInAnArchive, ComesBackButForTheTruth) {
  const ParameterSpace space({{"a", -1.0, 2.0, 0.5}, {"b", 0.0, 1.0, {}, true}});
  Archive archive;
  save_parameters(space, archive);
  EXPECT_EQ(load_parameters(archive),
            ParameterSpace({{"a", -1.0, 2.0, {}}, {"b", 0.0, 1.0, {}, true}}));
  // As before there were nuisance parameters.
  archive.set("ranges", Matrix(2, 2, {-1.0, 2.0, 0.0, 1.0}));
  EXPECT_EQ(load_parameters(archive), ParameterSpace({{"a", -1.0, 2.0, {}}, {"b", 0.0, 1.0, {}}}));
  archive.set("ranges", Matrix(1, 3, {-1.0, 2.0, 0.0}));
  EXPECT_THROW(load_parameters(archive), FileError);
}

}  // namespace
}  // namespace neyman
