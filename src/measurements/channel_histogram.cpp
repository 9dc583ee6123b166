#include "neyman/measurements/channel_histogram.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "measurements/auxiliary_value.hpp"
#include "measurements/compiled_model.hpp"
#include "neyman/core/check.hpp"
#include "neyman/core/error.hpp"

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

std::size_t unbinned_channel(const StatisticalModel& model, const std::string& name) {
  std::vector<std::string> names;
  for (const auto& channel : model.compiled().unbinned) names.push_back(channel.name);
  const auto found = std::find(names.begin(), names.end(), name);
  if (found == names.end())
    throw ArgumentError("feature_histogram: " +
                        unknown_name(name, "a channel without bins", names));
  return static_cast<std::size_t>(found - names.begin());
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
  const auto& simulated = model.compiled().unbinned[channel].simulated;
  if (simulated == nullptr)
    fail_argument(function, fmt::format("the simulated events of channel '{}'", events.channel),
                  "missing", "given");
  check_same_size(function, "simulated", events.simulated.size(), simulated->size(),
                  "one a simulated event of the channel");
}

}  // namespace

ExpectedCounts expected_before_fit(const StatisticalModel& model, const MeasurementData& data,
                                   const ExpectedParts& parts) {
  model.check_data("expected_before_fit", data);
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
  std::vector<double> errors;
  for (std::size_t p = 0; p < model.size(); ++p) errors.push_back(best.statistical_error(p));
  return propagate(model, parts, best.point, errors, [&](std::size_t i, std::size_t j) {
    return best.covariance(i, j) / (errors[i] * errors[j]);
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
  const std::size_t channel = unbinned_channel(model, events.channel);
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

}  // namespace neyman
