#include "neyman/distributed/tasks.hpp"

#include <algorithm>
#include <mutex>

#include "neyman/core/error.hpp"
#include "neyman/core/progress.hpp"

namespace neyman {

namespace {

/// Tasks that are taken at once: few enough that the ranks end together, many enough that short
/// tasks do not wait for the counter.
std::size_t share_of(std::size_t count, std::size_t takers) {
  constexpr std::size_t turns = 16, most = 64;
  return std::clamp<std::size_t>(count / (turns * takers), 1, most);
}

}  // namespace

Communicator* together(Tasks* tasks, std::size_t count, std::size_t shares) {
  Communicator* ranks = tasks == nullptr ? nullptr : tasks->ranks();
  return ranks != nullptr && std::min(ranks->size(), shares) > count ? ranks : nullptr;
}

std::string from_first(Communicator& ranks, const std::function<std::string()>& work) {
  if (ranks.size() == 1) return work();
  std::exception_ptr error;
  std::string made;
  if (ranks.first()) {
    try {
      made = work();
    } catch (const Error&) {
      error = std::current_exception();
    }
  }
  Packer packed;
  packed(error, made);
  const auto bytes = ranks.broadcast(packed.take());
  std::exception_ptr told;
  Unpacker from(bytes);
  from(told, made);
  // Rank 0 has the error itself, with all that belongs to it.
  if (error) std::rethrow_exception(error);
  if (told) std::rethrow_exception(told);
  return made;
}

std::vector<std::string> RankTasks::run(std::size_t count, std::size_t at_once,
                                        const std::function<std::string(std::size_t)>& work) {
  ranks_.restart();
  const std::size_t loops = at_once > 0 ? at_once : threads();
  const std::size_t share = share_of(count, ranks_.size() * loops);
  Packer mine;
  std::mutex mutex;
  const auto one = [&](std::size_t task) {
    check_stop();
    const auto made = work(task);
    const std::lock_guard lock(mutex);
    mine(task, made);
  };
  const auto loop = [&](Block) {
    try {
      for (std::size_t i = ranks_.take(share); i < count; i = ranks_.take(share))
        for (std::size_t task = i; task < std::min(count, i + share); ++task) one(task);
    } catch (...) {
      ranks_.take(count);  // nobody begins another task
      throw;
    }
  };
  std::exception_ptr error;
  try {
    at_once > 0 ? waiting_blocks(loops, 1, loops, loop) : parallel_blocks(loops, 1, loop);
  } catch (const Error&) {
    error = std::current_exception();
  }
  Packer packed;
  packed(error, mine.take());

  std::vector<std::string> out(count);
  for (const auto& bytes : ranks_.gather(packed.take())) {
    std::string results;
    Unpacker from(bytes);
    from(error, results);
    if (error) std::rethrow_exception(error);
    for (Unpacker rest(results); !rest.empty();) {
      std::size_t task = 0;
      rest(task);
      rest(out.at(task));
    }
  }
  return out;
}

}  // namespace neyman
