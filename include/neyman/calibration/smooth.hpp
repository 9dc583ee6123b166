#pragma once

#include <array>
#include <cstdint>
#include <vector>

#include "neyman/calibration/calibrator.hpp"

namespace neyman {

namespace calibration {
struct SplineFit;
}

/// A smooth monotone curve of log r against the logit, whose complexity the data choose.
///
/// The logistic model P(denominator | z) = 1 / (1 + exp(−f(z) − log n1/n0)) with log r = −f is
/// fitted to the sides of the events. f is a cubic spline on knots that follow the scores,
/// with the penalty λ ∫ f''(z)² dz: as λ grows, f becomes the straight line of the sigmoid
/// calibration. λ maximises the marginal likelihood (Laplace's approximation; the straight line
/// is kept unless a bend raises its logarithm by more than 1), so that a classifier that is right
/// costs the noise of about two parameters, and one that is bent is straightened as far as
/// the events allow. The offset of f is unpenalised: it is the
/// maximum-likelihood (bridge) estimate of the normalisation.
///
/// f is kept non-decreasing, so log r falls with z. Separated sides and tiny samples are kept
/// finite by a weak normal prior of f about the score itself (less its mean, and within ±20), of
/// precision 0.2 at one event in all: its effect on n events is of the order 1/n.
///
/// Outside the range of the scores the curve goes on as a straight line, for at most
/// `extrapolation` units of log r.
///
/// The errors are the posterior standard deviations of f, (BᵀWB + λS)⁻¹ less 1/n0 + 1/n1 because
/// the sizes of the sides are given, not drawn. They allow for the bias of smoothing on
/// average over the curve, not at each point: at a sharp kink they are too small.
///
/// The sample is summarised in some 600 cells first, so that the cost beyond sorting does not
/// grow with the sample. Replicas of a bootstrap count events in the same cells, and keep the λ
/// of the whole sample.
///
/// Eilers and Marx, Flexible smoothing with B-splines and penalties (1996); Wood, Fast stable
/// restricted maximum likelihood (2011); Meng and Wong, Simulating ratios of normalizing
/// constants via a simple identity (1996).
class SmoothCalibrator : public Calibrator {
 public:
  struct Config {
    std::size_t knots = 0;        ///< pieces of the spline; 0: chosen from the sample's size
    bool monotone = true;         ///< keep log r from rising with z
    double extrapolation = 10.0;  ///< most change of log r outside the range of the scores
    static Config from(Settings& settings);
  };

  /// @throw ArgumentError unless extrapolation is finite and not negative and knots <= 1000.
  explicit SmoothCalibrator(Config config);
  SmoothCalibrator() : SmoothCalibrator(Config{}) {}

  std::string kind() const override { return "smooth"; }
  std::unique_ptr<Calibrator> fresh() const override;
  void fit(const CalibrationSet& data) override;
  bool fitted() const override { return !breaks_.empty(); }
  std::vector<std::unique_ptr<Calibrator>> fit_replicas(const CalibrationSet& data,
                                                        std::size_t count,
                                                        const ReplicaWeights& fill) const override;
  LogRatios log_ratios(const Logits& logits) const override;
  std::vector<double> errors(const Logits& logits) const override;
  void save(Archive& archive) const override;
  void load(const Archive& archive) override;

  /// Effective number of parameters of the curve, at least about 2.
  double complexity() const { return complexity_; }

 private:
  void take(calibration::SplineFit&& fit);
  void prepare();
  std::size_t find(double u) const;

  Config config_;
  double centre_ = 0.0, scale_ = 1.0;  // u = (z − centre) / scale
  std::vector<double> breaks_;         // of the pieces, in u
  std::vector<double> coefficients_;   // of the B-splines
  std::vector<double> covariance_;     // of the coefficients, four diagonals, row by row
  double complexity_ = 0.0;
  // Made by prepare(): polynomials of (u − break), and the first piece of equal parts of the range.
  std::vector<std::array<double, 4>> pieces_;
  std::vector<std::uint16_t> guide_;
};

}  // namespace neyman
