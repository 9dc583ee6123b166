#include "neyman/ratios/cross_fit.hpp"

#include <fmt/format.h>

#include <cmath>
#include <limits>

#include "neyman/core/check.hpp"
#include "neyman/core/random.hpp"
#include "neyman/data/sample_stream.hpp"
#include "neyman/data/splits.hpp"
#include "neyman/distributed/tasks.hpp"

namespace neyman {

FoldedSample::FoldedSample(Samples samples, const RatioConfig& config, std::uint64_t stream,
                           std::shared_ptr<const SampleStream> all)
    : samples_(std::move(samples)),
      fold_(samples_.size()),
      seed_(derive_seed(config.seed, "sample", stream)),
      all_(std::move(all)) {
  samples_.check("FoldedSample");
  const auto seed = derive_seed(seed_, "folds");
  if (streamed())
    check_same_size("FoldedSample", "groups", samples_.groups.size(), size(), "one an event");
  events_ = streamed()                ? hashed_k_fold(samples_.groups, config.folds, seed)
            : samples_.groups.empty() ? k_fold(samples_.size(), config.folds, seed)
                                      : group_k_fold(samples_.groups, config.folds, seed);
  for (std::size_t k = 0; k < events_.size(); ++k)
    for (const std::size_t event : events_[k]) fold_[event] = static_cast<std::uint16_t>(k);
}

FoldedSample::FoldedSample(const FoldedSample& whole, std::span<const std::size_t> chosen,
                           std::vector<double> weights)
    : samples_(whole.samples_.take(chosen)),
      fold_(chosen.size()),
      events_(whole.events_.size()),
      seed_(whole.seed_),
      chosen_(whole.events_.size()) {
  check_same_size("FoldedSample", "weights", weights.size(), chosen.size(), "one a chosen event");
  if (whole.streamed() || !whole.chosen_.empty())
    fail_argument("FoldedSample", "the whole", "a stream or itself a part", "a sample in memory");
  samples_.weights = std::move(weights);
  samples_.check("FoldedSample");
  constexpr std::size_t absent = std::numeric_limits<std::size_t>::max();
  std::vector<std::size_t> own(whole.size(), absent);
  for (std::size_t i = 0; i < chosen.size(); ++i) own[chosen[i]] = i;
  for (std::size_t k = 0; k < events_.size(); ++k) {
    const auto& all = whole.events_[k];
    chosen_[k].of = all.size();
    for (std::size_t place = 0; place < all.size(); ++place) {
      const std::size_t event = own[all[place]];
      if (event == absent) continue;
      fold_[event] = static_cast<std::uint16_t>(k);
      events_[k].push_back(event);
      chosen_[k].places.push_back(place);
    }
  }
}

std::size_t FoldedSample::training_events() const { return streamed() ? all_->rows() : size(); }

Samples FoldedSample::training_window(std::size_t fold, std::size_t epoch, std::size_t window,
                                      std::size_t windows) const {
  std::vector<std::size_t> chosen;
  if (streamed()) {
    const auto events = all_->window({derive_seed(seed_, "windows", fold), epoch, window, windows});
    const auto seed = derive_seed(seed_, "folds");
    for (std::size_t i = 0; i < events.size(); ++i)
      if (hashed_fold(events.groups[i], events_.size(), seed) != fold) chosen.push_back(i);
    return events.take(chosen);
  }
  const auto seed = derive_seed(seed_, fmt::format("windows/{}", fold), epoch);
  for (std::size_t i = 0; i < size(); ++i)
    if (fold_[i] != fold && hashed_fold(static_cast<std::int64_t>(i), windows, seed) == window)
      chosen.push_back(i);
  auto out = samples_.take(chosen);
  if (out.groups.empty()) out.groups.assign(chosen.begin(), chosen.end());
  return out;
}

std::vector<double> FoldedSample::weights() const {
  return samples_.weighted() ? samples_.weights : std::vector<double>(size(), 1.0);
}

void FoldedSample::replica_counts(std::size_t replica, std::size_t fold,
                                  std::span<double> counts) const {
  check_same_size("replica_counts", "counts", counts.size(), events_[fold].size(),
                  "one an event of the fold");
  RandomStream random(seed_, "bootstrap", replica * events_.size() + fold);
  const auto draw = [&](std::span<double> to) {
    for (double& count : to) count = static_cast<double>(random.poisson(1.0));
  };
  if (chosen_.empty()) return draw(counts);
  std::vector<double> whole(chosen_[fold].of);
  draw(whole);
  for (std::size_t i = 0; i < counts.size(); ++i) counts[i] = whole[chosen_[fold].places[i]];
}

std::vector<double> FoldedSample::replica_weights(std::size_t replica) const {
  auto out = weights();
  for (std::size_t fold = 0; fold < events_.size(); ++fold) {
    std::vector<double> counts(events_[fold].size());
    replica_counts(replica, fold, counts);
    for (std::size_t i = 0; i < counts.size(); ++i) out[events_[fold][i]] *= counts[i];
  }
  return out;
}

namespace {

/// The events of one side that a fold holds out: their logits and weights.
struct HeldOut {
  std::vector<double> logits, weights;
};

HeldOut held_out_side(const FoldedSample& sample, const Classifier& classifier, std::size_t fold) {
  const auto& events = sample.fold_events(fold);
  HeldOut out{classifier.logits(sample.samples().x.take(events)).release(), {}};
  if (sample.samples().weighted())
    for (const std::size_t event : events) out.weights.push_back(sample.samples().weights[event]);
  return out;
}

/// The rows that train a fold, where they are read from the disk.
TrainingStream training_stream(const CrossFit::Pair& pair, std::size_t fold) {
  TrainingStream out;
  out.rows = pair.numerator.training_events() + pair.denominator.training_events();
  out.windows = TrainingStream::windows_for(out.rows, pair.numerator.samples().features());
  out.read = [pair, fold, windows = out.windows](std::size_t epoch, std::size_t window) {
    TrainingRows rows;
    rows.x = Matrix(0, pair.numerator.samples().features());
    const auto add = [&](const FoldedSample& side, std::uint8_t label) {
      const auto events = side.training_window(fold, epoch, window, windows);
      if (events.size() == 0) return;
      rows.x.append(events.x);
      rows.denominator.insert(rows.denominator.end(), events.size(), label);
      for (std::size_t i = 0; i < events.size(); ++i) rows.weights.push_back(events.weight(i));
      rows.groups.insert(rows.groups.end(), events.groups.begin(), events.groups.end());
    };
    add(pair.numerator, 0);
    add(pair.denominator, 1);
    return rows;
  };
  return out;
}

/// What a configuration names, else the default.
const Classifier& classifier_of(const RatioConfig& config) {
  static const auto otherwise = make_classifier("mlp");
  return config.classifier ? *config.classifier : *otherwise;
}
const Calibrator& calibrator_of(const RatioConfig& config) {
  static const auto otherwise = make_calibrator("smooth");
  return config.calibrator ? *config.calibrator : *otherwise;
}

std::unique_ptr<Classifier> train_fold(const CrossFit::Pair& pair, const RatioConfig& config,
                                       std::size_t fold, Progress* progress, Communicator* ranks) {
  auto classifier = classifier_of(config).fresh();
  Progress part(progress, Progress::fine);
  const auto seed = derive_seed(config.seed, fmt::format("train/{}", pair.number), fold);
  if (pair.numerator.streamed() || pair.denominator.streamed()) {
    auto stream = training_stream(pair, fold);
    stream.seed = seed;
    stream.progress = &part;
    stream.ranks = ranks;
    classifier->fit_stream(stream);
    return classifier;
  }
  Matrix x(0, pair.numerator.samples().features());
  std::vector<std::uint8_t> labels;
  std::vector<double> weights;
  const auto add = [&](const FoldedSample& side, std::uint8_t label) {
    std::vector<std::size_t> events;
    for (std::size_t i = 0; i < side.size(); ++i)
      if (side.fold(i) != fold) events.push_back(i);
    x.append(side.samples().x.take(events));
    labels.insert(labels.end(), events.size(), label);
    for (const std::size_t i : events) weights.push_back(side.samples().weight(i));
  };
  add(pair.numerator, 0);
  add(pair.denominator, 1);
  classifier->fit({x, labels, weights, seed, &part, ranks});
  return classifier;
}

}  // namespace

void CrossFit::fit(const FoldedSample& numerator, const FoldedSample& denominator,
                   const RatioConfig& config, std::uint64_t pair, Tasks* tasks) {
  const std::vector<Pair> pairs = {{numerator, denominator, pair}};
  auto one = train(pairs, config, nullptr, tasks);
  calibrate(one, pairs, config, nullptr, tasks);
  *this = std::move(one.front());
}

std::vector<CrossFit> CrossFit::train(const std::vector<Pair>& pairs, const RatioConfig& config,
                                      Progress* progress, Tasks* tasks) {
  for (const auto& pair : pairs)
    check_same_size("CrossFit::fit", "denominator", pair.denominator.samples().features(),
                    pair.numerator.samples().features(), "features, as the numerator");
  const std::size_t count = pairs.size() * config.folds;
  auto* const ranks = together(tasks, count, classifier_of(config).shares());
  const auto one = [&](std::size_t task) {
    return train_fold(pairs[task / config.folds], config, task % config.folds, progress, ranks);
  };
  const Archived fields{
      [](const std::unique_ptr<Classifier>& made, Archive& to) { save_classifier(*made, to); },
      [](const Archive& from) { return load_classifier(from); }};
  std::vector<std::unique_ptr<Classifier>> made;
  if (ranks == nullptr)
    made = spread<std::unique_ptr<Classifier>>(tasks, count, one, fields);
  else
    for (std::size_t task = 0; task < count; ++task) made.push_back(one(task));
  std::vector<CrossFit> out(pairs.size());
  for (std::size_t task = 0; task < made.size(); ++task)
    out[task / config.folds].classifiers_.push_back(std::move(made[task]));
  return out;
}

void CrossFit::calibrate(std::vector<CrossFit>& trained, const std::vector<Pair>& pairs,
                         const RatioConfig& config, Progress* progress, Tasks* tasks) {
  for (const auto& one : trained)
    check_same_size("CrossFit::calibrate", "classifiers", one.folds(), config.folds, "one a fold");
  const auto one = [&](std::size_t task) {
    const std::size_t p = task / config.folds, fold = task % config.folds;
    auto made = trained[p].calibrate_fold(pairs[p], config, fold);
    if (progress != nullptr)
      progress->advance(pairs[p].numerator.fold_events(fold).size() +
                        pairs[p].denominator.fold_events(fold).size());
    return made;
  };
  const Archived fields{[](const Calibrators& made, Archive& to) {
                          for (std::size_t i = 0; i < made.size(); ++i)
                            save_calibrator(*made[i], to.child(std::to_string(i)));
                        },
                        [](const Archive& from) {
                          Calibrators out;
                          while (from.has_child(std::to_string(out.size())))
                            out.push_back(load_calibrator(from.child(std::to_string(out.size()))));
                          return out;
                        }};
  auto made = spread<Calibrators>(tasks, pairs.size() * config.folds, one, fields);
  for (auto& cleared : trained) {
    cleared.calibrators_.clear();
    cleared.replica_calibrators_.clear();
    cleared.replica_calibrators_.resize(config.replicas);
  }
  for (std::size_t task = 0; task < made.size(); ++task) {
    auto& into = trained[task / config.folds];
    into.calibrators_.push_back(std::move(made[task].front()));
    for (std::size_t b = 0; b < config.replicas; ++b)
      into.replica_calibrators_[b].push_back(std::move(made[task][b + 1]));
  }
}

CrossFit::Calibrators CrossFit::calibrate_fold(const Pair& pair, const RatioConfig& config,
                                               std::size_t fold) const {
  const auto top = held_out_side(pair.numerator, *classifiers_[fold], fold);
  const auto bottom = held_out_side(pair.denominator, *classifiers_[fold], fold);
  const CalibrationSet set{top.logits, bottom.logits, top.weights, bottom.weights};
  Calibrators out;
  const auto& calibrator = calibrator_of(config);
  out.push_back(calibrator.fresh());
  out.back()->fit(set);
  auto replicas = calibrator.fit_replicas(
      set, config.replicas,
      [&](std::size_t replica, std::span<double> top_counts, std::span<double> bottom_counts) {
        pair.numerator.replica_counts(replica, fold, top_counts);
        pair.denominator.replica_counts(replica, fold, bottom_counts);
      });
  for (auto& replica : replicas) out.push_back(std::move(replica));
  return out;
}

Matrix CrossFit::scores(MatrixView x) const {
  Matrix out(x.rows(), folds());
  for (std::size_t k = 0; k < folds(); ++k) {
    const auto logits = classifiers_[k]->logits(x);
    for (std::size_t i = 0; i < x.rows(); ++i) out(i, k) = logits[i];
  }
  return out;
}

Logits CrossFit::held_out_scores(const FoldedSample& sample) const {
  Logits out(sample.size());
  for (std::size_t k = 0; k < folds(); ++k) {
    const auto& events = sample.fold_events(k);
    const auto logits = classifiers_[k]->logits(sample.samples().x.take(events));
    for (std::size_t i = 0; i < events.size(); ++i) out[events[i]] = logits[i];
  }
  return out;
}

LogRatios CrossFit::average(const Matrix& scores, const Calibrators& calibrators) const {
  check_same_size("CrossFit::log_ratios", "scores", scores.cols(), folds(), "one a fold");
  LogRatios out(scores.rows());
  for (std::size_t k = 0; k < folds(); ++k) {
    const auto part = calibrators[k]->log_ratios(Logits(scores.column(k)));
    for (std::size_t i = 0; i < out.size(); ++i) out[i] += part[i];
  }
  for (double& value : out.values()) value /= static_cast<double>(folds());
  return out;
}

LogRatios CrossFit::log_ratios(const Matrix& scores) const { return average(scores, calibrators_); }

LogRatios CrossFit::log_ratios(const Matrix& scores, std::size_t replica) const {
  check_at_least("CrossFit::log_ratios", "replicas", replicas(), replica + 1);
  return average(scores, replica_calibrators_[replica]);
}

LogRatios CrossFit::uncalibrated(const Matrix& scores) const {
  LogRatios out(scores.rows());
  for (std::size_t i = 0; i < out.size(); ++i) {
    for (const double z : scores.row(i)) out[i] -= z;
    out[i] /= static_cast<double>(folds());
  }
  return out;
}

namespace {

LogRatios held_out_ratios(const FoldedSample& sample, const Logits& scores,
                          const std::vector<std::unique_ptr<Calibrator>>& calibrators) {
  LogRatios out(sample.size());
  for (std::size_t k = 0; k < calibrators.size(); ++k) {
    const auto& events = sample.fold_events(k);
    Logits part(events.size());
    for (std::size_t i = 0; i < events.size(); ++i) part[i] = scores[events[i]];
    const auto ratios = calibrators[k]->log_ratios(part);
    for (std::size_t i = 0; i < events.size(); ++i) out[events[i]] = ratios[i];
  }
  return out;
}

}  // namespace

LogRatios CrossFit::held_out(const FoldedSample& sample, const Logits& scores) const {
  return held_out_ratios(sample, scores, calibrators_);
}

LogRatios CrossFit::held_out(const FoldedSample& sample, const Logits& scores,
                             std::size_t replica) const {
  return held_out_ratios(sample, scores, replica_calibrators_[replica]);
}

LogRatios CrossFit::held_out_by_others(const FoldedSample& sample, const Logits& scores) const {
  LogRatios out(sample.size());
  for (std::size_t k = 0; k < folds(); ++k) {
    const auto& events = sample.fold_events(k);
    Logits part(events.size());
    for (std::size_t i = 0; i < events.size(); ++i) part[i] = scores[events[i]];
    for (std::size_t other = 0; other < folds(); ++other) {
      if (other == k && folds() > 1) continue;
      const auto ratios = calibrators_[other]->log_ratios(part);
      const double share = 1.0 / static_cast<double>(std::max<std::size_t>(folds() - 1, 1));
      for (std::size_t i = 0; i < events.size(); ++i) out[events[i]] += share * ratios[i];
    }
  }
  return out;
}

bool CrossFit::outside(std::span<const double> scores) const {
  for (std::size_t k = 0; k < folds(); ++k)
    if (scores[k] >= calibrators_[k]->low() && scores[k] <= calibrators_[k]->high()) return false;
  return true;
}

void CrossFit::save(Archive& archive) const {
  archive.set("folds", folds());
  archive.set("replicas", replicas());
  for (std::size_t k = 0; k < folds(); ++k) {
    auto& fold = archive.child(fmt::format("fold{}", k));
    save_classifier(*classifiers_[k], fold.child("classifier"));
    if (!calibrators_.empty()) save_calibrator(*calibrators_[k], fold.child("calibrator"));
  }
  for (std::size_t b = 0; b < replicas(); ++b) {
    auto& replica = archive.child(fmt::format("replica{}", b));
    for (std::size_t k = 0; k < folds(); ++k)
      save_calibrator(*replica_calibrators_[b][k], replica.child(fmt::format("fold{}", k)));
  }
}

void CrossFit::load(const Archive& archive, bool may_be_uncalibrated) {
  const auto folds = static_cast<std::size_t>(archive.integer("folds"));
  const auto replicas = static_cast<std::size_t>(archive.integer("replicas"));
  classifiers_.clear();
  calibrators_.clear();
  replica_calibrators_.clear();
  if (folds < 1) throw FileError("a ratio has no folds");
  for (std::size_t k = 0; k < folds; ++k) {
    const auto& fold = archive.child(fmt::format("fold{}", k));
    classifiers_.push_back(load_classifier(fold.child("classifier")));
    if (fold.has_child("calibrator"))
      calibrators_.push_back(load_calibrator(fold.child("calibrator")));
  }
  const bool trained_alone = may_be_uncalibrated && calibrators_.empty();
  if (!trained_alone && calibrators_.size() != folds)
    throw FileError(
        fmt::format("a ratio of {} folds has {} calibrators", folds, calibrators_.size()));
  for (std::size_t b = 0; b < replicas; ++b) {
    const auto& replica = archive.child(fmt::format("replica{}", b));
    replica_calibrators_.emplace_back();
    for (std::size_t k = 0; k < folds; ++k)
      replica_calibrators_[b].push_back(load_calibrator(replica.child(fmt::format("fold{}", k))));
  }
}

}  // namespace neyman
