#include "neyman/data/samples_archive.hpp"

namespace neyman {

void save_samples(const Samples& samples, Archive& archive) {
  archive.set("feature_names", samples.feature_names);
  archive.set("x", samples.x);
  archive.set("parameter_names", samples.parameter_names);
  archive.set("theta", samples.theta);
  archive.set("weights", samples.weights);
  archive.set("groups", samples.groups);
}

Samples load_samples(const Archive& archive) {
  Samples samples;
  samples.feature_names = archive.get<std::vector<std::string>>("feature_names");
  samples.x = archive.get<Matrix>("x");
  samples.parameter_names = archive.get<std::vector<std::string>>("parameter_names");
  samples.theta = archive.get<Matrix>("theta");
  samples.weights = archive.numbers("weights");
  samples.groups = archive.get<std::vector<std::int64_t>>("groups");
  return samples;
}

}  // namespace neyman
