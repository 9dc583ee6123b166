#include "ratios/onnx_ratios.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <numbers>
#include <optional>

#include "neyman/core/error.hpp"
#include "neyman/ratios/decomposed_ratio.hpp"
#include "ratios/onnx_parts.hpp"
#include "ratios/periodic_columns.hpp"
#include "ratios/separable_features.hpp"

namespace neyman::onnx {

namespace {

/// Whitening::apply, as floats.
Tensor add_whitening(Graph& graph, const Archive& from, const Tensor& x) {
  const auto& width = from.numbers("width");
  const auto& map = from.get<Matrix>("map");
  Tensor values = x;
  if (std::any_of(width.begin(), width.end(), [](double w) { return w > 0.0; })) {
    // asinh(t) = sign(t) log(|t| + √(t² + 1)): the operator itself is not everywhere for doubles.
    std::vector<double> scale, heavy;
    for (const double w : width) {
      scale.push_back(w > 0.0 ? w : 1.0);
      heavy.push_back(w > 0.0 ? 1.0 : 0.0);
    }
    const Tensor t = graph.add(
        "Div", {graph.difference(x, graph.row(from.numbers("median"))), graph.row(scale)});
    const Tensor root = graph.add("Sqrt", {graph.sum(graph.product(t, t), graph.scalar(1.0))});
    const Tensor size = graph.add("Log", {graph.sum(graph.add("Abs", {t}), root)});
    const Tensor compressed = graph.product(graph.add("Sign", {t}), size);
    const Tensor chosen = graph.add("Greater", {graph.row(heavy), graph.scalar(0.5)});
    values = graph.add("Where", {chosen, compressed, x});
  }
  const Tensor centred = graph.difference(values, graph.row(from.numbers("mean")));
  const auto whitened = [&] {
    if (map.rows() < map.cols())
      return graph.product(centred, graph.table(map.values(), map.cols()));
    std::vector<double> transposed;
    for (std::size_t f = 0; f < map.cols(); ++f)
      for (std::size_t r = 0; r < map.rows(); ++r) transposed.push_back(map(r, f));
    return graph.matrix_product(centred, graph.table(transposed, map.rows()));
  };
  const Tensor white = whitened();
  return graph.to_float(graph.clip(white, -1e6, 1e6));
}

/// Features::forward: the inputs, or directions among them.
Tensor add_linear(Graph& graph, const Archive& from, const Tensor& white) {
  if (!from.has("directions")) return white;
  const auto& directions = from.get<Matrix>("directions");
  const std::vector<float> columns(directions.values().begin(), directions.values().end());
  return graph.matrix_product(white, graph.table(columns, directions.cols()));
}

/// Features::forward: the hidden part, or nothing where there is none.
std::optional<Tensor> add_hidden(Graph& graph, const Archive& from, const Tensor& white,
                                 const Tensor& linear) {
  const auto& widths = from.get<std::vector<std::int64_t>>("hidden");
  const auto& mix = from.get<std::vector<float>>("mix");
  std::span<const float> weights(from.get<std::vector<float>>("weights"));
  const auto inputs = static_cast<std::size_t>(from.integer("inputs"));
  if (widths.empty()) return {};
  const auto take = [](std::span<const float>& left, std::size_t count) {
    const auto out = left.first(count);
    left = left.subspan(count);
    return out;
  };
  Tensor layer = white;
  std::size_t in = inputs;
  for (const auto width : widths) {
    const auto out = static_cast<std::size_t>(width);
    const Tensor matrix = graph.table(take(weights, in * out), out);
    const Tensor biases = graph.table(take(weights, out), out);
    layer = add_silu(graph, graph.add("Gemm", {layer, matrix, biases}));
    in = out;
  }
  if (mix.empty()) return layer;
  // The rows of mix: hidden, linear, 1.
  std::span<const float> rows(mix);
  const Tensor of_hidden = graph.table(take(rows, in * in), in);
  const Tensor of_linear = graph.table(take(rows, rows.size() - in), in);
  const Tensor of_one = graph.table(take(rows, in), in);
  return graph.sum(graph.matrix_product(layer, of_hidden),
                   graph.add("Gemm", {linear, of_linear, of_one}));
}

}  // namespace

Tensor mean_of(Graph& graph, const std::vector<Tensor>& folds) {
  if (folds.size() == 1) return folds.front();
  return graph.product(graph.row_sum(graph.join(folds)),
                       graph.scalar(1.0 / static_cast<double>(folds.size())));
}

Tensor add_row_for_each(Graph& graph, const Tensor& row, std::size_t columns, const Tensor& x) {
  const Tensor count =
      graph.add("Gather", {graph.add("Shape", {x}), graph.list(std::vector<std::int64_t>{0})});
  const Tensor shape = graph.add(
      "Concat", {count, graph.list(std::vector<std::int64_t>{static_cast<std::int64_t>(columns)})},
      {{"axis", std::int64_t{0}}});
  return graph.add("Expand", {row, shape});
}

Tensor add_pair(Graph& graph, const Archive& pair, const Tensor& x) {
  std::vector<Tensor> folds;
  for (std::int64_t k = 0; k < pair.integer("folds"); ++k) {
    const auto& fold = pair.child(fmt::format("fold{}", k));
    if (!fold.has_child("calibrator"))
      throw ArgumentError("export_onnx: the ratio is trained, but must be calibrated too");
    folds.push_back(add_calibrator(graph, fold.child("calibrator"),
                                   add_classifier(graph, fold.child("classifier"), x)));
  }
  return mean_of(graph, folds);
}

Tensor add_components(Graph& graph, const Archive& ratio, const std::vector<double>& reference,
                      const Tensor& x) {
  const std::size_t count = reference.size();
  std::vector<Tensor> logs;
  std::vector<double> of_ratio, of_inverse;  // pairs × components
  for (std::size_t c = 0, p = 0; c < count; ++c)
    for (std::size_t d = c + 1; d < count; ++d, ++p) {
      if (reference[c] == 0.0 && reference[d] == 0.0) continue;
      logs.push_back(add_pair(graph, ratio.child(fmt::format("pair{}", p)), x));
      for (std::size_t k = 0; k < count; ++k) {
        of_ratio.push_back(k == d ? reference[c] : 0.0);
        of_inverse.push_back(k == c ? reference[d] : 0.0);
      }
    }
  if (logs.empty()) return graph.add("Reciprocal", {graph.row(reference)});
  const Tensor bounded =
      graph.clip(graph.join(logs), -DecomposedRatio::pair_limit, DecomposedRatio::pair_limit);
  const Tensor ratios = graph.add("Exp", {bounded});
  const Tensor inverses = graph.add("Exp", {graph.add("Neg", {bounded})});
  const Tensor sums =
      graph.sum(graph.row(reference),
                graph.sum(graph.matrix_product(ratios, graph.table(of_ratio, count)),
                          graph.matrix_product(inverses, graph.table(of_inverse, count))));
  return graph.add("Reciprocal", {sums});
}

Tensor add_angles(Graph& graph, const Archive& ratio, const Tensor& x, std::size_t features) {
  const auto angles = across::PeriodicColumns::load(ratio, features);
  if (angles.empty()) return x;
  const auto column = [&](std::size_t f) {
    return graph.add("Gather", {x, graph.list(std::vector{static_cast<std::int64_t>(f)})},
                     {{"axis", std::int64_t{1}}});
  };
  const auto told = [&](const char* function, const across::PeriodicColumns::Period& angle) {
    const double turn = 2.0 * std::numbers::pi / (angle.high - angle.low);
    return graph.add(
        function, {graph.product(graph.scalar(turn),
                                 graph.difference(column(angle.column), graph.scalar(angle.low)))});
  };
  std::vector<Tensor> columns;
  for (std::size_t f = 0; f < features; ++f) {
    const auto* angle = angles.find(f);
    columns.push_back(angle == nullptr ? column(f) : told("Cos", *angle));
  }
  for (const auto& angle : angles) columns.push_back(told("Sin", angle));
  return graph.join(columns);
}

Tensor add_separable_features(Graph& graph, const Archive& fold, const Tensor& x) {
  const Tensor white = add_whitening(graph, fold.child("whitening"), x);
  const Archive& features = fold.child("features");
  const Tensor linear = add_linear(graph, features, white);
  const auto hidden = add_hidden(graph, features, white, linear);
  return graph.to_double(hidden ? graph.join({*hidden, linear}) : linear);
}

Matrix separable_coefficients(const Archive& fold, std::size_t terms) {
  const auto& saved = fold.get<std::vector<float>>("coefficients");
  const std::size_t stride = separable::round_up(terms, 8);
  Matrix out(saved.size() / stride, terms);
  for (std::size_t j = 0; j < out.rows(); ++j)
    for (std::size_t k = 0; k < terms; ++k) out(j, k) = static_cast<double>(saved[j * stride + k]);
  return out;
}

}  // namespace neyman::onnx
