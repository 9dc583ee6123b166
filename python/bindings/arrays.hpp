#pragma once

#include <pybind11/numpy.h>

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "bindings.hpp"
#include "neyman/core/matrix.hpp"
#include "neyman/core/parameters.hpp"

// Numbers between Python and the library: the one place where they change their form.
//
// Doubles whose rows are contiguous (C order; also every k-th row, or some neighbouring columns, of
// such an array) are seen in place. Everything else (float32, Fortran order, integers, lists,
// pandas, structured arrays) is copied once, by neyman._arrays. Results are handed over without a
// copy. Errors name the function and the argument.
namespace neyman::python {

/// A table that Python owns, and what keeps it alive.
struct Table {
  py::object owner;
  MatrixView view;
};
/// One dimension is one column. With `columns`, those of a pandas DataFrame or a structured array,
/// by name.
Table as_table(py::handle value, const char* function, const char* name,
               const std::vector<std::string>& columns = {});

struct Vector {
  py::object owner;
  std::span<const double> values;
  std::vector<double> copy() const { return {values.begin(), values.end()}; }
};
/// None is empty.
Vector as_vector(py::handle value, const char* function, const char* name);
std::vector<std::int64_t> as_integers(py::handle value, const char* function, const char* name);

/// A copy, for what the library keeps.
Matrix copy_of(MatrixView view);

/// θ: a value for each parameter as a sequence, by name in a mapping, or, of one parameter, a
/// number. None where there are no parameters.
std::vector<double> as_point(py::handle value, const ParameterSpace& parameters,
                             const char* function, const char* name);

/// Whether it is certainly one θ, and not many: what a minimiser gives. Quick.
bool is_one_point(py::handle value, std::size_t parameters);

/// What Python owns from now on, without a copy.
py::array to_array(Matrix&& matrix);
py::array to_array(std::vector<double>&& values);
py::array to_array(const std::vector<std::size_t>& values);
/// A read-only view of what `owner` keeps alive.
py::array view_of(const Matrix& matrix, py::handle owner);
py::array view_of(const std::vector<double>& values, py::handle owner);

}  // namespace neyman::python
