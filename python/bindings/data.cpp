#include <pybind11/stl.h>

#include "arrays.hpp"
#include "neyman/core/check.hpp"
#include "neyman/data/reader.hpp"
#include "neyman/data/samples.hpp"
#include "neyman/data/samples_archive.hpp"
#include "neyman/data/splits.hpp"
#include "neyman/data/writer.hpp"
#include "stored.hpp"
#include "work.hpp"

namespace neyman::python {

namespace {

using Names = std::optional<std::vector<std::string>>;

Samples make_samples(py::handle x, py::handle theta, py::handle weights, py::handle groups,
                     const Names& feature_names, const Names& parameter_names) {
  Samples samples;
  samples.x =
      copy_of(as_table(x, "Samples", "x", feature_names.value_or(Names::value_type())).view);
  samples.feature_names = feature_names.value_or(default_feature_names(samples.x.cols()));
  if (!theta.is_none()) {
    samples.theta = copy_of(
        as_table(theta, "Samples", "theta", parameter_names.value_or(Names::value_type())).view);
    if (!parameter_names)
      fail_argument("Samples", "parameter_names", "missing", "given where there is a theta");
    samples.parameter_names = *parameter_names;
  }
  samples.weights = as_vector(weights, "Samples", "weights").copy();
  samples.groups = as_integers(groups, "Samples", "groups");
  samples.check("Samples");
  return samples;
}

std::vector<std::size_t> indices_below(py::handle value, std::size_t size) {
  std::vector<std::size_t> out;
  for (const auto index : as_integers(value, "take", "indices")) {
    if (index < 0 || static_cast<std::size_t>(index) >= size)
      fail_argument("take", "indices", std::to_string(index),
                    "between 0 and " + std::to_string(size) + ", without the end");
    out.push_back(static_cast<std::size_t>(index));
  }
  return out;
}

char separator_of(const std::string& text) {
  if (text.size() != 1) fail_argument("read", "separator", '"' + text + '"', "one character");
  return text[0];
}

/// Only what the caller gave; the rest is as ReadOptions have it.
ReadOptions read_options(const py::dict& given) {
  ReadOptions options;
  const auto take = [&](const char* key, auto& field) {
    if (given.contains(key)) field = given[key].cast<std::decay_t<decltype(field)>>();
  };
  take("features", options.features);
  take("parameters", options.parameters);
  take("weight", options.weight);
  take("group", options.group);
  take("columns", options.columns);
  take("dataset", options.dataset);
  if (given.contains("drop_invalid"))
    options.on_invalid = given["drop_invalid"].cast<bool>() ? OnInvalid::drop : OnInvalid::refuse;
  if (given.contains("header"))
    options.header = given["header"].cast<bool>() ? Header::present : Header::absent;
  if (given.contains("separator"))
    options.separator = separator_of(given["separator"].cast<std::string>());
  if (given.contains("format"))
    options.format = file_format_by_name(given["format"].cast<std::string>());
  return options;
}

py::tuple read(const std::string& path, const py::dict& given) {
  const auto options = read_options(given);
  auto result = long_work([&] { return read_samples(path, options); });
  return py::make_tuple(std::move(result.samples), result.rows, result.dropped);
}

void write(const std::string& path, const Samples& samples, const py::dict& given) {
  WriteOptions options;
  if (given.contains("format"))
    options.format = file_format_by_name(given["format"].cast<std::string>());
  if (given.contains("weight")) options.weight = given["weight"].cast<std::string>();
  if (given.contains("group")) options.group = given["group"].cast<std::string>();
  if (given.contains("compression")) options.compression = given["compression"].cast<int>();
  long_work([&] { write_samples(path, samples, options); });
}

py::list to_list(const Partition& partition) {
  py::list out;
  for (const auto& part : partition) out.append(to_array(part));
  return out;
}

std::vector<int> as_labels(py::handle value) {
  const auto numbers = as_integers(value, "split", "labels");
  return {numbers.begin(), numbers.end()};
}

py::list split(std::size_t n, const std::vector<double>& fractions, std::uint64_t seed,
               py::handle labels, py::handle groups) {
  if (!labels.is_none()) return to_list(stratified_split(as_labels(labels), fractions, seed));
  if (!groups.is_none())
    return to_list(group_split(as_integers(groups, "split", "groups"), fractions, seed));
  return to_list(random_split(n, fractions, seed));
}

py::list folds(std::size_t n, std::size_t count, std::uint64_t seed, py::handle labels,
               py::handle groups) {
  if (!labels.is_none()) return to_list(stratified_k_fold(as_labels(labels), count, seed));
  if (!groups.is_none())
    return to_list(group_k_fold(as_integers(groups, "k_fold", "groups"), count, seed));
  return to_list(k_fold(n, count, seed));
}

}  // namespace

void bind_data(py::module_& module) {
  const auto none = py::none();
  py::class_<Samples, std::shared_ptr<Samples>>(module, "Samples")
      .def(py::init(&make_samples), py::arg("x"), py::arg("theta") = none,
           py::arg("weights") = none, py::arg("groups") = none, py::arg("feature_names") = none,
           py::arg("parameter_names") = none)
      .def("__len__", &Samples::size)
      .def("__eq__", [](const Samples& a, const Samples& b) { return a == b; })
      .def_readonly("feature_names", &Samples::feature_names)
      .def_readonly("parameter_names", &Samples::parameter_names)
      .def_property_readonly(
          "x", [](py::object self) { return view_of(self.cast<const Samples&>().x, self); })
      .def_property_readonly(
          "theta", [](py::object self) { return view_of(self.cast<const Samples&>().theta, self); })
      .def_property_readonly(
          "weights",
          [](py::object self) { return view_of(self.cast<const Samples&>().weights, self); })
      .def_property_readonly("groups",
                             [](const Samples& self) {
                               return py::array_t<std::int64_t>(
                                   static_cast<py::ssize_t>(self.groups.size()),
                                   self.groups.data());
                             })
      .def_property_readonly("total_weight", &Samples::total_weight)
      .def_property_readonly("effective_size", &Samples::effective_size)
      .def("take",
           [](const Samples& self, py::handle indices) {
             return self.take(indices_below(indices, self.size()));
           })
      .def("append",
           [](const Samples& self, const Samples& other) {
             auto out = self;
             out.append(other);
             return out;
           })
      .def("_dump",
           [](const Samples& self) {
             return dump("samples", [&](Archive& archive) { save_samples(self, archive); });
           })
      .def_static("_load", [](const py::bytes& bytes) {
        return load("samples", bytes, [](const Archive& archive) { return load_samples(archive); });
      });
  module.def("read_samples", &read);
  module.def("write_samples", &write);
  module.def("file_columns", [](const std::string& path, const py::dict& given) {
    return file_columns(path, read_options(given));
  });
  module.def("split", &split);
  module.def("folds", &folds);
}

}  // namespace neyman::python
