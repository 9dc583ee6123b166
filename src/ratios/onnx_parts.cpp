#include "ratios/onnx_parts.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <numbers>

#include "calibration/cubic_spline.hpp"
#include "calibration/line.hpp"
#include "calibration/monotone_cubic.hpp"
#include "calibration/scores.hpp"
#include "classifiers/mlp_kernels.hpp"
#include "classifiers/tree_model.hpp"
#include "neyman/core/check.hpp"
#include "neyman/core/error.hpp"

namespace neyman::onnx {

namespace {

constexpr double infinite = std::numeric_limits<double>::infinity();

std::vector<double> slice(const std::vector<double>& values, std::size_t begin, std::size_t end) {
  return {values.begin() + static_cast<std::ptrdiff_t>(begin),
          values.begin() + static_cast<std::ptrdiff_t>(end)};
}

/// How many of some rising numbers are not above z (or, where `strict`, are below z): a binary
/// search, so that memory does not grow with the numbers.
Tensor add_count(Graph& graph, const std::vector<double>& rising, const Tensor& z,
                 bool strict = false) {
  std::size_t size = 2;
  while (size < rising.size() + 1) size *= 2;
  std::vector<double> padded(size, infinite);
  padded.front() = -infinite;
  std::copy(rising.begin(), rising.end(), padded.begin() + 1);
  const Tensor table = graph.list(padded);
  Tensor count = graph.list(std::vector<std::int64_t>{0});
  for (std::size_t step = size / 2; step > 0; step /= 2) {
    const Tensor next =
        graph.sum(count, graph.list(std::vector<std::int64_t>{static_cast<std::int64_t>(step)}));
    const Tensor there = graph.add("Gather", {table, next});
    const Tensor passed = graph.add(strict ? "Less" : "LessOrEqual", {there, z});
    count = graph.add("Where", {passed, next, count});
  }
  return count;
}

/// Cubics c0 + c1 v + c2 v² + c3 v³ with v = z − origin, the one after each threshold.
struct Piecewise {
  std::vector<double> thresholds;  // one fewer than pieces
  std::vector<double> origins;
  std::vector<std::array<double, 4>> pieces;

  void add(double origin, const std::array<double, 4>& piece) {
    origins.push_back(origin);
    pieces.push_back(piece);
  }
};

struct ValueAndSlope {
  Tensor value, slope;
};

ValueAndSlope add_piecewise(Graph& graph, const Piecewise& curve, const Tensor& z) {
  const Tensor piece = add_count(graph, curve.thresholds, z);
  const auto gather = [&](const std::vector<double>& values) {
    return graph.add("Gather", {graph.list(values), piece});
  };
  const Tensor v = graph.difference(z, gather(curve.origins));
  std::array<Tensor, 4> c;
  for (std::size_t power = 0; power < 4; ++power) {
    std::vector<double> column;
    for (const auto& coefficients : curve.pieces) column.push_back(coefficients[power]);
    c[power] = gather(column);
  }
  const auto horner = [&](const Tensor& a, const Tensor& b) {
    return graph.sum(a, graph.product(v, b));
  };
  const auto twice = graph.product(graph.scalar(2.0), c[2]);
  const auto thrice = graph.product(graph.scalar(3.0), c[3]);
  return {horner(c[0], horner(c[1], horner(c[2], c[3]))), horner(c[1], horner(twice, thrice))};
}

/// What evaluate_monotone_cubic does: straight on beyond the first and the last point.
Tensor add_monotone_cubic(Graph& graph, const std::vector<double>& x, const std::vector<double>& y,
                          const Tensor& z) {
  const auto slopes = calibration::monotone_slopes(x, y);
  Piecewise curve;
  curve.thresholds = x;
  curve.add(x.front(), {y.front(), slopes.front(), 0.0, 0.0});
  for (std::size_t i = 0; i + 1 < x.size(); ++i) {
    const double h = x[i + 1] - x[i], m = slopes[i], n = slopes[i + 1];
    if (h > 0.0) {
      const double rise = (y[i + 1] - y[i]) / h;
      curve.add(x[i], {y[i], m, (3.0 * rise - 2.0 * m - n) / h, (m + n - 2.0 * rise) / (h * h)});
    } else {
      curve.add(x[i], {y[i], 0.0, 0.0, 0.0});
    }
  }
  curve.add(x.back(), {y.back(), slopes.back(), 0.0, 0.0});
  return add_piecewise(graph, curve, z).value;
}

Tensor add_steps(Graph& graph, const std::vector<double>& steps, const std::vector<double>& values,
                 const Tensor& z) {
  return graph.add("Gather", {graph.list(values), add_count(graph, steps, z, true)});
}

Tensor add_smooth(Graph& graph, const Archive& from, const Tensor& z) {
  const auto& breaks = from.numbers("breaks");
  const double extrapolation = from.number("extrapolation");
  const calibration::CubicSplines splines(breaks);
  Piecewise curve;
  curve.thresholds = slice(breaks, 1, breaks.size() - 1);
  const auto polynomials = splines.polynomials(from.numbers("coefficients"));
  for (std::size_t i = 0; i < polynomials.size(); ++i) curve.add(breaks[i], polynomials[i]);
  const Tensor held = graph.clip(z, -calibration::largest_logit, calibration::largest_logit);
  const Tensor u = graph.add("Div", {graph.difference(held, graph.scalar(from.number("centre"))),
                                     graph.scalar(from.number("scale"))});
  const Tensor inside = graph.clip(u, breaks.front(), breaks.back());
  const auto f = add_piecewise(graph, curve, inside);
  const Tensor beyond = graph.product(f.slope, graph.difference(u, inside));
  return graph.add("Neg", {graph.sum(f.value, graph.clip(beyond, -extrapolation, extrapolation))});
}

Tensor add_line(Graph& graph, const calibration::Line& line, const Tensor& z) {
  const Tensor t =
      graph.add("Div", {graph.difference(z, graph.scalar(line.centre)), graph.scalar(line.scale)});
  return graph.add(
      "Neg", {graph.sum(graph.scalar(line.offset), graph.product(graph.scalar(line.slope), t))});
}

Tensor add_sigmoid(Graph& graph, const Archive& from, const Tensor& z) {
  const auto line = calibration::Line::from(from.numbers("line"));
  constexpr double most = calibration::largest_extension, largest = calibration::largest_logit;
  const Tensor inside =
      add_line(graph, line, graph.clip(z, from.number("low"), from.number("high")));
  const Tensor extended = add_line(graph, line, graph.clip(z, -largest, largest));
  return graph.sum(inside, graph.clip(graph.difference(extended, inside), -most, most));
}

Tensor add_none(Graph& graph, const Archive&, const Tensor& z) {
  constexpr double largest = calibration::largest_logit;
  return graph.add("Neg", {graph.clip(z, -largest, largest)});
}

Tensor add_histogram(Graph& graph, const Archive& from, const Tensor& z) {
  const auto &edges = from.numbers("edges"), &values = from.numbers("values");
  const Tensor inside = graph.clip(z, edges.front(), edges.back());
  if (from.flag("interpolate"))
    return add_monotone_cubic(graph, from.numbers("centres"), values, inside);
  return add_steps(graph, slice(edges, 1, edges.size() - 1), values, inside);
}

Tensor add_isotonic(Graph& graph, const Archive& from, const Tensor& z) {
  const auto &centres = from.numbers("centres"), &values = from.numbers("values");
  if (!from.flag("interpolate")) return add_steps(graph, from.numbers("steps"), values, z);
  return add_monotone_cubic(graph, centres, values, graph.clip(z, centres.front(), centres.back()));
}

Tensor add_kde(Graph& graph, const Archive& from, const Tensor& z) {
  const auto& values = from.numbers("values");
  std::vector<double> nodes;
  for (std::size_t i = 0; i < values.size(); ++i) {
    const double t = from.number("first") + from.number("step") * static_cast<double>(i);
    nodes.push_back(from.number("centre") + from.number("scale") * std::sinh(t));
  }
  Piecewise curve;
  curve.thresholds = slice(nodes, 1, nodes.size() - 1);
  for (std::size_t i = 0; i + 1 < nodes.size(); ++i) {
    const double width = nodes[i + 1] - nodes[i];
    const double slope = width > 0.0 ? (values[i + 1] - values[i]) / width : 0.0;
    curve.add(nodes[i], {values[i], slope, 0.0, 0.0});
  }
  const double low = std::clamp(from.number("low"), nodes.front(), nodes.back());
  const double high = std::clamp(from.number("high"), nodes.front(), nodes.back());
  return add_piecewise(graph, curve, graph.clip(z, low, high)).value;
}

Tensor add_mlp(Graph& graph, const Archive& from, const Tensor& x) {
  const auto& parameters = from.get<std::vector<float>>("parameters");
  const auto& activation = from.text("activation");
  const auto& mean = from.numbers("mean");
  const Tensor scaled =
      graph.product(graph.difference(x, graph.row(mean)), graph.row(from.numbers("scale")));
  Tensor layer = graph.to_float(graph.clip(scaled, -mlp::largest_input, mlp::largest_input));
  std::vector<std::int64_t> widths{static_cast<std::int64_t>(mean.size())};
  const auto& hidden = from.get<std::vector<std::int64_t>>("hidden");
  widths.insert(widths.end(), hidden.begin(), hidden.end());
  widths.push_back(1);
  std::span<const float> left(parameters);
  for (std::size_t l = 0; l + 1 < widths.size(); ++l) {
    const auto in = static_cast<std::size_t>(widths[l]);
    const auto out = static_cast<std::size_t>(widths[l + 1]);
    const Tensor weights = graph.table(left.first(in * out), in);
    const Tensor biases = graph.table(left.subspan(in * out, out), out);
    left = left.subspan((in + 1) * out);
    layer = graph.add("Gemm", {layer, weights, biases}, {{"transB", std::int64_t{1}}});
    if (l + 2 == widths.size()) continue;
    if (activation == "silu")
      layer = add_silu(graph, layer);
    else
      layer = graph.add(activation == "tanh" ? "Tanh" : "Relu", {layer});
  }
  return graph.to_double(layer);
}

Tensor add_logistic(Graph& graph, const Archive& from, const Tensor& x) {
  const auto &center = from.numbers("center"), &scale = from.numbers("inverse_scale");
  auto weights = from.numbers("beta");
  const double offset = weights.back();
  weights.pop_back();
  // The scales belong to the weights: onnxruntime makes a float of a single factor beside a matrix
  // product.
  for (std::size_t j = 0; j < weights.size(); ++j) weights[j] *= scale[j];
  const Tensor sum = graph.matrix_product(graph.difference(x, graph.row(center)),
                                          graph.table(std::span<const double>(weights), 1));
  return graph.sum(sum, graph.scalar(offset));
}

Tensor add_ensemble(Graph& graph, const Archive& from, const Tensor& x) {
  const auto members = from.integer("members");
  std::vector<Tensor> logits;
  for (std::int64_t k = 0; k < members; ++k)
    logits.push_back(add_classifier(graph, from.child(fmt::format("member_{:03}", k)), x));
  return graph.product(graph.row_sum(graph.join(logits)),
                       graph.scalar(1.0 / static_cast<double>(members)));
}

/// Σ of the trees, as TreeModel::margins: of the bins of the features, since the operator knows
/// thresholds as floats alone. It gives a float.
Tensor add_trees(Graph& graph, const Archive& from, const Tensor& x) {
  const detail::TreeModel model(from.child("model"));
  if (model.trees() == 0) return graph.product(graph.row_sum(x), graph.scalar(0.0));
  std::vector<Tensor> codes;
  for (std::size_t k = 0; k < model.bins().columns(); ++k) {
    const auto feature = static_cast<std::int64_t>(model.bins().feature(k));
    const Tensor column =
        graph.add("Gather", {x, graph.list(std::vector{feature})}, {{"axis", std::int64_t{1}}});
    codes.push_back(graph.to_float(add_count(graph, model.bins().cuts(k), column)));
  }
  using Integers = std::vector<std::int64_t>;
  Integers tree_ids, node_ids, columns, yes, no, leaf_trees, leaf_nodes, targets;
  std::vector<float> thresholds, leaves;
  std::vector<std::string> modes;
  std::int64_t tree_id = 0;
  for (const auto& tree : model.nodes()) {
    for (std::size_t i = 0; i < tree.size(); ++i) {
      const auto& node = tree[i];
      const auto id = static_cast<std::int64_t>(i);
      tree_ids.push_back(tree_id);
      node_ids.push_back(id);
      columns.push_back(static_cast<std::int64_t>(node.column));
      yes.push_back(static_cast<std::int64_t>(node.yes));
      no.push_back(static_cast<std::int64_t>(node.no));
      thresholds.push_back(node.threshold);
      modes.emplace_back(node.leaf ? "LEAF" : "BRANCH_LT");
      if (!node.leaf) continue;
      leaf_trees.push_back(tree_id);
      leaf_nodes.push_back(id);
      targets.push_back(0);
      leaves.push_back(node.value);
    }
    ++tree_id;
  }
  return graph.to_double(graph.add("TreeEnsembleRegressor", {graph.join(codes)},
                                   {{"n_targets", std::int64_t{1}},
                                    {"nodes_treeids", tree_ids},
                                    {"nodes_nodeids", node_ids},
                                    {"nodes_featureids", columns},
                                    {"nodes_modes", modes},
                                    {"nodes_values", thresholds},
                                    {"nodes_truenodeids", yes},
                                    {"nodes_falsenodeids", no},
                                    {"target_treeids", leaf_trees},
                                    {"target_nodeids", leaf_nodes},
                                    {"target_ids", targets},
                                    {"target_weights", leaves}},
                                   "ai.onnx.ml"));
}

Tensor add_forest(Graph& graph, const Archive& from, const Tensor& x) {
  const double trees = static_cast<double>(from.integer("trees"));
  const double smallest = from.number("smallest_share");
  const Tensor mean = graph.product(add_trees(graph, from, x), graph.scalar(1.0 / trees));
  const Tensor share = graph.clip(graph.sum(graph.scalar(0.5), mean), smallest, 1.0 - smallest);
  const Tensor other = graph.difference(graph.scalar(1.0), share);
  return graph.difference(graph.add("Log", {share}), graph.add("Log", {other}));
}

template <class Entry>
Tensor add_by_kind(const Entry* begin, const Entry* end, const char* what, Graph& graph,
                   const Archive& from, const Tensor& in) {
  const auto& kind = from.text("kind");
  const auto at = std::find_if(begin, end, [&](const Entry& entry) { return entry.kind == kind; });
  if (at != end) return at->add(graph, from, in);
  std::vector<std::string> names;
  for (const auto* entry = begin; entry != end; ++entry) names.emplace_back(entry->kind);
  throw ArgumentError("export_onnx: " + unknown_name(kind, what, names));
}

struct PartEntry {
  std::string_view kind;
  Tensor (*add)(Graph& graph, const Archive& from, const Tensor& in);
};

}  // namespace

Tensor add_silu(Graph& graph, const Tensor& z) {
  return graph.product(z, graph.add("Sigmoid", {z}));
}

Tensor add_classifier(Graph& graph, const Archive& classifier, const Tensor& x) {
  static constexpr PartEntry entries[] = {{"mlp", add_mlp},
                                          {"logistic", add_logistic},
                                          {"ensemble", add_ensemble},
                                          {"boosted-trees", add_trees},
                                          {"random-forest", add_forest}};
  return add_by_kind(std::begin(entries), std::end(entries), "a classifier that can be exported",
                     graph, classifier, x);
}

Tensor add_calibrator(Graph& graph, const Archive& calibrator, const Tensor& logits) {
  static constexpr PartEntry entries[] = {{"smooth", add_smooth},   {"histogram", add_histogram},
                                          {"kde", add_kde},         {"isotonic", add_isotonic},
                                          {"sigmoid", add_sigmoid}, {"none", add_none}};
  return add_by_kind(std::begin(entries), std::end(entries), "a calibrator that can be exported",
                     graph, calibrator, logits);
}

Tensor add_polynomials(Graph& graph, const PolynomialBasis& basis, const Tensor& points) {
  const auto& powers = basis.powers();
  const std::size_t parameters = powers.front().size();
  const Tensor u = graph.difference(
      graph.product(graph.difference(points, graph.row(basis.low())), graph.row(basis.scale())),
      graph.scalar(1.0));
  // √(2n + 1) L_n by the recurrence n L_n = (2n − 1) u L_{n−1} − (n − 1) L_{n−2}.
  std::vector<Tensor> legendre{graph.add("Pow", {u, graph.scalar(0.0)}),
                               graph.product(graph.scalar(std::sqrt(3.0)), u)};
  for (std::size_t k = 2; k <= basis.degree(); ++k) {
    const auto n = static_cast<double>(k);
    const double norm = std::sqrt(2.0 * n + 1.0);
    const Tensor first = graph.product(graph.scalar((2 * n - 1) / n * norm / std::sqrt(2 * n - 1)),
                                       graph.product(u, legendre[k - 1]));
    const Tensor second =
        graph.product(graph.scalar((n - 1) / n * norm / std::sqrt(2 * n - 3)), legendre[k - 2]);
    legendre.push_back(graph.difference(first, second));
  }
  bool any = false;
  std::vector<double> round(parameters), straight(parameters);
  for (std::size_t p = 0; p < parameters; ++p) {
    any = any || basis.periodic(p);
    round[p] = basis.periodic(p) ? std::sqrt(2.0) : 0.0;
    straight[p] = basis.periodic(p) ? 0.0 : 1.0;
  }
  if (any) {
    // The cosine of k φ is the function 2 k − 1 of a periodic parameter, the sine 2 k.
    for (std::size_t k = 1; k <= 2 * basis.degree(); ++k) {
      const double turns = std::numbers::pi * static_cast<double>((k + 1) / 2);
      const Tensor phase = graph.product(graph.scalar(turns), graph.sum(u, graph.scalar(1.0)));
      const Tensor harmonic =
          graph.product(graph.row(round), graph.add(k % 2 == 1 ? "Cos" : "Sin", {phase}));
      if (k < legendre.size())
        legendre[k] = graph.sum(graph.product(graph.row(straight), legendre[k]), harmonic);
      else
        legendre.push_back(harmonic);
    }
  }
  const Tensor table = graph.join(legendre);
  Tensor out;
  for (std::size_t p = 0; p < parameters; ++p) {
    std::vector<std::int64_t> columns;
    for (const auto& powers_of_one : powers)
      columns.push_back(static_cast<std::int64_t>(powers_of_one[p] * parameters + p));
    const Tensor factor =
        graph.add("Gather", {table, graph.list(columns)}, {{"axis", std::int64_t{1}}});
    out = p == 0 ? factor : graph.product(out, factor);
  }
  return out;
}

Tensor add_smooth_across(Graph& graph, const Archive& calibration, const Tensor& logits,
                         const Tensor& points) {
  const auto &low = calibration.numbers("range_low"), &high = calibration.numbers("range_high");
  const auto& degrees = calibration.get<std::vector<std::int64_t>>("degrees");
  const auto& scores = calibration.numbers("scores");
  const auto &knots = calibration.numbers("knots"), &beta = calibration.numbers("coefficients");
  const auto& transform = calibration.get<Matrix>("transform");
  const double extrapolation = calibration.number("extrapolation");
  std::vector<Parameter> ranges;
  for (std::size_t p = 0; p < low.size(); ++p)
    ranges.push_back({fmt::format("p{}", p), low[p], high[p], {}});
  const PolynomialBasis basis(ParameterSpace(ranges), static_cast<std::size_t>(degrees[0]));

  // Σ_k β_jk P_k(θ) of each shape j; the constant is the first of the P_k.
  const std::size_t shapes = transform.rows(), terms = basis.size();
  std::vector<double> constants(shapes), coefficients(terms * shapes, 0.0);
  for (std::size_t j = 0, at = 0; j < shapes; ++j) {
    const auto degree = static_cast<std::size_t>(degrees[std::min<std::size_t>(j, 2)]);
    const std::size_t used = degree == 0 ? 0 : PolynomialBasis::count(low.size(), degree);
    constants[j] = beta[at++];
    for (std::size_t k = 0; k < used; ++k) coefficients[k * shapes + j] = beta[at++];
  }
  const Tensor along =
      graph.sum(graph.row(constants), graph.matrix_product(add_polynomials(graph, basis, points),
                                                           graph.table(coefficients, shapes)));

  const Tensor z = graph.clip(logits, scores[0] - extrapolation, scores[1] + extrapolation);
  const Tensor t =
      graph.add("Div", {graph.difference(z, graph.scalar(scores[2])), graph.scalar(scores[3])});
  // q = transform · (1, t, splines): the first of a row is constant.
  std::vector<Tensor> raw{t};
  const auto cube = [&](double knot) {
    const Tensor v = graph.add("Max", {graph.difference(t, graph.scalar(knot)), graph.scalar(0.0)});
    return graph.product(v, graph.product(v, v));
  };
  if (shapes > 2) {
    const double last = knots.back(), before = knots[knots.size() - 2];
    const double width = last - knots.front();
    const Tensor last_cube = cube(last), before_cube = cube(before);
    for (std::size_t j = 0; j + 2 < shapes; ++j) {
      const double a = (last - knots[j]) / (last - before);
      const double b = (before - knots[j]) / (last - before);
      const Tensor bent =
          graph.sum(graph.difference(cube(knots[j]), graph.product(graph.scalar(a), before_cube)),
                    graph.product(graph.scalar(b), last_cube));
      raw.push_back(graph.add("Div", {bent, graph.scalar(width * width)}));
    }
  }
  std::vector<double> offsets, mix;
  for (std::size_t j = 0; j < shapes; ++j) offsets.push_back(transform(j, 0));
  for (std::size_t i = 1; i < shapes; ++i)
    for (std::size_t j = 0; j < shapes; ++j) mix.push_back(j >= i ? transform(j, i) : 0.0);
  Tensor q = graph.row(offsets);
  if (shapes == 2) q = graph.sum(q, graph.product(t, graph.row(mix)));
  if (shapes > 2) q = graph.sum(q, graph.matrix_product(graph.join(raw), graph.table(mix, shapes)));
  return graph.difference(graph.row_sum(graph.product(along, q)), z);
}

}  // namespace neyman::onnx
