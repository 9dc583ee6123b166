#include "neyman/data/sample_stream.hpp"

#include <algorithm>
#include <map>
#include <numeric>

#include "neyman/core/parallel.hpp"
#include "neyman/data/splits.hpp"
#include "neyman/data/writer.hpp"
#include "support.hpp"

namespace neyman {
namespace {

using test::message_of;
using test::TemporaryFolder;

/// Row i is (i, −i).
Samples numbered(std::size_t rows) {
  Samples out;
  out.feature_names = {"a", "b"};
  out.x = Matrix(rows, 2);
  for (std::size_t i = 0; i < rows; ++i) {
    out.x(i, 0) = static_cast<double>(i);
    out.x(i, 1) = -static_cast<double>(i);
  }
  return out;
}

std::string write(const TemporaryFolder& folder, const std::string& name, const Samples& samples) {
  write_samples(folder.path(name), samples);
  return folder.path(name);
}

std::vector<std::int64_t> sorted(std::vector<std::int64_t> groups) {
  std::sort(groups.begin(), groups.end());
  return groups;
}

std::vector<std::int64_t> first_numbers(std::size_t count) {
  std::vector<std::int64_t> out(count);
  std::iota(out.begin(), out.end(), std::int64_t{0});
  return out;
}

std::vector<std::int64_t> groups_of_epoch(const SampleStream& stream, std::size_t epoch,
                                          std::size_t windows) {
  std::vector<std::int64_t> out;
  for (std::size_t w = 0; w < windows; ++w) {
    const auto events = stream.window({7, epoch, w, windows});
    out.insert(out.end(), events.groups.begin(), events.groups.end());
  }
  return out;
}

TEST(SampleStream, WindowsOfAnEpochHoldEveryEventOnce) {
  const TemporaryFolder folder;
  for (const char* name : {"events.npy", "events.h5"}) {
    const SampleStream stream({{write(folder, name, numbered(1003))}}, {});
    EXPECT_EQ(stream.rows(), 1003U);
    // With 100 windows most stretches are empty or have one row.
    for (const std::size_t windows : {1U, 3U, 100U}) {
      const auto first = groups_of_epoch(stream, 0, windows);
      EXPECT_EQ(sorted(first), first_numbers(1003)) << name << windows;
      EXPECT_EQ(groups_of_epoch(stream, 0, windows), first);
      EXPECT_NE(groups_of_epoch(stream, 1, windows), first);
    }
    // Without names in the file, or with them: column 0 is the number of the row.
    const auto events = stream.window({7, 2, 1, 3});
    for (std::size_t i = 0; i < events.size(); ++i) {
      EXPECT_EQ(events.x(i, 0), static_cast<double>(events.groups[i]));
      EXPECT_EQ(events.x(i, 1), -events.x(i, 0));
    }
    // About a third of the rows, from all over the file.
    EXPECT_NEAR(static_cast<double>(events.size()), 1003 / 3.0, SampleStream::stretches);
    const auto [low, high] = std::minmax_element(events.groups.begin(), events.groups.end());
    EXPECT_LT(*low, 300);
    EXPECT_GT(*high, 700);
  }
}

TEST(SampleStream, ReadsWhatTheReaderReads) {
  const TemporaryFolder folder;
  auto samples = numbered(500);
  samples.weights.resize(500);
  for (std::size_t i = 0; i < 500; ++i) {
    samples.weights[i] = 0.5 + static_cast<double>(i);
    samples.groups.push_back(static_cast<std::int64_t>(i / 3));
  }
  samples.parameter_names = {"alpha"};
  samples.theta = test::constant(500, 1, 0.25);
  const auto file = write(folder, "events.h5", samples);
  const SampleStream stream({{file}}, test::options_for(samples));
  EXPECT_EQ(stream.read(0, 500), samples);
  const std::vector<std::size_t> some = {17, 18, 19};
  EXPECT_EQ(stream.read(17, 20), samples.take(some));
  EXPECT_EQ(stream.feature_names(), samples.feature_names);
}

TEST(SampleStream, FilesFollowEachOtherAndHaveTheirTheta) {
  const TemporaryFolder folder;
  const auto a = write(folder, "a.npy", numbered(40)), b = write(folder, "b.npy", numbered(25));
  const SampleStream stream({{a, {0.5}}, {b, {1.5}}}, {}, {"alpha"});
  EXPECT_EQ(stream.rows(), 65U);
  const auto events = stream.read(35, 50);
  ASSERT_EQ(events.size(), 15U);
  EXPECT_EQ(events.parameter_names, std::vector<std::string>{"alpha"});
  for (std::size_t i = 0; i < 15; ++i) {
    EXPECT_EQ(events.groups[i], static_cast<std::int64_t>(35 + i));
    EXPECT_EQ(events.theta(i, 0), i < 5 ? 0.5 : 1.5);
    EXPECT_EQ(events.x(i, 0), static_cast<double>(i < 5 ? 35 + i : i - 5));
  }
  EXPECT_EQ(sorted(groups_of_epoch(stream, 0, 4)), first_numbers(65));
}

TEST(SampleStream, LeavesOutWhatTheHashSays) {
  const TemporaryFolder folder;
  SampleStream stream({{write(folder, "events.npy", numbered(2000))}}, {});
  stream.leave_out(0.3, 11);
  std::vector<std::int64_t> expected;
  for (std::int64_t i = 0; i < 2000; ++i)
    if (hashed(i, 11) >= 0.3) expected.push_back(i);
  EXPECT_EQ(stream.read(0, 2000).groups, expected);
  EXPECT_EQ(sorted(groups_of_epoch(stream, 3, 5)), expected);
}

TEST(SampleStream, IsReadByManyThreads) {
  const TemporaryFolder folder;
  for (const char* name : {"events.npy", "events.h5"}) {
    const SampleStream stream({{write(folder, name, numbered(4000))}}, {});
    std::vector<std::int64_t> sums(64);
    parallel_tasks(sums.size(), [&](std::size_t w) {
      const auto events = stream.window({1, w, 0, 1});
      for (const double value : events.x.column(0)) sums[w] += static_cast<std::int64_t>(value);
    });
    EXPECT_EQ(sums, std::vector<std::int64_t>(64, 4000 * 3999 / 2));
  }
}

TEST(SampleStream, SaysWhatCannotBeUsed) {
  const TemporaryFolder folder;
  const auto csv = write(folder, "events.csv", numbered(3));
  const auto npy = write(folder, "events.npy", numbered(3));
  auto other = numbered(3);
  other.feature_names = {"a", "c"};
  const auto hdf5 = write(folder, "events.h5", numbered(3));
  const auto different = write(folder, "other.h5", other);
  EXPECT_CONTAINS(message_of<FileError>([&] { SampleStream({{csv}}, {}); }),
                  "is a CSV file, which is read from the top to the end");
  EXPECT_CONTAINS(message_of<FileError>([&] {
                    SampleStream({{hdf5}, {different}}, {});
                  }),
                  "other.h5: has the features a, c, but");
  ReadOptions drop;
  drop.on_invalid = OnInvalid::drop;
  EXPECT_CONTAINS(message_of<ArgumentError>([&] { SampleStream({{npy}}, drop); }),
                  "on_invalid is drop, but must be refuse");
  EXPECT_CONTAINS(message_of<ArgumentError>([&] { SampleStream({}, {}); }), "number of tables");
  const SampleStream stream({{npy}}, {});
  EXPECT_CONTAINS(message_of<ArgumentError>([&] { stream.read(0, 4); }), "rows is 3");
  EXPECT_CONTAINS(message_of<ArgumentError>([&] { stream.window({0, 0, 2, 2}); }), "count is 2");
  // A file that has become shorter.
  write(folder, "events.npy", numbered(2));
  EXPECT_CONTAINS(message_of<FileError>([&] { stream.read(1, 3); }), "1 rows from row 1 on");
}

}  // namespace
}  // namespace neyman
