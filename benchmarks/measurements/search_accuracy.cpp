// The search of examples/04_search in three ways, over datasets that its simulator makes, each with
// auxiliary observations of its own:
//
//   search_accuracy [study.toml] [datasets] [events of each component] [seed] [workspace.json]
//
// - exact: the unbinned likelihood with the true densities;
// - histogram: the usual practice. A classifier is trained on signal of the nominal mass and the
//   backgrounds, all with nominal nuisance parameters; its score is counted in 20 bins; templates
//   with up and down variations are fitted, as pyhf does (the workspace is written for it);
// - learned: what `neyman run` does.
//
// Prints the expected error of mu, its bias and the coverage of its intervals, where the mass is
// known and where it is measured too, and the limits on mu where there is no signal.
#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "neyman/classifiers/classifier.hpp"
#include "neyman/core/parallel.hpp"
#include "neyman/core/progress.hpp"
#include "neyman/inference/statistics.hpp"
#include "neyman/measurements/extended_likelihood.hpp"
#include "neyman/measurements/model_fit.hpp"
#include "neyman/pipeline/measurement_study.hpp"
#include "neyman/simulators/distribution.hpp"

namespace {

using namespace neyman;

/// What an analysis says about one dataset.
struct Answer {
  bool ok = false;
  double estimate = 0.0, error = 0.0;
  double statistic = 0.0;  // −2 log Λ of the true mu
  double discovery = 0.0;  // √(−2 log Λ) of no signal
  double mass = 0.0, mass_error = 0.0;
};

struct Dataset {
  Matrix x;
  std::vector<Constraint> constraints;  // with the auxiliary observations of this dataset
};

double median(std::vector<double> values) {
  const auto middle = values.begin() + values.size() / 2;
  std::nth_element(values.begin(), middle, values.end());
  return *middle;
}

struct Summary {
  std::string name;
  std::vector<Answer> answers;

  void print() const {
    std::vector<double> estimate, error, discovery, mass, mass_error;
    std::size_t failed = 0, inner = 0, outer = 0;
    for (const auto& answer : answers) {
      if (!answer.ok) {
        ++failed;
        continue;
      }
      estimate.push_back(answer.estimate);
      error.push_back(answer.error);
      discovery.push_back(answer.discovery);
      mass.push_back(answer.mass);
      mass_error.push_back(answer.mass_error);
      inner += answer.statistic <= 1.0 ? 1 : 0;
      outer += answer.statistic <= 3.841458820694124 ? 1 : 0;
    }
    const double n = static_cast<double>(estimate.size());
    const auto binomial = [&](std::size_t k, double level) {
      std::printf(" %6.1f ± %-4.1f", 100.0 * static_cast<double>(k) / n,
                  100.0 * std::sqrt(level * (1.0 - level) / n));
    };
    std::printf("%-24s %8.4f %8.4f %8.4f ± %-7.4f", name.c_str(), mean(error),
                standard_deviation(estimate), mean(estimate) - 1.0,
                standard_deviation(estimate) / std::sqrt(n));
    binomial(inner, 0.6827);
    binomial(outer, 0.95);
    std::printf(" %6.2f", median(discovery));
    if (mean(mass_error) > 0.0)
      std::printf(" %7.3f %7.3f ± %-6.3f", mean(mass_error), mean(mass) - 125.0,
                  standard_deviation(mass) / std::sqrt(n));
    std::printf(" %4zu\n", failed);
    std::fflush(stdout);
  }
};

double mean_error(const Summary& summary) {
  std::vector<double> errors;
  for (const auto& answer : summary.answers)
    if (answer.ok) errors.push_back(answer.error);
  return mean(errors);
}

std::vector<double> truth_of(const Study& study) {
  std::vector<double> out;
  for (const auto& parameter : study.parameters) out.push_back(*parameter.truth);
  return out;
}

std::size_t index_of(const ParameterSpace& parameters, const char* name) {
  return *parameters.find(name);
}

Dataset draw(const Study& study, double mu, std::uint64_t seed) {
  auto truth = truth_of(study);
  truth[index_of(study.parameters, "mu")] = mu;
  Dataset out{simulate_data(study, truth, seed), {}};
  RandomStream random(seed, "auxiliary");
  for (const auto& constraint : study.constraints)
    out.constraints.push_back(constraint.sampled(truth[constraint.parameter()], random));
  return out;
}

/// The fit of an analysis to one dataset, with some parameters held, near a point or from the
/// start.
using MakeFit = std::function<Fit(const std::vector<std::optional<double>>& held,
                                  const std::vector<double>& near)>;

MakeFit exact_fits(const Study& study, const Dataset& data) {
  const auto likelihood = std::make_shared<ConstrainedLikelihood>(
      std::make_shared<ExtendedLikelihood>(study.parameters, *study.measurement->mixture, data.x),
      data.constraints);
  return [likelihood, truth = truth_of(study)](const auto& held, const auto& near) {
    FitOptions options;
    options.start = near.empty() ? truth : near;
    options.fixed = held;
    options.covariance = near.empty();
    return fit(*likelihood, options);
  };
}

MakeFit model_fits(const StatisticalModel& model, const MeasurementData& data) {
  return [&model, data](const auto& held, const auto& near) {
    ModelFitOptions options;
    options.start = near;
    options.fixed = held;
    options.covariance = near.empty();
    return fit_model(model, data, options);
  };
}

/// −2 log Λ and estimates.
Answer ask(const ParameterSpace& parameters, const MakeFit& make_fit, bool mass_known) {
  const std::size_t mu = index_of(parameters, "mu");
  const auto mass = parameters.find("mass");
  std::vector<std::optional<double>> held(parameters.size());
  if (mass && mass_known) held[*mass] = 125.0;
  Answer out;
  const Fit best = make_fit(held, {});
  out.ok = best.ok();
  out.estimate = best.point[mu];
  out.error = best.error(mu);
  if (mass && !mass_known) {
    out.mass = best.point[*mass];
    out.mass_error = best.error(*mass);
  }
  held[mu] = 1.0;
  const Fit tested = make_fit(held, best.point);
  held[mu] = 0.0;
  if (mass) held[*mass] = 125.0;  // without a signal it has no mass
  const Fit without = make_fit(held, best.point);
  out.ok &= tested.ok() && without.ok();
  out.statistic = std::max(0.0, 2.0 * (best.log_likelihood - tested.log_likelihood));
  out.discovery = std::sqrt(std::max(0.0, 2.0 * (best.log_likelihood - without.log_likelihood)));
  return out;
}

/// The largest mu that q_mu does not exclude at 95 %, with the mass known: −2 log Λ = 1.645².
double upper_limit_of(const ParameterSpace& parameters, const MakeFit& make_fit) {
  constexpr double threshold = 1.6448536269514722 * 1.6448536269514722;
  const std::size_t mu = index_of(parameters, "mu");
  std::vector<std::optional<double>> held(parameters.size());
  if (const auto mass = parameters.find("mass")) held[*mass] = 125.0;
  const Fit best = make_fit(held, {});
  double low = best.point[mu], high = parameters[mu].high;
  while (high - low > 1e-4) {
    const double middle = 0.5 * (low + high);
    held[mu] = middle;
    const double q = 2.0 * (best.log_likelihood - make_fit(held, best.point).log_likelihood);
    (q < threshold ? low : high) = middle;
  }
  return low;
}

/// The auxiliary observations of a dataset in the order of a model's constraints. `norm` of the
/// histogram is counted in standard deviations.
std::vector<double> auxiliary_of(const Study& study, const StatisticalModel& model,
                                 const Dataset& data) {
  std::vector<double> out;
  for (const auto& constraint : model.constraints()) {
    const auto& name = model.parameters()[constraint.parameter()].name;
    const std::size_t p = index_of(study.parameters, name.c_str());
    for (const auto& own : data.constraints)
      if (own.parameter() == p)
        out.push_back(constraint.width() == own.width() ? own.observed()
                                                        : (own.observed() - 1.0) / own.width());
  }
  return out;
}

/// One number of each event.
using Score = std::function<std::vector<double>(MatrixView x)>;

Matrix simulated(const Study& study, std::size_t component, const std::vector<double>& point,
                 std::size_t events, std::uint64_t seed, std::uint64_t stream) {
  return sample(*study.measurement->mixture->components()[component], point, events,
                derive_seed(seed, "histogram", stream), "templates");
}

/// A classifier of signal against the backgrounds, all at nominal parameters.
Score learned_score(const Study& study, std::size_t events, std::uint64_t seed) {
  const auto& mixture = *study.measurement->mixture;
  const auto truth = truth_of(study);
  const std::size_t count = mixture.components().size();
  Matrix x(count * events, mixture.dimension());
  std::vector<std::uint8_t> background(x.rows(), 1);
  std::vector<double> weights(x.rows());
  for (std::size_t c = 0; c < count; ++c) {
    const auto own = simulated(study, c, truth, events, seed, 100 + c);
    std::copy(own.values().begin(), own.values().end(), x.row(c * events).begin());
    for (std::size_t i = c * events; i < (c + 1) * events; ++i) {
      background[i] = c == 0 ? 0 : 1;
      weights[i] = mixture.yields()[c](truth);
    }
  }
  const std::shared_ptr<Classifier> classifier = study.learning.classifier->fresh();
  classifier->fit({x, background, weights, seed});
  return [classifier](MatrixView events_at) {
    const auto logits = classifier->logits(events_at);
    return std::vector<double>(logits.begin(), logits.end());
  };
}

/// What that classifier would be with infinite simulation.
Score exact_score(const Study& study) {
  return [&study, truth = truth_of(study)](MatrixView x) {
    const auto& mixture = *study.measurement->mixture;
    std::vector<double> backgrounds(x.rows(), 0.0);
    for (std::size_t c = 1; c < mixture.components().size(); ++c) {
      const auto own = log_density(*mixture.components()[c], truth, x);
      for (std::size_t i = 0; i < x.rows(); ++i)
        backgrounds[i] += mixture.yields()[c](truth) * std::exp(own[i]);
    }
    auto out = log_density(*mixture.components()[0], truth, x);
    for (std::size_t i = 0; i < x.rows(); ++i) out[i] = std::log(backgrounds[i]) - out[i];
    return out;
  };
}

/// The usual practice: a score in 20 bins.
class HistogramAnalysis {
 public:
  static constexpr std::size_t bins = 20;

  HistogramAnalysis(const Study& study, Score score, std::size_t events, std::uint64_t seed)
      : study_(study), score_(std::move(score)), events_(events), seed_(seed) {
    for (std::size_t b = 1; b < bins; ++b) edges_.push_back(0.0);
    set_edges();
    make_workspace();
    model_.emplace(workspace_);
  }

  const Workspace& workspace() const { return workspace_; }
  const ParameterSpace& parameters() const { return model_->parameters(); }
  MakeFit fits(const Dataset& data) const {
    MeasurementData measured;
    measured.counts = counts(data.x);
    measured.auxiliary = auxiliary_of(study_, *model_, data);
    return model_fits(*model_, measured);
  }
  Fit expected() const { return fit_model(*model_, model_->asimov(model_->start())); }

 private:
  const Mixture& mixture() const { return *study_.measurement->mixture; }

  /// Every bin has as much of signal and background together, each normalised to one.
  void set_edges() {
    const auto truth = truth_of(study_);
    std::vector<std::pair<double, double>> scored;  // score, weight
    double backgrounds = 0.0;
    for (std::size_t c = 1; c < mixture().components().size(); ++c)
      backgrounds += mixture().yields()[c](truth);
    for (std::size_t c = 0; c < mixture().components().size(); ++c) {
      const double weight = c == 0 ? 1.0 : mixture().yields()[c](truth) / backgrounds;
      const auto own = simulated(study_, c, truth, events_, seed_, 200 + c);
      for (const double z : score_(own)) scored.emplace_back(z, weight);
    }
    std::sort(scored.begin(), scored.end());
    const double total = 2.0 * static_cast<double>(events_);
    double sum = 0.0;
    std::size_t next = 0;
    for (const auto& [z, weight] : scored) {
      sum += weight;
      if (next < edges_.size() && sum >= total * static_cast<double>(next + 1) / bins)
        edges_[next++] = z;
    }
  }

  std::vector<double> counts(MatrixView x) const {
    std::vector<double> out(bins, 0.0);
    for (const double z : score_(x))
      out[static_cast<std::size_t>(std::upper_bound(edges_.begin(), edges_.end(), z) -
                                   edges_.begin())] += 1.0;
    return out;
  }

  std::vector<double> yields(std::size_t c, const std::vector<double>& point,
                             std::uint64_t stream) const {
    auto out = counts(simulated(study_, c, point, events_, seed_, stream));
    const double scale = mixture().yields()[c](truth_of(study_)) / static_cast<double>(events_);
    for (auto& value : out) value *= scale;
    return out;
  }

  void make_workspace() {
    const auto truth = truth_of(study_);
    BinnedChannel channel{"score", {}, {}};
    for (std::size_t c = 0; c < mixture().components().size(); ++c) {
      const auto& name = mixture().names()[c];
      const auto& component = *mixture().components()[c];
      BinnedSample made{name, yields(c, truth, 10 * c), {}};
      if (c == 0) made.modifiers.push_back(Modifier::norm_factor("mu"));
      for (const std::size_t p : mixture().yields()[c].uses())
        if (study_.parameters[p].name == "norm")
          made.modifiers.push_back(Modifier::norm_sys("norm", 0.9, 1.1));
      for (const char* parameter : {"scale", "resolution"}) {
        const std::size_t p = index_of(study_.parameters, parameter);
        if (!depends_on(component, study_.parameters, p)) continue;
        auto low = truth, high = truth;
        low[p] = -1.0;
        high[p] = 1.0;
        // The same random numbers: variations differ by what they mean, and less by fluctuation.
        made.modifiers.push_back(
            Modifier::histo_sys(parameter, yields(c, low, 10 * c), yields(c, high, 10 * c)));
      }
      channel.samples.push_back(std::move(made));
    }
    channel.observed.assign(bins, 0.0);
    for (const auto& sample : channel.samples)
      for (std::size_t b = 0; b < bins; ++b) channel.observed[b] += sample.yields[b];
    workspace_.channels = {std::move(channel)};
    workspace_.measurements = {{"search", "mu"}};
  }

  const Study& study_;
  Score score_;
  std::size_t events_;
  std::uint64_t seed_;
  std::vector<double> edges_;
  Workspace workspace_;
  std::optional<StatisticalModel> model_;
};

}  // namespace

int main(int argc, char** argv) try {
  const std::string path = argc > 1 ? argv[1] : "examples/04_search/study.toml";
  const auto datasets = static_cast<std::size_t>(argc > 2 ? std::atof(argv[2]) : 100);
  const auto events = static_cast<std::size_t>(argc > 3 ? std::atof(argv[3]) : 100000);
  const auto seed = static_cast<std::uint64_t>(argc > 4 ? std::atoll(argv[4]) : 1);

  auto study = read_study(path);
  reseed(study, seed);
  study.measurement->learning.ratios.replicas = 0;  // nothing here asks for them
  study.training_samples = events * study.measurement->mixture->components().size();

  const double start = seconds_now();
  const HistogramAnalysis histogram(study, learned_score(study, events, seed), events, seed);
  if (argc > 5) write_workspace(histogram.workspace(), argv[5]);
  std::printf("histogram: templates made in %.0f s, expected error of mu %.4f\n",
              seconds_now() - start, histogram.expected().error(0));
  std::printf("histogram of the exact score: expected error of mu %.4f\n",
              HistogramAnalysis(study, exact_score(study), events, seed).expected().error(0));
  const double trained = seconds_now();
  const auto samples = simulate_measurement(study);
  const LearnedChannel channel(samples, study.measurement->learning);
  const auto model = measurement_model(
      study, channel, simulate_data(study, truth_of(study), derive_seed(seed, "observed")));
  std::printf("learned: trained in %.0f s, expected error of mu %.4f\n", seconds_now() - trained,
              fit_model(model, model.asimov(model.start())).error(0));
  std::fflush(stdout);

  std::vector<Summary> summaries = {{"exact, mass known", {}},
                                    {"histogram, mass known", {}},
                                    {"learned, mass known", {}},
                                    {"exact, mass measured", {}},
                                    {"learned, mass measured", {}}};
  for (auto& summary : summaries) summary.answers.resize(datasets);
  const auto learned_fits = [&](const Dataset& data) {
    MeasurementData measured;
    measured.auxiliary = auxiliary_of(study, model, data);
    measured.events = {std::make_shared<const UnbinnedEvents>(channel.describe(data.x))};
    return model_fits(model, measured);
  };
  parallel_tasks(datasets, [&](std::size_t t) {
    const auto data = draw(study, 1.0, derive_seed(seed, "dataset", t));
    const auto exact = exact_fits(study, data), learned = learned_fits(data);
    summaries[0].answers[t] = ask(study.parameters, exact, true);
    summaries[1].answers[t] = ask(histogram.parameters(), histogram.fits(data), true);
    summaries[2].answers[t] = ask(model.parameters(), learned, true);
    summaries[3].answers[t] = ask(study.parameters, exact, false);
    summaries[4].answers[t] = ask(model.parameters(), learned, false);
  });
  // Limits take a dozen fits each.
  const std::size_t empty = std::max<std::size_t>(1, datasets / 5);
  std::vector<double> limits[3];
  for (auto& of : limits) of.resize(empty);
  parallel_tasks(empty, [&](std::size_t t) {
    const auto data = draw(study, 0.0, derive_seed(seed, "no signal", t));
    limits[0][t] = upper_limit_of(study.parameters, exact_fits(study, data));
    limits[1][t] = upper_limit_of(histogram.parameters(), histogram.fits(data));
    limits[2][t] = upper_limit_of(model.parameters(), learned_fits(data));
  });

  std::printf("\n%zu datasets; %zu simulated events of each component; %.0f s\n\n", datasets,
              events, seconds_now() - start);
  std::printf("%-24s %8s %8s %18s %13s %13s %6s %7s %16s %4s\n", "analysis", "error", "spread",
              "bias of mu", "68.3 % holds", "95 % holds", "sigma", "mass ±", "bias of mass",
              "fail");
  for (const auto& summary : summaries) summary.print();
  std::printf(
      "\nerror of mu over the exact one: learned %.3f (mass known), %.3f (mass measured); "
      "histogram over learned: %.3f\n",
      mean_error(summaries[2]) / mean_error(summaries[0]),
      mean_error(summaries[4]) / mean_error(summaries[3]),
      mean_error(summaries[1]) / mean_error(summaries[2]));
  std::printf("median of the 95 %% upper limits of mu in %zu datasets without signal: ", empty);
  std::printf("exact %.3f, histogram %.3f, learned %.3f\n", median(limits[0]), median(limits[1]),
              median(limits[2]));
} catch (const std::exception& error) {
  std::fprintf(stderr, "%s\n", error.what());
  return 1;
}
