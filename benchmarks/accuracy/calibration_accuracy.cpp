// Compares the calibrators on problems whose calibrated ratio log p(z|θ0)/p(z|θ1) is known in
// closed form, by the mean of |log r̂ − log r| over events of both sides.
//
// Prints a table for each size of the sample, with the share of log-ratios that lie within one of
// their own errors of the exact ones (0.68 where the errors are right) and the processor time of a
// fit.
//
//   calibration_accuracy [--seeds 20] [--sizes 200,2000,20000,200000]
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <ctime>
#include <functional>
#include <memory>
#include <sstream>
#include <string>
#include <vector>

#include "neyman/calibration/calibrator.hpp"
#include "neyman/core/random.hpp"

namespace {

using neyman::RandomStream;

/// Draws a logit of one side (0 numerator, 1 denominator) and knows the exact log-ratio of it.
struct Problem {
  std::string name;
  std::function<double(int side, RandomStream&)> draw;
  std::function<double(double z)> exact;
};

double normal_cdf(double x) { return 0.5 * std::erfc(-x / std::sqrt(2.0)); }

/// Numerator N(0, 1) and denominator N(distance, 1): the exact logit is that of x.
double exact_logit(double x, double distance) { return distance * (x - 0.5 * distance); }

/// A score that is a monotone function of the exact logit t of two normals.
Problem distorted(std::string name, double distance, std::function<double(double)> distort,
                  std::function<double(double)> undo) {
  return {std::move(name),
          [=](int side, RandomStream& random) {
            return distort(exact_logit(random.normal() + side * distance, distance));
          },
          [=](double z) { return -undo(z); }};
}

/// Slope 0.3 left of −0.4, 1 up to 0.5, 4 right of it: two sharp kinks.
double kinked(double t) {
  return t < -0.4 ? -0.4 + 0.3 * (t + 0.4) : t < 0.5 ? t : 0.5 + 4.0 * (t - 0.5);
}
double unkinked(double z) {
  return z < -0.4 ? -0.4 + (z + 0.4) / 0.3 : z < 0.5 ? z : 0.5 + (z - 0.5) / 4.0;
}

/// An imperfect classifier: z = 2 x + noise of two widths; both p(z) are mixtures of normals.
Problem noisy() {
  constexpr double share = 0.1, narrow = 0.5, wide = 3.0;
  const auto log_density = [=](double z, double mean) {
    const auto term = [&](double weight, double noise) {
      const double variance = 4.0 + noise * noise;
      return weight / std::sqrt(variance) * std::exp(-0.5 * (z - mean) * (z - mean) / variance);
    };
    return std::log(term(1.0 - share, narrow) + term(share, wide));
  };
  return {"noisy",
          [=](int side, RandomStream& random) {
            const double noise = random.uniform() < share ? wide : narrow;
            return 2.0 * (random.normal() + 1.5 * side) + noise * random.normal() - 1.5;
          },
          [=](double z) { return log_density(z + 1.5, 0.0) - log_density(z + 1.5, 3.0); }};
}

/// Votes of 40 trees: the score takes 41 values.
Problem forest() {
  constexpr int trees = 40;
  const auto edge = [](int votes) {  // votes are at least this many from here on
    return -2.5 + 6.0 * (votes - 0.5) / trees;
  };
  const auto mass = [=](int votes, double mean) {
    const double below = votes == 0 ? 0.0 : normal_cdf(edge(votes) - mean);
    const double above = votes == trees ? 1.0 : normal_cdf(edge(votes + 1) - mean);
    return above - below;
  };
  const auto logit = [](int votes) {
    const double s = (votes + 0.5) / (trees + 1.0);
    return std::log(s / (1.0 - s));
  };
  return {"forest",
          [=](int side, RandomStream& random) {
            const double x = random.normal() + side;
            const double votes = std::floor((x + 2.5) * trees / 6.0 + 0.5);
            return logit(static_cast<int>(std::clamp(votes, 0.0, double(trees))));
          },
          [=](double z) {
            const double s = 1.0 / (1.0 + std::exp(-z));
            const int votes = static_cast<int>(std::lround(s * (trees + 1.0) - 0.5));
            return std::log(mass(votes, 0.0) / mass(votes, 1.0));
          }};
}

std::vector<Problem> problems() {
  const auto same = [](double t) { return t; };
  return {
      distorted("perfect", 1.0, same, same),
      distorted("faint", 0.1, same, same),
      distorted("separated", 5.0, same, same),
      distorted(
          "over-confident", 1.5, [](double t) { return 2.5 * t + 0.3; },
          [](double z) { return (z - 0.3) / 2.5; }),
      distorted(
          "under-confident", 1.5, [](double t) { return 0.2 * t; },
          [](double z) { return z / 0.2; }),
      distorted(
          "saturating", 2.0, [](double t) { return 3.0 * std::tanh(t / 4.0); },
          [](double z) { return 4.0 * std::atanh(z / 3.0); }),
      distorted(
          "cubic", 1.5, [](double t) { return t + 0.1 * t * t * t; },
          [](double z) {
            double t = std::cbrt(z);
            for (int i = 0; i < 60; ++i) {
              t -= (t + 0.1 * t * t * t - z) / (1.0 + 0.3 * t * t);
            }
            return t;
          }),
      distorted("kinked", 1.5, kinked, unkinked),
      noisy(),
      forest(),
  };
}

struct Contender {
  std::string name;
  std::function<std::unique_ptr<neyman::Calibrator>()> make;
};

using Table = neyman::SettingValue::Table;

Contender contender(std::string name, Table table) {
  return {std::move(name), [table] { return neyman::make_calibrator(neyman::Settings(table)); }};
}

neyman::SettingValue text(const char* value) { return {std::string(value), 0}; }
neyman::SettingValue flag(bool value) { return {value, 0}; }
neyman::SettingValue number(std::int64_t value) { return {value, 0}; }

std::vector<Contender> contenders() {
  return {
      contender("smooth", {{"kind", text("smooth")}}),
      contender("smooth, free", {{"kind", text("smooth")}, {"monotone", flag(false)}}),
      contender("histogram", {{"kind", text("histogram")}}),
      contender("histogram, steps", {{"kind", text("histogram")}, {"interpolate", flag(false)}}),
      contender("uniform", {{"kind", text("histogram")}, {"edges", text("uniform")}}),
      contender("50 uniform steps", {{"kind", text("histogram")},
                                     {"edges", text("uniform")},
                                     {"bins", number(50)},
                                     {"interpolate", flag(false)}}),
      contender("blocks", {{"kind", text("histogram")}, {"edges", text("bayesian-blocks")}}),
      contender("kde", {{"kind", text("kde")}}),
      contender("kde, likelihood", {{"kind", text("kde")}, {"bandwidth", text("likelihood")}}),
      contender("isotonic", {{"kind", text("isotonic")}}),
      contender("isotonic, steps", {{"kind", text("isotonic")}, {"interpolate", flag(false)}}),
      contender("sigmoid", {{"kind", text("sigmoid")}}),
      contender("none", {{"kind", text("none")}}),
  };
}

struct Score {
  double mean = 0.0, seconds = 0.0, within = 0.0;
  std::size_t not_finite = 0;
};

double mean_error(const Problem& problem, const Contender& entry, std::size_t n, std::uint64_t seed,
                  Score& score) {
  constexpr std::size_t test_size = 4000;
  RandomStream random(seed, "calibration-accuracy/" + problem.name, n);
  std::vector<double> sides[2], test;
  for (int side : {0, 1}) {
    for (std::size_t i = 0; i < n / 2; ++i) sides[side].push_back(problem.draw(side, random));
  }
  RandomStream test_random(seed, "calibration-accuracy/test/" + problem.name);
  for (std::size_t i = 0; i < test_size; ++i) test.push_back(problem.draw(i % 2, test_random));

  const auto calibrator = entry.make();
  const std::clock_t start = std::clock();  // of all threads, whatever else the machine does
  calibrator->fit({sides[0], sides[1]});
  score.seconds += double(std::clock() - start) / CLOCKS_PER_SEC;
  const auto log_r = calibrator->log_ratios(neyman::Logits(test));
  const auto errors = calibrator->errors(neyman::Logits(test));
  double sum = 0.0;
  for (std::size_t i = 0; i < test_size; ++i) {
    if (!std::isfinite(log_r[i])) ++score.not_finite;
    const double off = std::abs(log_r[i] - problem.exact(test[i]));
    sum += off;
    if (off <= errors[i]) score.within += 1.0 / test_size;
  }
  return sum / test_size;
}

Score compare(const Problem& problem, const Contender& entry, std::size_t n, int seeds) {
  Score score;
  for (int seed = 1; seed <= seeds; ++seed) {
    const double error = mean_error(problem, entry, n, seed, score);
    score.mean += error / seeds;
  }
  score.seconds /= seeds;
  score.within /= seeds;
  return score;
}

}  // namespace

int main(int argc, char** argv) {
  int seeds = 20;
  std::vector<std::size_t> sizes = {200, 2000, 20000, 200000};
  for (int i = 1; i + 1 < argc; i += 2) {
    const std::string option = argv[i];
    if (option == "--seeds") seeds = std::stoi(argv[i + 1]);
    if (option == "--sizes") {
      sizes.clear();
      std::stringstream list(argv[i + 1]);
      for (std::string item; std::getline(list, item, ',');) sizes.push_back(std::stoul(item));
    }
  }
  const auto entries = contenders();
  std::size_t not_finite = 0;
  for (const std::size_t n : sizes) {
    fmt::print("\n### {} + {} events, {} seeds\n\n| problem |", n / 2, n / 2, seeds);
    for (const auto& entry : entries) fmt::print(" {} |", entry.name);
    fmt::print("\n| --- |");
    for (std::size_t i = 0; i < entries.size(); ++i) fmt::print(" ---: |");
    std::vector<double> relative(entries.size(), 0.0), seconds(entries.size(), 0.0),
        within(entries.size(), 0.0);
    const auto list = problems();
    for (const auto& problem : list) {
      fmt::print("\n| {} |", problem.name);
      std::vector<double> means;
      for (std::size_t i = 0; i < entries.size(); ++i) {
        const Score score = compare(problem, entries[i], n, seeds);
        fmt::print(" {:.4f} |", score.mean);
        fflush(stdout);
        means.push_back(score.mean);
        seconds[i] += score.seconds / double(list.size());
        within[i] += score.within / double(list.size());
        not_finite += score.not_finite;
      }
      // Without calibration the error of a perfect score is zero: no yardstick.
      const double best = *std::min_element(means.begin(), means.end() - 1);
      for (std::size_t i = 0; i < means.size(); ++i) {
        relative[i] += std::log(means[i] / best) / double(list.size());
      }
    }
    fmt::print("\n| *geometric mean, relative to the best* |");
    for (std::size_t i = 0; i + 1 < relative.size(); ++i) {
      fmt::print(" {:.2f} |", std::exp(relative[i]));
    }
    fmt::print(" |");
    fmt::print("\n| *within one error* |");
    for (const double value : within) fmt::print(" {:.2f} |", value);
    fmt::print("\n| *fit, ms of processor time* |");
    for (const double value : seconds) fmt::print(" {:.2f} |", 1e3 * value);
    fmt::print("\n");
  }
  fmt::print("\nlog-ratios that are not finite: {}\n", not_finite);
  return not_finite == 0 ? 0 : 1;
}
