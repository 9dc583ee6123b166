#include "neyman/classifiers/boosted_trees.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <optional>
#include <utility>
#include <vector>

#include "neyman/core/check.hpp"
#include "neyman/core/parallel.hpp"
#include "neyman/core/random.hpp"
#include "tree_model.hpp"

namespace neyman {

namespace {

/// XGBoost's threads wait for one another at every level of every tree: below some values a
/// thread that costs more than the work.
std::size_t worthwhile_threads(std::size_t values) {
  constexpr std::size_t values_a_thread = 100000;
  return std::min(threads(), 1 + values / values_a_thread);
}

/// Some rows of a training set as XGBoost sees them, both sides of equal weight.
struct Part {
  std::vector<std::uint8_t> denominator;
  std::vector<double> weights;
  detail::BoosterData table;

  Part(const TrainingSet& data, std::span<const double> all_weights,
       const detail::FeatureBins& bins, std::span<const std::size_t> rows)
      : table(codes_of(data, bins, rows), bins.columns(),
              worthwhile_threads(rows.size() * bins.columns())) {
    double total[2] = {0.0, 0.0};
    for (const std::size_t i : rows) {
      denominator.push_back(data.denominator[i]);
      weights.push_back(all_weights[i]);
      total[data.denominator[i] != 0] += all_weights[i];
    }
    for (std::size_t i = 0; i < weights.size(); ++i)
      weights[i] *= 0.5 * static_cast<double>(rows.size()) / total[denominator[i] != 0];
  }

  static std::vector<float> codes_of(const TrainingSet& data, const detail::FeatureBins& bins,
                                     std::span<const std::size_t> rows) {
    Matrix x(rows.size(), data.x.cols());
    for (std::size_t i = 0; i < rows.size(); ++i)
      std::copy_n(data.x.row(rows[i]).begin(), data.x.cols(), x.row(i).begin());
    return bins.codes(x);
  }

  std::size_t size() const { return weights.size(); }
};

struct Split {
  std::vector<std::size_t> training, held_out;
};

/// A random part of each side with some weight is held out; none where a side has too few rows.
Split split(const TrainingSet& data, std::span<const double> weights,
            const BoostedTrees::Config& config) {
  Split result;
  std::vector<std::size_t> sides[2];
  for (std::size_t i = 0; i < data.size(); ++i)
    if (weights[i] > 0.0) sides[data.denominator[i] != 0].push_back(i);
  const auto count = [&](const std::vector<std::size_t>& rows) {
    return static_cast<std::size_t>(config.held_out * static_cast<double>(rows.size()));
  };
  const bool hold = config.patience > 0 && count(sides[0]) > 0 && count(sides[1]) > 0;
  RandomStream random(data.seed, "boosted-trees.held-out");
  for (auto& rows : sides) {
    const std::size_t held = hold ? count(rows) : 0;
    for (std::size_t k = 0; k < held; ++k)
      std::swap(rows[k], rows[k + random.below(rows.size() - k)]);
    const auto middle = rows.begin() + static_cast<std::ptrdiff_t>(held);
    result.held_out.insert(result.held_out.end(), rows.begin(), middle);
    result.training.insert(result.training.end(), middle, rows.end());
  }
  std::sort(result.training.begin(), result.training.end());
  std::sort(result.held_out.begin(), result.held_out.end());
  return result;
}

double mean_loss(const Part& part, std::span<const float> margins) {
  return sum_blocks(part.size(),
                    [&](Block block) {
                      double sum = 0.0;
                      for (std::size_t i = block.begin; i < block.end; ++i) {
                        const double z = part.denominator[i] != 0 ? -margins[i] : margins[i];
                        sum += part.weights[i] *
                               (std::max(z, 0.0) + std::log1p(std::exp(-std::abs(z))));
                      }
                      return sum;
                    }) /
         static_cast<double>(part.size());
}

/// Derivatives of the cross-entropy at these margins, of a random part of the rows.
void differentiate(const Part& part, std::span<const float> margins,
                   const detail::DerivativeGrid& grid, double subsample, std::uint64_t seed,
                   detail::Derivatives& out) {
  parallel_blocks(part.size(), default_block, [&](Block block) {
    RandomStream random(seed, "rows", block.index);
    for (std::size_t i = block.begin; i < block.end; ++i) {
      const bool used = subsample >= 1.0 || random.uniform() < subsample;
      const double p = 1.0 / (1.0 + std::exp(-static_cast<double>(margins[i])));
      const double weight = used ? part.weights[i] : 0.0;
      out.first[i] = grid(weight * (p - (part.denominator[i] != 0 ? 1.0 : 0.0)));
      out.second[i] = grid(weight * p * (1.0 - p));
    }
  });
}

detail::Booster::Options options(const BoostedTrees::Config& config) {
  // XGBoost counts a leaf's curvature, Σ w p (1 − p), at most a quarter of its events.
  return {{"objective", "binary:logistic"},
          {"base_score", "0.5"},
          {"eta", fmt::format("{}", config.learning_rate)},
          {"max_depth", fmt::format("{}", config.depth)},
          {"min_child_weight", fmt::format("{}", 0.25 * config.min_leaf)},
          {"lambda", fmt::format("{}", config.l2)},
          {"colsample_bytree", fmt::format("{}", config.features)},
          {"max_bin", fmt::format("{}", config.bins)}};
}

}  // namespace

BoostedTrees::Config BoostedTrees::Config::from(Settings settings) {
  Config config;
  const Limits part{.low = 0.0, .high = 1.0, .low_open = true};
  config.rounds = settings.count({"rounds", "trees, at most"}, config.rounds, 1, 100000);
  config.learning_rate =
      settings.number({"learning_rate", "each tree's step is shortened by this factor"},
                      config.learning_rate, part);
  config.depth =
      settings.count({"depth", "splits from root to leaf, at most"}, config.depth, 1, 30);
  config.min_leaf = settings.number({"min_leaf", "events of mean weight that a leaf needs"},
                                    config.min_leaf, Limits::non_negative());
  config.l2 =
      settings.number({"l2", "penalty on the values of the leaves"}, config.l2, Limits::positive());
  config.subsample = settings.number({"subsample", "part of the rows that each tree sees"},
                                     config.subsample, part);
  config.features = settings.number({"features", "part of the features that each tree sees"},
                                    config.features, part);
  config.bins = settings.count({"bins", "bins of a feature"}, config.bins, 2, 65535);
  config.patience =
      settings.count({"patience", "trees without gain before it stops; 0: all rounds are grown"},
                     config.patience, 0, 100000);
  config.held_out = settings.number({"held_out", "part of the rows that decides when to stop"},
                                    config.held_out, Limits::inside(0.0, 1.0));
  return config;
}

BoostedTrees::BoostedTrees(const Config& config) : config_(config) {
  const char* function = "boosted-trees";
  const double tiny = std::numeric_limits<double>::min();
  check_at_least(function, "rounds", config.rounds, 1);
  check_in_range(function, "learning_rate", config.learning_rate, tiny, 1.0);
  check_in_range(function, "depth", static_cast<double>(config.depth), 1, 30);
  check_non_negative(function, "min_leaf", std::span(&config.min_leaf, 1));
  check_positive(function, "l2", config.l2);
  check_in_range(function, "subsample", config.subsample, tiny, 1.0);
  check_in_range(function, "features", config.features, tiny, 1.0);
  check_in_range(function, "bins", static_cast<double>(config.bins), 2, 65535);
  check_in_range(function, "held_out", config.held_out, tiny, 1.0 - 1e-9);
}

std::unique_ptr<Classifier> BoostedTrees::fresh() const {
  return std::make_unique<BoostedTrees>(config_);
}

void BoostedTrees::fit(const TrainingSet& data) {
  const std::vector<double> weights = detail::balanced_weights("boosted-trees.fit", data);
  const Split rows = split(data, weights, config_);
  detail::FeatureBins bins(data.x, weights, config_.bins);
  Part training(data, weights, bins, rows.training);
  std::optional<Part> held_out;
  std::vector<detail::BoosterData*> cached{&training.table};
  if (!rows.held_out.empty()) {
    held_out.emplace(data, weights, bins, rows.held_out);
    cached.push_back(&held_out->table);
  }

  detail::Booster booster(options(config_), cached);
  const detail::DerivativeGrid grid(
      *std::max_element(training.weights.begin(), training.weights.end()));
  detail::Derivatives derivatives(training.size());
  double best_loss = std::numeric_limits<double>::infinity();
  std::size_t best = 0;
  for (std::size_t round = 0; round < config_.rounds; ++round) {
    const std::uint64_t seed = derive_seed(data.seed, "boosted-trees", round);
    differentiate(training, booster.margins(training.table), grid, config_.subsample, seed,
                  derivatives);
    booster.grow(training.table, derivatives, seed);
    const double share = static_cast<double>(round + 1) / static_cast<double>(config_.rounds);
    if (!held_out) {
      detail::tell(data.progress, share, "trees", static_cast<double>(round + 1));
      continue;
    }
    const double loss = mean_loss(*held_out, booster.margins(held_out->table));
    detail::tell(data.progress, share, "held-out loss", loss);
    if (loss < best_loss) {
      best_loss = loss;
      best = round + 1;
    } else if (round + 1 - best >= config_.patience) {
      break;
    }
  }
  std::vector<detail::Booster> kept;
  kept.push_back(held_out ? booster.first(best) : std::move(booster));
  model_ = std::make_shared<const detail::TreeModel>(std::move(bins), std::move(kept));
}

std::size_t BoostedTrees::features() const { return fitted() ? model_->features() : 0; }

std::size_t BoostedTrees::trees() const { return fitted() ? model_->trees() : 0; }

Logits BoostedTrees::logits(MatrixView x) const {
  detail::check_input("boosted-trees.logits", *this, x);
  return Logits(model_->margins(x));
}

void BoostedTrees::save(Archive& archive) const {
  archive.set("rounds", config_.rounds);
  archive.set("learning_rate", config_.learning_rate);
  archive.set("depth", config_.depth);
  archive.set("min_leaf", config_.min_leaf);
  archive.set("l2", config_.l2);
  archive.set("subsample", config_.subsample);
  archive.set("features", config_.features);
  archive.set("bins", config_.bins);
  archive.set("patience", config_.patience);
  archive.set("held_out", config_.held_out);
  model_->save(archive.child("model"));
}

void BoostedTrees::load(const Archive& archive) {
  const auto count = [&](const char* key) {
    return static_cast<std::size_t>(archive.integer(key));
  };
  BoostedTrees loaded(Config{.rounds = count("rounds"),
                             .learning_rate = archive.number("learning_rate"),
                             .depth = count("depth"),
                             .min_leaf = archive.number("min_leaf"),
                             .l2 = archive.number("l2"),
                             .subsample = archive.number("subsample"),
                             .features = archive.number("features"),
                             .bins = count("bins"),
                             .patience = count("patience"),
                             .held_out = archive.number("held_out")});
  loaded.model_ = std::make_shared<const detail::TreeModel>(archive.child("model"));
  *this = std::move(loaded);
}

}  // namespace neyman
