#pragma once

#include <cstddef>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "neyman/calibration/calibration_across.hpp"
#include "neyman/calibration/calibrator.hpp"
#include "neyman/core/matrix.hpp"
#include "neyman/core/settings.hpp"

namespace neyman {

/// Calibrated at a set of nodes θ_k, with the densities of the score interpolated between.
///
/// At each node a calibrator (any kind, default "smooth") gives log r_k, and a kernel estimate the
/// density m_k of the scores of both sides together. The densities of the two sides are then
///
///   p(z|θ_k) = 2 m_k / (1 + 1/r_k),   p(z|θ1; θ_k) = 2 m_k / (1 + r_k),
///
/// so that their ratio has the calibrator's noise and not that of two kernel estimates. What m_k
/// has wrong cancels at the nodes, so that it is smoothed more than a density by itself would be.
/// Both are interpolated to θ, and the calibrated log-ratio is that of the two:
///
/// - `vertical`: p(z|θ) = Σ w_k p(z|θ_k), both sides as above. What moves with θ is mixed,
///   not moved, so a score whose calibration changes with θ needs dense nodes; but a ratio that
///   all nodes have in common, such as that of a classifier that is right, is kept exactly, and
///   the noise is the least.
/// - `horizontal`: the quantile functions of the normalised densities are added,
///   z(u|θ) = Σ w_k z(u|θ_k), p = 1/(dz/du): integral morphing, Read, Linear interpolation of
///   histograms (NIM A 425, 1999, 357); in several dimensions with the weights of all nodes
///   around. Exact where a fixed shape is moved and scaled as the weights reproduce. A peak that
///   grows in one place (a mixture's fraction) is moved, wrongly, from where the quantiles were.
/// - `moment`: normalised densities moved and scaled to a common location μ = Σ w_k μ_k and width
///   σ = Σ w_k σ_k, then added, p(z|θ) = Σ w_k p(μ_k + σ_k (z − μ)/σ |θ_k) σ_k/σ: Baak, Gadatsch,
///   Harrington, Verkerke, Interpolation between multi-dimensional histograms using a new
///   non-linear moment morphing method (NIM A 771, 2015, 39). Exact for the same; a change of
///   shape is mixed. Location and width are mean and standard deviation of the side's scores, so
///   a few far scores matter.
///
/// Weights w_k: with `linear`, multilinear in the cell of the grid; with `cubic`, piecewise cubic
/// in each parameter, continuous with the derivative and exact for what is quadratic in θ, as the
/// mean logit is close to the reference: linear weights bias horizontal and moment morphing there.
/// For a node spacing h the error is of order h² and h³. Cubic weights may be negative: a density,
/// a width or the rise of a quantile function is kept above a tenth of the linear one (vertical:
/// above half). Nodes that are no rectangular grid are interpolated by radial basis functions |θ −
/// θ_k|³ with a linear polynomial, whatever the order. Outside of the box that holds the nodes, θ
/// counts as the nearest point of the box.
///
/// At a node the log-ratio is that of the node's calibrator, for every method: what the
/// interpolated densities have differently there (rounding of tables, normalisation, log-ratios
/// beyond ±25, which the densities do not follow) is tabulated at the nodes, interpolated and
/// added. It is of the order 10⁻³ where the score is continuous, and matters where scores are few
/// and discrete.
///
/// The calibrated range at θ is interpolated like everything else. Outside of it log r goes on from
/// its end as the nodes' calibrators do from theirs (straight or held, boundedly).
///
/// Known weaknesses: the nodes' fluctuations are not pooled, so that the noise at θ is about that
/// of one node. 4^d nodes count at each θ in d dimensions (cubic). Between nodes log r need not
/// fall with z, though the nodes' calibrators do. Errors are not told.
class InterpolatedCalibration : public CalibrationAcross {
 public:
  enum class Morphing { vertical, horizontal, moment };
  enum class Order { linear, cubic };

  struct Config {
    Morphing morphing = Morphing::horizontal;  ///< "vertical", "horizontal", "moment"
    Order order = Order::cubic;                ///< "linear", "cubic": of the weights in θ
    double smoothing = 2.0;                    ///< bandwidth of m_k, in units of Silverman's rule
    static Config from(Settings& settings);
  };

  /// @throw ArgumentError unless smoothing is between 0.01 and 100.
  explicit InterpolatedCalibration(Config config);
  /// With calibrators like this one at the nodes.
  InterpolatedCalibration(Config config, const Calibrator& calibrator);
  InterpolatedCalibration() : InterpolatedCalibration(Config{}) {}
  ~InterpolatedCalibration() override;
  InterpolatedCalibration(InterpolatedCalibration&&) noexcept;
  InterpolatedCalibration& operator=(InterpolatedCalibration&&) noexcept;

  /// `nodes`: one row a node, one column a parameter. `scores`: one a node, the logits of events of
  /// p(x|θ_k) and of the denominator, both scored at θ_k. Nodes are fitted in parallel.
  /// @throw ArgumentError on sizes that disagree, nodes that are not finite or not distinct, and,
  /// with the node's number, on scores that `Calibrator::fit` refuses, such as a side without
  /// events.
  void fit(MatrixView nodes, std::span<const CalibrationSet> scores);

  /// A node's scores, owned.
  struct Scores {
    std::vector<double> numerator, denominator;
    std::vector<double> numerator_weights, denominator_weights;  ///< empty: all 1
  };
  /// The same, with each node's scores asked for in turn and forgotten after use.
  void fit(MatrixView nodes, const std::function<Scores(std::size_t node)>& scores);
  bool fitted() const { return state_ != nullptr; }

  std::string kind() const override { return "interpolate"; }
  LogRatios log_ratios(const Logits& logits, std::span<const double> point) const override;
  /// With cubic weights. Exact, but for points of θ and z, of measure zero, at which pieces meet.
  bool differentiable() const override { return config_.order == Order::cubic; }
  /// For linear weights too: the derivatives then jump at the nodes' values of θ.
  Derivatives derivatives(const Logits& logits, std::span<const double> point) const override;
  std::size_t count_outside(const Logits& logits, std::span<const double> point) const override;
  /// Keeps the configuration and what the nodes are made from.
  void save(Archive& archive) const override;
  /// @throw FileError where entries are absent or do not belong together.
  void load(const Archive& archive) override;

  /// Where the calibration at θ is from: [low, high] of the logits.
  struct Range {
    double low, high;
  };
  Range range(std::span<const double> point) const;
  /// log p(z|θ) (numerator) or log p(z|θ1; θ) (denominator), normalised over z.
  std::vector<double> log_densities(const Logits& logits, std::span<const double> point,
                                    bool numerator) const;

  const Config& config() const { return config_; }
  /// One row a node.
  const Matrix& nodes() const;
  const Calibrator& calibrator(std::size_t node) const;

 private:
  struct Node;
  struct State;

  Node fit_node(std::size_t index, const CalibrationSet& data) const;
  void prepare(MatrixView places, std::vector<Node> fitted);
  const State& state(const char* function) const;

  Config config_;
  std::unique_ptr<Calibrator> prototype_;
  std::unique_ptr<const State> state_;
};

}  // namespace neyman
