#pragma once

#include <cstddef>
#include <cstdint>

#include "core/kernel_sets.hpp"

// The inner loops of the small-network trainer, compiled once for each instruction set. Plain
// structs and pointers only: this header is included where the compiler may use instructions
// that the machine does not have, so it must not bring in inline functions of the library.
namespace neyman::mlp {

enum class Activation : int { relu, tanh, silu };
enum class Loss : int { cross_entropy, squared_error };

/// Layer widths are padded to whole units of `unit` floats; the padding is zero throughout.
inline constexpr std::size_t unit = 8;
/// Rows whose losses and gradients of the output layer are summed by themselves, however many are
/// carried through the network together: the order of all sums is the same.
inline constexpr std::size_t part_rows = 32;
/// A layer's columns lie in panels of at most this many units: one panel's row fits the registers.
inline constexpr std::size_t panel_units = 6;

/// Columns of a matrix that lie together.
struct Panel {
  std::size_t begin, width;
};
static constexpr std::size_t panel_count(std::size_t width) {
  return (width / unit + panel_units - 1) / panel_units;
}
/// Panel p of a matrix of this padded width: panels differ by one unit at most.
static constexpr Panel panel(std::size_t width, std::size_t p) {
  const std::size_t units = width / unit, count = panel_count(width);
  const std::size_t base = units / count, extra = units % count;
  const std::size_t begin = p * base + (p < extra ? p : extra);
  return {begin * unit, (base + (p < extra ? 1 : 0)) * unit};
}

/// One layer z = W a + b. Its parameters lie in panels of output columns; a panel holds one row
/// for each input, then the row of biases. The output layer (out = 1) holds `in_pad` weights and
/// then its bias in a unit of its own.
struct Layer {
  std::size_t in, in_pad, out, out_pad;
  std::size_t parameters;  ///< offset of the first parameter
  std::size_t transposed;  ///< offset in the transposed copy: panels of input columns
  std::size_t values;      ///< offset of the inputs of this layer in a tile's scratch memory
};

struct Shape {
  const Layer* layers;
  std::size_t count;  ///< layers, the output layer included
  Activation activation;
  std::size_t tile;  ///< rows that are carried through the whole network together, whole parts
  std::size_t parameters;  ///< floats of all parameters, padding included
  std::size_t transposed;  ///< floats of the transposed copy
  std::size_t scratch;     ///< floats of scratch memory that a kernel needs
  std::size_t values;      ///< floats of a tile's activations (the part of scratch that repeats)
};

/// Rows of training data: the features, padding, and in the last place the weight, with its sign
/// bit set for the denominator (y = 1).
struct Rows {
  const float* data;
  std::size_t stride;          ///< multiple of `unit`
  const std::uint32_t* order;  ///< rows in the order of use
  std::size_t count;
  const std::uint32_t* next = nullptr;  ///< rows that will be used after these,
  std::size_t next_count = 0;           ///< and how many are known
  const float* factors = nullptr;       ///< of the weights, one a row of `data`; or none
  /// Where the gradient is summed until it is written with the last rows, because other cores read
  /// it; or none: it is summed in its place.
  float* sums = nullptr;
};

/// Rows as a user gives them, to be standardised: (x − mean) · scale.
struct Inputs {
  const double* data;
  std::size_t stride, count;
  const double* mean;   ///< in_pad values
  const double* scale;  ///< in_pad values, 0 in the padding
};

/// p −= rate · m / √(v / (1 − β2^t) + ε²): ε stands inside the root.
struct AdamStep {
  float learning_rate;  ///< with the bias correction of the first moment
  float beta1, beta2;
  float second_scale;  ///< 1 / (1 − β2^t)
  float epsilon;
  float weight_decay;  ///< learning rate times decay: p −= this · p
  float l2;            ///< added to the gradient: l2 · p
};

/// Gradients of parts of a batch, `count` of them.
struct Gradients {
  const float* const* parts;
  std::size_t count;
  bool of_others = false;  ///< other cores wrote some: all lines are asked for first
};

/// A matrix by rows, `stride` floats apart.
struct Dense {
  const float* data;
  std::size_t stride;
};
struct DenseOut {
  float* data;
  std::size_t stride;
};

struct Kernels {
  const char* name;
  /// Writes ∂(scale · Σ w·loss)/∂parameters to `gradient` (unless null); returns Σ w·loss.
  double (*accumulate)(const Shape&, Loss, const float* parameters, const float* transposed,
                       const Rows&, float scale, float* gradient, float* scratch);
  /// One step with the sum of these gradients, in their order; brings `transposed` up to date.
  void (*adam)(const Shape&, const AdamStep&, float* parameters, float* transposed,
               const Gradients&, float* first, float* second);
  void (*transpose)(const Shape&, const float* parameters, float* transposed);
  /// Standardises the rows with these numbers (their first `columns` values) into rows of floats,
  /// `out_stride` apart, a multiple of `unit`, that hold zeros before and keep them beyond.
  void (*standardise)(const Inputs&, std::size_t columns, const std::uint32_t* rows,
                      std::size_t count, float* out, std::size_t out_stride);
  /// Logits; false where an input is not finite.
  bool (*score)(const Shape&, const float* parameters, const Inputs&, double* logits,
                float* scratch);
  /// ∂z/∂x in the units of x, `in` values a row; false where an input is not finite.
  bool (*input_gradient)(const Shape&, const float* parameters, const float* transposed,
                         const Inputs&, double* gradient, float* scratch);
  void (*tanh)(const float* x, float* y, std::size_t count);  ///< count a multiple of 16
  void (*exp)(const float* x, float* y, std::size_t count);

  // Parts for networks of other forms: matrices by rows, whose numbers of rows and columns are
  // multiples of `unit` (depth and inputs may be any).
  /// C = A B + bias (unless null).
  void (*multiply)(const Dense& a, std::size_t depth, const Dense& b, const float* bias,
                   const DenseOut& c, std::size_t rows, std::size_t columns);
  /// G += Aᵀ D: inputs × columns, summed over rows.
  void (*add_outer)(const Dense& a, std::size_t inputs, const Dense& d, const DenseOut& g,
                    std::size_t rows, std::size_t columns);
  /// Values become z σ(z), and `derivative`, unless null, its derivative; count a multiple of 16.
  void (*silu)(float* values, float* derivative, std::size_t count);
  /// Each row h becomes exp(h) / Σ exp(h); log Σ exp(h) goes to `log_sums`. Columns a multiple
  /// of 16.
  void (*softmax)(const DenseOut& h, std::size_t rows, std::size_t columns, float* log_sums);
};

/// Standardised inputs are moved into ±this, so that no later step can overflow.
inline constexpr double largest_input = 1e6;

NEYMAN_DECLARE_KERNELS;

}  // namespace neyman::mlp
