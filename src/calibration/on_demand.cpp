#include "neyman/calibration/on_demand.hpp"

#include <utility>

#include "neyman/calibration/smooth.hpp"
#include "neyman/core/check.hpp"
#include "neyman/core/error.hpp"

namespace neyman {

namespace {

[[noreturn]] void fail_archive(const char* function) {
  throw ArgumentError(std::string(function) +
                      ": a calibration on demand needs the simulator, but must be one of "
                      "interpolate, smooth or none to be kept in a file");
}

}  // namespace

OnDemandCalibration::OnDemandCalibration(std::size_t parameters, Simulate simulate, Config config)
    : parameters_(parameters), simulate_(std::move(simulate)), config_(std::move(config)) {
  if (!simulate_) fail_argument("OnDemandCalibration", "simulate", "empty", "a function");
  check_at_least("OnDemandCalibration", "cache", config_.cache, 1);
  if (config_.calibrator == nullptr) config_.calibrator = std::make_shared<SmoothCalibrator>();
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
  ++fits_;
  const std::lock_guard lock(mutex_);
  const auto [entry, added] = kept_.try_emplace(key, std::move(fitted));
  auto result = entry->second;
  if (added) {
    order_.push_back(key);
    if (order_.size() > config_.cache) {
      kept_.erase(order_.front());
      order_.pop_front();
    }
  }
  return result;
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
