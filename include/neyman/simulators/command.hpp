#pragma once

#include <memory>

#include "neyman/data/file_format.hpp"
#include "neyman/simulators/distribution.hpp"

namespace neyman {

/// How a simulator that is another program has fared.
struct SimulatorTally {
  std::size_t runs = 0;       ///< that were asked for
  std::size_t cached = 0;     ///< of them found on disk
  std::size_t crashed = 0;    ///< attempts that ended with an error
  std::size_t timed_out = 0;  ///< attempts that took longer than their time limit
  std::size_t unusable = 0;   ///< attempts whose output could not be used
  std::size_t damaged = 0;    ///< files of the cache that could not be used
  /// θ of the runs that failed in every attempt, sorted.
  std::vector<std::vector<double>> failed;
  /// What failed attempts wrote, sorted: at most `most_log` of them.
  std::vector<std::string> log;
  std::string cache_problem;  ///< why runs could not be kept on disk; empty: they could
  double timeout = 0.0;       ///< seconds

  static constexpr std::size_t most_log = 100;
  std::size_t failures() const { return crashed + timed_out + unusable; }
  /// That of both together.
  SimulatorTally& operator+=(const SimulatorTally& other);
  /// What a report must say of it, in sentences; empty where all went well.
  std::vector<std::string> warnings(const ParameterSpace& parameters) const;
};

/// What counts its runs: simulators that are not ours.
class Tallied {
 public:
  virtual ~Tallied() = default;
  /// What happened since the last call.
  virtual SimulatorTally take_tally() const = 0;
};

/// A simulator that is another program, run once for each θ and some events.
///
/// In a study:
///
///   kind = "command"
///   command = ["python3", "simulate.py", "{alpha}", "{n}", "{seed}", "{output}"]
///
/// The list holds the program and its arguments; there is no shell. In each of them {alpha} is
/// replaced by the value of the parameter alpha, {n} by the number of events, {seed} by a whole
/// number below 2^31, and {output} by the file that the program must write: a row for each event.
/// Without {output}, what it prints is read. {{ and }} are braces. The program runs in the study's
/// folder.
///
/// `Config` has the further keys, and `neyman help command` says what each means.
///
/// Results are kept on disk once a folder is set, each under the command, the content of the files
/// that it names, θ, n and the seed; they are not simulated again.
class Command final : public Distribution, public Tallied {
 public:
  struct Config {
    std::vector<std::string> command;  ///< with placeholders
    std::string folder = ".";          ///< where it runs
    FileFormat format = FileFormat::csv;
    /// The features: chosen from the names of the output, or given to its columns in order where it
    /// has none. Empty: those of the trial run.
    std::vector<std::string> columns = {};
    std::size_t events_per_run = 1000;
    std::size_t jobs = 0;     ///< 0: threads()
    double timeout = 600.0;   ///< seconds of a run
    std::size_t retries = 3;  ///< each with a new seed
    double tolerate = 0.05;   ///< share of training runs that may fail and are then left out
    std::vector<std::string> depends = {};  ///< relative to `folder`
    std::size_t trial = 10;  ///< events of a trial run; 0: none, and columns must be given
  };

  /// Runs the command once, at the truth or the middle of the ranges, unless `trial` is 0.
  /// @throw FileError where the program or a file that it depends on is not there.
  /// @throw ArgumentError for placeholders that are not known, and without columns and trial.
  /// @throw SimulatorError where the trial run fails.
  Command(Config config, const ParameterSpace& parameters);
  static DistributionPtr make(Settings settings, const ParameterSpace& parameters,
                              const std::string& folder);

  std::string kind() const override { return "command"; }
  /// The program and its arguments, with placeholders.
  const std::vector<std::string>& command() const { return config_.command; }
  std::size_t dimension() const override { return columns_.size(); }
  std::vector<std::string> feature_names() const override { return columns_; }
  Runs runs() const override;
  std::optional<Trial> trial() const override { return trial_; }
  /// Whether {parameter} stands in the command.
  std::optional<bool> depends_on(std::size_t parameter) const override;
  /// One run, on another seed after each failure.
  /// @throw SimulatorError, with θ, where all attempts fail; Interrupted on a requested stop.
  void sample(std::span<const double> point, RandomStream& random, Matrix& out) const override;

  /// Keeps results in a folder from now on; empty: nowhere.
  void set_cache_folder(const std::string& folder) const override;
  /// What has happened since it was last asked.
  SimulatorTally take_tally() const override;

 private:
  struct State;
  struct Failure;
  std::vector<std::string> words(std::span<const double> point, std::size_t n, std::uint64_t seed,
                                 const std::string& output) const;
  std::string describe(std::span<const double> point) const;
  std::string key(std::span<const double> point, std::size_t n, std::uint64_t seed) const;
  Samples attempt(std::span<const double> point, std::size_t n, std::uint64_t seed) const;
  Samples read_output(const std::string& path, std::size_t n) const;
  Samples attempts(std::span<const double> point, std::size_t n, std::uint64_t seed,
                   std::vector<std::string>& failures) const;
  void check_placeholders() const;
  std::string fingerprint() const;

  Config config_;
  ParameterSpace parameters_;
  std::string program_;
  std::vector<std::string> columns_;
  Trial trial_;
  bool prints_ = false;      // the events go to the standard output
  std::string fingerprint_;  // of the files that the results depend on
  std::shared_ptr<State> state_;
};

/// What has happened to all of them since they were last asked.
SimulatorTally take_tally(const Distribution& simulator);

}  // namespace neyman
