// Trains a classifier with the installed library and checks the known answer.
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <neyman/classifiers/logistic.hpp>
#include <neyman/core/random.hpp>
#include <vector>

int main() {
  constexpr std::size_t events = 2000;
  neyman::Matrix x(events, 1);
  std::vector<std::uint8_t> denominator(events);
  neyman::RandomStream random(1, "consumer");
  for (std::size_t i = 0; i < events; ++i) {
    denominator[i] = i % 2;
    x(i, 0) = random.normal() + static_cast<double>(denominator[i]);
  }
  neyman::Logistic logistic;
  logistic.fit({x, denominator});
  const double slope = logistic.coefficients()[0];
  std::printf("the slope is %.3f, expected 1\n", slope);
  return std::abs(slope - 1.0) < 0.3 ? 0 : 1;
}
