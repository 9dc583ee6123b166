#include "pipeline/parts.hpp"

#include <gtest/gtest.h>

#include "data/support.hpp"
#include "neyman/core/error.hpp"

namespace neyman::pipeline {
namespace {

using test::message_of;
using test::TemporaryFolder;

std::string square(std::size_t i) { return std::to_string(i * i); }

/// A part with two loops, of eleven and two tasks, of one step.
std::string make_part(const TemporaryFolder& folder, Part part,
                      const std::string& fingerprint = "f") {
  PartTasks tasks(part);
  tasks.begin("toys.test", fingerprint);
  tasks.run(11, 0, square);
  tasks.run(2, 2, square);
  tasks.keep("kept by " + std::to_string(part.number));
  return tasks.write(folder.path("parts"));
}

TEST(Parts, TogetherHaveTheResultsOfAllTasks) {
  const TemporaryFolder folder;
  for (const std::size_t of : {1, 2, 3, 20}) {
    std::vector<std::string> files;
    for (std::size_t k = of; k > 0; --k) files.push_back(make_part(folder, {k, of}));
    MergedTasks merged(files);
    merged.begin("toys.test", "f", true);
    const auto work = [](std::size_t) -> std::string { throw Error("nothing is left to do"); };
    const auto found = merged.run(11, 0, work);
    for (std::size_t i = 0; i < 11; ++i) EXPECT_EQ(found[i], square(i));
    EXPECT_EQ(merged.run(2, 0, work), (std::vector<std::string>{"0", "1"}));
    const auto kept = merged.kept();
    EXPECT_EQ(kept.size(), of);
    EXPECT_EQ(kept.back(), "kept by " + std::to_string(of));
  }
}

TEST(Parts, DoOnlyTheirOwn) {
  PartTasks tasks({2, 3});
  tasks.begin("toys.test", "f");
  EXPECT_EQ(tasks.run(6, 0, square), (std::vector<std::string>{"", "1", "", "", "16", ""}));
  EXPECT_EQ(tasks.run(1, 0, square), std::vector<std::string>{""});
  EXPECT_FALSE(tasks.empty());
  EXPECT_TRUE(PartTasks({1, 1}).empty());
}

TEST(Parts, RefuseWhatDoesNotBelongTogether) {
  const TemporaryFolder folder, other;
  const auto one = make_part(folder, {1, 3}), two = make_part(folder, {2, 3});
  const auto three = make_part(folder, {3, 3}), of_two = make_part(folder, {1, 2});
  const auto changed = make_part(other, {3, 3}, "another");
  const auto merge = [](const std::vector<std::string>& files) {
    return message_of<FileError>([&] { MergedTasks tasks(files); });
  };
  EXPECT_EQ(merge({}), "merge: no parts were given");
  EXPECT_EQ(merge({one}), "merge: of 3 parts 2 are missing: 2, 3");
  EXPECT_EQ(merge({one, three}), "merge: of 3 parts one is missing: 2");
  EXPECT_EQ(merge({one, two, one}), one + ": is part 1, and so is " + one);
  EXPECT_EQ(merge({two, of_two}), of_two + ": is part 1 of 2, but " + two + " is one of 3");

  MergedTasks merged({one, two, changed});
  EXPECT_EQ(
      message_of<FileError>([&] { merged.begin("toys.test", "f", true); }),
      changed +
          ": its 'toys.test' was made with another study, seed, data or neyman than this one");
  EXPECT_EQ(message_of<FileError>([&] { merged.begin("toys.coverage", "f", true); }),
            one + ": has not done 'toys.coverage', which the study asks for");
  EXPECT_NO_THROW(merged.begin("report", "f", false));
  MergedTasks whole({one, two, three});
  whole.begin("toys.test", "f", true);
  EXPECT_EQ(message_of<FileError>([&] { whole.run(12, 0, square); }),
            one + ": has 11 tasks in 'toys.test', but must have 12");
}

}  // namespace
}  // namespace neyman::pipeline
