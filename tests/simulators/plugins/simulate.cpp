// A simulator as a program, which can fail in many ways:
//
//   simulate MODE ALPHA GAMMA N SEED OUTPUT
//
// mass ~ N(α, 1 + γ), time ~ N(0, 1). Each call adds a line to the file that NEYMAN_TEST_CALLS
// names.
#include <unistd.h>

#include <cmath>
#include <csignal>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <string>

namespace {

double uniform(std::uint64_t& state) {
  std::uint64_t z = state += 0x9e3779b97f4a7c15;
  z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9;
  z = (z ^ (z >> 27)) * 0x94d049bb133111eb;
  z ^= z >> 31;
  return (static_cast<double>(z >> 12) + 0.5) * 0x1.0p-52;
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 7) return 64;
  const std::string mode = argv[1];
  const double alpha = std::atof(argv[2]), gamma = std::atof(argv[3]);
  const long n = std::atol(argv[4]), seed = std::atol(argv[5]);
  if (const char* calls = std::getenv("NEYMAN_TEST_CALLS")) {
    std::FILE* file = std::fopen(calls, "a");
    std::fprintf(file, "%s %d\n", argv[5], static_cast<int>(getpid()));
    std::fclose(file);
  }
  if (mode == "crash" || (mode == "often" && seed % 10 == 0)) {
    std::fprintf(stderr, "first line\nthe table of seed %ld is broken\n", seed);
    return 3;
  }
  if (mode == "signal") std::raise(SIGSEGV);
  if (mode == "above" && alpha > 2.0) return 4;
  if (mode == "hang" || (mode == "often" && seed % 100 == 1)) {
    // A child of its own that a careless kill would leave behind.
    if (fork() == 0) {
      sleep(1000);
      return 0;
    }
    sleep(1000);
  }
  if (mode == "nothing") return 0;
  std::FILE* out = mode == "print" ? stdout : std::fopen(argv[6], "w");
  if (out == nullptr) return 5;
  if (mode == "empty") return 0;
  if (mode == "npy") {
    char header[119];
    const int size = std::snprintf(
        header, sizeof header, "{'descr': '<f8', 'fortran_order': False, 'shape': (%ld, 2), }", n);
    std::fwrite("\x93NUMPY\x01\x00\x76\x00", 1, 10, out);
    std::fprintf(out, "%s%*s\n", header, 117 - size, "");
  } else if (mode != "noheader") {
    std::fprintf(out, mode == "columns" ? "weight,time,mass\n" : "mass,time\n");
  }
  auto state = static_cast<std::uint64_t>(seed);
  const long rows = mode == "few" ? n - 1 : n;
  for (long i = 0; i < rows; ++i) {
    const double radius = std::sqrt(-2.0 * std::log(uniform(state)));
    const double angle = 6.283185307179586 * uniform(state);
    const double mass = alpha + (1.0 + gamma) * radius * std::cos(angle);
    const double row[] = {mass, radius * std::sin(angle)};
    if (mode == "npy")
      std::fwrite(row, sizeof row[0], 2, out);
    else if (mode == "columns")
      std::fprintf(out, "1,%.17g,%.17g\n", row[1], row[0]);
    else if (mode == "nan" && i == 2)
      std::fprintf(out, "nan,0\n");
    else
      std::fprintf(out, "%.17g,%.17g\n", row[0], row[1]);
  }
  std::fclose(out);
  return 0;
}
