

#include "neyman/data/atomic_file.hpp"
#include "neyman/data/writer.hpp"
#include "not_finite.hpp"
#include "support.hpp"

namespace neyman {
namespace {

using test::message_of;
using test::TemporaryFolder;

std::string data_file(const std::string& name) { return NEYMAN_TEST_DATA "/" + name; }

/// An NPY file of version 1 with this dictionary and these bytes behind it.
std::string npy(const std::string& dictionary, const std::string& bytes) {
  std::string file("\x93NUMPY\x01\x00", 8);
  file += static_cast<char>(dictionary.size() & 0xFF);
  file += static_cast<char>(dictionary.size() >> 8);
  return file + dictionary + bytes;
}

std::string npy_error(const std::string& bytes, const ReadOptions& options = {}) {
  const TemporaryFolder folder;
  const std::string path = folder.file("file.npy", bytes);
  const std::string message = message_of<FileError>([&] { read_samples(path, options); });
  const std::size_t name = message.find("file.npy");
  return name == message.npos ? message : message.substr(name);
}

// The files were written by NumPy (write_npy.py in the same folder): rows i, columns j hold
// 10 i + j + 1, for six rows and three columns.
TEST(Npy, FilesOfNumPyInEveryLayout) {
  Matrix expected(6, 3);
  for (std::size_t i = 0; i < 6; ++i) {
    for (std::size_t j = 0; j < 3; ++j) expected(i, j) = static_cast<double>(10 * i + j + 1);
  }
  for (const std::string name : {"f8_c", "f8_fortran", "f8_big_fortran", "f4_c", "f4_big_fortran",
                                 "i1_c", "i2_big_c", "i4_fortran", "i8_c", "u1_c", "u2_fortran",
                                 "u4_big_c", "u8_c", "f8_version2", "f8_version3"}) {
    for (const std::size_t block : {1, 4, 100}) {
      const Samples samples = test::read_in_blocks(data_file(name + ".npy"), {}, block);
      EXPECT_EQ(samples.x, expected) << name << " in blocks of " << block;
      EXPECT_EQ(samples.feature_names, default_feature_names(3));
    }
  }
}

TEST(Npy, OneDimensionIsOneColumn) {
  const Samples samples = read_samples(data_file("f4_vector.npy")).samples;
  EXPECT_EQ(samples.feature_names, (std::vector<std::string>{"x"}));
  EXPECT_EQ(samples.x, Matrix(4, 1, {0.5, -1.5, 2.5, 0.25}));
}

TEST(Npy, ColumnsAreNamedByTheOptions) {
  ReadOptions options;
  options.columns = {"x", "alpha", "run"};
  options.parameters = {"alpha"};
  options.group = "run";
  const Samples samples = read_samples(data_file("i4_fortran.npy"), options).samples;
  EXPECT_EQ(samples.x.column(0), (std::vector<double>{1, 11, 21, 31, 41, 51}));
  EXPECT_EQ(samples.theta.column(0), (std::vector<double>{2, 12, 22, 32, 42, 52}));
  EXPECT_EQ(samples.groups, (std::vector<std::int64_t>{3, 13, 23, 33, 43, 53}));
  options.columns = {"x"};
  EXPECT_CONTAINS(
      message_of<FileError>([&] { read_samples(data_file("i4_fortran.npy"), options); }),
      "has 3 columns, but 1 names were given for them");
}

TEST(Npy, RefusesWhatIsNoTableOfNumbers) {
  const auto error = [](const std::string& name) {
    return message_of<FileError>([&] { read_samples(data_file(name)); });
  };
  EXPECT_CONTAINS(error("structured.npy"), "structured.npy: holds records with fields");
  EXPECT_CONTAINS(error("text.npy"), "holds values of the NumPy type '<U3', but must hold");
  EXPECT_CONTAINS(error("f2.npy"), "holds values of the NumPy type '<f2', but must hold");
  EXPECT_CONTAINS(error("cube.npy"), "has 3 dimensions, but must have 1 or 2");
  EXPECT_CONTAINS(error("scalar.npy"), "has 0 dimensions, but must have 1 or 2");
  EXPECT_CONTAINS(error("no_rows.npy"), "no_rows.npy: has no rows");
  EXPECT_CONTAINS(error("no_columns.npy"), "no_columns.npy: has no columns");
}

TEST(Npy, TruncatedAndForeignFiles) {
  const std::string whole = read_file(data_file("f8_c.npy"));
  EXPECT_EQ(npy_error(""), "file.npy: is empty");
  EXPECT_EQ(npy_error("a,b\n1,2\n3,4\n"), "file.npy: is not an NPY file");
  EXPECT_EQ(npy_error(whole.substr(0, 8)), "file.npy: is not an NPY file");
  EXPECT_EQ(npy_error(whole.substr(0, 50)), "file.npy: is truncated within its header");
  EXPECT_EQ(npy_error(whole.substr(0, whole.size() - 1)),
            "file.npy: is truncated: it has 17 values, but its header says 6 × 3");
  std::string newer = whole;
  newer[6] = 4;
  EXPECT_EQ(npy_error(newer), "file.npy: is NPY version 4.0, but must be 1, 2 or 3");
  const std::string huge =
      "{'descr': '<f8', 'fortran_order': False, 'shape': (4294967296, 4294967296), }\n";
  EXPECT_CONTAINS(npy_error(npy(huge, "12345678")), "is truncated: it has 1 values");
  EXPECT_CONTAINS(npy_error(npy("{'descr': '<f8'}", "")), "its header lacks descr");
  EXPECT_CONTAINS(npy_error(npy("{'descr': '<f8', 'shape': (1,), 'fortran_order': 1}", "")),
                  "fortran_order is neither True nor False");
  EXPECT_CONTAINS(npy_error(npy("no dictionary", "")), "its header lacks a '{'");
}

TEST(Npy, InvalidValuesAreRefusedOrDropped) {
  const TemporaryFolder folder;
  Samples samples;
  samples.feature_names = {"x0", "x1"};
  samples.x = Matrix(3, 2, {1, 2, 3, 4, 5, 6});
  const std::string path = folder.path("file.npy");
  write_samples(path, samples);
  std::string bytes = read_file(path);
  bytes.replace(bytes.size() - 24, 8, reinterpret_cast<const char*>(&nan), 8);  // row 1, x1
  EXPECT_EQ(npy_error(bytes),
            "file.npy: row 1 (counted from 0): column 'x1' is nan, but must be finite");
  ReadOptions options;
  options.on_invalid = OnInvalid::drop;
  options.block_rows = 1;
  const ReadResult result = read_samples(folder.file("nan.npy", bytes), options);
  EXPECT_EQ(result.samples.x, Matrix(2, 2, {1, 2, 5, 6}));
  EXPECT_EQ(result.dropped, 1u);
}

TEST(Npy, GroupsThatADoubleCannotHoldAreRefused) {
  const TemporaryFolder folder;
  Samples samples;
  samples.feature_names = {"x"};
  samples.x = Matrix(1, 1, {1.5});
  samples.groups = {(std::int64_t{1} << 53) + 1};
  EXPECT_CONTAINS(
      message_of<ArgumentError>([&] { write_samples(folder.path("f.npy"), samples); }),
      "write_samples: groups[0] is 9007199254740993, but must be between -2^53 and 2^53");
  EXPECT_EQ(folder.count(), 0u);
  samples.groups = {3};
  write_samples(folder.path("f.npy"), samples);
  ReadOptions options;
  options.group = "x0";
  EXPECT_CONTAINS(message_of<FileError>([&] { read_samples(folder.path("f.npy"), options); }),
                  "row 0 (counted from 0): column 'x0' is 1.5, but must be a whole number");
}

RC_GTEST_PROP(Npy, RoundTripIsExactInBlocksOfAnySize, ()) {
  const TemporaryFolder folder;
  Samples samples = test::arbitrary_samples(
      rc::gen::nonEmpty(rc::gen::container<std::string>(rc::gen::inRange('a', 'd'))),
      (std::int64_t{1} << 53) - 1);
  for (auto& group : samples.groups) group %= std::int64_t{1} << 53;
  const std::string path = folder.path("file.npy");
  write_samples(path, samples);
  ReadOptions options = test::options_for(samples);
  options.columns = samples.feature_names;
  for (const auto& name : samples.parameter_names) options.columns.push_back(name);
  if (samples.weighted()) options.columns.push_back("weight");
  if (!samples.groups.empty()) options.columns.push_back("group");
  RC_ASSERT(test::same_bits(read_samples(path, options).samples, samples));
  const auto block = *rc::gen::inRange<std::size_t>(1, 14);
  RC_ASSERT(test::same_bits(test::read_in_blocks(path, options, block), samples));
}

RC_GTEST_PROP(Npy, ADamagedHeaderIsReadOrRefused, ()) {
  const TemporaryFolder folder;
  std::string bytes = read_file(data_file("f8_c.npy"));
  const auto at = *rc::gen::inRange<std::size_t>(0, 128);
  bytes[at] = *rc::gen::arbitrary<char>();
  const std::string path = folder.file("file.npy", bytes);
  try {
    read_samples(path);
  } catch (const FileError& error) {
    RC_ASSERT(std::string(error.what()).starts_with(path));
  }
}

TEST(Npy, ATransposedTableIsAskedAbout) {
  const TemporaryFolder folder;
  Samples samples;
  samples.x = test::constant(2, 100'000, 1.0);
  samples.feature_names = default_feature_names(100'000);
  const auto path = folder.path("file.npy");
  write_samples(path, samples);
  ReadOptions options;
  options.parameters = {"mu"};
  const auto message = message_of<FileError>([&] { read_samples(path, options); });
  EXPECT_CONTAINS(message, "has no column 'mu'; columns are x0, x1, ");
  EXPECT_CONTAINS(message, ", x9, … and 99990 others");
  EXPECT_LT(message.size(), 300u);
  EXPECT_EQ(read_samples(path).samples.size(), 2u);
  auto bytes = read_file(path);
  bytes.replace(bytes.find("(2, 100000)"), 11, "(1, 200000)");
  EXPECT_CONTAINS(message_of<FileError>([&] { read_samples(folder.file("file.npy", bytes)); }),
                  "has 1 rows and 200000 columns, but must have at most 100000, and a row for each "
                  "event; is it transposed?");
}

}  // namespace
}  // namespace neyman
