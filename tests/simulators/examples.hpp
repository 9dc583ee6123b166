#pragma once

#include <memory>
#include <vector>

#include "neyman/simulators/exponential.hpp"
#include "neyman/simulators/join.hpp"
#include "neyman/simulators/linear_transform.hpp"
#include "neyman/simulators/mixture.hpp"
#include "neyman/simulators/normal.hpp"

// The two examples of the paper, written in C++.
namespace neyman::examples {

inline const ParameterSpace first_space({{"gamma", 0.0, 1.0, 0.05}});

/// Normals at −2, 0 and 1 with weights (1 − γ)/2, (1 − γ)/2, γ; the first has this sigma.
inline Mixture first(double first_sigma) {
  const auto normal = [](double mean, double sigma) {
    return std::make_shared<Normal>(mean, sigma);
  };
  return Mixture(
      {normal(-2.0, first_sigma), normal(0.0, 2.0), normal(1.0, 0.5)},
      {{"(1-gamma)/2", first_space}, {"(1-gamma)/2", first_space}, {"gamma", first_space}});
}

inline const ParameterSpace second_space({{"alpha", -3.0, 3.0, 1.0}, {"beta", -3.0, 3.0, -1.0}});

inline const std::vector<std::vector<Expression>> second_matrix = {
    {1.31229955, 0.10499961, 0.48310515, -0.3249938, -0.26387927},
    {0.10499961, 1.15833058, -0.55865473, 0.25275522, -0.39790775},
    {0.48310515, -0.55865473, 2.25874579, -0.52087938, -0.39271231},
    {-0.3249938, 0.25275522, -0.52087938, 1.4034925, -0.63521059},
    {-0.26387927, -0.39790775, -0.39271231, -0.63521059, 1.0}};

/// Five independent variables, two of them with means α and β, seen through a matrix.
inline DistributionPtr second() {
  const auto normal = [](Expression mean, double sigma) {
    return std::make_shared<Normal>(std::move(mean), sigma);
  };
  auto z = std::make_shared<Join>(std::vector<DistributionPtr>{
      normal({"alpha", second_space}, 1.0), normal({"beta", second_space}, 3.0),
      std::make_shared<Mixture>(std::vector<DistributionPtr>{normal(-2.0, 1.0), normal(2.0, 0.5)},
                                std::vector<Expression>{0.5, 0.5}),
      std::make_shared<Exponential>(3.0), std::make_shared<Exponential>(0.5)});
  return std::make_shared<LinearTransform>(std::move(z), second_matrix);
}

}  // namespace neyman::examples
