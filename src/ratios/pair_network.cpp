#include "ratios/pair_network.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <string>
#include <utility>

#include "neyman/core/error.hpp"
#include "neyman/core/parallel.hpp"
#include "neyman/core/random.hpp"

namespace neyman::across {

using separable::round_up;
using separable::tile;

namespace {

/// Outputs of the last layer: one, and what a kernel asks for.
constexpr std::size_t lanes = 8;
/// Held-out events that are looked at each time.
constexpr std::size_t most_looked_at = 5000;

}  // namespace

Tower::Tower(std::size_t inputs, std::vector<std::size_t> hidden, std::size_t outputs)
    : outputs_(outputs), layers_(inputs, std::move(hidden)) {
  last_.assign((width() + 1) * outputs_, 0.0f);
}

void Tower::initialise(std::uint64_t seed, const std::string& name) {
  layers_.initialise(seed, name);
  RandomStream random(seed, name + " outputs");
  const double spread = 1.0 / std::sqrt(static_cast<double>(width()));
  for (std::size_t i = 0; i < (width() + 1) * outputs_; ++i)
    last_[i] = static_cast<float>((i < width() * outputs_ ? spread : 0.5) * random.normal());
}

Tower::Work Tower::work() const {
  Work out;
  out.layers = layers_.workspace();
  out.inputs = mlp::Buffer(tile * stride());
  out.last = mlp::Buffer(tile * round_up(width(), 8));
  out.outputs = mlp::Buffer(tile * outputs_);
  out.slopes = mlp::Buffer(tile * outputs_);
  out.above = mlp::Buffer(tile * round_up(width(), 8));
  out.transposed.resize(outputs_ * round_up(width(), 8));
  return out;
}

void Tower::forward(std::size_t rows, Work& work, bool derivatives) const {
  const std::size_t last = round_up(width(), 8), hidden = layers_.outputs();
  const auto values =
      layers_.forward({work.inputs.data(), stride()}, rows, work.layers, derivatives);
  for (std::size_t r = 0; r < rows; ++r) {
    if (hidden > 0)
      std::copy_n(values.data + r * values.stride, hidden, work.last.data() + r * last);
    std::copy_n(work.inputs.data() + r * stride(), inputs(), work.last.data() + r * last + hidden);
  }
  mlp::kernels().multiply({work.last.data(), last}, width(), {last_.data(), outputs_},
                          last_.data() + width() * outputs_, {work.outputs.data(), outputs_}, rows,
                          outputs_);
}

void Tower::to_last(std::size_t rows, Work& work) const {
  const std::size_t last = round_up(width(), 8);
  for (std::size_t i = 0; i < width(); ++i)
    for (std::size_t k = 0; k < outputs_; ++k)
      work.transposed[k * last + i] = last_[i * outputs_ + k];
  mlp::kernels().multiply({work.slopes.data(), outputs_}, outputs_, {work.transposed.data(), last},
                          nullptr, {work.above.data(), last}, rows, last);
  const std::size_t hidden = layers_.outputs();
  for (std::size_t r = 0; r < rows; ++r)
    std::copy_n(work.above.data() + r * last, hidden, work.layers.above.data() + r * hidden);
}

void Tower::backward(std::size_t rows, Work& work, float* of_layers, float* of_last) const {
  mlp::kernels().add_outer({work.last.data(), round_up(width(), 8)}, width(),
                           {work.slopes.data(), outputs_}, {of_last, outputs_}, rows, outputs_);
  float* bias = of_last + width() * outputs_;
  for (std::size_t r = 0; r < rows; ++r)
    for (std::size_t k = 0; k < outputs_; ++k) bias[k] += work.slopes[r * outputs_ + k];
  if (layers_.outputs() == 0) return;
  to_last(rows, work);
  layers_.backward({work.inputs.data(), stride()}, rows, work.layers, of_layers);
}

void Tower::backward_to_inputs(std::size_t rows, Work& work, double* out) const {
  to_last(rows, work);
  const std::size_t last = round_up(width(), 8), hidden = layers_.outputs();
  const auto below = hidden > 0 ? layers_.backward_to_inputs(rows, work.layers) : mlp::Dense{};
  for (std::size_t r = 0; r < rows; ++r)
    for (std::size_t i = 0; i < inputs(); ++i) {
      out[r * inputs() + i] += static_cast<double>(work.above[r * last + hidden + i]);
      if (hidden > 0)
        out[r * inputs() + i] += static_cast<double>(below.data[r * below.stride + i]);
    }
}

void Tower::save(Archive& archive) const {
  layers_.save(archive.child("layers"));
  archive.set("last", last_);
}

Tower Tower::load(const Archive& archive) {
  Tower out;
  out.layers_ = DenseLayers::load(archive.child("layers"));
  out.last_ = archive.get<std::vector<float>>("last");
  out.outputs_ = out.last_.size() / (out.width() + 1);
  if (out.outputs_ == 0 || out.outputs_ % 16 != 0 ||
      out.last_.size() != (out.width() + 1) * out.outputs_)
    throw FileError("the last layer of a network does not fit those before it");
  return out;
}

PairNetwork::Work PairNetwork::work() const {
  Work out;
  out.s = mlp::Buffer(tile * width());
  out.slopes = mlp::Buffer(tile * width());
  out.layers = pair_.workspace();
  out.outputs = mlp::Buffer(tile * lanes);
  out.above = mlp::Buffer(tile * lanes);
  return out;
}

template <class A, class B>
void PairNetwork::forward(std::size_t rows, A&& a, B&& b, float* h, Work& work,
                          bool derivatives) const {
  const auto& kernels = mlp::kernels();
  const std::size_t n = width(), q = products(), padded = round_up(rows, 8);
  float* s = work.s.data();
  for (std::size_t r = 0; r < rows; ++r) {
    const float* of_x = a(r);
    const float* of_theta = b(r);
    for (std::size_t i = 0; i < n; ++i) s[r * n + i] = of_x[i] + of_theta[i];
  }
  std::fill(s + rows * n, s + padded * n, 0.0f);
  kernels.silu(s, derivatives ? work.slopes.data() : nullptr, padded * n);
  const auto top = pair_.forward({s, n}, padded, work.layers, derivatives);
  kernels.multiply(top, top.stride, {last_.data(), lanes}, nullptr, {work.outputs.data(), lanes},
                   padded, lanes);
  for (std::size_t r = 0; r < rows; ++r) {
    h[r] = work.outputs[r * lanes];
    const float* c = a(r) + n;
    const float* d = b(r) + n;
    float sums[lanes] = {};
    for (std::size_t i = 0; i < q; i += lanes)
      for (std::size_t l = 0; l < lanes; ++l) sums[l] += c[i + l] * d[i + l];
    for (std::size_t l = 0; l < lanes; ++l) h[r] += sums[l];
  }
}

mlp::Dense PairNetwork::backward(std::size_t rows, const float* factors, Work& work,
                                 float* of_layers, float* of_last) const {
  const auto& kernels = mlp::kernels();
  const std::size_t n = width(), padded = round_up(rows, 8);
  const bool deep = pair_.outputs() > 0;
  const std::size_t top = deep ? pair_.outputs() : n;
  if (of_last != nullptr) {
    std::fill_n(work.above.data(), padded * lanes, 0.0f);
    for (std::size_t r = 0; r < rows; ++r) work.above[r * lanes] = factors[r];
    const float* values = deep ? work.layers.values.back().data() : work.s.data();
    kernels.add_outer({values, top}, top, {work.above.data(), lanes}, {of_last, lanes}, padded,
                      lanes);
  }
  float* above = work.layers.above.data();
  for (std::size_t r = 0; r < padded; ++r) {
    const float factor = r < rows ? factors[r] : 0.0f;
    for (std::size_t i = 0; i < top; ++i) above[r * top + i] = factor * last_[i * lanes];
  }
  mlp::Dense below{above, top};
  if (deep)
    below = of_layers == nullptr
                ? pair_.backward_to_inputs(padded, work.layers)
                : pair_.backward({work.s.data(), n}, padded, work.layers, of_layers, true);
  // σ's own derivative: what lies in `slopes` serves once.
  float* slopes = work.slopes.data();
  for (std::size_t r = 0; r < rows; ++r)
    for (std::size_t i = 0; i < n; ++i) slopes[r * n + i] *= below.data[r * below.stride + i];
  return {slopes, n};
}

PairNetwork::Embedded PairNetwork::embed(const Tower& tower, const Side& side) {
  Embedded out;
  out.rows = side.rows;
  out.values.resize(side.rows * tower.outputs());
  parallel_blocks(side.rows, 8 * tile, [&](Block block) {
    auto work = tower.work();
    for (std::size_t begin = block.begin; begin < block.end; begin += tile) {
      const std::size_t count = std::min(tile, block.end - begin);
      for (std::size_t r = 0; r < count; ++r)
        std::copy_n(side.z.data() + (begin + r) * side.columns, side.columns,
                    work.inputs.data() + r * tower.stride());
      tower.forward(round_up(count, 8), work, false);
      std::copy_n(work.outputs.data(), count * tower.outputs(),
                  out.values.data() + begin * tower.outputs());
    }
  });
  return out;
}

std::vector<double> PairNetwork::values(const Embedded& x, const Embedded& theta) const {
  const std::size_t rows = x.rows == 1 ? theta.rows : x.rows, stride = x_.outputs();
  std::vector<double> out(rows);
  parallel_blocks(rows, 8 * tile, [&](Block block) {
    auto memory = work();
    std::array<float, tile> h;
    for (std::size_t begin = block.begin; begin < block.end; begin += tile) {
      const std::size_t count = std::min(tile, block.end - begin);
      forward(
          count,
          [&](std::size_t r) { return x.values.data() + (x.rows == 1 ? 0 : begin + r) * stride; },
          [&](std::size_t r) {
            return theta.values.data() + (theta.rows == 1 ? 0 : begin + r) * stride;
          },
          h.data(), memory, false);
      for (std::size_t r = 0; r < count; ++r) out[begin + r] = static_cast<double>(h[r]);
    }
  });
  return out;
}

double PairNetwork::sum(const Embedded& x, const Side& theta, std::span<const double> weights,
                        std::span<double> gradient) const {
  const std::size_t stride = x_.outputs(), n = width();
  const Embedded of_theta = points(theta);
  struct Sums {
    double value = 0.0;
    std::vector<double> slopes;
  };
  const Sums all = reduce_blocks(
      x.rows, 8 * tile, Sums{0.0, std::vector<double>(stride, 0.0)},
      [&](Block block) {
        Sums part{0.0, std::vector<double>(stride, 0.0)};
        auto memory = work();
        std::array<float, tile> h, factors;
        for (std::size_t begin = block.begin; begin < block.end; begin += tile) {
          const std::size_t count = std::min(tile, block.end - begin);
          const auto event = [&](std::size_t r) { return x.values.data() + (begin + r) * stride; };
          forward(
              count, event, [&](std::size_t) { return of_theta.values.data(); }, h.data(), memory,
              !gradient.empty());
          for (std::size_t r = 0; r < count; ++r) {
            part.value += weights[begin + r] * static_cast<double>(h[r]);
            factors[r] = static_cast<float>(weights[begin + r]);
          }
          if (gradient.empty()) continue;
          const auto slopes = backward(count, factors.data(), memory, nullptr, nullptr);
          for (std::size_t r = 0; r < count; ++r) {
            for (std::size_t i = 0; i < n; ++i)
              part.slopes[i] += static_cast<double>(slopes.data[r * n + i]);
            for (std::size_t i = n; i < stride; ++i)
              part.slopes[i] += weights[begin + r] * static_cast<double>(event(r)[i]);
          }
        }
        return part;
      },
      [](Sums a, const Sums& b) {
        a.value += b.value;
        for (std::size_t i = 0; i < a.slopes.size(); ++i) a.slopes[i] += b.slopes[i];
        return a;
      });
  if (gradient.empty()) return all.value;
  auto tower = theta_.work();
  std::copy_n(theta.z.data(), theta.columns, tower.inputs.data());
  theta_.forward(8, tower, true);
  std::fill_n(tower.slopes.data(), 8 * stride, 0.0f);
  for (std::size_t i = 0; i < stride; ++i) tower.slopes[i] = static_cast<float>(all.slopes[i]);
  std::vector<double> out(8 * theta.columns, 0.0);
  theta_.backward_to_inputs(8, tower, out.data());
  std::copy_n(out.begin(), gradient.size(), gradient.begin());
  return all.value;
}

Matrix PairNetwork::slopes(const Embedded& x, const Side& theta) const {
  const std::size_t stride = x_.outputs(), n = width(), d = parameters();
  Matrix out(x.rows, d);
  parallel_blocks(x.rows, 8 * tile, [&](Block block) {
    auto memory = work();
    auto tower = theta_.work();
    std::array<float, tile> h, ones;
    ones.fill(1.0f);
    for (std::size_t begin = block.begin; begin < block.end; begin += tile) {
      const std::size_t count = std::min(tile, block.end - begin), padded = round_up(count, 8);
      for (std::size_t r = 0; r < count; ++r)
        std::copy_n(theta.z.data() + (theta.rows == 1 ? 0 : begin + r) * d, d,
                    tower.inputs.data() + r * theta_.stride());
      theta_.forward(padded, tower, true);
      const auto event = [&](std::size_t r) { return x.values.data() + (begin + r) * stride; };
      forward(
          count, event, [&](std::size_t r) { return tower.outputs.data() + r * stride; }, h.data(),
          memory, true);
      const auto below = backward(count, ones.data(), memory, nullptr, nullptr);
      std::fill_n(tower.slopes.data(), padded * stride, 0.0f);
      for (std::size_t r = 0; r < count; ++r) {
        std::copy_n(below.data + r * n, n, tower.slopes.data() + r * stride);
        std::copy_n(event(r) + n, stride - n, tower.slopes.data() + r * stride + n);
      }
      std::vector<double> by_inputs(padded * d, 0.0);
      theta_.backward_to_inputs(padded, tower, by_inputs.data());
      std::copy_n(by_inputs.data(), count * d, out.row(begin).data());
    }
  });
  return out;
}

/// One training: each event of a batch with its own θ and those of some others of the batch.
class PairNetwork::Training final : public PatientTraining {
 public:
  Training(PairNetwork& of, const Side& x, const Side& theta, std::span<const double> weights,
           std::span<const std::uint32_t> held_out, const PairNetwork::Options& options)
      : of_(of),
        x_(x),
        theta_(theta),
        event_weights_(weights),
        contrasts_(options.contrasts),
        of_x_(of.x_.work()),
        of_theta_(of.theta_.work()),
        pairs_(of.work()) {
    const auto learned = [&](float* values, std::size_t count, double decay) {
      weights_.push_back({values, std::vector<float>(count, 0.0f), decay});
    };
    for (auto* tower : {&of.x_, &of.theta_}) {
      const double decay = tower == &of.x_ ? options.decay : 0.0;
      learned(tower->layers().weights(), tower->layers().parameters(), decay);
      learned(tower->last().data(), tower->last().size(), decay);
    }
    learned(of.pair_.weights(), of.pair_.parameters(), 0.0);
    learned(of.last_.data(), of.last_.size(), 0.0);
    looked_at_ = pass(held_out, derive_seed(options.seed, "held out"), 0);
    looked_at_.resize(std::min(looked_at_.size(), most_looked_at));
  }

 private:
  /// As often as its weight says, each event at random in the order: then all pairs count alike,
  /// and the θ of others are distributed as those of events are.
  std::vector<std::uint32_t> pass(std::span<const std::uint32_t> rows, std::uint64_t seed,
                                  std::size_t epoch) override {
    if (event_weights_.empty()) return PatientTraining::pass(rows, seed, epoch);
    double total = 0.0;
    for (const std::size_t i : rows) total += event_weights_[i];
    const double step = total / static_cast<double>(rows.size());
    double next = RandomStream(seed, "turns", epoch).uniform() * step, sum = 0.0;
    std::vector<std::uint32_t> drawn;
    for (const std::size_t i : rows)
      for (sum += event_weights_[i]; drawn.size() < rows.size() && next < sum; next += step)
        drawn.push_back(static_cast<std::uint32_t>(i));
    // What rounding of the sums has left.
    while (drawn.size() < rows.size()) drawn.push_back(drawn.empty() ? rows[0] : drawn.back());
    return PatientTraining::pass(drawn, seed, epoch);
  }

  void learn(std::span<const std::uint32_t> batch) override {
    for (std::size_t begin = 0; begin < batch.size(); begin += tile)
      part(batch.subspan(begin, std::min(tile, batch.size() - begin)),
           1.0f / static_cast<float>(batch.size()));
  }

  double look() override {
    double sum = 0.0;
    std::size_t counted = 0;
    for (std::size_t begin = 0; begin + 1 < looked_at_.size(); begin += tile) {
      const std::size_t count = std::min(tile, looked_at_.size() - begin);
      if (count < 2) break;
      sum += part(std::span<const std::uint32_t>(looked_at_).subspan(begin, count), 0.0f);
      counted += count;
    }
    return counted > 0 ? sum / static_cast<double>(counted) : 0.0;
  }

  /// What these events, a tile at most, tell of their θ, in nats; with its gradient times a scale
  /// unless that is zero.
  double part(std::span<const std::uint32_t> rows, float scale) {
    const bool learns = scale > 0.0f;
    const std::size_t count = rows.size(), padded = round_up(count, 8);
    const std::size_t stride = of_.x_.outputs(), n = of_.width();
    const auto gather = [&](const Side& side, const Tower& tower, Tower::Work& work) {
      for (std::size_t r = 0; r < count; ++r)
        std::copy_n(side.z.data() + rows[r] * side.columns, side.columns,
                    work.inputs.data() + r * tower.stride());
      tower.forward(padded, work, learns);
      if (learns) std::fill_n(work.slopes.data(), padded * stride, 0.0f);
    };
    gather(x_, of_.x_, of_x_);
    gather(theta_, of_.theta_, of_theta_);
    const std::size_t others = std::min(contrasts_, count), together = tile / others;
    double told = 0.0;
    std::array<float, tile> h, factors;
    for (std::size_t begin = 0; begin < count; begin += together) {
      const std::size_t events = std::min(together, count - begin), pairs = events * others;
      const auto event = [&](std::size_t r) { return begin + r / others; };
      // The first one is its own.
      const auto point = [&](std::size_t r) {
        const std::size_t at = begin + r / others + r % others;
        return at < count ? at : at - count;
      };
      of_.forward(
          pairs, [&](std::size_t r) { return of_x_.outputs.data() + event(r) * stride; },
          [&](std::size_t r) { return of_theta_.outputs.data() + point(r) * stride; }, h.data(),
          pairs_, learns);
      for (std::size_t e = 0; e < events; ++e) {
        float* mine = h.data() + e * others;
        const float most = *std::max_element(mine, mine + others);
        float sum = 0.0f;
        for (std::size_t k = 0; k < others; ++k)
          sum += factors[e * others + k] = std::exp(mine[k] - most);
        told += static_cast<double>(mine[0] - most - std::log(sum)) +
                std::log(static_cast<double>(others));
        for (std::size_t k = 0; k < others; ++k) factors[e * others + k] *= scale / sum;
        factors[e * others] -= scale;
      }
      if (!learns) continue;
      const auto slopes = of_.backward(pairs, factors.data(), pairs_, weights_[4].gradient.data(),
                                       weights_[5].gradient.data());
      for (std::size_t r = 0; r < pairs; ++r) {
        float* to_x = of_x_.slopes.data() + event(r) * stride;
        float* to_theta = of_theta_.slopes.data() + point(r) * stride;
        const float* both = slopes.data + r * n;
        for (std::size_t i = 0; i < n; ++i) {
          to_x[i] += both[i];
          to_theta[i] += both[i];
        }
        const float* c = of_x_.outputs.data() + event(r) * stride;
        const float* d = of_theta_.outputs.data() + point(r) * stride;
        for (std::size_t i = n; i < stride; ++i) {
          to_x[i] += factors[r] * d[i];
          to_theta[i] += factors[r] * c[i];
        }
      }
    }
    if (!learns) return told;
    of_.x_.backward(padded, of_x_, weights_[0].gradient.data(), weights_[1].gradient.data());
    of_.theta_.backward(padded, of_theta_, weights_[2].gradient.data(),
                        weights_[3].gradient.data());
    return told;
  }

  PairNetwork& of_;
  const Side& x_;
  const Side& theta_;
  std::span<const double> event_weights_;
  std::size_t contrasts_;
  Tower::Work of_x_, of_theta_;
  Work pairs_;
  std::vector<std::uint32_t> looked_at_;
};

PairNetwork::PairNetwork(const Side& x, const Side& theta, std::span<const double> weights,
                         std::span<const std::uint32_t> train,
                         std::span<const std::uint32_t> held_out, const Options& options,
                         Progress* progress) {
  const std::size_t width = round_up(options.width, 16), products = round_up(options.products, 16);
  x_ = Tower(x.columns, options.hidden, width + products);
  theta_ = Tower(theta.columns, options.hidden, width + products);
  pair_ = DenseLayers(width, options.pair);
  x_.initialise(options.seed, "network of x");
  theta_.initialise(options.seed, "network of theta");
  // The product begins at nothing.
  for (std::size_t i = 0; i < theta_.last().size(); ++i)
    if (i % (width + products) >= width) theta_.last()[i] *= 0.1f;
  pair_.initialise(options.seed, "network of pairs");
  const std::size_t top = pair_.outputs() > 0 ? pair_.outputs() : width;
  last_.assign(top * lanes, 0.0f);
  RandomStream random(options.seed, "network of pairs, outputs");
  for (std::size_t i = 0; i < top; ++i)
    last_[i * lanes] =
        static_cast<float>(0.1 / std::sqrt(static_cast<double>(top)) * random.normal());
  auto own = options;
  own.contrasts = std::clamp<std::size_t>(options.contrasts, 2, tile);
  held_out_ = Training(*this, x, theta, weights, held_out, own).run(train, own, progress);
}

void PairNetwork::save(Archive& archive) const {
  archive.set("held_out", held_out_);
  x_.save(archive.child("x"));
  theta_.save(archive.child("theta"));
  pair_.save(archive.child("pair"));
  archive.set("last", last_);
}

PairNetwork PairNetwork::load(const Archive& archive, std::size_t inputs, std::size_t parameters) {
  PairNetwork out;
  out.held_out_ = archive.number("held_out");
  out.x_ = Tower::load(archive.child("x"));
  out.theta_ = Tower::load(archive.child("theta"));
  out.pair_ = DenseLayers::load(archive.child("pair"));
  out.last_ = archive.get<std::vector<float>>("last");
  const std::size_t top = out.pair_.outputs() > 0 ? out.pair_.outputs() : out.width();
  if (out.inputs() != inputs || out.parameters() != parameters || out.width() % 16 != 0 ||
      out.x_.outputs() != out.theta_.outputs() || out.x_.outputs() < out.width() ||
      out.last_.size() != top * lanes)
    throw FileError("the parts of a network of x and θ have sizes that do not agree");
  return out;
}

}  // namespace neyman::across
