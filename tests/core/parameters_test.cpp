#include "neyman/core/parameters.hpp"

#include <gtest/gtest.h>

#include <cmath>
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

TEST(ParameterSpace, APeriodicOneGoesRound) {
  const Parameter plain{"a", -1, 3, {}}, phase{"p", -1, 3, {}, false, true};
  for (const double value : {-1.0, 0.0, 2.5, 3.0}) {
    EXPECT_EQ(phase.wrapped(value), value);
    EXPECT_EQ(plain.wrapped(value), value);
  }
  EXPECT_EQ(plain.wrapped(4.0), 4.0);
  EXPECT_EQ(phase.wrapped(4.0), 0.0);
  EXPECT_EQ(phase.wrapped(-1.5), 2.5);
  EXPECT_EQ(phase.wrapped(-1.5 - 4e3), 2.5);
  // A hair below the period leads to one of its ends, never out of it.
  EXPECT_GE(phase.wrapped(-1.0 - 1e-17), -1.0);
  EXPECT_LT(phase.wrapped(std::nextafter(-1.0, -2.0)), 3.0);
  EXPECT_EQ(plain.difference(2.9, -0.9), 2.9 + 0.9);
  EXPECT_NEAR(phase.difference(2.9, -0.9), -0.2, 1e-15);
  EXPECT_NEAR(phase.difference(-0.9, 2.9), 0.2, 1e-15);

  const ParameterSpace space({plain, phase});
  EXPECT_TRUE(space.periodic());
  EXPECT_FALSE(ParameterSpace({plain}).periodic());
  EXPECT_EQ(space.wrapped(std::vector{2.0, 7.0}), (std::vector{2.0, -1.0}));
  EXPECT_NO_THROW(space.check_inside("here", std::vector{2.0, 77.0}));
  EXPECT_THROW(space.check_inside("here", std::vector{4.0, 0.0}), ArgumentError);
  EXPECT_THROW(space.check_inside("here", std::vector{2.0, std::nan("")}), ArgumentError);
}

TEST(ParameterSpaceInAnArchive, PeriodicOnesComeBack) {
  const ParameterSpace space({{"a", -1.0, 2.0, {}}, {"p", 0.0, 1.0, {}, true, true}});
  Archive archive;
  save_parameters(space, archive);
  EXPECT_EQ(load_parameters(archive), space);
  // Files without periodic parameters are what they were.
  save_parameters(ParameterSpace({{"a", -1.0, 2.0, {}}}), archive);
  EXPECT_EQ(archive.get<Matrix>("ranges").cols(), 3u);
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
