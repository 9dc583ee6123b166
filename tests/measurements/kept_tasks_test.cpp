#include "neyman/measurements/kept_tasks.hpp"

#include <fmt/format.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <atomic>
#include <filesystem>
#include <fstream>

#include "known_models.hpp"
#include "neyman/core/error.hpp"
#include "neyman/core/parallel.hpp"
#include "neyman/measurements/toys.hpp"

namespace neyman {
namespace {

class KeptTasksTest : public ::testing::Test {
 protected:
  KeptTasksTest() { std::filesystem::create_directories(folder_); }
  ~KeptTasksTest() override { std::filesystem::remove_all(folder_); }
  std::string file(const std::string& name) const { return (folder_ / name).string(); }

 private:
  std::filesystem::path folder_ = std::filesystem::temp_directory_path() /
                                  fmt::format("neyman_kept_{}", static_cast<int>(getpid()));
};

std::string square(std::size_t task) { return fmt::format("{}", task * task); }

std::vector<std::string> squares(std::size_t count) {
  std::vector<std::string> out;
  for (std::size_t i = 0; i < count; ++i) out.push_back(square(i));
  return out;
}

TEST_F(KeptTasksTest, GoesOnAfterAnError) {
  std::atomic<std::size_t> calls{0};
  set_threads(1);
  {
    KeptTasks tasks(file("a"), "squares");
    EXPECT_EQ(tasks.left(20), 20u);
    EXPECT_THROW(tasks.run(20, 0,
                           [&](std::size_t task) {
                             if (++calls == 8) throw Error("killed");
                             return square(task);
                           }),
                 Error);
  }
  const std::size_t before = calls - 1;
  calls = 0;
  KeptTasks tasks(file("a"), "squares");
  EXPECT_EQ(tasks.left(20), 20 - before);
  EXPECT_EQ(tasks.run(20, 0, [&](std::size_t task) { return ++calls, square(task); }), squares(20));
  EXPECT_EQ(calls, 20 - before);
  set_threads(0);
  // Another loop is another matter, though its tasks have the same numbers.
  EXPECT_EQ(tasks.left(3), 3u);
  EXPECT_EQ(tasks.run(3, 0, [](std::size_t) { return std::string("x"); }),
            std::vector<std::string>(3, "x"));
}

TEST_F(KeptTasksTest, RecordsThatAreNotWholeAreDoneAgain) {
  { KeptTasks(file("a"), "squares").run(10, 0, square); }
  const auto size = std::filesystem::file_size(file("a"));
  for (const std::size_t cut : {1, 5, 17, 40}) {
    std::filesystem::resize_file(file("a"), size - cut);
    KeptTasks tasks(file("a"), "squares");
    EXPECT_GT(tasks.left(10), 0u);
    EXPECT_LT(tasks.left(10), 3u);
    EXPECT_EQ(tasks.run(10, 0, square), squares(10));
  }
  EXPECT_EQ(std::filesystem::file_size(file("a")), size);
  // A changed byte in the middle: all from there on.
  {
    std::fstream content(file("a"), std::ios::in | std::ios::out | std::ios::binary);
    content.seekp(static_cast<std::streamoff>(size / 2));
    content.put('?');
  }
  KeptTasks tasks(file("a"), "squares");
  EXPECT_GT(tasks.left(10), 2u);
  EXPECT_EQ(tasks.run(10, 0, square), squares(10));
}

TEST_F(KeptTasksTest, PartsAreMerged) {
  for (std::size_t k = 1; k <= 3; ++k) {
    KeptTasks part(file(fmt::format("p{}", k)), "squares", {k, 3});
    const auto own = part.run(8, 0, square);
    for (std::size_t task = 0; task < 8; ++task)
      EXPECT_EQ(own[task], task % 3 == k - 1 ? square(task) : "");
  }
  MergedKeptTasks merged({file("p3"), file("p1"), file("p2")});
  EXPECT_EQ(merged.about(), "squares");
  const auto nobody = [](std::size_t) -> std::string { throw Error("done again"); };
  EXPECT_EQ(merged.run(8, 0, nobody), squares(8));
}

std::string message_of_file_error(const std::function<void()>& work) {
  try {
    work();
  } catch (const FileError& error) {
    return error.what();
  }
  return "no error";
}

TEST_F(KeptTasksTest, RefusesWhatDoesNotFit) {
  { KeptTasks(file("p1"), "squares", {1, 2}).run(5, 0, square); }
  EXPECT_NE(message_of_file_error([&] {
              KeptTasks(file("p1"), "cubes", {1, 2});
            }).find("another workspace"),
            std::string::npos);
  EXPECT_NE(message_of_file_error([&] {
              KeptTasks(file("p1"), "squares", {2, 2});
            }).find("is part 1 of 2, but must be part 2 of 2"),
            std::string::npos);
  EXPECT_NE(message_of_file_error([&] { KeptTasks(file("no/where"), "x"); }).find("No such file"),
            std::string::npos);
  EXPECT_THROW(KeptTasks(file("x"), "x", {3, 2}), ArgumentError);
  {
    KeptTasks at_work(file("p1"), "squares", {1, 2});
    EXPECT_NE(message_of_file_error([&] {
                KeptTasks(file("p1"), "squares", {1, 2});
              }).find("another process"),
              std::string::npos);
  }
  std::ofstream(file("text")) << "some text that is longer than a heading would be";
  EXPECT_NE(message_of_file_error([&] { KeptTasks(file("text"), "x"); }).find("holds no tasks"),
            std::string::npos);

  EXPECT_EQ(message_of_file_error([&] { MergedKeptTasks({file("p1")}); }),
            "merge: of 2 parts these are missing: 2");
  EXPECT_NE(message_of_file_error([&] {
              MergedKeptTasks({file("p1"), file("p1")});
            }).find("is part 1, and so is"),
            std::string::npos);
  { KeptTasks(file("p2"), "squares", {2, 2}).run(3, 0, square); }
  MergedKeptTasks unfinished({file("p1"), file("p2")});
  EXPECT_NE(
      message_of_file_error([&] { unfinished.run(5, 0, square); }).find("p2: is not finished"),
      std::string::npos);
  { KeptTasks(file("other"), "cubes", {2, 2}).run(5, 0, square); }
  EXPECT_NE(message_of_file_error([&] {
              MergedKeptTasks({file("p1"), file("other")});
            }).find("another workspace"),
            std::string::npos);
}

TEST_F(KeptTasksTest, ToysAreTheSameHoweverTheyAreMade) {
  const auto model = testing::reference_model("counting");
  const std::vector<double> values{0.5, 1.5, 3.0, 6.0};
  ToyOptions options;
  options.toys = 300;  // not a multiple of a block
  options.seed = 3;
  const auto limit = [&](Tasks* tasks) {
    options.tasks = tasks;
    return toy_upper_limit(model, model.observed(), values, 0.9, TestStatistic::q_tilde, options);
  };
  const auto alone = limit(nullptr);
  const auto expect_same = [&](const ToyLimit& other) {
    EXPECT_EQ(alone.observed, other.observed);
    EXPECT_EQ(alone.expected, other.expected);
    for (std::size_t i = 0; i < values.size(); ++i) {
      EXPECT_EQ(alone.tests[i].cl_s.value, other.tests[i].cl_s.value);
      EXPECT_EQ(alone.tests[i].failed, other.tests[i].failed);
    }
  };
  {
    KeptTasks kept(file("all"), "toys");
    expect_same(limit(&kept));
  }
  KeptTasks again(file("all"), "toys");
  EXPECT_EQ(again.left(values.size() * 2 * 5), 0u);
  expect_same(limit(&again));

  std::vector<std::string> parts;
  for (std::size_t k = 1; k <= 3; ++k) {
    parts.push_back(file(fmt::format("part{}", k)));
    KeptTasks part(parts.back(), "toys", {k, 3});
    options.tasks = &part;
    simulate_limit_toys(model, model.observed(), values, TestStatistic::q_tilde, options);
  }
  MergedKeptTasks merged(parts);
  expect_same(limit(&merged));

  options.tasks = nullptr;
  const auto interval =
      feldman_cousins(model, model.observed(), {0.0, 0.5, 1, 2, 4, 8}, 0.68, options);
  KeptTasks unified(file("fc"), "unified");
  options.tasks = &unified;
  const auto kept = feldman_cousins(model, model.observed(), {0.0, 0.5, 1, 2, 4, 8}, 0.68, options);
  EXPECT_EQ(interval.p_values, kept.p_values);
  EXPECT_EQ(interval.high, kept.high);
}

}  // namespace
}  // namespace neyman
