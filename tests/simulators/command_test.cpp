#include "neyman/simulators/command.hpp"

#include <gtest/gtest.h>
#include <signal.h>
#include <unistd.h>

#include <chrono>
#include <cmath>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <thread>

#include "neyman/core/parallel.hpp"
#include "neyman/core/progress.hpp"
#include "neyman/data/samples.hpp"
#include "neyman/data/settings_file.hpp"
#include "neyman/simulators/design.hpp"
#include "neyman/simulators/plugin.hpp"
#include "simulators/reference.hpp"

// The program (plugins/simulate.cpp) draws the same events from a seed as the plugin does.
namespace neyman {
namespace {

namespace fs = std::filesystem;

const ParameterSpace command_space({{"alpha", -3, 3, 1.0}, {"gamma", 0, 1, {}}});
const std::vector<double> command_point{2.0, 0.5};

/// A folder of its own (with a space in its name) and a file that counts the program's calls.
class CommandTest : public testing::Test {
 protected:
  void SetUp() override {
    folder = fs::temp_directory_path() / ("neyman command " + std::to_string(getpid()));
    fs::remove_all(folder);
    fs::create_directories(folder);
    fs::copy_file(std::string(NEYMAN_TEST_PLUGINS) + "/simulate", folder / "simulate");
    setenv("NEYMAN_TEST_CALLS", (folder / "calls").c_str(), 1);
  }
  void TearDown() override {
    clear_stop();
    unsetenv("NEYMAN_TEST_CALLS");
    fs::remove_all(folder);
  }

  Command::Config config(const std::string& mode) const {
    Command::Config out;
    out.command = {"./simulate", mode, "{alpha}", "{gamma}", "{n}", "{seed}", "{output}"};
    out.folder = folder.string();
    out.columns = {"mass", "time"};
    out.timeout = 0.4;
    out.retries = 0;
    out.trial = 0;
    return out;
  }
  Command make(const std::string& mode) const { return Command(config(mode), command_space); }

  /// What happened in calls so far: "seed process" each.
  std::vector<std::string> calls() const {
    std::ifstream file(folder / "calls");
    std::vector<std::string> out;
    for (std::string line; std::getline(file, line);) out.push_back(line);
    return out;
  }

  std::string failure_of(const std::string& mode) const {
    try {
      sample(make(mode), command_point, 10, 1, "test");
    } catch (const SimulatorError& error) {
      return error.what();
    }
    return "";
  }

  std::string problem_of(const std::string& toml,
                         const ParameterSpace& parameters = command_space) const {
    auto settings = parse_settings("kind = \"command\"\n" + toml, "study.toml");
    EXPECT_EQ(make_distribution(settings, parameters, folder.string()), nullptr) << toml;
    return settings.problems().empty() ? "" : to_string(settings.problems().front());
  }

  fs::path folder;
};

#define EXPECT_CONTAINS(text, part) EXPECT_TRUE(reference::contains(text, part)) << (text)

TEST_F(CommandTest, DrawsWhatTheProgramWrites) {
  const auto command = make("csv");
  EXPECT_EQ(command.dimension(), 2u);
  // One run draws what the same program in the plugin draws from its seed.
  Matrix x(50, 2), y(50, 2);
  RandomStream random(1, "test"), same(1, "test");
  command.sample(command_point, random, x);
  const auto seed = same.bits() & 0x7fffffff;
  ASSERT_EQ(calls().size(), 1u);
  EXPECT_EQ(calls()[0].substr(0, calls()[0].find(' ')), std::to_string(seed));
  EXPECT_EQ(random.bits(), same.bits());
}

TEST_F(CommandTest, ReadsEveryFormAndHeader) {
  const auto x = sample(make("csv"), command_point, 30, 1, "test");
  for (const auto* mode : {"noheader", "columns"})
    EXPECT_EQ(sample(make(mode), command_point, 30, 1, "test"), x) << mode;
  auto npy = config("npy");
  npy.format = FileFormat::npy;
  EXPECT_EQ(sample(Command(npy, command_space), command_point, 30, 1, "test"), x);
  auto prints = config("print");
  prints.command.back() = "-";
  EXPECT_EQ(sample(Command(prints, command_space), command_point, 30, 1, "test"), x);
}

TEST_F(CommandTest, ATrialRunTellsTheColumns) {
  auto settings = config("csv");
  settings.columns.clear();
  settings.trial = 5;
  const Command command(settings, command_space);
  EXPECT_EQ(command.feature_names(), (std::vector<std::string>{"mass", "time"}));
  EXPECT_EQ(calls().size(), 1u);
  EXPECT_EQ(command.take_tally().runs, 0u);
}

TEST_F(CommandTest, IsTheSameForAnyNumberOfThreadsAndJobs) {
  const auto command = make("csv");
  auto many = config("csv");
  many.jobs = 7;
  set_threads(1);
  const auto x = simulate(command, command_space, Design(command_space), 5000, 3, "training");
  const auto y = simulate(Command(many, command_space), command_space, Design(command_space), 5000,
                          3, "training");
  set_threads(0);
  ASSERT_EQ(x.size(), 5000u);
  EXPECT_EQ(x, y);
  EXPECT_EQ(x.feature_names, (std::vector<std::string>{"mass", "time"}));
  EXPECT_EQ(x.theta(0, 0), x.theta(999, 0));
  EXPECT_NE(x.theta(0, 0), x.theta(1000, 0));
}

TEST_F(CommandTest, FailuresSayWhatWhereAndHow) {
  const auto crash = failure_of("crash");
  EXPECT_CONTAINS(crash, "exit status 3 at alpha = 2, gamma = 0.5, n = 10, seed = ");
  EXPECT_CONTAINS(crash, "\n  command: ./simulate crash 2 0.5 10 ");
  EXPECT_CONTAINS(crash, "\n    the table of seed ");
  EXPECT_CONTAINS(failure_of("signal"), "killed by signal 11 (Segmentation fault) at alpha = 2");
  EXPECT_CONTAINS(failure_of("nothing"), "wrote no file {output} at alpha = 2");
  EXPECT_CONTAINS(failure_of("empty"), "wrote an empty file {output}");
  EXPECT_CONTAINS(failure_of("few"), "wrote 9 rows, but must write n = 10");
  EXPECT_CONTAINS(failure_of("nan"), "wrote what cannot be used: {output}:4");
  auto other = config("csv");
  other.columns = {"mass", "energy"};
  try {
    sample(Command(other, command_space), command_point, 10, 1, "test");
    FAIL();
  } catch (const SimulatorError& error) {
    EXPECT_CONTAINS(std::string(error.what()), "energy");
    EXPECT_CONTAINS(std::string(error.what()), "mass, time");
  }
}

TEST_F(CommandTest, ATimeLimitKillsTheWholeGroup) {
  const double start = seconds_now();
  EXPECT_CONTAINS(failure_of("hang"), "took longer than timeout = 0.4 s at alpha = 2");
  EXPECT_LT(seconds_now() - start, 5.0);
  // The process group is gone: neither the program nor its child is left.
  const auto call = calls().at(0);
  const int leader = std::stoi(call.substr(call.find(' ')));
  for (int i = 0; i < 100 && ::kill(-leader, 0) == 0; ++i)
    std::this_thread::sleep_for(std::chrono::milliseconds(20));
  EXPECT_NE(::kill(-leader, 0), 0);
}

TEST_F(CommandTest, AStopKillsAtOnce) {
  auto settings = config("hang");
  settings.timeout = 1000;
  const Command command(settings, command_space);
  std::thread stopper([&] {
    for (int i = 0; i < 500 && calls().empty(); ++i)
      std::this_thread::sleep_for(std::chrono::milliseconds(10));
    request_stop();
  });
  const double start = seconds_now();
  EXPECT_THROW(sample(command, command_point, 10, 1, "test"), Interrupted);
  EXPECT_LT(seconds_now() - start, 8.0);
  stopper.join();
  clear_stop();
}

TEST_F(CommandTest, RetriesWithOtherSeedsAndCounts) {
  auto settings = config("often");
  settings.retries = 6;
  settings.events_per_run = 10;
  const Command command(settings, command_space);
  const auto x = simulate(command, command_space, Design(command_space), 600, 5, "training");
  EXPECT_EQ(x.size(), 600u);
  const auto tally = command.take_tally();
  EXPECT_EQ(tally.runs, 60u);
  EXPECT_EQ(tally.failed.size(), 0u);
  EXPECT_GT(tally.crashed, 0u);
  EXPECT_EQ(calls().size(), 60 + tally.failures());
  ASSERT_EQ(tally.warnings(command_space).size(), 1u);
  EXPECT_CONTAINS(tally.warnings(command_space)[0],
                  "the simulator failed in " + std::to_string(tally.failures()) + " of " +
                      std::to_string(60 + tally.failures()) + " runs");
  ASSERT_FALSE(tally.log.empty());
  EXPECT_CONTAINS(tally.log[0], "the table of seed");
  EXPECT_EQ(command.take_tally().failures(), 0u);
}

// With α uniform in [−3, 3], a sixth of the runs cannot be made.
TEST_F(CommandTest, RunsThatFailForGoodAreLeftOutWhereTolerated) {
  auto settings = config("above");
  settings.events_per_run = 10;
  settings.retries = 1;
  settings.tolerate = 0.4;
  const Command command(settings, command_space);
  const auto x = simulate(command, command_space, Design(command_space), 600, 5, "training");
  const auto tally = command.take_tally();
  ASSERT_GT(tally.failed.size(), 2u);
  EXPECT_EQ(x.size(), 600 - 10 * tally.failed.size());
  EXPECT_EQ(tally.crashed, 2 * tally.failed.size());
  for (const auto& failed : tally.failed) EXPECT_GT(failed[0], 2.0);
  for (std::size_t i = 0; i < x.size(); ++i) EXPECT_LE(x.theta(i, 0), 2.0);
  ASSERT_EQ(tally.warnings(command_space).size(), 2u);
  EXPECT_CONTAINS(tally.warnings(command_space)[1],
                  "failed with every seed and are left out, at (alpha = 2");
  settings.tolerate = 0.01;
  try {
    simulate(Command(settings, command_space), command_space, Design(command_space), 600, 5,
             "training");
    FAIL();
  } catch (const SimulatorError& error) {
    EXPECT_CONTAINS(std::string(error.what()), "raise simulator.tolerate");
    EXPECT_CONTAINS(std::string(error.what()), "exit status 4 at alpha = 2");
  }
}

TEST_F(CommandTest, ACacheSavesRunsAndTheirFailures) {
  auto settings = config("often");
  settings.retries = 6;
  settings.events_per_run = 10;
  const auto run = [&](const Command& command) {
    command.set_cache_folder((folder / "cache").string());
    return simulate(command, command_space, Design(command_space), 600, 5, "training");
  };
  const Command first(settings, command_space), second(settings, command_space);
  const auto x = run(first);
  const auto made = calls().size();
  EXPECT_EQ(run(second), x);
  EXPECT_EQ(calls().size(), made);
  const auto before = first.take_tally(), after = second.take_tally();
  EXPECT_EQ(after.cached, 60u);
  EXPECT_EQ(after.warnings(command_space), before.warnings(command_space));
  EXPECT_EQ(after.log, before.log);
  // Nothing but results is left.
  std::vector<fs::path> files;
  for (const auto& entry : fs::directory_iterator(folder / "cache")) {
    EXPECT_EQ(entry.path().extension(), ".run");
    files.push_back(entry.path());
  }
  ASSERT_EQ(files.size(), 60u);
  // Damaged in three ways: cut short, one bit, another run's content.
  fs::resize_file(files[0], fs::file_size(files[0]) - 1);
  {
    std::fstream file(files[1], std::ios::in | std::ios::out | std::ios::binary);
    file.seekp(-5, std::ios::end);
    file.put('?');
  }
  fs::copy_file(files[3], files[2], fs::copy_options::overwrite_existing);
  const Command third(settings, command_space);
  EXPECT_EQ(run(third), x);
  const auto repaired = third.take_tally();
  EXPECT_EQ(repaired.damaged, 3u);
  EXPECT_EQ(repaired.cached, 57u);
  // A program that has changed is another.
  std::ofstream(folder / "simulate", std::ios::app) << "\n";
  const Command changed(settings, command_space);
  EXPECT_EQ(run(changed), x);
  EXPECT_EQ(changed.take_tally().cached, 0u);
}

TEST_F(CommandTest, ACacheThatCannotBeWrittenLosesNothing) {
  std::ofstream(folder / "cache") << "a file, not a folder";
  const auto command = make("csv");
  const auto x = sample(command, command_point, 10, 1, "test");
  command.set_cache_folder((folder / "cache").string());
  EXPECT_EQ(sample(command, command_point, 10, 1, "test"), x);
  const auto tally = command.take_tally();
  EXPECT_EQ(tally.cached, 0u);
  ASSERT_EQ(tally.warnings(command_space).size(), 1u);
  EXPECT_CONTAINS(tally.warnings(command_space)[0], "could not be kept for the next time: ");
}

TEST_F(CommandTest, StudiesAreCheckedByOneTrialRun) {
  auto settings = parse_settings(R"(kind = "command"
command = ["./simulate", "csv", "{alpha}", "{gamma}", "{n}", "{seed}", "{output}"]
events_per_run = 50
jobs = 2
timeout = 5
retries = 1
tolerate = 0.2)",
                                 "study.toml");
  const auto made = make_distribution(settings, command_space, folder.string());
  settings.refuse_unread();
  settings.throw_if_problems();
  EXPECT_EQ(calls().size(), 1u);
  EXPECT_EQ(made->runs().events, 50u);
  EXPECT_EQ(made->runs().at_once, 2u);
  EXPECT_EQ(made->runs().tolerate, 0.2);
  EXPECT_EQ(made->depends_on(0), true);
}

TEST_F(CommandTest, ProblemsOfStudies) {
  const std::string rest = ", \"{n}\", \"{seed}\", \"{output}\"]";
  EXPECT_CONTAINS(problem_of(""), "command is missing, but must be a list of words");
  EXPECT_CONTAINS(problem_of("command = \"./simulate {n}\""),
                  "study.toml:2: command is a text, but must be a list of words");
  EXPECT_CONTAINS(problem_of("command = [\"./absent\"" + rest),
                  "absent: there is no such file; names are relative to the study");
  EXPECT_CONTAINS(problem_of("command = [\"neyman-absent\"" + rest),
                  "neyman-absent: no program of this name is on PATH");
  EXPECT_CONTAINS(problem_of("command = [\"simulate\"" + rest), "here \"./simulate\"");
  std::ofstream(folder / "script.py") << "print(1)\n";
  EXPECT_CONTAINS(problem_of("command = [\"./script.py\"" + rest),
                  "may not be executed; run chmod");
  EXPECT_CONTAINS(problem_of("command = [\"./simulate\", \"{aplha}\"" + rest),
                  "{aplha}: 'aplha' is not a placeholder; candidates are alpha, gamma, n, seed, ");
  EXPECT_CONTAINS(problem_of("command = [\"./simulate\", \"{n}\"]"), "has no {seed}, but must");
  EXPECT_CONTAINS(problem_of("command = [\"./simulate\", \"{seed}\"]"), "has no {n}, but must");
  EXPECT_CONTAINS(problem_of("command = [\"./simulate\", \"{n\", \"{seed}\"]"), "a lonely {");
  EXPECT_CONTAINS(problem_of("command = [\"./simulate\", \"crash\", \"{alpha}\", \"{gamma}\"" +
                             rest + "\nretries = 1"),
                  "command fails in a trial run: exit status 3 at alpha = 1, gamma = 0.5, n = 10");
  EXPECT_CONTAINS(problem_of("trial = 0\ncommand = [\"./simulate\"" + rest), "columns is missing");
  EXPECT_CONTAINS(problem_of("depends = [\"absent.csv\"]\ncommand = [\"./simulate\"" + rest),
                  "absent.csv: is named in depends, but there is no such file");
  EXPECT_CONTAINS(
      problem_of("command = [\"./simulate\"" + rest, ParameterSpace({{"seed", 0, 1, {}}})),
      "a parameter is \"seed\", but must be named otherwise");
  fs::permissions(folder / "script.py", fs::perms::owner_all);
  EXPECT_CONTAINS(problem_of("command = [\"./script.py\"" + rest + "\nretries = 0"),
                  "could not be started: Exec format error");
}

TEST_F(CommandTest, BracesAndParametersInOneWord) {
  auto settings = config("csv");
  settings.command = {"./simulate", "csv", "{alpha}", "{gamma}", "{n}", "{seed}", "{output}"};
  settings.command[2] = "{alpha}0";  // "20" for α = 2: text is replaced, not parsed
  const auto x = sample(Command(settings, command_space), command_point, 400, 1, "test");
  double mean = 0.0;
  for (std::size_t i = 0; i < 400; ++i) mean += x(i, 0) / 400;
  EXPECT_NEAR(mean, 20.0, 0.5);
  EXPECT_EQ(make("csv").depends_on(1), true);
  settings.command[3] = "0";
  EXPECT_EQ(Command(settings, command_space).depends_on(1), false);
}

}  // namespace
}  // namespace neyman
