#pragma once

#include <algorithm>
#include <array>
#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <ctime>
#include <thread>
#include <vector>

// What the cores of this machine do at best, measured: the peaks that kernels are compared with.
namespace neyman::benchmarks {

inline double cpu_seconds() {
  std::timespec now{};
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
  return double(now.tv_sec) + 1e-9 * double(now.tv_nsec);
}

/// Keeps what leads to a value from being left out.
template <class T>
inline void keep(T& value) {
  asm volatile("" : "+m"(value) : : "memory");
}

// Multiply-adds a second of ten independent chains in registers.
#define NEYMAN_PEAK(name, isa, Scalar, bytes)                                                    \
  __attribute__((target(isa), noinline, optimize("O3,fp-contract=fast"))) inline double name() { \
    typedef Scalar Vector __attribute__((vector_size(bytes)));                                   \
    Scalar factor = Scalar(0.999);                                                               \
    keep(factor);                                                                                \
    const Vector b = Vector{} + factor;                                                          \
    Vector v0 = b, v1 = b * 2, v2 = b * 3, v3 = b * 4, v4 = b * 5, v5 = b * 6, v6 = b * 7,       \
           v7 = b * 8, v8 = b * 9, v9 = b * 10;                                                  \
    const std::int64_t rounds = 20'000'000;                                                      \
    const double start = cpu_seconds();                                                          \
    for (std::int64_t i = 0; i < rounds; ++i) {                                                  \
      v0 = v0 * b + b, v1 = v1 * b + b, v2 = v2 * b + b, v3 = v3 * b + b, v4 = v4 * b + b;       \
      v5 = v5 * b + b, v6 = v6 * b + b, v7 = v7 * b + b, v8 = v8 * b + b, v9 = v9 * b + b;       \
    }                                                                                            \
    const double seconds = cpu_seconds() - start;                                                \
    const Vector sum = v0 + v1 + v2 + v3 + v4 + v5 + v6 + v7 + v8 + v9;                          \
    Scalar any = sum[0];                                                                         \
    keep(any);                                                                                   \
    return 10.0 * (bytes / sizeof(Scalar)) * double(rounds) / seconds;                           \
  }

#if defined(__x86_64__)
NEYMAN_PEAK(float_peak_v4, "avx512f,avx512vl,fma", float, 64)
NEYMAN_PEAK(float_peak_v3, "avx2,fma", float, 32)
NEYMAN_PEAK(float_peak_v2, "sse4.2", float, 16)
NEYMAN_PEAK(double_peak_v4, "avx512f,avx512vl,fma", double, 64)
NEYMAN_PEAK(double_peak_v3, "avx2,fma", double, 32)
NEYMAN_PEAK(double_peak_v2, "sse4.2", double, 16)
#else
NEYMAN_PEAK(float_peak, "default", float, 16)
NEYMAN_PEAK(double_peak, "default", double, 16)
#endif
#undef NEYMAN_PEAK

/// The instruction set that the kernels use: v2, v3 or v4, the best or what NEYMAN_ISA names.
inline int instruction_set() {
#if defined(__x86_64__)
  if (const char* wanted = std::getenv("NEYMAN_ISA"); wanted != nullptr && wanted[0] == 'v')
    return wanted[1] - '0';
  return __builtin_cpu_supports("avx512f") ? 4 : __builtin_cpu_supports("avx2") ? 3 : 2;
#else
  return 0;
#endif
}

/// Multiply-adds a second on one core, in single and in double precision.
inline double float_multiply_adds() {
#if defined(__x86_64__)
  const int isa = instruction_set();
  return isa == 4 ? float_peak_v4() : isa == 3 ? float_peak_v3() : float_peak_v2();
#else
  return float_peak();
#endif
}

inline double double_multiply_adds() {
#if defined(__x86_64__)
  const int isa = instruction_set();
  return isa == 4 ? double_peak_v4() : isa == 3 ? double_peak_v3() : double_peak_v2();
#else
  return double_peak();
#endif
}

/// The sum of an array in the widest vectors that the machine has.
#if defined(__x86_64__)
__attribute__((target_clones("avx512f", "avx2", "default")))
#endif
[[maybe_unused]] static double
sum_of(const double* values, std::size_t count) {
  typedef double Vector __attribute__((vector_size(64)));
  constexpr std::size_t chains = 8, lanes = 8;
  Vector sums[chains] = {};
  const auto* vectors = reinterpret_cast<const Vector*>(values);
  for (std::size_t i = 0; i + chains <= count / lanes; i += chains)
    for (std::size_t c = 0; c < chains; ++c) sums[c] += vectors[i + c];
  double out = 0.0;
  for (std::size_t c = 0; c < chains; ++c) out += sums[c][0];
  return out;
}

/// Bytes a second that one core reads from an array of this size again and again: of the cache
/// that holds it, or of the memory.
inline double read_bandwidth(std::size_t bytes) {
  struct alignas(64) Line {
    double values[8];
  };
  const std::vector<Line> lines(std::max<std::size_t>(bytes / sizeof(Line), 8), Line{});
  const std::size_t size = lines.size() * sizeof(Line);
  const std::size_t passes = std::max<std::size_t>(1, (std::size_t{1} << 28) / size);
  double shortest = 1e9;
  for (int repeat = 0; repeat < 3; ++repeat) {
    const double start = cpu_seconds();
    for (std::size_t pass = 0; pass < passes; ++pass) {
      double sum = sum_of(lines.front().values, size / sizeof(double));
      keep(sum);
    }
    shortest = std::min(shortest, cpu_seconds() - start);
  }
  return double(size * passes) / shortest;
}

/// Seconds that two cores take to hand each other so many bytes: each writes its own, tells the
/// other, and reads those of the other.
inline double exchange_seconds(std::size_t bytes) {
  struct alignas(64) Line {
    double values[8];
  };
  struct Side {
    alignas(64) std::atomic<std::size_t> written{0};
    std::array<std::vector<Line>, 2> lines;  // in turns: the other may still read the last ones
  };
  constexpr std::size_t warm_up = 1000, rounds = 10000;
  const std::size_t count = std::max<std::size_t>(1, bytes / sizeof(Line));
  Side a, b;
  for (Side* side : {&a, &b}) side->lines = {std::vector<Line>(count), std::vector<Line>(count)};
  const auto exchange = [count](Side& own, const Side& other, std::size_t begin, std::size_t end) {
    double value = 0.0;
    for (std::size_t round = begin; round < end; ++round) {
      for (Line& line : own.lines[round % 2])
        for (double& to : line.values) to = value;
      own.written.store(round + 1, std::memory_order_release);
      while (other.written.load(std::memory_order_acquire) <= round) {
      }
      value = 1e-3 * sum_of(other.lines[round % 2].front().values, 8 * count);
    }
    keep(value);
  };
  std::thread helper([&] { exchange(b, a, 0, warm_up + rounds); });
  exchange(a, b, 0, warm_up);
  const auto start = std::chrono::steady_clock::now();
  exchange(a, b, warm_up, warm_up + rounds);
  const std::chrono::duration<double> taken = std::chrono::steady_clock::now() - start;
  helper.join();
  return taken.count() / rounds;
}

}  // namespace neyman::benchmarks
