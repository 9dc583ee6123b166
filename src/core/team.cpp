#include "core/team.hpp"

#include <algorithm>

namespace neyman {

namespace {

constexpr int spins_before_others = 100;  // one or two microseconds
constexpr int spins_before_yield = 2000;  // some ten microseconds
constexpr int yields_before_sleep = 200;
constexpr int task_bits = 24;
constexpr std::uint64_t task_mask = (std::uint64_t{1} << task_bits) - 1;

void pause_briefly() {
#if defined(__x86_64__) || defined(__i386__)
  __builtin_ia32_pause();
#endif
}

std::uint64_t number_of(std::uint64_t loop) { return loop >> task_bits; }
std::size_t tasks_of(std::uint64_t loop) { return loop & task_mask; }

struct Range {
  std::size_t begin, end;
};
Range tasks_of(std::size_t share, std::size_t tasks, std::size_t members) {
  const std::size_t shares = std::min(tasks, members);
  if (share >= shares) return {0, 0};
  return {share * tasks / shares, (share + 1) * tasks / shares};
}

}  // namespace

void Pace::add(double seconds) {
  if (stage_ == Stage::decided) {
    if (++loops_ == loops_between_trials) {
      stage_ = Stage::together;
      loops_ = 0;
    }
    return;
  }
  times_[loops_++] = seconds;
  if (loops_ < trial) return;
  loops_ = 0;
  const auto middle = times_.begin() + trial / 2;  // whatever disturbed some of them
  std::nth_element(times_.begin(), middle, times_.end());
  if (stage_ == Stage::alone) {
    share_ = together_ < *middle;
    stage_ = Stage::decided;
    return;
  }
  together_ = *middle;
  share_ = true;
  stage_ = together_ < long_loop ? Stage::alone : Stage::decided;
}

Team::Team(std::size_t members) : shares_(members) {
  for (std::size_t i = 1; i < members; ++i) helpers_.emplace_back([this, i] { help(i); });
}

Team::~Team() {
  stop_ = true;
  loop_ = (number_of(loop_) + 1) << task_bits;  // without tasks; wakes those that sleep
  loop_.notify_all();
  for (auto& helper : helpers_) helper.join();
}

void Team::work_on(std::uint64_t loop, std::size_t share, std::size_t member) {
  Share& from = shares_[share];
  const Range range = tasks_of(share, tasks_of(loop), shares_.size());
  std::uint64_t now = from.claimed.load(std::memory_order_relaxed);
  for (;;) {
    const bool begun = number_of(now) == number_of(loop);
    const std::size_t taken = begun ? tasks_of(now) : 0;
    if (number_of(now) > number_of(loop) || taken >= range.end - range.begin) return;
    const std::uint64_t next = number_of(loop) << task_bits | (taken + 1);
    if (!from.claimed.compare_exchange_weak(now, next, std::memory_order_acq_rel,
                                            std::memory_order_relaxed))
      continue;
    // A loop does not end before its tasks do, so who holds one sees it. Who comes too late holds
    // none: what it wrote counts for a loop that is over.
    if (loop_.load(std::memory_order_acquire) != loop) return;
    call_(context_, range.begin + taken, member);
    from.done.fetch_add(1, std::memory_order_release);
    now = next;
  }
}

void Team::work_on_any(std::uint64_t loop, std::size_t member) {
  for (std::size_t share = 0; share < shares_.size(); ++share) work_on(loop, share, member);
}

void Team::begin(std::size_t tasks, Call call, const void* context) {
  call_ = call;
  context_ = context;
  for (std::size_t share = 0; share < shares_.size(); ++share) {
    const Range range = tasks_of(share, tasks, shares_.size());
    shares_[share].expected += range.end - range.begin;
  }
  // In one order with the helpers' `asleep_`: either they see the loop or this sees them asleep.
  loop_ = (number_of(loop_) + 1) << task_bits | tasks;
  if (asleep_.load() > 0) loop_.notify_all();
}

bool Team::all_done() const {
  return std::all_of(shares_.begin(), shares_.end(), [](const Share& share) {
    return share.done.load(std::memory_order_acquire) == share.expected;
  });
}

void Team::finish() {
  const std::uint64_t loop = loop_.load(std::memory_order_relaxed);
  work_on(loop, 0, 0);
  for (int spins = 0; !all_done(); ++spins) {
    if (spins == spins_before_others)
      work_on_any(loop, 0);
    else if (spins < spins_before_yield)
      pause_briefly();
    else
      std::this_thread::yield();
  }
}

void Team::keep_pace() {
  const auto now = std::chrono::steady_clock::now();
  pace_.add(std::chrono::duration<double>(now - last_end_).count());
  last_end_ = now;
}

void Team::help(std::size_t member) {
  std::uint64_t seen = 0;
  for (int idle = 0; !stop_.load(std::memory_order_acquire);) {
    const std::uint64_t loop = loop_.load(std::memory_order_acquire);
    if (loop != seen) {
      seen = loop;
      idle = 0;
      work_on(loop, member, member);
    } else if (++idle == spins_before_others) {
      work_on_any(loop, member);
    } else if (idle < spins_before_yield) {
      pause_briefly();
    } else if (idle < spins_before_yield + yields_before_sleep) {
      std::this_thread::yield();
    } else {
      ++asleep_;
      loop_.wait(seen);
      --asleep_;
      idle = 0;
    }
  }
}

}  // namespace neyman
