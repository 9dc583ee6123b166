#include "neyman/classifiers/random_forest.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <atomic>
#include <cmath>
#include <optional>
#include <span>
#include <utility>
#include <vector>

#include "neyman/core/check.hpp"
#include "neyman/core/parallel.hpp"
#include "neyman/core/progress.hpp"
#include "neyman/core/random.hpp"
#include "tree_model.hpp"

namespace neyman {

namespace {

detail::Booster::Options options(const RandomForest::Config& config, std::size_t features) {
  const double part =
      config.features > 0.0 ? config.features : 1.0 / std::sqrt(static_cast<double>(features));
  return {{"objective", "reg:squarederror"},
          {"base_score", "0"},
          {"eta", "1"},
          {"max_depth", fmt::format("{}", config.depth)},
          {"min_child_weight", fmt::format("{}", config.min_leaf)},
          {"lambda", fmt::format("{}", config.shrink)},
          {"colsample_bynode", fmt::format("{}", part)},
          {"max_bin", fmt::format("{}", config.bins)}};
}

// Trees that share a table and a booster; groups grow at the same time, a thread each.
constexpr std::size_t group_size = 10;

/// A tree fitted to y − ½ with these derivatives has the leaf value
/// Σ w (y − ½) / (Σ w + λ) = (D + λ/2) / (N + D + λ) − ½, whatever the other trees say.
detail::Booster grow_group(const RandomForest::Config& config, const TrainingSet& data,
                           std::span<const double> weights, std::span<const float> codes,
                           std::size_t columns, Block trees, std::atomic<std::size_t>& grown) {
  detail::BoosterData table(codes, columns, 1);
  detail::BoosterData* const cached[] = {&table};
  detail::Booster booster(options(config, columns), cached);
  constexpr double most_draws = 64.0;  // a Poisson(1) count does not reach it
  const detail::DerivativeGrid grid(*std::max_element(weights.begin(), weights.end()) *
                                    (config.bootstrap ? most_draws : 1.0));
  detail::Derivatives derivatives(data.size());
  for (std::size_t tree = trees.begin; tree < trees.end; ++tree) {
    check_stop();
    const std::uint64_t seed = derive_seed(data.seed, "random-forest", tree);
    RandomStream random(seed, "bootstrap");
    for (std::size_t i = 0; i < data.size(); ++i) {
      const double draws = config.bootstrap ? static_cast<double>(random.poisson(1.0)) : 1.0;
      const float weight = grid(draws * weights[i]);
      derivatives.first[i] = data.denominator[i] != 0 ? -0.5F * weight : 0.5F * weight;
      derivatives.second[i] = weight;
    }
    booster.grow(table, derivatives, seed);
    const auto all = static_cast<double>(++grown);
    detail::tell(data.progress, all / static_cast<double>(config.trees), "trees", all);
  }
  return booster;
}

}  // namespace

RandomForest::Config RandomForest::Config::from(Settings settings) {
  Config config;
  config.trees = settings.count({"trees", "how many trees"}, config.trees, 1, 100000);
  config.depth =
      settings.count({"depth", "splits from root to leaf, at most"}, config.depth, 1, 30);
  config.min_leaf = settings.number({"min_leaf", "events of mean weight that a leaf needs"},
                                    config.min_leaf, Limits::non_negative());
  config.shrink = settings.number(
      {"shrink", "draws the value of a leaf towards one half, in events of mean weight"},
      config.shrink, Limits::positive());
  config.features = settings.number(
      {"features", "part of the features tried at each split; 0: the square root of their number"},
      config.features, Limits::between(0.0, 1.0));
  config.bootstrap = settings.flag(
      {"bootstrap", "each tree learns from rows drawn with replacement"}, config.bootstrap);
  config.bins = settings.count({"bins", "bins of a feature"}, config.bins, 2, 65535);
  return config;
}

RandomForest::RandomForest(const Config& config) : config_(config) {
  const char* function = "random-forest";
  check_at_least(function, "trees", config.trees, 1);
  check_in_range(function, "depth", static_cast<double>(config.depth), 1, 30);
  check_non_negative(function, "min_leaf", std::span(&config.min_leaf, 1));
  check_positive(function, "shrink", config.shrink);
  check_in_range(function, "features", config.features, 0.0, 1.0);
  check_in_range(function, "bins", static_cast<double>(config.bins), 2, 65535);
}

std::unique_ptr<Classifier> RandomForest::fresh() const {
  return std::make_unique<RandomForest>(config_);
}

void RandomForest::fit(const TrainingSet& data) {
  const std::vector<double> weights = detail::balanced_weights("random-forest.fit", data);
  detail::FeatureBins bins(data.x, weights, config_.bins);
  const std::vector<float> codes = bins.codes(data.x);
  const auto groups = (config_.trees + group_size - 1) / group_size;
  std::vector<std::optional<detail::Booster>> grown(groups);
  std::atomic<std::size_t> trees_grown{0};
  parallel_blocks(config_.trees, group_size, [&](Block trees) {
    grown[trees.index] =
        grow_group(config_, data, weights, codes, bins.columns(), trees, trees_grown);
  });
  std::vector<detail::Booster> boosters;
  for (auto& booster : grown) boosters.push_back(std::move(*booster));
  model_ = std::make_shared<const detail::TreeModel>(std::move(bins), std::move(boosters));
  smallest_share_ = 0.5 * config_.shrink / (static_cast<double>(data.size()) + config_.shrink);
}

std::size_t RandomForest::features() const { return fitted() ? model_->features() : 0; }

Logits RandomForest::logits(MatrixView x) const {
  detail::check_input("random-forest.logits", *this, x);
  std::vector<double> values = model_->margins(x);
  for (double& value : values) {
    const double share = std::clamp(0.5 + value / static_cast<double>(config_.trees),
                                    smallest_share_, 1.0 - smallest_share_);
    value = std::log(share) - std::log1p(-share);
  }
  return Logits(std::move(values));
}

void RandomForest::save(Archive& archive) const {
  archive.set("trees", config_.trees);
  archive.set("depth", config_.depth);
  archive.set("min_leaf", config_.min_leaf);
  archive.set("shrink", config_.shrink);
  archive.set("features", config_.features);
  archive.set("bootstrap", config_.bootstrap);
  archive.set("bins", config_.bins);
  archive.set("smallest_share", smallest_share_);
  model_->save(archive.child("model"));
}

void RandomForest::load(const Archive& archive) {
  RandomForest loaded(Config{.trees = static_cast<std::size_t>(archive.integer("trees")),
                             .depth = static_cast<std::size_t>(archive.integer("depth")),
                             .min_leaf = archive.number("min_leaf"),
                             .shrink = archive.number("shrink"),
                             .features = archive.number("features"),
                             .bootstrap = archive.flag("bootstrap"),
                             .bins = static_cast<std::size_t>(archive.integer("bins"))});
  loaded.smallest_share_ = archive.number("smallest_share");
  loaded.model_ = std::make_shared<const detail::TreeModel>(archive.child("model"));
  *this = std::move(loaded);
}

}  // namespace neyman
