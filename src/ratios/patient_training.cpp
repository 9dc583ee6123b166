#include "ratios/patient_training.hpp"

#include <algorithm>
#include <cmath>
#include <limits>

#include "classifiers/mlp_network.hpp"
#include "neyman/core/parallel.hpp"
#include "ratios/adam.hpp"

namespace neyman::across {

using separable::Moments;
using separable::scheduled;

namespace {

/// A batch's gradient is made no longer than this.
constexpr double longest_gradient = 5.0;
/// Adam's: shorter than usual, because responsibilities of components change quickly.
constexpr double memory_of_squares = 0.99;
/// Looks at the events that choose when to stop.
constexpr std::size_t most_looks = 25;
/// After so many looks without a better one, training goes back to the best and ends with a falling
/// rate over this part of all steps.
constexpr std::size_t patience = 7;
constexpr double last_part = 0.1;

}  // namespace

std::vector<std::uint32_t> PatientTraining::pass(std::span<const std::uint32_t> rows,
                                                 std::uint64_t seed, std::size_t epoch) {
  std::vector<std::uint32_t> order(rows.size());
  mlp::random_order(order, seed, epoch);
  for (auto& i : order) i = rows[i];
  return order;
}

double PatientTraining::run(std::span<const std::uint32_t> rows, const Options& options,
                            Progress* progress) {
  std::vector<Moments> moments;
  for (const auto& weights : weights_)
    moments.emplace_back(weights.gradient.size(), memory_of_squares);
  const std::size_t batch = std::min(options.batch_size, rows.size());
  const std::size_t per_epoch = rows.size() / batch, steps = options.epochs * per_epoch;
  // Few events are looked at after every pass over them.
  const std::size_t between =
      std::max<std::size_t>(1, steps / std::min(most_looks, options.epochs));
  std::vector<std::uint32_t> order;
  std::vector<std::vector<float>> best;
  double best_merit = -std::numeric_limits<double>::infinity();
  std::size_t end = steps, turned = steps, worse = 0;
  double rate_there = 0.0;
  const auto go_back = [&] {
    for (std::size_t w = 0; w < best.size(); ++w)
      std::copy(best[w].begin(), best[w].end(), weights_[w].values);
  };
  for (std::size_t step = 0; step < end; ++step) {
    const std::size_t at = step % per_epoch;
    if (at == 0) {
      check_stop();
      order = pass(rows, options.seed, step / per_epoch);
    }
    learn(std::span(order).subspan(at * batch, batch));
    shorten();
    const double now = static_cast<double>(step + 1);
    const double rate =
        step < turned
            ? options.learning_rate * scheduled(now / static_cast<double>(steps))
            : rate_there * static_cast<double>(end - step) / static_cast<double>(end - turned);
    for (auto& weights : weights_) {
      if (!(weights.decay > 0.0)) continue;
      const auto kept = static_cast<float>(1.0 - rate * weights.decay);
      for (std::size_t i = 0; i < weights.gradient.size(); ++i) weights.values[i] *= kept;
    }
    for (std::size_t w = 0; w < weights_.size(); ++w)
      moments[w].step(weights_[w].values, weights_[w].gradient, rate, step + 1);
    if ((step + 1) % between != 0 && step + 1 != end) continue;
    const double merit = look();
    if (progress != nullptr) {
      progress->reach(step + 1 == end ? 1.0 : now / static_cast<double>(steps));
      progress->merit("loss", -merit);
    }
    if (merit > best_merit) {
      worse = 0;
      best_merit = merit;
      rate_there = rate;
      best.resize(weights_.size());
      for (std::size_t w = 0; w < weights_.size(); ++w)
        best[w].assign(weights_[w].values, weights_[w].values + weights_[w].gradient.size());
    } else if (++worse == patience && turned == steps && !best.empty()) {
      turned = step + 1;
      end = std::min(steps,
                     turned + static_cast<std::size_t>(last_part * static_cast<double>(steps)));
      go_back();
    }
  }
  go_back();
  return best_merit;
}

void PatientTraining::shorten() {
  double square = 0.0;
  for (const auto& weights : weights_)
    for (const float g : weights.gradient)
      square += static_cast<double>(g) * static_cast<double>(g);
  if (!(square > longest_gradient * longest_gradient)) return;
  const auto factor = static_cast<float>(longest_gradient / std::sqrt(square));
  for (auto& weights : weights_)
    for (float& g : weights.gradient) g *= factor;
}

}  // namespace neyman::across
