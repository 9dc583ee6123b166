#include "pipeline/chain.hpp"

#include <dlfcn.h>
#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <regex>

#include "neyman/core/check.hpp"
#include "neyman/core/error.hpp"
#include "neyman/core/progress.hpp"
#include "neyman/core/version.hpp"
#include "neyman/data/archive_file.hpp"
#include "neyman/data/atomic_file.hpp"
#include "neyman/data/checksum.hpp"
#include "neyman/distributed/packing.hpp"
#include "neyman/reports/results_archive.hpp"
#include "pipeline/stages.hpp"

namespace neyman::pipeline {

namespace {

namespace fs = std::filesystem;

constexpr const char* artifact_schema = "neyman.stage";
/// Raised whenever a stage gives something else for the same study, or is kept in another form.
constexpr int artifact_version = 1;

std::size_t position(const std::string& stage) {
  const auto& names = stage_names();
  const auto at = std::find(names.begin(), names.end(), stage);
  if (at == names.end()) throw ArgumentError("run: " + unknown_name(stage, "a stage", names));
  return static_cast<std::size_t>(at - names.begin());
}

fs::path kept_in(const std::string& folder) { return fs::path(folder) / "stages"; }

/// The checksum of the file that this code is in: builds of one version may differ. Empty where
/// the system does not show it.
std::string program() {
  Dl_info info{};
  std::error_code error;
  fs::path file = "/proc/self/exe";
  if (::dladdr(artifact_schema, &info) != 0 && info.dli_fname != nullptr &&
      fs::is_regular_file(info.dli_fname, error))
    file = info.dli_fname;
  if (!fs::is_regular_file(file, error)) return {};
  return fmt::format("{:016x}", file_checksum(file.string()));
}

/// Every entry of a folder; none where it does not exist.
std::vector<fs::path> entries(const fs::path& folder) {
  std::vector<fs::path> out;
  std::error_code error;
  for (fs::directory_iterator at(folder, error), end; !error && at != end; at.increment(error))
    out.push_back(at->path());
  return out;
}

/// What a run that was killed left half written: see AtomicFile and `reports::draw`.
void clean_up(const std::string& folder) {
  static const std::regex half_written(R"(.*\.\d+-\d+\.tmp|\.drawing-......)");
  std::error_code ignored;
  for (const auto& inside : {fs::path(folder), kept_in(folder), fs::path(folder) / "figures"})
    for (const auto& path : entries(inside))
      if (std::regex_match(path.filename().string(), half_written)) fs::remove_all(path, ignored);
}

/// What a stage simulates events for.
const char* purpose_of(const std::string& stage, const std::string& part) {
  if (part == "recovery") return "tests and checks";
  if (stage == "fit") return "data";
  return position(stage) < position("fit") ? "training" : "tests and checks";
}

/// The name of a file of a report, which comes from a stage file and is not to be trusted: anybody
/// can make such a file.
/// @throw FileError unless it is relative and stays inside the folder.
const std::string& file_inside(const std::string& name, const std::string& artifact) {
  const fs::path path(name);
  const bool stays = !name.empty() && name.find('\0') == std::string::npos && path.is_relative() &&
                     std::none_of(path.begin(), path.end(), [](const fs::path& part) {
                       return part.empty() || part == "." || part == "..";
                     });
  if (!stays)
    throw FileError(
        fmt::format("{}: names the file '{}' of a report, but must name files inside of its folder",
                    artifact, name));
  return name;
}

/// The files that a report wrote; none of another step, or where its list is damaged.
std::vector<std::string> reported(const fs::path& artifact) {
  if (!artifact.filename().string().starts_with(stage_names().back() + '-')) return {};
  try {
    const auto tree = read_archive(artifact.string(), artifact_schema, artifact_version).tree;
    const auto& files = tree.child("value").get<std::vector<std::string>>("files");
    for (const auto& file : files) file_inside(file, artifact.string());
    return files;
  } catch (const FileError&) {
    return {};
  }
}

/// A run removes and replaces files in its folder. Where that folder came from somebody else, a
/// link in it would lead to files of the user.
void refuse_links(const std::string& folder) {
  const auto refuse = [](const fs::path& path) {
    std::error_code error;
    if (fs::is_symlink(fs::symlink_status(path, error)))
      throw FileError(path.string() +
                      ": is a link, but a run removes and replaces files here, and follows no "
                      "links out of its folder; remove the link, or choose another folder");
  };
  const fs::path out(folder);
  for (const char* name :
       {"stages", "figures", "parts", "model.h5", "results.json", "report.html", "run.log"})
    refuse(out / name);
  for (const char* name : {"stages", "figures", "parts"})
    for (const auto& path : entries(out / name)) refuse(path);
}

}  // namespace

const Archive& Chain::Artifact::tree() {
  if (!content) content = read_archive(path, artifact_schema, artifact_version).tree;
  return *content;
}

Chain::Chain(const Study& study, const RunOptions& options, std::function<void(Results&)> describe)
    : study_(study),
      options_(options),
      describe_(std::move(describe)),
      alone_(options.ranks == nullptr ? alone() : nullptr),
      ranks_(options.ranks == nullptr ? *alone_ : *options.ranks),
      rank_tasks_(ranks_) {
  describe_(results_);
  if (!options.until.empty()) position(options.until);
  if (!options.from.empty()) position(options.from);
  if (ranks_.size() > 1) counted_.emplace(*this, rank_tasks_);
  if (options.part) {
    const auto [number, of] = *options.part;
    check_at_least("run", "part.of", of, 1);
    check_in_range("run", "part.number", static_cast<double>(number), 1.0, static_cast<double>(of));
    counted_parts_.emplace(*this, part_.emplace(*options.part));
  } else if (!options.parts.empty()) {
    counted_parts_.emplace(*this, merged_.emplace(options.parts));
  }
  if (options.folder.empty()) return;
  if (study.settings.empty())
    throw ArgumentError(
        "run: the study has no settings, but must have been read from a file or a text to be run "
        "in a folder");
  fingerprint_ = fmt::format("neyman {} {} {}\nseed {}\n", neyman::version(), artifact_version,
                             program(), study.seed);
  from_first(ranks_, [&] {
    prepare_folder();
    return std::string();
  });
}

void Chain::prepare_folder() {
  make_folder(options_.folder);
  refuse_links(options_.folder);
  if (part_) return;  // a guest, beside others
  lock_.emplace(options_.folder);
  clean_up(options_.folder);
  if (options_.fresh || !options_.from.empty())
    forget_from(options_.fresh ? stage_names().front() : options_.from);
}

Tasks* Chain::tasks() { return counted_ ? &*counted_ : nullptr; }

Tasks* Chain::parted_tasks() { return counted_parts_ ? &*counted_parts_ : tasks(); }

std::string Chain::write_part() const {
  if (part_->empty())
    throw ArgumentError(
        "run: the study has no pseudo-experiments and no contours, but must have some to be done "
        "in parts");
  return part_->write((fs::path(options_.folder) / "parts").string());
}

std::vector<std::string> Chain::CountedTasks::run(
    std::size_t count, std::size_t at_once, const std::function<std::string(std::size_t)>& work) {
  const auto& simulator = *chain_.study_.simulator;
  chain_.beside_ += take_tally(simulator);
  struct Count {
    Chain& chain;
    const Distribution& simulator;
    ~Count() { chain.in_tasks_ += take_tally(simulator); }
  } count_after{chain_, simulator};
  return by_.run(count, at_once, work);
}

/// What every rank or part did of the tasks counts once, and what all of them did alike as well.
void Chain::note_simulators(Results& results) {
  auto all = std::exchange(beside_, {});
  all += take_tally(*study_.simulator);
  const auto fields = [](auto& bytes, auto& tally) {
    bytes(tally.runs, tally.cached, tally.crashed, tally.timed_out, tally.unusable, tally.damaged,
          tally.failed, tally.log, tally.cache_problem, tally.timeout);
  };
  Packer packed;
  fields(packed, in_tasks_);
  in_tasks_ = {};
  const auto mine = packed.take();
  std::vector<std::string> shared = ranks_.gather(mine);
  if (part_ && parted_) part_->keep(mine);
  if (merged_ && parted_) shared = merged_->kept();
  for (const auto& bytes : shared) {
    SimulatorTally tally;
    Unpacker from(bytes);
    fields(from, tally);
    all += tally;
  }
  note_tally(all, study_.parameters, purpose_of(stage_, part_name_), results);
}

void Chain::forget_from(const std::string& stage) const {
  std::error_code ignored;
  for (const auto& path : entries(kept_in(options_.folder))) {
    const auto name = path.filename().string();
    const auto& names = stage_names();
    const auto at = std::find(names.begin(), names.end(), name.substr(0, name.find_first_of(".-")));
    if (at != names.end() && at - names.begin() >= static_cast<std::ptrdiff_t>(position(stage)))
      fs::remove(path, ignored);
  }
}

void Chain::forget_others() const {
  if (options_.folder.empty() || !ranks_.first()) return;
  const auto in = [](const std::vector<std::string>& list, const std::string& name) {
    return std::find(list.begin(), list.end(), name) != list.end();
  };
  std::error_code ignored;
  for (const auto& path : entries(kept_in(options_.folder))) {
    if (path.extension() != ".h5" || in(used_, path.string())) continue;
    // Figures of an earlier report would pass for this one's.
    for (const auto& file : reported(path))
      if (!in(outputs_, file)) fs::remove(fs::path(options_.folder) / file, ignored);
    fs::remove(path, ignored);
  }
}

void Chain::note(StageNote::State state, double seconds, const std::string& message) const {
  if (options_.note) options_.note({stage_, part_name_, state, seconds, message});
}

Results& Chain::results() {
  if (latest_) {
    results_ = load_results(latest_->tree().child("results"));
    describe_(results_);
    latest_.reset();
  }
  return results_;
}

std::shared_ptr<Chain::Artifact> Chain::begin(const Step& step,
                                              const std::function<void(const Archive&)>& check) {
  if (!options_.until.empty() && position(step.stage) > position(options_.until)) stopped_ = true;
  if (part_ && position(step.stage) > position("toys")) stopped_ = true;
  if (stopped_) return nullptr;
  check_stop();
  stage_ = step.stage;
  part_name_ = step.part;
  parted_ = step.parted;
  artifact_ = std::make_shared<Artifact>();
  if (options_.folder.empty()) return artifact_;
  const auto name = part_name_.empty() ? stage_ : stage_ + '.' + part_name_;
  fingerprint_ = fmt::format(
      "{:016x}", checksum(fmt::format("{}\n{}\n{}", fingerprint_, name, step.inputs.text())));
  artifact_->path =
      (kept_in(options_.folder) / fmt::format("{}-{}.h5", name, fingerprint_)).string();
  used_.push_back(artifact_->path);
  // Every step, so that parts of another study are refused before anything is done.
  if (merged_) merged_->begin(name, fingerprint_, parted_);
  if (part_) {
    part_->begin(name, fingerprint_);
    // Of the pseudo-experiments only what is done in parts; what of it is kept is done again.
    if (!parted_ && stage_ == "toys") return nullptr;
    if (parted_) return artifact_;
  }
  std::string damage;
  const auto look = [&] {
    if (fs::exists(artifact_->path)) {
      try {
        check_archive(artifact_->path);
        if (check) check(artifact_->tree().child("value"));
        artifact_->kept = true;
      } catch (const FileError& error) {
        damage = error.what();
      }
    }
    return fingerprint_ + (artifact_->kept ? "+" : "-");
  };
  const auto seen = from_first(ranks_, look);
  if (seen.substr(0, seen.size() - 1) != fingerprint_)
    throw FileError("its study, files or neyman are not those of rank 0");
  artifact_->kept = seen.back() == '+';
  if (!damage.empty()) note(StageNote::State::damaged, 0.0, damage);
  if (!artifact_->kept) return artifact_;
  latest_ = artifact_;
  note(StageNote::State::kept);
  return artifact_;
}

void Chain::work(const std::function<void(Results&)>& make,
                 const std::function<void(Archive&)>& save) {
  auto& so_far = results();
  const double start = seconds_now();
  make(so_far);
  note_simulators(so_far);
  const double seconds = seconds_now() - start;
  if (stage_ != stage_names().back())
    so_far.timing.emplace_back(part_name_.empty() ? stage_ : part_name_, seconds);
  if (!options_.folder.empty() && !part_)
    from_first(ranks_, [&] {
      Archive archive;
      save_results(so_far, archive.child("results"));
      save(archive.child("value"));
      make_folder(kept_in(options_.folder).string());
      constexpr int compression = 0;  // simulated numbers hardly become smaller
      write_archive(artifact_->path, archive, artifact_schema, artifact_version, compression);
      return std::string();
    });
  note(StageNote::State::done, seconds);
}

void Chain::step(const Step& step, const std::function<void(Results&)>& make) {
  const auto artifact = begin(step);
  if (artifact && !artifact->kept) work(make, [](Archive&) {});
}

void Chain::skip(const std::string& stage, const std::string& reason) {
  if (!options_.until.empty() && position(stage) > position(options_.until)) stopped_ = true;
  if (stopped_) return;
  stage_ = stage;
  part_name_.clear();
  note(StageNote::State::skipped, 0.0, reason);
}

void Chain::report(const Step& step,
                   const std::function<std::vector<std::string>(Results&)>& write) {
  const fs::path folder(options_.folder);
  const auto sum = [&](const std::string& file) {
    return static_cast<std::int64_t>(file_checksum((folder / file).string()));
  };
  const auto intact = [&](const Archive& value) {
    const auto& files = value.get<std::vector<std::string>>("files");
    const auto& sums = value.get<std::vector<std::int64_t>>("checksums");
    if (sums.size() != files.size())
      throw FileError(fmt::format("{}: its list has {} files, but {} checksums", artifact_->path,
                                  files.size(), sums.size()));
    for (std::size_t i = 0; i < files.size(); ++i) {
      const auto path = folder / file_inside(files[i], artifact_->path);
      if (!fs::is_regular_file(path))
        throw FileError(path.string() + ": is gone since the report wrote it");
      if (sum(files[i]) != sums[i])
        throw FileError(path.string() + ": has changed since the report wrote it");
    }
    outputs_ = files;
  };
  const auto artifact = begin(step, intact);
  if (!artifact || artifact->kept) return;
  const auto write_and_list = [&](Results& results) {
    from_first(ranks_, [&] {
      outputs_.clear();
      for (const auto& file : write(results))
        outputs_.push_back(fs::path(file).lexically_relative(folder).string());
      return std::string();
    });
  };
  work(write_and_list, [&](Archive& archive) {
    std::vector<std::int64_t> sums;
    for (const auto& file : outputs_) sums.push_back(sum(file));
    archive.set("files", outputs_);
    archive.set("checksums", sums);
  });
}

}  // namespace neyman::pipeline
