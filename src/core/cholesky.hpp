#pragma once

#include <cstddef>

namespace neyman {

/// Replaces the lower triangle of a symmetric matrix, `size` columns one after the other, by its
/// factor L with LLᵀ = A; what lies above the diagonal is neither read nor kept. False, with
/// anything in the triangle, where the matrix is not positive definite.
///
/// With the instructions of this machine, where Eigen's is compiled for all of them, and by all
/// threads: twice as fast with one, and the same bits for any number.
bool cholesky(double* matrix, std::size_t size);

}  // namespace neyman
