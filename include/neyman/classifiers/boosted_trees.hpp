#pragma once

#include <cstddef>
#include <memory>
#include <string>

#include "neyman/classifiers/classifier.hpp"

namespace neyman {

namespace detail {
class TreeModel;
}

/// Gradient-boosted trees (XGBoost, histogram method): z(x) = Σ_k f_k(x), each tree f_k a Newton
/// step on the cross-entropy of the balanced training set.
///
/// The number of trees is chosen on a held-out part: training stops when `patience` further trees
/// do not lower its loss, and the best number is kept. Where a side has too few events for a
/// held-out part (fewer than 1 / held_out), all `rounds` are grown.
///
/// Features are cut into `bins` of equal weight, so only the order of a feature's values counts,
/// and far outside the training sample z is constant. z has steps; it has no gradient.
/// Reference: T. Chen, C. Guestrin, XGBoost: a scalable tree boosting system (KDD 2016).
class BoostedTrees : public Classifier {
 public:
  struct Config {
    std::size_t rounds = 1000;   ///< trees at most
    double learning_rate = 0.1;  ///< each tree's step is shortened by this factor
    std::size_t depth = 3;       ///< splits from root to leaf at most
    double min_leaf = 20.0;      ///< events of mean weight that a leaf needs
    double l2 = 1.0;             ///< penalty on the values of the leaves
    double subsample = 1.0;      ///< part of the rows that each tree sees
    double features = 1.0;       ///< part of the features that each tree sees
    std::size_t bins = 256;      ///< bins a feature
    std::size_t patience = 20;   ///< trees without gain before stopping; 0: grow all rounds
    double held_out = 0.1;       ///< part of the rows that decides when to stop
    static Config from(Settings settings);
  };

  BoostedTrees() : BoostedTrees(Config()) {}
  /// @throw ArgumentError where a value is out of its range.
  explicit BoostedTrees(const Config& config);

  std::string kind() const override { return "boosted-trees"; }
  std::unique_ptr<Classifier> fresh() const override;
  void fit(const TrainingSet& data) override;
  bool fitted() const override { return model_ != nullptr; }
  std::size_t features() const override;
  Logits logits(MatrixView x) const override;
  void save(Archive& archive) const override;
  void load(const Archive& archive) override;

  const Config& config() const { return config_; }
  /// How many trees the fit kept.
  std::size_t trees() const;

 private:
  Config config_;
  std::shared_ptr<const detail::TreeModel> model_;
};

}  // namespace neyman
