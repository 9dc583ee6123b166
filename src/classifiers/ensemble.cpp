#include "neyman/classifiers/ensemble.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <iterator>
#include <map>
#include <span>
#include <utility>

#include "classifiers/bootstrap.hpp"
#include "neyman/core/check.hpp"
#include "neyman/core/error.hpp"
#include "neyman/core/parallel.hpp"
#include "neyman/core/random.hpp"

namespace neyman {

namespace {

using Members = std::vector<std::shared_ptr<const Classifier>>;

/// The weights of one member: those of the rows (or 1), each times the draw of its group (or row).
std::vector<double> bootstrap_weights(std::size_t rows, std::span<const double> weights,
                                      std::span<const std::int64_t> groups, std::uint64_t seed) {
  std::vector<double> out(rows);
  for (std::size_t i = 0; i < rows; ++i)
    out[i] = (weights.empty() ? 1.0 : weights[i]) *
             bootstrap_draw(groups.empty() ? static_cast<std::int64_t>(i) : groups[i], seed);
  return out;
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

void Ensemble::fit_members(std::uint64_t seed, Progress* progress, const Alone& alone,
                           const Together& together) {
  std::vector<std::unique_ptr<Classifier>> members;
  std::vector<std::vector<std::size_t>> tasks;     // the members that each trains
  std::map<double, std::size_t> task_of_held_out;  // of networks
  for (std::size_t k = 0; k < config_.members; ++k) {
    members.push_back(config_.of[k % config_.of.size()]->fresh());
    const auto* network = dynamic_cast<const Mlp*>(members[k].get());
    std::size_t task = tasks.size();
    if (together && network != nullptr)
      task = task_of_held_out.try_emplace(network->config().held_out, task).first->second;
    tasks.resize(std::max(tasks.size(), task + 1));
    tasks[task].push_back(k);
  }
  parallel_tasks(tasks.size(), [&](std::size_t t) {
    Progress part(progress, Progress::fine * tasks[t].size() / members.size());
    const auto own = [&](std::size_t k) { return derive_seed(seed, "ensemble", k); };
    const std::size_t first = tasks[t].front();
    if (!together || dynamic_cast<Mlp*>(members[first].get()) == nullptr)
      return alone(*members[first], first, own(first), part);
    std::vector<Mlp::Member> networks;
    for (const std::size_t k : tasks[t])
      networks.push_back({dynamic_cast<Mlp*>(members[k].get()), own(k), config_.bootstrap});
    together(networks, part);
  });
  members_.assign(std::make_move_iterator(members.begin()), std::make_move_iterator(members.end()));
}

void Ensemble::fit(const TrainingSet& data) {
  detail::balanced_weights("ensemble.fit", data);  // one message for all members
  TrainingSet shared = data;
  shared.ranks = nullptr;  // members are trained at the same time
  fit_members(
      data.seed, data.progress,
      [&](Classifier& member, std::size_t, std::uint64_t seed, Progress& progress) {
        TrainingSet own = shared;
        own.progress = &progress;
        own.seed = seed;
        std::vector<double> weights;
        if (config_.bootstrap) {
          weights = bootstrap_weights(data.size(), data.weights, {}, seed);
          own.weights = weights;
        }
        member.fit(own);
      },
      [&](const std::vector<Mlp::Member>& networks, Progress& progress) {
        TrainingSet own = shared;
        own.progress = &progress;
        Mlp::fit_together(networks, own);
      });
}

void Ensemble::fit_epochs(const TrainingEpochs& epochs, std::uint64_t seed, Progress* progress) {
  fit_members(
      seed, progress,
      [&](Classifier& member, std::size_t k, std::uint64_t own, Progress& part) {
        member.fit_epochs([&](std::size_t epoch) { return epochs(k * apart + epoch); }, own, &part);
      },
      nullptr);
}

bool Ensemble::streams() const {
  return std::all_of(config_.of.begin(), config_.of.end(),
                     [](const auto& one) { return one->streams(); });
}

void Ensemble::fit_stream(const TrainingStream& stream) {
  if (!streams()) return Classifier::fit_stream(stream);
  TrainingStream shared = stream;
  shared.ranks = nullptr;
  fit_members(
      stream.seed, stream.progress,
      [&](Classifier& member, std::size_t, std::uint64_t seed, Progress& progress) {
        TrainingStream own = shared;
        own.seed = seed;
        own.progress = &progress;
        own.read = [&](std::size_t epoch, std::size_t window) {
          auto rows = stream.read(epoch, window);
          if (config_.bootstrap)
            rows.weights = bootstrap_weights(rows.x.rows(), rows.weights, rows.groups, seed);
          return rows;
        };
        member.fit_stream(own);
      },
      [&](const std::vector<Mlp::Member>& networks, Progress& progress) {
        TrainingStream own = shared;
        own.progress = &progress;
        Mlp::fit_together(networks, own);
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
