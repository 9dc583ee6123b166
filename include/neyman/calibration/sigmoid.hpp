#pragma once

#include <vector>

#include "neyman/calibration/calibrator.hpp"

namespace neyman {

/// Platt's calibration: log r = a + b z, by maximum likelihood of the logistic model
/// P(denominator | z) = 1 / (1 + exp(a + b z − log n1/n0)).
///
/// The labels are smoothed as Platt has it, numerator 1/(n0 + 2) and denominator
/// (n1 + 1)/(n1 + 2), so that the fit is finite for separated sides. Outside the range of the
/// scores the line continues, for at most 10 units of log r.
///
/// The errors come from the Fisher information; sides of given sizes make the variance of the
/// offset smaller by 1/n0 + 1/n1 than that of the plain logistic regression. They are right
/// where the line is, and say nothing about a bend of the true curve.
///
/// Platt, Probabilistic outputs for support vector machines (1999).
class SigmoidCalibrator : public Calibrator {
 public:
  struct Config {
    static Config from(Settings& settings);
  };

  explicit SigmoidCalibrator(Config config);
  SigmoidCalibrator() : SigmoidCalibrator(Config{}) {}

  std::string kind() const override { return "sigmoid"; }
  std::unique_ptr<Calibrator> fresh() const override;
  void fit(const CalibrationSet& data) override;
  bool fitted() const override { return !line_.empty(); }
  LogRatios log_ratios(const Logits& logits) const override;
  std::vector<double> errors(const Logits& logits) const override;
  void save(Archive& archive) const override;
  void load(const Archive& archive) override;

  /// log r = intercept() + slope() z.
  double intercept() const;
  double slope() const;

 private:
  std::vector<double> line_;  // the members of calibration::Line, empty before the fit
};

}  // namespace neyman
