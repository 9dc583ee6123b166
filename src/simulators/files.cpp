#include "neyman/simulators/files.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <limits>
#include <map>
#include <utility>

#include "neyman/core/check.hpp"
#include "neyman/core/error.hpp"
#include "neyman/core/parallel.hpp"
#include "neyman/data/feature_columns.hpp"
#include "neyman/data/settings_file.hpp"
#include "neyman/data/splits.hpp"

namespace neyman {

namespace {

/// Fewer events at a θ are no basis for a check.
constexpr std::size_t least_held_out = 100;
/// Rows that are read at once where files stream, and what chooses those that stay in memory.
constexpr std::size_t stream_block = 32768;
constexpr std::uint64_t stream_seed = 1;

/// The events of each θ, in the order of θ.
std::map<std::vector<double>, std::vector<std::size_t>> by_point(const Samples& events) {
  std::map<std::vector<double>, std::vector<std::size_t>> out;
  for (std::size_t i = 0; i < events.theta.rows(); ++i) {
    const auto row = events.theta.row(i);
    out[{row.begin(), row.end()}].push_back(i);
  }
  return out;
}

void refuse_negative(const std::string& file, std::span<const double> weights) {
  for (std::size_t i = 0; i < weights.size(); ++i)
    if (!(weights[i] >= 0.0))
      fail_argument(
          "files", fmt::format("weights[{}] of {}", i, file), fmt::format("{}", weights[i]),
          "not negative; a component of a measurement, whose mixture has yields, may have "
          "such weights with negative = true");
}

/// The parameters that are columns of a file, and no features: all or none.
std::vector<std::string> parameter_columns(const std::string& file, const ReadOptions& options,
                                           const ParameterSpace& parameters) {
  const auto columns = file_columns(file, options);
  std::vector<std::string> found, absent;
  const auto among = [](const std::vector<std::string>& names, const std::string& name) {
    return std::find(names.begin(), names.end(), name) != names.end();
  };
  for (const auto& name : parameters.names())
    (among(columns, name) && !among(options.features, name) ? found : absent).push_back(name);
  if (!found.empty() && !absent.empty())
    throw FileError(fmt::format(
        "{}: has a column for the parameter {}, but none for {}; its columns are {}; if {} is a "
        "feature with a parameter's name, name the features in columns",
        file, fmt::join(found, ", "), some_names(absent), some_names(columns), found.front()));
  return found;
}

Samples read_table(const Files::Table& table, ReadOptions options,
                   const ParameterSpace& parameters) {
  if (table.point.empty()) {
    options.parameters = parameter_columns(table.file, options, parameters);
  } else {
    parameters.check_inside(table.file, table.point);
  }
  auto events = read_samples(table.file, options).samples;
  if (!table.point.empty()) {
    events.parameter_names = parameters.names();
    events.theta = Matrix(events.size(), parameters.size());
    for (std::size_t i = 0; i < events.size(); ++i)
      std::copy(table.point.begin(), table.point.end(), events.theta.row(i).begin());
  }
  for (std::size_t i = 0; i < events.theta.rows(); ++i)
    parameters.check_inside(fmt::format("{}: row {}", table.file, i + 1), events.theta.row(i));
  return events;
}

}  // namespace

Files::Files(Config config, const ParameterSpace& parameters) : parameters_(parameters) {
  check_at_least("files", "the number of tables", config.tables.size(), 1);
  check_in_range("files", "held_out", config.held_out, 0.0, 0.9);
  check_at_least("files", "in_memory", config.in_memory, 1);
  for (const auto& table : config.tables) names_.push_back(table.file);
  config.stream ? read_stream(config) : read(config);
  read_shapes(config);
}

/// Events of another file, their features in the order of the first one's.
Samples Files::as_first(Samples events, const std::string& file) const {
  if (events.feature_names == events_.feature_names) return events;
  try {
    std::string note;
    return with_features("files", events, events_.feature_names, OtherColumns::refuse, note);
  } catch (const ArgumentError&) {
    throw FileError(fmt::format(
        "{}: has the features {}, but {} has {}; name the ones to use in "
        "columns",
        file, some_names(events.feature_names), names_[0], some_names(events_.feature_names)));
  }
}

/// Events of a component at other parameters: with its features, and at least one.
Samples Files::read_moved(const std::string& file, const ReadOptions& options,
                          bool negative) const {
  auto events = read_samples(file, options).samples;
  if (events.size() == 0) throw FileError(fmt::format("{}: has no events", file));
  events = as_first(std::move(events), file);
  events.check("files");
  if (!negative) refuse_negative(file, events.weights);
  return events;
}

void Files::read_shapes(const Config& config) {
  for (const auto& variation : config.variations)
    variations_.push_back({variation.parameter,
                           read_moved(variation.low, config.options, config.negative),
                           read_moved(variation.high, config.options, config.negative)});
  if (config.across.empty()) return;
  auto options = config.options;
  const auto columns = file_columns(config.across, options);
  for (const auto& name : parameters_.names())
    if (std::find(columns.begin(), columns.end(), name) != columns.end())
      options.parameters.push_back(name);
  if (options.parameters.empty())
    throw FileError(fmt::format("{}: has no column for any of {}; its columns are {}",
                                config.across, fmt::join(parameters_.names(), ", "),
                                fmt::join(columns, ", ")));
  across_ = read_moved(config.across, options, config.negative);
  for (std::size_t k = 0; k < across_.parameter_names.size(); ++k) {
    const auto& parameter = parameters_[*parameters_.find(across_.parameter_names[k])];
    for (std::size_t i = 0; i < across_.size(); ++i)
      check_in_range("files", fmt::format("{}: row {}, {}", config.across, i + 1, parameter.name),
                     across_.theta(i, k), parameter.low, parameter.high);
  }
}

void Files::read(const Config& config) {
  for (const auto& table : config.tables) {
    auto events = read_table(table, config.options, parameters_);
    if (events_.size() == 0) {
      events_ = std::move(events);
      continue;
    }
    events = as_first(std::move(events), table.file);
    if (events.parameter_names != events_.parameter_names)
      throw FileError(fmt::format("{}: has {} parameter columns, but {} has {}", table.file,
                                  events.parameter_names.size(), config.tables[0].file,
                                  events_.parameter_names.size()));
    events_.append(events);
  }
  events_.check("files");
  if (!config.negative) refuse_negative(names_[0], events_.weights);
  // Groups may cross θ: then nothing is held out, so that no group is on both sides.
  if (events_.groups.empty()) hold_out(config.held_out);
}

void Files::hold_out(double part) {
  if (events_.theta.empty() || part == 0.0) return;
  const auto points = by_point(events_);
  std::size_t checkable = 0;
  const auto share = [&](std::size_t count) {
    return static_cast<std::size_t>(part * static_cast<double>(count));
  };
  for (const auto& [point, rows] : points) checkable += share(rows.size()) >= least_held_out;
  if (checkable < 2) return;
  // The same share of every θ, so that what is left is as it was: every (1/share)-th event.
  std::vector<std::size_t> kept, held;
  for (const auto& [point, rows] : points)
    for (std::size_t k = 0; k < rows.size(); ++k)
      (share(k + 1) > share(k) ? held : kept).push_back(rows[k]);
  std::sort(kept.begin(), kept.end());
  held_out_ = events_.take(held);
  events_ = events_.take(kept);
}

void Files::read_stream(const Config& config) {
  auto options = config.options;
  std::vector<SampleStream::Table> tables;
  for (const auto& table : config.tables) {
    if (table.point.empty())
      options.parameters = parameter_columns(table.file, options, parameters_);
    else
      parameters_.check_inside(table.file, table.point);
    tables.push_back({table.file, table.point});
  }
  auto stream = std::make_shared<SampleStream>(std::move(tables), options, parameters_.names());
  const double share =
      std::min(1.0, static_cast<double>(config.in_memory) / static_cast<double>(stream->rows()));
  std::vector<Samples> parts((stream->rows() + stream_block - 1) / stream_block);
  parallel_blocks(stream->rows(), stream_block, [&](Block block) {
    const auto events = stream->read(block.begin, block.end);
    for (std::size_t i = 0; i < events.theta.rows(); ++i)
      parameters_.check_inside(fmt::format("{}: row {}", names_[0], block.begin + i + 1),
                               events.theta.row(i));
    refuse_negative(names_[0], events.weights);
    std::vector<std::size_t> chosen;
    for (std::size_t i = 0; i < events.size(); ++i)
      if (hashed(events.groups[i], stream_seed) < share) chosen.push_back(i);
    parts[block.index] = events.take(chosen);
  });
  for (auto& part : parts) {
    events_.append(part);
    part = {};
  }
  check_at_least("files", "the number of events in memory", events_.size(), 1);
  stream_ = stream;
  if (events_.theta.empty() || config.held_out == 0.0) return;
  // Those with the lowest numbers are kept for checks, and never read again.
  std::vector<std::size_t> kept, held;
  for (std::size_t i = 0; i < events_.size(); ++i) {
    const double number = hashed(events_.groups[i], stream_seed);
    (number < share * config.held_out ? held : kept).push_back(i);
  }
  auto checks = events_.take(held);
  std::size_t checkable = 0;
  for (const auto& [point, rows] : by_point(checks)) checkable += rows.size() >= least_held_out;
  if (checkable >= 2) {
    held_out_ = std::move(checks);
    events_ = events_.take(kept);
    stream->leave_out(share * config.held_out, stream_seed);
  }
}

DistributionPtr Files::make(Settings settings, const ParameterSpace& parameters,
                            const std::string& folder) {
  const std::size_t before = settings.problems().size();
  const auto path_of = [&](const std::string& name) {
    return (std::filesystem::path(folder) / name).lexically_normal().string();
  };
  Config config;
  if (settings.has("file") == settings.has("tables"))
    settings.problem(settings.has("file") ? "tables" : "file",
                     settings.has("file") ? "is there beside file, but one of them must be removed"
                                          : "is missing, but must name a table of events (or "
                                            "tables = [{ file = …, point = { … } }] several)");
  for (auto& file : read_file_names(
           settings,
           {"file",
            "events, with a column for each parameter unless it is a component of a mixture: CSV, "
            "NPY or HDF5 (sims.h5:group/dataset names a table inside), relative to the study; also "
            "a "
            "list of files, or a pattern such as \"runs/*.npy\"; this or tables"},
           folder))
    config.tables.push_back({std::move(file), {}});
  for (auto& entry : settings.tables({"tables", "events of each θ, in place of file"})) {
    const auto files = read_file_names(
        entry, {"file", "events at this point; a list or a pattern too", Key::required}, folder);
    if (!entry.has("file"))
      entry.text({"file", "events at this point"});  // tells that it is missing
    Table table;
    auto point = entry.table({"point", "its θ", Key::required});
    for (const auto& parameter : parameters)
      table.point.push_back(point.number({parameter.name, "value of the parameter"},
                                         Limits::between(parameter.low, parameter.high)));
    for (const auto& file : files) {
      table.file = file;
      config.tables.push_back(table);
    }
  }
  config.options.features = settings.texts(
      {"columns", "the features; absent: all columns but parameters, weights and group"}, {});
  config.options.columns =
      settings.texts({"names", "of all columns in order, for files without names"}, {});
  config.options.weight = settings.text({"weights", "a column of event weights"}, "");
  config.options.group = settings.text(
      {"group",
       "a column of whole numbers: events of one group are never on both sides of a split; each θ "
       "needs many groups"},
      "");
  const auto format = settings.choice({"format", "of the files"}, "by-extension",
                                      {"by-extension", "csv", "npy", "hdf5"});
  if (format != "by-extension") config.options.format = file_format_by_name(format);
  config.held_out = settings.number(
      {"held_out",
       "share of each θ's events that is kept for checks, where at least two θ then have 100"},
      config.held_out, Limits::between(0.0, 0.9));
  config.stream = settings.flag({"stream",
                                 "for NPY or HDF5 files larger than memory: networks are trained "
                                 "from the disk, on all events"},
                                config.stream);
  config.in_memory = settings.count(
      {"in_memory",
       "with stream: how many events, chosen at random, are held in memory to calibrate and check"},
      config.in_memory, 1000);
  if (!config.stream && settings.has("in_memory"))
    settings.problem("in_memory", "is there, but all events are in memory without stream = true");
  config.negative =
      settings.flag({"negative", "in a measurement: weights may be negative"}, config.negative);
  const auto across = settings.text(
      {"across",
       "in a measurement: events over ranges of the parameters that move the component's shape, "
       "with a column for each of them"},
      "");
  if (!across.empty()) config.across = path_of(across);
  auto variations = settings.table({"variations",
                                    "in a measurement: events at −1 and +1 of a parameter that "
                                    "moves the component's shape, such "
                                    "as { scale = [\"down.csv\", \"up.csv\"] }"});
  for (const auto& name : variations.keys()) {
    const auto files =
        variations.texts({name, "files of the events at −1 and at +1 of the parameter"}, {});
    if (!settings.describing() && !parameters.find(name))
      variations.problem(name, unknown_name(name, "a parameter", parameters.names()));
    else if (files.size() != 2 && !settings.describing())
      variations.problem(
          name, fmt::format("has {} files, but must have two: at −1 and at +1", files.size()));
    else if (files.size() == 2)
      config.variations.push_back({name, path_of(files[0]), path_of(files[1])});
  }
  if (config.stream && (!config.across.empty() || !config.variations.empty()))
    settings.problem("stream", "is for files without variations and events across parameters");
  if (settings.problems().size() > before) return nullptr;
  const char* key = settings.has("file") ? "file" : "tables";
  try {
    return std::make_shared<Files>(std::move(config), parameters);
  } catch (const ArgumentError& error) {
    settings.problem(key, fmt::format("cannot be used: {}", error.what()));
  } catch (const InvalidValue& error) {
    settings.problem(
        key, fmt::format("cannot be used: {}; remove such rows from the file", error.what()));
  } catch (const FileError& error) {
    settings.problem(key, fmt::format("cannot be used: {}", error.what()));
  }
  return nullptr;
}

std::optional<bool> Files::depends_on(std::size_t parameter) const {
  const auto& name = parameters_[parameter].name;
  for (const auto& variation : variations_)
    if (variation.parameter == name) return true;
  const auto& moved = across_.parameter_names;
  if (std::find(moved.begin(), moved.end(), name) != moved.end()) return true;
  for (std::size_t i = 1; i < events_.theta.rows(); ++i)
    if (events_.theta(i, parameter) != events_.theta(0, parameter)) return true;
  return false;
}

Samples Files::held_out_near(std::span<const double> point) const {
  double least = std::numeric_limits<double>::infinity();
  const auto points = by_point(held_out_);
  const std::vector<std::size_t>* nearest = nullptr;
  for (const auto& [own, rows] : points) {
    if (rows.size() < least_held_out) continue;
    double distance = 0.0;
    for (std::size_t p = 0; p < own.size(); ++p)
      distance += std::pow((own[p] - point[p]) / (parameters_[p].high - parameters_[p].low), 2);
    if (distance < least) {
      least = distance;
      nearest = &rows;
    }
  }
  return nearest == nullptr ? Samples{} : held_out_.take(*nearest);
}

void Files::sample(std::span<const double>, RandomStream&, Matrix&) const {
  throw SimulatorError(
      "files: the events were simulated before and no others can be; give a simulator with kind = "
      "\"command\" or \"plugin\"");
}

}  // namespace neyman
