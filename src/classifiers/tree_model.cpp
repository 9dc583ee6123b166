#include "tree_model.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>
#include <string>
#include <utility>

#include "neyman/core/parallel.hpp"

namespace neyman::detail {

namespace {

FeatureBins load_bins(const Archive& archive) {
  FeatureBins bins;
  bins.load(archive);
  return bins;
}

// Rows a call of XGBoost: enough to make its overhead small, few enough to share out.
constexpr std::size_t rows_at_once = 8192;

}  // namespace

TreeModel::TreeModel(FeatureBins bins, std::vector<Booster> boosters)
    : bins_(std::move(bins)), boosters_(std::move(boosters)) {
  for (Booster& booster : boosters_) booster.freeze(bins_.columns());
}

TreeModel::TreeModel(const Archive& archive) : bins_(load_bins(archive.child("bins"))) {
  for (std::int64_t k = 0; k < archive.integer("boosters"); ++k) {
    const std::string name = fmt::format("booster_{:04}", k);
    boosters_.emplace_back(archive.get<std::vector<std::uint8_t>>(name));
    boosters_.back().freeze(bins_.columns());
  }
}

std::size_t TreeModel::trees() const {
  std::size_t trees = 0;
  for (const Booster& booster : boosters_) trees += booster.trees();
  return trees;
}

std::vector<double> TreeModel::margins(MatrixView x) const {
  std::vector<double> margins(x.rows());
  parallel_blocks(x.rows(), rows_at_once, [&](Block block) {
    const std::vector<float> codes = bins_.codes(x.rows(block.begin, block.end));
    for (const Booster& booster : boosters_) {
      const std::vector<float> some = booster.margins(codes, bins_.columns());
      for (std::size_t i = 0; i < block.size(); ++i) margins[block.begin + i] += some[i];
    }
  });
  return margins;
}

void TreeModel::save(Archive& archive) const {
  bins_.save(archive.child("bins"));
  archive.set("boosters", boosters_.size());
  for (std::size_t k = 0; k < boosters_.size(); ++k)
    archive.set(fmt::format("booster_{:04}", k), boosters_[k].bytes());
}

std::vector<std::vector<Booster::Node>> TreeModel::nodes() const {
  std::vector<std::vector<Booster::Node>> out;
  for (const Booster& booster : boosters_) {
    auto trees = booster.nodes();
    std::move(trees.begin(), trees.end(), std::back_inserter(out));
  }
  return out;
}

}  // namespace neyman::detail
