#include "settings.hpp"

#include "neyman/classifiers/classifier.hpp"
#include "simulators.hpp"

namespace neyman::python {

namespace {

constexpr int deepest = 64;

[[noreturn]] void refuse(const char* function, const std::string& path, py::handle value) {
  throw ArgumentError(std::string(function) + ": " + path + " is a " +
                      Py_TYPE(value.ptr())->tp_name +
                      ", but must be a number, a text, a list or a mapping");
}

SettingValue convert(py::handle value, const char* function, const std::string& path, int depth);

SettingValue::Table convert_table(py::handle mapping, const char* function, const std::string& path,
                                  int depth) {
  SettingValue::Table table;
  const auto items = py::reinterpret_steal<py::object>(PyMapping_Items(mapping.ptr()));
  if (!items) throw py::error_already_set();
  for (const auto item : items) {
    const auto pair = py::reinterpret_borrow<py::tuple>(item);
    if (!py::isinstance<py::str>(pair[0])) refuse(function, path + "'s key", pair[0]);
    if (pair[1].is_none()) continue;
    const auto key = pair[0].cast<std::string>();
    if (key == "object" && py::hasattr(pair[1], "_core_object")) {
      const auto held = pair[1].attr("_core_object");
      table.emplace_back(key, SettingValue{as_object(held.cast<const Simulator&>())});
      continue;
    }
    py::object value = py::reinterpret_borrow<py::object>(pair[1]);
    if (key == "design" && PyCallable_Check(value.ptr()) != 0 && !py::hasattr(value, "_settings"))
      value = py::module_::import("neyman.simulators").attr("settings_of_design")(value);
    table.emplace_back(key,
                       convert(value, function, path.empty() ? key : path + "." + key, depth + 1));
  }
  return table;
}

bool is_mapping(py::handle value) {
  return py::isinstance(value, py::module_::import("collections.abc").attr("Mapping"));
}

SettingValue convert(py::handle value, const char* function, const std::string& path, int depth) {
  if (depth > deepest) throw ArgumentError(std::string(function) + ": " + path + " is too deep");
  if (py::isinstance<py::bool_>(value)) return {value.cast<bool>()};
  if (py::isinstance<py::str>(value)) return {value.cast<std::string>()};
  if (py::isinstance<py::float_>(value)) return {value.cast<double>()};
  if (py::isinstance<py::int_>(value)) {
    const long long number = PyLong_AsLongLong(value.ptr());
    if (number == -1 && PyErr_Occurred() != nullptr) {
      PyErr_Clear();
      throw ArgumentError(std::string(function) + ": " + path + " is " +
                          py::str(value).cast<std::string>() + ", but must fit into 64 bits");
    }
    return {static_cast<std::int64_t>(number)};
  }
  if (py::isinstance<py::list>(value) || py::isinstance<py::tuple>(value)) {
    SettingValue::Array array;
    std::size_t i = 0;
    for (const auto element : value) {
      const auto name = path + "[" + std::to_string(i++) + "]";
      array.push_back(convert(element, function, name, depth + 1));
    }
    return {std::move(array)};
  }
  if (is_mapping(value)) return {convert_table(value, function, path, depth)};
  if (py::isinstance<Classifier>(value))
    return {SettingValue::Object(
        std::make_shared<ClassifierObject>(value.cast<std::shared_ptr<Classifier>>()))};
  if (py::isinstance<DesignFunction>(value))
    return {SettingValue::Object(value.cast<const DesignFunction&>().object)};
  if (py::hasattr(value, "_settings"))  // a distribution, a classifier, a calibrator
    return convert(value.attr("_settings")(), function, path, depth + 1);
  if (py::hasattr(value, "__fspath__"))
    return {py::str(value.attr("__fspath__")()).cast<std::string>()};
  if (py::hasattr(value, "tolist"))  // NumPy's numbers and arrays
    return convert(value.attr("tolist")(), function, path, depth + 1);
  refuse(function, path, value);
}

py::object convert_back(const SettingValue& value) {
  const auto one = [](const auto& content) -> py::object {
    using T = std::decay_t<decltype(content)>;
    if constexpr (std::is_same_v<T, SettingValue::Array>) {
      py::list out;
      for (const auto& element : content) out.append(convert_back(element));
      return out;
    } else if constexpr (std::is_same_v<T, SettingValue::Table>) {
      return to_dict(content);
    } else if constexpr (std::is_same_v<T, SettingValue::Object>) {
      throw ArgumentError("to_dict: a part is written in Python, which no file can hold");
    } else {
      return py::cast(content);
    }
  };
  return std::visit(one, value.data);
}

}  // namespace

SettingValue::Table to_settings(py::handle mapping, const char* function) {
  if (!is_mapping(mapping)) refuse(function, "the settings", mapping);
  return convert_table(mapping, function, "", 0);
}

py::dict to_dict(const SettingValue::Table& table) {
  py::dict out;
  for (const auto& [key, value] : table) out[py::str(key)] = convert_back(value);
  return out;
}

}  // namespace neyman::python
