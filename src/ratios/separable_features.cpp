#include "ratios/separable_features.hpp"

#include <Eigen/Cholesky>
#include <Eigen/Eigenvalues>
#include <algorithm>
#include <cmath>
#include <utility>

#include "neyman/core/error.hpp"
#include "neyman/core/parallel.hpp"
#include "neyman/core/random.hpp"

namespace neyman::separable {

namespace {

/// Quantiles are taken of at most this many events.
constexpr std::size_t quantile_events = 100000;
/// Of values about their median; beyond this or its inverse, squares leave the range of doubles.
constexpr double least_reach = 1e-100;

double quantile(const std::vector<double>& sorted, double p) {
  return sorted[static_cast<std::size_t>(p * static_cast<double>(sorted.size() - 1) + 0.5)];
}

}  // namespace

Whitening::Whitening(MatrixView x, std::span<const double> weights) {
  const std::size_t features = x.cols(), events = x.rows();
  const std::size_t step = std::max<std::size_t>(1, events / quantile_events);
  std::vector<double> units;  // of the sums: 1 unless squares would leave the range of doubles
  for (std::size_t f = 0; f < features; ++f) {
    std::vector<double> values;
    for (std::size_t i = 0; i < events; i += step) values.push_back(x(i, f));
    std::sort(values.begin(), values.end());
    const double width = quantile(values, 0.75) - quantile(values, 0.25);
    const bool heavy = quantile(values, 0.9999) - quantile(values, 0.0001) > 12.0 * width;
    median_.push_back(quantile(values, 0.5));
    width_.push_back(heavy && width > 0.0 ? width : 0.0);
    const double reach = std::max(values.back() - median_[f], median_[f] - values.front());
    const bool ordinary =
        width_[f] > 0.0 || !(reach > 0.0) || (reach > least_reach && reach < 1.0 / least_reach);
    units.push_back(ordinary ? 1.0 : std::min(reach, 1e300));
  }
  if (features > most_linear) {
    scale_each(x, weights, units);
    return;
  }
  struct Sums {
    double weight = 0.0;
    Eigen::VectorXd first;
    Eigen::MatrixXd second;
  };
  const auto n = static_cast<Eigen::Index>(features);
  const Sums none{0.0, Eigen::VectorXd::Zero(n), Eigen::MatrixXd::Zero(n, n)};
  const Sums sums = reduce_blocks(
      events, 8192, none,
      [&](Block block) {
        Sums part = none;
        Eigen::VectorXd row(n);
        for (std::size_t i = block.begin; i < block.end; ++i) {
          const double w = weights.empty() ? 1.0 : weights[i];
          // About the median, so that far-off features lose no digits.
          for (std::size_t f = 0; f < features; ++f)
            row[static_cast<Eigen::Index>(f)] =
                (compressed(f, x(i, f)) - compressed(f, median_[f])) / units[f];
          part.weight += w;
          part.first += w * row;
          part.second.selfadjointView<Eigen::Lower>().rankUpdate(row, w);
        }
        return part;
      },
      [](Sums a, const Sums& b) {
        a.weight += b.weight;
        a.first += b.first;
        a.second += b.second;
        return a;
      });
  const Eigen::VectorXd mean = sums.first / sums.weight;
  Eigen::MatrixXd covariance = Eigen::MatrixXd(sums.second.selfadjointView<Eigen::Lower>());
  covariance = covariance / sums.weight - mean * mean.transpose();
  for (std::size_t f = 0; f < features; ++f)
    mean_.push_back(mean[static_cast<Eigen::Index>(f)] * units[f] + compressed(f, median_[f]));
  // In units of each feature's own spread, so that a small feature is not taken for a constant.
  Eigen::VectorXd scale(n);
  for (Eigen::Index f = 0; f < n; ++f)
    scale[f] = covariance(f, f) > 0.0 ? 1.0 / std::sqrt(covariance(f, f)) : 0.0;
  const Eigen::SelfAdjointEigenSolver<Eigen::MatrixXd> solver(
      Eigen::MatrixXd(scale.asDiagonal() * covariance * scale.asDiagonal()));
  map_ = Matrix(features, features);
  for (Eigen::Index r = 0; r < n; ++r) {
    // A direction without spread carries nothing.
    const double variance = solver.eigenvalues()[r];
    const double factor = variance > 1e-9 ? 1.0 / std::sqrt(variance) : 0.0;
    for (Eigen::Index c = 0; c < n; ++c)
      map_(static_cast<std::size_t>(r), static_cast<std::size_t>(c)) =
          factor * solver.eigenvectors()(c, r) * scale[c] / units[static_cast<std::size_t>(c)];
  }
}

void Whitening::scale_each(MatrixView x, std::span<const double> weights,
                           const std::vector<double>& units) {
  const std::size_t features = x.cols();
  struct Sums {
    double weight = 0.0;
    std::vector<double> first, second;
  };
  const Sums none{0.0, std::vector<double>(features, 0.0), std::vector<double>(features, 0.0)};
  std::vector<double> middle(features);
  for (std::size_t f = 0; f < features; ++f) middle[f] = compressed(f, median_[f]);
  const Sums sums = reduce_blocks(
      x.rows(), 8192, none,
      [&](Block block) {
        Sums part = none;
        for (std::size_t i = block.begin; i < block.end; ++i) {
          const double w = weights.empty() ? 1.0 : weights[i];
          part.weight += w;
          for (std::size_t f = 0; f < features; ++f) {
            const double value = (compressed(f, x(i, f)) - middle[f]) / units[f];
            part.first[f] += w * value;
            part.second[f] += w * value * value;
          }
        }
        return part;
      },
      [](Sums a, const Sums& b) {
        a.weight += b.weight;
        for (std::size_t f = 0; f < a.first.size(); ++f) {
          a.first[f] += b.first[f];
          a.second[f] += b.second[f];
        }
        return a;
      });
  map_ = Matrix(1, features);
  for (std::size_t f = 0; f < features; ++f) {
    const double mean = sums.first[f] / sums.weight, square = sums.second[f] / sums.weight;
    const double variance = square - mean * mean;
    mean_.push_back(mean * units[f] + middle[f]);
    // A constant carries nothing; it may seem to vary by what rounding leaves.
    map_(0, f) = variance > 1e-14 * square ? 1.0 / std::sqrt(variance) / units[f] : 0.0;
  }
}

double Whitening::compressed(std::size_t feature, double value) const {
  const double width = width_[feature];
  return width > 0.0 ? std::asinh((value - median_[feature]) / width) : value;
}

void Whitening::apply(MatrixView x, float* out) const {
  const std::size_t count = features(), stride = round_up(count, 8);
  parallel_blocks(x.rows(), 8192, [&](Block block) {
    std::vector<double> row(count);
    for (std::size_t i = block.begin; i < block.end; ++i) {
      for (std::size_t f = 0; f < count; ++f) row[f] = compressed(f, x(i, f)) - mean_[f];
      float* to = out + i * stride;
      for (std::size_t r = 0; r < count; ++r) {
        double sum = 0.0;
        if (map_.rows() < count)
          sum = map_(0, r) * row[r];
        else
          for (std::size_t f = 0; f < count; ++f) sum += map_(r, f) * row[f];
        to[r] = static_cast<float>(std::clamp(sum, -1e6, 1e6));
      }
      std::fill(to + count, to + stride, 0.0f);
    }
  });
}

void Whitening::save(Archive& archive) const {
  archive.set("median", median_);
  archive.set("width", width_);
  archive.set("mean", mean_);
  archive.set("map", map_);
}

void Whitening::load(const Archive& archive) {
  median_ = archive.numbers("median");
  width_ = archive.numbers("width");
  mean_ = archive.numbers("mean");
  map_ = archive.get<Matrix>("map");
  const std::size_t n = median_.size();
  if (width_.size() != n || mean_.size() != n || (map_.rows() != n && map_.rows() != 1) ||
      map_.cols() != n)
    throw FileError("the whitening of the features has sizes that do not agree");
}

Features::Features(std::size_t inputs, std::vector<std::size_t> hidden, std::uint64_t seed,
                   Matrix directions) {
  layers_ = DenseLayers(inputs, std::move(hidden));
  inputs_ = inputs;
  set_directions(std::move(directions));
  layers_.initialise(seed, "separable weights");
}

void Features::set_directions(Matrix directions) {
  directions_ = std::move(directions);
  if (directions_.empty()) return;
  const std::size_t width = round_up(linear(), 8);
  along_.assign(inputs_ * width, 0.0f);
  for (std::size_t f = 0; f < inputs_; ++f)
    for (std::size_t k = 0; k < linear(); ++k)
      along_[f * width + k] = static_cast<float>(directions_(f, k));
}

Features::Workspace Features::workspace() const {
  Workspace work{layers_.workspace(), {}, {}};
  if (!mix_.empty()) work.mixed = mlp::Buffer(tile * hidden());
  if (!directions_.empty()) work.along = mlp::Buffer(tile * round_up(linear(), 8));
  return work;
}

void Features::forward(const float* x, std::size_t rows, float* phi, Workspace& work,
                       bool derivatives) const {
  const auto& kernels = mlp::kernels();
  const mlp::Dense input = layers_.forward({x, input_stride()}, rows, work, derivatives);
  const std::size_t width = stride(), last = hidden(), straight = linear();
  mlp::Dense line{x, input_stride()};
  if (!directions_.empty()) {
    const std::size_t columns = round_up(straight, 8);
    kernels.multiply(line, inputs_, {along_.data(), columns}, nullptr, {work.along.data(), columns},
                     rows, columns);
    line = {work.along.data(), columns};
  }
  for (std::size_t r = 0; r < rows; ++r) {
    float* to = phi + r * width;
    if (last > 0) std::copy_n(input.data + r * last, last, to);
    std::copy_n(line.data + r * line.stride, straight, to + last);
    to[last + straight] = 1.0f;
    std::fill(to + size(), to + width, 0.0f);
  }
  if (mix_.empty()) return;
  kernels.multiply({phi, width}, size(), {mix_.data(), last}, nullptr, {work.mixed.data(), last},
                   rows, last);
  for (std::size_t r = 0; r < rows; ++r)
    std::copy_n(work.mixed.data() + r * last, last, phi + r * width);
}

void Features::condition(const float* x, std::span<const double> weights,
                         std::vector<float>& coefficients, std::size_t term_stride) {
  const auto all = static_cast<Eigen::Index>(size()),
             nonlinear = static_cast<Eigen::Index>(hidden());
  const Eigen::Index linear = all - nonlinear;
  if (nonlinear == 0) return;
  auto work = workspace();
  mlp::Buffer phi(tile * stride());
  std::vector<float> rows(tile * input_stride(), 0.0f);
  Eigen::MatrixXd moments = Eigen::MatrixXd::Zero(all, all);
  Eigen::VectorXd row(all);
  double total = 0.0;
  for (std::size_t begin = 0; begin < weights.size(); begin += tile) {
    const std::size_t count = std::min(tile, weights.size() - begin);
    std::copy_n(x + begin * input_stride(), count * input_stride(), rows.data());
    forward(rows.data(), round_up(count, 8), phi.data(), work, false);
    for (std::size_t r = 0; r < count; ++r) {
      for (Eigen::Index j = 0; j < all; ++j)
        row[j] = static_cast<double>(phi[r * stride() + static_cast<std::size_t>(j)]);
      moments.selfadjointView<Eigen::Lower>().rankUpdate(row, weights[begin + r]);
      total += weights[begin + r];
    }
  }
  moments = Eigen::MatrixXd(moments.selfadjointView<Eigen::Lower>()) / total;
  const Eigen::MatrixXd between = moments.topRightCorner(nonlinear, linear);
  Eigen::MatrixXd within = moments.bottomRightCorner(linear, linear);
  within.diagonal().array() += 1e-9;
  const Eigen::MatrixXd known = within.ldlt().solve(between.transpose()).transpose();
  const Eigen::SelfAdjointEigenSolver<Eigen::MatrixXd> solver(
      Eigen::MatrixXd(moments.topLeftCorner(nonlinear, nonlinear) - known * between.transpose()));
  const double largest = std::max(solver.eigenvalues().maxCoeff(), 1e-30);

  const auto terms = static_cast<Eigen::Index>(term_stride);
  Eigen::MatrixXd old(all, terms), made(all, terms);
  for (Eigen::Index j = 0; j < all; ++j)
    for (Eigen::Index k = 0; k < terms; ++k)
      old(j, k) = static_cast<double>(coefficients[static_cast<std::size_t>(j * terms + k)]);
  // φ A = (hidden − known · linear) A_hidden + linear (A_linear + knownᵀ A_hidden).
  made.bottomRows(linear) = old.bottomRows(linear) + known.transpose() * old.topRows(nonlinear);
  mix_.assign(size() * hidden(), 0.0f);
  for (Eigen::Index i = 0; i < nonlinear; ++i) {
    const double variance = solver.eigenvalues()[i];
    // What single precision cannot tell from nothing.
    const bool kept = variance > 1e-7 * largest;
    const Eigen::VectorXd direction = solver.eigenvectors().col(i);
    const double factor = kept ? 1.0 / std::sqrt(variance) : 0.0;
    made.row(i) =
        (kept ? std::sqrt(variance) : 0.0) * (direction.transpose() * old.topRows(nonlinear));
    Eigen::VectorXd from(all);
    from.head(nonlinear) = factor * direction;
    from.tail(linear) = -factor * (known.transpose() * direction);
    for (Eigen::Index j = 0; j < all; ++j)
      mix_[static_cast<std::size_t>(j * nonlinear + i)] = static_cast<float>(from[j]);
  }
  for (Eigen::Index j = 0; j < all; ++j)
    for (Eigen::Index k = 0; k < terms; ++k)
      coefficients[static_cast<std::size_t>(j * terms + k)] = static_cast<float>(made(j, k));
}

void Features::backward(const float* x, std::size_t rows, Workspace& work, float* gradient) const {
  layers_.backward({x, input_stride()}, rows, work, gradient);
}

void Features::save(Archive& archive) const {
  layers_.save(archive);
  archive.set("mix", mix_);
  if (!directions_.empty()) archive.set("directions", directions_);
}

void Features::load(const Archive& archive) {
  layers_ = DenseLayers::load(archive);
  inputs_ = layers_.inputs();
  Matrix directions;  // older ones have none
  if (archive.has("directions")) directions = archive.get<Matrix>("directions");
  if (!directions.empty() && (directions.rows() != inputs_ || directions.cols() > most_linear))
    throw FileError("the directions of the separable network do not fit its inputs");
  set_directions(std::move(directions));
  mix_ = archive.get<std::vector<float>>("mix");
  if (!mix_.empty() && mix_.size() != size() * this->hidden())
    throw FileError("the last layer of the separable network does not fit the others");
}

}  // namespace neyman::separable
