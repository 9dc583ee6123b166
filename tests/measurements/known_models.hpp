#pragma once

#include <gtest/gtest.h>

#include <array>
#include <cmath>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "neyman/core/error.hpp"
#include "neyman/data/atomic_file.hpp"
#include "neyman/measurements/statistical_model.hpp"

namespace neyman::testing {

/// The workspaces of the folder `data`, for which pyhf and iminuit have answered.
inline constexpr std::array reference_names{"counting", "correlated", "control",
                                            "finite_simulation", "nothing_seen"};

inline std::string reference_path(const std::string& name) {
  return std::string(NEYMAN_TEST_DATA) + "/" + name + ".json";
}

inline StatisticalModel reference_model(const std::string& name) {
  return StatisticalModel(read_workspace(reference_path(name)));
}

inline nlohmann::json reference_answers(const std::string& name) {
  return nlohmann::json::parse(read_file(reference_path(name + ".answers")));
}

/// The reference's value of each parameter, in the order of the model.
inline std::vector<double> by_parameter(const StatisticalModel& model,
                                        const nlohmann::json& values) {
  std::vector<double> out;
  for (const auto& parameter : model.parameters()) out.push_back(values.at(parameter.name));
  return out;
}

/// One bin with signal s and background b, which is known: n ~ Poisson(μ s + b).
inline Workspace counting_workspace(double signal, double background, double observed,
                                    double lowest = 0.0, double highest = 30.0) {
  return {{{"bin",
            {{"signal", {signal}, {Modifier::norm_factor("mu")}}, {"background", {background}}},
            {observed}}},
          {{"measurement", "mu", {{"mu", {1.0}, {{lowest, highest}}}}}}};
}

/// The same with a background that a Poisson measurement of `tau` times its size has seen: the
/// on-off problem.
inline Workspace on_off_workspace(double signal, double background, double uncertainty,
                                  double observed, double lowest = 0.0) {
  auto out = counting_workspace(signal, background, observed, lowest);
  out.channels[0].samples[1].modifiers = {Modifier::shape_sys("size", {uncertainty})};
  return out;
}

inline double normal_density(double x, double mean, double sigma) {
  const double z = (x - mean) / sigma;
  return std::exp(-0.5 * z * z) / (sigma * std::sqrt(2.0 * M_PI));
}

/// What a model of this channel says where it is refused.
inline std::string refusal_of(const Workspace& workspace, const UnbinnedChannel& channel) {
  try {
    StatisticalModel model(workspace, {channel});
  } catch (const ArgumentError& error) {
    return error.what();
  }
  return "nothing was thrown";
}

/// The gradient and the information of the observed data against differences of ℓ and of gradients.
inline void expect_derivatives(const StatisticalModel& model, const std::vector<double>& point,
                               const std::string& name = {}) {
  constexpr double step = 1e-5, tolerance = 2e-5;
  const ModelLikelihood likelihood(model, model.observed());
  const std::size_t n = model.size();
  std::vector<double> gradient(n), up(n), down(n);
  ASSERT_GT(likelihood(point, gradient), Likelihood::forbidden);
  const auto information = likelihood.information(point);
  for (std::size_t p = 0; p < n; ++p) {
    auto above = point, below = point;
    above[p] += step;
    below[p] -= step;
    const double slope = (likelihood(above, up) - likelihood(below, down)) / (2.0 * step);
    const auto where = name + " " + model.parameters()[p].name;
    EXPECT_NEAR(gradient[p], slope, tolerance * (1.0 + std::abs(slope))) << where;
    for (std::size_t q = 0; q < n; ++q) {
      const double curve = -(up[q] - down[q]) / (2.0 * step);
      EXPECT_NEAR(information(p, q), curve, tolerance * (1.0 + std::abs(curve)))
          << where << " " << model.parameters()[q].name;
    }
  }
}

}  // namespace neyman::testing
