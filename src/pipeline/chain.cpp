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
const char* purpose_of(const std::string& stage) {
  if (stage == "fit") return "data";
  return position(stage) < position("fit") ? "training" : "tests and checks";
}

/// The files that a report wrote; none of another step, or where its list is damaged.
std::vector<std::string> reported(const fs::path& artifact) {
  if (!artifact.filename().string().starts_with(stage_names().back() + '-')) return {};
  try {
    const auto tree = read_archive(artifact.string(), artifact_schema, artifact_version).tree;
    return tree.child("value").get<std::vector<std::string>>("files");
  } catch (const FileError&) {
    return {};
  }
}

}  // namespace

const Archive& Chain::Artifact::tree() {
  if (!content) content = read_archive(path, artifact_schema, artifact_version).tree;
  return *content;
}

Chain::Chain(const Study& study, const RunOptions& options, std::function<void(Results&)> describe)
    : study_(study), options_(options), describe_(std::move(describe)) {
  describe_(results_);
  if (!options.until.empty()) position(options.until);
  if (!options.from.empty()) position(options.from);
  if (options.folder.empty()) return;
  if (study.settings.empty())
    throw ArgumentError(
        "run: the study has no settings, but must have been read from a file or a text to be run "
        "in a folder");
  fingerprint_ = fmt::format("neyman {} {} {}\nseed {}\n", neyman::version(), artifact_version,
                             program(), study.seed);
  make_folder(options.folder);
  lock_.emplace(options.folder);
  clean_up(options.folder);
  if (options.fresh || !options.from.empty())
    forget_from(options.fresh ? stage_names().front() : options.from);
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
  if (options_.folder.empty()) return;
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
  if (options_.note) options_.note({stage_, part_, state, seconds, message});
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
                                              const std::function<bool(const Archive&)>& valid) {
  if (!options_.until.empty() && position(step.stage) > position(options_.until)) stopped_ = true;
  if (stopped_) return nullptr;
  check_stop();
  stage_ = step.stage;
  part_ = step.part;
  artifact_ = std::make_shared<Artifact>();
  if (options_.folder.empty()) return artifact_;
  const auto name = part_.empty() ? stage_ : stage_ + '.' + part_;
  fingerprint_ = fmt::format(
      "{:016x}", checksum(fmt::format("{}\n{}\n{}", fingerprint_, name, step.inputs.text())));
  artifact_->path =
      (kept_in(options_.folder) / fmt::format("{}-{}.h5", name, fingerprint_)).string();
  used_.push_back(artifact_->path);
  if (!fs::exists(artifact_->path)) return artifact_;
  try {
    check_archive(artifact_->path);
    artifact_->kept = !valid || valid(artifact_->tree().child("value"));
  } catch (const FileError& error) {
    note(StageNote::State::damaged, 0.0, error.what());
  }
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
  note_simulator(study_, purpose_of(stage_), so_far);
  const double seconds = seconds_now() - start;
  if (stage_ != stage_names().back())
    so_far.timing.emplace_back(part_.empty() ? stage_ : part_, seconds);
  if (!options_.folder.empty()) {
    Archive archive;
    save_results(so_far, archive.child("results"));
    save(archive.child("value"));
    make_folder(kept_in(options_.folder).string());
    constexpr int compression = 0;  // simulated numbers hardly become smaller
    write_archive(artifact_->path, archive, artifact_schema, artifact_version, compression);
  }
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
  part_.clear();
  note(StageNote::State::skipped, 0.0, reason);
}

void Chain::report(const Step& step,
                   const std::function<std::vector<std::string>(Results&)>& write) {
  const fs::path folder(options_.folder);
  const auto sum = [&](const std::string& file) {
    return static_cast<std::int64_t>(file_checksum((folder / file).string()));
  };
  const auto intact = [&](const Archive& value) {
    outputs_ = value.get<std::vector<std::string>>("files");
    const auto& sums = value.get<std::vector<std::int64_t>>("checksums");
    for (std::size_t i = 0; i < outputs_.size(); ++i)
      if (!fs::is_regular_file(folder / outputs_[i]) || sum(outputs_[i]) != sums.at(i))
        return false;
    return true;
  };
  const auto artifact = begin(step, intact);
  if (!artifact || artifact->kept) return;
  const auto write_and_list = [&](Results& results) {
    outputs_.clear();
    for (const auto& file : write(results))
      outputs_.push_back(fs::path(file).lexically_relative(folder).string());
  };
  work(write_and_list, [&](Archive& archive) {
    std::vector<std::int64_t> sums;
    for (const auto& file : outputs_) sums.push_back(sum(file));
    archive.set("files", outputs_);
    archive.set("checksums", sums);
  });
}

}  // namespace neyman::pipeline
