#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>

#include "data/support.hpp"
#include "neyman/core/progress.hpp"
#include "neyman/data/archive_file.hpp"
#include "neyman/data/atomic_file.hpp"
#include "neyman/pipeline/pipeline.hpp"
#include "neyman/reports/results_json.hpp"
#include "pipeline/folder_lock.hpp"
#include "pipeline/small_study.hpp"

// Runs in a folder: what is kept, what is done again, and that both give the same.
namespace neyman {
namespace {

namespace fs = std::filesystem;
using test::edited;
using test::message_of;
using test::TemporaryFolder;
using Names = std::vector<std::string>;

/// The small study with everything that a mixture can have.
const std::string mixture = test::with("[data]\nevents = 500\n", R"([data]
events = 200

[inference]
levels = [0.683, 0.95]
test = { null = { gamma = 0.1 }, alternative = { gamma = 0.3 }, datasets = 10 }

[ensemble]
datasets = 10
events = 100
at = { gamma = 0.3 }

[compare]
at = { gamma = 0.3 }
classifiers = [{ kind = "logistic" }]
events = 300

[report]
title = "A mixture"
)");

/// One model for two parameters, with everything that such a study can have.
const std::string normal = R"([study]
name = "normal"
seed = 5

[parameters]
mu = { range = [-1, 1], truth = 0.2 }
width = { range = [0.8, 1.25], truth = 1, constraint = { kind = "gaussian", mean = 1, sigma = 0.1 } }

[simulator]
kind = "normal"
mean = "mu"
sigma = "width"

[training]
samples = 2000

[classifier]
kind = "separable"
hidden = []
degree = 2
epochs = 2

[data]
events = 200

[inference]
contours = [["mu", "width"]]
surface = 5
hypotheses = [{ fixed = { mu = 0 }, datasets = 5 }]
test = { null = { mu = 0 }, alternative = { mu = 0.3 }, datasets = 5 }

[ensemble]
datasets = 5
events = 100

[coverage]
datasets = 5
critical_datasets = 5

[diagnostics]
events = 500
which = ["closure"]
)";

/// The same with a classifier that takes θ, calibrated in one of the ways.
std::string with_classifier(const std::string& across) {
  auto text = edited(normal, "kind = \"separable\"\nhidden = []\ndegree = 2\nepochs = 2",
                     "kind = \"logistic\"\n[calibration]\n" + across);
  text = edited(text, "contours = [[\"mu\", \"width\"]]", "contours = []");
  text = edited(text, "hypotheses = [{ fixed = { mu = 0 }, datasets = 5 }]\n", "");
  return edited(text, "[coverage]\ndatasets = 5\ncritical_datasets = 5\n", "");
}

/// A finished run: the notes by state, and results without what may differ between two runs.
struct Outcome {
  Names done, kept, skipped, damaged;
  bool finished = false;
  std::string results, written;
};

std::string without_times(const std::string& json) {
  auto read = nlohmann::ordered_json::parse(json);
  for (const char* key : {"timing", "threads", "command", "version"}) read.erase(key);
  return read.dump(1);
}

Outcome staged(const std::string& text, const std::string& folder, RunOptions options = {},
               const std::string& study_folder = ".") {
  Outcome out;
  options.folder = folder;
  options.figures = false;
  options.note = [&](const StageNote& note) {
    auto& list = note.state == StageNote::State::kept      ? out.kept
                 : note.state == StageNote::State::done    ? out.done
                 : note.state == StageNote::State::skipped ? out.skipped
                                                           : out.damaged;
    list.push_back(note.part.empty() ? note.stage : note.stage + '.' + note.part);
  };
  const auto run_result = run(test::parse(text, study_folder), options);
  out.finished = run_result.finished;
  if (!out.finished) return out;
  out.results = without_times(reports::results_json(run_result.results).text);
  out.written = without_times(read_file((fs::path(folder) / "results.json").string()));
  return out;
}

const Names mixture_steps = {"simulate",     "train",     "calibrate",     "fit",
                             "fit.recovery", "toys.test", "toys.ensemble", "toys.compare",
                             "diagnose",     "report"};

Names from(const std::string& step) {
  return {std::find(mixture_steps.begin(), mixture_steps.end(), step), mixture_steps.end()};
}

TEST(StagedRun, GivesWhatARunInMemoryGivesAndKeepsIt) {
  const std::vector<std::string> studies = {
      mixture, normal, with_classifier("across = \"smooth\""),
      with_classifier("across = \"interpolate\"\nevents = 200\nkind = \"sigmoid\""),
      with_classifier("across = \"on-demand\"\nevents = 200\nkind = \"sigmoid\"")};
  for (const auto& text : studies) {
    const TemporaryFolder folder;
    const auto expected = without_times(reports::results_json(run(test::parse(text)).results).text);
    const auto first = staged(text, folder.path("out"));
    EXPECT_EQ(first.written, expected) << text;
    EXPECT_TRUE(first.kept.empty());
    const auto second = staged(text, folder.path("out"));
    EXPECT_EQ(second.kept, first.done);
    EXPECT_TRUE(second.done.empty());
    EXPECT_EQ(second.results, expected);
    // From what is kept, every later stage gives the same again.
    for (const char* stage : {"calibrate", "fit", "toys", "diagnose", "report"}) {
      RunOptions options;
      options.from = stage;
      const auto again = staged(text, folder.path("out"), options);
      EXPECT_EQ(again.written, expected) << stage << text;
      EXPECT_FALSE(again.kept.empty());
    }
  }
}

TEST(StagedRun, ModelsAreTheSameToTheBit) {
  for (const auto& text : {mixture, normal}) {
    const TemporaryFolder folder;
    staged(text, folder.path("a"));
    staged(text, folder.path("b"));
    const auto model = read_file(folder.path("a/model.h5"));
    EXPECT_TRUE(model == read_file(folder.path("b/model.h5")));
    RunOptions options;
    options.from = "report";
    staged(text, folder.path("b"), options);  // from the model that is kept
    EXPECT_TRUE(model == read_file(folder.path("b/model.h5")));
  }
}

TEST(StagedRun, EachStepGivesTheSameFromThoseBeforeIt) {
  for (const auto& text : {mixture, normal}) {
    const TemporaryFolder folder;
    const auto first = staged(text, folder.path("out"));
    for (const auto& step : first.done) {
      for (const auto& entry : fs::directory_iterator(folder.path("out/stages")))
        if (entry.path().filename().string().starts_with(step + "-") ||
            entry.path().filename().string().starts_with("report-"))
          fs::remove(entry.path());
      const auto again = staged(text, folder.path("out"));
      EXPECT_EQ(again.done, step == "report" ? Names({step}) : Names({step, "report"}));
      EXPECT_EQ(again.written, first.written) << step;
    }
  }
}

TEST(StagedRun, DoesOnlyWhatChanged) {
  const TemporaryFolder folder;
  EXPECT_EQ(staged(mixture, folder.path("out")).done, mixture_steps);
  const auto keep = folder.path("first");
  fs::copy(folder.path("out"), keep, fs::copy_options::recursive);
  const std::vector<std::tuple<const char*, const char*, Names>> edits = {
      {"seed = 3", "seed = 3 # a comment", {}},
      {"folds = 2", "folds = 2.0", {}},
      {"[ensemble]\ndatasets = 10\nevents = 100", "[ensemble]\nevents = 100\ndatasets = 10", {}},
      {"title = \"A mixture\"", "title = \"Another\"", {"report"}},
      {"name = \"small\"", "name = \"other\"", {"report"}},
      {"[diagnostics]\nevents = 400", "[diagnostics]\nevents = 401", from("diagnose")},
      {"classifiers = [{ kind = \"logistic\" }]", "classifiers = [{ kind = \"mlp\", epochs = 1 }]",
       from("toys.compare")},
      {"[ensemble]\ndatasets = 10", "[ensemble]\ndatasets = 11", from("toys.ensemble")},
      {"datasets = 10 }", "datasets = 11 }", from("toys.test")},
      {"levels = [0.683, 0.95]", "levels = [0.683]", from("fit")},
      {"truth = 0.3", "truth = 0.31", from("fit")},
      {"[data]\nevents = 200", "[data]\nevents = 201", from("fit")},
      {"replicas = 10", "replicas = 11", from("calibrate")},
      {"kind = \"logistic\"\n\n[cal", "kind = \"mlp\"\nepochs = 1\n\n[cal", from("train")},
      {"samples = 4001", "samples = 4000", from("simulate")},
      {"gamma = 0.1\n", "gamma = 0.2\n", from("simulate")},
      {"seed = 3", "seed = 4", from("simulate")},
  };
  for (const auto& [old_text, new_text, expected] : edits) {
    fs::remove_all(folder.path("out"));
    fs::copy(keep, folder.path("out"), fs::copy_options::recursive);
    EXPECT_EQ(staged(edited(mixture, old_text, new_text), folder.path("out")).done, expected)
        << new_text;
  }
}

TEST(StagedRun, FollowsSeedAndOrderOfParameters) {
  const TemporaryFolder folder;
  RunOptions options;
  options.until = "simulate";
  const auto simulated = [&](const std::string& text) {
    return !staged(text, folder.path("out"), options).done.empty();
  };
  EXPECT_TRUE(simulated(normal));
  EXPECT_FALSE(simulated(normal));
  const std::string mu = "mu = { range = [-1, 1], truth = 0.2 }\n";
  EXPECT_TRUE(simulated(edited(edited(normal, mu, ""), "\n[simulator]", mu + "\n[simulator]")));
  auto study = test::parse(normal);
  reseed(study, 6);
  options.folder = folder.path("out");
  bool done = false;
  options.note = [&](const StageNote& note) { done = note.state == StageNote::State::done; };
  run(study, options);
  EXPECT_TRUE(done);
  // A study that was made small shares nothing with the whole one.
  done = false;
  quicken(study);
  run(study, options);
  EXPECT_TRUE(done);
}

TEST(StagedRun, FilesCountWithTheirContent) {
  const TemporaryFolder folder;
  const auto text = edited(mixture, "[data]\nevents = 200", "[data]\nfile = \"events.csv\"");
  const auto data = [&](double last) {
    std::string rows = "x\n";
    for (int i = 0; i < 50; ++i) rows += std::to_string(0.1 * i - 1.0) + "\n";
    folder.file("events.csv", rows + std::to_string(last) + "\n");
    return staged(text, folder.path("out"), {}, folder.path("")).done;
  };
  EXPECT_EQ(data(1.0), mixture_steps);
  EXPECT_EQ(data(1.0), Names());
  EXPECT_EQ(data(2.0), from("fit"));
}

TEST(StagedRun, StopsAndGoesOn) {
  const TemporaryFolder folder;
  const auto expected = staged(mixture, folder.path("whole")).written;
  Names done;
  for (const auto& stage : stage_names()) {
    RunOptions options;
    options.until = stage;
    const auto part = staged(mixture, folder.path("parts"), options);
    EXPECT_EQ(part.finished, stage == "report");
    EXPECT_EQ(fs::exists(folder.path("parts/results.json")), stage == "report");
    EXPECT_EQ(part.kept, done);
    done.insert(done.end(), part.done.begin(), part.done.end());
  }
  EXPECT_EQ(done, mixture_steps);
  EXPECT_EQ(staged(mixture, folder.path("parts")).written, expected);
}

TEST(StagedRun, ForgetsWhatItIsAskedTo) {
  const TemporaryFolder folder;
  staged(mixture, folder.path("out"));
  RunOptions options;
  options.from = "toys";
  EXPECT_EQ(staged(mixture, folder.path("out"), options).done, from("toys.test"));
  options.until = "toys";
  EXPECT_EQ(staged(mixture, folder.path("out"), options).done,
            Names({"toys.test", "toys.ensemble", "toys.compare"}));
  EXPECT_EQ(staged(mixture, folder.path("out")).done, from("diagnose"));
  RunOptions fresh;
  fresh.fresh = true;
  EXPECT_EQ(staged(mixture, folder.path("out"), fresh).done, mixture_steps);
  EXPECT_EQ(staged(edited(mixture, "seed = 3", "seed = 4"), folder.path("out")).done,
            mixture_steps);
  // What is no longer used is not kept for ever.
  EXPECT_EQ(static_cast<std::size_t>(std::distance(
                fs::directory_iterator(folder.path("out/stages")), fs::directory_iterator())),
            mixture_steps.size());
}

TEST(StagedRun, StagesOfOneKindAreSkippedInTheOther) {
  const TemporaryFolder folder;
  EXPECT_EQ(staged(normal, folder.path("out")).skipped, Names({"calibrate"}));
  EXPECT_EQ(staged(test::small_study, folder.path("small")).skipped, Names({"toys"}));
  EXPECT_TRUE(staged(mixture, folder.path("mixture")).skipped.empty());
}

TEST(StagedRun, NoDamageIsTrusted) {
  const TemporaryFolder folder;
  const auto out = folder.path("out");
  const auto expected = staged(mixture, out).written;
  for (const auto& entry : fs::directory_iterator(folder.path("out/stages"))) {
    const auto path = entry.path().string();
    const auto whole = read_file(path);
    const auto name = entry.path().filename().string();
    std::vector<std::string> damages = {"", whole.substr(0, whole.size() - 1)};
    for (const std::size_t at : {std::size_t{300}, whole.size() / 3}) {
      damages.push_back(whole);
      damages.back()[at] ^= 0x20;
    }
    for (std::size_t d = 0; d < damages.size(); ++d) {
      std::ofstream(path, std::ios::binary) << damages[d];
      const auto again = staged(mixture, out);
      const Names only = {name.substr(0, name.find('-'))};
      EXPECT_EQ(again.damaged, only) << d;
      EXPECT_EQ(again.done, only) << d;
      EXPECT_EQ(again.written, expected) << name << d;
    }
  }
}

TEST(StagedRun, OutputsThatAreGoneOrChangedAreWrittenAgain) {
  const TemporaryFolder folder;
  const auto expected = staged(mixture, folder.path("out")).written;
  fs::remove(folder.path("out/model.h5"));
  EXPECT_EQ(staged(mixture, folder.path("out")).done, Names({"report"}));
  EXPECT_TRUE(fs::exists(folder.path("out/model.h5")));
  folder.file("out/results.json", "{}");
  const auto again = staged(mixture, folder.path("out"));
  EXPECT_EQ(again.done, Names({"report"}));
  EXPECT_EQ(again.written, expected);
  EXPECT_EQ(staged(mixture, folder.path("out")).done, Names());
}

TEST(StagedRun, RemovesWhatAnEarlierReportWrote) {
  const TemporaryFolder folder;
  const auto on_demand =
      with_classifier("across = \"on-demand\"\nevents = 200\nkind = \"sigmoid\"");
  staged(with_classifier("across = \"smooth\""), folder.path("out"));
  folder.file("out/mine.txt", "mine");
  EXPECT_TRUE(fs::exists(folder.path("out/model.h5")));
  staged(on_demand, folder.path("out"));  // has no model.h5
  EXPECT_FALSE(fs::exists(folder.path("out/model.h5")));
  for (const char* name : {"results.json", "report.html", "mine.txt"})
    EXPECT_TRUE(fs::exists(folder.path(std::string("out/") + name))) << name;
}

/// A stage file of a report that wrote these files, with a seal that holds.
void forge_report(const TemporaryFolder& folder, const Names& files) {
  Archive tree;
  tree.child("value").set("files", files);
  tree.child("value").set("checksums", std::vector<std::int64_t>(files.size(), 0));
  write_archive(folder.path("out/stages/report-0123456789abcdef.h5"), tree, "neyman.stage", 1);
}

TEST(StagedRun, AForeignFolderRemovesNoFileOutsideOfIt) {
  const TemporaryFolder folder;
  staged(test::small_study, folder.path("out"));
  const auto victim = folder.file("victim.txt", "mine");
  fs::create_directory(folder.path("empty"));
  const Names names = {"../victim.txt",   victim,     "figures/../../victim.txt",
                       "./../victim.txt", "../empty", ""};
  for (const auto& name : names) {
    forge_report(folder, {name});
    EXPECT_TRUE(staged(test::small_study, folder.path("out")).finished) << name;
    EXPECT_FALSE(fs::exists(folder.path("out/stages/report-0123456789abcdef.h5")));
    ASSERT_TRUE(fs::exists(victim)) << name;
    ASSERT_TRUE(fs::exists(folder.path("empty"))) << name;
  }
  // The list that is looked at: a file inside goes.
  folder.file("out/old.txt", "of an earlier report");
  forge_report(folder, {"old.txt"});
  staged(test::small_study, folder.path("out"));
  EXPECT_FALSE(fs::exists(folder.path("out/old.txt")));
}

TEST(StagedRun, AForeignFolderLeadsNowhereElse) {
  const TemporaryFolder folder;
  staged(test::small_study, folder.path("out"));
  for (const char* name : {"stages", "figures", "results.json", "model.h5", "stages/fit-1.h5"}) {
    const TemporaryFolder mine;
    mine.file("fit-1.h5", "mine");
    mine.file("paper.tex.12-3.tmp", "mine");
    fs::copy(folder.path("out"), mine.path("out"), fs::copy_options::recursive);
    const auto link = mine.path(std::string("out/") + name);
    fs::remove_all(link);
    const bool of_folder = std::string(name).find('.') == std::string::npos;
    fs::create_symlink(of_folder ? mine.path(".") : mine.path("fit-1.h5"), link);
    EXPECT_CONTAINS(message_of<FileError>([&] { staged(test::small_study, mine.path("out")); }),
                    link + ": is a link");
    EXPECT_EQ(read_file(mine.path("fit-1.h5")), "mine") << name;
    EXPECT_TRUE(fs::exists(mine.path("paper.tex.12-3.tmp"))) << name;
  }
  // The folder itself may be one: that is the user's choice.
  fs::create_directory_symlink(folder.path("out"), folder.path("link"));
  EXPECT_EQ(staged(test::small_study, folder.path("link")).done, Names());
}

TEST(StagedRun, ADamagedReportIsDoneAgainAndToldOf) {
  const TemporaryFolder folder;
  const auto report_of = [&] {
    for (const auto& entry : fs::directory_iterator(folder.path("out/stages")))
      if (entry.path().filename().string().starts_with("report-")) return entry.path().string();
    return std::string();
  };
  staged(test::small_study, folder.path("out"));
  const auto report = report_of();
  const auto whole = read_archive(report, "neyman.stage", 1).tree;
  for (int damage = 0; damage < 4; ++damage) {
    auto tree = whole;
    auto& value = tree.child("value");
    auto files = value.get<Names>("files");
    auto sums = value.get<std::vector<std::int64_t>>("checksums");
    if (damage == 0) sums.pop_back();
    if (damage == 1) sums[0] ^= 1;
    if (damage == 2) files[0] = "../" + files[0];
    if (damage == 3) files[0] = "gone.txt";
    value.set("files", files);
    value.set("checksums", sums);
    write_archive(report, tree, "neyman.stage", 1);
    const auto again = staged(test::small_study, folder.path("out"));
    EXPECT_EQ(again.damaged, Names({"report"})) << damage;
    EXPECT_EQ(again.done, Names({"report"})) << damage;
    EXPECT_EQ(staged(test::small_study, folder.path("out")).done, Names()) << damage;
  }
  folder.file("out/report.html", "edited");
  EXPECT_EQ(staged(test::small_study, folder.path("out")).damaged, Names({"report"}));
}

TEST(StagedRun, AFolderMayMove) {
  const TemporaryFolder folder;
  staged(mixture, folder.path("out"));
  fs::rename(folder.path("out"), folder.path("moved"));
  EXPECT_EQ(staged(mixture, folder.path("moved")).done, Names());
}

TEST(StagedRun, CleansUpAfterAKilledRun) {
  const TemporaryFolder folder;
  for (const char* inside : {"out", "out/stages", "out/figures", "out/figures/.drawing-a1B2c3"})
    fs::create_directory(folder.path(inside));
  const std::vector<const char*> left = {"out/results.json.17-0.tmp", "out/stages/a.h5.2-13.tmp",
                                         "out/figures/.drawing-a1B2c3/1.svg"};
  for (const char* name : left) folder.file(name, "half");
  for (const char* name : {"out/notes.tmp", "out/mine.txt"}) folder.file(name, "mine");
  staged(test::small_study, folder.path("out"));
  for (const char* name : left) EXPECT_FALSE(fs::exists(folder.path(name))) << name;
  EXPECT_FALSE(fs::exists(folder.path("out/figures/.drawing-a1B2c3")));
  for (const char* name : {"out/notes.tmp", "out/mine.txt"})
    EXPECT_EQ(read_file(folder.path(name)), "mine");
}

TEST(StagedRun, InterruptedGoesOnAfterTheLastStage) {
  const TemporaryFolder folder;
  const auto expected = staged(mixture, folder.path("whole")).written;
  RunOptions options;
  options.folder = folder.path("out");
  options.note = [](const StageNote& note) {
    if (note.stage == "fit") request_stop();
  };
  EXPECT_THROW(run(test::parse(mixture), options), Interrupted);
  clear_stop();
  const auto again = staged(mixture, folder.path("out"));
  EXPECT_EQ(again.kept, Names({"simulate", "train", "calibrate", "fit"}));
  EXPECT_EQ(again.written, expected);
}

TEST(StagedRun, OneRunAFolder) {
  const TemporaryFolder folder;
  fs::create_directory(folder.path("out"));
  {
    const pipeline::FolderLock lock(folder.path("out"));
    EXPECT_NE(message_of<FileError>([&] {
                staged(test::small_study, folder.path("out"));
              }).find("another run"),
              std::string::npos);
    EXPECT_EQ(fs::exists(folder.path("out/stages")), false);
  }
  EXPECT_TRUE(staged(test::small_study, folder.path("out")).finished);
}

TEST(StagedRun, RefusesWhatItCannotFollow) {
  const TemporaryFolder folder;
  auto study = test::parse(test::small_study);
  RunOptions options;
  options.from = "trian";
  EXPECT_NE(message_of<ArgumentError>([&] { run(study, options); }).find("did you mean 'train'"),
            std::string::npos);
  options.from.clear();
  options.folder = folder.path("out");
  study.settings.clear();
  EXPECT_NE(message_of<ArgumentError>([&] { run(study, options); }).find("settings"),
            std::string::npos);
  options.folder = folder.file("file", "") + "/out";
  EXPECT_NE(
      message_of<FileError>([&] { run(test::parse(test::small_study), options); }).find("file/out"),
      std::string::npos);
}

}  // namespace
}  // namespace neyman
