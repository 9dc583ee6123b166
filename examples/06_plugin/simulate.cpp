// The simulator of simulate.c as a plugin in C++. No exception may leave the functions.
//
//     c++ -O2 -shared -fPIC -I. -o libsimulate.so simulate.cpp
#include <cstdio>
#include <random>

#include "neyman/plugin.h"

namespace {
constexpr int length = 4;
}

extern "C" {

int neyman_plugin_abi(void) { return NEYMAN_PLUGIN_ABI; }
int neyman_plugin_features(void) { return length; }
int neyman_plugin_parameters(void) { return 2; }
const char* neyman_plugin_parameter_name(int i) { return i == 0 ? "phi" : "s"; }
int neyman_plugin_thread_safe(void) { return 1; }

int neyman_plugin_sample(const double* theta, int64_t n, int64_t seed, double* out, char* message,
                         int64_t message_size) {
  const double phi = theta[0], s = theta[1];
  if (s <= 0) {
    std::snprintf(message, static_cast<std::size_t>(message_size), "s is %g, but must be positive",
                  s);
    return 1;
  }
  std::mt19937_64 random(static_cast<std::uint64_t>(seed));
  std::normal_distribution<double> normal;
  for (int64_t i = 0; i < n; ++i) {
    double x = 0;
    for (int t = 0; t < length; ++t) out[i * length + t] = x = phi * x + s * normal(random);
  }
  return 0;
}
}
