#include "neyman/measurements/learned_variation.hpp"

#include <algorithm>

namespace neyman {

bool LearnedVariation::kept() const {
  return std::any_of(parts.begin(), parts.end(),
                     [](const Part& part) { return part.strength > 0; });
}

std::string to_string(LearnedVariation::Events events) {
  switch (events) {
    case LearnedVariation::Events::nominal:
      return "nominal";
    case LearnedVariation::Events::weighted:
      return "weighted";
    case LearnedVariation::Events::own:
      return "own";
  }
  return "own";
}

}  // namespace neyman
