#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "neyman/core/archive.hpp"
#include "neyman/core/matrix.hpp"
#include "neyman/core/progress.hpp"
#include "neyman/core/random.hpp"
#include "ratios/dense_layers.hpp"
#include "ratios/feature_scale.hpp"
#include "ratios/patient_training.hpp"

namespace neyman::across {

using separable::DenseLayers;

/// The density of one number u given others z, by a network from z to a mixture:
///
///   q(u|z) = Σ_c w_c(z) N(u; μ_c(z), σ_c(z)),
///
/// truncated to [0, 1] for a parameter with a range; over half a step to each side of a value that
/// comes in steps; with a probability of its own for each atom (Bishop, Mixture density networks,
/// 1994; Salimans et al., PixelCNN++, 2017, for the steps). The last layer sees z beside the hidden
/// units, so that what is linear in z needs none of them. Trained by maximum likelihood.
///
/// Where 0 and 1 are one (an angle φ = 2π u), the components are of von Mises,
///
///   exp(κ cos(φ − μ)) / I_0(κ),   κ (cos μ, sin μ) = e^s (a, b),
///
/// with a, b and s from the network: a mode that goes round with an angle among z is linear in its
/// cosine and sine, and κ may have any size. Of such an angle the network sees these two.
class MixtureFactor {
 public:
  /// What the mixture is of.
  enum class Support { line, unit, circle, steps, categories };
  struct Options : PatientTraining::Options {
    std::size_t components = 8;
    std::vector<std::size_t> hidden = {64, 64, 64};
  };
  /// Rows of z, `stride` floats apart, and the place of u in each; `held_out` rows choose when to
  /// stop.
  struct Rows {
    const float* z;
    std::size_t stride;
    const Place* places;
    std::span<const double> weights;  ///< one per row, or empty: all 1
    std::span<const std::uint32_t> train, held_out;
  };

  MixtureFactor() = default;
  /// `round`: of each column of z, whether it goes round.
  MixtureFactor(const std::vector<bool>& round, const FeatureScale& scale, const Rows& rows,
                const Options& options, Progress* progress);

  std::size_t inputs() const { return columns_of_z_; }
  /// A constant has no density.
  bool describes() const { return outputs() > 0; }
  /// The mean of log q over the held-out rows.
  double held_out() const { return held_out_; }

  /// Memory for one tile of rows.
  struct Work {
    DenseLayers::Workspace layers;
    mlp::Buffer seen;  // z with cosine and sine of what goes round
    mlp::Buffer last, outputs, slopes, above;
    std::vector<float> transposed;
  };
  Work work() const;

  /// Rows of one tile: z, of which there is one for all where `shared`, and the places of u.
  struct Tile {
    const float* z;
    std::size_t stride;
    bool shared;
    const Place* places;
    std::size_t rows;
  };
  /// out[r] += log q(u_r | z_r).
  void add(const Tile& tile, double* out, Work& work) const;
  /// Σ w_r log q(u_r | z_r). Adds w_r ∂/∂z_r to `dz`, whose rows are `dz_stride` apart (0: their
  /// sum); returns Σ w_r ∂/∂u_r in `du`. Rows that share z have one row of `dz`.
  double sum(const Tile& tile, const double* weights, double* dz, std::size_t dz_stride, double& du,
             Work& work) const;

  /// u drawn for each row of z, of a parameter with a range; `out` is `stride` doubles apart.
  void draw(const Tile& tile, RandomStream& random, double* out, std::size_t stride,
            Work& work) const;

  void save(Archive& archive) const;
  /// @throw FileError where its parts do not belong together.
  static MixtureFactor load(const Archive& archive, const std::vector<bool>& round,
                            const FeatureScale& scale);

 private:
  class Training;
  void shape(const std::vector<bool>& round, const FeatureScale& scale, std::size_t components);
  std::size_t outputs() const {
    return atoms_ + (support_ == Support::circle ? 4 : 3) * components_;
  }
  std::size_t columns() const { return separable::round_up(outputs(), 8); }
  std::size_t width() const { return layers_.outputs() + layers_.inputs(); }
  /// z as the network sees it.
  mlp::Dense seen(const Tile& tile, std::size_t rows, Work& work) const;
  /// From derivatives by what the network sees of a row to those by z.
  void add_slopes(const float* z, const float* by_seen, double* dz) const;
  /// `log_density` of an angle, where the softmax is done.
  double log_round(const float* outputs, const float* shares, float log_total, const Place& place,
                   double factor, float* slopes, double& du) const;
  /// Outputs of the network for rows of z.
  void forward(const Tile& tile, Work& work, bool derivatives) const;
  /// log q of one row, with `factor` times its derivatives by the outputs added to `slopes`, unless
  /// that is null, and by u in `du`.
  double log_density(const float* outputs, const Place& place, double factor, float* slopes,
                     double& du) const;

  Support support_ = Support::line;
  std::size_t columns_of_z_ = 0;
  std::vector<std::size_t> round_;  // columns of z that go round
  std::size_t atoms_ = 0, components_ = 0;
  double held_out_ = 0.0;
  DenseLayers layers_;
  std::vector<float> last_;  // (hidden units + inputs + 1) × columns: the layer to the mixture
};

/// The density of several numbers u given others v, one after the other:
///
///   q(u|v) = Π_j q_j(u_j | v, u_1 … u_{j−1}).
///
/// Each factor is a network of its own (Uria, Murray and Larochelle, RNADE, 2013). It takes any
/// dependence between the u_j, and values in steps, categories and atoms.
class ConditionalDensity {
 public:
  /// Rows of v or of u on their scales.
  struct Side {
    std::vector<float> z;  ///< rows × columns
    std::vector<Place> places;
    std::size_t rows = 0, columns = 0;
  };
  static Side side(const std::vector<FeatureScale>& scales, MatrixView of);
  /// Of both sides together: a side of one row serves all rows of the other.
  static std::size_t rows(const Side& v, const Side& u) { return v.rows == 1 ? u.rows : v.rows; }

  ConditionalDensity() = default;
  /// Trains on rows of both sides, of which `train` learn and `held_out` choose when to stop.
  ConditionalDensity(const Side& v, const Side& u, const std::vector<FeatureScale>& given,
                     const std::vector<FeatureScale>& target, std::span<const double> weights,
                     std::span<const std::uint32_t> train, std::span<const std::uint32_t> held_out,
                     const MixtureFactor::Options& options, Progress* progress);

  /// The mean of log q over the held-out rows.
  double held_out() const;

  /// log q(u_r | v_r) of all rows.
  void values(const Side& v, const Side& u, double* out) const;
  /// Σ w_r log q(u_r | v_r). Unless empty, `by_v` gets the derivatives by what all rows of v have
  /// in common (they are one row), and `by_u` the same for u; per unit of z and of `Place::at`.
  double sum(const Side& v, const Side& u, std::span<const double> weights, std::span<double> by_v,
             std::span<double> by_u) const;
  /// ∂/∂v_r of log q(u_r | v_r), per unit of z: one row for each row, of which v has as many as u.
  Matrix slopes(const Side& v, const Side& u) const;
  /// Rows of u given the one row of v, where all u are parameters with ranges: in [0, 1].
  Matrix draw(const Side& v, std::size_t count, RandomStream& random) const;

  void save(Archive& archive) const;
  /// @throw FileError where its parts do not belong together.
  static ConditionalDensity load(const Archive& archive, const std::vector<FeatureScale>& given,
                                 const std::vector<FeatureScale>& target);

 private:
  class Tiles;
  std::size_t given_ = 0;
  std::vector<MixtureFactor> factors_;
};

}  // namespace neyman::across
