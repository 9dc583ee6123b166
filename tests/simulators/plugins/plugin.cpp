// A plugin, and plugins that are broken in one way each: BROKEN_… says in which.
#include "neyman/plugin.h"

#include <atomic>
#include <chrono>
#include <cmath>
#include <cstdio>
#include <limits>
#include <stdexcept>
#include <thread>

namespace {

[[maybe_unused]] std::atomic<int> inside{0};

/// Steele, Lea and Flood's generator.
[[maybe_unused]] double uniform(std::uint64_t& state) {
  std::uint64_t z = state += 0x9e3779b97f4a7c15;
  z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9;
  z = (z ^ (z >> 27)) * 0x94d049bb133111eb;
  z ^= z >> 31;
  return (static_cast<double>(z >> 12) + 0.5) * 0x1.0p-52;
}

}  // namespace

extern "C" {

#if defined(BROKEN_ABI)
int neyman_plugin_abi(void) { return NEYMAN_PLUGIN_ABI + 1; }
#elif !defined(BROKEN_NO_ABI)
int neyman_plugin_abi(void) { return NEYMAN_PLUGIN_ABI; }
#endif

#ifdef BROKEN_FEATURES
int neyman_plugin_features(void) { return 0; }
#else
int neyman_plugin_features(void) { return 2; }
#endif

#ifdef BROKEN_NAMES
const char* neyman_plugin_feature_name(int) { return "mass"; }
#else
const char* neyman_plugin_feature_name(int i) { return i == 0 ? "mass" : "time"; }
#endif

#ifdef BROKEN_PARAMETERS
int neyman_plugin_parameters(void) { return 3; }
#else
int neyman_plugin_parameters(void) { return 2; }
#endif
#ifndef BROKEN_ONE_OF_TWO
// In another order than the study's.
const char* neyman_plugin_parameter_name(int i) {
  return i == 0 ? "gamma" : i == 1 ? "alpha" : "delta";
}
#endif

#ifndef UNSAFE
int neyman_plugin_thread_safe(void) { return 1; }
#endif

#ifndef BROKEN_NO_SAMPLE
int neyman_plugin_sample(const double* theta, std::int64_t n, std::int64_t seed, double* out,
                         char* message, std::int64_t message_size) {
#ifdef UNSAFE
  if (++inside > 1) {
    std::snprintf(message, static_cast<std::size_t>(message_size), "called by two at once");
    return 5;
  }
  std::this_thread::sleep_for(std::chrono::milliseconds(1));
#endif
  auto state = static_cast<std::uint64_t>(seed);
  for (std::int64_t i = 0; i < n; ++i) {
    const double radius = std::sqrt(-2.0 * std::log(uniform(state)));
    const double angle = 6.283185307179586 * uniform(state);
    out[2 * i] = theta[1] + (1.0 + theta[0]) * radius * std::cos(angle);
    out[2 * i + 1] = radius * std::sin(angle);
  }
#ifdef UNSAFE
  --inside;
#endif
#ifdef BROKEN_STATUS
  std::snprintf(message, static_cast<std::size_t>(message_size), "alpha %g is too large", theta[1]);
  return 7;
#endif
#ifdef BROKEN_NAN
  out[2 * n - 1] = std::numeric_limits<double>::quiet_NaN();
#endif
#ifdef BROKEN_THROW
  throw std::runtime_error("no table");
#endif
#ifdef FAILS_SOMEWHERE
  if (theta[1] > 2.0) return 3;
#endif
  (void)message, (void)message_size;
  return 0;
}
#endif
}
