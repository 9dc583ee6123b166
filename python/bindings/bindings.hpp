#pragma once

#include <pybind11/pybind11.h>

// One function for each room, in its own file, registers what the room has in the module
// neyman._core. The package neyman on top gives it types, documentation and the habits of Python.
namespace neyman::python {

namespace py = pybind11;

void bind_core(py::module_& module);
void bind_data(py::module_& module);
void bind_simulators(py::module_& module);
void bind_functions(py::module_& module);
void bind_classifiers(py::module_& module);
void bind_calibration(py::module_& module);
void bind_ratios(py::module_& module);
void bind_inference(py::module_& module);
void bind_measurements(py::module_& module);
void bind_diagnostics(py::module_& module);
void bind_pipeline(py::module_& module);

}  // namespace neyman::python
