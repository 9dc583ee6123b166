#pragma once

#include <cstddef>
#include <vector>

#include "neyman/core/archive.hpp"
#include "neyman/core/matrix.hpp"
#include "ratios/onnx_graph.hpp"

// What learned ratios have in common, as parts of a graph.
namespace neyman::onnx {

/// The name of the number of rows of x.
inline constexpr const char* rows_of_x = "events";

/// The mean of columns, each of one fold.
Tensor mean_of(Graph& graph, const std::vector<Tensor>& folds);

/// The same row for every event, where there is one for all.
Tensor add_row_for_each(Graph& graph, const Tensor& row, std::size_t columns, const Tensor& x);

/// CrossFit::log_ratios.
/// @throw ArgumentError where it is not calibrated.
Tensor add_pair(Graph& graph, const Archive& pair, const Tensor& x);

/// DecomposedRatio::component_ratios of what it saves, one column each, with the weights of the
/// reference; of a single component one row for all.
Tensor add_components(Graph& graph, const Archive& ratio, const std::vector<double>& reference,
                      const Tensor& x);

/// The features as a SeparableRatio tells them: angles by cosine and sine (PeriodicColumns).
Tensor add_angles(Graph& graph, const Archive& ratio, const Tensor& x, std::size_t features);

/// φ(x) of a fold of a SeparableRatio, but its last, which is 1.
Tensor add_separable_features(Graph& graph, const Archive& fold, const Tensor& x);

/// The coefficients of φ: features × terms.
Matrix separable_coefficients(const Archive& fold, std::size_t terms);

}  // namespace neyman::onnx
