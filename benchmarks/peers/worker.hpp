#pragma once

#include <chrono>
#include <cstddef>
#include <ctime>
#include <exception>
#include <fstream>
#include <functional>
#include <iostream>
#include <nlohmann/json.hpp>
#include <sstream>
#include <string>

#include "neyman/core/memory.hpp"

// A contender is a process that stays: the driver writes a request on one line, and the
// contender answers with one line of JSON. worker.py is the same in Python.
namespace peers {

using Json = nlohmann::json;

/// CPU seconds of all threads and seconds on the wall since it was made.
class Stopwatch {
 public:
  Json read() const { return {{"cpu", cpu_now() - cpu_}, {"wall", wall_now() - wall_}}; }

 private:
  static double cpu_now() {
    std::timespec now{};
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &now);
    return static_cast<double>(now.tv_sec) + 1e-9 * static_cast<double>(now.tv_nsec);
  }
  static double wall_now() {
    return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch())
        .count();
  }

  double cpu_ = cpu_now(), wall_ = wall_now();
};

template <class Work>
Json timed(Work&& work) {
  const Stopwatch watch;
  work();
  return watch.read();
}

/// Bytes that the process held at most.
inline std::size_t peak_memory() {
  std::ifstream status("/proc/self/status");
  for (std::string word; status >> word;)
    if (std::size_t kilobytes = 0; word == "VmHWM:" && status >> kilobytes) return 1024 * kilobytes;
  return 0;
}

/// Answers requests until the input ends, with memory as the command line has it.
inline int serve(const std::function<Json(const Json& request)>& answer) {
  neyman::keep_freed_memory();
  for (std::string line; std::getline(std::cin, line);) {
    try {
      std::cout << answer(Json::parse(line)).dump() << std::endl;
    } catch (const std::exception& error) {
      std::cout << Json{{"error", error.what()}}.dump() << std::endl;
    }
  }
  return 0;
}

}  // namespace peers
