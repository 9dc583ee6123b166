#include "measurements/interpolation.hpp"

#include <gtest/gtest.h>

#include <cmath>

namespace neyman {
namespace {

template <class Function>
void expect_derivatives(Function&& jet, double at) {
  const double h = 1e-5;
  const auto here = jet(at), above = jet(at + h), below = jet(at - h);
  EXPECT_NEAR(here.first, (above.value - below.value) / (2.0 * h), 1e-8) << at;
  EXPECT_NEAR(here.second, (above.first - below.first) / (2.0 * h), 1e-8) << at;
}

/// Value and two derivatives are the same from both sides.
template <class Function>
void expect_smooth(Function&& jet, double at) {
  const double h = 1e-9;
  const auto above = jet(at + h), below = jet(at - h);
  EXPECT_NEAR(above.value, below.value, 1e-7);
  EXPECT_NEAR(above.first, below.first, 1e-7);
  EXPECT_NEAR(above.second, below.second, 1e-6);
}

TEST(FactorInterpolation, PassesThroughItsPoints) {
  const FactorInterpolation factor(0.8, 1.3);
  EXPECT_EQ(factor(0.0).value, 1.0);
  EXPECT_NEAR(factor(1.0).value, 1.3, 1e-14);
  EXPECT_NEAR(factor(-1.0).value, 0.8, 1e-14);
  EXPECT_NEAR(factor(2.5).value, std::pow(1.3, 2.5), 1e-14);
  EXPECT_NEAR(factor(-2.5).value, std::pow(0.8, 2.5), 1e-14);
  // pyhf 0.7.6, code4 with 0.8, 1 and 1.3 at 0.37.
  EXPECT_NEAR(factor(0.37).value, 1.0994728502, 1e-9);
}

TEST(FactorInterpolation, IsTwiceDifferentiable) {
  for (const auto& factor : {FactorInterpolation(0.8, 1.3), FactorInterpolation(1.2, 1.1),
                             FactorInterpolation(0.01, 5.0)}) {
    for (const double at : {-2.2, -1.5, -0.6, 0.0, 0.3, 0.9, 1.7}) expect_derivatives(factor, at);
    expect_smooth(factor, 1.0);
    expect_smooth(factor, -1.0);
  }
}

TEST(ShiftInterpolation, PassesThroughItsPointsAndIsTwiceDifferentiable) {
  const double up = 3.0, down = -1.2;
  const auto shift = [&](double alpha) {
    const ShiftInterpolation at(alpha);
    return Jet{up * at.up.value + down * at.down.value, up * at.up.first + down * at.down.first,
               up * at.up.second + down * at.down.second};
  };
  EXPECT_EQ(shift(0.0).value, 0.0);
  EXPECT_NEAR(shift(1.0).value, up, 1e-14);
  EXPECT_NEAR(shift(-1.0).value, -down, 1e-14);
  EXPECT_NEAR(shift(2.0).value, 2.0 * up, 1e-14);
  EXPECT_NEAR(shift(-3.0).value, -3.0 * down, 1e-14);
  for (const double at : {-2.2, -0.6, 0.0, 0.3, 0.9, 1.7}) expect_derivatives(shift, at);
  expect_smooth(shift, 1.0);
  expect_smooth(shift, -1.0);
}

}  // namespace
}  // namespace neyman
