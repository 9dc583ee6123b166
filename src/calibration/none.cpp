#include "neyman/calibration/none.hpp"

#include "calibration/scores.hpp"

namespace neyman {

using namespace calibration;

NoneCalibrator::Config NoneCalibrator::Config::from(Settings&) { return {}; }

NoneCalibrator::NoneCalibrator(Config) {}

std::unique_ptr<Calibrator> NoneCalibrator::fresh() const {
  return std::make_unique<NoneCalibrator>();
}

void NoneCalibrator::fit(const CalibrationSet& data) {
  const SortedScores scores = sort_scores(data);
  low_ = scores.low();
  high_ = scores.high();
  fitted_ = true;
}

LogRatios NoneCalibrator::log_ratios(const Logits& logits) const {
  check_evaluation(*this, "NoneCalibrator::log_ratios", logits);
  LogRatios result(logits.size());
  for (std::size_t i = 0; i < logits.size(); ++i) result[i] = -clamp_logit(logits[i]);
  return result;
}

std::vector<double> NoneCalibrator::errors(const Logits& logits) const {
  check_evaluation(*this, "NoneCalibrator::errors", logits);
  return std::vector<double>(logits.size(), 0.0);
}

void NoneCalibrator::save(Archive& archive) const {
  archive.set("fitted", fitted_);
  archive.set("low", low_);
  archive.set("high", high_);
}

void NoneCalibrator::load(const Archive& archive) {
  fitted_ = archive.flag("fitted");
  low_ = archive.number("low");
  high_ = archive.number("high");
}

}  // namespace neyman
