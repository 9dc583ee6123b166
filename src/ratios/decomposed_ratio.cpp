#include "neyman/ratios/decomposed_ratio.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "neyman/core/check.hpp"
#include "neyman/core/parallel.hpp"
#include "neyman/distributed/tasks.hpp"

namespace neyman {

namespace {

void check_samples(const std::vector<FoldedSample>& samples, std::size_t components) {
  check_same_size("DecomposedRatio", "samples", samples.size(), components,
                  "one for each component");
}

}  // namespace

std::size_t DecomposedRatio::pair_index(std::size_t c, std::size_t d) const {
  // Row c of the upper triangle begins after c rows of length n − 1, n − 2, …
  return c * (2 * components() - c - 1) / 2 + (d - c - 1);
}

/// q_c = 1 / Σ_c' w_c'(θ1) ρ_c'c, from log ρ of the pairs (c < c') at each event.
template <class PairLogRatio>
Matrix DecomposedRatio::compose(std::size_t events, PairLogRatio&& pair_log_ratio) const {
  const std::size_t count = components();
  const auto reference = weights_(reference_);
  Matrix sums(events, count);
  for (std::size_t c = 0; c < count; ++c)
    if (reference[c] > 0.0)
      for (std::size_t i = 0; i < events; ++i) sums(i, c) += reference[c];
  for (std::size_t c = 0; c < count; ++c)
    for (std::size_t d = c + 1; d < count; ++d) {
      if (reference[c] == 0.0 && reference[d] == 0.0) continue;
      const LogRatios logs = pair_log_ratio(pair_index(c, d));
      for (std::size_t i = 0; i < events; ++i) {
        const double ratio = std::exp(std::clamp(logs[i], -pair_limit, pair_limit));  // p_c/p_d
        sums(i, c) += reference[d] / ratio;
        sums(i, d) += reference[c] * ratio;
      }
    }
  for (double& value : sums.values()) value = 1.0 / value;
  return sums;
}

DecomposedRatio::DecomposedRatio(const std::vector<FoldedSample>& samples, MixtureWeights weights,
                                 std::vector<double> reference, const RatioConfig& config,
                                 Tasks* tasks)
    : DecomposedRatio(trained(samples, std::move(weights), std::move(reference), config, tasks)) {
  calibrate(samples, config, tasks);
}

std::vector<CrossFit::Pair> DecomposedRatio::members(
    const std::vector<FoldedSample>& samples) const {
  std::vector<CrossFit::Pair> out;
  for (std::size_t c = 0; c < components(); ++c)
    for (std::size_t d = c + 1; d < components(); ++d)
      out.push_back({samples[c], samples[d], out.size()});
  return out;
}

DecomposedRatio DecomposedRatio::trained(const std::vector<FoldedSample>& samples,
                                         MixtureWeights weights, std::vector<double> reference,
                                         const RatioConfig& config, Tasks* tasks) {
  DecomposedRatio out(std::move(weights), std::move(reference));
  check_samples(samples, out.components());
  const auto members = out.members(samples);
  Progress progress("train", members.size() * config.folds * Progress::fine);
  out.pairs_ = CrossFit::train(members, config, &progress, tasks);
  return out;
}

void DecomposedRatio::calibrate(const std::vector<FoldedSample>& samples, const RatioConfig& config,
                                Tasks* tasks) {
  check_samples(samples, components());
  const std::size_t count = components();
  std::size_t events = 0;
  for (const auto& sample : samples) events += sample.size();
  // Each event is in count − 1 pairs; then all of them normalise the ratio and its replicas.
  const std::size_t rounds = config.normalise ? config.replicas + 1 : 0;
  Progress progress("calibrate", events * (count - 1 + rounds), "events");
  CrossFit::calibrate(pairs_, members(samples), config, &progress, tasks);
  normalisation_.assign(count, 1.0);
  replica_normalisation_.assign(config.replicas, normalisation_);
  if (!config.normalise) return;
  std::vector<std::vector<Logits>> scores(count, std::vector<Logits>(pairs_.size()));
  for (std::size_t c = 0; c < count; ++c)
    parallel_tasks(pairs_.size(),
                   [&](std::size_t p) { scores[c][p] = pairs_[p].held_out_scores(samples[c]); });
  // Task 0 is the ratio itself, task b + 1 its replica b.
  const auto one = [&](std::size_t task) {
    auto means = held_out_means(samples, scores, task);
    progress.advance(events);
    return means;
  };
  auto means = spread<std::vector<double>>(tasks, config.replicas + 1, one,
                                           [](auto& bytes, auto& mean) { bytes(mean); });
  normalisation_ = std::move(means.front());
  std::move(means.begin() + 1, means.end(), replica_normalisation_.begin());
}

/// Z_c, the mean of q_c over the denominator. The plain average over events of the denominator
/// has no finite variance where p_c has the heavier tail, so that every held-out event serves,
/// weighted from the pooled sample m = Σ α_s p_s to the denominator by p(x|θ1)/m = 1/Σ α_s q_s:
///   Z_c = E_m[q_c / Σ_s α_s q_s],
/// whose terms are at most 1/α_c (the multistate bridge of Shirts and Chodera, 2008).
std::vector<double> DecomposedRatio::held_out_means(const std::vector<FoldedSample>& samples,
                                                    const std::vector<std::vector<Logits>>& scores,
                                                    std::size_t task) const {
  std::vector<double> shares;
  double all = 0.0;
  for (const auto& sample : samples) {
    shares.push_back(sample.samples().effective_size());
    all += shares.back();
  }
  for (double& share : shares) share /= all;

  std::vector<double> means(components(), 0.0);
  for (std::size_t s = 0; s < samples.size(); ++s) {
    const auto ratios = compose(samples[s].size(), [&](std::size_t p) {
      return task == 0 ? pairs_[p].held_out(samples[s], scores[s][p])
                       : pairs_[p].held_out(samples[s], scores[s][p], task - 1);
    });
    const auto weights = task == 0 ? samples[s].weights() : samples[s].replica_weights(task - 1);
    double total = 0.0;
    for (const double weight : weights) total += weight;
    if (!(total > 0.0)) continue;
    for (std::size_t i = 0; i < weights.size(); ++i) {
      double pooled = 0.0;
      for (std::size_t c = 0; c < components(); ++c) pooled += shares[c] * ratios(i, c);
      for (std::size_t c = 0; c < components(); ++c)
        means[c] += shares[s] * weights[i] / total * ratios(i, c) / pooled;
    }
  }
  return means;
}

DecomposedRatio::DecomposedRatio(const Archive& archive, const ParameterSpace& parameters)
    : MixtureRatio(
          [&] {
            std::vector<Expression> expressions;
            for (const auto& text : archive.get<std::vector<std::string>>("weights"))
              expressions.emplace_back(text, parameters);
            return MixtureWeights(std::move(expressions),
                                  static_cast<std::size_t>(archive.integer("components")));
          }(),
          archive.numbers("reference")),
      normalisation_(archive.numbers("normalisation")) {
  const auto refuse = [](const char* what) {
    throw FileError(fmt::format("the {} of a decomposed ratio do not fit its components", what));
  };
  if (!normalisation_.empty() && normalisation_.size() != components()) refuse("normalisations");
  for (std::size_t c = 0, p = 0; c < components(); ++c)
    for (std::size_t d = c + 1; d < components(); ++d, ++p) {
      const auto& from = archive.child(fmt::format("pair{}", p));
      pairs_.emplace_back().load(from, true);
      // What is trained alone has neither; what is calibrated has both.
      const bool calibrated = from.child("fold0").has_child("calibrator");
      if (calibrated == normalisation_.empty()) refuse("calibrators");
    }
  const auto& replicas = archive.get<Matrix>("replica_normalisation");
  if (replicas.rows() > 0 && replicas.cols() != components()) refuse("replicas");
  for (const auto& pair : pairs_)
    if (pair.replicas() != replicas.rows()) refuse("replicas");
  for (std::size_t b = 0; b < replicas.rows(); ++b)
    replica_normalisation_.emplace_back(replicas.row(b).begin(), replicas.row(b).end());
}

void DecomposedRatio::save(Archive& archive) const {
  archive.set("kind", kind());
  std::vector<std::string> texts;
  for (const auto& expression : weights_.expressions()) texts.push_back(expression.text());
  archive.set("weights", texts);
  archive.set("components", components());
  archive.set("reference", reference_);
  archive.set("normalisation", normalisation_);
  Matrix replicas(replica_normalisation_.size(), components());
  for (std::size_t b = 0; b < replicas.rows(); ++b)
    std::copy(replica_normalisation_[b].begin(), replica_normalisation_[b].end(),
              replicas.row(b).begin());
  archive.set("replica_normalisation", replicas);
  for (std::size_t p = 0; p < pairs_.size(); ++p)
    pairs_[p].save(archive.child(fmt::format("pair{}", p)));
}

std::size_t DecomposedRatio::replicas() const { return replica_normalisation_.size(); }

MixtureRatio::Scores DecomposedRatio::score(MatrixView x) const {
  Scores scores;
  for (const auto& pair : pairs_) scores.of_pair.push_back(pair.scores(x));
  return scores;
}

Matrix DecomposedRatio::component_ratios(MatrixView x) const {
  // In blocks, so that scores of all pairs and folds are never held for all events.
  Matrix out(x.rows(), components());
  parallel_blocks(x.rows(), default_block, [&](Block block) {
    const auto rows = x.rows(block.begin, block.end);
    const auto part = compose(
        rows.rows(), [&](std::size_t p) { return pairs_[p].log_ratios(pairs_[p].scores(rows)); });
    std::copy(part.values().begin(), part.values().end(), out.row(block.begin).begin());
  });
  return out;
}

Matrix DecomposedRatio::held_out_ratios(const FoldedSample& sample) const {
  return compose(sample.size(), [&](std::size_t p) {
    return pairs_[p].held_out(sample, pairs_[p].held_out_scores(sample));
  });
}

Matrix DecomposedRatio::replica_ratios(const Scores& scores, std::size_t replica) const {
  const std::size_t events = scores.of_pair.empty() ? 0 : scores.of_pair.front().rows();
  return compose(events,
                 [&](std::size_t p) { return pairs_[p].log_ratios(scores.of_pair[p], replica); });
}

std::vector<double> DecomposedRatio::replica_normalisation(std::size_t replica) const {
  check_at_least("replica_normalisation", "replicas", replicas(), replica + 1);
  return replica_normalisation_[replica];
}

std::size_t DecomposedRatio::count_outside(MatrixView x) const {
  // An event of component c is foreign to pairs without c, where its ratio hardly counts: it is
  // outside only where every pair says so.
  return reduce_blocks(
      x.rows(), default_block, std::size_t{0},
      [&](Block block) {
        const auto scores = score(x.rows(block.begin, block.end));
        std::size_t count = 0;
        for (std::size_t i = 0; i < block.size(); ++i) {
          bool outside = true;
          for (std::size_t p = 0; outside && p < pairs_.size(); ++p)
            outside = pairs_[p].outside(scores.of_pair[p].row(i));
          count += outside ? 1 : 0;
        }
        return count;
      },
      [](std::size_t a, std::size_t b) { return a + b; });
}

const CrossFit& DecomposedRatio::pair(std::size_t numerator, std::size_t denominator) const {
  if (!(numerator < denominator && denominator < components()))
    fail_argument("DecomposedRatio::pair", "pair", fmt::format("({}, {})", numerator, denominator),
                  "of two components, the lower index first");
  return pairs_[pair_index(numerator, denominator)];
}

LogRatios DecomposedRatio::pair_log_ratios(MatrixView x, std::size_t numerator,
                                           std::size_t denominator) const {
  if (numerator == denominator) return LogRatios(x.rows());
  const auto& trained = pair(std::min(numerator, denominator), std::max(numerator, denominator));
  auto out = trained.log_ratios(trained.scores(x));
  if (numerator > denominator)
    for (double& value : out.values()) value = -value;
  return out;
}

}  // namespace neyman
