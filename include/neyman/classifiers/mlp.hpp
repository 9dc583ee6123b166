#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "neyman/classifiers/classifier.hpp"

namespace neyman {

/// A small fully connected network with one output, the logit z(x).
///
/// a₀ = (x − mean)/sd,  aₗ = φ(Wₗ aₗ₋₁ + bₗ),  z = w·a_L + b
///
/// trained with Adam on Σ wᵢ loss(zᵢ, yᵢ) over shuffled minibatches. Cross-entropy makes z the
/// log-odds of the denominator directly; squared error is (σ(z) − y)². Inside, everything is
/// float32; the kernels are chosen for the machine's instruction set (the environment variable
/// NEYMAN_ISA = v2 | v3 | v4 pins one). The same seed gives the same bits on any number of
/// threads and ranks; between instruction sets the last bits differ.
///
/// Known weaknesses: one training finds one local optimum, so log r carries a scatter from seed
/// to seed (an `ensemble` averages it away and shows it); inputs beyond 10⁶ standard deviations
/// are moved to that distance; far outside the training data z is an extrapolation.
class Mlp final : public Classifier {
 public:
  enum class Activation { relu, tanh, silu };
  enum class Loss { cross_entropy, squared_error };
  /// How the learning rate goes from its first value: stays, falls along half a cosine to
  /// `final_rate`, or falls by `decay` (in steps of `decay_epochs`, or smoothly as fast).
  enum class Schedule { constant, cosine, step, exponential };

  struct Config {
    std::vector<std::size_t> hidden = {40, 40};  ///< width of each hidden layer; {}: linear
    Activation activation = Activation::silu;
    Loss loss = Loss::cross_entropy;
    std::size_t batch_size = 256;  ///< rows a step
    std::size_t epochs = 30;       ///< passes over the data, at most
    double learning_rate = 1e-2;   ///< the highest of the schedule
    Schedule schedule = Schedule::cosine;
    double warm_up = 0.02;    ///< part of the steps over which the rate rises to it
    double final_rate = 0.0;  ///< cosine: last rate, as a part of the first
    double decay = 0.1;       ///< step, exponential: factor every `decay_epochs`
    std::size_t decay_epochs = 10;
    double beta1 = 0.9;    ///< Adam: memory of the gradient
    double beta2 = 0.999;  ///< Adam: memory of its square
    /// AdamW: weights shrink by rate · this each step. Absent: 4.5/√n, n the effective number of
    /// rows (Σw)²/Σw², because the less there is to learn from, the smoother the answer must be.
    std::optional<double> weight_decay;
    double l2 = 0.0;            ///< adds l2/2 Σ W² to the loss
    double held_out = 0.0;      ///< part of the rows kept to watch the loss
    std::size_t patience = 10;  ///< epochs without a better held-out loss before the end

    /// Reads and checks the keys of a study's table, which have these fields' names.
    static Config from(Settings settings);
    bool operator==(const Config&) const = default;
  };

  /// Mean weighted loss after an epoch; `held_out` is 0 where no rows are held out.
  struct Epoch {
    double training = 0.0;
    double held_out = 0.0;
    bool operator==(const Epoch&) const = default;
  };

  Mlp() : Mlp(Config{}) {}
  /// @throw ArgumentError where a value of the configuration is out of its range.
  explicit Mlp(Config config);
  ~Mlp() override;
  Mlp(Mlp&&) noexcept;
  Mlp& operator=(Mlp&&) noexcept;

  const Config& config() const { return config_; }
  std::string kind() const override { return "mlp"; }
  std::unique_ptr<Classifier> fresh() const override { return std::make_unique<Mlp>(config_); }

  /// Rows of weight 0 are left out. Where rows are held out, the weights with the lowest held-out
  /// loss are kept, and training ends after `patience` epochs without a lower one.
  /// @throw Error where the training diverged (the learning rate is too high).
  void fit(const TrainingSet& data) override;
  /// `epochs` times new rows, scaled as the first. The loss of an epoch is then that of events not
  /// seen before, and none are held out.
  /// @throw ArgumentError where `held_out` is not 0, or an epoch has other columns.
  void fit_epochs(const TrainingEpochs& epochs, std::uint64_t seed,
                  Progress* progress = nullptr) override;
  bool streams() const override { return true; }
  /// Rows are shuffled within each window. A pass before the training finds the scales of the
  /// features and the weight of each side; `held_out` is then a part of the groups, and at most
  /// 262 144 rows. The next window is read while one is trained on.
  void fit_stream(const TrainingStream& stream) override;
  /// One of several that are trained at the same time.
  struct Member {
    Mlp* network;
    std::uint64_t seed;
    bool bootstrap = false;  ///< multiplies the weights by draws of Exp(1), one a row or group
  };
  /// Trains several on the same rows, which are read, standardised and held out once; each takes
  /// its steps in an order of its own. Without bootstrap and rows held out, each becomes what it
  /// would be alone.
  /// @throw ArgumentError as `fit`, and where they hold out different parts.
  static void fit_together(const std::vector<Member>& members, const TrainingSet& data);
  static void fit_together(const std::vector<Member>& members, const TrainingStream& stream);
  /// Groups of at least 1024 rows of a batch, at most 16.
  std::size_t shares() const override;
  bool fitted() const override { return state_ != nullptr; }
  std::size_t features() const override;

  Logits logits(MatrixView x) const override;
  bool differentiable() const override { return true; }
  Matrix gradient(MatrixView x) const override;

  void save(Archive& archive) const override;
  void load(const Archive& archive) override;

  /// The course of the training, an entry an epoch.
  const std::vector<Epoch>& history() const;
  /// For each layer the weights W[output][input], then the biases, one after the other.
  std::vector<float> parameters() const;

 private:
  struct State;
  template <class Train>
  static void learn(const std::vector<Member>& members, const Train& train);

  Config config_;
  std::unique_ptr<State> state_;
};

}  // namespace neyman
