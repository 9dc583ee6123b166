#include "neyman/ratios/onnx_export.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "neyman/core/check.hpp"
#include "neyman/core/error.hpp"
#include "neyman/ratios/classifier_across.hpp"
#include "neyman/ratios/classifier_ratio.hpp"
#include "neyman/ratios/decomposed_ratio.hpp"
#include "neyman/ratios/learned_ratio.hpp"
#include "neyman/ratios/separable_ratio.hpp"
#include "ratios/onnx_graph.hpp"
#include "ratios/onnx_parts.hpp"
#include "ratios/onnx_ratios.hpp"

namespace neyman {

using namespace onnx;

namespace {

constexpr const char* rows_of_theta = "points";  // their number is 1, or that of events

using Metadata = std::vector<std::pair<std::string, std::string>>;

/// A fixed point as a row, or the input that takes its place.
Tensor add_point(Graph& graph, const char* name, const std::optional<std::vector<double>>& fixed,
                 const ParameterSpace& parameters) {
  if (!fixed) return graph.input(name, rows_of_theta, parameters.size());
  parameters.check_inside("export_onnx", *fixed);
  return graph.row(*fixed);
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

Tensor add_ratio(Graph& graph, const DecomposedRatio& ratio, const OnnxOptions& options,
                 Metadata& metadata) {
  std::vector<std::string> formulas;
  for (const auto& weight : ratio.weights().expressions()) formulas.push_back(weight.text());
  metadata.emplace_back("weights", fmt::format("{}", fmt::join(formulas, ", ")));
  const Tensor x = graph.input("x", rows_of_x, ratio.pair(0, 1).classifier(0).features());
  Archive archive;
  ratio.save(archive);
  const Tensor components = add_components(graph, archive, ratio.weights()(ratio.reference()), x);
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

/// The log-ratio of one fold, from differences of polynomials between θ0 and θ1.
Tensor add_separable_fold(Graph& graph, const Archive& fold, const Tensor& x, const Tensor& terms,
                          std::size_t term_count, const Tensor& norms) {
  const Tensor phi = add_separable_features(graph, fold, x);
  // v = A (P0 − P1), the last of which belongs to the constant.
  const Matrix coefficients = separable_coefficients(fold, term_count);
  const std::size_t size = coefficients.rows();
  std::vector<double> of_phi, of_one;
  for (std::size_t k = 0; k < term_count; ++k) {
    for (std::size_t j = 0; j + 1 < size; ++j) of_phi.push_back(coefficients(j, k));
    of_one.push_back(coefficients(size - 1, k));
  }
  const Tensor v = graph.matrix_product(terms, graph.table(of_phi, size - 1));
  const Tensor constant = graph.matrix_product(terms, graph.table(of_one, 1));
  const Tensor offset = graph.matrix_product(norms, graph.table(fold.numbers("normalisation"), 1));
  const Tensor sum =
      graph.sum(graph.row_sum(graph.product(phi, v)), graph.difference(constant, offset));
  return graph.clip(sum, -log_ratio_limit, log_ratio_limit);
}

/// θ + ε(θ), as Recentring takes a point.
Tensor add_recentring(Graph& graph, const Archive& recentring, const Tensor& point,
                      const ParameterSpace& parameters) {
  const auto degree = recentring.integer("degree");
  if (degree == 0) return point;
  const PolynomialBasis basis(parameters, static_cast<std::size_t>(degree));
  const auto coefficients = recentring.get<Matrix>("coefficients");
  std::vector<double> of_constant, of_others;
  for (std::size_t k = 0; k < coefficients.rows(); ++k)
    for (std::size_t p = 0; p < parameters.size(); ++p)
      (k == 0 ? of_constant : of_others)
          .push_back((parameters[p].high - parameters[p].low) * coefficients(k, p));
  const Tensor others = graph.matrix_product(add_polynomials(graph, basis, point),
                                             graph.table(of_others, parameters.size()));
  return graph.sum(graph.sum(point, graph.row(of_constant)), others);
}

/// The features that a ratio uses, of those that the user gives; all where none is named.
struct Columns {
  std::size_t given;
  std::vector<std::size_t> used;

  Tensor add(Graph& graph) const {
    const Tensor x = graph.input("x", rows_of_x, given);
    if (used.empty() || used.size() == given) return x;
    return graph.add("Gather", {x, graph.list(std::vector<std::int64_t>(used.begin(), used.end()))},
                     {{"axis", std::int64_t{1}}});
  }
};

Tensor add_ratio(Graph& graph, const SeparableRatio& ratio, const OnnxOptions& options,
                 const Columns& columns) {
  Archive archive;
  ratio.save(archive);
  const auto& parameters = ratio.parameters();
  const PolynomialBasis basis(parameters, static_cast<std::size_t>(archive.integer("degree")));
  const PolynomialBasis normaliser(parameters,
                                   static_cast<std::size_t>(archive.integer("normaliser_degree")));
  const Tensor x = add_angles(graph, archive, columns.add(graph), ratio.features());
  const auto recentred = [&](const char* name, const std::optional<std::vector<double>>& fixed) {
    const Tensor point = add_point(graph, name, fixed, parameters);
    return add_recentring(graph, archive.child("recentring"), point, parameters);
  };
  const Tensor numerator = recentred("numerator", options.numerator);
  const Tensor denominator = recentred("denominator", options.denominator);
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

Tensor add_ratio(Graph& graph, const SeparableRatio& ratio, const OnnxOptions& options, Metadata&) {
  return add_ratio(graph, ratio, options, Columns{ratio.features(), {}});
}

}  // namespace

std::string export_onnx(const Ratio& given, const OnnxOptions& options) {
  // A graph takes any number of events: the model that serves several.
  const auto* learned = dynamic_cast<const LearnedRatio*>(&given);
  const Ratio& ratio = learned != nullptr ? learned->several() : given;
  const bool network = ratio.kind() == "network";
  if (network || dynamic_cast<const DensityRatio*>(&ratio) != nullptr)
    fail_argument("export_onnx", "ratio",
                  network ? "a network of the features and the parameters" : "a density",
                  "another one, such as a separable ratio (kind = \"separable\")");
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
  const auto* sums = dynamic_cast<const SeparableRatio*>(&ratio);
  if (learned != nullptr && sums != nullptr)
    log_ratio = add_ratio(graph, *sums, options, Columns{learned->features(), learned->used()});
  else if (!try_as(dynamic_cast<const ClassifierRatio*>(&ratio)) &&
           !try_as(dynamic_cast<const DecomposedRatio*>(&ratio)) &&
           !try_as(dynamic_cast<const ParameterizedClassifierRatio*>(&ratio)) && !try_as(sums))
    fail_argument("export_onnx", "ratio", ratio.kind(), "a learned one, not tabulated or inverse");
  return graph.model({{"log_r", log_ratio}}, rows_of_x,
                     "log of the likelihood ratio p(x|numerator) / p(x|denominator)", metadata);
}

}  // namespace neyman
