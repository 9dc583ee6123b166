#include "neyman/classifiers/mlp.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <functional>
#include <future>
#include <limits>
#include <numbers>
#include <numeric>
#include <utility>

#include "classifiers/mlp_network.hpp"
#include "core/team.hpp"
#include "core/thread_share.hpp"
#include "neyman/core/check.hpp"
#include "neyman/core/error.hpp"
#include "neyman/core/parallel.hpp"
#include "neyman/core/progress.hpp"
#include "neyman/core/random.hpp"
#include "neyman/data/splits.hpp"
#include "neyman/distributed/ordered_sum.hpp"

namespace neyman {
namespace {

// Names of the choices, in the order of the enumerations.
const std::vector<std::string> activations{"relu", "tanh", "silu"};
const std::vector<std::string> losses{"cross-entropy", "squared-error"};
const std::vector<std::string> schedules{"constant", "cosine", "step", "exponential"};

template <class Choice>
Choice from_name(const std::string& name, const std::vector<std::string>& names) {
  const auto found = std::find(names.begin(), names.end(), name);
  if (found == names.end()) throw FileError(unknown_name(name, "choice of mlp", names));
  return static_cast<Choice>(found - names.begin());
}
template <class Choice>
const std::string& name_of(Choice choice, const std::vector<std::string>& names) {
  return names[static_cast<std::size_t>(choice)];
}

void check_config(const Mlp::Config& c) {
  const char* mlp = "Mlp";
  for (std::size_t width : c.hidden) check_in_range(mlp, "hidden", double(width), 1, 65536);
  check_at_least(mlp, "batch_size", c.batch_size, 1);
  check_at_least(mlp, "epochs", c.epochs, 1);
  check_positive(mlp, "learning_rate", c.learning_rate);
  check_in_range(mlp, "warm_up", c.warm_up, 0.0, 1.0);
  check_in_range(mlp, "final_rate", c.final_rate, 0.0, 1.0);
  check_in_range(mlp, "decay", c.decay, 0.0, 1.0);
  check_at_least(mlp, "decay_epochs", c.decay_epochs, 1);
  check_in_range(mlp, "beta1", c.beta1, 0.0, 0.999999);
  check_in_range(mlp, "beta2", c.beta2, 0.0, 0.999999);
  if (c.weight_decay) check_in_range(mlp, "weight_decay", *c.weight_decay, 0.0, 1e6);
  check_in_range(mlp, "l2", c.l2, 0.0, 1e6);
  check_in_range(mlp, "held_out", c.held_out, 0.0, 0.9);
  check_at_least(mlp, "patience", c.patience, 1);
}

/// Rows of a batch whose gradient is summed by one thread. Fixed by the size of the batch alone,
/// so that the order of all sums is too. Adding up the gradients of two groups costs as much as
/// about a row; four groups keep four threads busy, sixteen need large batches.
std::size_t group_rows(std::size_t batch) {
  constexpr std::size_t least = 64, large = 1024;
  const std::size_t rows =
      batch < 2 * large ? std::max(least, (batch + 3) / 4) : std::max(large, (batch + 15) / 16);
  return (rows + mlp::tile - 1) / mlp::tile * mlp::tile;
}

std::size_t groups_of(std::size_t batch) {
  return (batch + group_rows(batch) - 1) / group_rows(batch);
}

/// Whether other ranks, to which talking takes longer than to threads, are to take groups too.
bool for_ranks(std::size_t group) { return group >= 1024; }

constexpr std::size_t scoring_block = 8192;

/// Training rows in float32: standardised features, zeros, and the weight with the sign that the
/// kernels read the side from.
struct PackedRows {
  mlp::Buffer data;
  std::size_t stride = 0;
  std::size_t rows() const { return stride == 0 ? 0 : data.size() / stride; }
};

/// Mean and 1/sd of each feature; a constant feature has scale 1.
struct Scaling {
  std::vector<double> mean, scale;
  void add(double average, double variance) {
    const double sd = std::sqrt(variance);
    const bool constant = !(sd > 1e-12 * std::abs(average)) || !std::isfinite(1.0 / sd);
    mean.push_back(average);
    scale.push_back(constant ? 1.0 : 1.0 / sd);
  }
};

/// What a training goes through.
struct Course {
  std::size_t rows = 0;     ///< of an epoch
  std::size_t windows = 1;  ///< of an epoch
  /// The rows of a window, which stay until the next call; all windows are asked for in turn.
  std::function<const PackedRows&(std::size_t epoch, std::size_t window)> read;
  PackedRows held_out = {};
  double weight_decay = 0.0;
  std::uint64_t seed = 0;
  Progress* progress = nullptr;
  Communicator* ranks = nullptr;
};

/// AdamW's decay where the configuration has none.
double decay_for(const Mlp::Config& config, double effective_rows) {
  return config.weight_decay.value_or(4.5 / std::sqrt(effective_rows));
}

}  // namespace

Mlp::Config Mlp::Config::from(Settings settings) {
  Config c;
  c.hidden =
      settings.whole_numbers({"hidden", "width of each hidden layer; []: a linear classifier"},
                             c.hidden, Limits::between(1, 65536));
  const auto choose = [&]<class Choice>(const Key& key, Choice& value,
                                        const std::vector<std::string>& names) {
    value = from_name<Choice>(settings.choice(key, name_of(value, names), names), names);
  };
  const auto count = [&](const Key& key, std::size_t& value) {
    value = settings.count(key, value, 1, 1'000'000'000);
  };
  const auto number = [&](const Key& key, double& value, Limits limits) {
    value = settings.number(key, value, limits);
  };
  choose({"activation", "of the hidden layers"}, c.activation, activations);
  choose({"loss", "what the training minimises"}, c.loss, losses);
  choose({"schedule", "how the learning rate falls over the training"}, c.schedule, schedules);
  count({"batch_size", "rows a step"}, c.batch_size);
  count({"epochs", "passes over the data, at most"}, c.epochs);
  count({"decay_epochs",
         "schedule \"step\" or \"exponential\": epochs in which the rate falls by decay"},
        c.decay_epochs);
  count({"patience", "epochs without a better held-out loss before it stops"}, c.patience);
  number({"learning_rate", "the highest of the schedule"}, c.learning_rate, Limits::positive());
  number({"warm_up", "part of the steps over which the rate rises to it"}, c.warm_up,
         Limits::between(0, 1));
  number({"final_rate", "schedule \"cosine\": the last rate, as a part of the first"}, c.final_rate,
         Limits::between(0, 1));
  number({"decay", "schedule \"step\" or \"exponential\": factor every decay_epochs"}, c.decay,
         Limits::between(0, 1));
  number({"beta1", "Adam's memory of the gradient"}, c.beta1, Limits::between(0, 0.999999));
  number({"beta2", "Adam's memory of its square"}, c.beta2, Limits::between(0, 0.999999));
  c.weight_decay = settings.optional_number(
      {"weight_decay",
       "weights shrink by rate times this each step; absent: 4.5/√n for n events, because the less "
       "there is to learn from, the smoother the answer must be"},
      Limits::between(0, 1e6));
  number({"l2", "adds l2/2 times the sum of the squared weights to the loss"}, c.l2,
         Limits::between(0, 1e6));
  number({"held_out", "part of the rows kept to watch the loss; 0: none, and no early stop"},
         c.held_out, Limits::between(0, 0.9));
  return c;
}

/// A trained network, ready to score.
struct Mlp::State {
  State(std::size_t features, const Config& config)
      : network(widths(features, config), static_cast<mlp::Activation>(config.activation)),
        parameters(network.shape().parameters),
        transposed(network.shape().transposed),
        mean(network.shape().layers[0].in_pad),
        scale(mean.size()) {}

  static std::vector<std::size_t> widths(std::size_t features, const Config& config) {
    std::vector<std::size_t> all{features};
    all.insert(all.end(), config.hidden.begin(), config.hidden.end());
    return all;
  }
  std::size_t features() const { return network.shape().layers[0].in; }
  mlp::Inputs inputs(MatrixView x) const {
    return {x.data(), x.stride(), x.rows(), mean.data(), scale.data()};
  }

  void train(const Config& config, const Course& course, const Scaling& scaling);

  mlp::Network network;
  mlp::Buffer parameters, transposed;
  std::vector<double> mean, scale;  // of the inputs, padded with zeros
  std::vector<Epoch> history;
};

namespace {

/// Weighted moments of rows that are in memory.
Scaling moments(MatrixView x, const std::vector<double>& weights) {
  const std::size_t cols = x.cols();
  using Sums = std::vector<double>;
  const auto add = [](Sums a, const Sums& b) {
    if (a.empty()) return b;
    for (std::size_t i = 0; i < b.size(); ++i) a[i] += b[i];
    return a;
  };
  // centred on the first row, so that a large offset costs no precision
  const Sums sums = reduce_blocks(
      x.rows(), default_block, Sums{},
      [&](Block block) {
        Sums sum(2 * cols + 1);
        for (std::size_t i = block.begin; i < block.end; ++i) {
          for (std::size_t c = 0; c < cols; ++c) sum[c] += weights[i] * (x(i, c) - x(0, c));
          sum[2 * cols] += weights[i];
        }
        return sum;
      },
      add);
  std::vector<double> mean(cols);
  for (std::size_t c = 0; c < cols; ++c) mean[c] = x(0, c) + sums[c] / sums[2 * cols];
  const Sums squares = reduce_blocks(
      x.rows(), default_block, Sums{},
      [&](Block block) {
        Sums sum(cols);
        for (std::size_t i = block.begin; i < block.end; ++i) {
          for (std::size_t c = 0; c < cols; ++c) {
            const double d = x(i, c) - mean[c];
            sum[c] += weights[i] * d * d;
          }
        }
        return sum;
      },
      add);
  Scaling result;
  for (std::size_t c = 0; c < cols; ++c) result.add(mean[c], squares[c] / sums[2 * cols]);
  return result;
}

PackedRows pack_rows(const TrainingSet& data, const std::vector<double>& weights,
                     const std::vector<std::uint32_t>& rows, const Scaling& scaling) {
  PackedRows packed;
  const std::size_t cols = data.x.cols();
  packed.stride = (cols + 1 + mlp::unit - 1) / mlp::unit * mlp::unit;
  packed.data = mlp::Buffer(rows.size() * packed.stride);
  parallel_blocks(rows.size(), default_block, [&](Block block) {
    for (std::size_t i = block.begin; i < block.end; ++i) {
      float* to = packed.data.data() + i * packed.stride;
      const std::size_t row = rows[i];
      for (std::size_t c = 0; c < cols; ++c) {
        const double d = (data.x(row, c) - scaling.mean[c]) * scaling.scale[c];
        to[c] = static_cast<float>(std::clamp(d, -mlp::largest_input, mlp::largest_input));
      }
      const auto weight = static_cast<float>(weights[row]);
      to[packed.stride - 1] = data.denominator[row] ? -weight : weight;
    }
  });
  return packed;
}

double effective_rows(const std::vector<double>& weights) {
  double sum = 0.0, squares = 0.0;
  for (double w : weights) {
    sum += w;
    squares += w * w;
  }
  return sum * sum / squares;
}

/// The rate of a step as a part of the highest.
double rate(const Mlp::Config& c, std::size_t step, std::size_t steps, std::size_t steps_an_epoch) {
  const double done = std::min(1.0, static_cast<double>(step) / static_cast<double>(steps));
  const double warm =
      c.warm_up > 0.0 ? std::min(1.0, (done + 1.0 / double(steps)) / c.warm_up) : 1.0;
  const double epoch = static_cast<double>(step) / static_cast<double>(steps_an_epoch);
  switch (c.schedule) {
    case Mlp::Schedule::constant:
      return warm;
    case Mlp::Schedule::cosine:
      return warm * (c.final_rate +
                     (1.0 - c.final_rate) * 0.5 * (1.0 + std::cos(std::numbers::pi * done)));
    case Mlp::Schedule::step:
      return warm * std::pow(c.decay, std::floor(epoch / double(c.decay_epochs)));
    case Mlp::Schedule::exponential:
      return warm * std::pow(c.decay, epoch / double(c.decay_epochs));
  }
  return warm;
}

/// One training: the network's parameters with all that Adam remembers.
class Trainer {
 public:
  Trainer(const Mlp::Config& config, const mlp::Network& network, const Course& course)
      : config_(config),
        course_(course),
        network_(network),
        shape_(network.shape()),
        kernels_(mlp::kernels()),
        parameters_(shape_.parameters),
        transposed_(shape_.transposed),
        first_(shape_.parameters),
        second_(shape_.parameters),
        scratch_(1),
        gradients_(1),
        team_(std::min(thread_share(), groups_of(config.batch_size))) {
    scratch_[0] = network.scratch();
    gradients_[0] = mlp::Buffer(shape_.parameters);
    if (course.ranks != nullptr && course.ranks->size() > 1)
      over_ranks_.emplace(*course.ranks, shape_.parameters);
    initialise();
  }

  /// Returns the parameters to keep.
  mlp::Buffer train(std::vector<Mlp::Epoch>& history) {
    const std::size_t windows = course_.windows;
    const std::size_t window_rows =
        std::max<std::size_t>(1, (course_.rows + windows - 1) / windows);
    const std::size_t batch = std::min(config_.batch_size, window_rows);
    const std::size_t steps_an_epoch = windows * ((window_rows + batch - 1) / batch);
    const std::size_t steps = steps_an_epoch * config_.epochs;
    std::vector<std::uint32_t> order;
    mlp::Buffer best;
    double lowest = std::numeric_limits<double>::infinity();
    std::size_t since_best = 0, step = 0;
    for (std::size_t epoch = 0; epoch < config_.epochs; ++epoch) {
      double loss = 0.0;
      std::size_t rows = 0;
      for (std::size_t window = 0; window < windows; ++window) {
        rows_ = &course_.read(epoch, window);
        order.resize(rows_->rows());
        mlp::random_order(order, course_.seed, epoch * windows + window);
        for (std::size_t begin = 0; begin < order.size(); begin += batch, ++step) {
          const std::size_t count = std::min(batch, order.size() - begin);
          const double done = static_cast<double>(begin) / static_cast<double>(order.size());
          look_up(static_cast<double>(epoch) +
                      (static_cast<double>(window) + done) / static_cast<double>(windows),
                  count);
          loss += accumulate(order, begin, count, 1.0f / static_cast<float>(batch));
          update(step, rate(config_, step, steps, steps_an_epoch));
        }
        rows += order.size();
      }
      history.push_back({loss / static_cast<double>(rows), 0.0});
      if (!std::isfinite(loss)) break;
      if (course_.held_out.rows() == 0) {
        if (course_.progress != nullptr) course_.progress->merit("loss", history.back().training);
        continue;
      }
      const double now = held_out_loss();
      history.back().held_out = now;
      if (course_.progress != nullptr) course_.progress->merit("held-out loss", now);
      if (now < lowest) {
        lowest = now;
        since_best = 0;
        best = copy(parameters_);
      } else if (++since_best >= config_.patience) {
        break;
      }
    }
    if (best.size() == 0) best = copy(parameters_);
    const float* values = best.data();
    if (!std::all_of(values, values + best.size(), [](float v) { return std::isfinite(v); })) {
      throw Error("Mlp::fit: the training diverged: learning_rate is too high for these data");
    }
    return best;
  }

 private:
  /// Every now and then: whether to stop, and how many epochs are done.
  void look_up(double epochs, std::size_t rows) {
    constexpr std::size_t rows_between = 16384;
    rows_since_check_ += rows;
    if (rows_since_check_ <= rows_between) return;
    rows_since_check_ = 0;
    check_stop();
    if (course_.progress != nullptr)
      course_.progress->reach(epochs / static_cast<double>(config_.epochs));
  }

  /// Weights uniform within ±1/√inputs and hidden biases within twice that: beside weights of six
  /// times this variance and biases 0 (He et al. 2015), a third less excess cross-entropy after as
  /// many epochs, with all activations.
  void initialise() {
    RandomStream random(course_.seed, "mlp-weights");
    std::vector<float> plain;
    const auto draw = [&](std::size_t count, double reach) {
      for (std::size_t i = 0; i < count; ++i)
        plain.push_back(static_cast<float>(reach * (2.0 * random.uniform() - 1.0)));
    };
    for (std::size_t l = 0; l < shape_.count; ++l) {
      const mlp::Layer& layer = shape_.layers[l];
      const double reach = 1.0 / std::sqrt(static_cast<double>(layer.in));
      draw(layer.in * layer.out, reach);
      draw(layer.out, l + 1 < shape_.count ? 2.0 * reach : 0.0);
    }
    network_.pack(plain, parameters_.data());
    kernels_.transpose(shape_, parameters_.data(), transposed_.data());
  }

  /// Adds the gradient of a batch to gradients_[0]; returns Σ w·loss.
  double accumulate(const std::vector<std::uint32_t>& order, std::size_t begin, std::size_t count,
                    float scale) {
    const std::size_t group = group_rows(count);
    const std::size_t groups = (count + group - 1) / group;
    const auto one_group = [&](std::size_t g) {
      const std::size_t first = begin + g * group;
      const std::size_t rows = std::min(group, begin + count - first);
      return sum_group(order, first, rows, scale, gradients_[g].data(), scratch_[g].data());
    };
    if (groups == 1) return one_group(0);
    while (scratch_.size() < groups) {
      scratch_.push_back(network_.scratch());
      gradients_.emplace_back(shape_.parameters);
    }
    parts_.assign(groups, 0.0);
    const bool over_ranks = over_ranks_ && for_ranks(group);
    team_.run(groups, [&](std::size_t g) {
      if (!over_ranks || over_ranks_->is_mine(g)) parts_[g] = one_group(g);
    });
    float* total = gradients_[0].data();
    if (over_ranks)
      (*over_ranks_)([&](std::size_t g) { return gradients_[g].data(); }, parts_, total);
    for (std::size_t g = 1; g < groups; ++g) {
      float* part = gradients_[g].data();
      if (!over_ranks)
        for (std::size_t i = 0; i < shape_.parameters; ++i) total[i] += part[i];
      std::fill_n(part, shape_.parameters, 0.0f);
    }
    return std::accumulate(parts_.begin(), parts_.end(), 0.0);
  }

  double sum_group(const std::vector<std::uint32_t>& order, std::size_t begin, std::size_t count,
                   float scale, float* gradient, float* scratch) const {
    const mlp::Rows rows{rows_->data.data(), rows_->stride, order.data() + begin, count,
                         order.size() - begin - count};
    return kernels_.accumulate(shape_, static_cast<mlp::Loss>(config_.loss), parameters_.data(),
                               transposed_.data(), rows, scale, gradient, scratch);
  }

  void update(std::size_t step, double relative_rate) {
    const double t = static_cast<double>(step + 1);
    const double learning_rate = config_.learning_rate * relative_rate;
    mlp::AdamStep adam{};
    adam.learning_rate = static_cast<float>(learning_rate / (1.0 - std::pow(config_.beta1, t)));
    adam.beta1 = static_cast<float>(config_.beta1);
    adam.beta2 = static_cast<float>(config_.beta2);
    adam.second_scale = static_cast<float>(1.0 / (1.0 - std::pow(config_.beta2, t)));
    adam.epsilon = 1e-8f;
    adam.weight_decay = static_cast<float>(learning_rate * course_.weight_decay);
    adam.l2 = static_cast<float>(config_.l2);
    kernels_.adam(shape_, adam, parameters_.data(), transposed_.data(), gradients_[0].data(),
                  first_.data(), second_.data());
  }

  static mlp::Buffer copy(const mlp::Buffer& from) {
    mlp::Buffer to(from.size());
    std::copy_n(from.data(), from.size(), to.data());
    return to;
  }

  double held_out_loss() const {
    const PackedRows& held_out = course_.held_out;
    std::vector<std::uint32_t> rows(held_out.rows());
    std::iota(rows.begin(), rows.end(), 0u);
    const double sum = sum_blocks(
        rows.size(),
        [&](Block block) {
          mlp::Buffer scratch = network_.scratch();
          const mlp::Rows part{held_out.data.data(), held_out.stride, rows.data() + block.begin,
                               block.size(), 0};
          return kernels_.accumulate(shape_, static_cast<mlp::Loss>(config_.loss),
                                     parameters_.data(), nullptr, part, 1.0f, nullptr,
                                     scratch.data());
        },
        scoring_block);
    return sum / static_cast<double>(rows.size());
  }

  const Mlp::Config& config_;
  const Course& course_;
  const mlp::Network& network_;
  const mlp::Shape& shape_;
  const mlp::Kernels& kernels_;
  const PackedRows* rows_ = nullptr;  // of the window at work
  std::optional<OrderedSum> over_ranks_;
  mlp::Buffer parameters_, transposed_, first_, second_;
  std::vector<mlp::Buffer> scratch_, gradients_;  // one for each group of a batch
  std::vector<double> parts_;                     // losses of the groups
  Team team_;
  std::size_t rows_since_check_ = 0;
};

/// Splits off the rows to hold out, a part of each side, and gives each side of both parts the
/// same mean weight again.
struct Split {
  std::vector<std::uint32_t> training, held_out;
};

Split split_rows(const TrainingSet& data, double part, std::vector<double>& weights) {
  std::array<std::vector<std::uint32_t>, 2> sides;
  for (auto& rows : sides) rows.reserve(data.size());
  for (std::size_t i = 0; i < data.size(); ++i)
    if (weights[i] > 0.0) sides[data.denominator[i] != 0].push_back(static_cast<std::uint32_t>(i));
  Split split;
  split.training.reserve(sides[0].size() + sides[1].size());
  for (std::size_t side = 0; side < 2; ++side) {
    const auto& rows = sides[side];
    const auto count = static_cast<std::size_t>(part * static_cast<double>(rows.size()));
    if (count == 0) {
      split.training.insert(split.training.end(), rows.begin(), rows.end());
      continue;
    }
    std::vector<std::uint32_t> order(rows.size());
    std::iota(order.begin(), order.end(), 0u);
    mlp::random_order(order, derive_seed(data.seed, "mlp-hold-out", side), 0);
    for (std::size_t i = 0; i < rows.size(); ++i)
      (i < count ? split.held_out : split.training).push_back(rows[order[i]]);
  }
  for (auto* rows : {&split.training, &split.held_out}) {
    double sum[2] = {0.0, 0.0};
    for (std::uint32_t i : *rows) {  // without a store that the next load waits for
      sum[0] += data.denominator[i] != 0 ? 0.0 : weights[i];
      sum[1] += data.denominator[i] != 0 ? weights[i] : 0.0;
    }
    const double half = 0.5 * static_cast<double>(rows->size());
    const double factor[2] = {half / sum[0], half / sum[1]};
    for (std::uint32_t i : *rows) weights[i] *= factor[data.denominator[i] != 0];
  }
  return split;
}

}  // namespace

Mlp::Mlp(Config config) : config_(std::move(config)) { check_config(config_); }
Mlp::~Mlp() = default;
Mlp::Mlp(Mlp&&) noexcept = default;
Mlp& Mlp::operator=(Mlp&&) noexcept = default;

std::size_t Mlp::shares() const {
  return for_ranks(group_rows(config_.batch_size)) ? groups_of(config_.batch_size) : 1;
}

void Mlp::fit(const TrainingSet& data) { learn(data, nullptr); }

void Mlp::fit_epochs(const TrainingEpochs& epochs, std::uint64_t seed, Progress* progress) {
  if (config_.held_out > 0.0)
    fail_argument("Mlp::fit_epochs", "held_out", fmt::format("{}", config_.held_out),
                  "0 where every epoch has events of its own");
  const TrainingRows first = epochs(0);
  learn({first.x, first.denominator, first.weights, seed, progress}, &epochs);
}

void Mlp::learn(const TrainingSet& data, const TrainingEpochs* epochs) {
  const char* function = epochs == nullptr ? "Mlp::fit" : "Mlp::fit_epochs";
  std::vector<double> weights = detail::balanced_weights(function, data);
  if (data.size() > std::numeric_limits<std::uint32_t>::max()) {
    fail_argument(function, "rows", std::to_string(data.size()), "at most 4294967295");
  }
  const Scaling scaling = moments(data.x, weights);
  const Split split = split_rows(data, config_.held_out, weights);
  PackedRows packed = pack_rows(data, weights, split.training, scaling);
  const double passes = epochs == nullptr ? 1.0 : static_cast<double>(config_.epochs);

  Course course;
  course.rows = split.training.size();
  course.read = [&](std::size_t epoch, std::size_t) -> const PackedRows& {
    if (epochs == nullptr || epoch == 0) return packed;
    const TrainingRows next = (*epochs)(epoch);
    check_same_size(function, "a row of an epoch", next.x.cols(), data.x.cols(),
                    "features, as in the first");
    const TrainingSet set{next.x, next.denominator, next.weights, data.seed};
    auto own = detail::balanced_weights(function, set);
    packed = pack_rows(set, own, split_rows(set, 0.0, own).training, scaling);
    return packed;
  };
  course.held_out = pack_rows(data, weights, split.held_out, scaling);
  course.weight_decay = decay_for(config_, passes * effective_rows(weights));
  course.seed = data.seed;
  course.progress = data.progress;
  course.ranks = data.ranks;
  auto state = std::make_unique<State>(data.x.cols(), config_);
  state->train(config_, course, scaling);
  state_ = std::move(state);
}

void Mlp::State::train(const Config& config, const Course& course, const Scaling& scaling) {
  Trainer trainer(config, network, course);
  parameters = trainer.train(history);
  mlp::kernels().transpose(network.shape(), parameters.data(), transposed.data());
  std::copy(scaling.mean.begin(), scaling.mean.end(), mean.begin());
  std::copy(scaling.scale.begin(), scaling.scale.end(), scale.begin());
}

namespace {

/// What `make` gives for 0, 1, …: each is made by another thread while the one before is in use.
template <class T>
class MadeAhead {
 public:
  MadeAhead(std::size_t count, std::function<T(std::size_t)> make)
      : count_(count), make_(std::move(make)) {
    start();
  }
  MadeAhead(const MadeAhead&) = delete;
  MadeAhead& operator=(const MadeAhead&) = delete;
  T next() {
    T out = coming_.get();
    start();
    return out;
  }

 private:
  void start() {
    if (next_ == count_) return;
    coming_ = std::async(std::launch::async, [this, i = next_++] { return make_(i); });
  }

  std::size_t count_, next_ = 0;
  std::function<T(std::size_t)> make_;
  std::future<T> coming_;  // waits for the other thread where it is destroyed
};

/// Sums over rows of one side: Σw, Σw², and of each feature the weighted mean and Σw(x − mean)².
struct SideSums {
  std::size_t rows = 0;
  double weight = 0.0, squares = 0.0;
  std::vector<double> mean, deviations;

  void add(std::span<const double> x, double w) {  // West (1979)
    mean.resize(x.size());
    deviations.resize(x.size());
    ++rows;
    weight += w;
    squares += w * w;
    const double part = w / weight;
    for (std::size_t c = 0; c < x.size(); ++c) {
      const double d = x[c] - mean[c];
      mean[c] += part * d;
      deviations[c] += w * d * (x[c] - mean[c]);
    }
  }
};

/// A stream of rows with what one pass over it tells, ready to be packed.
class StreamedRows {
 public:
  StreamedRows(const TrainingStream& stream, double held_out)
      : seed_(derive_seed(stream.seed, "mlp-hold-out")) {
    constexpr double most = 262144;
    held_out_ =
        std::min(held_out, most / static_cast<double>(std::max<std::size_t>(stream.rows, 1)));
    MadeAhead<TrainingRows> windows(stream.windows,
                                    [&](std::size_t w) { return stream.read(0, w); });
    for (std::size_t w = 0; w < stream.windows; ++w) {
      check_stop();
      survey(windows.next());
    }
    check_at_least(function, "rows", rows(), 2);
    detail::check_sides(function, {training_[0].weight, training_[1].weight});
    balance(training_, training_factor_);
    balance(held_, held_factor_);
    for (std::size_t c = 0; c < training_[0].mean.size(); ++c) {
      const auto variance = [&](const SideSums& side) { return side.deviations[c] / side.weight; };
      const double apart = 0.5 * (training_[0].mean[c] - training_[1].mean[c]);
      scaling_.add(0.5 * (training_[0].mean[c] + training_[1].mean[c]),
                   0.5 * (variance(training_[0]) + variance(training_[1])) + apart * apart);
    }
  }

  /// That train.
  std::size_t rows() const { return training_[0].rows + training_[1].rows; }
  const Scaling& scaling() const { return scaling_; }
  /// With equal weight of both sides.
  double effective_rows() const {
    double sum = 0.0;
    for (const auto& side : training_) sum += side.squares / (side.weight * side.weight);
    return 4.0 / sum;
  }
  PackedRows pack(const TrainingRows& window) const {
    return pack(window, false, training_factor_);
  }
  PackedRows pack_held_out() const { return pack(held_rows_, true, held_factor_); }

 private:
  static constexpr const char* function = "Mlp::fit_stream";

  bool is_held_out(const TrainingRows& window, std::size_t row) const {
    return held_out_ > 0.0 && hashed(window.groups[row], seed_) < held_out_;
  }

  void survey(const TrainingRows& window) {
    if (window.x.rows() == 0) return;
    detail::check_rows(function, {window.x, window.denominator, window.weights});
    check_same_size(function, "groups", window.groups.size(), window.x.rows(), "one for each row");
    if (features_ == 0) features_ = window.x.cols();
    check_same_size(function, "a row of a window", window.x.cols(), features_,
                    "features, as in the first");
    for (std::size_t i = 0; i < window.x.rows(); ++i) {
      const double weight = window.weights.empty() ? 1.0 : window.weights[i];
      if (weight == 0.0) continue;
      const bool side = window.denominator[i] != 0, held = is_held_out(window, i);
      (held ? held_ : training_)[side].add(window.x.row(i), weight);
      if (held) keep(window, i, weight);
    }
  }

  void keep(const TrainingRows& window, std::size_t row, double weight) {
    if (held_rows_.x.cols() == 0) held_rows_.x = Matrix(0, features_);
    held_rows_.x.append(window.x.rows(row, row + 1));
    held_rows_.denominator.push_back(window.denominator[row]);
    held_rows_.weights.push_back(weight);
    held_rows_.groups.push_back(window.groups[row]);
  }

  /// Factors of the weights with which each side has half of the rows' number.
  static void balance(const std::array<SideSums, 2>& sides, std::array<double, 2>& factor) {
    const double half = 0.5 * static_cast<double>(sides[0].rows + sides[1].rows);
    for (const int side : {0, 1})
      factor[side] = sides[side].weight > 0.0 ? half / sides[side].weight : 0.0;
  }

  PackedRows pack(const TrainingRows& window, bool held_out,
                  const std::array<double, 2>& factor) const {
    std::vector<double> weights(window.x.rows());
    std::vector<std::uint32_t> rows;
    for (std::size_t i = 0; i < weights.size(); ++i) {
      weights[i] =
          (window.weights.empty() ? 1.0 : window.weights[i]) * factor[window.denominator[i] != 0];
      if (weights[i] > 0.0 && is_held_out(window, i) == held_out)
        rows.push_back(static_cast<std::uint32_t>(i));
    }
    return pack_rows({window.x, window.denominator}, weights, rows, scaling_);
  }

  std::uint64_t seed_;
  double held_out_ = 0.0;
  std::size_t features_ = 0;
  std::array<SideSums, 2> training_, held_;
  std::array<double, 2> training_factor_{}, held_factor_{};
  TrainingRows held_rows_;
  Scaling scaling_;
};

}  // namespace

void Mlp::fit_stream(const TrainingStream& stream) {
  const StreamedRows rows(stream, config_.held_out);
  MadeAhead<PackedRows> ahead(config_.epochs * stream.windows, [&](std::size_t i) {
    return rows.pack(stream.read(i / stream.windows, i % stream.windows));
  });
  PackedRows now;
  Course course;
  course.rows = rows.rows();
  course.windows = stream.windows;
  course.read = [&](std::size_t, std::size_t) -> const PackedRows& {
    now = {};  // its memory is free before the next but one is read
    return now = ahead.next();
  };
  course.held_out = rows.pack_held_out();
  course.weight_decay = decay_for(config_, rows.effective_rows());
  course.seed = stream.seed;
  course.progress = stream.progress;
  course.ranks = stream.ranks;
  auto state = std::make_unique<State>(rows.scaling().mean.size(), config_);
  state->train(config_, course, rows.scaling());
  state_ = std::move(state);
}

namespace {

void check_fitted(const char* function, const Mlp& classifier) {
  if (!classifier.fitted()) {
    throw ArgumentError(std::string(function) +
                        ": the classifier is not fitted, but must be fitted before");
  }
}

/// All but the values, which the kernels check as they go.
void check_columns(const char* function, const Mlp& classifier, MatrixView x) {
  detail::check_input(function, classifier, x.rows(0, 0));
}

}  // namespace

std::size_t Mlp::features() const { return state_ ? state_->features() : 0; }

Logits Mlp::logits(MatrixView x) const {
  check_columns("Mlp::logits", *this, x);
  const mlp::Kernels& kernels = mlp::kernels();
  Logits result(x.rows());
  parallel_blocks(x.rows(), scoring_block, [&](Block block) {
    mlp::Buffer scratch = state_->network.scratch();
    const MatrixView part = x.rows(block.begin, block.end);
    if (!kernels.score(state_->network.shape(), state_->parameters.data(), state_->inputs(part),
                       result.values().data() + block.begin, scratch.data())) {
      detail::check_input("Mlp::logits", *this, x);
    }
  });
  return result;
}

Matrix Mlp::gradient(MatrixView x) const {
  check_columns("Mlp::gradient", *this, x);
  const mlp::Kernels& kernels = mlp::kernels();
  Matrix result(x.rows(), x.cols());
  parallel_blocks(x.rows(), scoring_block, [&](Block block) {
    mlp::Buffer scratch = state_->network.scratch();
    const MatrixView part = x.rows(block.begin, block.end);
    if (!kernels.input_gradient(state_->network.shape(), state_->parameters.data(),
                                state_->transposed.data(), state_->inputs(part),
                                result.data() + block.begin * x.cols(), scratch.data())) {
      detail::check_input("Mlp::gradient", *this, x);
    }
  });
  return result;
}

const std::vector<Mlp::Epoch>& Mlp::history() const {
  check_fitted("Mlp::history", *this);
  return state_->history;
}

std::vector<float> Mlp::parameters() const {
  check_fitted("Mlp::parameters", *this);
  return state_->network.unpack(state_->parameters.data());
}

void Mlp::save(Archive& archive) const {
  check_fitted("Mlp::save", *this);
  const Config& c = config_;
  archive.set("hidden", std::vector<std::int64_t>(c.hidden.begin(), c.hidden.end()));
  archive.set("activation", name_of(c.activation, activations));
  archive.set("loss", name_of(c.loss, losses));
  archive.set("schedule", name_of(c.schedule, schedules));
  archive.set("batch_size", c.batch_size);
  archive.set("epochs", c.epochs);
  archive.set("decay_epochs", c.decay_epochs);
  archive.set("patience", c.patience);
  archive.set("learning_rate", c.learning_rate);
  archive.set("warm_up", c.warm_up);
  archive.set("final_rate", c.final_rate);
  archive.set("decay", c.decay);
  archive.set("beta1", c.beta1);
  archive.set("beta2", c.beta2);
  if (c.weight_decay) archive.set("weight_decay", *c.weight_decay);
  archive.set("l2", c.l2);
  archive.set("held_out", c.held_out);

  const auto features = static_cast<std::ptrdiff_t>(state_->features());
  archive.set("mean", std::vector<double>(state_->mean.begin(), state_->mean.begin() + features));
  archive.set("scale",
              std::vector<double>(state_->scale.begin(), state_->scale.begin() + features));
  archive.set("parameters", parameters());
  std::vector<double> training, held_out;
  for (const Epoch& epoch : state_->history) {
    training.push_back(epoch.training);
    held_out.push_back(epoch.held_out);
  }
  archive.set("training_loss", training);
  archive.set("held_out_loss", held_out);
}

void Mlp::load(const Archive& archive) {
  Config c;
  c.hidden.clear();
  for (std::int64_t width : archive.get<std::vector<std::int64_t>>("hidden"))
    c.hidden.push_back(static_cast<std::size_t>(width));
  c.activation = from_name<Activation>(archive.text("activation"), activations);
  c.loss = from_name<Loss>(archive.text("loss"), losses);
  c.schedule = from_name<Schedule>(archive.text("schedule"), schedules);
  const auto count = [&](const char* key) {
    return static_cast<std::size_t>(archive.integer(key));
  };
  c.batch_size = count("batch_size");
  c.epochs = count("epochs");
  c.decay_epochs = count("decay_epochs");
  c.patience = count("patience");
  c.learning_rate = archive.number("learning_rate");
  c.warm_up = archive.number("warm_up");
  c.final_rate = archive.number("final_rate");
  c.decay = archive.number("decay");
  c.beta1 = archive.number("beta1");
  c.beta2 = archive.number("beta2");
  if (archive.has("weight_decay")) c.weight_decay = archive.number("weight_decay");
  c.l2 = archive.number("l2");
  c.held_out = archive.number("held_out");
  check_config(c);

  const auto& mean = archive.numbers("mean");
  const auto& scale = archive.numbers("scale");
  const auto& parameters = archive.get<std::vector<float>>("parameters");
  const auto& training = archive.numbers("training_loss");
  const auto& held_out = archive.numbers("held_out_loss");
  if (mean.empty()) throw FileError("Mlp::load: mean is empty, but must have a value a feature");
  auto state = std::make_unique<State>(mean.size(), c);
  check_same_size("Mlp::load", "scale", scale.size(), mean.size(), "one for each feature");
  check_same_size("Mlp::load", "parameters", parameters.size(), state->network.plain_size(),
                  "as many as the layers have");
  check_same_size("Mlp::load", "held_out_loss", held_out.size(), training.size(),
                  "one for each epoch");
  std::copy(mean.begin(), mean.end(), state->mean.begin());
  std::copy(scale.begin(), scale.end(), state->scale.begin());
  state->network.pack(parameters, state->parameters.data());
  mlp::kernels().transpose(state->network.shape(), state->parameters.data(),
                           state->transposed.data());
  for (std::size_t i = 0; i < training.size(); ++i)
    state->history.push_back({training[i], held_out[i]});
  config_ = std::move(c);
  state_ = std::move(state);
}

}  // namespace neyman
