// Toys a second of t on one core, of a channel without bins: a signal of unknown mass over two
// backgrounds, 5000 events, with an uncertain scale, resolution and sizes of the backgrounds:
//
//   build/benchmarks/measurements/unbinned_toys [toys]
//
// unbinned_toys_iminuit.py does the same with iminuit on NumPy. Both print mean and spread of the
// estimates, which agree. The tables of the normalisations are filled while toys ask for them: what
// some toys take more the first time than the second is their time.
#include <cmath>
#include <cstdlib>
#include <ctime>
#include <iostream>

#include "neyman/core/parallel.hpp"
#include "neyman/inference/statistics.hpp"
#include "neyman/measurements/toys.hpp"

namespace {

using namespace neyman;

constexpr double peak = 5.0, resolution = 0.3;

double normal(double x, double mean, double sigma) {
  const double z = (x - mean) / sigma;
  return std::exp(-0.5 * z * z) / sigma;
}

/// N(mean(φ), sigma(φ)) is exp(b_1 x² + b_2 x) but for its norm: mean = mass + scale / 10, or
/// 3 + scale / 10 of the background, and sigma = 0.3 (1 + width / 10).
class MovingNormal final : public Shape {
 public:
  explicit MovingNormal(bool signal)
      : signal_(signal),
        parameters_(signal ? ParameterSpace({{"mass", 4.0, 6.0, {}},
                                             {"scale", -5.0, 5.0, {}, true},
                                             {"width", -5.0, 5.0, {}, true}})
                           : ParameterSpace({{"scale", -5.0, 5.0, {}, true}})),
        nominal_(signal ? std::vector<double>{peak, 0.0, 0.0} : std::vector<double>{0.0}) {}
  const ParameterSpace& parameters() const override { return parameters_; }
  const std::vector<double>& nominal() const override { return nominal_; }
  std::size_t functions() const override { return signal_ ? 2 : 1; }
  void evaluate(std::span<const double> point, std::span<double> values, std::span<double> first,
                std::span<double> second) const override {
    std::fill(first.begin(), first.end(), 0.0);
    std::fill(second.begin(), second.end(), 0.0);
    if (!signal_) {
      values[0] = 0.1 * point[0] / (1.5 * 1.5);
      if (!first.empty()) first[0] = 0.1 / (1.5 * 1.5);
      return;
    }
    const double at = 1.0 + 0.1 * point[2], mean = point[0] + 0.1 * point[1];
    // P = 1 / σ² and its derivatives by the width.
    const double inverse = 1.0 / (resolution * resolution);
    const double p = inverse / (at * at), p1 = -0.2 * p / at, p2 = 0.06 * p / (at * at);
    values[0] = -0.5 * (p - inverse);
    values[1] = mean * p - peak * inverse;
    if (!first.empty()) {
      first[2] = -0.5 * p1;
      first[3] = p, first[4] = 0.1 * p, first[5] = mean * p1;
    }
    if (second.empty()) return;
    second[8] = -0.5 * p2;
    double* mixed = second.data() + 9;
    mixed[2] = mixed[6] = p1;
    mixed[5] = mixed[7] = 0.1 * p1;
    mixed[8] = mean * p2;
  }

 private:
  bool signal_;
  ParameterSpace parameters_;
  std::vector<double> nominal_;
};

std::shared_ptr<const UnbinnedEvents> describe(const std::vector<double>& x, bool reference) {
  auto out = std::make_shared<UnbinnedEvents>();
  out->ratios = Matrix(3, x.size());
  out->functions = Matrix(3, x.size());
  for (std::size_t i = 0; i < x.size(); ++i) {
    const double signal = normal(x[i], peak, resolution), first = normal(x[i], 3.0, 1.5),
                 second = normal(x[i], 7.0, 3.0), pool = normal(x[i], 5.0, 0.8);
    const double mixture = (pool + first + second) / 3.0;
    out->ratios(0, i) = signal / mixture;
    out->ratios(1, i) = first / mixture;
    out->ratios(2, i) = second / mixture;
    out->functions(0, i) = x[i] * x[i];
    out->functions(1, i) = out->functions(2, i) = x[i];
  }
  if (reference) out->weights.assign(x.size(), 1.0);
  return out;
}

}  // namespace

int main(int argc, char** argv) {
  set_threads(1);
  RandomStream random(1, "unbinned toys");
  std::vector<double> observed, simulated;
  for (int i = 0; i < 250; ++i) observed.push_back(peak + resolution * random.normal());
  for (int i = 0; i < 3000; ++i) observed.push_back(3.0 + 1.5 * random.normal());
  for (int i = 0; i < 1750; ++i) observed.push_back(7.0 + 3.0 * random.normal());
  for (int i = 0; i < 50000; ++i) {
    simulated.push_back(5.0 + 0.8 * random.normal());
    simulated.push_back(3.0 + 1.5 * random.normal());
    simulated.push_back(7.0 + 3.0 * random.normal());
  }
  const UnbinnedChannel channel{
      "events",
      {{"signal", 250.0, {Modifier::norm_factor("mu")}, {std::make_shared<MovingNormal>(true)}},
       {"first",
        3000.0,
        {Modifier::norm_sys("size1", 1.0 / 1.1, 1.1)},
        {std::make_shared<MovingNormal>(false)}},
       {"second", 1750.0, {Modifier::norm_sys("size2", 1.0 / 1.1, 1.1)}}},
      describe(observed, false),
      describe(simulated, true)};
  const Workspace workspace{{}, {{"search", "mu", {{"mu", {1.0}, {{-3.0, 10.0}}}}}}};
  std::clock_t begin = std::clock();
  const auto seconds = [&] { return static_cast<double>(std::clock() - begin) / CLOCKS_PER_SEC; };
  const StatisticalModel model(workspace, {channel});
  std::cout << "model made in " << seconds() << " s\n";
  ToyOptions options;
  const auto make = [&] {
    begin = std::clock();
    return toy_statistics(model, model.start(), TestStatistic::t, 1.0, options);
  };
  options.toys = 512;
  options.seed = 2;
  make();
  double tables = seconds();
  make();
  tables -= seconds();
  std::cout << "tables filled in " << tables << " s\n";
  options.toys = argc > 1 ? static_cast<std::size_t>(std::atoi(argv[1])) : 1000;
  options.seed = 1;
  const auto toys = make();
  const double taken = seconds(), count = static_cast<double>(options.toys);
  std::cout << "mu " << mean(toys.estimates) << " ± " << standard_deviation(toys.estimates)
            << ", t " << mean(toys.statistics) << ", " << toys.failed << " failed, "
            << count / taken << " toys/s of CPU, " << count / (taken + tables)
            << " with the tables\n";
}
