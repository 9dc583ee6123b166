#include "neyman/calibration/on_demand.hpp"

#include <algorithm>
#include <utility>

#include "neyman/calibration/smooth.hpp"
#include "neyman/core/check.hpp"
#include "neyman/core/error.hpp"
#include "neyman/core/parallel.hpp"
#include "neyman/core/random.hpp"

namespace neyman {

namespace {

[[noreturn]] void fail_archive(const char* function) {
  throw ArgumentError(std::string(function) +
                      ": a calibration on demand needs the simulator, but must be one of "
                      "interpolate, smooth or none to be kept in a file");
}

/// Scores of both sides in fine cells, so that a replica is a few thousand counts.
class ScoreCells {
 public:
  explicit ScoreCells(const OnDemandCalibration::Scores& scores)
      : weights_{scores.numerator_weights, scores.denominator_weights} {
    const std::size_t tops = scores.numerator.size();
    std::vector<std::pair<double, std::size_t>> all;
    for (std::size_t i = 0; i < tops; ++i) all.emplace_back(scores.numerator[i], i);
    for (std::size_t i = 0; i < scores.denominator.size(); ++i)
      all.emplace_back(scores.denominator[i], tops + i);
    std::sort(all.begin(), all.end());
    cell_of_[0].resize(tops);
    cell_of_[1].resize(scores.denominator.size());
    const std::size_t cells = std::min(most, all.size());
    for (std::size_t c = 0; c < cells; ++c) {
      const std::size_t begin = c * all.size() / cells, end = (c + 1) * all.size() / cells;
      double sum = 0.0;
      for (std::size_t i = begin; i < end; ++i) {
        const auto [score, event] = all[i];
        sum += score;
        cell_of_[event >= tops][event >= tops ? event - tops : event] =
            static_cast<std::uint32_t>(c);
      }
      scores_.push_back(sum / static_cast<double>(end - begin));
    }
  }

  std::span<const double> scores() const { return scores_; }

  /// What falls into each cell, each event as often as Poisson's law says.
  std::vector<double> draw(std::size_t side, RandomStream random) const {
    std::vector<double> out(scores_.size(), 0.0);
    for (std::size_t i = 0; i < cell_of_[side].size(); ++i)
      out[cell_of_[side][i]] += static_cast<double>(random.poisson(1.0)) *
                                (weights_[side].empty() ? 1.0 : weights_[side][i]);
    return out;
  }
  bool weighted() const { return !weights_[0].empty() || !weights_[1].empty(); }

 private:
  static constexpr std::size_t most = 2000;
  std::span<const double> weights_[2];
  std::vector<double> scores_;             // mean of each cell
  std::vector<std::uint32_t> cell_of_[2];  // of each event
};

}  // namespace

OnDemandCalibration::OnDemandCalibration(std::size_t parameters, Simulate simulate, Config config)
    : parameters_(parameters), simulate_(std::move(simulate)), config_(std::move(config)) {
  if (!simulate_) fail_argument("OnDemandCalibration", "simulate", "empty", "a function");
  check_at_least("OnDemandCalibration", "cache", config_.cache, 1);
  if (config_.calibrator == nullptr) config_.calibrator = std::make_shared<SmoothCalibrator>();
}

void OnDemandCalibration::forget() const {
  const std::lock_guard lock(mutex_);
  kept_.clear();
  order_.clear();
}

std::shared_ptr<const Calibrator> OnDemandCalibration::at(std::span<const double> point) const {
  check_same_size("OnDemandCalibration", "point", point.size(), parameters_,
                  "one for each parameter");
  check_finite("OnDemandCalibration", "point", point);
  const std::vector<double> key(point.begin(), point.end());
  {
    const std::lock_guard lock(mutex_);
    if (const auto found = kept_.find(key); found != kept_.end()) return found->second;
  }
  // Outside of the lock: two threads may do the same work, with the same result.
  const auto scores = simulate_(point);
  auto fitted = config_.calibrator->fresh();
  fitted->fit(
      {scores.numerator, scores.denominator, scores.numerator_weights, scores.denominator_weights});
  const std::lock_guard lock(mutex_);
  const auto [entry, added] = kept_.try_emplace(key, std::move(fitted));
  auto result = entry->second;
  if (added) {
    ++fits_;
    order_.push_back(key);
    if (order_.size() > config_.cache) {
      kept_.erase(order_.front());
      order_.pop_front();
    }
  }
  return result;
}

std::vector<std::unique_ptr<Calibrator>> OnDemandCalibration::replicas(
    std::span<const double> point, std::size_t count, std::uint64_t seed) const {
  check_same_size("OnDemandCalibration", "point", point.size(), parameters_,
                  "one for each parameter");
  check_finite("OnDemandCalibration", "point", point);
  const auto scores = simulate_(point);
  ++fits_;
  const ScoreCells cells(scores);
  std::vector<std::unique_ptr<Calibrator>> out(count);
  parallel_tasks(count, [&](std::size_t b) {
    const auto top = cells.draw(0, RandomStream(seed, "bootstrap-numerator", b));
    const auto bottom = cells.draw(1, RandomStream(seed, "bootstrap-denominator", b));
    const auto any = [](const std::vector<double>& counts) {
      return std::any_of(counts.begin(), counts.end(), [](double v) { return v > 0.0; });
    };
    out[b] = config_.calibrator->fresh();
    if (any(top) && any(bottom))
      out[b]->fit({cells.scores(), cells.scores(), top, bottom,
                   cells.weighted() ? WeightMeaning::automatic : WeightMeaning::counts});
    else  // nothing left of a side
      out[b]->fit({scores.numerator, scores.denominator, scores.numerator_weights,
                   scores.denominator_weights});
  });
  return out;
}

LogRatios OnDemandCalibration::log_ratios(const Logits& logits,
                                          std::span<const double> point) const {
  return at(point)->log_ratios(logits);
}

std::size_t OnDemandCalibration::count_outside(const Logits& logits,
                                               std::span<const double> point) const {
  return at(point)->count_outside(logits);
}

void OnDemandCalibration::save(Archive&) const { fail_archive("OnDemandCalibration::save"); }

void OnDemandCalibration::load(const Archive&) { fail_archive("OnDemandCalibration::load"); }

}  // namespace neyman
