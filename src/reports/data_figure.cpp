#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "neyman/inference/statistics.hpp"
#include "reports/figure_parts.hpp"
#include "reports/words.hpp"

namespace neyman::reports {

namespace {

/// One feature of the data in its bins.
struct Feature {
  std::string name;
  std::vector<double> values;
  std::vector<double> edges;

  Range range() const { return {edges.front(), edges.back()}; }
  bool shows(double value) const { return value >= edges.front() && value <= edges.back(); }
};

std::optional<std::vector<Feature>> features_of(const Results& r, std::size_t most) {
  std::vector<Feature> out;
  for (std::size_t f = 0; f < std::min(r.data.cols(), most); ++f) {
    Feature feature{f < r.feature_names.size() ? r.feature_names[f] : fmt::format("x{}", f),
                    r.data.column(f),
                    {}};
    const auto sorted = sorted_finite(feature.values);
    if (sorted.empty()) return std::nullopt;
    const Range range = extent(sorted);
    feature.edges = equal_edges(range, bins_for(range, bin_width(sorted)));
    out.push_back(std::move(feature));
  }
  return out;
}

std::string outside_words(const std::vector<Feature>& features) {
  std::size_t outside = 0;
  for (const auto& feature : features)
    outside += static_cast<std::size_t>(
        std::count_if(feature.values.begin(), feature.values.end(),
                      [&](double v) { return std::isfinite(v) && !feature.shows(v); }));
  if (outside == 0) return {};
  return fmt::format(" {} beyond the edges of the frame {} not drawn.",
                     count_words(outside, "value"), outside == 1 ? "is" : "are");
}

Panel feature_panel(const Feature& feature, const std::string& label) {
  Panel panel;
  panel.x_label = feature.name;
  panel.y_label = "density";
  panel.x_range = feature.range();
  panel.series.emplace_back(histogram_of(feature.values, feature.edges, label, Role::data));
  return panel;
}

// ----------------------------------------------------------------------------- one feature

/// Where a share of the data tells most about which of the two densities is the true one.
std::string largest_difference(const Results& r, const std::string& name) {
  std::size_t best = 0;
  const auto relative = [&](std::size_t i) {
    return r.denominator_density[i] > 0.0 ? r.numerator_density[i] / r.denominator_density[i] - 1.0
                                          : 0.0;
  };
  const auto information = [&](std::size_t i) {
    return r.denominator_density[i] * relative(i) * relative(i);
  };
  for (std::size_t i = 1; i < r.density_x.size(); ++i)
    if (information(i) > information(best)) best = i;
  return fmt::format("They differ most significantly at {} = {}, where the first is {} {}.", name,
                     number(r.density_x[best], 2), percent(std::abs(relative(best)), 0),
                     relative(best) >= 0.0 ? "higher" : "lower");
}

Figure one_feature(const Results& r, const Feature& feature) {
  Figure figure;
  figure.panel_width = wide;
  figure.panel_height = 360.0;
  figure.caption = data_words(r);
  figure.panels = {feature_panel(feature, "data")};
  if (r.density_x.empty() || r.numerator_density.empty()) {
    figure.caption += ".";
    return figure;
  }
  const auto name = [&](const std::vector<double>& point) {
    return fmt::format("p({} | {})", feature.name, theta_words(r, point));
  };
  auto& series = figure.panels[0].series;
  series.emplace_back(Line{r.density_x, r.denominator_density, name(r.reference), Role::denominator,
                           Dash::dashed, 2.0});
  series.emplace_back(Line{r.density_x, r.numerator_density, name(r.compared_point),
                           Role::numerator, Dash::solid, 2.0});
  figure.caption +=
      fmt::format(", with the densities at {} and at {}. {}", theta_words(r, r.compared_point),
                  theta_words(r, r.reference), largest_difference(r, feature.name));
  return figure;
}

// ------------------------------------------------------------------------- several features

/// Pearson's, of the events in which both are finite; nothing where one does not vary.
std::optional<double> correlation(const std::vector<double>& a, const std::vector<double>& b) {
  std::vector<double> x, y;
  for (std::size_t i = 0; i < a.size(); ++i)
    if (std::isfinite(a[i]) && std::isfinite(b[i])) {
      x.push_back(a[i]);
      y.push_back(b[i]);
    }
  const double sx = standard_deviation(x), sy = standard_deviation(y);
  if (!(sx > 0.0) || !(sy > 0.0)) return std::nullopt;
  const double mx = mean(x), my = mean(y);
  double sum = 0.0;
  for (std::size_t i = 0; i < x.size(); ++i) sum += (x[i] - mx) / sx * ((y[i] - my) / sy);
  return sum / static_cast<double>(x.size() - 1);
}

std::string correlation_text(double rho) {
  return fmt::format("ρ = {}{:.2f}", rho <= -0.005 ? "−" : "", std::abs(rho));
}

Panel cloud(const Feature& x, const Feature& y, const std::vector<std::size_t>& events) {
  Points points;
  points.role = Role::first;
  points.size = 1.3;
  for (const std::size_t i : events)
    if (x.shows(x.values[i]) && y.shows(y.values[i])) {
      points.x.push_back(x.values[i]);
      points.y.push_back(y.values[i]);
    }
  Panel panel;
  panel.x_range = x.range();
  panel.y_range = y.range();
  if (points.x.empty())
    panel.series.emplace_back(Annotation{0.5, 0.5, "no event", true, Align::centre});
  else
    panel.series.emplace_back(std::move(points));
  return panel;
}

Panel words_panel(const std::string& text) {
  Panel panel;
  panel.axes = false;
  panel.series.emplace_back(Annotation{0.5, 0.5, text, true, Align::centre});
  return panel;
}

/// Below the diagonal a cloud of events for each pair of features, on it their histograms, above
/// it their correlations.
Figure scatter_matrix(const Results& r, const std::vector<Feature>& features) {
  constexpr std::size_t most_events = 1000;
  const std::size_t n = features.size();
  const auto events = thinned(r.data.rows(), most_events);
  Figure figure;
  figure.columns = n;
  figure.joined = true;
  figure.panel_width = figure.panel_height =
      std::clamp(880.0 / static_cast<double>(n), 160.0, 260.0);
  const auto marks = [](Range range, bool labels) {
    auto out = ticks(with_margin(range, -0.06), false, 3);
    for (auto& tick : out)
      if (!labels) tick.label.clear();
    return out;
  };
  for (std::size_t i = 0; i < n; ++i)
    for (std::size_t j = 0; j < n; ++j) {
      if (i < j) {
        const auto rho = correlation(features[j].values, features[i].values);
        figure.panels.push_back(words_panel(rho ? correlation_text(*rho) : "—"));
        continue;
      }
      Panel panel =
          i == j ? feature_panel(features[i], "") : cloud(features[j], features[i], events);
      panel.x_ticks = marks(features[j].range(), i + 1 == n);
      if (i == j)
        panel.y_ticks.emplace();
      else
        panel.y_ticks = marks(features[i].range(), j == 0);
      panel.x_label = i + 1 == n ? features[j].name : "";
      panel.y_label = j == 0 ? features[i].name : "";
      figure.panels.push_back(std::move(panel));
    }
  figure.caption = fmt::format(
      "{}: {}, their histograms on the diagonal, the events for each pair of them below it{}, and "
      "their correlations ρ above it.",
      data_words(r), count_words(n, "feature"),
      events.size() < r.data.rows()
          ? fmt::format(" ({} of them)", count_words(events.size(), "event"))
          : std::string());
  return figure;
}

Figure histograms(const Results& r, const std::vector<Feature>& features) {
  Figure figure;
  for (const auto& feature : features) figure.panels.push_back(feature_panel(feature, ""));
  figure.columns = 3;
  figure.panel_width = third;
  figure.panel_height = 250.0;
  figure.caption = fmt::format("{}: {}.", data_words(r), count_words(r.data.cols(), "feature"));
  if (features.size() < r.data.cols())
    figure.caption += fmt::format(" The first {} are shown.", features.size());
  return figure;
}

}  // namespace

std::optional<Figure> data_figure(const Results& r) {
  constexpr std::size_t most_pairs = 8, most_histograms = 12;
  if (r.data.empty()) return std::nullopt;
  const auto features = features_of(r, most_histograms);
  if (!features) return std::nullopt;
  Figure figure = features->size() == 1            ? one_feature(r, features->front())
                  : features->size() <= most_pairs ? scatter_matrix(r, *features)
                                                   : histograms(r, *features);
  figure.name = "data";
  figure.title = "The data";
  figure.caption += outside_words(*features);
  return figure;
}

}  // namespace neyman::reports
