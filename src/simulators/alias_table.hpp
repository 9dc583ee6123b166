#pragma once

#include <cstddef>
#include <span>
#include <vector>

#include "neyman/core/random.hpp"

namespace neyman::detail {

/// Draws indices with given weights in constant time (Walker's alias method, set up as by
/// Vose 1991): cell i keeps i with probability accept[i] and gives alias[i] otherwise.
class AliasTable {
 public:
  AliasTable() = default;
  /// Weights are not negative and not all zero; an index of weight 0 is never drawn.
  explicit AliasTable(std::span<const double> weights);

  std::size_t size() const { return accept_.size(); }
  std::size_t draw(RandomStream& random) const {
    const auto cell = static_cast<std::size_t>(random.below(accept_.size()));
    return random.uniform() < accept_[cell] ? cell : alias_[cell];
  }

  double accept(std::size_t cell) const { return accept_[cell]; }
  std::size_t alias(std::size_t cell) const { return alias_[cell]; }

 private:
  std::vector<double> accept_;
  std::vector<std::size_t> alias_;
};

}  // namespace neyman::detail
