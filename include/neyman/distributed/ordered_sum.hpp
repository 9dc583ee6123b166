#pragma once

#include <cstddef>
#include <functional>
#include <span>
#include <string>
#include <vector>

#include "neyman/distributed/communicator.hpp"

namespace neyman {

/// Sums blocks of numbers that the ranks have made, in the order of the blocks: the same bits for
/// any number of ranks. Block b is made by rank b mod R. Each rank sums a part of the numbers, and
/// all then have all sums.
class OrderedSum {
 public:
  /// Of blocks of `values` numbers each.
  OrderedSum(Communicator& ranks, std::size_t values);

  /// Whether a block is to be made here.
  bool is_mine(std::size_t block) const { return block % ranks_.size() == ranks_.rank(); }

  /// `block(b)` has the numbers of a block of this rank; `notes[b]` is one more number of it, and
  /// those of the other ranks are filled in. `total` may be one of the blocks. Collective.
  void operator()(const std::function<const float*(std::size_t)>& block, std::span<double> notes,
                  float* total);

 private:
  std::size_t begin(std::size_t rank) const { return values_ * rank / ranks_.size(); }
  std::size_t length(std::size_t rank) const { return begin(rank + 1) - begin(rank); }

  Communicator& ranks_;
  std::size_t values_;
  std::vector<std::string> to_, from_;
};

}  // namespace neyman
