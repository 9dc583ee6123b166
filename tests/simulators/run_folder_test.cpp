#include "simulators/run_folder.hpp"

#include <gtest/gtest.h>
#include <signal.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <string>

#include "neyman/core/error.hpp"

namespace neyman::detail {
namespace {

namespace fs = std::filesystem;

class RunFolderTest : public testing::Test {
 protected:
  void SetUp() override {
    auto name = (fs::temp_directory_path() / "neyman-folders-XXXXXX").string();
    folder = ::mkdtemp(name.data());
    const char* before = std::getenv("TMPDIR");
    temporary = before == nullptr ? "" : before;
  }
  void TearDown() override {
    temporary.empty() ? unsetenv("TMPDIR") : setenv("TMPDIR", temporary.c_str(), 1);
    fs::remove_all(folder);
  }

  /// The folder of a run whose neyman was killed.
  fs::path left() const {
    const pid_t child = ::fork();
    if (child == 0) {
      const RunFolder run(folder.string());
      std::ofstream(run.path() / "events.csv") << "x\n1\n";
      ::raise(SIGKILL);
    }
    ::waitpid(child, nullptr, 0);
    for (const auto& entry : fs::directory_iterator(folder)) return entry.path();
    return {};
  }

  fs::path folder;
  std::string temporary;
};

TEST_F(RunFolderTest, BelongsToOneRunAlone) {
  fs::path one, other;
  {
    const RunFolder first((folder / "new").string()), second((folder / "new").string());
    one = first.path();
    other = second.path();
    EXPECT_NE(one, other);
    for (const auto& path : {one, other}) {
      EXPECT_EQ(path.parent_path(), folder / "new");
      struct stat status {};
      ASSERT_EQ(::lstat(path.c_str(), &status), 0);
      EXPECT_EQ(status.st_mode & 0777u, 0700u);
      EXPECT_EQ(status.st_uid, ::geteuid());
      EXPECT_TRUE(fs::is_empty(path));
    }
    std::ofstream(one / "events.csv") << "x\n";
  }
  EXPECT_FALSE(fs::exists(one));
  EXPECT_FALSE(fs::exists(other));
}

TEST_F(RunFolderTest, IsAmongTheTemporaryFilesWhereNothingElseCanBeWritten) {
  std::ofstream(folder / "file") << "no folder";
  setenv("TMPDIR", folder.c_str(), 1);
  EXPECT_EQ(RunFolder("").path().parent_path(), folder);
  EXPECT_EQ(RunFolder((folder / "file").string()).path().parent_path(), folder);
  setenv("TMPDIR", (folder / "gone").c_str(), 1);
  EXPECT_THROW(RunFolder(""), FileError);
}

TEST_F(RunFolderTest, WhatAKilledRunLeftIsRemovedAndNothingElse) {
  const auto gone = left();
  ASSERT_TRUE(fs::exists(gone / "events.csv"));
  const auto like = [&](const std::string& end) {
    const auto name = gone.filename().string();
    return folder / (name.substr(0, name.size() - 6) + end);
  };
  const RunFolder alive(folder.string());
  fs::create_directories(folder / "neyman-run-another-machine-abcdef");
  fs::create_directories(folder / "run-of-my-own");
  fs::create_directories(folder / "mine");
  fs::create_directory_symlink(folder / "mine", like("LinkTo"));
  std::ofstream(like("aFile1")) << "a file";
  remove_left_folders(folder.string());
  EXPECT_FALSE(fs::exists(gone));
  for (const auto& path :
       {alive.path(), folder / "neyman-run-another-machine-abcdef", folder / "run-of-my-own",
        folder / "mine", like("LinkTo"), like("aFile1")})
    EXPECT_TRUE(fs::exists(path)) << path;
  // What another machine has left cannot be told from a run but by its age.
  const auto old = fs::file_time_type::clock::now() - std::chrono::hours(8 * 24);
  fs::last_write_time(folder / "neyman-run-another-machine-abcdef", old);
  fs::last_write_time(alive.path(), old);
  remove_left_folders(folder.string());
  EXPECT_FALSE(fs::exists(folder / "neyman-run-another-machine-abcdef"));
  EXPECT_TRUE(fs::exists(alive.path()));
}

TEST_F(RunFolderTest, OfAnotherUserStays) {
  if (::geteuid() != 0) GTEST_SKIP() << "only root can give a folder to another user";
  const auto other = left();
  ASSERT_EQ(::chown(other.c_str(), 65534, 65534), 0);
  remove_left_folders(folder.string());
  EXPECT_TRUE(fs::exists(other));
}

}  // namespace
}  // namespace neyman::detail
