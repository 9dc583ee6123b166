#include "neyman/data/atomic_file.hpp"

#include <sys/resource.h>

#include <csignal>

#include "support.hpp"

namespace neyman {
namespace {

using test::message_of;
using test::TemporaryFolder;
namespace fs = std::filesystem;

TEST(AtomicFile, WritesAndReplaces) {
  const TemporaryFolder folder;
  const std::string path = folder.path("a.txt");
  const std::string bytes("one\0two\n", 8);
  write_file_atomically(path, bytes);
  EXPECT_EQ(read_file(path), bytes);
  write_file_atomically(path, "");
  EXPECT_EQ(read_file(path), "");
  const std::string large(5'000'000, 'x');
  write_file_atomically(path, large);
  EXPECT_EQ(read_file(path), large);
  EXPECT_EQ(folder.count(), 1u);
}

TEST(AtomicFile, WithoutCommitNothingChanges) {
  const TemporaryFolder folder;
  const std::string path = folder.file("a.txt", "old");
  {
    AtomicFile file(path);
    file.write("new");
    EXPECT_EQ(read_file(path), "old");
    EXPECT_EQ(folder.count(), 2u);
  }
  EXPECT_EQ(read_file(path), "old");
  EXPECT_EQ(folder.count(), 1u);
}

TEST(AtomicFile, TwoWritersOfOneFileDoNotMix) {
  const TemporaryFolder folder;
  const std::string path = folder.path("a.txt");
  AtomicFile first(path), second(path);
  first.write("first");
  second.write("second");
  second.commit();
  EXPECT_EQ(read_file(path), "second");
  first.commit();
  EXPECT_EQ(read_file(path), "first");
  EXPECT_EQ(folder.count(), 1u);
}

TEST(AtomicFile, FollowsSymbolicLinks) {
  const TemporaryFolder folder;
  const std::string target = folder.file("target.txt", "old"), link = folder.path("link.txt");
  fs::create_symlink(target, link);
  write_file_atomically(link, "new");
  EXPECT_TRUE(fs::is_symlink(link));
  EXPECT_EQ(read_file(target), "new");
}

TEST(AtomicFile, NewFilesHaveTheUsualPermissions) {
  const TemporaryFolder folder;
  const std::string path = folder.path("a.txt"), usual = folder.file("b.txt", "");
  write_file_atomically(path, "a");
  EXPECT_EQ(fs::status(path).permissions(), fs::status(usual).permissions());
}

TEST(AtomicFile, ErrorsNameFileAndReason) {
  const TemporaryFolder folder;
  const std::string missing = folder.path("no/such/a.txt");
  EXPECT_EQ(
      message_of<FileError>([&] { write_file_atomically(missing, "a"); }),
      missing + ": cannot be written: the folder '" + folder.path("no/such") + "' does not exist");
  const std::string beneath_file = folder.file("plain", "") + "/a.txt";
  EXPECT_CONTAINS(message_of<FileError>([&] { write_file_atomically(beneath_file, "a"); }),
                  beneath_file + ": cannot be written");
  fs::create_directory(folder.path("sub"));
  EXPECT_EQ(message_of<FileError>([&] { write_file_atomically(folder.path("sub"), "a"); }),
            folder.path("sub") + ": cannot be written: it is a folder");
  EXPECT_EQ(message_of<FileError>([&] { write_file_atomically("/dev/null", "a"); }),
            "/dev/null: cannot be written: it is not a regular file");
}

TEST(AtomicFile, AFullDiskLeavesTheOldFile) {
  const TemporaryFolder folder;
  const std::string path = folder.file("a.txt", "old");
  // A limit on the size of files stands in for a full disk.
  rlimit before{};
  getrlimit(RLIMIT_FSIZE, &before);
  const auto handler = std::signal(SIGXFSZ, SIG_IGN);
  const rlimit limit{1000, before.rlim_max};
  setrlimit(RLIMIT_FSIZE, &limit);
  const std::string message =
      message_of<FileError>([&] { write_file_atomically(path, std::string(5000, 'x')); });
  setrlimit(RLIMIT_FSIZE, &before);
  std::signal(SIGXFSZ, handler);
  EXPECT_EQ(message, path + ": cannot be written: File too large");
  EXPECT_EQ(read_file(path), "old");
  EXPECT_EQ(folder.count(), 1u);
}

TEST(ReadFile, ErrorsNameTheFile) {
  const TemporaryFolder folder;
  EXPECT_EQ(message_of<FileError>([&] { read_file(folder.path("no")); }),
            folder.path("no") + ": does not exist");
}

}  // namespace
}  // namespace neyman
