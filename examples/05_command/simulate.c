/*
 * Simulates decay times: exponential with mean tau, measured with a resolution sigma.
 *
 *     cc -O2 -o simulate simulate.c -lm
 *     ./simulate TAU SIGMA N SEED OUTPUT
 */
#include <math.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

static uint64_t state;

/* Uniform in (0, 1): the generator SplitMix64. */
static double uniform(void) {
  uint64_t z = state += 0x9e3779b97f4a7c15;
  z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9;
  z = (z ^ (z >> 27)) * 0x94d049bb133111eb;
  return ((double)((z ^ (z >> 31)) >> 12) + 0.5) / 4503599627370496.0;
}

int main(int argc, char** argv) {
  if (argc != 6) {
    fprintf(stderr, "use: %s TAU SIGMA N SEED OUTPUT\n", argv[0]);
    return 1;
  }
  const double tau = atof(argv[1]), sigma = atof(argv[2]);
  const long n = atol(argv[3]);
  state = strtoull(argv[4], NULL, 10);
  FILE* file = fopen(argv[5], "w");
  if (file == NULL) {
    perror(argv[5]);
    return 1;
  }
  fprintf(file, "time\n");
  for (long i = 0; i < n; ++i) {
    const double decay = -tau * log(uniform());
    const double noise = sqrt(-2 * log(uniform())) * cos(6.283185307179586 * uniform());
    fprintf(file, "%.9g\n", decay + sigma * noise);
  }
  return fclose(file) == 0 ? 0 : 1;
}
