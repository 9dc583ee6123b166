#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "neyman/core/archive.hpp"
#include "neyman/core/matrix.hpp"
#include "neyman/core/progress.hpp"
#include "ratios/dense_layers.hpp"
#include "ratios/patient_training.hpp"

namespace neyman::across {

using separable::DenseLayers;

/// A network whose last layer, a linear one, sees the inputs beside the hidden units, so that what
/// is linear needs none of them.
class Tower {
 public:
  Tower() = default;
  /// `outputs`: a multiple of 16.
  Tower(std::size_t inputs, std::vector<std::size_t> hidden, std::size_t outputs);
  void initialise(std::uint64_t seed, const std::string& name);

  std::size_t inputs() const { return layers_.inputs(); }
  std::size_t outputs() const { return outputs_; }
  /// Between the rows of inputs.
  std::size_t stride() const { return separable::round_up(inputs(), 8); }

  /// Memory for one tile of rows: `inputs` are written by the user, `slopes` are a loss's
  /// derivatives by the outputs.
  struct Work {
    DenseLayers::Workspace layers;
    mlp::Buffer inputs, last, outputs, slopes, above;
    std::vector<float> transposed;
  };
  Work work() const;

  void forward(std::size_t rows, Work& work, bool derivatives) const;
  /// Adds the gradient of a loss.
  void backward(std::size_t rows, Work& work, float* of_layers, float* of_last) const;
  /// The derivatives of a loss by the inputs are added to `out`, rows of `inputs()` numbers.
  void backward_to_inputs(std::size_t rows, Work& work, double* out) const;

  DenseLayers& layers() { return layers_; }
  std::vector<float>& last() { return last_; }

  void save(Archive& archive) const;
  /// @throw FileError where its parts do not belong together.
  static Tower load(const Archive& archive);

 private:
  std::size_t width() const { return layers_.outputs() + inputs(); }
  /// From `work.slopes` to `work.above`: by what the last layer sees.
  void to_last(std::size_t rows, Work& work) const;

  std::size_t outputs_ = 0;
  DenseLayers layers_;
  std::vector<float> last_;  // (hidden units + inputs + 1) × outputs
};

/// log p(x|θ), up to a function of x alone, by a network of both:
///
///   h(x, θ) = v · L(σ(a(x) + b(θ))) + c(x) · d(θ)
///
/// a and c are outputs of one network of x, b and d of one of θ, so that either is computed once
/// for each event or θ; L are hidden layers, for each pair. The product is exact, without the other
/// part, for a family of exponential form.
///
/// It learns to tell an event's own θ from those of other events, drawn anew for every batch: the
/// loss is −h(x_i, θ_i) + log Σ_j exp h(x_i, θ_j) over `contrasts` θ_j, with its own among them
/// (van den Oord et al. 2018; Durkan et al. 2020; Miller et al., NRE-C, 2022).
class PairNetwork {
 public:
  struct Options : PatientTraining::Options {
    std::vector<std::size_t> hidden = {64}, pair = {64};
    std::size_t width = 64, products = 32, contrasts = 32;  ///< the last: at most a tile
    double decay = 0.0;  ///< of the weights of the network of x, times the rate
  };
  /// Inputs and θ as the networks take them, by rows.
  struct Side {
    std::vector<float> z;
    std::size_t rows = 0, columns = 0;
  };
  /// What the networks make of events or of θ.
  struct Embedded {
    std::vector<float> values;
    std::size_t rows = 0;
  };

  PairNetwork() = default;
  /// Trains on rows of both sides, of which `train` learn and `held_out` choose when to stop.
  PairNetwork(const Side& x, const Side& theta, std::span<const double> weights,
              std::span<const std::uint32_t> train, std::span<const std::uint32_t> held_out,
              const Options& options, Progress* progress);

  Embedded events(const Side& x) const { return embed(x_, x); }
  Embedded points(const Side& theta) const { return embed(theta_, theta); }

  /// h of all rows; one row of a side serves all of the other.
  std::vector<double> values(const Embedded& x, const Embedded& theta) const;
  /// Σ w_r h(x_r, θ) of one θ, with its derivatives by what the network sees of θ.
  double sum(const Embedded& x, const Side& theta, std::span<const double> weights,
             std::span<double> gradient) const;
  /// ∂h(x_r, θ_r)/∂θ_r by what the network sees of θ; one row of θ serves all.
  Matrix slopes(const Embedded& x, const Side& theta) const;

  /// What held-out events told of their own θ, in nats.
  double held_out() const { return held_out_; }
  std::size_t inputs() const { return x_.inputs(); }
  std::size_t parameters() const { return theta_.inputs(); }

  void save(Archive& archive) const;
  /// @throw FileError where its parts do not belong together.
  static PairNetwork load(const Archive& archive, std::size_t inputs, std::size_t parameters);

 private:
  class Training;
  /// Memory for one tile of pairs.
  struct Work {
    mlp::Buffer s, slopes;  // σ(a + b), and its derivative
    DenseLayers::Workspace layers;
    mlp::Buffer outputs, above;
  };
  Work work() const;
  std::size_t width() const { return pair_.inputs(); }
  std::size_t products() const { return x_.outputs() - width(); }
  /// h of pairs: `a` and `b` give the embedded x and θ of a row.
  template <class A, class B>
  void forward(std::size_t rows, A&& a, B&& b, float* h, Work& work, bool derivatives) const;
  /// ∂h/∂(a + b) times a factor of each row, from the last forward pass.
  mlp::Dense backward(std::size_t rows, const float* factors, Work& work, float* of_layers,
                      float* of_last) const;
  static Embedded embed(const Tower& tower, const Side& side);

  double held_out_ = 0.0;
  Tower x_, theta_;
  DenseLayers pair_;
  std::vector<float> last_;  // v: one per hidden unit of the last layer, × 8 of which one is used
};

}  // namespace neyman::across
