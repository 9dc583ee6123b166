#pragma once

#include <cstddef>
#include <memory>
#include <string>

#include "neyman/classifiers/classifier.hpp"

namespace neyman {

namespace detail {
class TreeModel;
}

/// A random forest: s(x) is the mean over trees of the denominator's share in the leaf of x,
///
///     s(x) = (1/T) Σ_t (D_t(x) + λ/2) / (N_t(x) + D_t(x) + λ),
///
/// with N and D the summed weights of numerator and denominator in the leaf of tree t, and λ the
/// pseudo-count `shrink`, which keeps s off 0 and 1 by what the leaf's size warrants. Trees are
/// grown by XGBoost on bootstrap samples, each split the best (least squared error, the same as
/// Gini's index) among a random part of the features.
///
/// z = log s − log(1 − s) has steps and no gradient, and flattens where the sides hardly overlap:
/// a mean of shares is drawn towards ½. Calibration corrects that.
/// Reference: L. Breiman, Random forests, Machine Learning 45 (2001).
class RandomForest : public Classifier {
 public:
  struct Config {
    std::size_t trees = 100;
    std::size_t depth = 12;  ///< splits from root to leaf at most
    double min_leaf = 50.0;  ///< events of mean weight that a leaf needs
    double shrink = 1.0;     ///< λ, in events of mean weight
    double features = 0.0;   ///< part of the features tried at each split; 0: √d of d
    bool bootstrap = true;   ///< each tree on rows drawn with replacement
    std::size_t bins = 256;  ///< bins a feature
    static Config from(Settings settings);
  };

  RandomForest() : RandomForest(Config()) {}
  /// @throw ArgumentError where a value is out of its range.
  explicit RandomForest(const Config& config);

  std::string kind() const override { return "random-forest"; }
  std::unique_ptr<Classifier> fresh() const override;
  void fit(const TrainingSet& data) override;
  bool fitted() const override { return model_ != nullptr; }
  std::size_t features() const override;
  Logits logits(MatrixView x) const override;
  void save(Archive& archive) const override;
  void load(const Archive& archive) override;

  const Config& config() const { return config_; }

 private:
  Config config_;
  std::shared_ptr<const detail::TreeModel> model_;
  double smallest_share_ = 0.0;  // no leaf is purer than this; rounding must not be either
};

}  // namespace neyman
