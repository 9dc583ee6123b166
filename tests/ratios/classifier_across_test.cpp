#include "neyman/ratios/classifier_across.hpp"

#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <functional>
#include <mutex>
#include <set>

#include "neyman/calibration/sigmoid.hpp"
#include "neyman/classifiers/logistic.hpp"
#include "neyman/classifiers/mlp.hpp"
#include "neyman/core/error.hpp"
#include "neyman/core/parallel.hpp"
#include "neyman/data/sample_stream.hpp"
#include "neyman/data/writer.hpp"
#include "neyman/simulators/join.hpp"
#include "neyman/simulators/normal.hpp"

namespace neyman {
namespace {

using Across = ParameterizedClassifierRatio::Across;
using Denominator = ParameterizedClassifierRatio::Denominator;
using Config = ParameterizedClassifierRatio::Config;

const ParameterSpace space({{"alpha", -1.5, 1.5, {}}, {"beta", -2, 2, {}}});

/// x0 ~ N(α, 1), x1 ~ N(β, 2): the two informative variables of the paper's second example.
DistributionPtr simulator() {
  return std::make_shared<Join>(
      std::vector<DistributionPtr>{std::make_shared<Normal>(Expression("alpha", space), 1.0),
                                   std::make_shared<Normal>(Expression("beta", space), 2.0)});
}

/// A network quick enough for a test.
std::shared_ptr<const Classifier> network(std::size_t epochs = 6) {
  Mlp::Config config;
  config.hidden = {16, 16};
  config.batch_size = 512;
  config.epochs = epochs;
  return std::make_shared<Mlp>(config);
}

/// Logistic regression on (x, θ, and the products that log r is made of), optionally distorted:
/// quick, and right but for what the distortion does to it.
class Quadratic final : public Classifier {
 public:
  explicit Quadratic(double offset = 0.0, double slope = 1.0) : offset_(offset), slope_(slope) {}
  std::string kind() const override { return "quadratic"; }
  std::unique_ptr<Classifier> fresh() const override {
    return std::make_unique<Quadratic>(offset_, slope_);
  }
  void fit(const TrainingSet& data) override {
    columns_ = data.x.cols();
    inner_.fit({expand(data.x), data.denominator, data.weights, data.seed});
  }
  bool fitted() const override { return inner_.fitted(); }
  std::size_t features() const override { return columns_; }
  Logits logits(MatrixView x) const override {
    auto z = inner_.logits(expand(x));
    // The distortion depends on θ: an offset that grows with α, a slope with β.
    for (std::size_t i = 0; i < z.size(); ++i)
      z[i] = offset_ * x(i, 2) + z[i] * (slope_ + 0.2 * (slope_ - 1.0) * x(i, 3));
    return z;
  }
  void save(Archive&) const override {}
  void load(const Archive&) override {}

 private:
  static Matrix expand(MatrixView x) {
    const std::size_t d = x.cols();
    Matrix out(x.rows(), d + d * (d + 1) / 2);
    for (std::size_t i = 0; i < x.rows(); ++i) {
      std::size_t at = 0;
      for (std::size_t j = 0; j < d; ++j) out(i, at++) = x(i, j);
      for (std::size_t j = 0; j < d; ++j)
        for (std::size_t k = j; k < d; ++k) out(i, at++) = x(i, j) * x(i, k);
    }
    return out;
  }
  double offset_, slope_;
  std::size_t columns_ = 0;
  Logistic inner_;
};

Config config(std::shared_ptr<const Classifier> classifier, Across across = Across::smooth,
              std::size_t samples = 40000) {
  Config out;
  out.classifier = std::move(classifier);
  out.calibration = across;
  out.samples = samples;
  out.seed = 7;
  return out;
}

/// A fixed denominator, for which the quadratic classifier is the right model.
Config point_config(std::shared_ptr<const Classifier> classifier, Across across = Across::smooth,
                    std::size_t samples = 40000) {
  auto out = config(std::move(classifier), across, samples);
  out.denominator = Denominator::point;
  out.reference = {0.0, 0.5};
  return out;
}

/// RMS of log r about the exact one, over events of some θ0.
double error(const std::function<LogRatios(MatrixView, std::span<const double>,
                                           std::span<const double>)>& found) {
  const auto exact = ExactRatio(simulator());
  double sum = 0.0;
  const std::vector<std::vector<double>> numerators = {{1.0, -1.0}, {-0.7, 1.2}, {0.2, 0.1}};
  const std::vector<double> denominator{0.0, 0.5};
  for (const auto& numerator : numerators) {
    const auto x = sample(*simulator(), numerator, 1000, 3, "test");
    const auto truth = exact.log_ratios(x, numerator, denominator);
    const auto learned = found(x, numerator, denominator);
    for (std::size_t i = 0; i < truth.size(); ++i)
      sum += std::pow(learned[i] - truth[i], 2) / 3000.0;
  }
  return std::sqrt(sum);
}

double calibrated_error(const ParameterizedClassifierRatio& ratio) {
  return error([&](auto x, auto top, auto bottom) { return ratio.log_ratios(x, top, bottom); });
}

double uncalibrated_error(const ParameterizedClassifierRatio& ratio) {
  return error([&](auto x, auto top, auto bottom) { return ratio.uncalibrated(x, top, bottom); });
}

/// One trained network for the tests that only look at it: 2·10^5 events.
const ParameterizedClassifierRatio& trained_classifier() {
  static const ParameterizedClassifierRatio ratio(simulator(), Design(space),
                                                  config(network(), Across::smooth, 200000));
  return ratio;
}

TEST(ParameterizedClassifierRatio, FindsTheRatioOfTwoNormals) {
  // log r has a standard deviation of about 1 here; the error is that of training.
  EXPECT_LT(calibrated_error(trained_classifier()), 0.08);
  EXPECT_EQ(trained_classifier().simulated(), 200000U);
  EXPECT_EQ(trained_classifier().features(), 2U);
  EXPECT_EQ(trained_classifier().folds(), 2U);
  EXPECT_EQ(trained_classifier().calibrations().size(), 2U);
}

TEST(ParameterizedClassifierRatio, FindsItForEveryKindOfDenominator) {
  for (const auto kind : {Denominator::point, Denominator::parameterized}) {
    auto c = config(network(8), Across::smooth, 60000);
    c.denominator = kind;
    if (kind == Denominator::point) c.reference = {0.0, 0.5};
    const ParameterizedClassifierRatio ratio(simulator(), Design(space), c);
    EXPECT_LT(calibrated_error(ratio), 0.2) << static_cast<int>(kind);
  }
  // A denominator with a design of its own.
  auto c = config(network(8), Across::smooth, 60000);
  c.denominator_design =
      Design(space, {.kind = Design::Kind::normal, .mean = {0, 0}, .sigma = {1, 1}});
  EXPECT_LT(calibrated_error(ParameterizedClassifierRatio(simulator(), Design(space), c)), 0.2);
}

TEST(ParameterizedClassifierRatio, CalibrationsRepairADistortedClassifier) {
  const auto distorted = std::make_shared<Quadratic>(0.4, 1.6);
  const ParameterizedClassifierRatio none(simulator(), Design(space),
                                          point_config(distorted, Across::none));
  EXPECT_GT(calibrated_error(none), 0.5);
  EXPECT_EQ(calibrated_error(none), uncalibrated_error(none));
  for (const auto across : {Across::on_demand, Across::interpolate, Across::smooth}) {
    auto c = point_config(distorted, across);
    c.calibration_events = 20000;
    c.nodes = {5, 5};
    const ParameterizedClassifierRatio ratio(simulator(), Design(space), c);
    EXPECT_LT(calibrated_error(ratio), 0.12) << static_cast<int>(across);
    EXPECT_GT(uncalibrated_error(ratio), 0.5);
    if (across == Across::on_demand) {
      // 40 000 for training, 20 000 of the denominator once, and the numerators of three θ.
      EXPECT_EQ(ratio.simulated(), 40000U + 20000U + 3U * 20000U);
    } else if (across == Across::interpolate) {
      EXPECT_EQ(ratio.simulated(), 40000U + 20000U + 25U * 20000U);
    }
  }
}

TEST(ParameterizedClassifierRatio, InterpolatesBetweenHeldOutEventsOfAGrid) {
  const Design grid(space, {.kind = Design::Kind::grid, .points = {5, 5}});
  auto c = point_config(std::make_shared<Quadratic>(0.4, 1.6), Across::interpolate, 100000);
  c.calibration_events = 0;
  c.calibrator = std::make_shared<SigmoidCalibrator>();
  const ParameterizedClassifierRatio ratio(simulator(), grid, c);
  EXPECT_EQ(ratio.calibrations().size(), 2U);
  EXPECT_EQ(ratio.simulated(), 100000U);
  EXPECT_LT(calibrated_error(ratio), 0.2);
}

TEST(ParameterizedClassifierRatio, LeavesARightClassifierAlone) {
  const ParameterizedClassifierRatio ratio(simulator(), Design(space),
                                           point_config(std::make_shared<Quadratic>()));
  EXPECT_LT(uncalibrated_error(ratio), 0.06);
  EXPECT_LT(calibrated_error(ratio), 0.07);
}

TEST(ParameterizedClassifierRatio, CommonRandomNumbersMakeTheLikelihoodSmooth) {
  auto c = point_config(std::make_shared<Quadratic>(0.3, 1.3), Across::on_demand);
  c.calibration_events = 5000;
  c.calibrator = std::make_shared<SigmoidCalibrator>();
  const ParameterizedClassifierRatio ratio(simulator(), Design(space), c);
  const std::vector<double> truth{0.6, -0.4};
  const auto x = sample(*simulator(), truth, 500, 5, "data");
  const auto sum = ratio.over(x);
  EXPECT_FALSE(sum->differentiable());
  // Second differences of ℓ over steps of 0.02 in α: −500 · 0.02² = −0.2 in truth. The
  // calibration of 5000 events has an error of 500 · 0.03 = 15 at each θ.
  const auto at = [&](double alpha) { return (*sum)(std::vector<double>{alpha, -0.4}, {}); };
  for (const double alpha : {0.3, 0.5, 0.7})
    EXPECT_NEAR(at(alpha + 0.02) - 2.0 * at(alpha) + at(alpha - 0.02), -0.2, 0.25) << alpha;
  EXPECT_EQ(sum->simulation_gradient_covariance(truth), Matrix(2, 2));
  std::vector<double> gradient(2);
  EXPECT_THROW((*sum)(truth, gradient), ArgumentError);
}

TEST(ParameterizedClassifierRatio, GradientIsThatOfTheSum) {
  const auto x = sample(*simulator(), std::vector<double>{0.6, -0.4}, 300, 5, "data");
  std::vector<double> weights(300, 1.0);
  for (std::size_t i = 0; i < 300; i += 3) weights[i] = 2.5;
  // The network is float32 inside: differences over wide steps.
  const auto check = [&](const ParameterizedClassifierRatio& ratio) {
    const auto sum = ratio.over(x, weights);
    ASSERT_TRUE(sum->differentiable());
    const double h = 0.02;
    for (const auto& point : {std::vector<double>{0.5, 0.5}, {-1.2, 1.6}}) {
      std::vector<double> gradient(2);
      const double value = (*sum)(point, gradient);
      EXPECT_NEAR(value, (*sum)(point, {}), 1e-9 * std::abs(value));
      for (std::size_t p = 0; p < 2; ++p) {
        auto above = point, below = point;
        above[p] += h;
        below[p] -= h;
        const double difference = ((*sum)(above, {}) - (*sum)(below, {})) / (2.0 * h);
        EXPECT_NEAR(gradient[p], difference, 0.3 + 2e-3 * std::abs(difference));
      }
    }
  };
  check(trained_classifier());
  for (const auto across : {Across::none, Across::interpolate}) {
    auto c = config(network(2), across, 10000);
    c.calibration_events = 3000;
    c.nodes = {4, 4};
    check(ParameterizedClassifierRatio(simulator(), Design(space), c));
  }
  auto c = config(network(2), Across::smooth, 10000);
  c.denominator = Denominator::parameterized;
  check(ParameterizedClassifierRatio(simulator(), Design(space), c));
}

TEST(ParameterizedClassifierRatio, SumIsThatOfTheLogRatios) {
  const auto x = sample(*simulator(), std::vector<double>{0.6, -0.4}, 100, 5, "data");
  const std::vector<double> one{0.5, 0.5}, other{-0.5, 1.0};
  const auto sum = trained_classifier().over(x);
  double expected = 0.0;
  for (const double value : trained_classifier().log_ratios(x, one, other)) expected += value;
  EXPECT_NEAR((*sum)(one, {}) - (*sum)(other, {}), expected, 1e-8);
  EXPECT_EQ((*trained_classifier().over(Matrix(0, 2)))(one, {}), 0.0);
}

TEST(ParameterizedClassifierRatio, TellsTheUncertaintyFromSimulation) {
  // The gradient at the truth over ten trainings scatters as the covariance says: their ratio has
  // a relative error of 24 %, the covariance of two folds one of its own.
  const std::vector<double> truth{0.6, -0.4};
  const auto x = sample(*simulator(), truth, 1000, 5, "data");
  double sums[2] = {}, squares[2] = {}, stated[2] = {};
  constexpr int repetitions = 10;
  for (int r = 0; r < repetitions; ++r) {
    auto c = config(network(3), Across::smooth, 20000);
    c.seed = 100 + static_cast<std::uint64_t>(r);
    const ParameterizedClassifierRatio ratio(simulator(), Design(space), c);
    const auto sum = ratio.over(x);
    std::vector<double> gradient(2);
    (*sum)(truth, gradient);
    const auto covariance = sum->simulation_gradient_covariance(truth);
    EXPECT_NEAR(covariance(0, 1), covariance(1, 0), 1e-6 * covariance(0, 0));
    for (std::size_t p = 0; p < 2; ++p) {
      sums[p] += gradient[p];
      squares[p] += gradient[p] * gradient[p];
      stated[p] += covariance(p, p) / repetitions;
    }
  }
  for (std::size_t p = 0; p < 2; ++p) {
    const double mean = sums[p] / repetitions;
    const double spread = std::sqrt(squares[p] / repetitions - mean * mean);
    EXPECT_GT(std::sqrt(stated[p]), 0.4 * spread) << p;
    EXPECT_LT(std::sqrt(stated[p]), 4.0 * spread) << p;
  }
}

TEST(ParameterizedClassifierRatio, SavesAndLoadsExactly) {
  const auto x = sample(*simulator(), std::vector<double>{0.6, -0.4}, 50, 5, "data");
  const std::vector<double> one{0.5, 0.5}, other{-0.5, 1.0};
  for (const auto across : {Across::none, Across::interpolate, Across::smooth}) {
    auto c = config(network(1), across, 4000);
    c.calibration_events = 1000;
    c.nodes = {3, 3};
    const ParameterizedClassifierRatio ratio(simulator(), Design(space), c);
    Archive archive;
    ratio.save(archive);
    const ParameterizedClassifierRatio loaded(archive, space);
    EXPECT_EQ(loaded.log_ratios(x, one, other), ratio.log_ratios(x, one, other));
    EXPECT_EQ(loaded.over(x)->simulation_gradient_covariance(one),
              ratio.over(x)->simulation_gradient_covariance(one));
    EXPECT_EQ(loaded.simulated(), ratio.simulated());
    EXPECT_EQ(loaded.count_outside(x), ratio.count_outside(x));
    EXPECT_THROW(ParameterizedClassifierRatio(archive, ParameterSpace({{"a", 0, 1, {}}})),
                 FileError);
    archive.set("calibration", "smoth");
    EXPECT_THROW(ParameterizedClassifierRatio(archive, space), FileError);
  }
}

TEST(ParameterizedClassifierRatio, KnowsWhereTheDesignHasEvents) {
  const Design narrow(space,
                      {.kind = Design::Kind::normal, .mean = {-1.0, -1.0}, .sigma = {0.1, 0.1}});
  auto c = config(network(1), Across::smooth, 4000);
  c.denominator = Denominator::parameterized;
  const ParameterizedClassifierRatio ratio(simulator(), narrow, c);
  EXPECT_TRUE(ratio.region().holds(std::vector<double>{-1.1, -0.9}));
  EXPECT_FALSE(ratio.region().holds(std::vector<double>{1.0, 1.0}));
  EXPECT_TRUE(ratio.region().holds(ratio.reference()));  // not the middle of the ranges
  Archive archive;
  ratio.save(archive);
  EXPECT_FALSE(
      ParameterizedClassifierRatio(archive, space).region().holds(std::vector<double>{1.0, 1.0}));
  EXPECT_TRUE(ParameterizedClassifierRatio(simulator(), Design(space),
                                           config(network(1), Across::none, 400))
                  .region()
                  .everywhere());
}

TEST(ParameterizedClassifierRatio, IsTheSameOnAnyNumberOfThreads) {
  const auto x = sample(*simulator(), std::vector<double>{0.6, -0.4}, 50, 5, "data");
  const std::vector<double> one{0.5, 0.5}, other{-0.5, 1.0};
  const auto c = config(network(1), Across::smooth, 8000);
  set_threads(1);
  const ParameterizedClassifierRatio first(simulator(), Design(space), c);
  set_threads(3);
  const ParameterizedClassifierRatio second(simulator(), Design(space), c);
  set_threads(0);
  EXPECT_EQ(first.log_ratios(x, one, other), second.log_ratios(x, one, other));
}

TEST(ParameterizedClassifierRatio, LearnsFromEventsThatExist) {
  auto events = simulate(*simulator(), space, Design(space), 40000, 2, "train");
  auto c = point_config(std::make_shared<Quadratic>());
  const auto bottom =
      simulate(*simulator(), space, Design::fixed(space, c.reference), 30000, 3, "train");
  const ParameterizedClassifierRatio ratio(events, bottom, Design(space), c);
  EXPECT_LT(calibrated_error(ratio), 0.08);
  EXPECT_EQ(ratio.simulated(), 0U);
  // Events of weight zero are as if absent.
  auto weighted = bottom;
  weighted.append(events);
  weighted.weights.assign(weighted.size(), 0.0);
  std::fill_n(weighted.weights.begin(), bottom.size(), 1.0);
  const ParameterizedClassifierRatio same(events, weighted, Design(space), c);
  EXPECT_LT(calibrated_error(same), 0.08);
}

TEST(ParameterizedClassifierRatio, FreshEventsForEachClassifier) {
  // It does not learn by epochs: one sample for each.
  auto c = point_config(std::make_shared<Quadratic>(0.4, 1.6), Across::smooth, 15000);
  c.fresh = true;
  c.folds = 3;
  const ParameterizedClassifierRatio ratio(simulator(), Design(space), c);
  EXPECT_EQ(ratio.simulated(), 45000U);
  EXPECT_LT(calibrated_error(ratio), 0.15);
}

/// Keeps the rows of three epochs.
class Recorder final : public Classifier {
 public:
  using Epochs = std::vector<std::vector<TrainingRows>>;  // by fold
  explicit Recorder(std::shared_ptr<Epochs> all) : all_(std::move(all)) {}
  std::string kind() const override { return "recorder"; }
  std::unique_ptr<Classifier> fresh() const override { return std::make_unique<Recorder>(all_); }
  void fit(const TrainingSet& data) override { columns_ = data.x.cols(); }
  void fit_epochs(const TrainingEpochs& epochs, std::uint64_t, Progress*) override {
    std::vector<TrainingRows> own = {epochs(0), epochs(1), epochs(2)};
    columns_ = own[0].x.cols();
    static std::mutex mutex;
    const std::lock_guard lock(mutex);
    all_->push_back(std::move(own));
  }
  bool fitted() const override { return columns_ > 0; }
  std::size_t features() const override { return columns_; }
  Logits logits(MatrixView x) const override { return Logits(x.rows()); }
  void save(Archive&) const override {}
  void load(const Archive&) override {}

 private:
  std::shared_ptr<Epochs> all_;
  std::size_t columns_ = 0;
};

TEST(ParameterizedClassifierRatio, FreshEventsDifferBetweenEpochsAndFolds) {
  for (const bool point : {false, true}) {
    const auto seen = std::make_shared<Recorder::Epochs>();
    auto c = config(std::make_shared<Recorder>(seen), Across::none, 101);
    if (point) c = point_config(std::make_shared<Recorder>(seen), Across::none, 101);
    c.fresh = true;
    const ParameterizedClassifierRatio ratio(simulator(), Design(space), c);
    ASSERT_EQ(seen->size(), 2u);
    std::set<double> values;  // of x0, which no two events share
    std::size_t events = 0;
    for (const auto& fold : *seen)
      for (const auto& epoch : fold) {
        EXPECT_EQ(epoch.x.rows(), fold[0].x.rows());
        EXPECT_EQ(epoch.denominator, fold[0].denominator);
        std::vector<double> top, bottom;  // α of both sides
        for (std::size_t i = 0; i < epoch.x.rows(); ++i) {
          (epoch.denominator[i] ? bottom : top).push_back(epoch.x(i, 2));
          values.insert(epoch.x(i, 0));
        }
        events += point ? epoch.x.rows() : top.size();
        std::sort(top.begin(), top.end());
        std::sort(bottom.begin(), bottom.end());
        if (!point) {
          EXPECT_EQ(top, bottom);  // θ alone tells nothing
        }
      }
    EXPECT_EQ(values.size(), events);
    EXPECT_EQ(ratio.simulated(), events);
    EXPECT_EQ(events, 2u * 3u * 101u);
  }
}

TEST(ParameterizedClassifierRatio, FreshEventsAreMoreAccurateThanFewFixedOnes) {
  const auto x = sample(*simulator(), std::vector<double>{0.6, -0.4}, 50, 5, "data");
  const std::vector<double> one{0.5, 0.5}, other{-0.5, 1.0};
  auto c = config(network(30), Across::none, 4000);
  const ParameterizedClassifierRatio fixed(simulator(), Design(space), c);
  c.fresh = true;
  set_threads(1);
  const ParameterizedClassifierRatio fresh(simulator(), Design(space), c);
  set_threads(3);
  const ParameterizedClassifierRatio again(simulator(), Design(space), c);
  set_threads(0);
  EXPECT_EQ(fresh.log_ratios(x, one, other), again.log_ratios(x, one, other));
  EXPECT_EQ(fixed.simulated(), 4000u);
  EXPECT_EQ(fresh.simulated(), 2u * 30u * 4000u);
  EXPECT_LT(uncalibrated_error(fresh), 0.7 * uncalibrated_error(fixed));  // 0.082 against 0.153
  // A sample without a simulator cannot be made anew.
  const auto events = simulate(*simulator(), space, Design(space), 4000, 2, "train");
  EXPECT_THROW(ParameterizedClassifierRatio(events, {}, Design(space), c), ArgumentError);
}

TEST(ParameterizedClassifierRatio, EventsThatStayOnTheDisk) {
  auto events = simulate(*simulator(), space, Design(space), 60000, 2, "train");
  const auto file = std::filesystem::temp_directory_path() /
                    ("neyman across " + std::to_string(getpid()) + ".h5");
  write_samples(file.string(), events);
  ReadOptions options;
  options.parameters = space.names();
  ParameterizedClassifierRatio::Events given;
  given.stream = std::make_shared<SampleStream>(std::vector<SampleStream::Table>{{file.string()}},
                                                options, space.names());
  given.numerator = given.stream->read(0, 10000);
  const auto c = config(network(), Across::smooth);
  const auto learn = [&] {
    auto out = ParameterizedClassifierRatio::trained(given, Design(space), c, nullptr);
    out->calibrate(given, Design(space), c, nullptr);
    return out;
  };
  const auto ratio = learn();
  const ParameterizedClassifierRatio in_memory(events, {}, Design(space), c);
  EXPECT_EQ(ratio->simulated(), 60000u);
  EXPECT_LT(uncalibrated_error(*ratio), 1.3 * uncalibrated_error(in_memory));
  EXPECT_LT(calibrated_error(*ratio), 0.15);
  set_threads(1);
  const auto again = learn();
  set_threads(0);
  const auto x = sample(*simulator(), std::vector<double>{0.6, -0.4}, 50, 5, "data");
  const std::vector<double> one{0.5, 0.5}, other{-0.5, 1.0};
  EXPECT_EQ(ratio->log_ratios(x, one, other), again->log_ratios(x, one, other));
  // Events of a denominator of their own do not stream.
  given.denominator = events;
  EXPECT_THROW(learn(), ArgumentError);
  std::filesystem::remove(file);
}

double spread(const std::vector<double>& values) {
  double mean = 0.0, square = 0.0;
  const auto n = static_cast<double>(values.size());
  for (const double value : values) mean += value / n;
  for (const double value : values) square += (value - mean) * (value - mean);
  return std::sqrt(square / (n - 1.0));
}

TEST(ParameterizedClassifierRatio, ReplicasOnDemandSpreadAsOtherSimulationsDo) {
  const auto x = sample(*simulator(), std::vector<double>{0.6, -0.4}, 200, 5, "data");
  const Matrix points(2, 2, {0.3, -0.4, 0.9, -0.4});
  auto c = point_config(std::make_shared<Quadratic>(), Across::on_demand, 20000);
  c.calibrator = std::make_shared<SigmoidCalibrator>();
  c.calibration_events = 500;
  std::vector<double> found, replicated;
  for (std::uint64_t seed = 0; seed < 40; ++seed) {
    c.seed = seed;
    const ParameterizedClassifierRatio ratio(simulator(), Design(space), c);
    const auto sum = ratio.over(x);
    found.push_back((*sum)(points.row(1), {}) - (*sum)(points.row(0), {}));
    if (seed > 0) continue;
    const auto before = ratio.simulated();
    const auto replicas = sum->simulation_replicas(points, 100, 9);
    EXPECT_EQ(ratio.simulated(), before + 2 * 500u);
    EXPECT_EQ(replicas, sum->simulation_replicas(points, 100, 9));
    ASSERT_EQ(replicas.rows(), 100u);
    for (std::size_t b = 0; b < 100; ++b) replicated.push_back(replicas(b, 1) - replicas(b, 0));
  }
  // 40 and 100 values: beyond a factor of 1.6 with a probability below 10⁻³. Training adds some.
  EXPECT_GT(spread(found) / spread(replicated), 0.6);
  EXPECT_LT(spread(found) / spread(replicated), 1.8);
}

TEST(ParameterizedClassifierRatio, ReplicasOfASmoothCalibrationFollowTheGradientsCovariance) {
  const auto x = sample(*simulator(), std::vector<double>{0.6, -0.4}, 200, 5, "data");
  const auto sum = trained_classifier().over(x);
  const Matrix points(3, 2, {0.2, -0.4, 0.6, -0.4, 1.0, -0.4});
  const auto replicas = sum->simulation_replicas(points, 400, 9);
  const double deviation =
      std::sqrt(sum->simulation_gradient_covariance(std::vector<double>{0.6, -0.4})(0, 0));
  std::vector<double> differences;
  for (std::size_t b = 0; b < replicas.rows(); ++b) {
    differences.push_back(replicas(b, 2) - replicas(b, 0));
    EXPECT_NEAR(replicas(b, 1), (*sum)(points.row(1), {}), 1e-9);  // it moves about the middle
  }
  // Of 400 values, the standard deviation is known to 3.5 %.
  EXPECT_NEAR(spread(differences) / (0.8 * deviation), 1.0, 0.14);
  // Without a gradient the fluctuation is not known.
  auto c = point_config(std::make_shared<Quadratic>(), Across::smooth, 2000);
  const ParameterizedClassifierRatio rough(simulator(), Design(space), c);
  EXPECT_EQ(rough.over(x)->simulation_replicas(points, 10, 9).rows(), 0u);
}

TEST(ParameterizedClassifierRatio, SaysWhatDoesNotFit) {
  const auto message = [](const std::function<void()>& action) -> std::string {
    try {
      action();
    } catch (const Error& failure) {
      return failure.what();
    }
    return {};
  };
  const auto contains = [](const std::string& text, const char* part) {
    return text.find(part) != std::string::npos;
  };
  const auto fail = [&](const std::function<void(Config&)>& change,
                        const Design& design = Design(space)) {
    auto c = config(std::make_shared<Quadratic>(), Across::smooth, 1000);
    change(c);
    return message([&] { ParameterizedClassifierRatio(simulator(), design, c); });
  };
  EXPECT_TRUE(contains(fail([](Config& c) { c.classifier = nullptr; }), "classifier is empty"));
  EXPECT_TRUE(contains(fail([](Config& c) { c.folds = 1; }), "at least 2 for a smooth"));
  EXPECT_TRUE(contains(fail([](Config& c) { c.samples = 30; }), "number of events"));
  EXPECT_TRUE(contains(fail([](Config& c) {
                         c.denominator = Denominator::point;
                         c.reference = {5.0, 0.0};
                       }),
                       "alpha"));
  EXPECT_TRUE(contains(fail([](Config&) {}, Design::fixed(space, {0.0, 0.0})), "a single point"));
  EXPECT_TRUE(contains(fail([](Config& c) {
                         c.calibration = Across::interpolate;
                         c.calibration_events = 0;
                       }),
                       "unless the design is a grid"));
  EXPECT_TRUE(contains(fail([](Config& c) {
                         c.calibration = Across::on_demand;
                         c.calibration_events = 0;
                       }),
                       "at least 1 for on-demand"));
  auto events = simulate(*simulator(), space, Design(space), 1000, 2, "train");
  auto c = config(std::make_shared<Quadratic>(), Across::on_demand);
  EXPECT_TRUE(contains(message([&] { ParameterizedClassifierRatio(events, {}, Design(space), c); }),
                       "without a simulator"));
  c.calibration = Across::smooth;
  c.denominator = Denominator::point;
  c.reference = {0.0, 0.0};
  EXPECT_TRUE(contains(message([&] { ParameterizedClassifierRatio(events, {}, Design(space), c); }),
                       "denominator has no events"));
  c.denominator = Denominator::marginal;
  events.parameter_names = {"alpha", "gamma"};
  EXPECT_TRUE(contains(message([&] { ParameterizedClassifierRatio(events, {}, Design(space), c); }),
                       "θ of the numerator is of other parameters"));
  const std::vector<double> one{0.5, 0.5}, outside{9.0, 0.0};
  EXPECT_TRUE(contains(message([&] { trained_classifier().log_ratios(Matrix(1, 3), one, one); }),
                       "a row of x has 3 values, but must have 2"));
  EXPECT_TRUE(contains(
      message([&] { trained_classifier().log_ratios(Matrix(1, 2), one, outside); }), "alpha"));
  EXPECT_TRUE(contains(message([&] {
                         trained_classifier().over(Matrix(1, 2), std::vector<double>{1, 2});
                       }),
                       "event_weights"));
  auto demand = config(network(1), Across::on_demand, 2000);
  demand.calibration_events = 500;
  const ParameterizedClassifierRatio ratio(simulator(), Design(space), demand);
  Archive archive;
  EXPECT_TRUE(contains(message([&] { ratio.save(archive); }), "needs the simulator"));
}

}  // namespace
}  // namespace neyman
