#include "neyman/inference/constraint.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "neyman/core/check.hpp"

namespace neyman {

Constraint Constraint::gaussian(std::size_t parameter, double observed, double sigma) {
  check_finite("Constraint::gaussian", "observed", observed);
  check_positive("Constraint::gaussian", "sigma", sigma);
  return {Kind::gaussian, parameter, observed, sigma};
}

Constraint Constraint::log_normal(std::size_t parameter, double observed, double kappa) {
  check_positive("Constraint::log_normal", "observed", observed);
  check_finite("Constraint::log_normal", "kappa", kappa);
  if (!(kappa > 1.0))
    fail_argument("Constraint::log_normal", "kappa", fmt::format("{}", kappa), "above 1");
  return {Kind::log_normal, parameter, observed, std::log(kappa)};
}

Constraint Constraint::log_normal_relative(std::size_t parameter, double observed, double spread) {
  check_positive("Constraint::log_normal_relative", "observed", observed);
  check_positive("Constraint::log_normal_relative", "spread", spread);
  return {Kind::log_normal, parameter, observed, std::sqrt(std::log1p(spread * spread))};
}

Constraint Constraint::poisson(std::size_t parameter, double count, double tau) {
  check_finite("Constraint::poisson", "count", count);
  check_non_negative("Constraint::poisson", "count", std::span(&count, 1));
  check_positive("Constraint::poisson", "tau", tau);
  return {Kind::poisson, parameter, count, tau};
}

double Constraint::log_density(double value) const {
  switch (kind_) {
    case Kind::gaussian:
      return -0.5 * std::pow((observed_ - value) / width_, 2);
    case Kind::log_normal:
      if (value <= 0.0) return Likelihood::forbidden;
      return -0.5 * std::pow(std::log(observed_ / value) / width_, 2);
    case Kind::poisson: {
      const double expected = width_ * value;
      if (expected < 0.0 || (expected == 0.0 && observed_ > 0.0)) return Likelihood::forbidden;
      if (observed_ == 0.0) return -expected;
      return observed_ * std::log(expected / observed_) - (expected - observed_);
    }
  }
  return Likelihood::forbidden;
}

double Constraint::derivative(double value) const {
  switch (kind_) {
    case Kind::gaussian:
      return (observed_ - value) / (width_ * width_);
    case Kind::log_normal:
      return value <= 0.0 ? 0.0 : std::log(observed_ / value) / (width_ * width_ * value);
    case Kind::poisson:
      if (value < 0.0 || (value == 0.0 && observed_ > 0.0)) return 0.0;
      return (observed_ == 0.0 ? 0.0 : observed_ / value) - width_;
  }
  return 0.0;
}

double Constraint::second_derivative(double value) const {
  switch (kind_) {
    case Kind::gaussian:
      return -1.0 / (width_ * width_);
    case Kind::log_normal:
      return value <= 0.0
                 ? 0.0
                 : -(1.0 + std::log(observed_ / value)) / (width_ * width_ * value * value);
    case Kind::poisson:
      return value <= 0.0 ? 0.0 : -observed_ / (value * value);
  }
  return 0.0;
}

double Constraint::expected(double value) const {
  return kind_ == Kind::poisson ? width_ * value : value;
}

Constraint Constraint::sampled(double value, RandomStream& random) const {
  auto out = *this;
  switch (kind_) {
    case Kind::gaussian:
      out.observed_ = value + width_ * random.normal();
      break;
    case Kind::log_normal:
      if (value > 0.0) out.observed_ = value * std::exp(width_ * random.normal());
      break;
    case Kind::poisson:
      if (value >= 0.0) out.observed_ = static_cast<double>(random.poisson(width_ * value));
      break;
  }
  return out;
}

std::string to_string(Constraint::Kind kind) {
  switch (kind) {
    case Constraint::Kind::gaussian:
      return "gaussian";
    case Constraint::Kind::log_normal:
      return "log-normal";
    case Constraint::Kind::poisson:
      return "poisson";
  }
  return "gaussian";
}

std::optional<Constraint> make_constraint(Settings settings, std::size_t parameter) {
  const Kinds kinds{"constraint",
                    "how the auxiliary measurement is distributed",
                    "",
                    {{"gaussian", "a normal measurement of the parameter"},
                     {"log-normal", "a positive parameter, known to a factor"},
                     {"poisson", "a count with mean tau times the parameter"}}};
  return settings.by_kind(kinds, [&](const std::string& kind, Settings table) {
    const std::size_t before = table.problems().size();
    std::optional<Constraint> out;
    if (kind == "gaussian") {
      const double mean = table.number({"mean", "what was measured"});
      const double sigma = table.number({"sigma", "its standard deviation"}, Limits::positive());
      if (table.problems().size() == before) out = Constraint::gaussian(parameter, mean, sigma);
    } else if (kind == "log-normal") {
      const double mean = table.number({"mean", "what was measured"}, Limits::positive());
      if (table.has("kappa") == table.has("relative"))
        table.problem("kappa", "or relative must be given, and not both");
      const auto kappa = table.optional_number(
          {"kappa", "factor of one standard deviation; this or relative"}, Limits::above(1.0));
      const auto relative = table.optional_number(
          {"relative", "relative standard deviation; this or kappa"}, Limits::positive());
      if (table.problems().size() == before)
        out = relative ? Constraint::log_normal_relative(parameter, mean, *relative)
                       : Constraint::log_normal(parameter, mean, *kappa);
    } else {
      const double count = table.number({"count", "what was counted"}, Limits::non_negative());
      const double tau =
          table.number({"tau", "mean of the count for a parameter of 1"}, 1.0, Limits::positive());
      if (table.problems().size() == before) out = Constraint::poisson(parameter, count, tau);
    }
    return out;
  });
}

ConstrainedLikelihood::ConstrainedLikelihood(std::shared_ptr<const Likelihood> of,
                                             std::vector<Constraint> constraints)
    : of_(std::move(of)), constraints_(std::move(constraints)) {
  if (of_ == nullptr) fail_argument("ConstrainedLikelihood", "of", "null", "a likelihood");
  for (std::size_t k = 0; k < constraints_.size(); ++k)
    if (constraints_[k].parameter() >= of_->parameters().size())
      fail_argument("ConstrainedLikelihood", fmt::format("constraints[{}].parameter", k),
                    std::to_string(constraints_[k].parameter()),
                    fmt::format("below {}", of_->parameters().size()));
}

double ConstrainedLikelihood::value_of(const Constraint& constraint,
                                       std::span<const double> point) const {
  const auto& parameter = of_->parameters()[constraint.parameter()];
  const double value = point[constraint.parameter()];
  if (!parameter.periodic || constraint.kind() != Constraint::Kind::gaussian) return value;
  return constraint.observed() + parameter.difference(value, constraint.observed());
}

double ConstrainedLikelihood::operator()(std::span<const double> point,
                                         std::span<double> gradient) const {
  const auto forbid = [&] {
    std::fill(gradient.begin(), gradient.end(), 0.0);
    return forbidden;
  };
  double sum = 0.0;
  for (const auto& constraint : constraints_) {
    const double term = constraint.log_density(value_of(constraint, point));
    if (term <= forbidden) return forbid();
    sum += term;
  }
  const double value = (*of_)(point, gradient);
  if (value <= forbidden) return forbid();
  if (!gradient.empty())
    for (const auto& constraint : constraints_)
      gradient[constraint.parameter()] += constraint.derivative(value_of(constraint, point));
  return value + sum;
}

std::vector<double> ConstrainedLikelihood::at_allowed(MatrixView points) const {
  auto out = of_->at(points);
  for (std::size_t i = 0; i < out.size(); ++i)
    for (const auto& constraint : constraints_) {
      const double term = constraint.log_density(points(i, constraint.parameter()));
      out[i] = out[i] <= forbidden || term <= forbidden ? forbidden : out[i] + term;
    }
  return out;
}

std::optional<double> ConstrainedLikelihood::second_derivatives(std::span<const double> point,
                                                                std::span<double> gradient,
                                                                Matrix& hessian) const {
  double sum = 0.0;
  for (const auto& constraint : constraints_) {
    const double term = constraint.log_density(value_of(constraint, point));
    if (term <= forbidden) return std::nullopt;
    sum += term;
  }
  const auto value = of_->second_derivatives(point, gradient, hessian);
  if (!value) return std::nullopt;
  for (const auto& constraint : constraints_) {
    const std::size_t p = constraint.parameter();
    gradient[p] += constraint.derivative(value_of(constraint, point));
    hessian(p, p) += constraint.second_derivative(value_of(constraint, point));
  }
  return *value + sum;
}

}  // namespace neyman
