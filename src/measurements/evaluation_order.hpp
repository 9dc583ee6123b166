#pragma once

namespace neyman::detail {

/// What an evaluation of −ℓ gives; each contains those before it.
enum class EvaluationOrder { value, gradient, hessian };

}  // namespace neyman::detail
