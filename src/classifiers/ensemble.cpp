#include "neyman/classifiers/ensemble.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <span>
#include <utility>

#include "neyman/core/check.hpp"
#include "neyman/core/error.hpp"
#include "neyman/core/parallel.hpp"
#include "neyman/core/random.hpp"
#include "neyman/data/splits.hpp"

namespace neyman {

namespace {

using Members = std::vector<std::shared_ptr<const Classifier>>;

/// The weights of one member: those of the set, each times a draw of Exp(1).
std::vector<double> bootstrap_weights(const TrainingSet& data, std::uint64_t seed) {
  std::vector<double> weights(data.size());
  parallel_blocks(weights.size(), default_block, [&](Block block) {
    RandomStream random(seed, "bootstrap", block.index);
    random.fill_exponential(std::span(weights).subspan(block.begin, block.end - block.begin));
    if (data.weights.empty()) return;
    for (std::size_t i = block.begin; i < block.end; ++i) weights[i] *= data.weights[i];
  });
  return weights;
}

/// The same for rows of a stream, where each group has one draw.
void weigh(TrainingRows& rows, std::uint64_t seed) {
  rows.weights.resize(rows.groups.size(), 1.0);
  for (std::size_t i = 0; i < rows.weights.size(); ++i)
    rows.weights[i] *= -std::log1p(-hashed(rows.groups[i], seed));
}

/// Epochs of one member lie before those of the next: more than any training has.
constexpr std::size_t apart = std::size_t{1} << 32;

}  // namespace

Ensemble::Config Ensemble::Config::from(Settings settings) {
  Config config;
  const Key of("of",
               "what the members are: the name of a kind, a table of a classifier, or a list of "
               "such tables that the members take in turn");
  const auto add = [&](std::shared_ptr<const Classifier> member) {
    if (member != nullptr) config.of.push_back(std::move(member));
  };
  const bool named = settings.is_text("of"), one = settings.is_table("of");
  if (named) add(make_classifier(settings.choice(of, "mlp", classifier_kinds())));
  if (one) add(make_classifier(settings.table(of)));
  if (settings.describing() || (settings.has("of") && !named && !one)) {
    for (const Settings& each : settings.tables(of)) add(make_classifier(each));
    if (!settings.describing()) config.members = std::max<std::size_t>(config.of.size(), 1);
  }
  config.members =
      settings.count({"members", "how many; by default the length of the list where of is one"},
                     config.members, 1, 1000);
  config.bootstrap = settings.flag({"bootstrap",
                                    "weighs the rows of each member by chance, so that their "
                                    "spread holds the finite sample too"},
                                   config.bootstrap);
  return config;
}

Ensemble::Ensemble(Config config) : config_(std::move(config)) {
  check_at_least("ensemble", "members", config_.members, 1);
  for (const auto& one : config_.of)
    if (one == nullptr) fail_argument("ensemble", "of", "empty", "a classifier");
  if (config_.of.empty()) config_.of.push_back(make_classifier(Settings()));
}

std::unique_ptr<Classifier> Ensemble::fresh() const { return std::make_unique<Ensemble>(config_); }

void Ensemble::fit_members(
    std::uint64_t seed, Progress* progress,
    const std::function<void(Classifier&, std::size_t, std::uint64_t, Progress&)>& fit) {
  Members members(config_.members);
  parallel_tasks(members.size(), [&](std::size_t k) {
    std::unique_ptr<Classifier> member = config_.of[k % config_.of.size()]->fresh();
    Progress part(progress, Progress::fine / members.size());
    fit(*member, k, derive_seed(seed, "ensemble", k), part);
    members[k] = std::move(member);
  });
  members_ = std::move(members);
}

void Ensemble::fit(const TrainingSet& data) {
  detail::balanced_weights("ensemble.fit", data);  // one message for all members
  fit_members(data.seed, data.progress,
              [&](Classifier& member, std::size_t, std::uint64_t seed, Progress& progress) {
                TrainingSet own = data;
                own.progress = &progress;
                own.ranks = nullptr;  // members are trained at the same time
                own.seed = seed;
                std::vector<double> weights;
                if (config_.bootstrap) {
                  weights = bootstrap_weights(data, seed);
                  own.weights = weights;
                }
                member.fit(own);
              });
}

void Ensemble::fit_epochs(const TrainingEpochs& epochs, std::uint64_t seed, Progress* progress) {
  fit_members(
      seed, progress, [&](Classifier& member, std::size_t k, std::uint64_t own, Progress& part) {
        member.fit_epochs([&](std::size_t epoch) { return epochs(k * apart + epoch); }, own, &part);
      });
}

bool Ensemble::streams() const {
  return std::all_of(config_.of.begin(), config_.of.end(),
                     [](const auto& one) { return one->streams(); });
}

void Ensemble::fit_stream(const TrainingStream& stream) {
  if (!streams()) return Classifier::fit_stream(stream);
  fit_members(stream.seed, stream.progress,
              [&](Classifier& member, std::size_t k, std::uint64_t own, Progress& part) {
                TrainingStream rows = stream;
                rows.seed = own;
                rows.progress = &part;
                rows.ranks = nullptr;
                rows.read = [&](std::size_t epoch, std::size_t window) {
                  auto out = stream.read(k * apart + epoch, window);
                  if (config_.bootstrap) weigh(out, own);
                  return out;
                };
                member.fit_stream(rows);
              });
}

std::vector<Logits> Ensemble::member_logits(MatrixView x) const {
  detail::check_input("ensemble.logits", *this, x);
  std::vector<Logits> logits;
  for (const auto& member : members_) logits.push_back(member->logits(x));
  return logits;
}

Logits Ensemble::logits(MatrixView x) const {
  const std::vector<Logits> logits = member_logits(x);
  Logits mean(x.rows());
  for (const Logits& one : logits)
    for (std::size_t i = 0; i < x.rows(); ++i)
      mean[i] += one[i] / static_cast<double>(logits.size());
  return mean;
}

std::vector<double> Ensemble::spread(MatrixView x) const {
  const std::vector<Logits> logits = member_logits(x);
  std::vector<double> spread(x.rows(), 0.0);
  if (logits.size() < 2) return spread;
  const double count = static_cast<double>(logits.size());
  for (std::size_t i = 0; i < x.rows(); ++i) {
    double mean = 0.0, square = 0.0;
    for (const Logits& one : logits) mean += one[i] / count;
    for (const Logits& one : logits) square += (one[i] - mean) * (one[i] - mean);
    spread[i] = std::sqrt(square / (count - 1.0));
  }
  return spread;
}

bool Ensemble::differentiable() const {
  return std::all_of(config_.of.begin(), config_.of.end(),
                     [](const auto& one) { return one->differentiable(); });
}

Matrix Ensemble::gradient(MatrixView x) const {
  if (!differentiable()) return Classifier::gradient(x);
  detail::check_input("ensemble.gradient", *this, x);
  Matrix mean(x.rows(), x.cols());
  for (const auto& member : members_) {
    const Matrix one = member->gradient(x);
    for (std::size_t i = 0; i < one.values().size(); ++i)
      mean.values()[i] += one.values()[i] / static_cast<double>(members_.size());
  }
  return mean;
}

void Ensemble::save(Archive& archive) const {
  archive.set("members", config_.members);
  archive.set("bootstrap", config_.bootstrap);
  archive.set("kinds", config_.of.size());
  for (std::size_t k = 0; k < members_.size(); ++k)
    save_classifier(*members_[k], archive.child(fmt::format("member_{:03}", k)));
}

void Ensemble::load(const Archive& archive) {
  Config config{.members = static_cast<std::size_t>(archive.integer("members")),
                .bootstrap = archive.flag("bootstrap")};
  Members members;
  for (std::size_t k = 0; k < config.members; ++k)
    members.push_back(load_classifier(archive.child(fmt::format("member_{:03}", k))));
  // The members know how they were configured; those beyond `kinds` repeat the first.
  const auto kinds = static_cast<std::size_t>(archive.integer("kinds"));
  for (std::size_t k = 0; k < std::min(kinds, members.size()); ++k)
    config.of.push_back(members[k]->fresh());
  Ensemble loaded(std::move(config));
  loaded.members_ = std::move(members);
  *this = std::move(loaded);
}

}  // namespace neyman
