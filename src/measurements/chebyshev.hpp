#pragma once

#include <array>
#include <cstddef>
#include <vector>

namespace neyman::detail {

/// The points cos(π k / degree) of [−1, 1], both ends among them; symmetric to the last bit.
std::vector<double> chebyshev_nodes(std::size_t degree);

/// T_j(u), j = 0 … degree (below `most`), with derivatives.
struct ChebyshevValues {
  static constexpr std::size_t most = 65;
  std::array<double, most> values, first, second;
  /// `scale` is du/dx: derivatives are by x.
  void set(double u, double scale, std::size_t degree);
};

/// c(j, k): the polynomial through values v_k at the nodes is Σ_j T_j(u) Σ_k c(j, k) v_k. By rows
/// j.
std::vector<double> chebyshev_coefficients(std::size_t degree);

/// Values at the tensor of the nodes of some dimensions (row-major) become the coefficients of the
/// polynomial through them.
void chebyshev_transform(std::vector<double>& values, std::size_t dimensions, std::size_t degree);

/// Value, first and second derivatives of a polynomial by its arguments; of the second ones those
/// with the later argument last.
struct TensorJet {
  static constexpr std::size_t most = 4;  // arguments
  double value = 0.0;
  double first[most] = {};
  double second[most][most] = {};
};

/// Σ coefficient Π_d T_{j_d}(u_d), of coefficients row-major and the same degree in each of 1 to 4
/// dimensions.
TensorJet chebyshev_tensor(std::size_t dimensions, std::size_t degree, const ChebyshevValues* at,
                           const double* coefficients);

}  // namespace neyman::detail
