#include <string>

#include "bindings.hpp"
#include "work.hpp"

namespace {

/// Older pybind11 take the arrays of NumPy 2 for those of NumPy 1, and read wrong numbers in
/// silence.
void check_numpy() {
#if PYBIND11_VERSION_HEX < 0x020C0000
  namespace py = pybind11;
  const auto version = py::module_::import("numpy").attr("__version__").cast<std::string>();
  if (std::stoi(version) >= 2)
    throw py::import_error("neyman was built with pybind11 " PYBIND11_TOSTRING(
                               PYBIND11_VERSION_MAJOR) "." PYBIND11_TOSTRING(
                               PYBIND11_VERSION_MINOR) ", which knows NumPy 1 alone, but NumPy is " +
                           version + ": install it with pip install .");
#endif
}

}  // namespace

PYBIND11_MODULE(_core, module) {
  using namespace neyman::python;
  module.doc() = "The compiled part of neyman; use the package neyman instead.";
  check_numpy();
  bind_work(module);
  bind_core(module);
  bind_data(module);
  bind_simulators(module);
  bind_classifiers(module);
  bind_functions(module);
  bind_calibration(module);
  bind_ratios(module);
  bind_inference(module);
  bind_measurements(module);
  bind_diagnostics(module);
  bind_pipeline(module);
}
