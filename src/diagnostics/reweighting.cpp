#include "neyman/diagnostics/reweighting.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <numeric>
#include <optional>

#include "diagnostics/tails.hpp"
#include "diagnostics/weighted_events.hpp"
#include "neyman/classifiers/mlp.hpp"
#include "neyman/core/check.hpp"
#include "neyman/core/parallel.hpp"
#include "neyman/core/random.hpp"
#include "neyman/data/splits.hpp"

namespace neyman {

namespace {

struct Scored {
  double score, weight;
  std::uint8_t denominator;
  std::size_t index;
};

/// Both sides in one list, by score.
std::vector<Scored> merged(const char* function, std::span<const double> numerator,
                           std::span<const double> denominator,
                           std::span<const double> numerator_weights,
                           std::span<const double> denominator_weights) {
  check_finite(function, "numerator", numerator);
  check_finite(function, "denominator", denominator);
  const auto u = plain_weights(function, "numerator_weights", numerator_weights, numerator.size());
  const auto w =
      plain_weights(function, "denominator_weights", denominator_weights, denominator.size());
  std::vector<Scored> out;
  out.reserve(u.size() + w.size());
  for (std::size_t i = 0; i < u.size(); ++i) out.push_back({numerator[i], u[i], 0, i});
  for (std::size_t j = 0; j < w.size(); ++j) out.push_back({denominator[j], w[j], 1, j});
  std::sort(out.begin(), out.end(), [](const Scored& a, const Scored& b) {
    return a.score != b.score
               ? a.score < b.score
               : std::pair(a.denominator, a.index) < std::pair(b.denominator, b.index);
  });
  return out;
}

/// The variance that one side adds, and the degrees of freedom of that variance.
struct SideVariance {
  double sum = 0.0, squares = 0.0, cubes = 0.0, bias = 0.0, events = 0.0;

  /// `weight` is the event's part of the side's, `deviation` that of its placement from the area.
  void add(double weight, double deviation) {
    const double part = weight * deviation, q = part * part;
    sum += q;
    squares += q * q;
    cubes += q * part;
    bias -= weight * part;
    events += 1.0;
  }
  double degrees() const { return squares > 0.0 ? std::max(1.0, sum * sum / squares - 1.0) : 1.0; }
};

}  // namespace

AreaUnderCurve area_under_curve(std::span<const double> numerator,
                                std::span<const double> denominator,
                                std::span<const double> numerator_weights,
                                std::span<const double> denominator_weights) {
  const auto events =
      merged("area_under_curve", numerator, denominator, numerator_weights, denominator_weights);
  double total[2] = {0.0, 0.0};
  for (const auto& event : events) total[event.denominator] += event.weight;

  // Placement of each event: the weight of the other side below it, equal scores by half.
  std::vector<double> placement(events.size());
  double below[2] = {0.0, 0.0};
  for (std::size_t begin = 0; begin < events.size();) {
    std::size_t end = begin;
    double tied[2] = {0.0, 0.0};
    for (; end < events.size() && events[end].score == events[begin].score; ++end)
      tied[events[end].denominator] += events[end].weight;
    for (std::size_t i = begin; i < end; ++i) {
      const int other = 1 - events[i].denominator;
      const double share = (below[other] + 0.5 * tied[other]) / total[other];
      placement[i] = events[i].denominator ? share : 1.0 - share;
    }
    below[0] += tied[0];
    below[1] += tied[1];
    begin = end;
  }

  AreaUnderCurve out;
  out.area = 0.0;
  for (std::size_t i = 0; i < events.size(); ++i)
    if (events[i].denominator) out.area += events[i].weight / total[1] * placement[i];
  SideVariance side[2];
  for (std::size_t i = 0; i < events.size(); ++i) {
    const auto& event = events[i];
    if (event.weight > 0.0)
      side[event.denominator].add(event.weight / total[event.denominator], placement[i] - out.area);
  }
  double variance = 0.0, satterthwaite = 0.0;
  for (const auto& s : side) {
    const double unbiased = s.events > 1.0 ? s.sum * s.events / (s.events - 1.0) : s.sum;
    variance += unbiased;
    satterthwaite += unbiased * unbiased / s.degrees();
    out.skewness += s.cubes;
    out.bias += s.bias;
  }
  out.error = std::sqrt(variance);
  out.skewness = variance > 0.0 ? out.skewness / (variance * out.error) : 0.0;
  out.degrees = satterthwaite > 0.0 ? variance * variance / satterthwaite : 1.0;
  return out;
}

double AreaUnderCurve::p_value(double tolerance) const {
  const double excess = area - bias - 0.5 - tolerance;
  if (!(error > 0.0)) return excess > 0.0 ? 0.0 : 1.0;
  return student_tail(without_skewness(excess / error, skewness), degrees);
}

Diagnostic::Series roc_curve(std::span<const double> numerator, std::span<const double> denominator,
                             std::span<const double> numerator_weights,
                             std::span<const double> denominator_weights, std::size_t points) {
  check_at_least("roc_curve", "points", points, 1);
  auto events = merged("roc_curve", numerator, denominator, numerator_weights, denominator_weights);
  std::reverse(events.begin(), events.end());
  double total[2] = {0.0, 0.0};
  for (const auto& event : events) total[event.denominator] += event.weight;
  Diagnostic::Series out;
  out.x = {0.0};
  out.y = {0.0};
  double above[2] = {0.0, 0.0};
  for (std::size_t i = 0; i < events.size(); ++i) {
    above[events[i].denominator] += events[i].weight;
    const bool last_of_ties = i + 1 == events.size() || events[i + 1].score != events[i].score;
    const double x = above[0] / total[0], y = above[1] / total[1];
    // A step of the curve's length, from (0, 0) to (1, 1), for each point.
    const double step = (x - out.x.back()) + (y - out.y.back());
    if (last_of_ties && (step >= 2.0 / static_cast<double>(points) || i + 1 == events.size())) {
      out.x.push_back(std::min(x, 1.0));
      out.y.push_back(std::min(y, 1.0));
    }
  }
  return out;
}

namespace {

/// "An MLP", "A random-forest"
std::string classifier_words(const std::string& kind) {
  if (kind == "mlp") return "An MLP";
  return (std::string_view("aeiou").find(kind.front()) == std::string_view::npos ? "A " : "An ") +
         kind;
}

/// Rows of both sides, cut into those that train and those that are scored.
struct Halves {
  std::vector<std::size_t> training, scored;
};

Halves cut(std::size_t n, double share, std::uint64_t seed) {
  const double fractions[] = {share, 1.0 - share};
  auto parts = random_split(n, fractions, seed);
  return {std::move(parts[0]), std::move(parts[1])};
}

template <class Values>
std::vector<double> pick(const Values& values, const std::vector<std::size_t>& rows) {
  std::vector<double> out;
  out.reserve(rows.size());
  for (const std::size_t row : rows) out.push_back(values[row]);
  return out;
}

void append_rows(Matrix& to, MatrixView from, const std::vector<std::size_t>& rows) {
  Matrix block(rows.size(), from.cols());
  for (std::size_t i = 0; i < rows.size(); ++i)
    std::copy_n(from.row(rows[i]).begin(), from.cols(), block.row(i).begin());
  if (to.empty())
    to = std::move(block);
  else
    to.append(block);
}

struct Separation {
  AreaUnderCurve area;
  Diagnostic::Series roc;
};

/// How well a classifier tells the numerator from the weighted denominator.
Separation separate(const Classifier& kind, const RatioEvents& events, const Halves& numerator,
                    const Halves& denominator, const std::vector<double>& numerator_weights,
                    const std::vector<double>& denominator_weights, std::uint64_t seed) {
  Matrix training;
  append_rows(training, events.numerator, numerator.training);
  append_rows(training, events.denominator, denominator.training);
  std::vector<std::uint8_t> labels(numerator.training.size(), 0);
  labels.resize(training.rows(), 1);
  auto weights = pick(numerator_weights, numerator.training);
  const auto more = pick(denominator_weights, denominator.training);
  weights.insert(weights.end(), more.begin(), more.end());
  const auto classifier = kind.fresh();
  classifier->fit({training, labels, weights, seed});

  Matrix scored;
  append_rows(scored, events.numerator, numerator.scored);
  const auto of_numerator = classifier->logits(scored);
  scored = Matrix();
  append_rows(scored, events.denominator, denominator.scored);
  const auto of_denominator = classifier->logits(scored);
  const auto u = pick(numerator_weights, numerator.scored);
  const auto w = pick(denominator_weights, denominator.scored);
  Separation out;
  out.area = area_under_curve(of_numerator.values(), of_denominator.values(), u, w);
  out.roc = roc_curve(of_numerator.values(), of_denominator.values(), u, w);
  return out;
}

/// The default network, with more epochs for small samples: some 2000 steps in all.
std::shared_ptr<const Classifier> default_classifier(std::size_t rows) {
  Mlp::Config config;
  config.epochs =
      std::clamp<std::size_t>(2000 * config.batch_size / std::max<std::size_t>(rows, 1), 15, 200);
  return std::make_shared<Mlp>(config);
}

constexpr std::size_t least_events = 20;
constexpr double control_level = 1e-3;  // p-value at which the control counts as told apart

}  // namespace

Diagnostic diagnose_reweighting(const RatioEvents& events, const ReweightingConfig& config) {
  const char* function = "diagnose_reweighting";
  check_in_range(function, "training_share", config.training_share, 0.1, 0.9);
  check_in_range(function, "tolerance", config.tolerance, 0.0, 0.5);
  check_at_least(function, "numerator", events.numerator.rows(), least_events);
  check_at_least(function, "denominator", events.denominator.rows(), least_events);
  check_same_size(function, "denominator", events.denominator.cols(), events.numerator.cols(),
                  "features, as the numerator");
  const auto learned = event_weights(function, events, events.denominator_log_ratios);
  const auto plain = plain_weights(function, "denominator_weights", events.denominator_weights,
                                   events.denominator.rows());
  std::optional<EventWeights> exact;
  if (!events.exact_log_ratios.empty())
    exact = event_weights(function, events, events.exact_log_ratios);

  const auto numerator = cut(events.numerator.rows(), config.training_share,
                             derive_seed(config.seed, "reweighting-numerator"));
  const auto denominator = cut(events.denominator.rows(), config.training_share,
                               derive_seed(config.seed, "reweighting-denominator"));
  const auto kind =
      config.classifier
          ? config.classifier
          : default_classifier(numerator.training.size() + denominator.training.size());
  std::vector<const std::vector<double>*> weightings = {&learned.denominator, &plain};
  if (exact) weightings.push_back(&exact->denominator);
  std::vector<Separation> found(weightings.size());
  parallel_tasks(weightings.size(), [&](std::size_t i) {
    found[i] = separate(*kind, events, numerator, denominator, learned.numerator, *weightings[i],
                        derive_seed(config.seed, "reweighting-training", i));
  });
  const auto& test = found[0];
  const auto& control = found[1];

  Diagnostic out;
  out.name = "reweighting";
  out.statistic = test.area.area;
  out.p_value = test.area.p_value(config.tolerance);
  out.tolerance = config.tolerance;
  out.verdict = verdict_of(*out.p_value);
  const double effective = effective_size(pick(learned.denominator, denominator.scored));
  out.explanation = fmt::format(
      "{} classifier tries to tell p(x|θ0) from p(x|θ1) weighted by r̂. Its area under the ROC "
      "curve is {:.4f} ± {:.4f}, and must be one half; without weights it is {:.4f}.",
      classifier_words(kind->kind()), test.area.area, test.area.error, control.area.area);
  if (effective < 30.0) {
    out.note = fmt::format(
        "Only {:.1f} effective events remain after reweighting: this test sees little.", effective);
    out.verdict = Diagnostic::Verdict::no_power;
  } else if (control.area.p_value(0.0) > control_level &&
             out.verdict == Diagnostic::Verdict::pass) {
    // Weights that make equal samples differ are wrong all the same.
    out.note =
        "Without weights the classifier cannot tell the samples apart either: this test has no "
        "power here.";
    out.verdict = Diagnostic::Verdict::no_power;
  }
  out.numbers = {{"area", test.area.area},
                 {"error", test.area.error},
                 {"control_area", control.area.area},
                 {"control_error", control.area.error},
                 {"effective_size", effective}};
  Diagnostic::Panel panel{"ROC curves", "share of the numerator", "share of the denominator", {}};
  panel.series.push_back(
      {"no separation", Diagnostic::Series::Style::line, {0, 1}, {0, 1}, {}, {}});
  const char* names[] = {"weighted by r̂", "without weights", "weighted by the exact r"};
  for (std::size_t i = 0; i < found.size(); ++i) {
    found[i].roc.name = names[i];
    panel.series.push_back(std::move(found[i].roc));
  }
  if (exact) {
    out.numbers.emplace_back("exact_area", found[2].area.area);
    out.numbers.emplace_back("exact_error", found[2].area.error);
  }
  out.panels.push_back(std::move(panel));
  return out;
}

}  // namespace neyman
