#pragma once

#include <cstddef>
#include <functional>
#include <utility>
#include <vector>

// Loops over fixed blocks. How the work is cut depends on its size alone, never on the number
// of threads, and partial results are combined in the order of the blocks: the same bits come
// out on 1 or N threads.
namespace neyman {

/// Sets how many threads the library uses; 0 means all of the machine's.
void set_threads(std::size_t count);
std::size_t threads();

inline constexpr std::size_t default_block = 4096;

/// A block's index and its items [begin, end).
struct Block {
  std::size_t index, begin, end;
  std::size_t size() const { return end - begin; }
};

/// Calls `work` for each block of [0, count), in parallel, in no fixed order. The first
/// exception is thrown again after the loop stopped. Throws Interrupted on a requested stop.
void parallel_blocks(std::size_t count, std::size_t block_size,
                     const std::function<void(Block)>& work);

/// The same for work that waits, for other programs for instance: `at_once` threads of its own,
/// whatever the number of threads that the library uses.
void waiting_blocks(std::size_t count, std::size_t block_size, std::size_t at_once,
                    const std::function<void(Block)>& work);

/// The same with one item a block: for few, large tasks.
inline void parallel_tasks(std::size_t count, const std::function<void(std::size_t)>& work) {
  parallel_blocks(count, 1, [&](Block block) { work(block.index); });
}

/// Maps each block to a T in parallel and folds the results in the order of the blocks.
template <class T, class Map, class Fold>
T reduce_blocks(std::size_t count, std::size_t block_size, T initial, Map&& map, Fold&& fold) {
  const std::size_t blocks = block_size == 0 ? 0 : (count + block_size - 1) / block_size;
  std::vector<T> partial(blocks, initial);
  parallel_blocks(count, block_size, [&](Block block) { partial[block.index] = map(block); });
  for (auto& value : partial) initial = fold(std::move(initial), std::move(value));
  return initial;
}

/// Σ f(i) over [0, count), the same bits for any number of threads.
double sum_blocks(std::size_t count, const std::function<double(Block)>& block_sum,
                  std::size_t block_size = default_block);

}  // namespace neyman
