#include "neyman/measurements/statistical_model.hpp"

#include <fmt/format.h>

#include <cmath>

#include "measurements/compiled_model.hpp"
#include "measurements/evaluator.hpp"
#include "measurements/toy_source.hpp"
#include "neyman/core/check.hpp"
#include "neyman/core/error.hpp"
#include "simulators/alias_table.hpp"

namespace neyman {

namespace {

const MeasurementSettings& find_measurement(const Workspace& workspace, std::string_view name) {
  if (workspace.measurements.empty())
    fail_argument("StatisticalModel", "measurements", "empty", "at least one");
  if (name.empty()) return workspace.measurements[0];
  std::vector<std::string> names;
  for (const auto& measurement : workspace.measurements) {
    if (measurement.name == name) return measurement;
    names.push_back(measurement.name);
  }
  throw ArgumentError("StatisticalModel: " + unknown_name(name, "a measurement", names));
}

/// A standard deviation of the parameter, as its constraint says.
double spread(const Constraint& constraint) {
  if (constraint.kind() == Constraint::Kind::gaussian) return constraint.width();
  if (constraint.kind() == Constraint::Kind::log_normal)
    return constraint.observed() * std::expm1(constraint.width());
  return std::sqrt(std::max(constraint.observed(), 1.0)) / constraint.width();
}

/// Yields that go negative are refused before anything is fitted: at the start, and with each
/// constrained parameter moved by a standard deviation.
void check_yields(const StatisticalModel& model) {
  const auto check = [&](const std::vector<double>& point, const std::string& where) {
    const auto events = model.expected_events(point);
    for (std::size_t u = 0; u < events.size(); ++u)
      if (!(events[u] >= 0.0))
        fail_argument("StatisticalModel",
                      fmt::format("the expected yield of channel '{}', {}",
                                  model.compiled().unbinned[u].name, where),
                      fmt::format("{:g}", events[u]), "not negative");
    const auto yields = model.expected(point);
    for (std::size_t b = 0; b < yields.size(); ++b)
      if (!(yields[b] >= -1e-9)) {
        const auto name = model.bin_name(b);
        fail_argument("StatisticalModel",
                      fmt::format("the expected yield of channel '{}', bin {}, {}", name.channel,
                                  name.bin, where),
                      fmt::format("{:g}", yields[b]), "not negative");
      }
  };
  const auto& start = model.start();
  check(start, "at the start values");
  for (const auto& constraint : model.constraints()) {
    const auto& parameter = model.parameters()[constraint.parameter()];
    for (const double sign : {-1.0, 1.0}) {
      auto point = start;
      point[constraint.parameter()] = std::clamp(
          start[constraint.parameter()] + sign * spread(constraint), parameter.low, parameter.high);
      check(point, fmt::format("with {} = {:g}", parameter.name, point[constraint.parameter()]));
    }
  }
}

/// The density of each observed event at the start: a sum of components that interfere may be
/// negative where the model is wrong.
void check_densities(const StatisticalModel& model) {
  const auto& events = model.observed().events;
  detail::Evaluator evaluate(model.compiled());
  for (std::size_t u = 0; u < events.size(); ++u) {
    std::vector<double> densities(events[u]->size());
    evaluate.densities(model.start(), u, *events[u], densities);
    for (std::size_t i = 0; i < densities.size(); ++i)
      if (!(densities[i] > 0.0))
        fail_argument("StatisticalModel",
                      fmt::format("the density of channel '{}', event {}, at the start values",
                                  model.compiled().unbinned[u].name, i),
                      fmt::format("{:g}", densities[i]), "positive");
  }
}

/// Σ_c ν_c r_c of the simulated events of an unbinned channel times their weights: how often each
/// of them is expected.
std::vector<double> simulated_densities(const detail::CompiledModel& model, std::size_t channel,
                                        std::span<const double> point) {
  const auto& unbinned = model.unbinned[channel];
  if (unbinned.simulated == nullptr)
    fail_argument("StatisticalModel",
                  fmt::format("the simulated events of channel '{}'", unbinned.name), "missing",
                  "given, for data to be made of them");
  const auto& events = *unbinned.simulated;
  std::vector<double> out(events.size());
  detail::Evaluator(model).densities(point, channel, events, out);
  double total = 0.0;
  for (std::size_t j = 0; j < out.size(); ++j) {
    if (!(out[j] >= 0.0))
      fail_argument(
          "StatisticalModel",
          fmt::format("the density of channel '{}', simulated event {}", unbinned.name, j),
          fmt::format("{:g}", out[j]), "not negative");
    const double weight = events.weights.empty() ? 1.0 : events.weights[j];
    out[j] *= weight;
    total += weight;
  }
  for (auto& density : out) density /= total;
  return out;
}

}  // namespace

StatisticalModel::StatisticalModel(const Workspace& workspace, std::string_view measurement)
    : StatisticalModel(workspace, std::vector<UnbinnedChannel>{}, measurement) {}

StatisticalModel::StatisticalModel(const Workspace& workspace,
                                   const std::vector<UnbinnedChannel>& unbinned,
                                   std::string_view measurement)
    : compiled_(std::make_shared<const detail::CompiledModel>(
          detail::compile(workspace, unbinned, find_measurement(workspace, measurement)))) {
  check_yields(*this);
  check_densities(*this);
}

const ParameterSpace& StatisticalModel::parameters() const { return compiled_->parameters; }

std::size_t StatisticalModel::interest() const {
  if (!compiled_->interest)
    fail_argument("StatisticalModel", "parameter of interest", "not given",
                  "named by the measurement");
  return *compiled_->interest;
}

const std::vector<double>& StatisticalModel::start() const { return compiled_->start; }
const std::vector<bool>& StatisticalModel::fixed() const { return compiled_->fixed; }
const std::vector<Constraint>& StatisticalModel::constraints() const {
  return compiled_->constraints;
}

std::optional<std::size_t> StatisticalModel::constraint_of(std::size_t parameter) const {
  const std::size_t index = compiled_->constraint_of.at(parameter);
  return index == detail::no_parameter ? std::nullopt : std::optional(index);
}

const MeasurementData& StatisticalModel::observed() const { return compiled_->observed; }
std::size_t StatisticalModel::bins() const { return compiled_->bins; }

BinName StatisticalModel::bin_name(std::size_t bin) const {
  check_in_range("StatisticalModel::bin_name", "bin", static_cast<double>(bin), 0.0,
                 static_cast<double>(bins() - 1));
  for (const auto& channel : compiled_->channels)
    if (bin < channel.first_bin + channel.bins) return {channel.name, bin - channel.first_bin};
  return {};
}

std::vector<std::string> StatisticalModel::sample_names() const { return compiled_->sample_names; }

std::vector<double> StatisticalModel::expected(std::span<const double> point) const {
  check_same_size("StatisticalModel::expected", "point", point.size(), size(),
                  "one for each parameter");
  std::vector<double> out(bins());
  detail::Evaluator(*compiled_).expected(point, out);
  return out;
}

Matrix StatisticalModel::expected_by_sample(std::span<const double> point) const {
  check_same_size("StatisticalModel::expected_by_sample", "point", point.size(), size(),
                  "one for each parameter");
  Matrix out(compiled_->sample_names.size(), bins());
  std::vector<double> total(bins());
  detail::Evaluator(*compiled_).expected(point, total, &out);
  return out;
}

std::size_t StatisticalModel::unbinned_channels() const { return compiled_->unbinned.size(); }

std::vector<double> StatisticalModel::expected_events(std::span<const double> point) const {
  check_same_size("StatisticalModel::expected_events", "point", point.size(), size(),
                  "one for each parameter");
  std::vector<double> out(unbinned_channels());
  detail::Evaluator(*compiled_).expected_events(point, out);
  return out;
}

namespace detail {

MeasurementData expected_counts(const StatisticalModel& model, std::span<const double> point) {
  MeasurementData out{model.expected(point)};
  for (auto& count : out.counts) count = std::max(count, 0.0);
  for (const auto& constraint : model.constraints())
    out.auxiliary.push_back(constraint.expected(point[constraint.parameter()]));
  return out;
}

ToySource::ToySource(const StatisticalModel& model, std::span<const double> point)
    : model_(model.compiled()),
      expected_(expected_counts(model, point)),
      events_(model.expected_events(point)) {
  for (const auto& constraint : model.constraints())
    values_.push_back(point[constraint.parameter()]);
  for (std::size_t u = 0; u < model.unbinned_channels(); ++u) {
    tables_.push_back(cells_of(simulated_densities(model_, u, point)));
    const auto& events = *model_.unbinned[u].simulated;
    const std::size_t components = events.ratios.rows(), functions = events.functions.rows();
    auto& rows = simulated_.emplace_back(events.size(), components + functions);
    for (std::size_t j = 0; j < events.size(); ++j) {
      double* row = rows[j];
      for (std::size_t c = 0; c < components; ++c) row[c] = events.ratios(c, j);
      for (std::size_t k = 0; k < functions; ++k) row[components + k] = events.functions(k, j);
    }
  }
}

ToySource::Rows::Rows(std::size_t rows, std::size_t columns)
    : stride_((columns + line - 1) / line * line), values_((rows + 1) * stride_) {
  constexpr std::uintptr_t bytes = line * sizeof(double);
  const auto address = reinterpret_cast<std::uintptr_t>(values_.data());
  first_ = (bytes - address % bytes) % bytes / sizeof(double);
}

std::vector<ToySource::Cell> ToySource::cells_of(std::span<const double> weights) {
  const AliasTable table(weights);
  std::vector<Cell> out(table.size());
  for (std::size_t i = 0; i < out.size(); ++i)  // a full cell is its own alias
    out[i] = {static_cast<std::uint32_t>(std::min(table.accept(i) * 0x1p32, 0x1p32 - 1.0)),
              static_cast<std::uint32_t>(table.alias(i))};
  return out;
}

/// The cells that uniform numbers draw, from `begin` to `end`; their rows are asked for.
void ToySource::choose(std::span<const Cell> cells, std::span<const double> uniform,
                       const Rows& rows, std::size_t begin, std::size_t end,
                       std::span<std::uint32_t> out) {
  constexpr std::size_t ahead = 32;
  const auto count = static_cast<double>(cells.size());
  const auto place = [&](std::size_t i) { return static_cast<std::int64_t>(uniform[i] * count); };
  for (std::size_t i = begin; i < end; ++i) {
    __builtin_prefetch(cells.data() + place(std::min(i + ahead, uniform.size() - 1)));
    const std::int64_t at = place(i);
    const Cell cell = cells[static_cast<std::size_t>(at)];
    const double rest = (uniform[i] * count - static_cast<double>(at)) * 0x1p32;
    // A choice by a mask: a branch that nobody can foresee would wait for the memory.
    const auto keep = static_cast<std::uint32_t>(
        -static_cast<std::int32_t>(static_cast<std::int64_t>(rest) < std::int64_t{cell.accept}));
    out[i] = (static_cast<std::uint32_t>(at) & keep) | (cell.alias & ~keep);
    rows.ask(out[i]);
  }
}

/// The columns from `begin` to `end` of both matrices from the rows of the events `drawn`: eight
/// events at a time, so that whole lines of memory are written.
void ToySource::take(const Rows& rows, std::span<const std::uint32_t> drawn, std::size_t begin,
                     std::size_t end, Matrix& ratios, Matrix& functions) {
  constexpr std::size_t together = 8;
  const std::size_t components = ratios.rows(), columns = components + functions.rows();
  for (; begin < end; begin += together) {
    const std::size_t count = std::min(together, end - begin);
    const double* from[together];
    for (std::size_t i = 0; i < count; ++i) from[i] = rows[drawn[begin + i]];
    for (std::size_t r = 0; r < columns; ++r) {
      double* to = (r < components ? ratios.row(r) : functions.row(r - components)).data() + begin;
      if (count == together)
        for (std::size_t i = 0; i < together; ++i) to[i] = from[i][r];
      else
        for (std::size_t i = 0; i < count; ++i) to[i] = from[i][r];
    }
  }
}

void ToySource::draw(RandomStream& random, MeasurementData& out) const {
  out.counts.resize(expected_.counts.size());
  out.auxiliary.resize(values_.size());
  out.events.clear();
  for (std::size_t b = 0; b < out.counts.size(); ++b)
    out.counts[b] = static_cast<double>(random.poisson(expected_.counts[b]));
  for (std::size_t k = 0; k < values_.size(); ++k)
    out.auxiliary[k] = model_.constraints[k].sampled(values_[k], random).observed();
  for (std::size_t u = 0; u < tables_.size(); ++u) {
    std::vector<std::uint32_t> drawn(random.poisson(events_[u]));
    std::vector<double> uniform(drawn.size());
    random.fill_uniform(uniform);
    const auto& channel = model_.unbinned[u];
    auto events = std::make_shared<UnbinnedEvents>();
    events->ratios = Matrix(channel.components.size(), drawn.size());
    events->functions = Matrix(channel.functions, drawn.size());
    // The rows of one block are on their way while those of the block before are read.
    constexpr std::size_t block = 128;
    for (std::size_t begin = 0; begin < drawn.size() + block; begin += block) {
      choose(tables_[u], uniform, simulated_[u], std::min(begin, drawn.size()),
             std::min(begin + block, drawn.size()), drawn);
      if (begin >= block)
        take(simulated_[u], drawn, begin - block, std::min(begin, drawn.size()), events->ratios,
             events->functions);
    }
    out.events.push_back(std::move(events));
  }
}

}  // namespace detail

MeasurementData StatisticalModel::asimov(std::span<const double> point) const {
  auto out = detail::expected_counts(*this, point);
  for (std::size_t u = 0; u < unbinned_channels(); ++u) {
    auto weights = simulated_densities(*compiled_, u, point);
    auto events = std::make_shared<UnbinnedEvents>(*compiled_->unbinned[u].simulated);
    events->weights = std::move(weights);
    out.events.push_back(std::move(events));
  }
  return out;
}

MeasurementData StatisticalModel::sampled(std::span<const double> point,
                                          RandomStream& random) const {
  MeasurementData out;
  detail::ToySource(*this, point).draw(random, out);
  return out;
}

void StatisticalModel::check_data(std::string_view function, const MeasurementData& data) const {
  check_same_size(function, "counts", data.counts.size(), bins(), "one a bin");
  check_same_size(function, "auxiliary", data.auxiliary.size(), constraints().size(),
                  "one a constraint");
  check_same_size(function, "events", data.events.size(), unbinned_channels(),
                  "one an unbinned channel");
  for (std::size_t u = 0; u < data.events.size(); ++u) {
    const auto& channel = compiled_->unbinned[u];
    const auto name = fmt::format("the events of channel '{}'", channel.name);
    if (data.events[u] == nullptr) fail_argument(function, name, "missing", "given");
    check_same_size(function, name + ", rows of ratios", data.events[u]->ratios.rows(),
                    channel.components.size(), "one a component");
    check_same_size(function, name + ", rows of functions", data.events[u]->functions.rows(),
                    channel.functions, "one a function of a shape");
    const std::size_t size = data.events[u]->size();
    if (channel.functions > 0)
      check_same_size(function, name + ", columns of functions", data.events[u]->functions.cols(),
                      size, "one an event");
    if (!data.events[u]->weights.empty())
      check_same_size(function, name + ", weights", data.events[u]->weights.size(), size,
                      "one an event");
  }
  check_finite(function, "counts", data.counts);
  check_non_negative(function, "counts", data.counts);
  for (std::size_t k = 0; k < data.auxiliary.size(); ++k) {
    const auto kind = constraints()[k].kind();
    const auto name = fmt::format("the auxiliary observation of '{}'",
                                  parameters()[constraints()[k].parameter()].name);
    check_finite(function, name, data.auxiliary[k]);
    if (kind == Constraint::Kind::log_normal) check_positive(function, name, data.auxiliary[k]);
    if (kind == Constraint::Kind::poisson)
      check_non_negative(function, name, std::span(&data.auxiliary[k], 1));
  }
}

ModelLikelihood::ModelLikelihood(StatisticalModel model, MeasurementData data)
    : model_(std::move(model)), data_(std::move(data)) {
  model_.check_data("ModelLikelihood", data_);
}

std::size_t ModelLikelihood::events() const {
  double sum = 0.0;
  for (const double count : data_.counts) sum += count;
  for (const auto& events : data_.events)
    for (std::size_t i = 0; i < events->size(); ++i)
      sum += events->weights.empty() ? 1.0 : events->weights[i];
  return static_cast<std::size_t>(std::llround(sum));
}

double ModelLikelihood::operator()(std::span<const double> point,
                                   std::span<double> gradient) const {
  using Order = detail::Evaluator::Order;
  detail::Evaluator evaluate(model_.compiled());
  const double value = evaluate(point, data_, gradient.empty() ? Order::value : Order::gradient);
  const bool allowed = std::isfinite(value);
  for (std::size_t p = 0; p < gradient.size(); ++p)
    gradient[p] = allowed ? -evaluate.gradient()[p] : 0.0;
  return allowed ? -value : forbidden;
}

Matrix ModelLikelihood::information(std::span<const double> point) const {
  const std::size_t n = model_.size();
  check_same_size("ModelLikelihood::information", "point", point.size(), n,
                  "one for each parameter");
  detail::Evaluator evaluate(model_.compiled());
  Matrix out(n, n);
  if (!std::isfinite(evaluate(point, data_, detail::Evaluator::Order::hessian))) return out;
  for (std::size_t i = 0; i < n; ++i)
    for (std::size_t j = 0; j <= i; ++j) out(i, j) = out(j, i) = evaluate.hessian()[i * n + j];
  return out;
}

}  // namespace neyman
