#pragma once

#include <memory>

#include "neyman/simulators/distribution.hpp"

namespace neyman {

/// A simulator in a shared library with the C interface of neyman/plugin.h.
///
/// In a study: kind = "plugin", library = "./libsimulate.so" (relative to the study),
/// events_per_run = 1 (more where a call at a new θ is expensive: training events are then drawn in
/// runs of so many at one θ).
///
/// Each call gets a seed from the stream that it is asked with, so that the events are the same
/// bits for any number of threads, as long as the library draws from its seed alone.
class Plugin final : public Distribution {
 public:
  struct Config {
    std::string library;             ///< path of the shared library
    std::size_t events_per_run = 1;  ///< events at one θ in training
  };

  /// Loads the library, which stays in memory for the rest of the program.
  /// @throw FileError where it cannot be loaded, lacks a function, is of another version of the
  ///   interface, says impossible sizes, or names other parameters than these.
  Plugin(Config config, const ParameterSpace& parameters);
  static DistributionPtr make(Settings settings, const ParameterSpace& parameters,
                              const std::string& folder);

  std::string kind() const override { return "plugin"; }
  const std::string& library() const { return config_.library; }
  std::size_t dimension() const override;
  std::vector<std::string> feature_names() const override;
  Runs runs() const override;
  /// @throw SimulatorError, with θ, where the library fails or gives a value that is not finite.
  void sample(std::span<const double> point, RandomStream& random, Matrix& out) const override;
  /// Whether the library may be called by several threads at once.
  bool thread_safe() const;

 private:
  struct Library;
  std::shared_ptr<const Library> library_;
  Config config_;
  ParameterSpace parameters_;
  std::vector<std::size_t> order_;  // which of the study's parameters is the library's i-th
};

}  // namespace neyman
