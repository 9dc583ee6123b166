#include <gtest/gtest.h>

#include <filesystem>

#include "data/support.hpp"
#include "neyman/data/atomic_file.hpp"
#include "neyman/pipeline/pipeline.hpp"
#include "pipeline/small_study.hpp"

namespace neyman {
namespace {

namespace fs = std::filesystem;

TEST(WriteOutputs, WritesTheModelOnlyWhereGiven) {
  const test::TemporaryFolder folder;
  auto done = run(test::parse(test::small_study));
  const auto with_model = folder.path("deep/er"), without = folder.path("plain");
  write_outputs(done.results, &done.model, with_model, false);
  write_outputs(done.results, nullptr, without, false);
  for (const auto& out : {with_model, without}) {
    EXPECT_TRUE(fs::exists(fs::path(out) / "results.json"));
    EXPECT_TRUE(fs::exists(fs::path(out) / "report.html"));
    EXPECT_FALSE(fs::exists(fs::path(out) / "figures"));
  }
  EXPECT_TRUE(fs::exists(fs::path(with_model) / "model.h5"));
  EXPECT_FALSE(fs::exists(fs::path(without) / "model.h5"));
}

TEST(WriteOutputs, ReplacesWhatIsThere) {
  const test::TemporaryFolder folder;
  folder.file("results.json", "old");
  auto done = run(test::parse(test::small_study));
  write_outputs(done.results, nullptr, folder.path(""), false);
  EXPECT_NE(read_file(folder.path("results.json")), "old");
  EXPECT_EQ(folder.count(), 3u);  // and report.html, run.log
}

TEST(WriteOutputs, NamesTheFolderThatCannotBeMade) {
  const test::TemporaryFolder folder;
  const auto path = folder.file("file", "") + "/out";
  auto done = run(test::parse(test::small_study));
  EXPECT_NE(test::message_of<FileError>([&] {
              write_outputs(done.results, nullptr, path, false);
            }).find(path),
            std::string::npos);
}

}  // namespace
}  // namespace neyman
