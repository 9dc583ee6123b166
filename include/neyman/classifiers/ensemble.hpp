#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "neyman/classifiers/mlp.hpp"

namespace neyman {

/// Several classifiers trained at the same time, each with a seed of its own:
/// z(x) = (1/K) Σ_k z_k(x). Their spread shows how far the training decides z. Networks (`mlp`)
/// go through the data together: rows are read, standardised and held out once for all of them.
class Ensemble : public Classifier {
 public:
  struct Config {
    std::size_t members = 5;  ///< K
    /// Multiplies the weights of each member by draws of Exp(1), one a row (the Bayesian
    /// bootstrap, Rubin 1981): the spread then holds the finite training sample as well.
    bool bootstrap = false;
    /// What the members are; member k is made like of[k mod size]. Empty: mlp.
    std::vector<std::shared_ptr<const Classifier>> of = {};
    /// `of` is a table with a kind, a list of such tables, or the name of a kind; `members` is
    /// by default the length of the list.
    static Config from(Settings settings);
  };

  Ensemble() : Ensemble(Config()) {}
  /// @throw ArgumentError without members.
  explicit Ensemble(Config config);

  std::string kind() const override { return "ensemble"; }
  std::unique_ptr<Classifier> fresh() const override;
  void fit(const TrainingSet& data) override;
  /// Every member has epochs of its own; `bootstrap` is not needed and not done.
  void fit_epochs(const TrainingEpochs& epochs, std::uint64_t seed,
                  Progress* progress = nullptr) override;
  /// True where every member does.
  bool streams() const override;
  /// With `bootstrap`, the rows of a group have one draw.
  void fit_stream(const TrainingStream& stream) override;
  bool fitted() const override { return !members_.empty(); }
  std::size_t features() const override { return fitted() ? members_.front()->features() : 0; }
  Logits logits(MatrixView x) const override;
  /// True where every member is differentiable.
  bool differentiable() const override;
  Matrix gradient(MatrixView x) const override;
  void save(Archive& archive) const override;
  void load(const Archive& archive) override;

  const Config& config() const { return config_; }
  /// Standard deviation of the members' logits (divisor K − 1); zero for one member.
  std::vector<double> spread(MatrixView x) const;
  /// Empty before `fit`.
  const std::vector<std::shared_ptr<const Classifier>>& members() const { return members_; }

 private:
  using Alone = std::function<void(Classifier& member, std::size_t k, std::uint64_t seed,
                                   Progress& progress)>;
  using Together = std::function<void(const std::vector<Mlp::Member>&, Progress& progress)>;
  /// Trains each member by `alone`, or, unless it is empty, networks that hold out the same part
  /// by `together`.
  void fit_members(std::uint64_t seed, Progress* progress, const Alone& alone,
                   const Together& together);
  std::vector<Logits> member_logits(MatrixView x) const;

  Config config_;
  std::vector<std::shared_ptr<const Classifier>> members_;
};

}  // namespace neyman
