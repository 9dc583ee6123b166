/*
 * A simulator as a plugin in C: short time series in which each value remembers the one before,
 *
 *   x[t] = phi x[t-1] + s e[t],  e ~ N(0, 1),  x[-1] = 0.
 *
 *     cc -O2 -shared -fPIC -I. -o libsimulate.so simulate.c -lm
 */
#include "neyman/plugin.h"

#include <math.h>
#include <stdio.h>

#define LENGTH 4

/* Uniform in (0, 1): the generator SplitMix64. Its state is local, so threads do not meet. */
static double uniform(uint64_t* state) {
  uint64_t z = *state += 0x9e3779b97f4a7c15;
  z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9;
  z = (z ^ (z >> 27)) * 0x94d049bb133111eb;
  return ((double)((z ^ (z >> 31)) >> 12) + 0.5) / 4503599627370496.0;
}

static double normal(uint64_t* state) {
  const double radius = sqrt(-2 * log(uniform(state)));
  return radius * cos(6.283185307179586 * uniform(state));
}

int neyman_plugin_abi(void) { return NEYMAN_PLUGIN_ABI; }
int neyman_plugin_features(void) { return LENGTH; }
int neyman_plugin_parameters(void) { return 2; }
const char* neyman_plugin_parameter_name(int i) { return i == 0 ? "phi" : "s"; }
int neyman_plugin_thread_safe(void) { return 1; }

int neyman_plugin_sample(const double* theta, int64_t n, int64_t seed, double* out, char* message,
                         int64_t message_size) {
  const double phi = theta[0], s = theta[1];
  uint64_t state = (uint64_t)seed;
  if (s <= 0) {
    snprintf(message, (size_t)message_size, "s is %g, but must be positive", s);
    return 1;
  }
  for (int64_t i = 0; i < n; ++i) {
    double x = 0;
    for (int t = 0; t < LENGTH; ++t) {
      x = phi * x + s * normal(&state);
      out[i * LENGTH + t] = x;
    }
  }
  return 0;
}
