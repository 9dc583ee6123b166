#include "bindings.hpp"

PYBIND11_MODULE(_core, module) {
  using namespace neyman::python;
  module.doc() = "The compiled part of neyman; use the package neyman instead.";
  bind_core(module);
  bind_data(module);
  bind_simulators(module);
  bind_classifiers(module);
  bind_functions(module);
  bind_calibration(module);
  bind_ratios(module);
  bind_inference(module);
  bind_pipeline(module);
}
