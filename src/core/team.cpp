#include "core/team.hpp"

#include <algorithm>
#include <cassert>

namespace neyman {

namespace {

constexpr int spins_before_others = 1500;  // some ten microseconds: who is late keeps its tasks
constexpr int spins_before_yield = 2000;
constexpr int yields_before_sleep = 200;
constexpr int count_bits = 12;
constexpr std::uint64_t count_mask = (std::uint64_t{1} << count_bits) - 1;
static_assert(Team::most_rounds <= count_mask && Team::most_tasks <= count_mask);

void pause_briefly() {
#if defined(__x86_64__) || defined(__i386__)
  __builtin_ia32_pause();
#endif
}

/// The number of a run and two counts in one word: of rounds and tasks, or of the round and the
/// tasks that were claimed of it. Numbers grow, so words of later runs are larger.
std::uint64_t word(std::uint64_t number, std::size_t upper, std::size_t lower) {
  return number << 2 * count_bits | upper << count_bits | lower;
}
std::uint64_t number_of(std::uint64_t word) { return word >> 2 * count_bits; }
std::size_t upper_of(std::uint64_t word) { return word >> count_bits & count_mask; }
std::size_t lower_of(std::uint64_t word) { return word & count_mask; }

Team::Tasks part_of(std::size_t tasks, std::size_t share, std::size_t shares) {
  if (share >= shares) return {0, 0};
  return {share * tasks / shares, (share + 1) * tasks / shares};
}

}  // namespace

void Pace::add(double seconds_a_task) {
  if (stage_ == Stage::decided) {
    if (++runs_ == runs_between_trials) {
      stage_ = Stage::together;
      runs_ = 0;
    }
    return;
  }
  times_[runs_++] = seconds_a_task;
  if (runs_ < trial) return;
  runs_ = 0;
  const auto middle = times_.begin() + trial / 2;  // whatever disturbed some of them
  std::nth_element(times_.begin(), middle, times_.end());
  if (stage_ == Stage::alone) {
    share_ = together_ < *middle;
    stage_ = Stage::decided;
    return;
  }
  together_ = *middle;
  share_ = true;
  stage_ = together_ < long_task ? Stage::alone : Stage::decided;
}

Team::Team(std::size_t members) : shares_(members) {
  for (std::size_t i = 1; i < members; ++i) helpers_.emplace_back([this, i] { help(i); });
}

Team::~Team() {
  stop_ = true;
  now_ = word(number_of(now_) + 1, 0, 0);  // wakes those that sleep
  now_.notify_all();
  for (auto& helper : helpers_) helper.join();
}

Team::Tasks Team::share_of(std::size_t member, std::size_t tasks) const {
  return part_of(tasks, member, shares(tasks) ? std::min(tasks, members()) : 1);
}

void Team::share(const Run& run) {
  assert(run.rounds <= most_rounds && run.tasks <= most_tasks);
  run_ = run;
  const std::uint64_t number = number_of(now_.load(std::memory_order_relaxed)) + 1;
  for (Share& share : shares_) {
    share.claimed.store(word(number, 0, 0), std::memory_order_relaxed);
    share.done.store(word(number, 0, 0), std::memory_order_relaxed);
  }
  const std::uint64_t now = word(number, run.rounds, run.tasks);
  // In one order with the helpers' `asleep_`: either they see the run or this sees them asleep.
  now_ = now;
  if (asleep_.load() > 0) now_.notify_all();
  take_part(now, 0);
  for (int spins = 0; !all_done(now, run.rounds - 1); ++spins) {
    if (spins < spins_before_yield)
      pause_briefly();
    else
      std::this_thread::yield();
  }
}

void Team::take_part(std::uint64_t run, std::size_t member) {
  for (std::size_t round = 0; round < upper_of(run); ++round) {
    bool took_any = work_on(run, round, member, member);
    for (int spins = 1; !all_done(run, round); ++spins) {
      if (spins % spins_before_others == 0) {
        for (std::size_t share = 0; share < shares_.size(); ++share)
          took_any |= work_on(run, round, share, member);
      } else if (spins < spins_before_yield) {
        pause_briefly();
      } else {
        std::this_thread::yield();
      }
    }
    if (!took_any) return;
  }
}

bool Team::work_on(std::uint64_t run, std::size_t round, std::size_t share, std::size_t member) {
  Share& from = shares_[share];
  const std::size_t tasks = lower_of(run);
  const Tasks own = part_of(tasks, share, std::min(tasks, shares_.size()));
  bool took_any = false;
  std::uint64_t now = from.claimed.load(std::memory_order_relaxed);
  for (;;) {
    if (number_of(now) != number_of(run) || upper_of(now) > round) return took_any;
    const std::size_t taken = upper_of(now) == round ? lower_of(now) : 0;
    if (taken >= own.size()) return took_any;
    const std::uint64_t next = word(number_of(run), round, taken + 1);
    if (!from.claimed.compare_exchange_weak(now, next, std::memory_order_acq_rel,
                                            std::memory_order_relaxed))
      continue;
    run_.work(run_.context, round, own.begin + taken, member);
    from.done.fetch_add(1, std::memory_order_release);
    took_any = true;
    now = next;
  }
}

bool Team::all_done(std::uint64_t run, std::size_t round) const {
  const std::size_t tasks = lower_of(run), shares = std::min(tasks, shares_.size());
  for (std::size_t share = 0; share < shares; ++share) {
    if (shares_[share].done.load(std::memory_order_acquire) <
        word(number_of(run), 0, 0) + (round + 1) * part_of(tasks, share, shares).size())
      return false;
  }
  return true;
}

void Team::keep_pace(std::size_t tasks) {
  const auto now = std::chrono::steady_clock::now();
  pace_.add(std::chrono::duration<double>(now - last_end_).count() / static_cast<double>(tasks));
  last_end_ = now;
}

void Team::help(std::size_t member) {
  std::uint64_t seen = 0;
  for (int idle = 0; !stop_.load(std::memory_order_acquire); ++idle) {
    const std::uint64_t now = now_.load(std::memory_order_acquire);
    if (now != seen) {
      seen = now;
      idle = 0;
      take_part(now, member);
    } else if (idle < spins_before_yield) {
      pause_briefly();
    } else if (idle < spins_before_yield + yields_before_sleep) {
      std::this_thread::yield();
    } else {
      ++asleep_;
      now_.wait(seen);
      --asleep_;
      idle = 0;
    }
  }
}

}  // namespace neyman
