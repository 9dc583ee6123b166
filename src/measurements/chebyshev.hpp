#pragma once

#include <array>
#include <cstddef>
#include <vector>

namespace neyman::detail {

/// The points cos(π k / degree) of [−1, 1], both ends among them.
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

}  // namespace neyman::detail
