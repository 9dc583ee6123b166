#pragma once

#include "neyman/calibration/calibrator.hpp"

namespace neyman {

/// No calibration: log r = −z, the classifier is believed.
///
/// The fit only notes the range of the scores; outside of it log r = −z as well. The errors
/// are zero: nothing is estimated here, and what the classifier has wrong is not known.
class NoneCalibrator : public Calibrator {
 public:
  struct Config {
    static Config from(Settings& settings);
  };

  explicit NoneCalibrator(Config config);
  NoneCalibrator() : NoneCalibrator(Config{}) {}

  std::string kind() const override { return "none"; }
  std::unique_ptr<Calibrator> fresh() const override;
  void fit(const CalibrationSet& data) override;
  bool fitted() const override { return fitted_; }
  LogRatios log_ratios(const Logits& logits) const override;
  std::vector<double> errors(const Logits& logits) const override;
  void save(Archive& archive) const override;
  void load(const Archive& archive) override;

 private:
  bool fitted_ = false;
};

}  // namespace neyman
