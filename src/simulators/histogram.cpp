#include "neyman/simulators/histogram.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <numeric>
#include <utility>

#include "neyman/core/check.hpp"
#include "neyman/simulators/bin_edges.hpp"
#include "simulators/alias_table.hpp"
#include "simulators/events.hpp"
#include "simulators/infinity.hpp"
#include "simulators/reading.hpp"
#include "simulators/shapes.hpp"

namespace neyman {

namespace {

void check_edges(const std::vector<std::vector<double>>& edges) {
  check_at_least("histogram", "axes", edges.size(), 1);
  for (const auto& axis : edges) {
    check_at_least("histogram", "the number of edges of an axis", axis.size(), 2);
    check_finite("histogram", "edges", axis);
    for (std::size_t i = 1; i < axis.size(); ++i)
      if (!(axis[i] > axis[i - 1]))
        fail_argument("histogram", fmt::format("edges[{}]", i), fmt::format("{}", axis[i]),
                      fmt::format("above the one before, {}", axis[i - 1]));
  }
}

std::size_t bins_of(const std::vector<std::vector<double>>& edges) {
  std::size_t bins = 1;
  for (const auto& axis : edges) bins *= axis.size() - 1;
  return bins;
}

/// One axis as a list of numbers, several as a list of lists.
std::vector<std::vector<double>> read_edges(Settings& settings) {
  const auto* value = settings.find("edges");
  const auto* array = value != nullptr ? std::get_if<SettingValue::Array>(&value->data) : nullptr;
  const bool nested = array != nullptr && !array->empty() &&
                      std::holds_alternative<SettingValue::Array>(array->front().data);
  const Key edges("edges",
                  "of the bins: a list, or a list for each axis; with counts, or for a file");
  std::vector<std::vector<double>> out;
  if (!nested) out = {settings.numbers(edges, {})};
  if (!nested && !settings.describing()) return out;
  for (const auto& list :
       settings.lists_of_numbers_or_texts(edges, {KeyDescription::Type::number, 2})) {
    out.emplace_back();
    for (const auto& element : list) {
      if (const auto* number = std::get_if<double>(&element))
        out.back().push_back(*number);
      else
        settings.problem("edges", "contains a text, but must be lists of numbers");
    }
  }
  return out;
}

}  // namespace

Histogram::Histogram(std::vector<std::vector<double>> edges, std::vector<double> contents)
    : edges_(std::move(edges)), contents_(std::move(contents)) {
  check_edges(edges_);
  check_same_size("histogram", "contents", contents_.size(), bins_of(edges_), "one for each bin");
  check_non_negative("histogram", "contents", contents_);
  const double total = std::accumulate(contents_.begin(), contents_.end(), 0.0);
  check_positive("histogram", "the sum of contents", total);
  table_ = std::make_shared<const detail::AliasTable>(contents_);
  for (std::size_t bin = 0; bin < contents_.size(); ++bin) {
    double log_volume = 0.0;
    std::size_t rest = bin;
    for (std::size_t axis = dimension(); axis-- > 0;) {
      const std::size_t i = rest % (edges_[axis].size() - 1);
      rest /= edges_[axis].size() - 1;
      log_volume += std::log(edges_[axis][i + 1] - edges_[axis][i]);
    }
    log_density_.push_back(contents_[bin] > 0.0 ? std::log(contents_[bin] / total) - log_volume
                                                : -infinity);
  }
  if (dimension() != 1) return;
  cumulative_.push_back(0.0);
  double sum = 0.0;
  for (const double content : contents_) cumulative_.push_back((sum += content) / total);
}

Histogram Histogram::filled(MatrixView events, std::span<const double> weights,
                            const Config& config) {
  detail::check_events("histogram", events, weights);
  std::vector<std::vector<double>> edges;
  std::vector<double> column(events.rows());
  for (std::size_t j = 0; j < events.cols(); ++j) {
    for (std::size_t i = 0; i < events.rows(); ++i) column[i] = events(i, j);
    switch (config.binning) {
      case Binning::uniform:
        edges.push_back(uniform_edges(column, config.bins));
        break;
      case Binning::equal_probability:
        edges.push_back(equal_probability_edges(column, weights, config.bins));
        break;
      case Binning::bayesian_blocks:
        edges.push_back(bayesian_blocks_edges(column, weights, config.false_alarm));
        break;
    }
  }
  return filled(events, weights, std::move(edges));
}

Histogram Histogram::filled(MatrixView events, std::span<const double> weights,
                            std::vector<std::vector<double>> edges) {
  detail::check_events("histogram", events, weights);
  check_edges(edges);
  check_same_size("histogram", "a row of events", events.cols(), edges.size(), "one for each axis");
  std::vector<double> contents(bins_of(edges), 0.0);
  double outside = 0.0;
  for (std::size_t i = 0; i < events.rows(); ++i) {
    const double weight = weights.empty() ? 1.0 : weights[i];
    const auto bin = find(edges, events.row(i));
    (bin ? contents[*bin] : outside) += weight;
  }
  Histogram out(std::move(edges), std::move(contents));
  out.outside_ = outside;
  return out;
}

DistributionPtr Histogram::make(Settings settings, const ParameterSpace&,
                                const std::string& folder) {
  const std::size_t before = settings.problems().size();
  std::vector<std::vector<double>> edges;
  if (settings.has("edges")) edges = read_edges(settings);
  std::vector<double> counts;
  if (settings.describing() || !settings.has("file"))
    counts = settings.numbers({"counts", "events in each bin, where there is no file"}, {},
                              Limits::non_negative());
  if (!settings.has("file")) {
    for (const auto* key : {"edges", "counts"})
      if (!settings.has(key))
        settings.problem(key, "is missing, but must be a list of numbers, or file be given");
    if (settings.problems().size() > before) return nullptr;
    return std::make_shared<Histogram>(std::move(edges), counts);
  }
  Config config;
  const auto binning = settings.choice({"binning", "how a file is binned without edges"}, "uniform",
                                       {"uniform", "equal-probability", "bayesian-blocks"});
  config.binning = binning == "uniform"             ? Binning::uniform
                   : binning == "equal-probability" ? Binning::equal_probability
                                                    : Binning::bayesian_blocks;
  config.bins = settings.count({"bins", "for each axis; Bayesian blocks find their own"},
                               config.bins, 1, 1'000'000);
  config.false_alarm =
      settings.number({"false_alarm", "of Bayesian blocks: chance of an edge too many"},
                      config.false_alarm, Limits::inside(0.0, 1.0));
  const auto events = detail::read_events(settings, folder, Key::optional);
  if (!events || settings.problems().size() > before) return nullptr;
  auto made = std::make_shared<Histogram>(
      edges.empty() ? filled(events->x, events->weights, config)
                    : filled(events->x, events->weights, std::move(edges)));
  made->names_ = events->names;
  return made;
}

std::optional<std::size_t> Histogram::find(const std::vector<std::vector<double>>& edges,
                                           std::span<const double> x) {
  std::size_t bin = 0;
  for (std::size_t j = 0; j < edges.size(); ++j) {
    const auto& axis = edges[j];
    if (!(x[j] >= axis.front() && x[j] <= axis.back())) return std::nullopt;
    const auto above = std::upper_bound(axis.begin(), axis.end(), x[j]) - axis.begin();
    const std::size_t i = std::min(static_cast<std::size_t>(above) - 1, axis.size() - 2);
    bin = bin * (axis.size() - 1) + i;
  }
  return bin;
}

void Histogram::sample(std::span<const double>, RandomStream& random, Matrix& out) const {
  detail::check_shape(*this, out);
  random.fill_uniform(out.values());
  for (std::size_t i = 0; i < out.rows(); ++i) {
    std::size_t rest = table_->draw(random);
    for (std::size_t j = dimension(); j-- > 0;) {
      const auto& axis = edges_[j];
      const std::size_t k = rest % (axis.size() - 1);
      rest /= axis.size() - 1;
      // Rounding could reach the next bin, which may be empty.
      const double value = axis[k] + (axis[k + 1] - axis[k]) * out(i, j);
      out(i, j) = value < axis[k + 1] ? value : axis[k];
    }
  }
}

void Histogram::sample_each(MatrixView points, RandomStream& random, Matrix& out) const {
  detail::check_shape(*this, points, out);
  sample({}, random, out);
}

void Histogram::log_density(std::span<const double>, MatrixView x, std::span<double> out) const {
  detail::check_shape(*this, x, out);
  for (std::size_t i = 0; i < out.size(); ++i) {
    const auto bin = find(edges_, x.row(i));
    out[i] = bin ? log_density_[*bin] : -infinity;
  }
}

double Histogram::cdf(std::span<const double> point, double x) const {
  if (!has_cdf()) return Distribution::cdf(point, x);
  const auto& axis = edges_.front();
  if (x <= axis.front()) return 0.0;
  if (x >= axis.back()) return 1.0;
  const auto i =
      static_cast<std::size_t>(std::upper_bound(axis.begin(), axis.end(), x) - axis.begin()) - 1;
  const double share = (x - axis[i]) / (axis[i + 1] - axis[i]);
  return cumulative_[i] + share * (cumulative_[i + 1] - cumulative_[i]);
}

double Histogram::quantile(std::span<const double> point, double probability) const {
  if (!has_cdf()) return Distribution::quantile(point, probability);
  detail::check_probability(*this, probability);
  const auto& axis = edges_.front();
  if (probability == 0.0) {  // where the support begins
    const auto first =
        std::upper_bound(cumulative_.begin(), cumulative_.end(), 0.0) - cumulative_.begin();
    return axis[static_cast<std::size_t>(first) - 1];
  }
  const auto reached = std::lower_bound(cumulative_.begin(), cumulative_.end(), probability);
  const auto i = static_cast<std::size_t>(reached - cumulative_.begin());
  const double share = (probability - cumulative_[i - 1]) / (cumulative_[i] - cumulative_[i - 1]);
  return axis[i - 1] + share * (axis[i] - axis[i - 1]);
}

}  // namespace neyman
