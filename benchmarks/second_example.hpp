#pragma once

#include <memory>
#include <utility>
#include <vector>

#include "neyman/simulators/exponential.hpp"
#include "neyman/simulators/join.hpp"
#include "neyman/simulators/linear_transform.hpp"
#include "neyman/simulators/mixture.hpp"
#include "neyman/simulators/normal.hpp"

namespace neyman::benchmarks {

/// The simulator of examples/02_multidimensional; `space` has the parameters alpha and beta.
inline DistributionPtr second_example(const ParameterSpace& space) {
  const auto normal = [](Expression mean, double sigma) {
    return std::make_shared<Normal>(std::move(mean), sigma);
  };
  auto z = std::make_shared<Join>(std::vector<DistributionPtr>{
      normal({"alpha", space}, 1.0), normal({"beta", space}, 3.0),
      std::make_shared<Mixture>(std::vector<DistributionPtr>{normal(-2.0, 1.0), normal(2.0, 0.5)},
                                std::vector<Expression>{0.5, 0.5}),
      std::make_shared<Exponential>(3.0), std::make_shared<Exponential>(0.5)});
  return std::make_shared<LinearTransform>(
      std::move(z), std::vector<std::vector<Expression>>{
                        {1.31229955, 0.10499961, 0.48310515, -0.3249938, -0.26387927},
                        {0.10499961, 1.15833058, -0.55865473, 0.25275522, -0.39790775},
                        {0.48310515, -0.55865473, 2.25874579, -0.52087938, -0.39271231},
                        {-0.3249938, 0.25275522, -0.52087938, 1.4034925, -0.63521059},
                        {-0.26387927, -0.39790775, -0.39271231, -0.63521059, 1.0}});
}

}  // namespace neyman::benchmarks
