#pragma once

#include "neyman/core/archive.hpp"
#include "neyman/core/polynomial_basis.hpp"
#include "ratios/onnx_graph.hpp"

// What ratios are made of, as parts of a graph: each function says what the class of that kind
// computes, from what the class saves. Scores and log-ratios are tables of one column.
namespace neyman::onnx {

/// The logits of a classifier.
/// @throw ArgumentError for a kind that has no graph.
Tensor add_classifier(Graph& graph, const Archive& classifier, const Tensor& x);

/// The calibrated log-ratio of logits.
/// @throw ArgumentError for a kind that has no graph.
Tensor add_calibrator(Graph& graph, const Archive& calibrator, const Tensor& logits);

/// The same of SmoothAcross, at a table of points with one row or one an event.
Tensor add_smooth_across(Graph& graph, const Archive& calibration, const Tensor& logits,
                         const Tensor& points);

/// z / (1 + e^−z).
Tensor add_silu(Graph& graph, const Tensor& z);

/// The polynomials at a table of points, one column each.
Tensor add_polynomials(Graph& graph, const PolynomialBasis& basis, const Tensor& points);

}  // namespace neyman::onnx
