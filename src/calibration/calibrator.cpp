#include "neyman/calibration/calibrator.hpp"

#include <algorithm>

#include "calibration/calibrator_list.hpp"
#include "calibration/scores.hpp"
#include "neyman/core/check.hpp"
#include "neyman/core/error.hpp"
#include "neyman/core/parallel.hpp"

namespace neyman {

namespace {

constexpr std::int64_t archive_version = 1;

const calibration::CalibratorEntry* find_entry(const std::string& kind) {
  const auto& list = calibration::calibrator_list();
  const auto at =
      std::find_if(list.begin(), list.end(), [&](const auto& entry) { return entry.kind == kind; });
  return at == list.end() ? nullptr : &*at;
}

// Multiplies each multiplicity with the event's weight; false where nothing is left.
bool apply_weights(std::span<double> multiplicities, const calibration::SideWeights& weights) {
  double total = 0.0;
  for (std::size_t i = 0; i < multiplicities.size(); ++i) {
    if (!weights.values.empty()) multiplicities[i] *= weights.values[i];
    total += multiplicities[i];
  }
  return total > 0.0;
}

}  // namespace

std::size_t Calibrator::count_outside(const Logits& logits) const {
  return static_cast<std::size_t>(std::count_if(
      logits.begin(), logits.end(), [this](double z) { return !(z >= low_ && z <= high_); }));
}

std::vector<std::unique_ptr<Calibrator>> Calibrator::fit_replicas(
    const CalibrationSet& data, std::size_t count, const ReplicaWeights& fill) const {
  const auto numerator_weights = calibration::scale_weights(
      "numerator", data.numerator, data.numerator_weights, data.weight_meaning);
  const auto denominator_weights = calibration::scale_weights(
      "denominator", data.denominator, data.denominator_weights, data.weight_meaning);
  std::vector<std::unique_ptr<Calibrator>> replicas(count);
  parallel_tasks(count, [&](std::size_t replica) {
    std::vector<double> numerator(data.numerator.size()), denominator(data.denominator.size());
    fill(replica, numerator, denominator);
    const bool usable = apply_weights(numerator, numerator_weights) &&
                        apply_weights(denominator, denominator_weights);
    replicas[replica] = fresh();
    replicas[replica]->fit(usable ? CalibrationSet{data.numerator, data.denominator, numerator,
                                                   denominator, WeightMeaning::counts}
                                  : data);
  });
  return replicas;
}

std::unique_ptr<Calibrator> make_calibrator(Settings settings) {
  Kinds kinds{"calibration", "which calibrator", "smooth", {}};
  for (const auto& entry : calibration::calibrator_list())
    kinds.names.emplace_back(entry.kind, entry.meaning);
  return settings.by_kind(
      kinds, [](const std::string& kind, Settings table) { return find_entry(kind)->make(table); });
}

std::unique_ptr<Calibrator> make_calibrator(const std::string& kind) {
  const auto* entry = find_entry(kind);
  if (entry == nullptr) {
    throw ArgumentError("make_calibrator: " + unknown_name(kind, "calibrator", calibrator_kinds()));
  }
  Settings defaults;
  return entry->make(defaults);
}

std::unique_ptr<Calibrator> load_calibrator(const Archive& archive) {
  if (const auto version = archive.integer("version"); version > archive_version) {
    throw FileError("calibrator: version is " + std::to_string(version) + ", but must be at most " +
                    std::to_string(archive_version));
  }
  const std::string& kind = archive.text("kind");
  if (find_entry(kind) == nullptr) {
    throw FileError(unknown_name(kind, "calibrator", calibrator_kinds()));
  }
  auto calibrator = make_calibrator(kind);
  calibrator->load(archive);
  return calibrator;
}

void save_calibrator(const Calibrator& calibrator, Archive& archive) {
  archive.set("version", archive_version);
  archive.set("kind", calibrator.kind());
  calibrator.save(archive);
}

std::vector<std::string> calibrator_kinds() {
  std::vector<std::string> kinds;
  for (const auto& entry : calibration::calibrator_list()) kinds.push_back(entry.kind);
  return kinds;
}

}  // namespace neyman
