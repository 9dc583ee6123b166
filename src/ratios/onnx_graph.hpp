#pragma once

#include <cstddef>
#include <cstdint>
#include <set>
#include <span>
#include <string>
#include <utility>
#include <variant>
#include <vector>

// ONNX's graphs and the file format of them (protobuf's wire format). Knows nothing of ratios.
namespace neyman::onnx {

/// The name of a value in a graph.
using Tensor = std::string;

struct Attribute {
  std::string name;
  std::variant<std::int64_t, std::vector<std::int64_t>, std::vector<std::string>,
               std::vector<float>>
      value;
};

/// A value that the user gets: a table of doubles, or a list where it has 0 columns.
struct Output {
  std::string name;
  Tensor value;
  std::size_t columns = 0;
};

/// A graph that is being put together: each call adds a value and returns its name. Values are
/// doubles unless something else is said; rows are events.
class Graph {
 public:
  /// A table of doubles that the user gives. `rows` names their number: inputs of the same name
  /// have equally many.
  Tensor input(const std::string& name, const std::string& rows, std::size_t columns);
  /// A number that the user gives, as a list of one. Of any name, where it comes before the values
  /// that the graph names itself.
  Tensor number(const std::string& name);
  Tensor scalar(double value);
  /// A row of a table.
  Tensor row(const std::vector<double>& values);
  /// A table, row-major.
  Tensor table(std::span<const double> values, std::size_t columns);
  Tensor table(std::span<const float> values, std::size_t columns);
  /// A list, as indices and shapes are.
  Tensor list(const std::vector<std::int64_t>& values);
  /// A list of doubles.
  Tensor list(const std::vector<double>& values);

  /// The result of an operator.
  Tensor add(const std::string& op, const std::vector<Tensor>& inputs,
             const std::vector<Attribute>& attributes = {}, const std::string& domain = {});

  // Operators that occur often.
  Tensor sum(const Tensor& a, const Tensor& b) { return add("Add", {a, b}); }
  Tensor difference(const Tensor& a, const Tensor& b) { return add("Sub", {a, b}); }
  Tensor product(const Tensor& a, const Tensor& b) { return add("Mul", {a, b}); }
  Tensor matrix_product(const Tensor& a, const Tensor& b) { return add("MatMul", {a, b}); }
  Tensor clip(const Tensor& a, double low, double high);
  Tensor to_float(const Tensor& a);
  Tensor to_double(const Tensor& a);
  /// Tables side by side.
  Tensor join(const std::vector<Tensor>& tables);
  /// The sum of each row, as a table of one column.
  Tensor row_sum(const Tensor& a);

  /// The bytes of a model whose outputs have these rows.
  /// @throw ArgumentError where these are more bytes than a file of ONNX can have.
  std::string model(const std::vector<Output>& outputs, const std::string& rows,
                    const std::string& description,
                    const std::vector<std::pair<std::string, std::string>>& metadata) const;

 private:
  template <class T>
  Tensor constant(std::span<const T> values, const std::vector<std::size_t>& shape);
  Tensor new_name();

  std::size_t count_ = 0;
  std::set<std::string> given_;                // names of inputs
  bool trees_ = false;                         // whether operators of ai.onnx.ml occur
  std::string nodes_, initializers_, inputs_;  // encoded, field by field of GraphProto
};

}  // namespace neyman::onnx
