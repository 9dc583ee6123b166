#include "neyman/calibration/histogram.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <optional>
#include <string>

#include "calibration/counts.hpp"
#include "calibration/line.hpp"
#include "calibration/monotone_cubic.hpp"
#include "calibration/scores.hpp"
#include "neyman/core/check.hpp"
#include "neyman/core/error.hpp"
#include "neyman/core/parallel.hpp"

namespace neyman {

using namespace calibration;

namespace {

constexpr std::size_t most_bins = 10000;

const std::vector<std::string> edge_names = {"equal-probability", "uniform", "bayesian-blocks"};

struct Bins {
  std::vector<double> numerator, denominator, moment, share;
  explicit Bins(std::size_t size) : numerator(size), denominator(size), moment(size), share(size) {}
};

std::vector<double> equal_probability_edges(const Cells& cells, std::size_t bins) {
  std::vector<double> edges{cells.low};
  double below = 0.0;
  for (std::size_t i = 0; i + 1 < cells.size(); ++i) {
    below += cells.share(i);
    const double target = static_cast<double>(edges.size()) / static_cast<double>(bins);
    // Closes at the end of the cell that is nearest to the target.
    if (below + 0.5 * cells.share(i + 1) >= target && edges.size() < bins) {
      edges.push_back(cells.upper[i]);
    }
  }
  edges.push_back(cells.high);
  return edges;
}

std::vector<double> uniform_edges(const Cells& cells, std::size_t bins) {
  std::vector<double> edges{cells.low};
  for (std::size_t i = 1; i < bins; ++i) {
    const double t = static_cast<double>(i) / static_cast<double>(bins);
    const double edge = cells.low + t * (cells.high - cells.low);
    if (edge > edges.back() && edge < cells.high) edges.push_back(edge);
  }
  edges.push_back(cells.high);
  return edges;
}

double block_fitness(double n0, double n1) {
  const double n = n0 + n1;
  return (n0 > 0.0 ? n0 * std::log(n0 / n) : 0.0) + (n1 > 0.0 ? n1 * std::log(n1 / n) : 0.0);
}

// Scargle's dynamic programme over the cells: the best last block for each end.
std::vector<double> bayesian_block_edges(const Cells& cells) {
  const std::size_t size = cells.size();
  const double events = cells.numerator_total + cells.denominator_total;
  const double price =
      std::max(0.0, 4.0 - std::log(73.53 * 0.05 * std::pow(std::max(events, 1.0), -0.478)));
  std::vector<double> best(size + 1, 0.0);
  std::vector<std::size_t> start(size + 1, 0);
  for (std::size_t end = 1; end <= size; ++end) {
    best[end] = -std::numeric_limits<double>::infinity();
    double n0 = 0.0, n1 = 0.0;
    for (std::size_t first = end; first-- > 0;) {
      n0 += cells.numerator[first];
      n1 += cells.denominator[first];
      const double value = best[first] + block_fitness(n0, n1) - price;
      if (value > best[end]) {
        best[end] = value;
        start[end] = first;
      }
    }
  }
  std::vector<double> edges{cells.high};
  for (std::size_t end = start[size]; end > 0; end = start[end]) {
    edges.push_back(cells.upper[end - 1]);
  }
  edges.push_back(cells.low);
  std::reverse(edges.begin(), edges.end());
  return edges;
}

std::size_t find_bin(const std::vector<double>& edges, double logit) {
  const auto at = std::lower_bound(edges.begin() + 1, edges.end() - 1, logit);
  return static_cast<std::size_t>(at - edges.begin()) - 1;
}

Bins count_cells(const std::vector<double>& edges, const Cells& cells) {
  Bins bins(edges.size() - 1);
  for (std::size_t i = 0; i < cells.size(); ++i) {
    const std::size_t bin = find_bin(edges, cells.score[i]);
    bins.numerator[bin] += cells.numerator[i];
    bins.denominator[bin] += cells.denominator[i];
    bins.share[bin] += cells.share(i);
    bins.moment[bin] += cells.share(i) * cells.score[i];
  }
  return bins;
}

void count_side(const std::vector<double>& edges, const SortedSide& side,
                std::vector<double>& counts, Bins& bins) {
  std::size_t bin = 0;
  for (std::size_t i = 0; i < side.size(); ++i) {
    while (bin + 2 < edges.size() && side.scores[i] > edges[bin + 1]) ++bin;
    const double weight = side.weight(i), share = 0.5 * weight / side.total;
    counts[bin] += weight;
    bins.share[bin] += share;
    bins.moment[bin] += share * side.scores[i];
  }
}

Bins count_events(const std::vector<double>& edges, const SortedScores& scores) {
  Bins bins(edges.size() - 1);
  count_side(edges, scores.numerator, bins.numerator, bins);
  count_side(edges, scores.denominator, bins.denominator, bins);
  return bins;
}

// Exact where edges are ends of fine cells.
Bins count_events(const std::vector<double>& edges, const FineCounts& counts) {
  Bins bins(edges.size() - 1);
  const double unit0 = 0.5 / counts.numerator_total, unit1 = 0.5 / counts.denominator_total;
  std::size_t i = 0;
  for (std::size_t bin = 0; bin + 1 < edges.size(); ++bin) {
    const bool last = bin + 2 == edges.size();
    double n0 = 0.0, n1 = 0.0, moment = 0.0;
    for (; i < counts.size(); ++i) {
      const double middle = counts.middle(i);
      if (!last && middle > edges[bin + 1]) break;
      n0 += counts.numerator[i];
      n1 += counts.denominator[i];
      moment += (unit0 * counts.numerator[i] + unit1 * counts.denominator[i]) * middle;
    }
    bins.numerator[bin] = n0;
    bins.denominator[bin] = n1;
    bins.share[bin] = unit0 * n0 + unit1 * n1;
    bins.moment[bin] = moment;
  }
  return bins;
}

struct Curve {
  std::vector<double> centres, values, errors;
};

Curve estimate(const std::vector<double>& edges, const Bins& bins, const Cells& cells,
               const Line& line) {
  Curve curve;
  for (std::size_t i = 0; i + 1 < edges.size(); ++i) {
    const double mean =
        bins.share[i] > 0.0 ? bins.moment[i] / bins.share[i] : 0.5 * (edges[i] + edges[i + 1]);
    const double centre = std::clamp(mean, edges[i], edges[i + 1]);
    const Estimate value =
        estimate_from_counts(bins.numerator[i], bins.denominator[i], cells.numerator_total,
                             cells.denominator_total, line, centre);
    curve.centres.push_back(centre);
    curve.values.push_back(value.log_ratio);
    curve.errors.push_back(value.error);
  }
  return curve;
}

/// The curve for many logits; the parts must outlive it.
class CurveEvaluator {
 public:
  CurveEvaluator(bool interpolate, const std::vector<double>& edges,
                 const std::vector<double>& centres, const std::vector<double>& values,
                 const std::vector<double>& slopes, std::size_t queries)
      : interpolate_(interpolate),
        edges_(edges),
        centres_(centres),
        values_(values),
        slopes_(slopes),
        lookup_(interpolate ? centres : edges, queries) {}

  double operator()(double logit) const {
    const double inside = std::clamp(logit, edges_.front(), edges_.back());
    if (interpolate_) return evaluate_monotone_cubic(centres_, values_, slopes_, lookup_, inside);
    const std::size_t after = lookup_.count_below(inside);
    return values_[std::clamp<std::size_t>(after, 1, edges_.size() - 1) - 1];
  }

 private:
  bool interpolate_;
  const std::vector<double>&edges_, &centres_, &values_, &slopes_;
  Lookup lookup_;
};

// Log-likelihood of the sides less one for each bin with events.
double information(bool interpolate, const std::vector<double>& edges, const Cells& cells,
                   const Line& line) {
  const Bins bins = count_cells(edges, cells);
  const Curve curve = estimate(edges, bins, cells, line);
  const auto slopes = monotone_slopes(curve.centres, curve.values);
  const double odds = std::log(cells.denominator_total / cells.numerator_total);
  const CurveEvaluator evaluate(interpolate, edges, curve.centres, curve.values, slopes,
                                cells.size());
  double sum = 0.0;
  for (std::size_t i = 0; i < cells.size(); ++i) {
    const double value = evaluate(cells.score[i]);
    sum += side_log_likelihood(cells.numerator[i], cells.denominator[i], value, odds);
  }
  for (const double share : bins.share) sum -= share > 0.0 ? 1.0 : 0.0;
  return sum;
}

template <class MakeEdges>
std::vector<double> choose_edges(bool interpolate, const Cells& cells, const Line& line,
                                 MakeEdges&& make) {
  std::vector<double> best;
  double best_value = -std::numeric_limits<double>::infinity();
  for (const std::size_t bins : {2, 3, 4, 6, 8, 11, 16, 23, 32, 45, 64, 91, 128, 181, 256}) {
    if (bins > cells.size()) break;
    const std::vector<double> edges = make(cells, bins);
    const double value = information(interpolate, edges, cells, line);
    if (value > best_value) {
      best_value = value;
      best = edges;
    }
  }
  return best.empty() ? std::vector<double>{cells.low, cells.high} : best;
}

}  // namespace

HistogramCalibrator::Config HistogramCalibrator::Config::from(Settings& settings) {
  Config config;
  const std::string edges =
      settings.choice({"edges", "where the bins begin and end"}, edge_names[0], edge_names);
  const auto at = std::find(edge_names.begin(), edge_names.end(), edges);
  config.edges = static_cast<Edges>(at - edge_names.begin());
  config.bins = settings.count({"bins", "0: chosen by the data; not used by Bayesian blocks"},
                               config.bins, 0, most_bins);
  config.interpolate = settings.flag(
      {"interpolate", "between the middles of the bins; false: steps"}, config.interpolate);
  return config;
}

HistogramCalibrator::HistogramCalibrator(Config config) : config_(config) {
  if (config_.bins > most_bins) {
    fail_argument("HistogramCalibrator", "bins", std::to_string(config_.bins), "at most 10000");
  }
}

std::unique_ptr<Calibrator> HistogramCalibrator::fresh() const {
  return std::make_unique<HistogramCalibrator>(config_);
}

void HistogramCalibrator::fit(const CalibrationSet& data) {
  const CheckedScores scores = check_scores(data);
  const bool blocks = config_.edges == Edges::bayesian_blocks;
  const bool uniform = config_.edges == Edges::uniform;
  const double cell_share = blocks               ? usual_cell_share
                            : config_.bins > 256 ? 0.25 / static_cast<double>(config_.bins)
                                                 : 1.0 / 1024;
  // Uniform bins cut through cells, which matters where their number is chosen by those; blocks
  // begin and end at single events.
  const bool ordered = blocks || (uniform && config_.bins == 0);
  const auto counts =
      ordered ? std::nullopt : count_finely(scores, cell_share, uniform ? config_.bins : 1);
  std::optional<SortedScores> sorted;
  if (!counts) sorted = sort_scores(scores);
  const Cells cells = counts ? make_cells(*counts, cell_share) : make_cells(*sorted, cell_share);
  const Line line = fit_line(cells);
  if (blocks) {
    edges_ = bayesian_block_edges(cells);
  } else {
    const auto make = uniform ? uniform_edges : equal_probability_edges;
    edges_ = config_.bins > 0 ? make(cells, config_.bins)
                              : choose_edges(config_.interpolate, cells, line, make);
  }
  Curve curve = estimate(
      edges_, counts ? count_events(edges_, *counts) : count_events(edges_, *sorted), cells, line);
  centres_ = std::move(curve.centres);
  values_ = std::move(curve.values);
  errors_ = std::move(curve.errors);
  low_ = cells.low;
  high_ = cells.high;
  prepare();
}

void HistogramCalibrator::prepare() { slopes_ = monotone_slopes(centres_, values_); }

LogRatios HistogramCalibrator::log_ratios(const Logits& logits) const {
  check_evaluation(*this, "HistogramCalibrator::log_ratios", logits);
  LogRatios result(logits.size());
  const CurveEvaluator evaluate(config_.interpolate, edges_, centres_, values_, slopes_,
                                logits.size());
  parallel_blocks(logits.size(), default_block, [&](Block block) {
    for (std::size_t i = block.begin; i < block.end; ++i) result[i] = evaluate(logits[i]);
  });
  return result;
}

std::vector<double> HistogramCalibrator::errors(const Logits& logits) const {
  check_evaluation(*this, "HistogramCalibrator::errors", logits);
  std::vector<double> result(logits.size());
  for (std::size_t i = 0; i < logits.size(); ++i) {
    result[i] = config_.interpolate ? interpolate_errors(centres_, errors_, logits[i])
                                    : errors_[find_bin(edges_, logits[i])];
  }
  return result;
}

void HistogramCalibrator::save(Archive& archive) const {
  archive.set("edge_kind", edge_names[static_cast<std::size_t>(config_.edges)]);
  archive.set("bins", config_.bins);
  archive.set("interpolate", config_.interpolate);
  archive.set("low", low_);
  archive.set("high", high_);
  archive.set("edges", edges_);
  archive.set("centres", centres_);
  archive.set("values", values_);
  archive.set("errors", errors_);
}

void HistogramCalibrator::load(const Archive& archive) {
  const auto name = std::find(edge_names.begin(), edge_names.end(), archive.text("edge_kind"));
  if (name == edge_names.end()) {
    throw FileError(unknown_name(archive.text("edge_kind"), "kind of edges", edge_names));
  }
  Config config;
  config.edges = static_cast<Edges>(name - edge_names.begin());
  config.bins = static_cast<std::size_t>(archive.integer("bins"));
  config.interpolate = archive.flag("interpolate");
  *this = HistogramCalibrator(config);
  low_ = archive.number("low");
  high_ = archive.number("high");
  edges_ = archive.numbers("edges");
  centres_ = archive.numbers("centres");
  values_ = archive.numbers("values");
  errors_ = archive.numbers("errors");
  if (edges_.empty()) return;
  const std::size_t bins = edges_.size() - 1;
  if (bins == 0 || centres_.size() != bins || values_.size() != bins || errors_.size() != bins) {
    throw FileError("calibrator: edges, centres, values and errors do not belong together");
  }
  prepare();
}

}  // namespace neyman
