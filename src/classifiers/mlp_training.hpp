#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "classifiers/mlp_network.hpp"
#include "neyman/classifiers/mlp.hpp"

// How networks are trained. Several may learn from the same rows: those are read, standardised and
// held out once, and each network takes its steps on them in an order of its own.
namespace neyman::mlp {

/// Mean and 1/sd of each feature; a constant feature has scale 1.
struct Scaling {
  std::vector<double> mean, scale;
  void add(double average, double deviation);
};

/// A network that is to be trained.
struct Trainee {
  const Mlp::Config& config;
  std::uint64_t seed;  ///< of its first weights and of the order of the rows
  bool bootstrap;      ///< multiplies the weights of its rows by draws of its seed
};

struct Trained {
  std::unique_ptr<const Network> network;
  Buffer parameters;
  std::vector<Mlp::Epoch> history;
};

/// What they learned, in the order of the trainees.
struct Training {
  Scaling scaling;
  std::vector<Trained> networks;
};

std::unique_ptr<const Network> make_network(std::size_t features, const Mlp::Config& config);

/// Into how many parts ranks can cut a step; 1: they cannot.
std::size_t shares(const Mlp::Config& config);

/// Trains on rows in memory; `epochs`, unless null, makes those of all epochs but the first. The
/// trainees hold out the same part of the rows.
Training train(const TrainingSet& data, const TrainingEpochs* epochs,
               std::span<const Trainee> trainees);
/// The same on rows that are read.
Training train(const TrainingStream& stream, std::span<const Trainee> trainees);

}  // namespace neyman::mlp
