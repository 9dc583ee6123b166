#include "pipeline/next_step.hpp"

#include <gtest/gtest.h>

#include <cmath>
#include <memory>

#include "neyman/core/error.hpp"
#include "neyman/core/random.hpp"
#include "neyman/pipeline/pipeline.hpp"
#include "neyman/simulators/design.hpp"
#include "pipeline/small_study.hpp"

// What a run proposes to do next, and whether it helps.
namespace neyman {
namespace {

using pipeline::Evidence;
using pipeline::next_steps;
using pipeline::note_next_steps;
using test::edited;
using test::parse;
using Verdict = Diagnostic::Verdict;

Diagnostic check(const std::string& name, Verdict verdict) {
  Diagnostic out;
  out.name = name;
  out.verdict = verdict;
  return out;
}

/// A fit of two parameters with errors of 0.1 within [−4, 4], of which finite simulation adds
/// `part` to each.
Results fitted(double part) {
  Results out;
  out.parameters = ParameterSpace({{"a", -4, 4, {}}, {"b", -4, 4, {}}});
  auto& fit = out.fit.fit;
  fit.status = FitStatus::converged;
  fit.point = {1.0, -1.0};
  fit.at_bound = {false, false};
  fit.covariance = Matrix(2, 2);
  fit.simulation_covariance = Matrix(2, 2);
  out.fit.intervals.resize(2);
  for (std::size_t p = 0; p < 2; ++p) {
    fit.covariance(p, p) = 0.01;
    fit.simulation_covariance(p, p) = 0.01 * part * part;
    Interval interval;
    interval.ok = true;
    interval.low = fit.point[p] - 0.2;
    interval.high = fit.point[p] + 0.2;
    out.fit.intervals[p] = {interval};
  }
  fit.simulation_known = true;
  out.budget["simulated"] = 10000;
  out.diagnostics = {check("recovery", Verdict::pass), check("closure", Verdict::pass)};
  return out;
}

std::vector<std::string> words(const std::vector<NextStep>& steps) {
  std::vector<std::string> out;
  for (const auto& step : steps) out.push_back(step.what);
  return out;
}
using Words = std::vector<std::string>;

/// A likelihood of x ~ N(μ, 1) that knows a part of the truth: more for more events.
class Slope final : public ParameterizedRatio {
 public:
  Slope(const ParameterSpace& space, double slope) : ParameterizedRatio(space), slope_(slope) {}
  std::string kind() const override { return "slope"; }
  std::size_t features() const override { return 1; }
  LogRatios log_ratios(MatrixView x, std::span<const double>,
                       std::span<const double>) const override {
    return LogRatios(x.rows());
  }
  std::unique_ptr<SummedRatio> over(MatrixView x, std::span<const double>) const override {
    struct Sum final : SummedRatio {
      double x = 0.0, slope = 1.0;
      double operator()(std::span<const double> point, std::span<double>) const override {
        return slope * point[0] * (x - 0.5 * slope * point[0]);
      }
      bool differentiable() const override { return false; }
      Matrix simulation_gradient_covariance(std::span<const double>) const override { return {}; }
    };
    auto sum = std::make_unique<Sum>();
    sum->x = x(0, 0);
    sum->slope = slope_;
    return sum;
  }
  std::size_t count_outside(MatrixView) const override { return 0; }
  void save(Archive&) const override {}

 private:
  double slope_;
};

const ParameterSpace line({{"mu", -2, 2, {}}});
LearningCurve::Train slope(double all, double of_few = 0.0) {
  return [=](const Samples& events) {
    const double few = std::pow(static_cast<double>(events.size()) / 500.0, -0.35);
    return std::make_shared<Slope>(line, all - of_few * few);
  };
}

Samples simulated_line(std::size_t n) {
  Samples events;
  events.feature_names = {"x"};
  events.parameter_names = {"mu"};
  events.theta = Design(line).draw(n, 1, "theta");
  events.x = Matrix(n, 1);
  RandomStream random(1, "x");
  for (std::size_t i = 0; i < n; ++i) events.x(i, 0) = events.theta(i, 0) + random.normal();
  return events;
}

Evidence tried(const LearningCurve::Train& model, std::vector<pipeline::OtherModel> others = {}) {
  Evidence out;
  pipeline::add_trials(simulated_line(4000), model, others, 1, out);
  return out;
}

TEST(NextSteps, NoneWhereAllIsWell) {
  EXPECT_TRUE(next_steps(fitted(0.2)).empty());
  EXPECT_TRUE(next_steps(fitted(0.2), tried(slope(1.0, 0.4))).empty());
  auto noted = fitted(0.2);
  bool asked = false;
  note_next_steps(noted, {}, [&](Evidence&) { asked = true; });
  EXPECT_FALSE(asked);  // what costs time is not tried
  EXPECT_TRUE(noted.warnings.empty());
}

TEST(NextSteps, MoreEventsOrNarrowerRangesWhereSimulationIsShort) {
  auto results = fitted(0.5);
  bool asked = false;
  note_next_steps(results, {}, [&](Evidence&) { asked = true; });
  EXPECT_TRUE(asked);
  EXPECT_EQ(results.warnings, Words{"finite simulation adds 0.50 of the statistical error to a"});
  ASSERT_EQ(words(results.next_steps), (Words{"Simulate more events", "Narrow the ranges"}));
  const auto& narrower = results.next_steps[1];
  EXPECT_EQ(narrower.keys, (Words{"parameters.a.range", "parameters.b.range", "training.samples"}));
  EXPECT_EQ(narrower.values[0], "[0.3, 1.7]");
  EXPECT_EQ(narrower.values[1], "[-1.7, -0.3]");
  // 4 times (1.4 / 8)^(1/4) of 10 000, and 4 times.
  EXPECT_EQ(narrower.values[2], "26000");
  EXPECT_EQ(results.next_steps[0].values, Words{"40000"});
  // No further than 20 times.
  EXPECT_EQ(next_steps(fitted(3.0)).front().values, Words{"200000"});
  EXPECT_NE(next_steps(fitted(3.0)).front().reason.find("may take more still"), std::string::npos);
  // Files are not simulated.
  Evidence files;
  files.files = true;
  const auto of_files = next_steps(fitted(0.5), files);
  EXPECT_EQ(words(of_files),
            (Words{"Add events to the files, to 40000 in all", "Narrow the ranges"}));
  EXPECT_TRUE(of_files[0].keys.empty());
  EXPECT_EQ(of_files[1].keys.size(), 2u);
  // Of a model that was loaded it is not known how many there were.
  auto loaded = fitted(0.5);
  loaded.budget.clear();
  EXPECT_EQ(next_steps(loaded).front().values, Words{""});
  EXPECT_NE(next_steps(loaded).front().reason.find("4 times as many as now"), std::string::npos);
}

TEST(NextSteps, NoNarrowerRangesWhereACheckFails) {
  auto results = fitted(0.5);
  results.diagnostics[1] = check("closure", Verdict::warn);
  EXPECT_EQ(words(next_steps(results)), Words{"Simulate more events"});
  results.diagnostics.erase(
      results.diagnostics.begin());  // nor where the estimate was not looked at
  results.diagnostics[0] = check("closure", Verdict::pass);
  EXPECT_EQ(words(next_steps(results)), Words{"Simulate more events"});
  // A failed check alone: a bias falls to a half.
  auto small = fitted(0.1);
  small.diagnostics[1] = check("closure:wide", Verdict::fail);
  ASSERT_EQ(words(next_steps(small)), Words{"Simulate more events"});
  EXPECT_EQ(next_steps(small)[0].values, Words{"40000"});
  // An estimate at an end of its range, where the ratio is poor.
  small.fit.fit.at_bound[1] = true;
  EXPECT_EQ(words(next_steps(small)), (Words{"Simulate more events", "Widen the range of b"}));
  EXPECT_EQ(next_steps(small)[1].keys, Words{"parameters.b.range"});
  small.diagnostics.push_back(check("range", Verdict::fail));
  EXPECT_EQ(next_steps(small)[0].what, "Compare the data with the simulation");
  // Where χ² does not hold, a better ratio is no help.
  auto wilks = fitted(0.1);
  wilks.diagnostics.push_back(check("wilks", Verdict::fail));
  EXPECT_EQ(words(next_steps(wilks)), Words{"Take thresholds from simulated datasets"});
}

TEST(NextSteps, FollowTheLearningCurve) {
  auto results = fitted(0.1);
  results.diagnostics[0] = check("recovery", Verdict::fail);
  const auto rising = next_steps(results, tried(slope(1.0, 0.5)));
  ASSERT_EQ(words(rising), Words{"Simulate more events"});
  EXPECT_NE(rising[0].reason.find("from 500 to 2000 events"), std::string::npos)
      << rising[0].reason;
  EXPECT_NE(rising[0].reason.find("by extrapolation"), std::string::npos) << rising[0].reason;
  // The same ratio from any number of events.
  const auto flat = next_steps(results, tried(slope(0.5)));
  ASSERT_EQ(words(flat), Words{"Give the parameters other features"});
  EXPECT_NE(flat[0].reason.find("more events would not help"), std::string::npos);
  // Unless another model knows more.
  const pipeline::OtherModel exact{{"Raise the degree", {"classifier.degree"}, {"6"}, {}},
                                   slope(1.0)};
  const auto other = next_steps(results, tried(slope(0.5), {exact}));
  ASSERT_EQ(words(other), Words{"Raise the degree"});
  EXPECT_EQ(other[0].values, Words{"6"});
  EXPECT_NE(other[0].reason.find("nats more"), std::string::npos);
  EXPECT_NE(other[0].reason.find("more events would not help"), std::string::npos);
  // One that knows less is not named, nor one that is tried where the curve is flat alone.
  EXPECT_EQ(words(next_steps(results, tried(slope(1.0), {{exact.step, slope(0.5)}}))),
            Words{"Give the parameters other features"});
  EXPECT_EQ(
      words(next_steps(results, tried(slope(1.0, 0.5), {{exact.step, slope(1.0), slope(0.5)}}))),
      Words{"Simulate more events"});
  // A moving edge that was noted before names the model.
  results.next_steps = {{"Let a density follow", {"classifier.kind"}, {"\"density\""}, ""}};
  EXPECT_EQ(words(next_steps(results, tried(slope(0.5), {exact}))), Words{"Let a density follow"});
}

TEST(NextSteps, OfAParameterThatTheFeaturesDoNotTellOf) {
  Evidence untold = tried(slope(-0.01));
  untold.untold = {1};
  const auto steps = next_steps(fitted(0.1), untold);
  ASSERT_EQ(steps.size(), 1u);
  EXPECT_EQ(steps[0].keys, Words{"training.samples"});
  EXPECT_NE(steps[0].reason.find("whether the features tell of b"), std::string::npos);
  untold = tried(slope(1.0));
  untold.untold = {1};
  EXPECT_EQ(words(next_steps(fitted(0.1), untold)),
            Words{"Find a feature that tells of b, or leave it out"});
}

/// How far the estimate is from the exact one, in exact errors.
double shift(const Results& results) {
  return std::abs(results.fit.fit.point[0] - results.exact_fit->fit.point[0]) /
         results.exact_fit->fit.statistical_error(0);
}
double simulation_part(const Results& results) {
  return results.fit.fit.simulation_error(0) / results.fit.fit.statistical_error(0);
}

// The seeds are fixed: what is compared is what following a proposal does to one study.
const std::string rate_study = R"([study]
name = "rate"
seed = 5

[parameters]
rate = { range = [0.2, 5], truth = 1 }

[simulator]
kind = "exponential"
rate = "rate"

[training]
samples = 2000

[classifier]
kind = "density"
members = 2
components = 4
epochs = 20

[data]
events = 300

[diagnostics]
which = ["recovery"]
)";

TEST(NextSteps, MoreEventsHelpAsMuchAsIsSaid) {
  const auto few = run(parse(rate_study)).results;
  const double before = simulation_part(few);
  EXPECT_GT(before, 0.5);
  ASSERT_FALSE(few.next_steps.empty());
  const auto& step = few.next_steps.front();
  ASSERT_EQ(step.keys, Words{"training.samples"});
  EXPECT_NE(step.reason.find("a held-out event rises by"), std::string::npos) << step.reason;
  const auto more =
      run(parse(edited(rate_study, "samples = 2000", "samples = " + step.values[0]))).results;
  EXPECT_LT(simulation_part(more), 0.5 * before);
  EXPECT_EQ(worst_of(more.diagnostics), Verdict::pass);
  EXPECT_LT(shift(more), 0.75);
}

// A narrow peak that moves is no polynomial of low degree in its position, from however many
// events.
TEST(NextSteps, AnotherModelHelpsWhereMoreEventsDoNot) {
  const auto text =
      edited(edited(edited(rate_study, "rate = { range = [0.2, 5], truth = 1 }",
                           "t = { range = [-3, 3], truth = 1 }"),
                    "kind = \"exponential\"\nrate = \"rate\"\n",
                    "kind = \"mixture\"\nweights = [0.2, 0.8]\ncomponents = [\n"
                    "{ name = \"peak\", kind = \"normal\", mean = \"t\", sigma = 0.2 },\n"
                    "{ name = \"flat\", kind = \"uniform\", low = -4, high = 4 }]\n"),
             "samples = 2000", "samples = 8000");
  const auto sums =
      edited(edited(text, "kind = \"density\"\nmembers = 2\ncomponents = 4\nepochs = 20",
                    "kind = \"separable\"\nhidden = []\ndegree = 2\nepochs = 2"),
             "[\"recovery\"]", "[\"recovery\", \"reliability\", \"closure\"]\nevents = 2000");
  const auto poor = run(parse(sums)).results;
  EXPECT_EQ(worst_of(poor.diagnostics), Verdict::fail);
  ASSERT_EQ(poor.next_steps.size(), 1u);
  const auto& step = poor.next_steps.front();
  EXPECT_EQ(step.keys, Words{"classifier.kind"});
  EXPECT_EQ(step.values, Words{"\"learned\""});
  const auto better =
      run(parse(edited(sums, "kind = \"separable\"\nhidden = []\ndegree = 2\nepochs = 2",
                       "kind = \"learned\"\neffort = \"quick\"")))
          .results;
  EXPECT_LT(worst_of(better.diagnostics), Verdict::fail);
  EXPECT_GT(shift(poor), 5.0);
  EXPECT_LT(shift(better), 1.0);
}

TEST(NextSteps, TooFewEventsToTry) {
  Evidence out;
  pipeline::add_trials(simulated_line(300), slope(1.0), {}, 1, out);
  EXPECT_FALSE(out.curve);
  // A model that an eighth is too few for.
  pipeline::add_trials(
      simulated_line(900),
      [](const Samples& events) -> std::shared_ptr<const ParameterizedRatio> {
        if (events.size() < 200) throw ArgumentError("too few");
        return std::make_shared<Slope>(line, 1.0);
      },
      {}, 1, out);
  EXPECT_FALSE(out.curve);
}

}  // namespace
}  // namespace neyman
