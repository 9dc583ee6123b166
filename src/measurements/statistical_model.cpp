#include "neyman/measurements/statistical_model.hpp"

#include <fmt/format.h>

#include <cmath>

#include "measurements/compiled_model.hpp"
#include "measurements/evaluator.hpp"
#include "neyman/core/check.hpp"
#include "neyman/core/error.hpp"

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

}  // namespace

StatisticalModel::StatisticalModel(const Workspace& workspace, std::string_view measurement)
    : compiled_(std::make_shared<const detail::CompiledModel>(
          detail::compile(workspace, find_measurement(workspace, measurement)))) {
  check_yields(*this);
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

MeasurementData StatisticalModel::asimov(std::span<const double> point) const {
  MeasurementData out{expected(point), {}};
  for (auto& count : out.counts) count = std::max(count, 0.0);
  for (const auto& constraint : constraints())
    out.auxiliary.push_back(constraint.expected(point[constraint.parameter()]));
  return out;
}

MeasurementData StatisticalModel::sampled(std::span<const double> point,
                                          RandomStream& random) const {
  auto out = asimov(point);
  for (auto& count : out.counts) count = static_cast<double>(random.poisson(count));
  for (std::size_t k = 0; k < out.auxiliary.size(); ++k)
    out.auxiliary[k] =
        constraints()[k].sampled(point[constraints()[k].parameter()], random).observed();
  return out;
}

void StatisticalModel::check_data(std::string_view function, const MeasurementData& data) const {
  check_same_size(function, "counts", data.counts.size(), bins(), "one a bin");
  check_same_size(function, "auxiliary", data.auxiliary.size(), constraints().size(),
                  "one a constraint");
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
