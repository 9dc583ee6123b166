#include "classifiers/mlp_training.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <deque>
#include <functional>
#include <future>
#include <limits>
#include <numbers>
#include <numeric>
#include <optional>
#include <string>
#include <utility>

#include "classifiers/bootstrap.hpp"
#include "core/large_vector.hpp"
#include "core/team.hpp"
#include "core/thread_share.hpp"
#include "core/vector_math.hpp"
#include "neyman/core/check.hpp"
#include "neyman/core/error.hpp"
#include "neyman/core/parallel.hpp"
#include "neyman/core/progress.hpp"
#include "neyman/core/random.hpp"
#include "neyman/data/splits.hpp"
#include "neyman/distributed/ordered_sum.hpp"

namespace neyman::mlp {
namespace {

/// Rows of a batch whose gradient is summed by one thread. Fixed by the size of the batch alone,
/// so that the order of all sums is too. Adding up the gradients of two groups costs as much as
/// about a row; four groups keep four threads busy, sixteen need large batches.
std::size_t group_rows(std::size_t batch) {
  constexpr std::size_t least = 64, large = 1024;
  const std::size_t rows =
      batch < 2 * large ? std::max(least, (batch + 3) / 4) : std::max(large, (batch + 15) / 16);
  return (rows + part_rows - 1) / part_rows * part_rows;
}

std::size_t groups_of(std::size_t batch) {
  return (batch + group_rows(batch) - 1) / group_rows(batch);
}

/// Whether other ranks, to which talking takes longer than to threads, are to take groups too.
bool for_ranks(std::size_t group) { return group >= 1024; }

constexpr std::size_t loss_block = 8192;

/// Training rows in float32: standardised features, zeros, and the weight with the sign that the
/// kernels read the side from.
struct PackedRows {
  Buffer data;
  std::size_t stride = 0;
  std::vector<std::int64_t> ids = {};  ///< what the bootstrap draws by; empty where nobody asks

  std::size_t rows() const { return stride == 0 ? 0 : data.size() / stride; }
  float signed_weight(std::size_t row) const { return data[(row + 1) * stride - 1]; }
  bool denominator(std::size_t row) const { return std::signbit(signed_weight(row)); }
};

/// Sums over the weights of the rows that train, by side.
struct SideWeights {
  std::array<double, 2> sum{}, squares{};

  void add(bool side, double weight) {  // to both, so that no load waits for a store
    const double numerator = side ? 0.0 : weight, denominator = side ? weight : 0.0;
    sum[0] += numerator;
    sum[1] += denominator;
    squares[0] += numerator * numerator;
    squares[1] += denominator * denominator;
  }
  /// Where both sides have the same weight in all.
  double effective_rows() const {
    double out = 0.0;
    for (const int side : {0, 1}) out += squares[side] / (sum[side] * sum[side]);
    return 4.0 / out;
  }
};

/// What all networks of a training go through.
struct Course {
  std::size_t rows = 0;     ///< of an epoch
  std::size_t windows = 1;  ///< of an epoch
  /// The rows of a window, which stay until the next call; all windows are asked for in turn.
  std::function<const PackedRows&(std::size_t epoch, std::size_t window)> read = {};
  PackedRows held_out = {};
  SideWeights weights = {};
  std::vector<SideWeights> drawn = {};  ///< the same with the draws of each trainee that bootstraps
  double passes = 1.0;                  ///< how often there are other rows
  Progress* progress = nullptr;
  Communicator* ranks = nullptr;
};

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

Buffer copy(const Buffer& from) {
  Buffer to(from.size());
  std::copy_n(from.data(), from.size(), to.data());
  return to;
}

/// A network's parameters with all that Adam remembers. Each thread at work on a network has its
/// own and takes every step itself, to the same bits: the gradients of the others are then all that
/// travels between cores. (In cache lines of its own.)
struct alignas(64) Replica {
  Buffer parameters, transposed, first, second;
  Buffer sums;  ///< of a gradient, before others read it
  LargeVector<float, 64> scratch;
  std::size_t steps = 0;  ///< that it has taken

  explicit Replica(const Network& network)
      : parameters(network.shape().parameters),
        transposed(network.shape().transposed),
        first(network.shape().parameters),
        second(network.shape().parameters),
        sums(network.shape().parameters),
        scratch(network.scratch()) {}

  void copy(const Replica& from) {
    for (const auto part :
         {&Replica::parameters, &Replica::transposed, &Replica::first, &Replica::second})
      std::copy_n((from.*part).data(), (from.*part).size(), (this->*part).data());
    steps = from.steps;
  }
};

/// Gradients of the groups of a batch.
struct GroupGradients {
  std::vector<Buffer> groups;
  std::vector<const float*> places;  ///< where each begins

  void provide(std::size_t count, std::size_t parameters) {
    while (groups.size() < count) {
      groups.emplace_back(parameters);
      places.push_back(groups.back().data());
    }
  }
};

/// A network in training.
class Trainer {
 public:
  Trainer(const Trainee& trainee, std::size_t features, const Course& course,
          const SideWeights& weights, Progress* progress)
      : config_(trainee.config),
        seed_(trainee.seed),
        course_(course),
        progress_(progress),
        network_(make_network(features, config_)),
        shape_(network_->shape()),
        kernels_(kernels()),
        window_rows_(std::max<std::size_t>(1, (course.rows + course.windows - 1) / course.windows)),
        batch_(std::min(config_.batch_size, window_rows_)),
        steps_an_epoch_(course.windows * ((window_rows_ + batch_ - 1) / batch_)),
        // AdamW's decay where the configuration has none.
        weight_decay_(config_.weight_decay.value_or(
            4.5 / std::sqrt(course.passes * weights.effective_rows()))),
        team_(std::min(thread_share(), groups_of(config_.batch_size))) {
    for (std::size_t i = 0; i < team_.members(); ++i) replicas_.emplace_back(*network_);
    if (course.ranks != nullptr && course.ranks->size() > 1)
      over_ranks_.emplace(*course.ranks, shape_.parameters);
    if (trainee.bootstrap)
      balance_ = {course.weights.sum[0] / weights.sum[0], course.weights.sum[1] / weights.sum[1]};
    initialise();
  }

  bool done() const { return done_; }

  /// One window of an epoch; after the last one decides whether there is to be another epoch.
  void learn(const PackedRows& rows, std::size_t epoch, std::size_t window) {
    rows_ = &rows;
    if (balance_ && (course_.windows > 1 || factors_.empty())) draw_factors();
    order_.resize(rows.rows());
    random_order(order_, seed_, epoch * course_.windows + window);
    for (std::size_t begin = 0; begin < order_.size();) {
      const std::size_t left = order_.size() - begin, count = std::min(batch_, left);
      const std::size_t batches = over_ranks(count) ? 1 : batches_at_once(count, left);
      const double part = static_cast<double>(begin) / static_cast<double>(order_.size());
      look_up(static_cast<double>(epoch) +
                  (static_cast<double>(window) + part) / static_cast<double>(course_.windows),
              batches * count);
      learn_batches(begin, count, batches);
      begin += batches * count;
    }
    level_replicas(1);
    bring_up_to_date(replicas_[0], steps_);
    rows_seen_ += order_.size();
    if (window + 1 == course_.windows) end_epoch();
  }

  /// The parameters to keep.
  Trained take() {
    if (best_.size() == 0) best_ = copy(replicas_[0].parameters);
    const float* values = best_.data();
    if (!std::all_of(values, values + best_.size(), [](float v) { return std::isfinite(v); })) {
      throw Error("Mlp::fit: the training diverged: learning_rate is too high for these data");
    }
    return {std::move(network_), std::move(best_), std::move(history_)};
  }

 private:
  void end_epoch() {
    const double loss = std::exchange(loss_, 0.0);
    history_.push_back({loss / static_cast<double>(std::exchange(rows_seen_, 0)), 0.0});
    done_ = history_.size() == config_.epochs || !std::isfinite(loss);
    if (!std::isfinite(loss)) return;
    if (course_.held_out.rows() == 0) {
      if (progress_ != nullptr) progress_->merit("loss", history_.back().training);
      return;
    }
    const double now = held_out_loss();
    history_.back().held_out = now;
    if (progress_ != nullptr) progress_->merit("held-out loss", now);
    if (now < lowest_) {
      lowest_ = now;
      since_best_ = 0;
      best_ = copy(replicas_[0].parameters);
    } else if (++since_best_ >= config_.patience) {
      done_ = true;
    }
  }

  static constexpr std::size_t rows_between_looks = 16384;

  /// Every now and then: whether to stop, and how many epochs are done.
  void look_up(double epochs, std::size_t rows) {
    rows_since_look_ += rows;
    if (rows_since_look_ < rows_between_looks) return;
    rows_since_look_ = 0;
    check_stop();
    if (progress_ != nullptr) progress_->reach(epochs / static_cast<double>(config_.epochs));
  }

  /// What the weights of the rows at work are multiplied by, so that each side keeps its sum.
  void draw_factors() {
    factors_.resize(rows_->rows());
    for (std::size_t i = 0; i < factors_.size(); ++i)
      factors_[i] = static_cast<float>(bootstrap_draw(rows_->ids[i], seed_) *
                                       (*balance_)[rows_->denominator(i)]);
  }

  /// Weights uniform within ±1/√inputs and hidden biases within twice that: beside weights of six
  /// times this variance and biases 0 (He et al. 2015), a third less excess cross-entropy after as
  /// many epochs, with all activations.
  void initialise() {
    RandomStream random(seed_, "mlp-weights");
    std::vector<float> plain;
    const auto draw = [&](std::size_t count, double reach) {
      for (std::size_t i = 0; i < count; ++i)
        plain.push_back(static_cast<float>(reach * (2.0 * random.uniform() - 1.0)));
    };
    for (std::size_t l = 0; l < shape_.count; ++l) {
      const Layer& layer = shape_.layers[l];
      const double reach = 1.0 / std::sqrt(static_cast<double>(layer.in));
      draw(layer.in * layer.out, reach);
      draw(layer.out, l + 1 < shape_.count ? 2.0 * reach : 0.0);
    }
    for (Replica& replica : replicas_) {
      network_->pack(plain, replica.parameters.data());
      kernels_.transpose(shape_, replica.parameters.data(), replica.transposed.data());
    }
  }

  /// Whether other ranks do some of the groups of such a batch.
  bool over_ranks(std::size_t count) const {
    return over_ranks_ && for_ranks(group_rows(count)) && groups_of(count) > 1;
  }

  /// Batches of `count` rows that the team does in one go, of rows of which so many are left.
  static std::size_t batches_at_once(std::size_t count, std::size_t left) {
    return std::clamp<std::size_t>(rows_between_looks / count, 1,
                                   std::min(left / count, Team::most_rounds));
  }

  /// Steps with batches of `count` rows one after the other.
  void learn_batches(std::size_t begin, std::size_t count, std::size_t batches) {
    const std::size_t group = group_rows(count);
    groups_ = groups_of(count);
    const bool in_turns = replicas_.size() > 1;
    for (std::size_t i = 0; i < (in_turns ? 2 : 1); ++i)
      gradients_[i].provide(groups_, shape_.parameters);
    losses_.assign(groups_ * batches, 0.0);
    const bool over_ranks = this->over_ranks(count);
    const float scale = 1.0f / static_cast<float>(batch_);
    level_replicas(team_.shares(groups_) ? replicas_.size() : 1);
    team_.run(batches, groups_, [&](std::size_t batch, std::size_t g, std::size_t member) {
      const std::size_t step = steps_ + batch;
      bring_up_to_date(replicas_[member], step);
      if (over_ranks && !over_ranks_->is_mine(g)) return;
      const std::size_t here = begin + batch * count, first = here + g * group;
      const std::size_t rows = std::min(group, here + count - first);
      const Team::Tasks own = team_.share_of(member, groups_);
      const std::size_t next = g + 1 < own.end ? first + group : here + count + own.begin * group;
      losses_[g * batches + batch] =
          sum_group(first, rows, next, scale, gradients_of(step).groups[g], replicas_[member]);
    });
    if (over_ranks) {
      auto& gradients = gradients_of(steps_).groups;
      (*over_ranks_)([&](std::size_t g) { return gradients[g].data(); }, losses_,
                     gradients[0].data());
    }
    for (std::size_t batch = 0; batch < batches; ++batch) {
      double loss = 0.0;
      for (std::size_t g = 0; g < groups_; ++g) loss += losses_[g * batches + batch];
      loss_ += loss;
    }
    steps_ += batches;
    last_groups_ = over_ranks ? 1 : groups_;
  }

  /// Of the batch that step `step` (from 0) is taken with.
  GroupGradients& gradients_of(std::size_t step) {
    return gradients_[replicas_.size() > 1 ? step % 2 : 0];
  }

  /// Of `count` rows, after which those from `next` on will be asked for.
  double sum_group(std::size_t begin, std::size_t count, std::size_t next, float scale,
                   Buffer& gradient, Replica& replica) const {
    next = std::min(order_.size(), next);
    const Rows rows{rows_->data.data(),
                    rows_->stride,
                    order_.data() + begin,
                    count,
                    order_.data() + next,
                    order_.size() - next,
                    balance_ ? factors_.data() : nullptr,
                    replicas_.size() > 1 ? replica.sums.data() : nullptr};
    return kernels_.accumulate(shape_, static_cast<Loss>(config_.loss), replica.parameters.data(),
                               replica.transposed.data(), rows, scale, gradient.data(),
                               replica.scratch.data());
  }

  /// Step `step`, from 0.
  AdamStep adam_step(std::size_t step) const {
    const double t = static_cast<double>(step + 1);
    const double learning_rate =
        config_.learning_rate *
        rate(config_, step, steps_an_epoch_ * config_.epochs, steps_an_epoch_);
    AdamStep adam{};
    adam.learning_rate = static_cast<float>(learning_rate / (1.0 - std::pow(config_.beta1, t)));
    adam.beta1 = static_cast<float>(config_.beta1);
    adam.beta2 = static_cast<float>(config_.beta2);
    adam.second_scale = static_cast<float>(1.0 / (1.0 - std::pow(config_.beta2, t)));
    adam.epsilon = 1e-8f;
    adam.weight_decay = static_cast<float>(learning_rate * weight_decay_);
    adam.l2 = static_cast<float>(config_.l2);
    return adam;
  }

  /// Takes the last of `steps` steps, if it is missing. By who has a task of the batch after it, or
  /// between runs: as long as the task is not done, the gradients of the batch before stay.
  void bring_up_to_date(Replica& own, std::size_t steps) {
    if (own.steps == steps) return;
    const std::size_t groups = steps == steps_ ? last_groups_ : groups_;
    kernels_.adam(shape_, adam_step(own.steps), own.parameters.data(), own.transposed.data(),
                  {gradients_of(own.steps).places.data(), groups, replicas_.size() > 1},
                  own.first.data(), own.second.data());
    ++own.steps;
  }

  /// Between runs: gives the first `count` replicas what the one with most steps has. A thread that
  /// was put aside has none of the steps since then.
  void level_replicas(std::size_t count) {
    const auto newest =
        std::max_element(replicas_.begin(), replicas_.end(),
                         [](const Replica& a, const Replica& b) { return a.steps < b.steps; });
    for (std::size_t i = 0; i < count; ++i)
      if (replicas_[i].steps < newest->steps) replicas_[i].copy(*newest);
  }

  double held_out_loss() const {
    const PackedRows& held_out = course_.held_out;
    std::vector<std::uint32_t> rows(held_out.rows());
    std::iota(rows.begin(), rows.end(), 0u);
    const double sum = sum_blocks(
        rows.size(),
        [&](Block block) {
          auto scratch = network_->scratch();
          const Rows part{held_out.data.data(), held_out.stride, rows.data() + block.begin,
                          block.size()};
          return kernels_.accumulate(shape_, static_cast<Loss>(config_.loss),
                                     replicas_[0].parameters.data(), nullptr, part, 1.0f, nullptr,
                                     scratch.data());
        },
        loss_block);
    return sum / static_cast<double>(rows.size());
  }

  const Mlp::Config& config_;
  const std::uint64_t seed_;
  const Course& course_;
  Progress* progress_;
  std::unique_ptr<const Network> network_;
  const Shape& shape_;
  const Kernels& kernels_;
  const std::size_t window_rows_, batch_, steps_an_epoch_;
  const double weight_decay_;
  std::optional<std::array<double, 2>> balance_;  // of the sides, where the rows are bootstrapped
  std::optional<OrderedSum> over_ranks_;
  Team team_;
  std::deque<Replica> replicas_;             // one for each member of the team
  std::array<GroupGradients, 2> gradients_;  // of two batches in turn, where there are replicas
  std::size_t steps_ = 0;                    // before the batches at work,
  std::size_t last_groups_ = 0;              // and how many gradients the last of them has
  std::size_t groups_ = 0;                   // of a batch at work
  std::vector<double> losses_;               // of the groups of all batches at work
  std::size_t rows_since_look_ = 0;

  // Of the window and the epoch at work.
  const PackedRows* rows_ = nullptr;
  std::vector<std::uint32_t> order_;
  std::vector<float> factors_;
  double loss_ = 0.0;
  std::size_t rows_seen_ = 0;

  std::vector<Mlp::Epoch> history_;
  Buffer best_;
  double lowest_ = std::numeric_limits<double>::infinity();
  std::size_t since_best_ = 0;
  bool done_ = false;
};

/// Takes all networks through the course, window by window.
std::vector<Trained> train(const Course& course, std::size_t features,
                           std::span<const Trainee> trainees) {
  const std::size_t count = trainees.size();
  std::deque<Progress> parts;  // of each, where there are several
  if (count > 1)
    for (std::size_t k = 0; k < count; ++k)
      parts.emplace_back(course.progress, Progress::fine / count);
  std::vector<std::unique_ptr<Trainer>> trainers(count);
  parallel_tasks(count, [&](std::size_t k) {  // where they learn of their share of the threads
    trainers[k] = std::make_unique<Trainer>(
        trainees[k], features, course, trainees[k].bootstrap ? course.drawn[k] : course.weights,
        count > 1 ? &parts[k] : course.progress);
  });
  std::vector<Trainer*> at_work;
  for (const auto& trainer : trainers) at_work.push_back(trainer.get());
  for (std::size_t epoch = 0; !at_work.empty(); ++epoch) {
    for (std::size_t window = 0; window < course.windows; ++window) {
      const PackedRows& rows = course.read(epoch, window);
      parallel_tasks(at_work.size(),
                     [&](std::size_t k) { at_work[k]->learn(rows, epoch, window); });
    }
    std::erase_if(at_work, [](const Trainer* trainer) { return trainer->done(); });
  }
  std::vector<Trained> out;
  for (const auto& trainer : trainers) out.push_back(trainer->take());
  return out;
}

bool any_bootstraps(std::span<const Trainee> trainees) {
  return std::any_of(trainees.begin(), trainees.end(),
                     [](const Trainee& one) { return one.bootstrap; });
}

/// Beyond, sums of squares lose digits or overflow.
constexpr double least_variance = 1e-250;

/// Mean and standard deviation of a column whose squares leave the range of doubles, in units of
/// its largest value.
std::pair<double, double> moments_in_units(MatrixView x, std::size_t column,
                                           const std::vector<double>& weights) {
  double largest = 0.0, weight = 0.0, mean = 0.0, square = 0.0;
  for (std::size_t i = 0; i < x.rows(); ++i) {
    largest = std::max(largest, std::abs(x(i, column)));
    weight += weights[i];
  }
  if (largest == 0.0) return {0.0, 0.0};
  for (std::size_t i = 0; i < x.rows(); ++i) mean += weights[i] / weight * (x(i, column) / largest);
  for (std::size_t i = 0; i < x.rows(); ++i) {
    const double difference = x(i, column) / largest - mean;
    square += weights[i] / weight * difference * difference;
  }
  return {mean * largest, std::sqrt(square) * largest};
}

/// Weighted moments of rows that are in memory.
Scaling moments(MatrixView x, const std::vector<double>& weights) {
  const std::size_t cols = x.cols();
  struct Sums {
    std::vector<double> first, second;
    double weight = 0.0;
  };
  const auto sums_around = [&](const std::vector<double>& centre) {
    return reduce_blocks(
        x.rows(), default_block, Sums{},
        [&](Block block) {
          Sums sums{std::vector<double>(cols), std::vector<double>(cols)};
          vector_math::kernels().add_moments(
              {x.row(block.begin).data(), block.size(), cols, x.stride()},
              weights.data() + block.begin, centre.data(), sums.first.data(), sums.second.data());
          for (std::size_t i = block.begin; i < block.end; ++i) sums.weight += weights[i];
          return sums;
        },
        [&](Sums a, const Sums& b) {
          if (a.first.empty()) return b;
          for (std::size_t c = 0; c < cols; ++c) {
            a.first[c] += b.first[c];
            a.second[c] += b.second[c];
          }
          a.weight += b.weight;
          return a;
        });
  };
  // centred on the first row, so that a large offset costs no precision
  std::vector<double> mean(x.row(0).begin(), x.row(0).end());
  const Sums rough = sums_around(mean);
  for (std::size_t c = 0; c < cols; ++c) mean[c] += rough.first[c] / rough.weight;
  const Sums sums = sums_around(mean);
  Scaling result;
  for (std::size_t c = 0; c < cols; ++c) {
    const double variance = sums.second[c] / sums.weight;
    if (variance > least_variance && variance < 1.0 / least_variance) {
      result.add(mean[c], std::sqrt(variance));
      continue;
    }
    const auto [average, deviation] = moments_in_units(x, c, weights);
    result.add(average, deviation);
  }
  return result;
}

PackedRows pack_rows(const TrainingSet& data, const std::vector<double>& weights,
                     const std::vector<std::uint32_t>& rows, const Scaling& scaling) {
  PackedRows packed;
  packed.stride = (data.x.cols() + 1 + unit - 1) / unit * unit;
  packed.data = Buffer(rows.size() * packed.stride);
  auto mean = scaling.mean, scale = scaling.scale;
  mean.resize(packed.stride);
  scale.resize(packed.stride);
  const Inputs x{data.x.data(), data.x.stride(), data.x.rows(), mean.data(), scale.data()};
  parallel_blocks(rows.size(), default_block, [&](Block block) {
    float* const out = packed.data.data() + block.begin * packed.stride;
    kernels().standardise(x, data.x.cols(), rows.data() + block.begin, block.size(), out,
                          packed.stride);
    for (std::size_t i = 0; i < block.size(); ++i) {
      const std::size_t row = rows[block.begin + i];
      const auto weight = static_cast<float>(weights[row]);
      out[(i + 1) * packed.stride - 1] = data.denominator[row] ? -weight : weight;
    }
  });
  return packed;
}

/// Splits off the rows to hold out, a part of each side, and gives each side of both parts the
/// same mean weight again.
struct Split {
  std::vector<std::uint32_t> training, held_out;
};

Split split_rows(const TrainingSet& data, double part, std::vector<double>& weights) {
  std::array<std::vector<std::uint32_t>, 2> sides;
  std::array<std::size_t, 2> sizes{};
  for (auto& rows : sides) rows.resize(data.size() + 1);
  for (std::size_t i = 0; i < data.size(); ++i) {  // the sides may alternate: nothing branches
    const bool side = data.denominator[i] != 0, used = weights[i] > 0.0;
    sides[0][sizes[0]] = sides[1][sizes[1]] = static_cast<std::uint32_t>(i);
    sizes[0] += used && !side ? 1 : 0;
    sizes[1] += used && side ? 1 : 0;
  }
  for (std::size_t side = 0; side < 2; ++side) sides[side].resize(sizes[side]);
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
    random_order(order, derive_seed(data.seed, "mlp-hold-out", side), 0);
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

  /// x in these units.
  void add(std::span<const double> x, std::span<const double> units, double w) {  // West (1979)
    mean.resize(x.size());
    deviations.resize(x.size());
    ++rows;
    weight += w;
    squares += w * w;
    const double part = w / weight;
    for (std::size_t c = 0; c < x.size(); ++c) {
      const double value = x[c] / units[c], d = value - mean[c];
      mean[c] += part * d;
      deviations[c] += w * d * (value - mean[c]);
    }
  }
};

/// A stream of rows with what one pass over it tells, ready to be packed.
class StreamedRows {
 public:
  StreamedRows(const TrainingStream& stream, std::span<const Trainee> trainees)
      : trainees_(trainees),
        with_ids_(any_bootstraps(trainees)),
        seed_(derive_seed(stream.seed, "mlp-hold-out")),
        drawn_(trainees.size()) {
    constexpr double most = 262144;
    held_out_ = std::min(trainees.front().config.held_out,
                         most / static_cast<double>(std::max<std::size_t>(stream.rows, 1)));
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
      const double whole = 0.5 * (variance(training_[0]) + variance(training_[1])) + apart * apart;
      scaling_.add(0.5 * (training_[0].mean[c] + training_[1].mean[c]) * units_[c],
                   std::sqrt(whole) * units_[c]);
    }
  }

  /// That train.
  std::size_t rows() const { return training_[0].rows + training_[1].rows; }
  const Scaling& scaling() const { return scaling_; }
  SideWeights weights() const {
    return {{training_[0].weight, training_[1].weight},
            {training_[0].squares, training_[1].squares}};
  }
  /// With the draws of each trainee that bootstraps.
  const std::vector<SideWeights>& drawn() const { return drawn_; }
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
    if (features_ == 0) {
      features_ = window.x.cols();
      units_ = units_of(window.x);
    }
    check_same_size(function, "a row of a window", window.x.cols(), features_,
                    "features, as in the first");
    for (std::size_t i = 0; i < window.x.rows(); ++i) {
      const double weight = window.weights.empty() ? 1.0 : window.weights[i];
      if (weight == 0.0) continue;
      const bool side = window.denominator[i] != 0, held = is_held_out(window, i);
      (held ? held_ : training_)[side].add(window.x.row(i), units_, weight);
      if (held)
        keep(window, i, weight);
      else
        draw(window.groups[i], side, weight);
    }
  }

  /// 1, or where squares of the first values would leave the range of doubles, the largest of them.
  static std::vector<double> units_of(MatrixView x) {
    std::vector<double> out;
    for (std::size_t c = 0; c < x.cols(); ++c) {
      double largest = 0.0;
      for (std::size_t i = 0; i < x.rows(); ++i) largest = std::max(largest, std::abs(x(i, c)));
      const bool ordinary = largest == 0.0 || (largest > 1e-100 && largest < 1e100);
      out.push_back(ordinary ? 1.0 : largest);
    }
    return out;
  }

  void draw(std::int64_t group, bool side, double weight) {
    for (std::size_t k = 0; k < trainees_.size(); ++k)
      if (trainees_[k].bootstrap)
        drawn_[k].add(side, weight * bootstrap_draw(group, trainees_[k].seed));
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
    auto packed = pack_rows({window.x, window.denominator}, weights, rows, scaling_);
    if (with_ids_)
      for (const std::uint32_t i : rows) packed.ids.push_back(window.groups[i]);
    return packed;
  }

  std::span<const Trainee> trainees_;
  bool with_ids_;
  std::uint64_t seed_;
  double held_out_ = 0.0;
  std::size_t features_ = 0;
  std::vector<double> units_;  // of the sums
  std::array<SideSums, 2> training_, held_;
  std::array<double, 2> training_factor_{}, held_factor_{};
  std::vector<SideWeights> drawn_;
  TrainingRows held_rows_;
  Scaling scaling_;
};

std::size_t most_epochs(std::span<const Trainee> trainees) {
  std::size_t most = 0;
  for (const Trainee& one : trainees) most = std::max(most, one.config.epochs);
  return most;
}

}  // namespace

void Scaling::add(double average, double sd) {
  const bool constant = !(sd > 1e-12 * std::abs(average)) || !std::isfinite(1.0 / sd);
  mean.push_back(average);
  scale.push_back(constant ? 1.0 : 1.0 / sd);
}

std::unique_ptr<const Network> make_network(std::size_t features, const Mlp::Config& config) {
  std::vector<std::size_t> widths{features};
  widths.insert(widths.end(), config.hidden.begin(), config.hidden.end());
  return std::make_unique<const Network>(widths, static_cast<Activation>(config.activation));
}

std::size_t shares(const Mlp::Config& config) {
  return for_ranks(group_rows(config.batch_size)) ? groups_of(config.batch_size) : 1;
}

Training train(const TrainingSet& data, const TrainingEpochs* epochs,
               std::span<const Trainee> trainees) {
  const char* function = epochs == nullptr ? "Mlp::fit" : "Mlp::fit_epochs";
  std::vector<double> weights = detail::balanced_weights(function, data);
  if (data.size() > std::numeric_limits<std::uint32_t>::max()) {
    fail_argument(function, "rows", std::to_string(data.size()), "at most 4294967295");
  }
  Training out{moments(data.x, weights), {}};
  const Split split = split_rows(data, trainees.front().config.held_out, weights);
  PackedRows packed = pack_rows(data, weights, split.training, out.scaling);
  if (any_bootstraps(trainees)) packed.ids.assign(split.training.begin(), split.training.end());

  Course course;
  course.rows = split.training.size();
  course.read = [&](std::size_t epoch, std::size_t) -> const PackedRows& {
    if (epochs == nullptr || epoch == 0) return packed;
    const TrainingRows next = (*epochs)(epoch);
    check_same_size(function, "a row of an epoch", next.x.cols(), data.x.cols(),
                    "features, as in the first");
    const TrainingSet set{next.x, next.denominator, next.weights, data.seed};
    auto own = detail::balanced_weights(function, set);
    packed = pack_rows(set, own, split_rows(set, 0.0, own).training, out.scaling);
    return packed;
  };
  course.held_out = pack_rows(data, weights, split.held_out, out.scaling);
  for (const std::uint32_t i : split.training)
    course.weights.add(data.denominator[i] != 0, weights[i]);
  course.drawn.resize(trainees.size());
  parallel_tasks(trainees.size(), [&](std::size_t k) {
    if (!trainees[k].bootstrap) return;
    for (const std::uint32_t i : split.training)
      course.drawn[k].add(data.denominator[i] != 0,
                          weights[i] * bootstrap_draw(i, trainees[k].seed));
  });
  if (epochs != nullptr) course.passes = static_cast<double>(most_epochs(trainees));
  course.progress = data.progress;
  course.ranks = data.ranks;
  out.networks = train(course, data.x.cols(), trainees);
  return out;
}

Training train(const TrainingStream& stream, std::span<const Trainee> trainees) {
  const StreamedRows rows(stream, trainees);
  MadeAhead<PackedRows> ahead(most_epochs(trainees) * stream.windows, [&](std::size_t i) {
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
  course.weights = rows.weights();
  course.drawn = rows.drawn();
  course.progress = stream.progress;
  course.ranks = stream.ranks;
  return {rows.scaling(), train(course, rows.scaling().mean.size(), trainees)};
}

}  // namespace neyman::mlp
