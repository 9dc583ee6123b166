#pragma once

#include <memory>

#include "neyman/data/reader.hpp"
#include "neyman/data/sample_stream.hpp"
#include "neyman/data/samples.hpp"
#include "neyman/simulators/distribution.hpp"

namespace neyman {

/// Events that were simulated before, from files. They train models, but no further ones can be
/// simulated.
///
/// In a study: kind = "files" with
/// - file = "simulated.csv": one table with a column for each parameter; or, as a component of a
///   mixture, a table without them;
/// - or tables = [{ file = "a.csv", point = { alpha = 0 } }, …]: one table for each θ.
///
/// With stream = true, files larger than memory (NPY or HDF5) stay on the disk: networks are
/// trained on all events as they are read, and `in_memory` of them, chosen at random by a hash of
/// their group or row, calibrate and check.
///
/// As a component of a measurement, `file` has its events at the nominal parameters, and its shape
/// is learned from
/// - variations = { scale = ["down.csv", "up.csv"] }: the same at −1 and +1 of a parameter;
/// - across = "across.csv": events over a range of parameters, with a column for each of them.
/// With negative = true the weights of all these may be negative.
///
/// Further keys: columns (the features; default: all that are nothing else), weights and group
/// (columns), names (of all columns in order, where a file has none), format (by extension) and
/// held_out (0.1: the share of the events of each θ that is kept for checks, where two θ have at
/// least 100 such events; 0: none).
class Files final : public Distribution {
 public:
  struct Table {
    std::string file;
    std::vector<double> point;  ///< θ of all its events; empty: in columns, or not known
  };
  /// Events at −1 and +1 of a parameter.
  struct Variation {
    std::string parameter;
    Samples low, high;
  };
  struct VariationFiles {
    std::string parameter, low, high;
  };
  struct Config {
    std::vector<Table> tables;
    ReadOptions options = {};  ///< parameters: filled in where the tables have their columns
    double held_out = 0.1;
    bool stream = false;
    std::size_t in_memory = 1'000'000;  ///< about how many events, with `stream`
    std::vector<VariationFiles> variations = {};
    std::string across = {};  ///< a file; empty: none
    bool negative = false;    ///< weights may be negative
  };

  /// Reads everything once.
  /// @throw FileError where a file cannot be used or has no events, or tables have different
  ///   columns.
  /// @throw ArgumentError where θ is outside the ranges or known for a part of the parameters.
  Files(Config config, const ParameterSpace& parameters);
  static DistributionPtr make(Settings settings, const ParameterSpace& parameters,
                              const std::string& folder);

  std::string kind() const override { return "files"; }
  /// The files that were read, in their order.
  const std::vector<std::string>& names() const { return names_; }
  std::size_t dimension() const override { return events_.features(); }
  std::vector<std::string> feature_names() const override { return events_.feature_names; }
  /// Whether the events have several values of it, or there are variations or events across it.
  std::optional<bool> depends_on(std::size_t parameter) const override;
  const Samples* stored() const override { return &events_; }
  std::shared_ptr<const SampleStream> stream() const override { return stream_; }
  const std::vector<Variation>& variations() const { return variations_; }
  /// Events over a range of some parameters, with their θ; may be empty.
  const Samples& across() const { return across_; }
  /// Events that are kept for checks, with θ; may be empty.
  const Samples& held_out() const { return held_out_; }
  /// Events kept for checks at the θ nearest to `point`, in parts of the ranges, of those that
  /// have at least 100; empty where there are none.
  Samples held_out_near(std::span<const double> point) const;
  /// @throw SimulatorError always.
  void sample(std::span<const double> point, RandomStream& random, Matrix& out) const override;

 private:
  void read(const Config& config);
  void hold_out(double part);
  void read_stream(const Config& config);
  Samples as_first(Samples events, const std::string& file) const;
  Samples read_moved(const std::string& file, const ReadOptions& options, bool negative) const;
  void read_shapes(const Config& config);

  ParameterSpace parameters_;
  std::vector<std::string> names_;
  Samples events_, held_out_;
  std::vector<Variation> variations_;
  Samples across_;
  std::shared_ptr<const SampleStream> stream_;
};

}  // namespace neyman
