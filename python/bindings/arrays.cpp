#include "arrays.hpp"

#include <algorithm>
#include <cmath>
#include <memory>

#include "neyman/core/check.hpp"

namespace neyman::python {

namespace {

using Api = py::detail::npy_api;

/// An array of doubles of this machine, and no subclass, which may mean more (a mask).
bool is_plain(py::handle value) {
  if (Py_TYPE(value.ptr()) != Api::get().PyArray_Type_) return false;
  const auto array = py::reinterpret_borrow<py::array>(value);
  const auto type = array.dtype();
  return type.kind() == 'f' && type.itemsize() == 8 &&
         py::detail::array_proxy(array.ptr())->flags & Api::NPY_ARRAY_ALIGNED_ &&
         type.attr("isnative").cast<bool>();
}

/// Whether rows are contiguous and lie at whole, rising steps.
bool in_place(const py::array& array) {
  constexpr py::ssize_t one = sizeof(double);
  const auto rows = array.shape(0);
  if (array.ndim() == 1)
    return rows <= 1 || (array.strides(0) >= one && array.strides(0) % one == 0);
  const auto cols = array.shape(1);
  return (cols <= 1 || array.strides(1) == one) &&
         (rows <= 1 || (array.strides(0) % one == 0 && array.strides(0) >= cols * one));
}

py::array convert(const char* how, py::handle value, const char* function, const char* name,
                  py::object more = py::none()) {
  return py::module_::import("neyman._arrays").attr(how)(value, function, name, more);
}

template <class T>
py::array own(T&& content, std::vector<py::ssize_t> shape) {
  auto kept = std::make_unique<T>(std::move(content));
  const double* data = kept->data();
  py::capsule owner(kept.release(), [](void* pointer) { delete static_cast<T*>(pointer); });
  return py::array_t<double>(std::move(shape), data, owner);
}

py::array read_only(py::array array) {
  py::detail::array_proxy(array.ptr())->flags &= ~Api::NPY_ARRAY_WRITEABLE_;
  return array;
}

/// A list or tuple of so many finite numbers, as minimisers give it; empty: something else.
std::vector<double> plain_numbers(py::handle value, std::size_t size) {
  if (!PyList_CheckExact(value.ptr()) && !PyTuple_CheckExact(value.ptr())) return {};
  const auto sequence = py::reinterpret_borrow<py::sequence>(value);
  if (sequence.size() != size) return {};
  std::vector<double> out;
  for (const auto element : sequence) {
    if (!PyFloat_Check(element.ptr()) && !PyLong_CheckExact(element.ptr())) return {};
    out.push_back(PyFloat_AsDouble(element.ptr()));
    if (!std::isfinite(out.back()) || PyErr_Occurred() != nullptr) {
      PyErr_Clear();  // an integer that no double holds
      return {};
    }
  }
  return out;
}

}  // namespace

Table as_table(py::handle value, const char* function, const char* name,
               const std::vector<std::string>& columns) {
  const auto array = [&]() -> py::array {
    if (is_plain(value)) {
      const auto plain = py::reinterpret_borrow<py::array>(value);
      if (plain.ndim() >= 1 && plain.ndim() <= 2 && in_place(plain)) return plain;
    }
    py::list wanted;
    for (const auto& column : columns) wanted.append(column);
    return convert("as_table", value, function, name, wanted);
  }();
  const auto rows = static_cast<std::size_t>(array.shape(0));
  const auto cols = array.ndim() == 1 ? 1 : static_cast<std::size_t>(array.shape(1));
  const auto stride =
      rows <= 1 ? cols : static_cast<std::size_t>(array.strides(0)) / sizeof(double);
  return {array, {static_cast<const double*>(array.data()), rows, cols, stride}};
}

Vector as_vector(py::handle value, const char* function, const char* name) {
  if (value.is_none()) return {};
  const auto array = [&]() -> py::array {
    if (is_plain(value)) {
      const auto plain = py::reinterpret_borrow<py::array>(value);
      if (plain.ndim() == 1 && (plain.shape(0) <= 1 || plain.strides(0) == sizeof(double)))
        return plain;
    }
    return convert("as_vector", value, function, name);
  }();
  return {array,
          {static_cast<const double*>(array.data()), static_cast<std::size_t>(array.shape(0))}};
}

std::vector<std::int64_t> as_integers(py::handle value, const char* function, const char* name) {
  if (value.is_none()) return {};
  const auto array = py::array_t<std::int64_t, py::array::c_style>::ensure(
      convert("as_integers", value, function, name));
  return {array.data(), array.data() + array.size()};
}

Matrix copy_of(MatrixView view) {
  Matrix out(view.rows(), view.cols());
  for (std::size_t i = 0; i < view.rows(); ++i)
    std::copy_n(view.row(i).data(), view.cols(), out.row(i).data());
  return out;
}

std::vector<double> as_point(py::handle value, const ParameterSpace& parameters,
                             const char* function, const char* name) {
  if (auto numbers = plain_numbers(value, parameters.size()); !numbers.empty()) return numbers;
  if (is_plain(value) && py::reinterpret_borrow<py::array>(value).ndim() == 1) {
    const auto vector = as_vector(value, function, name);
    const auto finite = [](double number) { return std::isfinite(number); };
    if (vector.values.size() == parameters.size() &&
        std::all_of(vector.values.begin(), vector.values.end(), finite))
      return vector.copy();
  }
  py::list names;
  for (const auto& parameter : parameters) names.append(parameter.name);
  const auto array = convert("as_point", value, function, name, names);
  const auto* data = static_cast<const double*>(array.data());
  return {data, data + array.size()};
}

bool is_one_point(py::handle value, std::size_t parameters) {
  if (!plain_numbers(value, parameters).empty()) return true;
  return is_plain(value) && py::reinterpret_borrow<py::array>(value).ndim() == 1;
}

py::array to_array(Matrix&& matrix) {
  const auto rows = static_cast<py::ssize_t>(matrix.rows());
  const auto cols = static_cast<py::ssize_t>(matrix.cols());
  return own(std::move(matrix), {rows, cols});
}

py::array to_array(std::vector<double>&& values) {
  const auto size = static_cast<py::ssize_t>(values.size());
  return own(std::move(values), {size});
}

py::array to_array(const std::vector<std::size_t>& values) {
  py::array_t<std::int64_t> out(static_cast<py::ssize_t>(values.size()));
  std::copy(values.begin(), values.end(), out.mutable_data());
  return out;
}

py::array view_of(const Matrix& matrix, py::handle owner) {
  return read_only(py::array_t<double>({matrix.rows(), matrix.cols()}, matrix.data(), owner));
}

py::array view_of(const std::vector<double>& values, py::handle owner) {
  return read_only(py::array_t<double>(values.size(), values.data(), owner));
}

}  // namespace neyman::python
