#include "neyman/calibration/interpolated.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numbers>
#include <string>
#include <utility>

#include "calibration/line.hpp"
#include "calibration/morphing.hpp"
#include "calibration/node_weights.hpp"
#include "calibration/scores.hpp"
#include "neyman/calibration/smooth.hpp"
#include "neyman/core/check.hpp"
#include "neyman/core/error.hpp"
#include "neyman/core/parallel.hpp"

namespace neyman {

using namespace calibration;

namespace {

constexpr std::size_t density_points = 1024;
constexpr std::size_t common_points = 512;
constexpr double smoothing_reach = 5.0;      // in bandwidths
constexpr double smallest_bandwidth = 0.03;  // in t
constexpr double smallest_steps = 3.0;       // of a bandwidth, in steps of the grid
constexpr double grid_margin = 0.3;          // in t
constexpr double largest_log_ratio = 25.0;   // that densities follow
constexpr double narrowest_side = 0.05;      // of a side, in units of both together
constexpr double smallest_scale = 1e-3;      // of the narrowest node, in units of the widest

const std::vector<std::string> morphing_names = {"vertical", "horizontal", "moment"};
const std::vector<std::string> order_names = {"linear", "cubic"};

template <class Choice>
Choice choice_from(const std::string& name, const std::vector<std::string>& names,
                   const char* what) {
  const auto at = std::find(names.begin(), names.end(), name);
  if (at == names.end()) throw FileError(unknown_name(name, what, names));
  return static_cast<Choice>(at - names.begin());
}

// Each event shared between its two neighbours on the grid, each side to a total of one half.
std::vector<double> bin_balanced(const SortedScores& scores, const ScoreGrid& grid) {
  std::vector<double> shares(grid.size(), 0.0);
  for (const SortedSide* side : {&scores.numerator, &scores.denominator}) {
    for (std::size_t i = 0; i < side->size(); ++i) {
      const double at =
          std::clamp(grid.position(side->scores[i]), 0.0, static_cast<double>(grid.size() - 1));
      const auto left = std::min(static_cast<std::size_t>(at), grid.size() - 2);
      const double right_share = at - static_cast<double>(left);
      const double share = 0.5 * side->weight(i) / side->total;
      shares[left] += share * (1.0 - right_share);
      shares[left + 1] += share * right_share;
    }
  }
  return shares;
}

// The score that has a share of the balanced sample below it.
double quantile(const Cells& cells, double share) {
  double below = 0.0;
  for (std::size_t i = 0; i + 1 < cells.size(); ++i) {
    below += cells.share(i);
    if (below >= share) return cells.score[i];
  }
  return cells.score.back();
}

// Silverman's rule of binned shares, in steps of the grid.
double silverman_steps(const std::vector<double>& shares, double events) {
  double mean = 0.0, square = 0.0, below = 0.0, quarter = 0.0, three_quarters = 0.0;
  for (std::size_t i = 0; i < shares.size(); ++i) {
    const double at = static_cast<double>(i);
    mean += shares[i] * at;
    square += shares[i] * at * at;
    if (below < 0.25) quarter = at;
    if (below < 0.75) three_quarters = at;
    below += shares[i];
  }
  const double sd = std::sqrt(std::max(square - mean * mean, 0.0));
  const double iqr = (three_quarters - quarter) / 1.34;
  return 0.9 * (iqr > 0.0 ? std::min(sd, iqr) : sd) * std::pow(std::max(events, 1.0), -0.2);
}

// Σ_j shares_j K(i − j) with a normal kernel of unit sum.
std::vector<double> smooth_shares(const std::vector<double>& shares, double width) {
  const std::size_t n = shares.size();
  const auto reach = std::min(static_cast<std::size_t>(std::ceil(smoothing_reach * width)), n - 1);
  std::vector<double> kernel(reach + 1);
  double sum = 0.0;
  for (std::size_t k = 0; k <= reach; ++k) {
    const double x = static_cast<double>(k) / width;
    kernel[k] = std::exp(-0.5 * x * x);
    sum += (k == 0 ? 1.0 : 2.0) * kernel[k];
  }
  std::vector<double> padded(n + 2 * reach, 0.0), result(n, 0.0);
  std::copy(shares.begin(), shares.end(), padded.begin() + static_cast<std::ptrdiff_t>(reach));
  for (std::size_t k = 0; k <= reach; ++k) {
    const double w = kernel[k] / sum * (k == 0 ? 0.5 : 1.0);
    const double* left = padded.data() + (reach - k);
    const double* right = padded.data() + (reach + k);
    for (std::size_t i = 0; i < n; ++i) result[i] += w * (left[i] + right[i]);
  }
  return result;
}

Moments moments_of(const SortedSide& side, double scale) {
  double mean = 0.0, square = 0.0;
  const double origin = side.scores.front();
  for (std::size_t i = 0; i < side.size(); ++i) {
    mean += side.weight(i) / side.total * (side.scores[i] - origin);
  }
  for (std::size_t i = 0; i < side.size(); ++i) {
    const double d = side.scores[i] - origin - mean;
    square += side.weight(i) / side.total * d * d;
  }
  return {origin + mean, std::max(std::sqrt(square), narrowest_side * scale)};
}

// log of 2 r / (1 + r).
double log_twice_share(double log_ratio) {
  return std::numbers::ln2 + std::min(log_ratio, 0.0) - std::log1p(std::exp(-std::abs(log_ratio)));
}

}  // namespace

// What a fit leaves of a node, and a file keeps.
struct InterpolatedCalibration::Node {
  ScoreGrid grid;
  std::vector<double> log_density;  // of both sides together, in z
  Moments numerator, denominator;
  std::unique_ptr<Calibrator> calibrator;

  // One side's density.
  ScoreDensity density(bool of_numerator) const {
    Logits z(density_points);
    for (std::size_t i = 0; i < density_points; ++i) z[i] = clamp_logit(grid.logit(i));
    const LogRatios log_r = calibrator->log_ratios(z);
    std::vector<double> values = log_density;
    for (std::size_t i = 0; i < density_points; ++i) {
      const double r = std::clamp(log_r[i], -largest_log_ratio, largest_log_ratio);
      values[i] += log_twice_share(of_numerator ? r : -r);
    }
    return {grid, std::move(values)};
  }

  // A grid for all nodes: about the narrowest one, whose features are the finest.
  static ScoreGrid common_grid(const std::vector<Node>& nodes, const Matrix& ranges) {
    const auto narrower = [](const Node& a, const Node& b) {
      return a.grid.scale() < b.grid.scale();
    };
    const auto [narrow, wide] = std::minmax_element(nodes.begin(), nodes.end(), narrower);
    const double scale = std::max(narrow->grid.scale(), smallest_scale * wide->grid.scale());
    double low = ranges(0, 0), high = ranges(0, 1);
    for (std::size_t k = 1; k < nodes.size(); ++k) {
      low = std::min(low, ranges(k, 0));
      high = std::max(high, ranges(k, 1));
    }
    return ScoreGrid::over(low, high, narrow->grid.centre(), scale, 0.1, common_points);
  }
};

struct InterpolatedCalibration::State {
  Matrix places;
  std::vector<Node> nodes;
  // Made by prepare().
  NodeLayout layout;
  std::unique_ptr<Morph> morph;
  Matrix ranges;  // low, high of each node

  struct Morphed;
  Morphed at(std::span<const double> point, bool with_slopes) const;
  // How log r goes on `distance` beyond an end of the range.
  double extend(const NodeWeights& weights, std::size_t end, double distance,
                std::span<double> by_point) const;
};

// Everything at one θ.
struct InterpolatedCalibration::State::Morphed {
  NodeWeights weights;
  std::unique_ptr<MorphedRatio> ratio;
  std::vector<double> range;
  std::vector<std::vector<double>> range_slopes;  // for each parameter
};

InterpolatedCalibration::State::Morphed InterpolatedCalibration::State::at(
    std::span<const double> point, bool with_slopes) const {
  Morphed result;
  result.weights = layout.at(point, with_slopes);
  const NodeWeights& weights = result.weights;
  result.ratio = morph->at(weights);
  result.range = weighted_sum(ranges, weights.nodes, weights.smooth);
  const bool turned = result.range[0] > result.range[1];
  if (turned) result.range = weighted_sum(ranges, weights.nodes, weights.positive);
  for (std::size_t p = 0; p < weights.smooth_slopes.cols(); ++p) {
    const Matrix& slopes = turned ? weights.positive_slopes : weights.smooth_slopes;
    result.range_slopes.push_back(weighted_sum(ranges, weights.nodes, slopes.column(p)));
  }
  return result;
}

double InterpolatedCalibration::State::extend(const NodeWeights& weights, std::size_t end,
                                              double distance, std::span<double> by_point) const {
  double sum = 0.0;
  for (std::size_t k = 0; k < weights.size(); ++k) {
    const double from = ranges(weights.nodes[k], end);
    const LogRatios values =
        nodes[weights.nodes[k]].calibrator->log_ratios(Logits{from, from + distance});
    const double change = values[1] - values[0];
    sum += weights.smooth[k] * change;
    for (std::size_t p = 0; p < by_point.size(); ++p) {
      by_point[p] += weights.smooth_slopes(k, p) * change;
    }
  }
  return sum;
}

InterpolatedCalibration::Config InterpolatedCalibration::Config::from(Settings& settings) {
  Config config;
  const auto choose = [&](const Key& key, std::size_t fallback,
                          const std::vector<std::string>& names) {
    const std::string name = settings.choice(key, names[fallback], names);
    return std::find(names.begin(), names.end(), name) - names.begin();
  };
  config.morphing = static_cast<Morphing>(
      choose({"morphing", "across = \"interpolate\": how one θ's densities become the next one's"},
             static_cast<std::size_t>(config.morphing), morphing_names));
  config.order =
      static_cast<Order>(choose({"order", "across = \"interpolate\": of the weights in θ"},
                                static_cast<std::size_t>(config.order), order_names));
  config.smoothing = settings.number(
      {"smoothing", "across = \"interpolate\": width of the kernels, in units of Silverman's rule"},
      config.smoothing, Limits::between(0.01, 100.0));
  return config;
}

InterpolatedCalibration::InterpolatedCalibration(Config config)
    : InterpolatedCalibration(config, SmoothCalibrator()) {}

InterpolatedCalibration::InterpolatedCalibration(Config config, const Calibrator& calibrator)
    : config_(config), prototype_(calibrator.fresh()) {
  check_in_range("InterpolatedCalibration", "smoothing", config_.smoothing, 0.01, 100.0);
}

InterpolatedCalibration::~InterpolatedCalibration() = default;
InterpolatedCalibration::InterpolatedCalibration(InterpolatedCalibration&&) noexcept = default;
InterpolatedCalibration& InterpolatedCalibration::operator=(InterpolatedCalibration&&) noexcept =
    default;

InterpolatedCalibration::Node InterpolatedCalibration::fit_node(std::size_t index,
                                                                const CalibrationSet& data) const {
  try {
    Node node;
    node.calibrator = prototype_->fresh();
    node.calibrator->fit(data);
    const SortedScores scores = sort_scores(data);
    const Cells cells = make_cells(scores);
    // Median and half of the central 68 %: far scores do not widen the grid's steps.
    const double centre = quantile(cells, 0.5);
    const double half_width = 0.5 * (quantile(cells, 0.84) - quantile(cells, 0.16));
    const double scale = half_width > 0.0 ? half_width : spread(cells).scale;
    node.grid = ScoreGrid::over(cells.low, cells.high, centre, scale, grid_margin, density_points);
    node.numerator = moments_of(scores.numerator, scale);
    node.denominator = moments_of(scores.denominator, scale);

    const std::vector<double> shares = bin_balanced(scores, node.grid);
    const double events = scores.numerator.total + scores.denominator.total;
    const double width = std::max({config_.smoothing * silverman_steps(shares, events),
                                   smallest_bandwidth / node.grid.step(), smallest_steps});
    node.log_density = smooth_shares(shares, std::min(width, static_cast<double>(density_points)));
    for (std::size_t i = 0; i < density_points; ++i) {
      // One event more, spread as a Cauchy distribution, which is 1/(π cosh t) in t.
      const double spread_event = 1.0 / (std::numbers::pi * std::cosh(node.grid.t(i)));
      const double in_t =
          (events * node.log_density[i] / node.grid.step() + spread_event) / (events + 1.0);
      node.log_density[i] = std::log(in_t) - std::log(node.grid.spread(i));
    }
    return node;
  } catch (const ArgumentError& error) {
    throw ArgumentError("InterpolatedCalibration::fit: node " + std::to_string(index) + ": " +
                        error.what());
  }
}

void InterpolatedCalibration::fit(MatrixView nodes, std::span<const CalibrationSet> scores) {
  check_same_size("InterpolatedCalibration::fit", "scores", scores.size(), nodes.rows(),
                  "one set for each node");
  NodeLayout(nodes, true);  // refuses nodes before work is spent on them
  std::vector<Node> fitted(nodes.rows());
  parallel_tasks(nodes.rows(), [&](std::size_t k) { fitted[k] = fit_node(k, scores[k]); });
  prepare(nodes, std::move(fitted));
}

void InterpolatedCalibration::fit(MatrixView nodes,
                                  const std::function<Scores(std::size_t node)>& scores) {
  if (!scores) fail_argument("InterpolatedCalibration::fit", "scores", "empty", "a function");
  NodeLayout(nodes, true);
  std::vector<Node> fitted;
  for (std::size_t k = 0; k < nodes.rows(); ++k) {
    const Scores own = scores(k);
    fitted.push_back(fit_node(
        k, {own.numerator, own.denominator, own.numerator_weights, own.denominator_weights}));
  }
  prepare(nodes, std::move(fitted));
}

void InterpolatedCalibration::prepare(MatrixView places, std::vector<Node> fitted) {
  auto state = std::make_unique<State>();
  const std::size_t count = fitted.size();
  state->layout = NodeLayout(places, config_.order == Order::cubic);
  state->places.append(places);
  state->nodes = std::move(fitted);
  state->ranges = Matrix(count, 2);
  for (std::size_t k = 0; k < count; ++k) {
    state->ranges(k, 0) = state->nodes[k].calibrator->low();
    state->ranges(k, 1) = state->nodes[k].calibrator->high();
  }

  MorphNodes known;
  known.grid = Node::common_grid(state->nodes, state->ranges);
  known.ranges = state->ranges;
  known.log_ratios = [&](std::size_t k, std::vector<double> logits) {
    for (double& z : logits) z = clamp_logit(z);
    return state->nodes[k].calibrator->log_ratios(Logits(std::move(logits))).release();
  };
  const ScoreDensity none(ScoreGrid(0.0, 1.0, 0.0, 1.0, 2), {0.0, 0.0});
  known.numerator.assign(count, none);
  known.denominator.assign(count, none);
  parallel_tasks(count, [&](std::size_t k) {
    const Node& node = state->nodes[k];
    known.numerator[k] = node.density(true);
    known.denominator[k] = node.density(false);
  });
  for (const Node& node : state->nodes) {
    known.numerator_moments.push_back(node.numerator);
    known.denominator_moments.push_back(node.denominator);
  }
  state->morph = config_.morphing == Morphing::vertical     ? make_vertical_morph(known)
                 : config_.morphing == Morphing::horizontal ? make_horizontal_morph(known)
                                                            : make_moment_morph(known);
  state_ = std::move(state);
}

const InterpolatedCalibration::State& InterpolatedCalibration::state(const char* function) const {
  if (state_ == nullptr) {
    fail_argument(function, "interpolated calibration", "not fitted", "fitted before it is used");
  }
  return *state_;
}

LogRatios InterpolatedCalibration::log_ratios(const Logits& logits,
                                              std::span<const double> point) const {
  const State& now = state("InterpolatedCalibration::log_ratios");
  check_finite("InterpolatedCalibration::log_ratios", "logits", logits.values());
  const auto at = now.at(point, false);
  LogRatios result(logits.size());
  parallel_blocks(logits.size(), default_block, [&](Block block) {
    for (std::size_t i = block.begin; i < block.end; ++i) {
      const double logit = clamp_logit(logits[i]);
      const double z = std::clamp(logit, at.range[0], at.range[1]);
      result[i] = at.ratio->log_ratio(z);
      if (z != logit) result[i] += now.extend(at.weights, z < logit ? 1 : 0, logit - z, {});
    }
  });
  return result;
}

CalibrationAcross::Derivatives InterpolatedCalibration::derivatives(
    const Logits& logits, std::span<const double> point) const {
  const State& now = state("InterpolatedCalibration::derivatives");
  check_finite("InterpolatedCalibration::derivatives", "logits", logits.values());
  const auto at = now.at(point, true);
  const std::size_t parameters = point.size();
  Derivatives result{LogRatios(logits.size()), std::vector<double>(logits.size()),
                     Matrix(logits.size(), parameters)};
  parallel_blocks(logits.size(), default_block, [&](Block block) {
    for (std::size_t i = block.begin; i < block.end; ++i) {
      const double logit = clamp_logit(logits[i]);
      const double z = std::clamp(logit, at.range[0], at.range[1]);
      const auto by_point = result.by_point.row(i);
      double slope = 0.0;
      result.value[i] = at.ratio->derivatives(z, slope, by_point);
      if (z != logit) {
        const std::size_t end = z < logit ? 1 : 0;
        const double distance = logit - z, step = 1e-6 * (1.0 + std::abs(distance));
        result.value[i] += now.extend(at.weights, end, distance, by_point);
        const double beyond = (now.extend(at.weights, end, distance + step, {}) -
                               now.extend(at.weights, end, distance - step, {})) /
                              (2.0 * step);
        for (std::size_t p = 0; p < parameters; ++p) {
          by_point[p] += (slope - beyond) * at.range_slopes[p][end];
        }
        slope = beyond;
      }
      result.by_logit[i] = logit == logits[i] ? slope : 0.0;
    }
  });
  return result;
}

std::size_t InterpolatedCalibration::count_outside(const Logits& logits,
                                                   std::span<const double> point) const {
  const Range inside = range(point);
  return static_cast<std::size_t>(std::count_if(logits.begin(), logits.end(), [&](double z) {
    return !(z >= inside.low && z <= inside.high);
  }));
}

InterpolatedCalibration::Range InterpolatedCalibration::range(std::span<const double> point) const {
  const State& now = state("InterpolatedCalibration::range");
  const NodeWeights weights = now.layout.at(point);
  auto ends = weighted_sum(now.ranges, weights.nodes, weights.smooth);
  if (ends[0] > ends[1]) ends = weighted_sum(now.ranges, weights.nodes, weights.positive);
  return {ends[0], ends[1]};
}

std::vector<double> InterpolatedCalibration::log_densities(const Logits& logits,
                                                           std::span<const double> point,
                                                           bool numerator) const {
  const State& now = state("InterpolatedCalibration::log_densities");
  check_finite("InterpolatedCalibration::log_densities", "logits", logits.values());
  const auto at = now.at(point, false);
  return at.ratio->log_densities(logits.values(), numerator);
}

const Matrix& InterpolatedCalibration::nodes() const {
  return state("InterpolatedCalibration::nodes").places;
}

const Calibrator& InterpolatedCalibration::calibrator(std::size_t node) const {
  const State& now = state("InterpolatedCalibration::calibrator");
  if (node >= now.nodes.size()) {
    fail_argument("InterpolatedCalibration::calibrator", "node", std::to_string(node),
                  "less than " + std::to_string(now.nodes.size()));
  }
  return *now.nodes[node].calibrator;
}

void InterpolatedCalibration::save(Archive& archive) const {
  archive.set("morphing", morphing_names[static_cast<std::size_t>(config_.morphing)]);
  archive.set("order", order_names[static_cast<std::size_t>(config_.order)]);
  archive.set("smoothing", config_.smoothing);
  save_calibrator(*prototype_, archive.child("calibrator"));
  archive.set("fitted", fitted());
  if (!fitted()) return;
  archive.set("nodes", state_->places);
  for (std::size_t k = 0; k < state_->nodes.size(); ++k) {
    const Node& node = state_->nodes[k];
    Archive& child = archive.child("node" + std::to_string(k));
    child.set("grid", std::vector<double>{node.grid.centre(), node.grid.scale(), node.grid.first(),
                                          node.grid.step()});
    child.set("log_density", node.log_density);
    child.set("moments", std::vector<double>{node.numerator.mean, node.numerator.width,
                                             node.denominator.mean, node.denominator.width});
    save_calibrator(*node.calibrator, child.child("calibrator"));
  }
}

void InterpolatedCalibration::load(const Archive& archive) {
  Config config;
  config.morphing = choice_from<Morphing>(archive.text("morphing"), morphing_names, "morphing");
  config.order = choice_from<Order>(archive.text("order"), order_names, "order of weights");
  config.smoothing = archive.number("smoothing");
  *this = InterpolatedCalibration(config, *load_calibrator(archive.child("calibrator")));
  if (!archive.flag("fitted")) return;
  const Matrix& places = archive.get<Matrix>("nodes");
  std::vector<Node> loaded;
  for (std::size_t k = 0; k < places.rows(); ++k) {
    const std::string name = "node" + std::to_string(k);
    const Archive& child = archive.child(name);
    const auto& grid = child.numbers("grid");
    const auto& moments = child.numbers("moments");
    Node node;
    node.log_density = child.numbers("log_density");
    node.calibrator = load_calibrator(child.child("calibrator"));
    if (grid.size() != 4 || moments.size() != 4 || node.log_density.size() != density_points ||
        !node.calibrator->fitted()) {
      throw FileError("interpolated calibration: " + name + " is not that of a fit");
    }
    node.grid = ScoreGrid(grid[0], grid[1], grid[2], grid[3], density_points);
    node.numerator = {moments[0], moments[1]};
    node.denominator = {moments[2], moments[3]};
    loaded.push_back(std::move(node));
  }
  prepare(places, std::move(loaded));
}

}  // namespace neyman
