#include "ratios/conditional_density.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <numeric>

#include "neyman/core/error.hpp"
#include "neyman/core/parallel.hpp"

namespace neyman::across {

using separable::round_up;
using separable::tile;

namespace {

constexpr double root_two = 1.4142135623730951, root_two_pi = 2.5066282746310002;
/// Of logarithms of widths, in normal scores or in units of the range.
constexpr float narrowest = -8.0f, widest = 3.0f;
constexpr std::size_t most_components = 64;
/// A probability below this has no slope; its logarithm stays finite.
constexpr double least_probability = 1e-280;
/// Held-out events that are looked at each time.
constexpr std::size_t most_looked_at = 20000;

/// Φ(b) − Φ(a) for a < b, without loss of digits in the tails.
double normal_between(double a, double b) {
  if (a > 0.0) return normal_between(-b, -a);
  return 0.5 * (std::erfc(-b / root_two) - std::erfc(-a / root_two));
}

double normal_density(double x) { return std::exp(-0.5 * x * x) / root_two_pi; }

constexpr double two_pi = 6.283185307179586;
/// Of the logarithm s of a concentration, and a concentration itself: 1e-3 of a radian.
constexpr float least_tightness = -8.0f, most_tightness = 14.0f;
constexpr double most_concentration = 1e6;

/// log (e^{−κ} I_0(κ)) and I_1(κ) / I_0(κ), to 2·10⁻⁷ (Abramowitz and Stegun 9.8.1 to 9.8.4).
struct Bessel {
  double log_scaled, ratio;
};
Bessel bessel(double kappa) {
  const auto polynomial = [](double t, std::initializer_list<double> of) {
    double sum = 0.0;
    for (auto c = std::rbegin(of); c != std::rend(of); ++c) sum = sum * t + *c;
    return sum;
  };
  if (kappa < 3.75) {
    const double t = std::pow(kappa / 3.75, 2);
    const double i0 =
        polynomial(t, {1.0, 3.5156229, 3.0899424, 1.2067492, 0.2659732, 0.0360768, 0.0045813});
    const double i1 = kappa * polynomial(t, {0.5, 0.87890594, 0.51498869, 0.15084934, 0.02658733,
                                             0.00301532, 0.00032411});
    return {std::log(i0) - kappa, i1 / i0};
  }
  if (kappa > 50.0) {  // 9.7.1: the slope of a narrow component is a small difference
    const double k = 1.0 / kappa;
    return {-0.5 * std::log(two_pi * kappa) +
                std::log1p(k * (0.125 + k * (9.0 / 128.0 + k * 225.0 / 3072.0))),
            1.0 - k * (0.5 + k * (0.125 + k * 0.125))};
  }
  const double t = 3.75 / kappa;
  const double i0 = polynomial(t, {0.39894228, 0.01328592, 0.00225319, -0.00157565, 0.00916281,
                                   -0.02057706, 0.02635537, -0.01647633, 0.00392377});
  const double i1 = polynomial(t, {0.39894228, -0.03988024, -0.00362018, 0.00163801, -0.01031555,
                                   0.02282967, -0.02895312, 0.01787654, -0.00420059});
  return {std::log(i0) - 0.5 * std::log(kappa), i1 / i0};
}

/// What a component of an angle has: its concentration along cosine and sine.
struct Direction {
  double along, across, concentration;
  double factor;  ///< concentration per length of (a, b)
  bool free;      ///< not held by a limit
};
Direction direction(float a, float b, float s) {
  Direction out{};
  const double length = std::hypot(static_cast<double>(a), static_cast<double>(b));
  out.factor = std::exp(static_cast<double>(std::clamp(s, least_tightness, most_tightness)));
  out.free = s > least_tightness && s < most_tightness;
  if (out.factor * length > most_concentration) {
    out.factor = most_concentration / length;
    out.free = false;
  }
  out.along = out.factor * static_cast<double>(a);
  out.across = out.factor * static_cast<double>(b);
  out.concentration = out.factor * length;
  return out;
}

/// An angle from the density of von Mises around 0 (Best and Fisher 1979).
double draw_von_mises(double kappa, RandomStream& random) {
  if (kappa < 1e-8) return two_pi * random.uniform();
  if (kappa > 1e5) return random.normal() / std::sqrt(kappa);
  const double tau = 1.0 + std::sqrt(1.0 + 4.0 * kappa * kappa);
  // (τ − √(2τ)) / 2κ, without loss of digits where κ is small.
  const double root = std::sqrt(tau), rho = 2.0 * kappa / (root * (root + root_two));
  const double r = (1.0 + rho * rho) / (2.0 * rho);
  for (;;) {
    const double z = std::cos(0.5 * two_pi * random.uniform());
    const double f = (1.0 + r * z) / (r + z), c = kappa * (r - f), u = random.uniform();
    if (!(c * (2.0 - c) > u || std::log(c / u) + 1.0 >= c)) continue;
    return (random.uniform() < 0.5 ? -1.0 : 1.0) * std::acos(std::clamp(f, -1.0, 1.0));
  }
}

}  // namespace

void MixtureFactor::shape(const std::vector<bool>& round, const FeatureScale& scale,
                          std::size_t components) {
  columns_of_z_ = round.size();
  for (std::size_t i = 0; i < round.size(); ++i)
    if (round[i]) round_.push_back(i);
  atoms_ = scale.atoms();
  support_ = scale.round()                                    ? Support::circle
             : scale.bounded()                                ? Support::unit
             : scale.kind() == FeatureScale::Kind::steps      ? Support::steps
             : scale.kind() == FeatureScale::Kind::categories ? Support::categories
                                                              : Support::line;
  components_ = support_ == Support::categories ? 0 : components;
}

MixtureFactor::Work MixtureFactor::work() const {
  Work out;
  out.layers = layers_.workspace();
  if (!round_.empty()) out.seen = mlp::Buffer(tile * round_up(layers_.inputs(), 8));
  out.last = mlp::Buffer(tile * round_up(width(), 8));
  out.outputs = mlp::Buffer(tile * columns());
  out.slopes = mlp::Buffer(tile * columns());
  out.above = mlp::Buffer(tile * round_up(width(), 8));
  out.transposed.resize(columns() * round_up(width(), 8));
  return out;
}

mlp::Dense MixtureFactor::seen(const Tile& of, std::size_t rows, Work& work) const {
  if (round_.empty()) return {of.z, of.stride};
  const std::size_t stride = round_up(layers_.inputs(), 8);
  for (std::size_t r = 0; r < rows; ++r) {
    float* to = work.seen.data() + r * stride;
    const float* z = of.z + r * of.stride;
    std::copy_n(z, columns_of_z_, to);
    for (std::size_t k = 0; k < round_.size(); ++k) {
      const double phase = two_pi * (static_cast<double>(z[round_[k]]) / FeatureScale::per_place);
      to[round_[k]] = static_cast<float>(root_two * std::cos(phase));
      to[columns_of_z_ + k] = static_cast<float>(root_two * std::sin(phase));
    }
  }
  return {work.seen.data(), stride};
}

void MixtureFactor::add_slopes(const float* z, const float* by_seen, double* dz) const {
  std::size_t next = 0;
  for (std::size_t i = 0; i < columns_of_z_; ++i) {
    if (next == round_.size() || round_[next] != i) {
      dz[i] += static_cast<double>(by_seen[i]);
      continue;
    }
    const double turn = two_pi / FeatureScale::per_place, phase = turn * static_cast<double>(z[i]);
    dz[i] += root_two * turn *
             (std::cos(phase) * static_cast<double>(by_seen[columns_of_z_ + next]) -
              std::sin(phase) * static_cast<double>(by_seen[i]));
    ++next;
  }
}

void MixtureFactor::forward(const Tile& of, Work& work, bool derivatives) const {
  const auto& kernels = mlp::kernels();
  const std::size_t rows = of.shared ? 8 : round_up(of.rows, 8);
  const std::size_t stride = round_up(width(), 8), hidden = layers_.outputs();
  const auto in = seen(of, rows, work);
  const auto values = layers_.forward(in, rows, work.layers, derivatives);
  float* last = work.last.data();
  for (std::size_t r = 0; r < rows; ++r) {
    std::copy_n(values.data + r * values.stride, hidden, last + r * stride);
    std::copy_n(in.data + r * in.stride, layers_.inputs(), last + r * stride + hidden);
  }
  kernels.multiply({last, stride}, width(), {last_.data(), columns()},
                   last_.data() + width() * columns(), {work.outputs.data(), columns()}, rows,
                   columns());
}

double MixtureFactor::log_density(const float* o, const Place& place, double factor, float* slopes,
                                  double& du) const {
  const std::size_t choices = atoms_ + components_;
  const float* logits = o;
  const float* means = o + choices;
  const float* widths = means + components_;
  std::array<float, most_components + 1024> shares;
  float most = logits[0];
  for (std::size_t k = 1; k < choices; ++k) most = std::max(most, logits[k]);
  float total = 0.0f;
  for (std::size_t k = 0; k < choices; ++k) total += shares[k] = std::exp(logits[k] - most);
  const float log_total = most + std::log(total);
  for (std::size_t k = 0; k < choices; ++k) shares[k] /= total;
  const auto scaled = static_cast<float>(factor);
  du = 0.0;
  if (place.atom >= 0) {
    const auto mine = static_cast<std::size_t>(place.atom);
    if (slopes != nullptr) {
      for (std::size_t k = 0; k < choices; ++k) slopes[k] -= scaled * shares[k];
      slopes[mine] += scaled;
    }
    return static_cast<double>(logits[mine] - log_total);
  }
  const float* weights = shares.data() + atoms_;
  float* to_logits = slopes + atoms_;
  float* to_means = slopes + choices;
  float* to_widths = to_means + components_;
  const auto inside = [&](std::size_t c) { return widths[c] > narrowest && widths[c] < widest; };

  if (support_ == Support::circle)
    return log_round(o, shares.data(), log_total, place, factor, slopes, du);
  if (support_ == Support::steps) {
    double sum = 0.0;
    std::array<double, most_components> parts, low, high, inverse;
    for (std::size_t c = 0; c < components_; ++c) {
      inverse[c] = std::exp(-static_cast<double>(std::clamp(widths[c], narrowest, widest)));
      low[c] = (static_cast<double>(place.low) - static_cast<double>(means[c])) * inverse[c];
      high[c] = (static_cast<double>(place.high) - static_cast<double>(means[c])) * inverse[c];
      parts[c] = static_cast<double>(weights[c]) * normal_between(low[c], high[c]);
      sum += parts[c];
    }
    sum = std::max(sum, least_probability);
    if (slopes != nullptr) {
      for (std::size_t k = 0; k < choices; ++k) slopes[k] -= scaled * shares[k];
      for (std::size_t c = 0; c < components_; ++c) {
        const double share = factor * static_cast<double>(weights[c]) / sum;
        const double at_low = normal_density(low[c]), at_high = normal_density(high[c]);
        to_logits[c] += static_cast<float>(factor * parts[c] / sum);
        to_means[c] -= static_cast<float>(share * (at_high - at_low) * inverse[c]);
        if (inside(c))
          to_widths[c] -= static_cast<float>(share * (high[c] * at_high - low[c] * at_low));
      }
    }
    return std::log(sum);
  }

  // log Σ_c w_c N(u; μ_c, σ_c).
  std::array<float, most_components> away, inverse, exponents;
  float highest = -std::numeric_limits<float>::infinity();
  for (std::size_t c = 0; c < components_; ++c) {
    const float log_width = std::clamp(widths[c], narrowest, widest);
    inverse[c] = std::exp(-log_width);
    away[c] = (place.at - means[c]) * inverse[c];
    exponents[c] = logits[atoms_ + c] - log_width - 0.5f * away[c] * away[c];
    highest = std::max(highest, exponents[c]);
  }
  float sum = 0.0f;
  for (std::size_t c = 0; c < components_; ++c)
    sum += exponents[c] = std::exp(exponents[c] - highest);
  double value = static_cast<double>(highest + std::log(sum) - log_total) - std::log(root_two_pi);
  if (slopes != nullptr)
    for (std::size_t k = 0; k < choices; ++k) slopes[k] -= scaled * shares[k];
  for (std::size_t c = 0; c < components_; ++c) {
    const float share = exponents[c] / sum;
    const float slope = share * away[c] * inverse[c];
    du -= static_cast<double>(slope);
    if (slopes == nullptr) continue;
    to_logits[c] += scaled * share;
    to_means[c] += scaled * slope;
    if (inside(c)) to_widths[c] += scaled * share * (away[c] * away[c] - 1.0f);
  }
  if (support_ != Support::unit) return value;

  // − log Σ_c w_c (Φ(b_c) − Φ(a_c)): what lies inside of the range.
  double whole = 0.0;
  std::array<double, most_components> low, high, parts;
  for (std::size_t c = 0; c < components_; ++c) {
    low[c] = -static_cast<double>(means[c]) * static_cast<double>(inverse[c]);
    high[c] = (1.0 - static_cast<double>(means[c])) * static_cast<double>(inverse[c]);
    parts[c] = static_cast<double>(weights[c]) * normal_between(low[c], high[c]);
    whole += parts[c];
  }
  whole = std::max(whole, least_probability);
  if (slopes != nullptr)
    for (std::size_t c = 0; c < components_; ++c) {
      const double share = factor * static_cast<double>(weights[c]) / whole;
      const double at_low = normal_density(low[c]), at_high = normal_density(high[c]);
      // The weights' own sum is 1: its slopes are in those of the density above.
      to_logits[c] +=
          static_cast<float>(factor * (static_cast<double>(weights[c]) - parts[c] / whole));
      to_means[c] +=
          static_cast<float>(share * (at_high - at_low) * static_cast<double>(inverse[c]));
      if (inside(c))
        to_widths[c] += static_cast<float>(share * (high[c] * at_high - low[c] * at_low));
    }
  return value - std::log(whole);
}

double MixtureFactor::log_round(const float* o, const float* shares, float log_total,
                                const Place& place, double factor, float* slopes,
                                double& du) const {
  const std::size_t choices = atoms_ + components_;
  const float* along = o + choices;
  const float* across = along + components_;
  const float* tight = across + components_;
  const double phase = two_pi * static_cast<double>(place.at);
  const double cosine = std::cos(phase), sine = std::sin(phase);
  std::array<Direction, most_components> to;
  std::array<double, most_components> exponents, ratios;
  double highest = -std::numeric_limits<double>::infinity();
  for (std::size_t c = 0; c < components_; ++c) {
    to[c] = direction(along[c], across[c], tight[c]);
    const auto [log_scaled, ratio] = bessel(to[c].concentration);
    ratios[c] = ratio;
    exponents[c] = static_cast<double>(o[atoms_ + c] - log_total) + to[c].along * cosine +
                   to[c].across * sine - to[c].concentration - log_scaled;
    highest = std::max(highest, exponents[c]);
  }
  double sum = 0.0;
  for (std::size_t c = 0; c < components_; ++c)
    sum += exponents[c] = std::exp(exponents[c] - highest);
  if (slopes != nullptr)
    for (std::size_t k = 0; k < choices; ++k) slopes[k] -= static_cast<float>(factor) * shares[k];
  for (std::size_t c = 0; c < components_; ++c) {
    const double share = exponents[c] / sum;
    du += share * two_pi * (to[c].across * cosine - to[c].along * sine);
    if (slopes == nullptr) continue;
    // ∂/∂(concentration along cosine and sine): how far the event lies from the component's mean.
    const double mean = to[c].concentration > 1e-9 ? ratios[c] / to[c].concentration : 0.5;
    const double by_along = cosine - mean * to[c].along, by_across = sine - mean * to[c].across;
    const double scaled = factor * share;
    slopes[atoms_ + c] += static_cast<float>(scaled);
    slopes[choices + c] += static_cast<float>(scaled * to[c].factor * by_along);
    slopes[choices + components_ + c] += static_cast<float>(scaled * to[c].factor * by_across);
    if (to[c].free)
      slopes[choices + 2 * components_ + c] +=
          static_cast<float>(scaled * (to[c].along * by_along + to[c].across * by_across));
  }
  return highest + std::log(sum);
}

void MixtureFactor::add(const Tile& of, double* out, Work& work) const {
  forward(of, work, false);
  double du = 0.0;
  for (std::size_t r = 0; r < of.rows; ++r)
    out[r] += log_density(work.outputs.data() + (of.shared ? 0 : r * columns()), of.places[r], 1.0,
                          nullptr, du);
}

double MixtureFactor::sum(const Tile& of, const double* weights, double* dz, std::size_t dz_stride,
                          double& du, Work& work) const {
  forward(of, work, true);
  const std::size_t used = of.shared ? 1 : of.rows, rows = round_up(used, 8);
  std::fill_n(work.slopes.data(), rows * columns(), 0.0f);
  double value = 0.0;
  du = 0.0;
  for (std::size_t r = 0; r < of.rows; ++r) {
    const std::size_t at = of.shared ? 0 : r * columns();
    double mine = 0.0;
    value += weights[r] * log_density(work.outputs.data() + at, of.places[r], weights[r],
                                      work.slopes.data() + at, mine);
    du += weights[r] * mine;
  }
  const auto& kernels = mlp::kernels();
  const std::size_t hidden = layers_.outputs(), stride = round_up(width(), 8);
  for (std::size_t i = 0; i < width(); ++i)
    for (std::size_t k = 0; k < columns(); ++k)
      work.transposed[k * stride + i] = last_[i * columns() + k];
  kernels.multiply({work.slopes.data(), columns()}, columns(), {work.transposed.data(), stride},
                   nullptr, {work.above.data(), stride}, rows, stride);
  for (std::size_t r = 0; r < rows; ++r)
    std::copy_n(work.above.data() + r * stride, hidden, work.layers.above.data() + r * hidden);
  for (std::size_t r = 0; r < used; ++r)
    add_slopes(of.z + r * of.stride, work.above.data() + r * stride + hidden, dz + r * dz_stride);
  if (hidden == 0) return value;
  const auto below = layers_.backward_to_inputs(rows, work.layers);
  for (std::size_t r = 0; r < used; ++r)
    add_slopes(of.z + r * of.stride, below.data + r * below.stride, dz + r * dz_stride);
  return value;
}

void MixtureFactor::draw(const Tile& of, RandomStream& random, double* out, std::size_t stride,
                         Work& work) const {
  // A component that lies nearly outside of the range would otherwise take for ever.
  constexpr int most_tries = 1000;
  forward(of, work, false);
  for (std::size_t r = 0; r < of.rows; ++r) {
    const float* logits = work.outputs.data() + (of.shared ? 0 : r * columns());
    const float most = *std::max_element(logits, logits + components_);
    std::array<double, most_components> sums;
    double total = 0.0;
    for (std::size_t c = 0; c < components_; ++c)
      sums[c] = total += static_cast<double>(std::exp(logits[c] - most));
    double u = random.uniform();
    const auto chosen = [&] {
      const double at = total * random.uniform();
      return static_cast<std::size_t>(
          std::upper_bound(sums.begin(),
                           sums.begin() + static_cast<std::ptrdiff_t>(components_ - 1), at) -
          sums.begin());
    };
    if (support_ == Support::circle) {
      const std::size_t c = chosen();
      const auto to = direction(logits[components_ + c], logits[2 * components_ + c],
                                logits[3 * components_ + c]);
      const double turns =
          (std::atan2(to.across, to.along) + draw_von_mises(to.concentration, random)) / two_pi;
      out[r * stride] = turns - std::floor(turns);
      continue;
    }
    for (int tries = 0; tries < most_tries; ++tries) {
      const std::size_t c = chosen();
      const double width =
          std::exp(static_cast<double>(std::clamp(logits[2 * components_ + c], narrowest, widest)));
      const double drawn = static_cast<double>(logits[components_ + c]) + width * random.normal();
      if (!(drawn >= 0.0 && drawn <= 1.0)) continue;
      u = drawn;
      break;
    }
    out[r * stride] = u;
  }
}

/// One training: batches through network and mixture, and back.
class MixtureFactor::Training final : public PatientTraining {
 public:
  Training(MixtureFactor& of, const Rows& rows)
      : of_(of),
        rows_(rows),
        stride_(round_up(of.inputs(), 8)),
        work_(of.work()),
        z_(tile * stride_),
        places_(tile) {
    weights_.push_back({of.layers_.weights(), std::vector<float>(of.layers_.parameters(), 0.0f)});
    weights_.push_back({of.last_.data(), std::vector<float>(of.last_.size(), 0.0f)});
  }

 private:
  void learn(std::span<const std::uint32_t> batch) override {
    double weight = 0.0;
    for (const std::size_t row : batch) weight += of_weight(row);
    for (std::size_t begin = 0; begin < batch.size(); begin += tile) {
      const std::size_t count = std::min(tile, batch.size() - begin);
      gather(count, [&](std::size_t r) { return batch[begin + r]; });
      if (weight > 0.0) add_gradient(count, -1.0 / weight);
    }
  }

  double of_weight(std::size_t row) const {
    return rows_.weights.empty() ? 1.0 : rows_.weights[row];
  }

  template <class Row>
  void gather(std::size_t count, Row&& row) {
    for (std::size_t r = 0; r < count; ++r) {
      const std::size_t i = row(r);
      std::copy_n(rows_.z + i * rows_.stride, of_.inputs(), z_.data() + r * stride_);
      places_[r] = rows_.places[i];
      row_weights_[r] = of_weight(i);
    }
  }

  void add_gradient(std::size_t count, double scale) {
    const auto& kernels = mlp::kernels();
    const std::size_t rows = round_up(count, 8), columns = of_.columns();
    const std::size_t width = of_.width(), stride = round_up(width, 8);
    const std::size_t hidden = of_.layers_.outputs();
    auto& last = weights_[1].gradient;
    of_.forward({z_.data(), stride_, false, places_.data(), count}, work_, true);
    std::fill_n(work_.slopes.data(), rows * columns, 0.0f);
    double du = 0.0;
    for (std::size_t r = 0; r < count; ++r)
      of_.log_density(work_.outputs.data() + r * columns, places_[r], scale * row_weights_[r],
                      work_.slopes.data() + r * columns, du);
    kernels.add_outer({work_.last.data(), stride}, width, {work_.slopes.data(), columns},
                      {last.data(), columns}, rows, columns);
    for (std::size_t r = 0; r < count; ++r)
      for (std::size_t k = 0; k < columns; ++k)
        last[width * columns + k] += work_.slopes[r * columns + k];
    if (hidden == 0) return;
    for (std::size_t i = 0; i < hidden; ++i)
      for (std::size_t k = 0; k < columns; ++k)
        work_.transposed[k * hidden + i] = of_.last_[i * columns + k];
    kernels.multiply({work_.slopes.data(), columns}, columns, {work_.transposed.data(), hidden},
                     nullptr, {work_.layers.above.data(), hidden}, rows, hidden);
    // What the forward pass has seen.
    const bool round = !of_.round_.empty();
    of_.layers_.backward({round ? work_.seen.data() : z_.data(),
                          round ? round_up(of_.layers_.inputs(), 8) : stride_},
                         rows, work_.layers, weights_[0].gradient.data());
  }

  double look() override {
    const std::size_t all = rows_.held_out.size(), n = std::min(all, most_looked_at);
    double sum = 0.0, weight = 0.0;
    std::array<double, tile> values;
    for (std::size_t begin = 0; begin < n; begin += tile) {
      const std::size_t count = std::min(tile, n - begin);
      // Evenly among all of them, because events may be sorted.
      gather(count, [&](std::size_t r) { return rows_.held_out[(begin + r) * all / n]; });
      values.fill(0.0);
      of_.add({z_.data(), stride_, false, places_.data(), count}, values.data(), work_);
      for (std::size_t r = 0; r < count; ++r) {
        sum += row_weights_[r] * values[r];
        weight += row_weights_[r];
      }
    }
    return weight > 0.0 ? sum / weight : 0.0;
  }

  MixtureFactor& of_;
  const Rows& rows_;
  std::size_t stride_;
  Work work_;
  mlp::Buffer z_;
  std::vector<Place> places_;
  std::array<double, tile> row_weights_{};
};

MixtureFactor::MixtureFactor(const std::vector<bool>& round, const FeatureScale& scale,
                             const Rows& rows, const Options& options, Progress* progress) {
  shape(round, scale, std::min(options.components, most_components));
  layers_ = DenseLayers(columns_of_z_ + round_.size(), options.hidden);
  if (scale.kind() == FeatureScale::Kind::constant) {
    components_ = 0;
    return;
  }
  layers_.initialise(options.seed, "density weights");
  last_.assign((width() + 1) * columns(), 0.0f);
  RandomStream random(options.seed, "density outputs");
  const double spread =
      0.1 / std::sqrt(static_cast<double>(std::max<std::size_t>(1, layers_.outputs())));
  for (std::size_t i = 0; i < layers_.outputs(); ++i)
    for (std::size_t k = 0; k < outputs(); ++k)
      last_[i * columns() + k] = static_cast<float>(spread * random.normal());
  float* bias = last_.data() + width() * columns();
  const bool unit = support_ == Support::unit;
  for (std::size_t c = 0; c < components_; ++c) {
    const double part = (static_cast<double>(c) + 0.5) / static_cast<double>(components_);
    if (support_ == Support::circle) {
      bias[atoms_ + components_ + c] = static_cast<float>(std::cos(two_pi * part));
      bias[atoms_ + 2 * components_ + c] = static_cast<float>(std::sin(two_pi * part));
      continue;
    }
    bias[atoms_ + components_ + c] = static_cast<float>(unit ? part : 3.0 * (part - 0.5));
    bias[atoms_ + 2 * components_ + c] = std::log(unit ? 0.2f : 0.7f);
  }
  held_out_ = Training(*this, rows).run(rows.train, options, progress);
}

void MixtureFactor::save(Archive& archive) const {
  archive.set("components", components_);
  archive.set("held_out", held_out_);
  layers_.save(archive.child("layers"));
  archive.set("last", last_);
}

MixtureFactor MixtureFactor::load(const Archive& archive, const std::vector<bool>& round,
                                  const FeatureScale& scale) {
  MixtureFactor out;
  const auto components = archive.integer("components");
  if (components < 0 || components > static_cast<std::int64_t>(most_components))
    throw FileError("a density has a number of components that is not allowed");
  out.shape(round, scale, static_cast<std::size_t>(components));
  out.held_out_ = archive.number("held_out");
  out.layers_ = DenseLayers::load(archive.child("layers"));
  out.last_ = archive.get<std::vector<float>>("last");
  const bool constant = scale.kind() == FeatureScale::Kind::constant;
  const bool mixed = !constant && out.support_ != Support::categories;
  if (out.layers_.inputs() != out.columns_of_z_ + out.round_.size() ||
      (mixed && out.components_ == 0) ||
      out.last_.size() != (constant ? 0 : (out.width() + 1) * out.columns()))
    throw FileError("the parts of a density have sizes that do not agree");
  if (constant) out.components_ = 0;
  return out;
}

ConditionalDensity::Side ConditionalDensity::side(const std::vector<FeatureScale>& scales,
                                                  MatrixView of) {
  Side out;
  out.rows = of.rows();
  out.columns = scales.size();
  out.z.resize(out.rows * out.columns);
  out.places.resize(out.rows * out.columns);
  parallel_blocks(out.rows, default_block, [&](Block block) {
    for (std::size_t i = block.begin; i < block.end; ++i)
      for (std::size_t c = 0; c < out.columns; ++c) {
        out.z[i * out.columns + c] = scales[c](of(i, c));
        out.places[i * out.columns + c] = scales[c].place(of(i, c));
      }
  });
  return out;
}

namespace {

/// Of what the factors are given, one after the other, whether it goes round.
std::vector<bool> which_go_round(const std::vector<FeatureScale>& given,
                                 const std::vector<FeatureScale>& target) {
  std::vector<bool> out;
  for (const auto* scales : {&given, &target})
    for (const auto& scale : *scales) out.push_back(scale.round());
  return out;
}

}  // namespace

ConditionalDensity::ConditionalDensity(const Side& v, const Side& u,
                                       const std::vector<FeatureScale>& given,
                                       const std::vector<FeatureScale>& target,
                                       std::span<const double> weights,
                                       std::span<const std::uint32_t> train,
                                       std::span<const std::uint32_t> held_out,
                                       const MixtureFactor::Options& options, Progress* progress)
    : given_(v.columns) {
  const std::size_t d = u.columns, stride = v.columns + d;
  std::vector<float> z(v.rows * stride);
  for (std::size_t i = 0; i < v.rows; ++i) {
    std::copy_n(v.z.data() + i * v.columns, v.columns, z.data() + i * stride);
    std::copy_n(u.z.data() + i * d, d, z.data() + i * stride + v.columns);
  }
  const auto round = which_go_round(given, target);
  Progress all(progress, Progress::fine);
  factors_.resize(d);
  parallel_tasks(d, [&](std::size_t j) {
    Progress part(&all, Progress::fine / d);
    std::vector<Place> places(u.rows);
    for (std::size_t i = 0; i < u.rows; ++i) places[i] = u.places[i * d + j];
    auto own = options;
    own.seed = derive_seed(options.seed, "factor", j);
    factors_[j] = MixtureFactor(
        {round.begin(), round.begin() + static_cast<std::ptrdiff_t>(given_ + j)}, target[j],
        {z.data(), stride, places.data(), weights, train, held_out}, own, &part);
  });
}

double ConditionalDensity::held_out() const {
  return std::accumulate(factors_.begin(), factors_.end(), 0.0,
                         [](double sum, const auto& factor) { return sum + factor.held_out(); });
}

/// Rows of (v, u) of both sides, tile by tile.
class ConditionalDensity::Tiles {
 public:
  Tiles(const ConditionalDensity& of, const Side& v, const Side& u)
      : of_(of),
        v_(v),
        u_(u),
        stride_(round_up(v.columns + u.columns, 8)),
        z_(tile * stride_),
        places_(tile) {
    for (const auto& factor : of.factors_) work_.push_back(factor.work());
  }

  /// Calls use(factor, its tile, its work) for rows [begin, begin + count).
  template <class Use>
  void each(std::size_t begin, std::size_t count, Use&& use) {
    for (std::size_t r = 0; r < count; ++r) {
      float* to = z_.data() + r * stride_;
      std::copy_n(v_.z.data() + of(v_, begin + r) * v_.columns, v_.columns, to);
      std::copy_n(u_.z.data() + of(u_, begin + r) * u_.columns, u_.columns, to + v_.columns);
    }
    for (std::size_t j = 0; j < u_.columns; ++j) {
      if (!of_.factors_[j].describes()) continue;
      for (std::size_t r = 0; r < count; ++r)
        places_[r] = u_.places[of(u_, begin + r) * u_.columns + j];
      const bool shared = v_.rows == 1 && (j == 0 || u_.rows == 1);
      use(j, MixtureFactor::Tile{z_.data(), stride_, shared, places_.data(), count}, work_[j]);
    }
  }

 private:
  static std::size_t of(const Side& side, std::size_t row) { return side.rows == 1 ? 0 : row; }

  const ConditionalDensity& of_;
  const Side& v_;
  const Side& u_;
  std::size_t stride_;
  mlp::Buffer z_;
  std::vector<Place> places_;
  std::vector<MixtureFactor::Work> work_;
};

void ConditionalDensity::values(const Side& v, const Side& u, double* out) const {
  parallel_blocks(rows(v, u), 8 * tile, [&](Block block) {
    Tiles tiles(*this, v, u);
    std::fill(out + block.begin, out + block.end, 0.0);
    for (std::size_t begin = block.begin; begin < block.end; begin += tile)
      tiles.each(begin, std::min(tile, block.end - begin),
                 [&](std::size_t j, const MixtureFactor::Tile& of, MixtureFactor::Work& work) {
                   factors_[j].add(of, out + begin, work);
                 });
  });
}

double ConditionalDensity::sum(const Side& v, const Side& u, std::span<const double> weights,
                               std::span<double> by_v, std::span<double> by_u) const {
  struct Sums {
    double value;
    std::vector<double> dz, du;
  };
  const std::size_t columns = given_ + factors_.size();
  const Sums none{0.0, std::vector<double>(columns, 0.0),
                  std::vector<double>(factors_.size(), 0.0)};
  const Sums all = reduce_blocks(
      rows(v, u), 8 * tile, none,
      [&](Block block) {
        Sums part = none;
        Tiles tiles(*this, v, u);
        for (std::size_t begin = block.begin; begin < block.end; begin += tile)
          tiles.each(begin, std::min(tile, block.end - begin),
                     [&](std::size_t j, const MixtureFactor::Tile& of, MixtureFactor::Work& work) {
                       double du = 0.0;
                       part.value +=
                           factors_[j].sum(of, weights.data() + begin, part.dz.data(), 0, du, work);
                       part.du[j] += du;
                     });
        return part;
      },
      [](Sums a, const Sums& b) {
        a.value += b.value;
        for (std::size_t i = 0; i < a.dz.size(); ++i) a.dz[i] += b.dz[i];
        for (std::size_t i = 0; i < a.du.size(); ++i) a.du[i] += b.du[i];
        return a;
      });
  for (std::size_t i = 0; i < by_v.size(); ++i) by_v[i] = all.dz[i];
  // u is also among what later factors are given; there it is on its scale as a network sees it.
  for (std::size_t j = 0; j < by_u.size(); ++j)
    by_u[j] = all.du[j] + all.dz[given_ + j] * FeatureScale::per_place;
  return all.value;
}

Matrix ConditionalDensity::slopes(const Side& v, const Side& u) const {
  const std::size_t columns = given_ + factors_.size(), n = rows(v, u);
  Matrix out(n, given_);
  const std::vector<double> one(tile, 1.0);
  parallel_blocks(n, 8 * tile, [&](Block block) {
    Tiles tiles(*this, v, u);
    std::vector<double> dz(tile * columns);
    for (std::size_t begin = block.begin; begin < block.end; begin += tile) {
      const std::size_t count = std::min(tile, block.end - begin);
      std::fill(dz.begin(), dz.end(), 0.0);
      tiles.each(begin, count,
                 [&](std::size_t j, const MixtureFactor::Tile& of, MixtureFactor::Work& work) {
                   double du = 0.0;
                   factors_[j].sum(of, one.data(), dz.data(), columns, du, work);
                 });
      for (std::size_t r = 0; r < count; ++r)
        std::copy_n(dz.data() + r * columns, given_, out.row(begin + r).data());
    }
  });
  return out;
}

Matrix ConditionalDensity::draw(const Side& v, std::size_t count, RandomStream& random) const {
  const std::size_t d = factors_.size(), stride = round_up(given_ + d, 8);
  Matrix out(count, d);
  std::vector<MixtureFactor::Work> work;
  for (const auto& factor : factors_) work.push_back(factor.work());
  mlp::Buffer z(tile * stride);
  for (std::size_t begin = 0; begin < count; begin += tile) {
    const std::size_t rows = std::min(tile, count - begin);
    for (std::size_t r = 0; r < rows; ++r) std::copy_n(v.z.data(), given_, z.data() + r * stride);
    for (std::size_t j = 0; j < d; ++j) {
      double* to = out.row(begin).data() + j;
      factors_[j].draw({z.data(), stride, j == 0, nullptr, rows}, random, to, d, work[j]);
      for (std::size_t r = 0; r < rows; ++r)
        z.data()[r * stride + given_ + j] =
            static_cast<float>((to[r * d] - 0.5) * FeatureScale::per_place);
    }
  }
  return out;
}

void ConditionalDensity::save(Archive& archive) const {
  archive.set("factors", factors_.size());
  for (std::size_t j = 0; j < factors_.size(); ++j)
    factors_[j].save(archive.child("factor" + std::to_string(j)));
}

ConditionalDensity ConditionalDensity::load(const Archive& archive,
                                            const std::vector<FeatureScale>& given,
                                            const std::vector<FeatureScale>& target) {
  ConditionalDensity out;
  out.given_ = given.size();
  const auto round = which_go_round(given, target);
  if (archive.integer("factors") != static_cast<std::int64_t>(target.size()))
    throw FileError("a density has another number of factors than there are numbers");
  for (std::size_t j = 0; j < target.size(); ++j)
    out.factors_.push_back(MixtureFactor::load(
        archive.child("factor" + std::to_string(j)),
        {round.begin(), round.begin() + static_cast<std::ptrdiff_t>(out.given_ + j)}, target[j]));
  return out;
}

}  // namespace neyman::across
