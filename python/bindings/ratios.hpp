#pragma once

#include <memory>
#include <string>
#include <vector>

#include "arrays.hpp"
#include "neyman/core/parameters.hpp"
#include "neyman/data/samples.hpp"
#include "neyman/ratios/onnx_export.hpp"
#include "neyman/ratios/ratio.hpp"

namespace neyman::python {

/// A ratio with the parameters that its θ are of, and the names of its features where it has them.
struct AnyRatio {
  RatioPtr ratio;
  ParameterSpace parameters;
  std::vector<std::string> feature_names = {};
  DistributionPtr exact = nullptr;  ///< of an exact ratio, the distribution
};

/// Events as an array, a DataFrame or Samples; weights are those of Samples, or the given ones.
struct Events {
  Table table;
  std::vector<double> weights;
};
Events as_events(py::handle value, py::handle weights, const char* function, const char* name,
                 const std::vector<std::string>& columns = {});

/// The points of `export_onnx` that are not None.
OnnxOptions onnx_options(const ParameterSpace& parameters, py::handle numerator,
                         py::handle denominator);

}  // namespace neyman::python
