#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "neyman/core/parameters.hpp"
#include "neyman/core/settings.hpp"
#include "neyman/data/reader.hpp"
#include "neyman/inference/bayesian_optimisation.hpp"
#include "neyman/inference/composite_test.hpp"
#include "neyman/inference/constraint.hpp"
#include "neyman/inference/coverage.hpp"
#include "neyman/inference/ensemble.hpp"
#include "neyman/inference/hypothesis_test.hpp"
#include "neyman/measurements/learned_channel.hpp"
#include "neyman/measurements/measurement_summary.hpp"
#include "neyman/ratios/classifier_across.hpp"
#include "neyman/ratios/cross_fit.hpp"
#include "neyman/ratios/density_ratio.hpp"
#include "neyman/ratios/learned_ratio.hpp"
#include "neyman/ratios/separable_ratio.hpp"
#include "neyman/simulators/design.hpp"
#include "neyman/simulators/mixture.hpp"

namespace neyman {

/// What a study file asks for, read and validated. docs/study.md describes the file.
struct Study {
  std::string file;              ///< where it was read from
  std::string folder;            ///< relative file names in it start here
  SettingValue::Table settings;  ///< all of it as written

  std::string name;
  std::uint64_t seed = 1;
  ParameterSpace parameters;
  DistributionPtr simulator;
  /// The simulator where θ enters through the shares of its components alone, and ratios between
  /// the components are learned; else null, and one model is learned for all θ.
  std::shared_ptr<const Mixture> mixture;
  std::vector<double> reference;  ///< θ1; may be empty without a mixture

  std::size_t training_samples = 200000;  ///< simulated events in all
  RatioConfig learning;                   ///< of a mixture

  /// Where one model is learned for all θ.
  struct Parameterized {
    std::shared_ptr<const Design> design;
    /// What is learned: the first three are models of p(x|θ) over all θ at once.
    enum class Model {
      learned,     ///< several, of which held-out events choose
      separable,   ///< a network of sums of products of functions of x and of θ
      density,     ///< a conditional density
      classifier,  ///< any classifier, with θ among its inputs
    } model = Model::learned;
    LearnedRatio::Config learned;
    SeparableRatio::Config separable;
    DensityRatio::Config density;
    ParameterizedClassifierRatio::Config classifier;

    bool by_classifier() const { return model == Model::classifier; }
  } parameterized;
  std::vector<Constraint> constraints;

  /// Where the simulator is a mixture with yields: signal and backgrounds, whose shapes are
  /// learned.
  struct Measurement {
    std::shared_ptr<const Mixture> mixture;
    std::size_t interest = 0;  ///< a parameter
    MeasurementOptions options;
    LearnedChannel::Config learning;
    std::vector<double> nominal;  ///< θ of the events that tell components apart
  };
  std::optional<Measurement> measurement;

  struct Data {
    /// A file, and how its columns become the features, which names decide where it has any.
    struct File {
      std::string name;
      ReadOptions options;
    };
    std::vector<File> files;
    /// In the place of files: events that a program holds, with the features of the study.
    std::shared_ptr<const Samples> given;
    ReadOptions options;  ///< as the study says, for every file
    std::string note;     ///< what a user should know of how the columns were taken
    /// Those that are given, or else to simulate at the truth; a measurement simulates as many as
    /// it expects.
    std::size_t events = 5000;

    bool observed() const { return given != nullptr || !files.empty(); }
  } data;

  std::vector<double> levels = {0.683, 0.95};
  std::size_t scan_points = 101;
  std::optional<SimpleTestConfig> test;
  std::optional<EnsembleConfig> ensemble;
  std::vector<std::pair<std::size_t, std::size_t>> contours;  ///< pairs of parameters
  std::size_t surface_points = 41;  ///< of each parameter, on the surfaces behind the contours
  std::optional<BayesianConfig> bayesian;
  std::vector<CompositeTestConfig> hypotheses;
  std::optional<CoverageConfig> coverage;

  /// Checks that need no truth: of the estimate, and of ratios near it and far from it.
  struct Diagnostics {
    std::vector<std::string> which;  ///< names; empty: none
    std::vector<double> against;     ///< θ1 of the ratio far from it; empty: the reference
    /// `reference`: θ1 with which the ratio is learned again; empty: two beside the estimate.
    std::vector<std::vector<double>> references;
    std::size_t events = 20000;  ///< simulated at each θ
    /// `recovery`: how many times the data's events are simulated at the estimate, if there are
    /// as many within the budget.
    std::size_t times = 100;
    /// Events that the checks simulate in all. Absent: for simulators that are other programs or
    /// functions of another language (Distribution::trial), 15 % of those for the training;
    /// else as many as are worth their time.
    std::optional<std::size_t> budget;
    bool events_given = false;  ///< by the study, and not left to the budget
    std::uint64_t seed = 0;
  } diagnostics;

  /// Ratios between θ0 and the reference, learned by several classifiers, beside the exact one.
  struct Compare {
    std::vector<double> point;  ///< θ0
    std::vector<std::shared_ptr<const Classifier>> classifiers;
    std::size_t evaluation_events = 100000;
  };
  std::optional<Compare> compare;

  std::string title;
  bool figures = true;
  bool quick = false;              ///< made small by `quicken`
  double stored_share = 1.0;       ///< of the events of files, of which a quick study takes some
  std::vector<std::string> notes;  ///< what is to be told of the study itself, as warnings
};

/// Reads a study and validates all of it: keys, types, ranges, expressions, files and columns.
/// @throw StudyError with every problem, each with file and line; FileError where the file
///   cannot be read.
/// `observed`: events that a program holds are the data, whatever [data] says of files. Their
/// columns are taken by their names; those with default names or none in order.
Study read_study(const std::string& path, std::shared_ptr<const Samples> observed = nullptr);
/// The same from a text; `folder` is where relative file names start.
Study parse_study(const std::string& text, const std::string& name, const std::string& folder);
/// The same from settings that a program made, for example from a Python dict; problems name
/// `name`.
Study make_study(SettingValue::Table settings, const std::string& name, const std::string& folder,
                 std::shared_ptr<const Samples> observed = nullptr);

/// All that a study file may hold, noted by the calls of `read_study` that read it. Opens no files
/// and simulates nothing.
Description describe_study_file();

/// Makes a study small, to try it out: a tenth of the events that are simulated for training, at
/// each θ of a calibration, for checks and for comparisons, or are taken from files (but all of
/// them for a measurement), and a tenth of the datasets of tests, ensembles and coverage; but not
/// less than 10 000 events to train with, 1000 for anything else and 20 datasets, where the study
/// asks for as many. Data, ranges and everything else stay. The results say so in a warning.
void quicken(Study& study);

/// Gives a study another seed, everywhere it is used.
void reseed(Study& study, std::uint64_t seed);

/// The values of a θ given as a table, for example { gamma = 0.05 }; parameters that are not
/// named take `fallback`.
std::vector<double> read_point(Settings table, const ParameterSpace& parameters,
                               const std::vector<double>& fallback);

}  // namespace neyman
