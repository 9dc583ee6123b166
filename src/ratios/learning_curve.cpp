#include "neyman/ratios/learning_curve.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>

#include "neyman/core/check.hpp"
#include "neyman/core/parallel.hpp"
#include "neyman/core/random.hpp"
#include "neyman/data/splits.hpp"

namespace neyman {

namespace {

constexpr std::size_t asked_from = 64;
constexpr std::size_t most_asked = 5000, least_in_part = 50;
/// So far below the highest log r of an event another one counts at most.
constexpr double largest_log = 1e4;
/// A score so near to its highest value says little of what is missing.
constexpr double near_highest = 0.7;

}  // namespace

LearningCurve::LearningCurve(const Samples& events, const Train& train, std::uint64_t seed)
    : seed_(seed) {
  constexpr const char* function = "LearningCurve";
  check_at_least(function, "events.size()", events.size(), least_events);
  check_same_size(function, "events.theta", events.theta.rows(), events.size(),
                  "rows, one for each event");
  const std::array<double, 4> fractions = {0.125, 0.125, 0.25, 0.5};
  const auto split = derive_seed(seed, "split");
  const auto parts = events.groups.empty() ? random_split(events.size(), fractions, split)
                                           : group_split(events.groups, fractions, split);
  for (const auto& part : parts)
    check_at_least(function, "the number of events in a part, groups kept together,", part.size(),
                   least_in_part);
  // Evenly among all, because files may be sorted.
  const auto& rest = parts[3];
  std::vector<std::size_t> kept(std::min(rest.size(), most_asked));
  for (std::size_t i = 0; i < kept.size(); ++i) kept[i] = rest[i * rest.size() / kept.size()];
  held_out_ = events.take(kept);

  std::array<std::vector<double>, 3> scores;
  std::array<double, 3> lacks{};
  std::vector<std::size_t> rows;
  for (std::size_t k = 0; k < scores.size(); ++k) {
    rows.insert(rows.end(), parts[k].begin(), parts[k].end());
    std::sort(rows.begin(), rows.end());
    Samples some = events.take(rows);
    events_[k] = rows.size();
    lacks[k] =
        std::pow(static_cast<double>(rows.size()) / static_cast<double>(events.size()), -exponent);
    scores[k] = scores_of(*train(some));
    means_[k] = estimate(scores[k]).value;
    if (k + 1 == scores.size()) half_ = std::move(some);
  }
  // The slope against n^(−c), event by event.
  const double mean = (lacks[0] + lacks[1] + lacks[2]) / 3.0;
  double square = 0.0;
  for (const double value : lacks) square += (value - mean) * (value - mean);
  std::vector<double> missing(held_out_.size()), rise(held_out_.size());
  for (std::size_t i = 0; i < held_out_.size(); ++i) {
    for (std::size_t k = 0; k < scores.size(); ++k)
      missing[i] -= (lacks[k] - mean) / square * scores[k][i];
    rise[i] = scores[2][i] - scores[0][i];
  }
  missing_ = estimate(missing);
  rise_ = estimate(rise);
  known_ = estimate(scores[2]);
  at_half_ = std::move(scores[2]);
}

std::vector<double> LearningCurve::scores_of(const ParameterizedRatio& ratio) const {
  const std::size_t n = held_out_.size(), d = held_out_.theta.cols();
  std::vector<double> out(n);
  parallel_blocks(n, 16, [&](Block block) {
    Matrix points(asked_from + 1, d);
    for (std::size_t i = block.begin; i < block.end; ++i) {
      RandomStream random(seed_, "contrasts", i);  // the same for every model
      for (std::size_t j = 0; j <= asked_from; ++j)
        std::copy_n(held_out_.theta.row(j == 0 ? i : random.below(n)).data(), d,
                    points.row(j).data());
      auto logs =
          ratio.over(MatrixView(held_out_.x.row(i).data(), 1, held_out_.x.cols()))->at(points);
      // Up to a function of x, so that only differences count.
      double most = -std::numeric_limits<double>::infinity(), sum = 0.0;
      for (const double value : logs)
        if (!std::isnan(value)) most = std::max(most, value);
      for (double& value : logs)
        value = std::isfinite(most) && value - most > -largest_log ? value - most : -largest_log;
      for (const double value : logs) sum += std::exp(value);
      out[i] = logs[0] - std::log(sum / static_cast<double>(logs.size()));
    }
  });
  return out;
}

LearningCurve::Estimate LearningCurve::estimate(const std::vector<double>& values) const {
  double total = 0.0, sum = 0.0, square = 0.0;
  for (std::size_t i = 0; i < values.size(); ++i) {
    total += held_out_.weight(i);
    sum += held_out_.weight(i) * values[i];
  }
  const double mean = sum / total;
  for (std::size_t i = 0; i < values.size(); ++i)
    square += std::pow(held_out_.weight(i) * (values[i] - mean), 2);
  return {mean, std::sqrt(square) / total};
}

bool LearningCurve::saturated() const {
  return means_[2] > near_highest * std::log(static_cast<double>(asked_from + 1));
}

LearningCurve::Estimate LearningCurve::advantage_of(const Train& other, const Train& than) const {
  const auto before = than ? scores_of(*than(half_)) : at_half_;
  auto scores = scores_of(*other(half_));
  for (std::size_t i = 0; i < scores.size(); ++i) scores[i] -= before[i];
  return estimate(scores);
}

}  // namespace neyman
