#include "data/hdf5.hpp"

#include <sys/resource.h>

#include <csignal>
#include <thread>

#include "neyman/data/atomic_file.hpp"
#include "neyman/data/writer.hpp"
#include "not_finite.hpp"
#include "support.hpp"

namespace neyman {
namespace {

using test::message_of;
using test::TemporaryFolder;

/// A foreign HDF5 file, written with HDF5's own functions.
class ForeignFile {
 public:
  explicit ForeignFile(const std::string& path)
      : file_(H5Fcreate(path.c_str(), H5F_ACC_TRUNC, H5P_DEFAULT, H5P_DEFAULT), H5Fclose) {}

  template <class T>
  void dataset(const std::string& name, hid_t type, const std::vector<hsize_t>& extents,
               const std::vector<T>& values) {
    const hdf5::Id space = hdf5::simple_space(extents);
    const hdf5::Id links(H5Pcreate(H5P_LINK_CREATE), H5Pclose);
    H5Pset_create_intermediate_group(links, 1);
    const hdf5::Id id(H5Dcreate2(file_, name.c_str(), type, space, links, H5P_DEFAULT, H5P_DEFAULT),
                      H5Dclose);
    ASSERT_GE(H5Dwrite(id, type, H5S_ALL, H5S_ALL, H5P_DEFAULT, values.data()), 0);
  }

  /// The attribute `columns` of an object, with texts of variable length as h5py writes them.
  void columns(const std::string& object, const std::vector<const char*>& names) {
    const hdf5::Id owner(H5Oopen(file_, object.c_str(), H5P_DEFAULT), H5Oclose);
    const hdf5::Id type(H5Tcopy(H5T_C_S1), H5Tclose);
    H5Tset_size(type, H5T_VARIABLE);
    const hdf5::Id space = hdf5::simple_space({names.size()});
    const hdf5::Id id(H5Acreate2(owner, "columns", type, space, H5P_DEFAULT, H5P_DEFAULT),
                      H5Aclose);
    ASSERT_GE(H5Awrite(id, type, names.data()), 0);
  }
  hid_t id() const { return file_; }

 private:
  hdf5::Id file_;
};

std::string hdf5_error(const std::string& path, const ReadOptions& options = {}) {
  const std::string message = message_of<FileError>([&] { read_samples(path, options); });
  const std::size_t name = message.find("file.h5");
  return name == message.npos ? message : message.substr(name);
}

TEST(Hdf5, AGroupOrADatasetIsNamedBehindAColon) {
  const TemporaryFolder folder;
  const std::string path = folder.path("file.h5");
  {
    ForeignFile file(path);
    file.dataset<double>("run1/events", H5T_NATIVE_DOUBLE, {2, 2}, {1, 2, 3, 4});
    file.columns("run1/events", {"a", "b"});
    file.dataset<double>("run2/x", H5T_NATIVE_DOUBLE, {2}, {5, 6});
    file.dataset<double>("run2/y", H5T_NATIVE_DOUBLE, {2}, {7, 8});
  }
  const auto one = read_samples(path + ":run1/events").samples;
  EXPECT_EQ(one.feature_names, (std::vector<std::string>{"a", "b"}));
  EXPECT_EQ(one.x, Matrix(2, 2, {1, 2, 3, 4}));
  EXPECT_EQ(read_samples(path + ":run2").samples.x, Matrix(2, 2, {5, 7, 6, 8}));
  EXPECT_EQ(file_columns(path + ":run2"), (std::vector<std::string>{"x", "y"}));
  EXPECT_CONTAINS(hdf5_error(path + ":run3"), "has no dataset or group 'run3'");
  // And as the option says.
  ReadOptions options;
  options.dataset = "run2";
  EXPECT_EQ(read_samples(path, options).samples.x, Matrix(2, 2, {5, 7, 6, 8}));
  EXPECT_CONTAINS(hdf5_error(path + ":run1/events", options), "there must be one");
}

TEST(Hdf5, TableWithNamedColumns) {
  const TemporaryFolder folder;
  const std::string path = folder.path("file.h5");
  {
    ForeignFile file(path);
    file.dataset<float>("events", H5T_NATIVE_FLOAT, {3, 2}, {1, 2, 3, 4, 5, 6});
    file.columns("events", {"x", "alpha"});
  }
  ReadOptions options;
  options.parameters = {"alpha"};
  for (const std::size_t block : {1, 2, 3, 50}) {
    const Samples samples = test::read_in_blocks(path, options, block);
    EXPECT_EQ(samples.feature_names, (std::vector<std::string>{"x"}));
    EXPECT_EQ(samples.x, Matrix(3, 1, {1, 3, 5}));
    EXPECT_EQ(samples.theta, Matrix(3, 1, {2, 4, 6}));
  }
}

TEST(Hdf5, TableWithoutNames) {
  const TemporaryFolder folder;
  const std::string path = folder.path("file.h5");
  ForeignFile(path).dataset<std::int64_t>("data", H5T_NATIVE_INT64, {2, 2},
                                          {1, 9223372036854775807, 3, -4});
  ReadOptions options;
  options.group = "x1";
  EXPECT_EQ(read_samples(path, options).samples.groups,
            (std::vector<std::int64_t>{9223372036854775807, -4}));
  options.columns = {"a", "b"};
  options.group = "b";
  EXPECT_EQ(read_samples(path, options).samples.feature_names, (std::vector<std::string>{"a"}));
}

TEST(Hdf5, OneDatasetForEachColumn) {
  const TemporaryFolder folder;
  const std::string path = folder.path("file.h5");
  {
    ForeignFile file(path);
    file.dataset<double>("run/y", H5T_NATIVE_DOUBLE, {2}, {1, 2});
    file.dataset<std::uint32_t>("run/a", H5T_NATIVE_UINT32, {2}, {3, 4});
    file.dataset<double>("other/z", H5T_NATIVE_DOUBLE, {3}, {1, 2, 3});
  }
  ReadOptions options;
  EXPECT_EQ(hdf5_error(path), "file.h5: has no datasets; name one, or their group");
  options.dataset = "run";
  EXPECT_EQ(read_samples(path, options).samples.feature_names,
            (std::vector<std::string>{"a", "y"}));
  EXPECT_EQ(read_samples(path, options).samples.x, Matrix(2, 2, {3, 1, 4, 2}));
  options.group = "a";
  EXPECT_EQ(read_samples(path, options).samples.groups, (std::vector<std::int64_t>{3, 4}));
  options = {};
  options.dataset = "other/z";
  EXPECT_EQ(read_samples(path, options).samples.x, Matrix(3, 1, {1, 2, 3}));
  options.dataset = "missing";
  EXPECT_EQ(hdf5_error(path, options),
            "file.h5: has no dataset or group 'missing'; at the root are other, run");
}

TEST(Hdf5, TheOrderOfColumnsIsKept) {
  const TemporaryFolder folder;
  const std::string path = folder.path("file.h5");
  {
    ForeignFile file(path);
    file.dataset<double>("b", H5T_NATIVE_DOUBLE, {1}, {2});
    file.dataset<double>("a", H5T_NATIVE_DOUBLE, {1}, {1});
    file.dataset<double>("ignored", H5T_NATIVE_DOUBLE, {7}, std::vector<double>(7));
    file.columns("/", {"b", "a"});
  }
  EXPECT_EQ(file_columns(path), (std::vector<std::string>{"b", "a"}));
}

TEST(Hdf5, BrokenLayoutsSayWhatIsWrong) {
  const TemporaryFolder folder;
  const std::string path = folder.path("file.h5");
  {
    ForeignFile file(path);
    file.dataset<double>("a", H5T_NATIVE_DOUBLE, {2}, {1, 2});
    file.dataset<double>("b", H5T_NATIVE_DOUBLE, {3}, {1, 2, 3});
  }
  EXPECT_EQ(hdf5_error(path), "file.h5: dataset 'b' has 3 rows, but must have 2 (as 'a')");
  {
    ForeignFile file(path);
    file.dataset<double>("a", H5T_NATIVE_DOUBLE, {2}, {1, 2});
    file.dataset<double>("t", H5T_NATIVE_DOUBLE, {2, 2}, {1, 2, 3, 4});
  }
  EXPECT_EQ(hdf5_error(path),
            "file.h5: dataset 't' has 2 dimensions, but must have 1 where there are several "
            "datasets; name the one to read, of a, t");
  {
    ForeignFile file(path);
    file.dataset<double>("t", H5T_NATIVE_DOUBLE, {2, 2}, {1, 2, 3, 4});
    file.columns("t", {"a"});
  }
  EXPECT_EQ(hdf5_error(path), "file.h5: its attribute 'columns' has 1 names, but must have 2");
  {
    ForeignFile file(path);
    file.dataset<double>("a", H5T_NATIVE_DOUBLE, {2}, {1, 2});
    file.columns("/", {"a", "b"});
  }
  EXPECT_EQ(hdf5_error(path),
            "file.h5: its attribute 'columns' names 'b', but there is no such dataset");
  {
    ForeignFile file(path);
    const hdf5::Id type(H5Tcreate(H5T_COMPOUND, 8), H5Tclose);
    H5Tinsert(type, "f", 0, H5T_NATIVE_DOUBLE);
    file.dataset<double>("records", type, {2}, {1, 2});
  }
  EXPECT_CONTAINS(hdf5_error(path), "file.h5: holds records with fields (a compound type)");
  {
    ForeignFile file(path);
    const hdf5::Id type = hdf5::text_type(1);
    file.dataset<char>("note", type, {2}, {'a', 'b'});
    file.dataset<double>("x", H5T_NATIVE_DOUBLE, {2}, {1, 2});
  }
  EXPECT_EQ(hdf5_error(path), "file.h5: column 'note' does not hold numbers");
  ReadOptions options;
  options.features = {"x"};
  EXPECT_EQ(read_samples(path, options).samples.x, Matrix(2, 1, {1, 2}));
  ForeignFile(path).dataset<double>("x", H5T_NATIVE_DOUBLE, {0}, {});
  EXPECT_EQ(hdf5_error(path), "file.h5: has no rows");
  {
    ForeignFile file(path);
    H5Lcreate_external("/etc/elsewhere.h5", "/x", file.id(), "x", H5P_DEFAULT, H5P_DEFAULT);
  }
  EXPECT_EQ(hdf5_error(path), "file.h5: 'x' is a link to elsewhere, which is not followed");
}

TEST(Hdf5, InvalidValuesAreRefusedOrDropped) {
  const TemporaryFolder folder;
  const std::string path = folder.path("file.h5");
  {
    ForeignFile file(path);
    file.dataset<double>("a", H5T_NATIVE_DOUBLE, {3}, {1, 2, 3});
    file.dataset<double>("b", H5T_NATIVE_DOUBLE, {3}, {1, 2, -infinity});
  }
  ReadOptions options;
  options.block_rows = 2;
  EXPECT_EQ(hdf5_error(path, options),
            "file.h5: row 2 (counted from 0): column 'b' is -inf, but must be finite");
  options.on_invalid = OnInvalid::drop;
  EXPECT_EQ(read_samples(path, options).dropped, 1u);
}

TEST(Hdf5, ForeignAndDamagedFiles) {
  const TemporaryFolder folder;
  EXPECT_EQ(hdf5_error(folder.file("file.h5", "")), "file.h5: is empty");
  EXPECT_EQ(hdf5_error(folder.file("file.h5", "a,b\n1,2\n")), "file.h5: is not an HDF5 file");
  Samples samples;
  samples.feature_names = {"x"};
  samples.x = test::constant(50'000, 1, 0.25);
  for (std::size_t i = 0; i < samples.size(); ++i) samples.x(i, 0) = 1.0 / (1.0 + double(i));
  const std::string path = folder.path("file.h5");
  write_samples(path, samples);
  const std::string whole = read_file(path);
  EXPECT_CONTAINS(hdf5_error(folder.file("file.h5", whole.substr(0, whole.size() / 2))),
                  "file.h5: is a damaged HDF5 file (HDF5: ");
  std::string flipped = whole;
  flipped[flipped.size() / 2] ^= 1;  // inside the values, which are most of the file
  EXPECT_CONTAINS(hdf5_error(folder.file("file.h5", flipped)),
                  "of column 'x' cannot be read (HDF5: ");
}

TEST(Hdf5, NamesThatHdf5CannotHoldAreRefused) {
  const TemporaryFolder folder;
  Samples samples;
  samples.x = test::constant(1, 1, 1.0);
  for (const std::string name : {"a/b", ".", "/"}) {
    samples.feature_names = {name};
    EXPECT_CONTAINS(
        message_of<ArgumentError>([&] { write_samples(folder.path("file.h5"), samples); }),
        "write_samples: column name is '" + name + "', but must be without a slash");
  }
  EXPECT_EQ(folder.count(), 0u);
}

TEST(Hdf5, ThousandsOfColumns) {
  const TemporaryFolder folder;
  Samples samples;
  for (int i = 0; i < 3000; ++i) {
    samples.feature_names.push_back("a_rather_long_name_of_a_column_" + std::to_string(i));
  }
  samples.x = test::constant(2, 3000, 0.5);
  const std::string path = folder.path("file.h5");
  write_samples(path, samples);
  EXPECT_EQ(read_samples(path).samples, samples);
}

TEST(Hdf5, AFullDiskIsAnError) {
  const TemporaryFolder folder;
  const std::string path = folder.path("file.h5");
  Samples samples;
  samples.feature_names = {"x"};
  samples.x = test::constant(100'000, 1, 0.25);
  WriteOptions options;
  options.compression = 0;
  // A limit on the size of files stands in for a full disk.
  rlimit before{};
  getrlimit(RLIMIT_FSIZE, &before);
  const auto handler = std::signal(SIGXFSZ, SIG_IGN);
  const rlimit limit{100'000, before.rlim_max};
  setrlimit(RLIMIT_FSIZE, &limit);
  const std::string message = message_of<FileError>([&] { write_samples(path, samples, options); });
  setrlimit(RLIMIT_FSIZE, &before);
  std::signal(SIGXFSZ, handler);
  EXPECT_CONTAINS(message, "file.h5: cannot be written");
  EXPECT_EQ(folder.count(), 0u);
  write_samples(path, samples, options);
  EXPECT_EQ(read_samples(path).samples, samples);
}

TEST(Hdf5, ThreadsMayReadAndWriteAtOnce) {
  const TemporaryFolder folder;
  std::vector<std::thread> threads;
  std::vector<int> failures(4, 0);
  for (std::size_t t = 0; t < failures.size(); ++t) {
    threads.emplace_back([&, t] {
      Samples samples;
      samples.feature_names = {"x"};
      samples.x = test::constant(2000, 1, static_cast<double>(t));
      const std::string path = folder.path(std::to_string(t) + ".h5");
      for (int i = 0; i < 10; ++i) {
        write_samples(path, samples);
        if (read_samples(path).samples != samples) ++failures[t];
      }
    });
  }
  for (auto& thread : threads) thread.join();
  EXPECT_EQ(failures, std::vector<int>(4, 0));
}

RC_GTEST_PROP(Hdf5, RoundTripIsExactInBlocksOfAnySize, ()) {
  const TemporaryFolder folder;
  const auto name = rc::gen::suchThat(
      rc::gen::container<std::string>(rc::gen::arbitrary<char>()), [](const std::string& text) {
        return !text.empty() && text != "weight" && text != "group" && text != "." &&
               text.find('/') == text.npos && text.find('\0') == text.npos;
      });
  const Samples samples = test::arbitrary_samples(name, INT64_MAX);
  const std::string path = folder.path("file.h5");
  write_samples(path, samples);
  const ReadOptions options = test::options_for(samples);
  RC_ASSERT(test::same_bits(read_samples(path, options).samples, samples));
  const auto block = *rc::gen::inRange<std::size_t>(1, 14);
  RC_ASSERT(test::same_bits(test::read_in_blocks(path, options, block), samples));
}

}  // namespace
}  // namespace neyman
