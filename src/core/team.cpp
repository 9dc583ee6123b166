#include "core/team.hpp"

namespace neyman {

namespace {

constexpr int spins_before_yield = 2000;  // some ten microseconds
constexpr int yields_before_sleep = 200;

void pause_briefly() {
#if defined(__x86_64__) || defined(__i386__)
  __builtin_ia32_pause();
#endif
}

}  // namespace

Team::Team(std::size_t members) {
  for (std::size_t i = 1; i < members; ++i) helpers_.emplace_back([this, i] { help(i); });
}

Team::~Team() {
  stop_ = true;
  left_ += 1;  // wakes those that sleep; nobody claims it
  left_.notify_all();
  for (auto& helper : helpers_) helper.join();
}

bool Team::claim_and_work(std::size_t member) {
  std::uint32_t left = left_.load(std::memory_order_acquire);
  do {
    if (left == 0 || stop_.load(std::memory_order_relaxed)) return false;
  } while (!left_.compare_exchange_weak(left, left - 1, std::memory_order_acq_rel,
                                        std::memory_order_acquire));
  call_(context_, left - 1, member);
  done_.fetch_add(1, std::memory_order_release);
  return true;
}

void Team::begin(std::size_t tasks, Call call, const void* context) {
  call_ = call;
  context_ = context;
  expected_ += tasks;
  // In one order with the helpers' `asleep_`: either they see the tasks or this sees them asleep.
  left_.store(static_cast<std::uint32_t>(tasks));
  if (asleep_.load() > 0) left_.notify_all();
}

void Team::finish() {
  while (claim_and_work(0)) {
  }
  for (int spins = 0; done_.load(std::memory_order_acquire) < expected_; ++spins) {
    if (spins < spins_before_yield)
      pause_briefly();
    else
      std::this_thread::yield();
  }
}

void Team::help(std::size_t member) {
  for (int idle = 0; !stop_.load(std::memory_order_acquire);) {
    if (claim_and_work(member)) {
      idle = 0;
    } else if (++idle < spins_before_yield) {
      pause_briefly();
    } else if (idle < spins_before_yield + yields_before_sleep) {
      std::this_thread::yield();
    } else {
      ++asleep_;
      left_.wait(0);
      --asleep_;
      idle = 0;
    }
  }
}

}  // namespace neyman
