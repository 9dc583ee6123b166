#pragma once

#include <atomic>
#include <barrier>
#include <cstdlib>
#include <exception>
#include <functional>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "neyman/distributed/communicator.hpp"

namespace neyman::testing {

/// Ranks that are threads of one process: what is tested with them needs no MPI.
class ThreadRanks {
 public:
  /// Calls the body once for each rank, all at the same time, and throws what one of them throws.
  static void run(std::size_t size, const std::function<void(Communicator&)>& body) {
    Shared shared(size);
    std::vector<std::exception_ptr> errors(size);
    std::vector<std::thread> threads;
    for (std::size_t r = 0; r < size; ++r)
      threads.emplace_back([&, r] {
        Rank rank(shared, r);
        try {
          body(rank);
        } catch (...) {
          errors[r] = std::current_exception();
        }
      });
    for (auto& thread : threads) thread.join();
    for (const auto& error : errors)
      if (error) std::rethrow_exception(error);
  }

 private:
  struct Shared {
    explicit Shared(std::size_t size)
        : all(size), to(size), barrier(static_cast<std::ptrdiff_t>(size)) {}
    std::vector<std::string> all;
    std::vector<std::vector<std::string>> to;  // by sender
    std::barrier<> barrier;
    std::atomic<std::size_t> counter{0};
  };

  class Rank final : public Communicator {
   public:
    Rank(Shared& shared, std::size_t rank) : shared_(shared), rank_(rank) {}
    std::size_t rank() const override { return rank_; }
    std::size_t size() const override { return shared_.all.size(); }
    std::size_t neighbours() const override { return size(); }
    std::vector<std::string> gather(const std::string& mine) override {
      shared_.all[rank_] = mine;
      shared_.barrier.arrive_and_wait();
      auto out = shared_.all;
      shared_.barrier.arrive_and_wait();
      return out;
    }
    void exchange(const std::vector<std::string>& to, std::vector<std::string>& from) override {
      shared_.to[rank_] = to;
      shared_.barrier.arrive_and_wait();
      for (std::size_t r = 0; r < size(); ++r) {
        if (from[r].size() != shared_.to[r][rank_].size()) std::abort();  // MPI would be lost
        from[r] = shared_.to[r][rank_];
      }
      shared_.barrier.arrive_and_wait();
    }
    std::string broadcast(const std::string& bytes) override { return gather(bytes).front(); }
    void restart() override {
      shared_.barrier.arrive_and_wait();
      shared_.counter = 0;
      shared_.barrier.arrive_and_wait();
    }
    std::size_t take(std::size_t count) override { return shared_.counter.fetch_add(count); }
    bool meet(double) override { return true; }
    void end_all(int) override {}

   private:
    Shared& shared_;
    std::size_t rank_;
  };
};

}  // namespace neyman::testing
