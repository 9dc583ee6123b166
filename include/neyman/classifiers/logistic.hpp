#pragma once

#include <cstddef>
#include <memory>
#include <string>
#include <vector>

#include "neyman/classifiers/classifier.hpp"

namespace neyman {

/// Logistic regression: z(x) = b + Σ_j β_j (x_j − m_j) / σ_j, with m and σ the mean and the
/// standard deviation of the balanced training set.
///
/// Minimises Σ_i w_i log(1 + exp(∓z_i)) / Σ_i w_i + ½ l2 |β|² by Newton's method with a line
/// search (iteratively reweighted least squares). The weights enter only through ratios to their
/// sum, so a weight of two equals a row repeated.
///
/// Exact for two distributions of one exponential family whose sufficient statistics are the
/// features (two normals with one covariance), too stiff for most others.
class Logistic : public Classifier {
 public:
  struct Config {
    double l2 = 1e-6;                  ///< penalty on β, against the mean loss of one event
    std::size_t max_iterations = 100;  ///< Newton steps; some ten suffice unless sides separate
    static Config from(Settings settings);
  };

  Logistic() : Logistic(Config()) {}
  /// @throw ArgumentError where `l2` is negative or not finite.
  explicit Logistic(const Config& config);

  std::string kind() const override { return "logistic"; }
  std::unique_ptr<Classifier> fresh() const override;
  void fit(const TrainingSet& data) override;
  bool fitted() const override { return !center_.empty(); }
  std::size_t features() const override { return center_.size(); }
  Logits logits(MatrixView x) const override;
  bool differentiable() const override { return true; }
  Matrix gradient(MatrixView x) const override;
  void save(Archive& archive) const override;
  void load(const Archive& archive) override;

  const Config& config() const { return config_; }
  /// False where `max_iterations` ended the fit; the coefficients are those of the last step.
  bool converged() const { return converged_; }
  /// b and β in units of the features: z = intercept + Σ_j coefficients[j] x_j.
  double intercept() const;
  std::vector<double> coefficients() const;

 private:
  void standardise(MatrixView x, std::span<const double> weights);
  double standardised(std::span<const double> row, std::size_t j) const;
  double logit(std::span<const double> row) const;
  bool newton(const TrainingSet& data, std::span<const double> weights);

  Config config_;
  std::vector<double> center_, inverse_scale_;  // inverse_scale_ is 0 for a constant feature
  std::vector<double> beta_;                    // in standardised units, intercept last
  bool converged_ = false;
};

}  // namespace neyman
