#include "neyman/calibration/none.hpp"

#include <gtest/gtest.h>

#include "calibration/problems.hpp"

namespace neyman {
namespace {

TEST(None, BelievesTheClassifier) {
  const testing::Scores scores = testing::draw_scores(1, 100, 1.0);
  NoneCalibrator calibrator;
  calibrator.fit(scores.set());
  EXPECT_EQ(calibrator.log_ratios(Logits{-3.0, 0.25, 700.0}), (LogRatios{3.0, -0.25, -700.0}));
  EXPECT_EQ(calibrator.errors(Logits{-3.0, 0.25}), (std::vector<double>{0.0, 0.0}));
}

}  // namespace
}  // namespace neyman
