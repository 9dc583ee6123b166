#include "ratios/onnx_graph.hpp"

#include <fmt/format.h>

#include <bit>
#include <cstring>
#include <type_traits>

#include "neyman/core/check.hpp"
#include "neyman/core/version.hpp"

namespace neyman::onnx {

namespace {

static_assert(std::endian::native == std::endian::little, "tensors are written as they are");

// Known to ONNX 1.8 (2020) and all later ones.
constexpr std::uint64_t ir_version = 7, operators_version = 13, tree_operators_version = 1;
// Protobuf reads messages of less than 2³¹ bytes; some are left for what is around the graph.
constexpr std::size_t largest_graph = (std::size_t{1} << 31) - (std::size_t{1} << 20);

// The fields of onnx.proto that are written here, by message.
namespace field {
enum Model : std::uint64_t {
  model_ir_version = 1,
  model_producer = 2,
  model_producer_version = 3,
  model_description = 6,
  model_graph = 7,
  model_operators = 8,
  model_metadata = 14,
};
enum Operators : std::uint64_t { operators_domain = 1, operators_number = 2 };
enum Entry : std::uint64_t { entry_key = 1, entry_value = 2 };
enum GraphFields : std::uint64_t {
  graph_node = 1,
  graph_name = 2,
  graph_initializer = 5,
  graph_input = 11,
  graph_output = 12,
};
enum Node : std::uint64_t {
  node_input = 1,
  node_output = 2,
  node_operator = 4,
  node_attribute = 5,
  node_domain = 7,
};
enum AttributeFields : std::uint64_t {
  attribute_name = 1,
  attribute_integer = 3,
  attribute_numbers = 7,
  attribute_integers = 8,
  attribute_texts = 9,
  attribute_type = 20,
};
enum TensorFields : std::uint64_t {
  tensor_shape = 1,
  tensor_type = 2,
  tensor_name = 8,
  tensor_bytes = 9,
};
enum Value : std::uint64_t { value_name = 1, value_type = 2 };
enum Type : std::uint64_t { type_tensor = 1 };
enum TensorType : std::uint64_t { element_type = 1, element_shape = 2 };
enum Shape : std::uint64_t { shape_dimension = 1, dimension_size = 1, dimension_name = 2 };
}  // namespace field

enum ElementType : std::uint64_t { float_element = 1, integer_element = 7, double_element = 11 };
enum AttributeType : std::uint64_t {
  integer_attribute = 2,
  numbers_attribute = 6,
  integers_attribute = 7,
  texts_attribute = 8,
};

void put_varint(std::string& out, std::uint64_t value) {
  for (; value >= 0x80; value >>= 7) out.push_back(static_cast<char>(value | 0x80));
  out.push_back(static_cast<char>(value));
}

void put_number(std::string& out, std::uint64_t number, std::uint64_t value) {
  put_varint(out, number << 3);
  put_varint(out, value);
}

/// A text, bytes, or a message.
void put_bytes(std::string& out, std::uint64_t number, const std::string& bytes) {
  put_varint(out, number << 3 | 2);
  put_varint(out, bytes.size());
  out += bytes;
}

template <class T>
std::string encode_tensor(const std::string& name, std::span<const T> values,
                          const std::vector<std::size_t>& shape) {
  std::string out;
  for (const std::size_t size : shape) put_number(out, field::tensor_shape, size);
  put_number(out, field::tensor_type,
             std::is_same_v<T, float>    ? float_element
             : std::is_same_v<T, double> ? double_element
                                         : integer_element);
  put_bytes(out, field::tensor_name, name);
  std::string bytes(values.size_bytes(), '\0');
  if (!values.empty()) std::memcpy(bytes.data(), values.data(), bytes.size());
  put_bytes(out, field::tensor_bytes, bytes);
  return out;
}

std::string encode(const Attribute& attribute) {
  std::string out;
  put_bytes(out, field::attribute_name, attribute.name);
  const auto type = [&](AttributeType value) { put_number(out, field::attribute_type, value); };
  if (const auto* one = std::get_if<std::int64_t>(&attribute.value)) {
    put_number(out, field::attribute_integer, static_cast<std::uint64_t>(*one));
    type(integer_attribute);
  } else if (const auto* many = std::get_if<std::vector<std::int64_t>>(&attribute.value)) {
    for (const auto value : *many)
      put_number(out, field::attribute_integers, static_cast<std::uint64_t>(value));
    type(integers_attribute);
  } else if (const auto* texts = std::get_if<std::vector<std::string>>(&attribute.value)) {
    for (const auto& text : *texts) put_bytes(out, field::attribute_texts, text);
    type(texts_attribute);
  } else {
    for (const float value : std::get<std::vector<float>>(attribute.value)) {
      put_varint(out, field::attribute_numbers << 3 | 5);  // four bytes follow
      out.append(reinterpret_cast<const char*>(&value), sizeof value);
    }
    type(numbers_attribute);
  }
  return out;
}

/// A named number of rows or columns, or a known one.
using Dimension = std::variant<std::string, std::size_t>;

/// A name with its type: doubles of this shape.
std::string encode_value(const std::string& name, const std::vector<Dimension>& dimensions) {
  std::string shape, tensor, type, out;
  for (const auto& dimension : dimensions) {
    std::string one;
    if (const auto* named = std::get_if<std::string>(&dimension))
      put_bytes(one, field::dimension_name, *named);
    else
      put_number(one, field::dimension_size, std::get<std::size_t>(dimension));
    put_bytes(shape, field::shape_dimension, one);
  }
  put_number(tensor, field::element_type, double_element);
  put_bytes(tensor, field::element_shape, shape);
  put_bytes(type, field::type_tensor, tensor);
  put_bytes(out, field::value_name, name);
  put_bytes(out, field::value_type, type);
  return out;
}

}  // namespace

Tensor Graph::new_name() {
  Tensor name;
  do {
    name.assign(1, 't');
    name += std::to_string(count_++);
  } while (given_.contains(name));
  return name;
}

Tensor Graph::input(const std::string& name, const std::string& rows, std::size_t columns) {
  put_bytes(inputs_, field::graph_input, encode_value(name, {rows, columns}));
  given_.insert(name);
  return name;
}

Tensor Graph::number(const std::string& name) {
  put_bytes(inputs_, field::graph_input, encode_value(name, {std::size_t{1}}));
  given_.insert(name);
  return name;
}

template <class T>
Tensor Graph::constant(std::span<const T> values, const std::vector<std::size_t>& shape) {
  auto name = new_name();
  put_bytes(initializers_, field::graph_initializer, encode_tensor(name, values, shape));
  return name;
}

Tensor Graph::scalar(double value) { return constant(std::span<const double>(&value, 1), {}); }

Tensor Graph::row(const std::vector<double>& values) { return table(values, values.size()); }

Tensor Graph::table(std::span<const double> values, std::size_t columns) {
  return constant(values, {values.size() / columns, columns});
}

Tensor Graph::table(std::span<const float> values, std::size_t columns) {
  return constant(values, {values.size() / columns, columns});
}

Tensor Graph::list(const std::vector<std::int64_t>& values) {
  return constant(std::span(values), {values.size()});
}

Tensor Graph::list(const std::vector<double>& values) {
  return constant(std::span(values), {values.size()});
}

Tensor Graph::add(const std::string& op, const std::vector<Tensor>& inputs,
                  const std::vector<Attribute>& attributes, const std::string& domain) {
  auto name = new_name();
  std::string node;
  for (const auto& input : inputs) put_bytes(node, field::node_input, input);
  put_bytes(node, field::node_output, name);
  put_bytes(node, field::node_operator, op);
  for (const auto& attribute : attributes)
    put_bytes(node, field::node_attribute, encode(attribute));
  if (!domain.empty()) put_bytes(node, field::node_domain, domain);
  trees_ = trees_ || !domain.empty();
  put_bytes(nodes_, field::graph_node, node);
  return name;
}

Tensor Graph::clip(const Tensor& a, double low, double high) {
  return add("Clip", {a, scalar(low), scalar(high)});
}

Tensor Graph::to_float(const Tensor& a) {
  return add("Cast", {a}, {{"to", std::int64_t{float_element}}});
}

Tensor Graph::to_double(const Tensor& a) {
  return add("Cast", {a}, {{"to", std::int64_t{double_element}}});
}

Tensor Graph::join(const std::vector<Tensor>& tables) {
  return tables.size() == 1 ? tables.front() : add("Concat", tables, {{"axis", std::int64_t{1}}});
}

Tensor Graph::row_sum(const Tensor& a) {
  return add("ReduceSum", {a, list(std::vector<std::int64_t>{1})});
}

std::string Graph::model(const std::vector<Output>& outputs, const std::string& rows,
                         const std::string& description,
                         const std::vector<std::pair<std::string, std::string>>& metadata) const {
  Graph done(*this);
  std::string declared;
  for (const auto& output : outputs) {
    // With a name of its own.
    std::vector<std::int64_t> shape{-1};
    std::vector<Dimension> dimensions{rows};
    if (output.columns > 0) {
      shape.push_back(static_cast<std::int64_t>(output.columns));
      dimensions.emplace_back(output.columns);
    }
    std::string last;
    put_bytes(last, field::node_input, output.value);
    put_bytes(last, field::node_input, done.list(shape));
    put_bytes(last, field::node_output, output.name);
    put_bytes(last, field::node_operator, "Reshape");
    put_bytes(done.nodes_, field::graph_node, last);
    put_bytes(declared, field::graph_output, encode_value(output.name, dimensions));
  }

  std::string graph = done.nodes_;
  put_bytes(graph, field::graph_name, "ratio");
  graph += done.initializers_ + done.inputs_ + declared;
  if (graph.size() >= largest_graph)
    fail_argument("export_onnx", "the graph",
                  fmt::format("{:.2g} GB", 1e-9 * static_cast<double>(graph.size())),
                  "below 2.1 GB, the most that a file of ONNX can have");

  std::string out;
  put_number(out, field::model_ir_version, ir_version);
  put_bytes(out, field::model_producer, "neyman");
  put_bytes(out, field::model_producer_version, version());
  put_bytes(out, field::model_description, description);
  put_bytes(out, field::model_graph, graph);
  const auto put_operators = [&](const std::string& domain, std::uint64_t number) {
    std::string set;
    put_bytes(set, field::operators_domain, domain);
    put_number(set, field::operators_number, number);
    put_bytes(out, field::model_operators, set);
  };
  put_operators("", operators_version);
  if (trees_) put_operators("ai.onnx.ml", tree_operators_version);
  for (const auto& [key, value] : metadata) {
    std::string entry;
    put_bytes(entry, field::entry_key, key);
    put_bytes(entry, field::entry_value, value);
    put_bytes(out, field::model_metadata, entry);
  }
  return out;
}

}  // namespace neyman::onnx
