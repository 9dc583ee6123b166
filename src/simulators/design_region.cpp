#include "neyman/simulators/design_region.hpp"

#include <Eigen/Cholesky>
#include <Eigen/Eigenvalues>
#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <numeric>
#include <utility>
#include <vector>

#include "neyman/core/check.hpp"
#include "neyman/core/error.hpp"
#include "neyman/core/parallel.hpp"
#include "neyman/core/random.hpp"

namespace neyman {

namespace {

constexpr std::size_t most_kept = 4096, most_looked_at = 16 * most_kept;
constexpr std::size_t leaf = 8, most_parameters = 1000;
constexpr std::size_t most_neighbours = 10;
constexpr double reach_of_distance = 1.5;
/// Of the range: a parameter that hardly moves counts as if it moved by so much.
constexpr double least_spread = 0.01;

/// Whether a normal is so wide that all corners of the ranges are within its middle.
bool is_wide(const Design& design) {
  constexpr double middle = 3.0;  // standard deviations
  const auto& config = design.config();
  if (config.kind != Design::Kind::normal || !config.correlation.empty()) return false;
  double square = 0.0;
  for (std::size_t p = 0; p < config.sigma.size(); ++p) {
    const auto& range = design.parameters()[p];
    double away = 0.0;
    for (const double end : {range.low, range.high}) {
      const double at = design.on_log_scale(p) ? std::log(end) : end;
      away = std::max(away, std::abs(at - config.mean[p]) / config.sigma[p]);
    }
    square += away * away;
  }
  return square <= middle * middle;
}

/// Some of many, at random.
void thin(std::vector<std::size_t>& rows, std::size_t most, RandomStream& random) {
  if (rows.size() <= most) return;
  for (std::size_t i = 0; i < most; ++i)
    std::swap(rows[i], rows[i + random.below(rows.size() - i)]);
  rows.resize(most);
}

/// Of those that are looked at.
std::vector<std::size_t> different_rows(MatrixView theta, RandomStream& random) {
  std::vector<std::size_t> order(theta.rows());
  std::iota(order.begin(), order.end(), std::size_t{0});
  thin(order, most_looked_at, random);
  const auto less = [&](std::size_t a, std::size_t b) {
    return std::lexicographical_compare(theta.row(a).begin(), theta.row(a).end(),
                                        theta.row(b).begin(), theta.row(b).end());
  };
  std::sort(order.begin(), order.end(), less);
  order.erase(std::unique(order.begin(), order.end(),
                          [&](std::size_t a, std::size_t b) { return !less(a, b) && !less(b, a); }),
              order.end());
  return order;
}

}  // namespace

/// Balls about θ of the design, in a tree of boxes (Bentley's k-d tree, with the balls' largest
/// radius in each box).
struct DesignRegion::Tree {
  Matrix theta;              // that the balls are about
  std::vector<bool> log;     // which coordinates are of log θ
  std::vector<double> mean;  // of the coordinates
  Matrix whitening;          // lower triangle: coordinates → those of covariance one
  std::vector<double> reach;

  struct Node {
    std::size_t begin, end;           // of `order`
    std::size_t left = 0, right = 0;  // 0: a leaf
    double square = 0.0;              // of the largest reach in it
  };
  Matrix places;  // of theta, in the order of the tree
  std::vector<double> squares;
  std::vector<Node> nodes;
  std::vector<double> boxes;  // low and high of each node

  std::size_t dimension() const { return theta.cols(); }

  /// NaN where θ has no logarithm.
  void to_place(std::span<const double> point, double* out) const {
    const std::size_t d = dimension();
    for (std::size_t p = d; p-- > 0;) {
      out[p] = 0.0;
      for (std::size_t q = 0; q <= p; ++q) {
        const double at = log[q] ? std::log(point[q]) : point[q];
        out[p] += whitening(p, q) * (at - mean[q]);
      }
    }
  }

  void whiten(const ParameterSpace& parameters) {
    const std::size_t d = dimension(), n = theta.rows();
    const auto at = [](std::size_t p) { return static_cast<Eigen::Index>(p); };
    Eigen::MatrixXd rows(at(n), at(d));
    for (std::size_t i = 0; i < n; ++i)
      for (std::size_t p = 0; p < d; ++p)
        rows(at(i), at(p)) = log[p] ? std::log(theta(i, p)) : theta(i, p);
    const Eigen::VectorXd centre = rows.colwise().mean();
    Eigen::VectorXd spread(at(d));
    for (std::size_t p = 0; p < d; ++p) {
      const auto& range = parameters[p];
      const double width =
          log[p] ? std::log(range.high) - std::log(range.low) : range.high - range.low;
      const double own = std::sqrt((rows.col(at(p)).array() - centre(at(p))).square().mean());
      spread(at(p)) = std::max(own, least_spread * width);
    }
    const Eigen::MatrixXd away =
        (rows.rowwise() - centre.transpose()) * spread.cwiseInverse().asDiagonal();
    Eigen::MatrixXd covariance = away.transpose() * away / static_cast<double>(n);
    // θ on a line or a plane of the ranges fill no space: their directions across get a little.
    covariance.diagonal().array() += least_spread * least_spread;
    const Eigen::MatrixXd factor = Eigen::LLT<Eigen::MatrixXd>(covariance).matrixL();
    const Eigen::MatrixXd inverse =
        factor.triangularView<Eigen::Lower>().solve(Eigen::MatrixXd::Identity(at(d), at(d))) *
        spread.cwiseInverse().asDiagonal();
    whitening = Matrix(d, d);
    mean.resize(d);
    for (std::size_t p = 0; p < d; ++p) {
      mean[p] = centre(at(p));
      for (std::size_t q = 0; q <= p; ++q) whitening(p, q) = inverse(at(p), at(q));
    }
  }

  static double square_distance(const double* a, const double* b, std::size_t d) {
    double out = 0.0;
    for (std::size_t p = 0; p < d; ++p) out += (a[p] - b[p]) * (a[p] - b[p]);
    return out;
  }

  void set_reach() {
    const std::size_t d = dimension(), n = theta.rows();
    const std::size_t others = std::clamp<std::size_t>(n / 10, 1, most_neighbours);
    Matrix at(n, d);
    for (std::size_t i = 0; i < n; ++i) to_place(theta.row(i), at.row(i).data());
    reach.assign(n, 0.0);
    parallel_blocks(n, 64, [&](Block block) {
      std::vector<double> squares_of(n);
      for (std::size_t i = block.begin; i < block.end; ++i) {
        for (std::size_t j = 0; j < n; ++j)
          squares_of[j] = square_distance(at.row(i).data(), at.row(j).data(), d);
        // Itself is the nearest.
        const auto nth = squares_of.begin() + static_cast<std::ptrdiff_t>(std::min(others, n - 1));
        std::nth_element(squares_of.begin(), nth, squares_of.end());
        reach[i] = reach_of_distance * std::sqrt(*nth);
      }
    });
  }

  /// The tree over what is known of the balls.
  void grow() {
    const std::size_t d = dimension(), n = theta.rows();
    Matrix at(n, d);
    for (std::size_t i = 0; i < n; ++i) to_place(theta.row(i), at.row(i).data());
    std::vector<std::size_t> order(n);
    std::iota(order.begin(), order.end(), std::size_t{0});
    nodes = {{0, n}};
    for (std::size_t k = 0; k < nodes.size(); ++k) {
      const std::size_t begin = nodes[k].begin, end = nodes[k].end;
      std::vector<double> low(d, std::numeric_limits<double>::infinity()), high(d);
      for (double& value : high) value = -low[0];
      for (std::size_t i = begin; i < end; ++i) {
        nodes[k].square = std::max(nodes[k].square, reach[order[i]] * reach[order[i]]);
        for (std::size_t p = 0; p < d; ++p) {
          low[p] = std::min(low[p], at(order[i], p));
          high[p] = std::max(high[p], at(order[i], p));
        }
      }
      boxes.insert(boxes.end(), low.begin(), low.end());
      boxes.insert(boxes.end(), high.begin(), high.end());
      if (end - begin <= leaf) continue;
      std::size_t widest = 0;
      for (std::size_t p = 1; p < d; ++p)
        if (high[p] - low[p] > high[widest] - low[widest]) widest = p;
      const std::size_t middle = begin + (end - begin) / 2;
      const auto iterator = [&](std::size_t i) {
        return order.begin() + static_cast<std::ptrdiff_t>(i);
      };
      std::nth_element(iterator(begin), iterator(middle), iterator(end),
                       [&](std::size_t a, std::size_t b) { return at(a, widest) < at(b, widest); });
      nodes[k].left = nodes.size();
      nodes.push_back({begin, middle});
      nodes[k].right = nodes.size();
      nodes.push_back({middle, end});
    }
    places = Matrix(n, d);
    squares.resize(n);
    for (std::size_t i = 0; i < n; ++i) {
      std::copy_n(at.row(order[i]).data(), d, places.row(i).data());
      squares[i] = reach[order[i]] * reach[order[i]];
    }
  }

  /// The square of the distance to a node's box.
  double to_box(std::size_t node, const double* place) const {
    const std::size_t d = dimension();
    const double* low = boxes.data() + 2 * d * node;
    const double* high = low + d;
    double out = 0.0;
    for (std::size_t p = 0; p < d; ++p) {
      const double beside = std::max({0.0, low[p] - place[p], place[p] - high[p]});
      out += beside * beside;
    }
    return out;
  }

  bool covers(std::size_t node, const double* place) const {
    const Node& here = nodes[node];
    if (here.left == 0) {
      for (std::size_t i = here.begin; i < here.end; ++i)
        if (square_distance(places.row(i).data(), place, dimension()) <= squares[i]) return true;
      return false;
    }
    // First where a ball is more likely.
    std::array<std::pair<double, std::size_t>, 2> sides = {
        std::pair{to_box(here.left, place), here.left}, {to_box(here.right, place), here.right}};
    if (sides[1].first < sides[0].first) std::swap(sides[0], sides[1]);
    for (const auto& [square, side] : sides)
      if (square <= nodes[side].square && covers(side, place)) return true;
    return false;
  }
};

DesignRegion::DesignRegion(const Design& design, MatrixView theta) {
  const std::size_t d = design.parameters().size();
  check_same_size("DesignRegion", "a row of theta", theta.cols(), d, "one for each parameter");
  if (design.fills_ranges() || is_wide(design) || theta.rows() == 0) return;
  RandomStream random(0, "design region");
  auto rows = different_rows(theta, random);
  thin(rows, most_kept, random);
  auto made = std::make_shared<Tree>();
  made->theta = Matrix(rows.size(), d);
  for (std::size_t i = 0; i < rows.size(); ++i)
    std::copy_n(theta.row(rows[i]).data(), d, made->theta.row(i).data());
  for (std::size_t p = 0; p < d; ++p) made->log.push_back(design.on_log_scale(p));
  made->whiten(design.parameters());
  made->set_reach();
  made->grow();
  tree_ = std::move(made);
}

bool DesignRegion::holds(std::span<const double> point) const {
  if (tree_ == nullptr) return true;
  constexpr std::size_t few = 16;
  if (point.size() <= few) {
    std::array<double, few> place;
    tree_->to_place(point, place.data());
    return tree_->covers(0, place.data());
  }
  std::vector<double> place(point.size());
  tree_->to_place(point, place.data());
  return tree_->covers(0, place.data());
}

std::span<const double> DesignRegion::nearest(std::span<const double> point) const {
  if (tree_ == nullptr) return {};
  const std::size_t d = point.size();
  std::vector<double> place(d), other(d);
  tree_->to_place(point, place.data());
  std::size_t best = 0;
  double least = std::numeric_limits<double>::infinity();
  for (std::size_t i = 0; i < tree_->theta.rows(); ++i) {
    tree_->to_place(tree_->theta.row(i), other.data());
    const double square = Tree::square_distance(place.data(), other.data(), d);
    if (!(square < least)) continue;
    least = square;
    best = i;
  }
  return tree_->theta.row(best);
}

MatrixView DesignRegion::known() const {
  return tree_ == nullptr ? MatrixView() : MatrixView(tree_->theta);
}

void DesignRegion::save(Archive& archive) const {
  if (tree_ == nullptr) return;
  archive.set("theta", tree_->theta);
  archive.set("log", std::vector<std::int64_t>(tree_->log.begin(), tree_->log.end()));
  archive.set("mean", tree_->mean);
  archive.set("whitening", tree_->whitening);
  archive.set("reach", tree_->reach);
}

DesignRegion DesignRegion::load(const Archive& archive, std::size_t parameters) {
  DesignRegion out;
  if (!archive.has("theta")) return out;
  auto made = std::make_shared<Tree>();
  made->theta = archive.get<Matrix>("theta");
  for (const auto log : archive.get<std::vector<std::int64_t>>("log"))
    made->log.push_back(log != 0);
  made->mean = archive.numbers("mean");
  made->whitening = archive.get<Matrix>("whitening");
  made->reach = archive.numbers("reach");
  const std::size_t d = parameters;
  if (made->theta.rows() == 0 || made->theta.cols() != d || d > most_parameters ||
      made->log.size() != d || made->mean.size() != d || made->whitening.rows() != d ||
      made->whitening.cols() != d || made->reach.size() != made->theta.rows())
    throw FileError("the region of the design has sizes that do not agree");
  made->grow();
  out.tree_ = std::move(made);
  return out;
}

}  // namespace neyman
