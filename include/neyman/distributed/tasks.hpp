#pragma once

#include <cstddef>
#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "neyman/core/parallel.hpp"
#include "neyman/distributed/communicator.hpp"
#include "neyman/distributed/packing.hpp"

namespace neyman {

/// Who does many independent tasks, where it is not this process alone. A null pointer to one
/// stands for this process: see `spread`.
class Tasks {
 public:
  virtual ~Tasks() = default;

  /// What `work` gives for each task of [0, count), by its number; empty for a task that is none of
  /// this process' business. `at_once` tasks run at a time in each process, 0: as many as threads.
  /// @throw what a task throws, on every rank the same.
  virtual std::vector<std::string> run(std::size_t count, std::size_t at_once,
                                       const std::function<std::string(std::size_t)>& work) = 0;
  /// The ranks, where all take part and may as well do one task together; else null.
  virtual Communicator* ranks() { return nullptr; }
};

/// The ranks that do each of `count` tasks together, one task after the other, rather than each its
/// own: where a task can be cut into `shares` such that this is faster. Null: each its own.
Communicator* together(Tasks* tasks, std::size_t count, std::size_t shares);

/// Tasks over the ranks of a communicator. Each takes a few at a time as it gets through, so that
/// tasks may differ in length; all ranks then have all results. Which rank did what leaves no trace
/// in them. To be called from one thread, by every rank, not inside another task.
class RankTasks final : public Tasks {
 public:
  explicit RankTasks(Communicator& ranks) : ranks_(ranks) {}
  std::vector<std::string> run(std::size_t count, std::size_t at_once,
                               const std::function<std::string(std::size_t)>& work) override;
  Communicator* ranks() override { return &ranks_; }

 private:
  Communicator& ranks_;
};

/// What `work` gives on rank 0, which alone does it; what it throws, all throw. Collective.
std::string from_first(Communicator& ranks, const std::function<std::string()>& work);

/// The results of `work` for each task of [0, count), by its number: in this process where `tasks`
/// is null, else by those who share them. `fields` lists the fields of a T for packing.hpp; a T of
/// a task that nobody here is asked for stays as it is made.
template <class T, class Work, class Fields>
std::vector<T> spread(Tasks* tasks, std::size_t count, Work&& work, Fields&& fields,
                      std::size_t at_once = 0) {
  std::vector<T> out(count);
  if (tasks == nullptr) {
    const auto one = [&](Block block) { out[block.index] = work(block.index); };
    at_once > 0 ? waiting_blocks(count, 1, at_once, one) : parallel_blocks(count, 1, one);
    return out;
  }
  const auto all = tasks->run(count, at_once, [&](std::size_t i) {
    const T made = work(i);
    Packer bytes;
    fields(bytes, made);
    return bytes.take();
  });
  for (std::size_t i = 0; i < count; ++i) {
    if (all[i].empty()) continue;
    Unpacker bytes(all[i]);
    fields(bytes, out[i]);
  }
  return out;
}

}  // namespace neyman
