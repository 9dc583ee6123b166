#include "neyman/measurements/onnx_channel.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <optional>

#include "measurements/component_shape.hpp"
#include "measurements/mean_sign.hpp"
#include "measurements/varied_ratio.hpp"
#include "neyman/core/check.hpp"
#include "neyman/core/parameters_archive.hpp"
#include "neyman/core/polynomial_basis.hpp"
#include "neyman/simulators/mixture_weights.hpp"
#include "ratios/onnx_graph.hpp"
#include "ratios/onnx_parts.hpp"
#include "ratios/onnx_ratios.hpp"

namespace neyman::onnx {

namespace {

constexpr const char* exporting = "export_onnx";

Tensor add_bounded_pair(Graph& graph, const Archive& pair, const Tensor& x) {
  return graph.clip(add_pair(graph, pair, x), -detail::log_limit, detail::log_limit);
}

/// SignRatio::values.
Tensor add_mean_sign(Graph& graph, const Archive& sign, const Tensor& x) {
  const Tensor logs = add_bounded_pair(graph, sign.child("fit"), x);
  const Tensor half = graph.product(graph.scalar(0.5),
                                    graph.sum(logs, graph.scalar(std::log(sign.number("odds")))));
  return graph.add("Div", {graph.add("Tanh", {half}), graph.scalar(sign.number("mean"))});
}

Tensor add_log_of_sign(Graph& graph, const Tensor& sign) {
  return graph.add("Log", {graph.add("Max", {sign, graph.scalar(detail::least_sign)})});
}

/// The coefficients of a variation, ShiftInterpolation's −down and up: beyond ±1 they go on as a
/// line, one of them each side.
Tensor add_variation(Graph& graph, const Tensor& alpha) {
  const auto times = [&](double factor, const Tensor& a) {
    return graph.product(graph.scalar(factor), a);
  };
  const auto positive = [&](const Tensor& a) { return graph.add("Max", {a, graph.scalar(0.0)}); };
  const Tensor inside = graph.clip(alpha, -1.0, 1.0);
  const Tensor square = graph.product(inside, inside);
  const Tensor inner = graph.difference(times(3.0, square), graph.scalar(10.0));
  const Tensor outer = graph.sum(graph.product(square, inner), graph.scalar(15.0));
  const Tensor even = times(1.0 / 16.0, graph.product(square, outer));
  const Tensor half = times(0.5, inside), beyond = graph.difference(alpha, inside);
  return graph.join({graph.sum(graph.difference(even, half), positive(graph.add("Neg", {beyond}))),
                     graph.sum(graph.sum(even, half), positive(beyond))});
}

/// Of a DecomposedRatio without parameters.
std::vector<double> reference_weights(const Archive& pairs) {
  std::vector<Expression> weights;
  for (const auto& text : pairs.get<std::vector<std::string>>("weights"))
    weights.emplace_back(text, ParameterSpace());
  const auto count = static_cast<std::size_t>(pairs.integer("components"));
  return MixtureWeights(std::move(weights), count)({});
}

/// Functions f_k of the events in columns, and their coefficients b_k as a row.
struct ShapeTerms {
  std::vector<Tensor> functions, coefficients;
};

class ChannelGraph {
 public:
  explicit ChannelGraph(const LearnedChannel& channel) : channel_(channel) {
    channel.save(archive_);
    features_ = channel.feature_names().size();
    x_ = graph_.input("x", rows_of_x, features_);
    for (std::size_t c = 0; c < channel.components().size(); ++c)
      for (const auto& shape : channel.shapes(c))
        for (const auto& name : shape->parameters().names()) add_parameter(name);
    if (archive_.has_child("pairs")) {
      const auto& pairs = archive_.child("pairs");
      ratios_ = add_components(graph_, pairs, reference_weights(pairs), x_);
    }
  }

  std::string run(const std::vector<std::string>& yields) {
    const auto components = channel_.components();
    std::vector<Tensor> logs, signs;
    for (std::size_t c = 0; c < components.size(); ++c) {
      check_known(components[c], archive_.child(fmt::format("component{}", c)));
      add_component(c, logs, signs);
    }
    std::vector<std::pair<std::string, std::string>> metadata{
        {"kind", "channel"},
        {"features", fmt::format("{}", fmt::join(channel_.feature_names(), ", "))},
        {"components", fmt::format("{}", fmt::join(components, ", "))},
        {"parameters", fmt::format("{}", fmt::join(parameters_, ", "))}};
    if (!yields.empty())
      metadata.emplace_back("yields", fmt::format("{}", fmt::join(yields, "; ")));
    return graph_.model({{"log_r", graph_.join(logs), components.size()},
                         {"sign", graph_.join(signs), components.size()}},
                        rows_of_x,
                        "log of the ratio of densities p(x|component, parameters) / p(x|reference)",
                        metadata);
  }

 private:
  void add_parameter(const std::string& name) {
    if (std::find(parameters_.begin(), parameters_.end(), name) != parameters_.end()) return;
    if (name == "x" || name == "log_r" || name == "sign")
      fail_argument(exporting, "a parameter", fmt::format("'{}'", name),
                    "of another name than x, log_r and sign, which the graph has");
    parameters_.push_back(graph_.number(name));
  }

  /// As a table of one row and column.
  Tensor parameter(const std::string& name) {
    return graph_.add("Reshape", {name, graph_.list(std::vector<std::int64_t>{1, 1})});
  }

  /// A part of a component that has no graph here is refused, not left out.
  static void check_known(const std::string& name, const Archive& component) {
    for (const auto& [part, _] : component.children()) {
      const auto kind = part.substr(0, part.find_first_of("0123456789"));
      const char* const known[] = {"sign", "low", "high", "parameters", "member"};
      if (std::find(std::begin(known), std::end(known), kind) == std::end(known))
        fail_argument(exporting, fmt::format("component '{}'", name),
                      fmt::format("with '{}'", part), "without: it has no graph");
    }
  }

  /// log |r_c| without normalisation and shapes, but for the sign.
  Tensor add_nominal(std::size_t c) {
    if (ratios_) {
      const auto column = static_cast<std::int64_t>(c);
      return graph_.add("Log", {graph_.add("Gather", {*ratios_, graph_.list(std::vector{column})},
                                           {{"axis", std::int64_t{1}}})});
    }
    const auto reference = fmt::format("to_reference{}", c);
    if (!archive_.has_child(reference)) return graph_.row({0.0});
    return add_bounded_pair(graph_, archive_.child(reference), x_);
  }

  void add_component(std::size_t c, std::vector<Tensor>& logs, std::vector<Tensor>& signs) {
    const auto& from = archive_.child(fmt::format("component{}", c));
    std::optional<Tensor> sign;
    Tensor log = add_nominal(c);
    if (from.has_child("sign")) {
      sign = add_mean_sign(graph_, from.child("sign"), x_);
      log = graph_.sum(log, graph_.add("Log", {graph_.add("Abs", {*sign})}));
    }
    const detail::ComponentWeights simulated(*channel_.simulated(), c);
    if (!(simulated.sum > 0.0))
      fail_argument(
          exporting,
          fmt::format("component '{}', sum over the simulated events", channel_.components()[c]),
          fmt::format("{:g}", simulated.sum), "positive");
    log = graph_.difference(log, graph_.scalar(std::log(simulated.mean_ratio)));
    ShapeTerms terms;
    add_variations(from, sign, terms);
    add_across(from, terms);
    if (!terms.functions.empty()) {
      const Tensor coefficients = graph_.join(terms.coefficients);
      const Tensor moved =
          graph_.row_sum(graph_.product(graph_.join(terms.functions), coefficients));
      log = graph_.sum(
          log, graph_.difference(moved, add_log_normaliser(c, simulated.weights, coefficients)));
    }
    const auto column = [&](const Tensor& a) { return add_row_for_each(graph_, a, 1, x_); };
    logs.push_back(column(log));
    signs.push_back(column(sign ? graph_.add("Sign", {*sign}) : graph_.row({1.0})));
  }

  /// ClassRatio::values.
  Tensor add_class_ratio(const Archive& ratio) {
    const double mean = ratio.number("mean");
    if (!ratio.has_child("fit")) return add_row_for_each(graph_, graph_.row({mean}), 1, x_);
    const Tensor r = graph_.add("Exp", {add_bounded_pair(graph_, ratio.child("fit"), x_)});
    const Tensor change =
        graph_.add("Div", {graph_.difference(r, graph_.scalar(1.0)),
                           graph_.sum(graph_.scalar(ratio.number("up")),
                                      graph_.product(graph_.scalar(ratio.number("down")), r))});
    return graph_.product(graph_.scalar(mean), graph_.sum(graph_.scalar(1.0), change));
  }

  /// VariedRatio::log_ratios.
  Tensor add_varied(const Archive& side, const std::optional<Tensor>& sign, double mean_sign) {
    if (side.has_child("fit")) {
      Tensor logs = add_bounded_pair(graph_, side.child("fit"), x_);
      if (side.has_child("sign"))
        logs = graph_.sum(logs,
                          add_log_of_sign(graph_, add_mean_sign(graph_, side.child("sign"), x_)));
      if (sign) logs = graph_.difference(logs, add_log_of_sign(graph_, *sign));
      return logs;
    }
    if (!side.has_child("positive")) return add_row_for_each(graph_, graph_.row({0.0}), 1, x_);
    const Tensor positive = add_class_ratio(side.child("positive"));
    if (!sign || !side.has_child("negative")) return add_log_of_sign(graph_, positive);
    const Tensor negative = add_class_ratio(side.child("negative"));
    const Tensor mean = graph_.product(graph_.scalar(0.5), graph_.sum(positive, negative)),
                 half = graph_.product(graph_.scalar(0.5 / mean_sign),
                                       graph_.difference(positive, negative));
    const Tensor varied = graph_.sum(graph_.product(*sign, mean), half);
    return graph_.difference(add_log_of_sign(graph_, varied), add_log_of_sign(graph_, *sign));
  }

  /// log p(x | ∓1) / p(x | 0) of each variation.
  void add_variations(const Archive& from, const std::optional<Tensor>& sign, ShapeTerms& terms) {
    const auto& varied = from.get<std::vector<std::string>>("varied");
    for (std::size_t v = 0; v < varied.size(); ++v) {
      std::vector<Tensor> learned;
      for (const auto* side : {"low", "high"}) {
        const double mean_sign = sign ? from.child("sign").number("mean") : 1.0;
        learned.push_back(add_varied(from.child(fmt::format("{}{}", side, v)), sign, mean_sign));
      }
      // What is left of both sides.
      std::array<double, 4> rows{1.0, 0.0, 0.0, 1.0};
      if (const auto key = fmt::format("parts{}", v); from.has(key)) {
        rows = {};
        const auto& names = from.get<std::vector<std::string>>(key);
        const auto& strengths = from.numbers(fmt::format("strengths{}", v));
        for (std::size_t p = 0; p < names.size(); ++p) {
          const auto more = detail::part_of_sides(names[p], strengths.at(p));
          for (std::size_t k = 0; k < rows.size(); ++k) rows[k] += more[k];
        }
      }
      for (const std::size_t row : {0, 2})
        terms.functions.push_back(
            graph_.sum(graph_.product(graph_.scalar(rows[row]), learned[0]),
                       graph_.product(graph_.scalar(rows[row + 1]), learned[1])));
      terms.coefficients.push_back(add_variation(graph_, parameter(varied[v])));
    }
  }

  /// The mean of the members' SeparableRatio::functions, with the coefficients of SeparableShape.
  void add_across(const Archive& from, ShapeTerms& terms) {
    const auto members = from.integer("members");
    if (members == 0) return;
    const auto parameters = load_parameters(from.child("parameters"));
    const auto degree = static_cast<std::size_t>(from.child("member0").integer("degree"));
    const PolynomialBasis basis(parameters, degree);
    // Of the φ of all members and folds beside each other.
    std::vector<Tensor> features;
    std::vector<double> of_features, of_one(basis.size(), 0.0);
    for (std::int64_t m = 0; m < members; ++m) {
      const auto& member = from.child(fmt::format("member{}", m));
      const auto folds = member.integer("folds");
      const double share = 1.0 / static_cast<double>(members * folds);
      const Tensor x = add_angles(graph_, member, x_, features_);
      for (std::int64_t f = 0; f < folds; ++f) {
        const auto& fold = member.child(fmt::format("fold{}", f));
        features.push_back(add_separable_features(graph_, fold, x));
        const Matrix coefficients = separable_coefficients(fold, basis.size());
        for (std::size_t j = 0; j < coefficients.rows(); ++j)
          for (std::size_t k = 0; k < basis.size(); ++k) {
            const double value = share * coefficients(j, k);
            if (j + 1 < coefficients.rows())
              of_features.push_back(value);
            else
              of_one[k] += value;
          }
      }
    }
    const Tensor linear =
        graph_.matrix_product(graph_.join(features), graph_.table(of_features, basis.size()));
    terms.functions.push_back(graph_.sum(linear, graph_.row(of_one)));

    std::vector<Tensor> point;
    for (const auto& name : parameters.names()) point.push_back(parameter(name));
    std::vector<double> offset(basis.size());
    basis.values(from.numbers("nominal"), offset);
    terms.coefficients.push_back(
        graph_.difference(add_polynomials(graph_, basis, graph_.join(point)), graph_.row(offset)));
  }

  /// DirectNormaliser: log Σ_j w_j exp(Σ_k b_k f_k(x_j)).
  Tensor add_log_normaliser(std::size_t c, const std::vector<double>& weights,
                            const Tensor& coefficients) {
    std::size_t count = 0;
    for (const auto& shape : channel_.shapes(c)) count += shape->functions();
    const std::size_t events = weights.size();
    const std::span<const double> all(channel_.simulated()->functions.values());
    const auto own = all.subspan(first_function_ * events, count * events);
    first_function_ += count;
    const Tensor exponents = graph_.matrix_product(coefficients, graph_.table(own, events));
    return graph_.add(
        "Log", {graph_.matrix_product(graph_.add("Exp", {exponents}), graph_.table(weights, 1))});
  }

  const LearnedChannel& channel_;
  Archive archive_;
  Graph graph_;
  Tensor x_;
  std::size_t features_ = 0;
  std::vector<Tensor> parameters_;
  std::optional<Tensor> ratios_;    // of pairs
  std::size_t first_function_ = 0;  // of the component at hand, among those of all
};

}  // namespace

}  // namespace neyman::onnx

namespace neyman {

std::string export_onnx(const LearnedChannel& channel, const std::vector<std::string>& yields) {
  if (!yields.empty())
    check_same_size("export_onnx", "yields", yields.size(), channel.components().size(),
                    "one a component");
  return onnx::ChannelGraph(channel).run(yields);
}

}  // namespace neyman
