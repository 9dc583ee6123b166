#include "neyman/ratios/onnx_export.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

#include "neyman/core/check.hpp"
#include "neyman/core/error.hpp"
#include "neyman/ratios/classifier_across.hpp"
#include "neyman/ratios/classifier_ratio.hpp"
#include "neyman/ratios/decomposed_ratio.hpp"
#include "neyman/ratios/separable_ratio.hpp"
#include "ratios/onnx_graph.hpp"
#include "ratios/onnx_parts.hpp"
#include "ratios/separable_features.hpp"

namespace neyman {

using namespace onnx;

namespace {

// Names of the numbers of rows.
constexpr const char* rows_of_x = "events";
constexpr const char* rows_of_theta = "points";  // 1, or the same

using Metadata = std::vector<std::pair<std::string, std::string>>;

/// The mean of columns, each of one fold.
Tensor mean_of(Graph& graph, const std::vector<Tensor>& folds) {
  if (folds.size() == 1) return folds.front();
  return graph.product(graph.row_sum(graph.join(folds)),
                       graph.scalar(1.0 / static_cast<double>(folds.size())));
}

/// CrossFit::log_ratios.
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

/// A fixed point as a row, or the input that takes its place.
Tensor add_point(Graph& graph, const char* name, const std::optional<std::vector<double>>& fixed,
                 const ParameterSpace& parameters) {
  if (!fixed) return graph.input(name, rows_of_theta, parameters.size());
  parameters.check_inside("export_onnx", *fixed);
  return graph.row(*fixed);
}

/// The same row for every event, where there is one for all.
Tensor add_row_for_each(Graph& graph, const Tensor& row, std::size_t columns, const Tensor& x) {
  const Tensor count =
      graph.add("Gather", {graph.add("Shape", {x}), graph.list(std::vector<std::int64_t>{0})});
  const Tensor shape = graph.add(
      "Concat", {count, graph.list(std::vector<std::int64_t>{static_cast<std::int64_t>(columns)})},
      {{"axis", std::int64_t{0}}});
  return graph.add("Expand", {row, shape});
}

Tensor add_ratio(Graph& graph, const ClassifierRatio& ratio, const OnnxOptions& options,
                 Metadata&) {
  if (options.numerator || options.denominator)
    throw ArgumentError(
        "export_onnx: numerator and denominator are given, but must be absent: a classifier ratio "
        "is that of the two points it was trained at");
  Archive archive;
  ratio.save(archive);
  const Tensor x = graph.input("x", rows_of_x, ratio.cross_fit().classifier(0).features());
  const Tensor raw = add_pair(graph, archive.child("pair"), x);
  return graph.clip(graph.difference(raw, graph.scalar(ratio.log_normalisation())),
                    -log_ratio_limit, log_ratio_limit);
}

/// DecomposedRatio::component_ratios, one column each.
Tensor add_components(Graph& graph, const DecomposedRatio& ratio, const Tensor& x) {
  Archive archive;
  ratio.save(archive);
  const std::size_t count = ratio.components();
  const auto reference = ratio.weights()(ratio.reference());
  std::vector<Tensor> logs;
  std::vector<double> of_ratio, of_inverse;  // pairs × components
  for (std::size_t c = 0, p = 0; c < count; ++c)
    for (std::size_t d = c + 1; d < count; ++d, ++p) {
      if (reference[c] == 0.0 && reference[d] == 0.0) continue;
      logs.push_back(add_pair(graph, archive.child(fmt::format("pair{}", p)), x));
      for (std::size_t k = 0; k < count; ++k) {
        of_ratio.push_back(k == d ? reference[c] : 0.0);
        of_inverse.push_back(k == c ? reference[d] : 0.0);
      }
    }
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

Tensor add_ratio(Graph& graph, const DecomposedRatio& ratio, const OnnxOptions& options,
                 Metadata& metadata) {
  std::vector<std::string> formulas;
  for (const auto& weight : ratio.weights().expressions()) formulas.push_back(weight.text());
  metadata.emplace_back("weights", fmt::format("{}", fmt::join(formulas, ", ")));
  const Tensor x = graph.input("x", rows_of_x, ratio.pair(0, 1).classifier(0).features());
  const Tensor components = add_components(graph, ratio, x);
  const Tensor means = graph.row(ratio.normalisation());
  // log Σ_c w_c q_c / Σ_c w_c Z_c
  const auto side = [&](const char* name, const std::optional<std::vector<double>>& fixed) {
    const Tensor weights = fixed ? graph.row(ratio.weights()(*fixed))
                                 : graph.input(name, rows_of_theta, ratio.components());
    const auto log_of = [&](const Tensor& values) {
      return graph.add("Log", {graph.row_sum(graph.product(weights, values))});
    };
    const Tensor log_ratio = log_of(components);
    return graph.difference(log_ratio, log_of(means));
  };
  const Tensor above = side("numerator_weights", options.numerator);
  const Tensor below = side("denominator_weights", options.denominator);
  return graph.clip(graph.difference(above, below), -log_ratio_limit, log_ratio_limit);
}

/// ParameterizedClassifierRatio::evaluate.
Tensor add_evaluation(Graph& graph, const Archive& ratio, const Tensor& x,
                      const std::vector<Tensor>& at, std::size_t parameters) {
  std::vector<Tensor> columns{x};
  for (const auto& point : at) columns.push_back(add_row_for_each(graph, point, parameters, x));
  const Tensor inputs = graph.join(columns);
  const Tensor full =
      graph.join(at.size() == 1 ? at : std::vector(columns.begin() + 1, columns.end()));
  const auto folds = ratio.integer("folds"), calibrations = ratio.integer("calibrations");
  std::vector<Tensor> logits, calibrated;
  for (std::int64_t k = 0; k < folds; ++k)
    logits.push_back(add_classifier(graph, ratio.child(fmt::format("classifier{}", k)), inputs));
  if (calibrations == 0) return graph.add("Neg", {mean_of(graph, logits)});
  if (calibrations != folds) logits = {mean_of(graph, logits)};
  for (std::size_t k = 0; k < logits.size(); ++k)
    calibrated.push_back(
        add_smooth_across(graph, ratio.child(fmt::format("calibration{}", k)), logits[k], full));
  return mean_of(graph, calibrated);
}

Tensor add_ratio(Graph& graph, const ParameterizedClassifierRatio& ratio,
                 const OnnxOptions& options, Metadata&) {
  using Denominator = ParameterizedClassifierRatio::Denominator;
  using Across = ParameterizedClassifierRatio::Across;
  if (ratio.calibration() != Across::smooth && ratio.calibration() != Across::none)
    throw ArgumentError(fmt::format(
        "export_onnx: calibration is {}, but must be smooth or none: others are no formula of the "
        "score and θ",
        ratio.calibration() == Across::interpolate ? "interpolate" : "on-demand"));
  const auto& parameters = ratio.parameters();
  Archive archive;
  ratio.save(archive);
  const Tensor x = graph.input("x", rows_of_x, ratio.features());
  const Tensor numerator = add_point(graph, "numerator", options.numerator, parameters);
  const auto evaluate = [&](const std::vector<Tensor>& at) {
    return add_evaluation(graph, archive, x, at, parameters.size());
  };
  if (ratio.denominator() == Denominator::point &&
      (!options.denominator || *options.denominator == ratio.reference()))
    return evaluate({numerator});
  const Tensor denominator = add_point(graph, "denominator", options.denominator, parameters);
  if (ratio.denominator() == Denominator::parameterized) return evaluate({numerator, denominator});
  const Tensor above = evaluate({numerator});
  return graph.difference(above, evaluate({denominator}));
}

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
  std::vector<double> transposed;
  for (std::size_t f = 0; f < map.cols(); ++f)
    for (std::size_t r = 0; r < map.rows(); ++r) transposed.push_back(map(r, f));
  const Tensor white = graph.matrix_product(centred, graph.table(transposed, map.rows()));
  return graph.to_float(graph.clip(white, -1e6, 1e6));
}

/// Features::forward: the hidden part, or nothing where there is none.
std::optional<Tensor> add_hidden(Graph& graph, const Archive& from, const Tensor& white) {
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
  // The rows of mix: hidden, inputs, 1.
  std::span<const float> rows(mix);
  const Tensor of_hidden = graph.table(take(rows, in * in), in);
  const Tensor of_inputs = graph.table(take(rows, inputs * in), in);
  const Tensor of_one = graph.table(take(rows, in), in);
  return graph.sum(graph.matrix_product(layer, of_hidden),
                   graph.add("Gemm", {white, of_inputs, of_one}));
}

/// The log-ratio of one fold, from differences of polynomials between θ0 and θ1.
Tensor add_separable_fold(Graph& graph, const Archive& fold, const Tensor& x, const Tensor& terms,
                          std::size_t term_count, const Tensor& norms) {
  const Tensor white = add_whitening(graph, fold.child("whitening"), x);
  const auto hidden = add_hidden(graph, fold.child("features"), white);
  const Tensor phi = graph.to_double(hidden ? graph.join({*hidden, white}) : white);
  // v = A (P0 − P1), the last of which belongs to the constant.
  const auto& coefficients = fold.get<std::vector<float>>("coefficients");
  const std::size_t stride = separable::round_up(term_count, 8);
  const std::size_t size = coefficients.size() / stride;
  std::vector<double> of_phi, of_one;
  for (std::size_t k = 0; k < term_count; ++k) {
    for (std::size_t j = 0; j + 1 < size; ++j)
      of_phi.push_back(static_cast<double>(coefficients[j * stride + k]));
    of_one.push_back(static_cast<double>(coefficients[(size - 1) * stride + k]));
  }
  const Tensor v = graph.matrix_product(terms, graph.table(of_phi, size - 1));
  const Tensor constant = graph.matrix_product(terms, graph.table(of_one, 1));
  const Tensor offset = graph.matrix_product(norms, graph.table(fold.numbers("normalisation"), 1));
  const Tensor sum =
      graph.sum(graph.row_sum(graph.product(phi, v)), graph.difference(constant, offset));
  return graph.clip(sum, -log_ratio_limit, log_ratio_limit);
}

Tensor add_ratio(Graph& graph, const SeparableRatio& ratio, const OnnxOptions& options, Metadata&) {
  Archive archive;
  ratio.save(archive);
  const auto& parameters = ratio.parameters();
  const PolynomialBasis basis(parameters, static_cast<std::size_t>(archive.integer("degree")));
  const PolynomialBasis normaliser(parameters,
                                   static_cast<std::size_t>(archive.integer("normaliser_degree")));
  const Tensor x = graph.input("x", rows_of_x, ratio.features());
  const Tensor numerator = add_point(graph, "numerator", options.numerator, parameters);
  const Tensor denominator = add_point(graph, "denominator", options.denominator, parameters);
  const auto differences = [&](const PolynomialBasis& polynomials) {
    const Tensor above = add_polynomials(graph, polynomials, numerator);
    return graph.difference(above, add_polynomials(graph, polynomials, denominator));
  };
  const Tensor terms = differences(basis), norms = differences(normaliser);
  std::vector<Tensor> folds;
  for (std::int64_t k = 0; k < archive.integer("folds"); ++k)
    folds.push_back(add_separable_fold(graph, archive.child(fmt::format("fold{}", k)), x, terms,
                                       basis.size(), norms));
  return mean_of(graph, folds);
}

}  // namespace

std::string export_onnx(const Ratio& ratio, const OnnxOptions& options) {
  Graph graph;
  Metadata metadata{{"kind", ratio.kind()}};
  if (!options.feature_names.empty())
    metadata.emplace_back("features", fmt::format("{}", fmt::join(options.feature_names, ", ")));
  if (const auto* known = dynamic_cast<const ParameterizedRatio*>(&ratio))
    metadata.emplace_back("parameters",
                          fmt::format("{}", fmt::join(known->parameters().names(), ", ")));
  Tensor log_ratio;
  const auto try_as = [&]<class Kind>(const Kind* found) {
    if (found != nullptr) log_ratio = add_ratio(graph, *found, options, metadata);
    return found != nullptr;
  };
  if (!try_as(dynamic_cast<const ClassifierRatio*>(&ratio)) &&
      !try_as(dynamic_cast<const DecomposedRatio*>(&ratio)) &&
      !try_as(dynamic_cast<const ParameterizedClassifierRatio*>(&ratio)) &&
      !try_as(dynamic_cast<const SeparableRatio*>(&ratio)))
    fail_argument("export_onnx", "ratio", ratio.kind(), "a learned one, not tabulated or inverse");
  return graph.model(log_ratio, "log_r", rows_of_x,
                     "log of the likelihood ratio p(x|numerator) / p(x|denominator)", metadata);
}

}  // namespace neyman
