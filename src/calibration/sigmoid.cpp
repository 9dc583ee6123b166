#include "neyman/calibration/sigmoid.hpp"

#include <algorithm>

#include "calibration/line.hpp"
#include "calibration/scores.hpp"
#include "neyman/core/error.hpp"

namespace neyman {

using namespace calibration;

SigmoidCalibrator::Config SigmoidCalibrator::Config::from(Settings&) { return {}; }

SigmoidCalibrator::SigmoidCalibrator(Config) {}

std::unique_ptr<Calibrator> SigmoidCalibrator::fresh() const {
  return std::make_unique<SigmoidCalibrator>();
}

void SigmoidCalibrator::fit(const CalibrationSet& data) {
  const Cells cells = make_cells(sort_scores(data));
  line_ = fit_line(cells).values();
  low_ = cells.low;
  high_ = cells.high;
}

LogRatios SigmoidCalibrator::log_ratios(const Logits& logits) const {
  check_evaluation(*this, "SigmoidCalibrator::log_ratios", logits);
  const Line line = Line::from(line_);
  LogRatios result(logits.size());
  for (std::size_t i = 0; i < logits.size(); ++i) {
    const double inside = line.log_ratio(std::clamp(logits[i], low_, high_));
    const double extended = line.log_ratio(clamp_logit(logits[i]));
    result[i] = inside + std::clamp(extended - inside, -largest_extension, largest_extension);
  }
  return result;
}

std::vector<double> SigmoidCalibrator::errors(const Logits& logits) const {
  check_evaluation(*this, "SigmoidCalibrator::errors", logits);
  const Line line = Line::from(line_);
  std::vector<double> result(logits.size());
  for (std::size_t i = 0; i < logits.size(); ++i) result[i] = line.error(clamp_logit(logits[i]));
  return result;
}

double SigmoidCalibrator::intercept() const { return Line::from(line_).log_ratio(0.0); }

double SigmoidCalibrator::slope() const {
  const Line line = Line::from(line_);
  return -line.slope / line.scale;
}

void SigmoidCalibrator::save(Archive& archive) const {
  archive.set("line", line_);
  archive.set("low", low_);
  archive.set("high", high_);
}

void SigmoidCalibrator::load(const Archive& archive) {
  line_ = archive.numbers("line");
  if (!line_.empty() && line_.size() != Line{}.values().size()) {
    throw FileError("calibrator: line has " + std::to_string(line_.size()) +
                    " values, but must have 7");
  }
  low_ = archive.number("low");
  high_ = archive.number("high");
}

}  // namespace neyman
