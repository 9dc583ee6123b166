#include "neyman/simulators/command.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <chrono>
#include <condition_variable>
#include <filesystem>
#include <fstream>
#include <functional>
#include <map>
#include <mutex>
#include <numeric>
#include <set>
#include <utility>

#include "neyman/core/check.hpp"
#include "neyman/core/error.hpp"
#include "neyman/core/parallel.hpp"
#include "neyman/core/progress.hpp"
#include "neyman/data/atomic_file.hpp"
#include "neyman/data/reader.hpp"
#include "simulators/process.hpp"
#include "simulators/reading.hpp"
#include "simulators/run_cache.hpp"
#include "simulators/run_folder.hpp"
#include "simulators/shapes.hpp"

namespace neyman {

namespace {

namespace fs = std::filesystem;

/// Seeds fit a signed integer of 32 bits, which is all that some languages take.
constexpr std::uint64_t seed_mask = 0x7fffffff;
constexpr std::size_t shown_lines = 12;
/// Larger files are known by size and time instead of by content.
constexpr std::uintmax_t most_hashed = 64U << 20U;

/// The last lines of a text, indented.
std::string last_lines(const std::string& text) {
  std::vector<std::string> lines;
  for (std::size_t begin = 0; begin < text.size();) {
    const auto end = std::min(text.find('\n', begin), text.size());
    if (end > begin) lines.push_back(text.substr(begin, end - begin));
    begin = end + 1;
  }
  if (lines.size() > shown_lines)
    lines.erase(lines.begin(), lines.end() - static_cast<std::ptrdiff_t>(shown_lines));
  std::string out;
  for (const auto& line : lines) out += "\n    " + line;
  return out;
}

/// Replaces {name} by what `value` gives for it; {{ and }} are braces.
std::string replace_names(const std::string& text,
                          const std::function<std::string(const std::string&)>& value) {
  std::string out;
  for (std::size_t i = 0; i < text.size(); ++i) {
    const bool doubled = i + 1 < text.size() && text[i + 1] == text[i];
    if ((text[i] == '{' || text[i] == '}') && doubled) {
      out += text[i++];
    } else if (text[i] == '{') {
      const auto end = text.find('}', i);
      if (end == std::string::npos)
        fail_argument("command", "an argument", '"' + text + '"',
                      "without a lonely {; write {{ for a brace");
      out += value(text.substr(i + 1, end - i - 1));
      i = end;
    } else {
      out += text[i];
    }
  }
  return out;
}

/// How many there may be at once.
class Places {
 public:
  void take(std::size_t most) {
    std::unique_lock lock(mutex_);
    while (taken_ >= most) {
      free_.wait_for(lock, std::chrono::milliseconds(20));
      check_stop();
    }
    ++taken_;
  }
  void give_back() {
    const std::lock_guard lock(mutex_);
    --taken_;
    free_.notify_one();
  }

 private:
  std::mutex mutex_;
  std::condition_variable free_;
  std::size_t taken_ = 0;
};

const char* extension_of(FileFormat format) {
  return format == FileFormat::npy ? "npy" : format == FileFormat::hdf5 ? "h5" : "csv";
}

}  // namespace

/// Why an attempt failed.
struct Command::Failure {
  enum class Kind : char { crashed = 'c', timed_out = 't', unusable = 'u' };
  Kind kind;
  std::string text;
};

struct Command::State {
  Places places;
  std::mutex mutex;  // of all below
  SimulatorTally tally;
  std::set<std::string> log;
  std::string cache;

  void note(const Failure& failure) {
    auto& count = failure.kind == Failure::Kind::crashed     ? tally.crashed
                  : failure.kind == Failure::Kind::timed_out ? tally.timed_out
                                                             : tally.unusable;
    ++count;
    // Those that come first in the alphabet, whatever the order in which they came.
    log.insert(failure.text);
    if (log.size() > SimulatorTally::most_log) log.erase(std::prev(log.end()));
  }
};

Command::Command(Config config, const ParameterSpace& parameters)
    : config_(std::move(config)), parameters_(parameters), state_(std::make_shared<State>()) {
  check_at_least("command", "the number of words of command", config_.command.size(), 1);
  check_at_least("command", "events_per_run", config_.events_per_run, 1);
  check_in_range("command", "tolerate", config_.tolerate, 0.0, 1.0);
  config_.folder = fs::absolute(config_.folder).lexically_normal().string();
  prints_ = true;
  for (const auto& word : config_.command)
    prints_ = prints_ && word.find("{output}") == std::string::npos;
  check_placeholders();
  if (prints_ && config_.format != FileFormat::csv)
    fail_argument("command", "format", extension_of(config_.format),
                  "\"csv\" where the command has no {output} and prints its events");
  program_ = detail::find_program(config_.command[0], config_.folder);
  fingerprint_ = fingerprint();
  columns_ = config_.columns;
  if (config_.trial == 0) {
    check_at_least("command", "the number of columns without a trial run", columns_.size(), 1);
    return;
  }
  detail::remove_left_folders({});
  std::vector<std::string> failures;
  const double start = seconds_now();
  const auto trial = attempts(detail::trial_points(parameters_).back(), config_.trial, 1, failures);
  trial_ = {config_.trial, seconds_now() - start};
  columns_ = trial.feature_names;
  take_tally();
}

DistributionPtr Command::make(Settings settings, const ParameterSpace& parameters,
                              const std::string& folder) {
  const std::size_t before = settings.problems().size();
  Config config;
  config.folder = folder;
  if (settings.is_text("command") && !settings.describing()) {
    settings.skip("command");
    settings.problem("command",
                     "is a text, but must be a list of words such as [\"./simulate\", \"{n}\", "
                     "\"{seed}\", \"{output}\"]: no shell splits it");
  } else {
    config.command =
        settings.texts({"command",
                        "program and arguments: {n} and {seed} must be there, and every parameter, "
                        "such as {alpha}; "
                        "{output} is the file to write, and without it what is printed is read",
                        Key::required},
                       {});
    if (config.command.empty() && settings.problems().size() == before)
      settings.problem("command",
                       "is missing, but must be a list of words such as [\"./simulate\", \"{n}\", "
                       "\"{seed}\", \"{output}\"]");
  }
  config.format = file_format_by_name(
      settings.choice({"format", "of the output"}, "csv", {"csv", "npy", "hdf5"}));
  config.columns = settings.texts({"columns",
                                   "the features: names of columns to take; where the output has "
                                   "no names, those of all its columns; absent: all"},
                                  {});
  config.events_per_run =
      settings.count({"events_per_run", "training events of a run, all at one θ"},
                     config.events_per_run, 1, 100'000'000);
  config.jobs =
      settings.count({"jobs", "programs at once; 0: as many as threads"}, config.jobs, 0, 100'000);
  config.timeout = settings.number(
      {"timeout", "seconds; a run that takes longer is killed, with all processes that it started"},
      config.timeout, Limits::positive());
  config.retries =
      settings.count({"retries", "further attempts of a run that failed, each with a new seed"},
                     config.retries, 0, 1000);
  config.tolerate =
      settings.number({"tolerate", "share of training runs that may fail in every attempt"},
                      config.tolerate, Limits::between(0.0, 1.0));
  config.depends = settings.texts(
      {"depends", "files whose content matters, beside those that the command names"}, {});
  config.trial =
      settings.count({"trial", "events of a trial run whenever the study is read; 0: none"},
                     config.trial, 0, 1'000'000);
  if (config.trial == 0 && config.columns.empty())
    settings.problem("columns",
                     "is missing, but must name the features where trial = 0: no run shows them");
  if (settings.problems().size() > before) return nullptr;
  try {
    return std::make_shared<Command>(std::move(config), parameters);
  } catch (const ArgumentError& error) {
    settings.problem("command", "does not hold: " + error.reason());
  } catch (const FileError& error) {
    settings.problem("command", fmt::format("cannot be used: {}", error.what()));
  } catch (const SimulatorError& error) {
    settings.problem("command", fmt::format("fails in a trial run: {}", error.what()));
  }
  return nullptr;
}

void Command::check_placeholders() const {
  static const std::vector<std::string> own = {"n", "seed", "output"};
  for (const auto& name : own)
    if (parameters_.find(name))
      fail_argument("command", "a parameter", '"' + name + '"',
                    "named otherwise: {" + name + "} has a meaning of its own");
  auto known = parameters_.names();
  known.insert(known.end(), own.begin(), own.end());
  std::set<std::string> used;
  for (const auto& word : config_.command)
    replace_names(word, [&](const std::string& name) {
      if (std::find(known.begin(), known.end(), name) == known.end())
        throw ArgumentError("command: {" + name + "}: " +
                            unknown_name(name, "a placeholder", known) + "; write {{ for a brace");
      used.insert(name);
      return std::string();
    });
  for (const char* name : {"n", "seed"})
    if (used.count(name) == 0)
      throw ArgumentError(
          fmt::format("command: has no {{{}}}, but must pass {} to the program", name,
                      std::string_view(name) == "n" ? "the number of events"
                                                    : "the seed of its random numbers"));
}

/// Of the files that the results depend on: those that the command names and `depends`.
std::string Command::fingerprint() const {
  std::vector<std::string> files = config_.command;
  if (config_.command[0].find('/') == std::string::npos) files.erase(files.begin());
  for (const auto& name : config_.depends) {
    if (!fs::is_regular_file(fs::path(config_.folder) / name))
      throw FileError(fmt::format("{}: is named in depends, but there is no such file", name));
    files.push_back(name);
  }
  std::string out;
  for (const auto& name : files) {
    const auto path = fs::path(config_.folder) / name;
    std::error_code error;
    if (!fs::is_regular_file(path, error)) continue;
    const auto size = fs::file_size(path, error);
    if (size <= most_hashed) {
      out += fmt::format("{} {}\n", name, detail::content_hash(read_file(path.string())));
    } else {
      const auto time = fs::last_write_time(path, error).time_since_epoch().count();
      out += fmt::format("{} {} {}\n", name, size, time);
    }
  }
  return out;
}

std::vector<std::string> Command::words(std::span<const double> point, std::size_t n,
                                        std::uint64_t seed, const std::string& output) const {
  std::vector<std::string> out;
  for (const auto& word : config_.command)
    out.push_back(replace_names(word, [&](const std::string& name) {
      if (name == "n") return fmt::format("{}", n);
      if (name == "seed") return fmt::format("{}", seed);
      if (name == "output") return output;
      return fmt::format("{}", point[parameters_.index(name)]);
    }));
  return out;
}

std::string Command::describe(std::span<const double> point) const {
  std::vector<std::size_t> all(parameters_.size());
  std::iota(all.begin(), all.end(), std::size_t{0});
  return detail::describe_point(parameters_, point, all);
}

std::string Command::key(std::span<const double> point, std::size_t n, std::uint64_t seed) const {
  std::string out;
  for (const auto& word : words(point, n, seed, "{output}")) out += word + '\n';
  out += fmt::format("{}\n{}\n{}\n", extension_of(config_.format), fmt::join(columns_, "\n"),
                     config_.retries);
  return out + fingerprint_;
}

Samples Command::read_output(const std::string& path, std::size_t n) const {
  const auto unusable = [](const std::string& text) {
    return Failure{Failure::Kind::unusable, text};
  };
  std::error_code ignored;
  if (!fs::exists(path, ignored))
    throw unusable(prints_ ? "printed nothing" : "wrote no file {output}");
  if (fs::file_size(path, ignored) == 0)
    throw unusable(prints_ ? "printed nothing" : "wrote an empty file {output}");
  ReadOptions options;
  options.format = config_.format;
  options.features = options.columns = columns_;
  Samples out;
  try {
    out = read_samples(path, options).samples;
  } catch (const Error& error) {
    // Without the name of a file that nobody will find.
    std::string text = error.what();
    if (text.rfind(path, 0) == 0) text = "{output}" + text.substr(path.size());
    throw unusable("wrote what cannot be used: " + text);
  }
  if (out.size() != n)
    throw unusable(fmt::format("wrote {} rows, but must write n = {}", out.size(), n));
  return out;
}

/// One attempt. Throws Failure.
Samples Command::attempt(std::span<const double> point, std::size_t n, std::uint64_t seed) const {
  std::string cache;
  {
    const std::lock_guard lock(state_->mutex);
    cache = state_->cache;
  }
  const detail::RunFolder folder(cache);
  const auto output =
      (folder.path() / fmt::format("events.{}", extension_of(config_.format))).string();
  detail::ProcessOptions options;
  options.program = program_;
  options.arguments = words(point, n, seed, output);
  options.folder = config_.folder;
  options.timeout = config_.timeout;
  if (prints_) options.output = output;
  state_->places.take(config_.jobs > 0 ? config_.jobs : threads());
  detail::ProcessResult result;
  try {
    result = detail::run_process(options);
  } catch (...) {
    state_->places.give_back();
    throw;
  }
  state_->places.give_back();

  const auto shown = [&](const std::string& reason) {
    const auto said = last_lines(result.messages);
    return fmt::format(
        "{} at {}, n = {}, seed = {}\n  command: {}\n  in folder: {}{}", reason, describe(point), n,
        seed, detail::shell_words(words(point, n, seed, "{output}")), config_.folder,
        said.empty() ? "\n  it wrote no message" : "\n  the end of what it wrote:" + said);
  };
  using End = detail::ProcessResult::End;
  if (result.end == End::timed_out)
    throw Failure{Failure::Kind::timed_out,
                  shown(fmt::format("took longer than timeout = {} s", config_.timeout))};
  if (!result.ok()) throw Failure{Failure::Kind::crashed, shown(result.words())};
  try {
    return read_output(output, n);
  } catch (const Failure& failure) {
    throw Failure{failure.kind, shown(failure.text)};
  }
}

/// Attempts until one succeeds; each that failed is noted and told.
Samples Command::attempts(std::span<const double> point, std::size_t n, std::uint64_t seed,
                          std::vector<std::string>& failures) const {
  for (std::size_t k = 0;; ++k) {
    const auto own = k == 0 ? seed : derive_seed(seed, "retry", k) & seed_mask;
    try {
      return attempt(point, n, own);
    } catch (const Failure& failure) {
      failures.push_back(static_cast<char>(failure.kind) + failure.text);
      const std::lock_guard lock(state_->mutex);
      state_->note(failure);
      if (k < config_.retries) continue;
      state_->tally.failed.emplace_back(point.begin(), point.end());
      throw SimulatorError(fmt::format(
          "{}\n  it failed {}; run the command by hand to see why, or raise simulator.{}",
          failure.text,
          config_.retries == 0
              ? "once"
              : fmt::format("{} times, each with another seed", config_.retries + 1),
          failure.kind == Failure::Kind::timed_out ? "timeout" : "retries"));
    }
  }
}

Distribution::Runs Command::runs() const {
  return {config_.events_per_run, config_.jobs > 0 ? config_.jobs : threads(), config_.tolerate};
}

std::optional<bool> Command::depends_on(std::size_t parameter) const {
  const auto name = '{' + parameters_[parameter].name + '}';
  return std::any_of(config_.command.begin(), config_.command.end(),
                     [&](const std::string& word) { return word.find(name) != std::string::npos; });
}

void Command::sample(std::span<const double> point, RandomStream& random, Matrix& out) const {
  detail::check_shape(*this, out);
  check_same_size(kind(), "point", point.size(), parameters_.size(), "one for each parameter");
  if (out.rows() == 0) return;
  const std::uint64_t seed = random.bits() & seed_mask;
  const auto id = key(point, out.rows(), seed);
  std::string folder;
  {
    const std::lock_guard lock(state_->mutex);
    ++state_->tally.runs;
    folder = state_->cache;
  }
  const detail::RunCache cache(folder);
  if (!folder.empty()) {
    bool damaged = false;
    auto found = cache.find(id, damaged);
    const bool fits = found && found->x.rows() == out.rows() && found->x.cols() == out.cols();
    const std::lock_guard lock(state_->mutex);
    state_->tally.damaged += damaged || (found && !fits) ? 1 : 0;
    if (fits) {
      ++state_->tally.cached;
      for (const auto& failure : found->failures)
        if (!failure.empty())
          state_->note({static_cast<Failure::Kind>(failure[0]), failure.substr(1)});
      out = std::move(found->x);
      return;
    }
  }
  std::vector<std::string> failures;
  out = attempts(point, out.rows(), seed, failures).x;
  if (folder.empty()) return;
  try {
    cache.keep(id, {out, failures});
  } catch (const FileError& error) {
    // The events are worth more than their copy.
    const std::lock_guard lock(state_->mutex);
    state_->tally.cache_problem = error.what();
  }
}

void Command::set_cache_folder(const std::string& folder) const {
  const std::lock_guard lock(state_->mutex);
  state_->cache = folder.empty() ? "" : fs::absolute(folder).lexically_normal().string();
  if (!state_->cache.empty()) detail::remove_left_folders(state_->cache);
}

SimulatorTally Command::take_tally() const {
  const std::lock_guard lock(state_->mutex);
  auto out = std::exchange(state_->tally, {});
  out.log.assign(state_->log.begin(), state_->log.end());
  state_->log.clear();
  std::sort(out.failed.begin(), out.failed.end());
  out.timeout = config_.timeout;
  return out;
}

SimulatorTally take_tally(const Distribution& simulator) {
  SimulatorTally out;
  if (const auto* own = dynamic_cast<const Tallied*>(&simulator)) out = own->take_tally();
  for (const auto& part : simulator.parts()) out += take_tally(*part);
  return out;
}

SimulatorTally& SimulatorTally::operator+=(const SimulatorTally& other) {
  runs += other.runs;
  cached += other.cached;
  crashed += other.crashed;
  timed_out += other.timed_out;
  unusable += other.unusable;
  damaged += other.damaged;
  failed.insert(failed.end(), other.failed.begin(), other.failed.end());
  std::sort(failed.begin(), failed.end());
  log.insert(log.end(), other.log.begin(), other.log.end());
  std::sort(log.begin(), log.end());
  log.erase(std::unique(log.begin(), log.end()), log.end());
  if (log.size() > most_log) log.resize(most_log);
  if (cache_problem.empty()) cache_problem = other.cache_problem;
  timeout = std::max(timeout, other.timeout);
  return *this;
}

std::vector<std::string> SimulatorTally::warnings(const ParameterSpace& parameters) const {
  constexpr std::size_t shown = 5;
  std::vector<std::string> out;
  if (failures() > 0) {
    std::vector<std::string> kinds;
    if (crashed > 0) kinds.push_back(fmt::format("{} crashed", crashed));
    if (timed_out > 0)
      kinds.push_back(fmt::format("{} took longer than {} s and were killed", timed_out, timeout));
    if (unusable > 0) kinds.push_back(fmt::format("{} wrote what could not be used", unusable));
    const std::size_t attempts = runs - failed.size() + failures();
    out.push_back(
        fmt::format("the simulator failed in {} of {} runs ({:.2g} %): {}; run.log has "
                    "what they wrote",
                    failures(), attempts,
                    100.0 * static_cast<double>(failures()) /
                        static_cast<double>(std::max<std::size_t>(attempts, 1)),
                    fmt::join(kinds, ", ")));
  }
  if (!failed.empty()) {
    std::vector<std::size_t> all(parameters.size());
    std::iota(all.begin(), all.end(), std::size_t{0});
    std::vector<std::string> points;
    for (const auto& point : failed)
      if (points.size() < shown)
        points.push_back("(" + detail::describe_point(parameters, point, all) + ")");
    out.push_back(fmt::format(
        "{} of {} runs of the simulator failed with every seed and are left out, at {}{}: the "
        "model has not seen events from there",
        failed.size(), runs, fmt::join(points, ", "),
        failed.size() > shown ? fmt::format(" and {} others", failed.size() - shown) : ""));
  }
  if (!cache_problem.empty())
    out.push_back("runs of the simulator could not be kept for the next time: " + cache_problem);
  return out;
}

}  // namespace neyman
