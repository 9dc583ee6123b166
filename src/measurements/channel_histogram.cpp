#include "neyman/measurements/channel_histogram.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <numeric>
#include <set>
#include <utility>

#include "measurements/auxiliary_value.hpp"
#include "measurements/compiled_model.hpp"
#include "measurements/evaluator.hpp"
#include "neyman/core/check.hpp"
#include "neyman/core/error.hpp"
#include "neyman/core/parallel.hpp"

namespace neyman {

namespace {

std::vector<double> column_sums(const Matrix& parts) {
  std::vector<double> out(parts.cols(), 0.0);
  for (std::size_t s = 0; s < parts.rows(); ++s)
    for (std::size_t b = 0; b < parts.cols(); ++b) out[b] += parts(s, b);
  return out;
}

/// δ_b: half of what the totals change by when a parameter goes a standard deviation up and down.
/// Where its range ends before, the change is scaled up.
std::vector<double> half_change(const StatisticalModel& model, const ExpectedParts& parts,
                                std::vector<double> point, std::size_t p, double error) {
  const auto& range = model.parameters()[p];
  const double centre = point[p];
  const double high = std::min(centre + error, range.high),
               low = std::max(centre - error, range.low);
  if (!(high > low)) return {};
  point[p] = high;
  auto out = column_sums(parts(point));
  point[p] = low;
  const auto below = column_sums(parts(point));
  for (std::size_t b = 0; b < out.size(); ++b) out[b] = (out[b] - below[b]) * error / (high - low);
  return out;
}

/// `errors` are the standard deviations of the parameters, 0 where they add nothing.
ExpectedCounts propagate(const StatisticalModel& model, const ExpectedParts& parts,
                         const std::vector<double>& point, const std::vector<double>& errors,
                         const std::function<double(std::size_t, std::size_t)>& correlation) {
  ExpectedCounts out;
  out.parts = parts(point);
  out.total = column_sums(out.parts);
  std::vector<std::size_t> moved;
  std::vector<std::vector<double>> changes;
  for (std::size_t p = 0; p < errors.size(); ++p) {
    if (!(errors[p] > 0.0)) continue;
    auto change = half_change(model, parts, point, p, errors[p]);
    if (std::all_of(change.begin(), change.end(), [](double value) { return value == 0.0; }))
      continue;
    moved.push_back(p);
    changes.push_back(std::move(change));
  }
  std::vector<double> variance(out.total.size(), 0.0);
  for (std::size_t i = 0; i < moved.size(); ++i)
    for (std::size_t j = 0; j <= i; ++j) {
      const double rho = (i == j ? 1.0 : 2.0) * correlation(moved[i], moved[j]);
      if (rho == 0.0) continue;
      for (std::size_t b = 0; b < variance.size(); ++b)
        variance[b] += rho * changes[i][b] * changes[j][b];
    }
  for (const double square : variance) out.error.push_back(std::sqrt(std::max(square, 0.0)));
  return out;
}

/// The covariance of what lies inside its range, with what ends at a bound held there: what the fit
/// expects does not go beyond.
Matrix covariance_inside(const Fit& best) {
  Matrix out = best.covariance;
  for (std::size_t b = 0; b < best.at_bound.size(); ++b) {
    const double variance = out(b, b);
    if (!best.at_bound[b] || !(variance > 0.0)) continue;
    const std::vector<double> with(out.row(b).begin(), out.row(b).end());
    for (std::size_t i = 0; i < with.size(); ++i)
      for (std::size_t j = 0; j < with.size(); ++j)
        out(i, j) = i == b || j == b ? 0.0 : out(i, j) - with[i] * with[j] / variance;
  }
  return out;
}

/// The rows and columns of one channel.
Matrix block(const Matrix& parts, const std::vector<std::size_t>& rows, std::size_t first,
             std::size_t count) {
  Matrix out(rows.size(), count);
  for (std::size_t s = 0; s < rows.size(); ++s)
    for (std::size_t b = 0; b < count; ++b) out(s, b) = parts(rows[s], first + b);
  return out;
}

ExpectedCounts block(const ExpectedCounts& all, const std::vector<std::size_t>& rows,
                     std::size_t first, std::size_t count) {
  const auto cut = [&](const std::vector<double>& values) {
    const auto begin = values.begin() + static_cast<std::ptrdiff_t>(first);
    return std::vector<double>(begin, begin + static_cast<std::ptrdiff_t>(count));
  };
  return {block(all.parts, rows, first, count), cut(all.total), cut(all.error)};
}

constexpr std::size_t outside = static_cast<std::size_t>(-1);

/// The bin of each value; the last edge belongs to the last bin.
std::vector<std::size_t> bins_of(const std::vector<double>& values,
                                 const std::vector<double>& edges) {
  std::vector<std::size_t> out;
  out.reserve(values.size());
  for (const double value : values) {
    const auto above = std::upper_bound(edges.begin(), edges.end(), value);
    if (value == edges.back())
      out.push_back(edges.size() - 2);
    else if (above == edges.begin() || above == edges.end())
      out.push_back(outside);
    else
      out.push_back(static_cast<std::size_t>(above - edges.begin()) - 1);
  }
  return out;
}

std::size_t unbinned_channel(const char* function, const StatisticalModel& model,
                             const std::string& name) {
  std::vector<std::string> names;
  for (const auto& channel : model.compiled().unbinned) names.push_back(channel.name);
  const auto found = std::find(names.begin(), names.end(), name);
  if (found == names.end())
    throw ArgumentError(
        fmt::format("{}: {}", function, unknown_name(name, "a channel without bins", names)));
  return static_cast<std::size_t>(found - names.begin());
}

const UnbinnedEvents& simulated_of(const char* function, const StatisticalModel& model,
                                   std::size_t channel) {
  const auto& of = model.compiled().unbinned[channel];
  if (of.simulated == nullptr)
    fail_argument(function, fmt::format("the simulated events of channel '{}'", of.name), "missing",
                  "given");
  return *of.simulated;
}

void check_feature(const StatisticalModel& model, std::size_t channel,
                   const FeatureEvents& events) {
  constexpr const char* function = "feature_histogram";
  check_at_least(function, "edges.size", events.edges.size(), 2);
  check_finite(function, "edges", events.edges);
  for (std::size_t i = 1; i < events.edges.size(); ++i)
    if (!(events.edges[i] > events.edges[i - 1]))
      fail_argument(function, fmt::format("edges[{}]", i), fmt::format("{:g}", events.edges[i]),
                    fmt::format("above the one before ({:g})", events.edges[i - 1]));
  check_finite(function, "observed", events.observed);
  check_finite(function, "simulated", events.simulated);
  if (!events.weights.empty()) {
    check_same_size(function, "weights", events.weights.size(), events.observed.size(),
                    "one an observed event");
    check_finite(function, "weights", events.weights);
  }
  check_same_size(function, "simulated", events.simulated.size(),
                  simulated_of(function, model, channel).size(),
                  "one a simulated event of the channel");
}

}  // namespace

ExpectedCounts expected_before_fit(const StatisticalModel& model, const MeasurementData& data,
                                   const ExpectedParts& parts) {
  model.check_data("expected_before_fit", data);
  if (!parts) fail_argument("expected_before_fit", "parts", "empty", "a function");
  auto point = model.start();
  std::vector<double> errors(model.size(), 0.0);
  for (std::size_t k = 0; k < model.constraints().size(); ++k) {
    const auto constraint = model.constraints()[k].with_observed(data.auxiliary[k]);
    const std::size_t p = constraint.parameter();
    if (model.fixed()[p]) continue;
    const auto known = detail::auxiliary_value(constraint);
    point[p] = std::clamp(known.value, model.parameters()[p].low, model.parameters()[p].high);
    errors[p] = known.error;
  }
  return propagate(model, parts, point, errors,
                   [](std::size_t i, std::size_t j) { return i == j ? 1.0 : 0.0; });
}

ExpectedCounts expected_after_fit(const StatisticalModel& model, const Fit& best,
                                  const ExpectedParts& parts) {
  check_same_size("expected_after_fit", "fit", best.point.size(), model.size(), "one a parameter");
  if (!best.ok())
    fail_argument("expected_after_fit", "fit", fmt::format("failed ({})", best.message),
                  "converged");
  if (!parts) fail_argument("expected_after_fit", "parts", "empty", "a function");
  const Matrix covariance = covariance_inside(best);
  std::vector<double> errors;
  for (std::size_t p = 0; p < model.size(); ++p)
    errors.push_back(std::sqrt(std::max(0.0, covariance(p, p))));
  return propagate(model, parts, best.point, errors, [&](std::size_t i, std::size_t j) {
    return covariance(i, j) / (errors[i] * errors[j]);
  });
}

std::vector<ChannelHistogram> channel_histograms(const StatisticalModel& model,
                                                 const MeasurementData& data, const Fit& best) {
  model.check_data("channel_histograms", data);
  if (model.bins() == 0) return {};
  const ExpectedParts parts = [&](std::span<const double> point) {
    return model.expected_by_sample(point);
  };
  const auto before = expected_before_fit(model, data, parts),
             after = expected_after_fit(model, best, parts);
  const auto names = model.sample_names();
  std::vector<ChannelHistogram> out;
  for (const auto& channel : model.compiled().channels) {
    ChannelHistogram one;
    one.channel = channel.name;
    std::vector<std::size_t> rows;
    for (const auto& sample : channel.samples) {
      rows.push_back(sample.name);
      one.samples.push_back(names[sample.name]);
    }
    for (std::size_t b = 0; b <= channel.bins; ++b) one.edges.push_back(static_cast<double>(b));
    for (std::size_t b = 0; b < channel.bins; ++b)
      one.observed.push_back(data.counts[channel.first_bin + b]);
    one.before = block(before, rows, channel.first_bin, channel.bins);
    one.after = block(after, rows, channel.first_bin, channel.bins);
    out.push_back(std::move(one));
  }
  return out;
}

ChannelHistogram feature_histogram(const StatisticalModel& model, const MeasurementData& data,
                                   const Fit& best, const FeatureEvents& events) {
  const std::size_t channel = unbinned_channel("feature_histogram", model, events.channel);
  check_feature(model, channel, events);
  const std::size_t bins = events.edges.size() - 1;
  const auto places = bins_of(events.simulated, events.edges);
  const ExpectedParts parts = [&](std::span<const double> point) {
    Matrix weights;
    if (events.expected) {
      weights = events.expected(point);
      check_same_size("feature_histogram", "rows of expected", weights.rows(),
                      events.components.size(), "one a component");
    } else {
      const auto asimov = model.asimov(point);
      weights = Matrix(1, places.size());
      const auto& total = asimov.events[channel]->weights;
      std::copy(total.begin(), total.end(), weights.row(0).begin());
    }
    check_same_size("feature_histogram", "columns of expected", weights.cols(), places.size(),
                    "one a simulated event");
    Matrix out(weights.rows(), bins);
    for (std::size_t c = 0; c < weights.rows(); ++c)
      for (std::size_t i = 0; i < places.size(); ++i)
        if (places[i] != outside) out(c, places[i]) += weights(c, i);
    return out;
  };
  ChannelHistogram out;
  out.channel = events.channel;
  out.feature = events.feature;
  out.edges = events.edges;
  out.samples = events.expected ? events.components : std::vector<std::string>{"model"};
  out.observed.assign(bins, 0.0);
  const auto observed = bins_of(events.observed, events.edges);
  for (std::size_t i = 0; i < observed.size(); ++i)
    if (observed[i] != outside)
      out.observed[observed[i]] += events.weights.empty() ? 1.0 : events.weights[i];
  out.before = expected_before_fit(model, data, parts);
  out.after = expected_after_fit(model, best, parts);
  return out;
}

namespace {

constexpr const char* all_features = "feature_histograms";

/// How often each simulated event of a channel is expected from each component.
class ExpectedEvents {
 public:
  ExpectedEvents(const StatisticalModel& model, std::size_t channel)
      : channel_(channel),
        events_(*model.compiled().unbinned[channel].simulated),
        evaluator_(model.compiled()),
        parts_(events_.ratios.rows(), events_.size()) {
    for (std::size_t j = 0; j < events_.size(); ++j) total_ += weight(j);
  }

  const Matrix& operator()(std::span<const double> point) {
    evaluator_.parts(point, channel_, events_, parts_);
    for (std::size_t c = 0; c < parts_.rows(); ++c)
      for (std::size_t j = 0; j < parts_.cols(); ++j) parts_(c, j) *= weight(j) / total_;
    return parts_;
  }

 private:
  double weight(std::size_t j) const { return events_.weights.empty() ? 1.0 : events_.weights[j]; }

  std::size_t channel_;
  const UnbinnedEvents& events_;
  detail::Evaluator evaluator_;
  Matrix parts_;
  double total_ = 0.0;
};

std::vector<double> column(MatrixView table, std::size_t c) {
  std::vector<double> out(table.rows());
  for (std::size_t i = 0; i < out.size(); ++i) out[i] = table(i, c);
  return out;
}

/// The values below which 0.5 % and 99.5 % of the events lie, by weights that are not negative.
std::pair<double, double> central_range(const std::vector<double>& values,
                                        const std::vector<double>& weights) {
  constexpr double tail = 0.005;
  std::vector<std::size_t> order(values.size());
  std::iota(order.begin(), order.end(), 0);
  std::sort(order.begin(), order.end(),
            [&](std::size_t a, std::size_t b) { return values[a] < values[b]; });
  const auto weight = [&](std::size_t i) { return weights.empty() ? 1.0 : weights[i]; };
  double total = 0.0, below = 0.0;
  for (const std::size_t i : order) total += weight(i);
  std::pair out{values[order.front()], values[order.back()]};
  bool first = true;
  for (const std::size_t i : order) {
    below += weight(i);
    if (first && below >= tail * total) {
      out.first = values[i];
      first = false;
    }
    if (below >= (1.0 - tail) * total) {
      out.second = values[i];
      break;
    }
  }
  return out;
}

/// The different values where there are few of them; else none.
std::vector<double> few_values(const std::vector<double>& values) {
  constexpr std::size_t few = 30;
  std::set<double> found;
  for (const double value : values) {
    found.insert(value);
    if (found.size() > few) return {};
  }
  return {found.begin(), found.end()};
}

std::vector<double> feature_edges(const std::vector<double>& simulated,
                                  const std::vector<double>& weights,
                                  const std::vector<double>& observed) {
  std::vector<double> out;
  if (const auto values = few_values(simulated); !values.empty()) {
    const double first = values.size() > 1 ? 0.5 * (values[1] - values[0]) : 0.5;
    const double last = values.size() > 1 ? 0.5 * (values.back() - values[values.size() - 2]) : 0.5;
    out.push_back(values.front() - first);
    for (std::size_t i = 1; i < values.size(); ++i)
      out.push_back(0.5 * (values[i - 1] + values[i]));
    out.push_back(values.back() + last);
    return out;
  }
  auto [low, high] = central_range(simulated, weights);
  if (!observed.empty()) {
    // Not by a little: edges where the data happen to have many would make their bins stand out.
    const double beyond = 0.1 * (high - low);
    const auto seen = central_range(observed, {});
    if (seen.first < low - beyond) low = seen.first;
    if (seen.second > high + beyond) high = seen.second;
  }
  const double bins =
      std::clamp(std::round(2.0 * std::cbrt(static_cast<double>(observed.size()))), 10.0, 40.0);
  for (double b = 0.0; b <= bins; ++b) out.push_back(low + (high - low) * b / bins);
  out.back() = high;
  return out;
}

/// The largest ½ Σ (p − q)² / (p + q) of two rows, each normalised to 1.
double separation(const Matrix& parts, std::size_t first, std::size_t bins) {
  double most = 0.0;
  const auto sum = [&](std::size_t c) {
    double total = 0.0;
    for (std::size_t b = 0; b < bins; ++b) total += parts(c, first + b);
    return total;
  };
  for (std::size_t c = 0; c < parts.rows(); ++c)
    for (std::size_t d = c + 1; d < parts.rows(); ++d) {
      const double one = sum(c), other = sum(d);
      if (!(one > 0.0) || !(other > 0.0)) continue;
      double total = 0.0;
      for (std::size_t b = 0; b < bins; ++b) {
        const double p = parts(c, first + b) / one, q = parts(d, first + b) / other;
        if (p + q > 0.0) total += 0.5 * (p - q) * (p - q) / (p + q);
      }
      most = std::max(most, total);
    }
  return most;
}

/// One feature with its bins among those of all.
struct BinnedFeature {
  std::size_t column = 0, first = 0;
  std::vector<double> edges = {};
  std::vector<std::size_t> places = {};  // of the simulated events

  std::size_t bins() const { return edges.size() - 1; }
};

/// Samples × the bins of all these features.
Matrix fill_bins(const Matrix& weights, const std::vector<BinnedFeature>& features) {
  Matrix out(weights.rows(), features.empty() ? 0 : features.back().first + features.back().bins());
  parallel_blocks(features.size(), 1, [&](Block block) {
    const auto& feature = features[block.index];
    for (std::size_t c = 0; c < weights.rows(); ++c)
      for (std::size_t j = 0; j < weights.cols(); ++j)
        if (feature.places[j] != outside)
          out(c, feature.first + feature.places[j]) += weights(c, j);
  });
  return out;
}

void keep_best(std::vector<BinnedFeature>& features, const Matrix& parts, std::size_t most) {
  if (features.size() <= most) return;
  std::vector<std::pair<double, std::size_t>> ranked;
  for (std::size_t f = 0; f < features.size(); ++f)
    ranked.emplace_back(-separation(parts, features[f].first, features[f].bins()), f);
  std::sort(ranked.begin(), ranked.end());
  ranked.resize(most);
  std::vector<std::size_t> chosen;
  for (const auto& entry : ranked) chosen.push_back(entry.second);
  std::sort(chosen.begin(), chosen.end());
  std::vector<BinnedFeature> kept;
  std::size_t first = 0;
  for (const std::size_t f : chosen) {
    kept.push_back(std::move(features[f]));
    kept.back().first = first;
    first += kept.back().bins();
  }
  features = std::move(kept);
}

void check_table(const StatisticalModel& model, std::size_t channel, const FeatureTable& table) {
  check_same_size(all_features, "rows of simulated", table.simulated.rows(),
                  simulated_of(all_features, model, channel).size(),
                  "one a simulated event of the channel");
  check_same_size(all_features, "columns of simulated", table.simulated.cols(), table.names.size(),
                  "one a feature");
  check_same_size(all_features, "columns of observed", table.observed.cols(), table.names.size(),
                  "one a feature");
  if (!table.weights.empty())
    check_same_size(all_features, "weights", table.weights.size(), table.observed.rows(),
                    "one an observed event");
  for (std::size_t i = 0; i < table.observed.rows(); ++i)
    check_finite(all_features, "observed", table.observed.row(i));
  for (std::size_t i = 0; i < table.simulated.rows(); ++i)
    check_finite(all_features, "simulated", table.simulated.row(i));
}

}  // namespace

std::vector<ChannelHistogram> feature_histograms(const StatisticalModel& model,
                                                 const MeasurementData& data, const Fit& best,
                                                 const FeatureTable& table, std::size_t most) {
  const std::size_t channel = unbinned_channel(all_features, model, table.channel);
  check_table(model, channel, table);
  ExpectedEvents expected(model, channel);
  const auto& at_start = expected(model.start());
  std::vector<double> weights = column_sums(at_start);
  for (auto& weight : weights) weight = std::max(weight, 0.0);
  std::vector<BinnedFeature> features(table.names.size());
  parallel_blocks(features.size(), 1, [&](Block block) {
    auto& feature = features[block.index];
    feature.column = block.index;
    const auto simulated = column(table.simulated, block.index);
    feature.edges = feature_edges(simulated, weights, column(table.observed, block.index));
    feature.places = bins_of(simulated, feature.edges);
  });
  std::size_t first = 0;
  for (auto& feature : features) {
    feature.first = first;
    first += feature.bins();
  }
  if (features.size() > most) keep_best(features, fill_bins(at_start, features), most);
  const ExpectedParts parts = [&](std::span<const double> point) {
    return fill_bins(expected(point), features);
  };
  const auto before = expected_before_fit(model, data, parts),
             after = expected_after_fit(model, best, parts);
  std::vector<std::size_t> rows;
  std::vector<std::string> names;
  for (const auto& component : model.compiled().unbinned[channel].components) {
    rows.push_back(rows.size());
    names.push_back(component.name);
  }
  std::vector<ChannelHistogram> out;
  for (const auto& feature : features) {
    ChannelHistogram one;
    one.channel = table.channel;
    one.feature = table.names[feature.column];
    one.edges = feature.edges;
    one.samples = names;
    one.observed.assign(feature.bins(), 0.0);
    const auto places = bins_of(column(table.observed, feature.column), feature.edges);
    for (std::size_t i = 0; i < places.size(); ++i)
      if (places[i] != outside)
        one.observed[places[i]] += table.weights.empty() ? 1.0 : table.weights[i];
    one.before = block(before, rows, feature.first, feature.bins());
    one.after = block(after, rows, feature.first, feature.bins());
    out.push_back(std::move(one));
  }
  return out;
}

}  // namespace neyman
