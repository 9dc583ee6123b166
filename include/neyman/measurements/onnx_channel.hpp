#pragma once

#include <string>
#include <vector>

#include "neyman/measurements/learned_channel.hpp"

namespace neyman {

/// A learned channel as one graph of ONNX (https://onnx.ai), from the features of events and the
/// parameters of the shapes to the density of each component over that of the reference. What comes
/// back are the bytes of an .onnx file, with which other programs can build the unbinned likelihood
///
///   Σ_i log Σ_c ν_c sign_c(x_i) exp(log_r_c(x_i)) − Σ_c ν_c
///
/// without neyman: the same as that of a StatisticalModel, with yields ν_c of their own. `yields`
/// are formulas of them, one a component, for the metadata alone; empty: none.
///
/// Inputs, doubles: `x`, a table with one row an event; and each parameter φ that a shape depends
/// on, by its name, a list of one number. Outputs, tables with one row an event and one column a
/// component, in the order of the channel:
/// - `log_r`, log |p_c(x; φ) / p_ref(x)|;
/// - `sign`, that of p_c(x; φ): 1, and where negative weights make a density negative, −1.
///
/// Nothing is approximated. Z_c(φ) is the sum over the simulated events, as in fits, so that the
/// graph holds the functions of these events: 8 bytes each, some ten megabytes for the 200 000
/// events that are kept by default. Rounding, the operators' versions and what is not checked are
/// as in ratios/onnx_export.hpp; where a density changes its sign, log_r is less precise than that.
/// @throw ArgumentError for classifiers made outside of the library, for parameters with the name
///   of another input or output, where there is not one yield a component, and where the graph had
///   2 GB or more.
std::string export_onnx(const LearnedChannel& channel, const std::vector<std::string>& yields = {});

}  // namespace neyman
