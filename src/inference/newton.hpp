#pragma once

#include <optional>

#include "free_problem.hpp"
#include "judgement.hpp"

namespace neyman {

/// Newton's method inside the box from the problem's best point, with the likelihood's own second
/// derivatives: a handful of passes over the events, the last of which tells the covariance too.
/// Nothing where these are not known or it does not arrive; the best point found is kept.
std::optional<Judgement> follow_newton(FreeProblem& problem);

}  // namespace neyman
