#include <pybind11/stl.h>

#include <chrono>
#include <thread>

#include "arrays.hpp"
#include "neyman/core/error.hpp"
#include "neyman/core/parallel.hpp"
#include "neyman/core/parameters.hpp"
#include "neyman/core/progress.hpp"
#include "neyman/core/version.hpp"
#include "settings.hpp"
#include "work.hpp"

namespace neyman::python {

namespace {

void raise(const char* name, const std::string& message) {
  PyErr_SetString(py::module_::import("neyman.errors").attr(name).ptr(), message.c_str());
}

void raise(const StudyError& error) {
  const auto type = py::module_::import("neyman.errors").attr("StudyError");
  const auto raised = type(std::string(error.what()));
  py::list problems;
  for (const auto& problem : error.problems())
    problems.append(py::make_tuple(problem.key, problem.message));
  raised.attr("problems") = problems;
  PyErr_SetObject(type.ptr(), raised.ptr());
}

void translate(std::exception_ptr error) {
  if (!error) return;
  try {
    std::rethrow_exception(error);
  } catch (const ArgumentError& caught) {
    raise("ArgumentError", caught.what());
  } catch (const FileError& caught) {
    raise("FileError", caught.what());
  } catch (const SimulatorError& caught) {
    raise("SimulatorError", caught.what());
  } catch (const StudyError& caught) {
    raise(caught);
  } catch (const Interrupted& caught) {
    PyErr_SetString(PyExc_KeyboardInterrupt, caught.what());
  } catch (const Error& caught) {
    raise("Error", caught.what());
  }
}

ParameterSpace make_parameters(const std::vector<py::dict>& entries) {
  return ParameterSpace(parameters_from(entries));
}

/// Work that only waits, to test what Python does meanwhile.
void wait(double seconds, bool progress) {
  long_work([&] {
    Progress bar("wait", 100);
    for (int i = 0; i < 100; ++i) {
      check_stop();
      std::this_thread::sleep_for(std::chrono::duration<double>(seconds / 100));
      if (progress) bar.advance();
    }
  });
}

}  // namespace

std::vector<Parameter> parameters_from(const std::vector<py::dict>& entries) {
  std::vector<Parameter> parameters;
  for (const auto& entry : entries) {
    Parameter parameter;
    parameter.name = entry["name"].cast<std::string>();
    parameter.low = entry["low"].cast<double>();
    parameter.high = entry["high"].cast<double>();
    if (!entry["truth"].is_none()) parameter.truth = entry["truth"].cast<double>();
    parameter.nuisance = entry["nuisance"].cast<bool>();
    parameter.periodic = entry["periodic"].cast<bool>();
    parameters.push_back(std::move(parameter));
  }
  return parameters;
}

void bind_core(py::module_& module) {
  py::register_exception_translator(translate);
  module.def("version", &version);
  module.def("built_with", &built_with);
  module.def("set_threads", &set_threads, py::arg("count"));
  module.def("threads", &threads);
  module.def("_wait", &wait, py::arg("seconds"), py::arg("progress") = true);
  module.def("_roundtrip",
             [](py::handle settings) { return to_dict(to_settings(settings, "settings")); });
  // How an argument is seen: its numbers, and where they are.
  module.def(
      "_table",
      [](py::handle value, const std::vector<std::string>& columns) {
        const auto table = as_table(value, "table", "x", columns);
        return py::make_tuple(to_array(copy_of(table.view)),
                              reinterpret_cast<std::uintptr_t>(table.view.data()));
      },
      py::arg("value"), py::arg("columns") = std::vector<std::string>());

  py::class_<ParameterSpace>(module, "ParameterSpace")
      .def(py::init(&make_parameters))
      .def("__len__", &ParameterSpace::size)
      .def("__eq__", [](const ParameterSpace& a, const ParameterSpace& b) { return a == b; })
      .def("names", &ParameterSpace::names)
      .def("entries",
           [](const ParameterSpace& space) {
             py::list out;
             for (const auto& parameter : space)
               out.append(py::make_tuple(parameter.name, parameter.low, parameter.high,
                                         parameter.truth, parameter.nuisance, parameter.periodic));
             return out;
           })
      .def("middle", [](const ParameterSpace& space) { return to_array(space.middle()); })
      .def("point", [](const ParameterSpace& space, py::handle theta) {
        return to_array(as_point(theta, space, "point", "theta"));
      });
}

}  // namespace neyman::python
