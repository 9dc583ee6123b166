#include "neyman/core/parameters_archive.hpp"

#include <utility>

#include "neyman/core/error.hpp"

namespace neyman {

void save_parameters(const ParameterSpace& parameters, Archive& archive) {
  archive.set("parameters", parameters.names());
  Matrix ranges(parameters.size(), parameters.periodic() ? 4 : 3);
  for (std::size_t p = 0; p < parameters.size(); ++p) {
    ranges(p, 0) = parameters[p].low;
    ranges(p, 1) = parameters[p].high;
    ranges(p, 2) = parameters[p].nuisance ? 1.0 : 0.0;
    if (ranges.cols() > 3) ranges(p, 3) = parameters[p].periodic ? 1.0 : 0.0;
  }
  archive.set("ranges", ranges);
}

ParameterSpace load_parameters(const Archive& archive) {
  const auto& names = archive.get<std::vector<std::string>>("parameters");
  const auto& ranges = archive.get<Matrix>("ranges");
  // Files from before there were nuisance parameters have two columns; only those with periodic
  // ones have four.
  if (!names.empty() && (ranges.rows() != names.size() || ranges.cols() < 2))
    throw FileError("has ranges that do not belong to its parameters");
  std::vector<Parameter> parameters;
  for (std::size_t p = 0; p < names.size(); ++p)
    parameters.push_back({names[p],
                          ranges(p, 0),
                          ranges(p, 1),
                          {},
                          ranges.cols() > 2 && ranges(p, 2) != 0.0,
                          ranges.cols() > 3 && ranges(p, 3) != 0.0});
  return ParameterSpace(std::move(parameters));
}

}  // namespace neyman
