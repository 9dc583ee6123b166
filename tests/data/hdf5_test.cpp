#include "data/hdf5.hpp"

#include <sys/resource.h>

#include <csignal>
#include <thread>

#include "neyman/core/progress.hpp"
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

TEST(Hdf5, DamagedFilesEndNoProgramAndGiveNoZeros) {
  // Each of them ended the program, took all memory or was read as zeros.
  const TemporaryFolder folder;
  const std::vector<std::pair<std::string, std::string>> expected = {
      {"h5_h5pygz_values_1372", "does not hold numbers"},
      {"h5_neyman_values_4768", "'x2' has no values for its rows 0 to 2999"},
      {"samples_hang", "claims 17420387352816 bytes in a file of 4318"},
      {"samples_heap_overread", "has only 128 of its 240 bytes"},
      {"samples_oom_names", "does not hold numbers"},
      {"samples_sigsegv_1", "does not hold numbers"},
      {"samples_sigsegv_2", "is a damaged HDF5 file"},
      {"sparse", "claims 1600000000000 bytes in a file of 6144"},
      {"wide",
       "has 3 rows and 8589934592 columns, but must have at most 100000, and a row for each "
       "event; is it transposed?"}};
  for (const auto& [name, message] : expected) {
    const auto path = NEYMAN_TEST_DATA "/hostile/" + name + ".h5";
    EXPECT_CONTAINS(hdf5_error(folder.file("file.h5", read_file(path))), message);
  }
}

TEST(Hdf5, WhatWasNeverWrittenIsNotZero) {
  const TemporaryFolder folder;
  const std::string path = folder.path("file.h5");
  const std::vector<double> values(300, 1.5);
  const auto write = [&](hsize_t chunk, bool compressed, std::size_t written) {
    const ForeignFile file(path);
    const hdf5::Id space = hdf5::simple_space({1000}), memory = hdf5::simple_space({100});
    const hdf5::Id layout(H5Pcreate(H5P_DATASET_CREATE), H5Pclose);
    if (chunk > 0) H5Pset_chunk(layout, 1, &chunk);
    if (compressed) H5Pset_deflate(layout, 1);
    const hdf5::Id dataset(
        H5Dcreate2(file.id(), "x", H5T_IEEE_F64LE, space, H5P_DEFAULT, layout, H5P_DEFAULT),
        H5Dclose);
    for (hsize_t row = 0; row < written; row += 100) {
      const hsize_t count = 100;
      H5Sselect_hyperslab(space, H5S_SELECT_SET, &row, nullptr, &count, nullptr);
      H5Dwrite(dataset, H5T_NATIVE_DOUBLE, memory, space, H5P_DEFAULT, values.data());
    }
  };
  write(0, false, 0);
  EXPECT_CONTAINS(hdf5_error(path),
                  "'x' claims 8000 bytes in a file of 1400: its writing was not finished");
  write(100, false, 300);
  EXPECT_CONTAINS(hdf5_error(path), "'x' claims 8000 bytes in a file of 5896");
  write(100, true, 300);
  EXPECT_CONTAINS(hdf5_error(path), "'x' has no values for its rows 300 to 399");
  ReadOptions first;
  first.block_rows = 300;
  {
    SampleReader reader(path, first);
    EXPECT_EQ(reader.next()->x, test::constant(300, 1, 1.5));
    EXPECT_CONTAINS(message_of<FileError>([&] { reader.next(); }), "rows 300 to 399");
  }
  for (const bool compressed : {false, true}) {
    write(100, compressed, 1000);
    EXPECT_EQ(read_samples(path).samples.x, test::constant(1000, 1, 1.5));
  }
}

TEST(Hdf5, ValuesInOtherFilesAreRefused) {
  const TemporaryFolder folder;
  const std::string path = folder.path("file.h5");
  folder.file("secret.bin", std::string(80, 's'));
  const hdf5::Id space = hdf5::simple_space({10});
  const auto write = [&](hid_t layout) {
    const ForeignFile file(path);
    hdf5::Id(H5Dcreate2(file.id(), "x", H5T_IEEE_F64LE, space, H5P_DEFAULT, layout, H5P_DEFAULT),
             H5Dclose);
  };
  {
    const hdf5::Id layout(H5Pcreate(H5P_DATASET_CREATE), H5Pclose);
    H5Pset_external(layout, folder.path("secret.bin").c_str(), 0, 80);
    write(layout);
    EXPECT_CONTAINS(hdf5_error(path), "the values of 'x' lie in other files");
  }
  {
    const hdf5::Id layout(H5Pcreate(H5P_DATASET_CREATE), H5Pclose);
    H5Pset_virtual(layout, space, folder.path("other.h5").c_str(), "x", space);
    write(layout);
    EXPECT_CONTAINS(hdf5_error(path), "the values of 'x' lie in other files");
  }
  ForeignFile(folder.path("other.h5")).dataset("x", H5T_NATIVE_DOUBLE, {2}, std::vector{1.0, 2.0});
  {
    const ForeignFile file(path);
    H5Lcreate_external("other.h5", "/x", file.id(), "linked", H5P_DEFAULT, H5P_DEFAULT);
    H5Lcreate_external("other.h5", "/", file.id(), "group", H5P_DEFAULT, H5P_DEFAULT);
  }
  ReadOptions options;
  for (const char* name : {"linked", "/linked", "group/x"}) {
    options.dataset = name;
    EXPECT_CONTAINS(hdf5_error(path, options), "is a link to elsewhere, which is not followed");
  }
  EXPECT_CONTAINS(hdf5_error(path), "is a link to elsewhere, which is not followed");
}

TEST(Hdf5, RowsCarryChecksums) {
  const TemporaryFolder folder;
  const std::string path = folder.path("file.h5");
  Samples samples;
  samples.feature_names = {"x", "y"};
  samples.x = test::constant(40'000, 2, 0.0);
  for (std::size_t i = 0; i < samples.size(); ++i) {
    samples.x(i, 0) = 1.0 / (1.0 + double(i));
    samples.groups.push_back(static_cast<std::int64_t>(i) - 7);
  }
  ReadOptions options;
  options.group = "group";
  write_samples(path, samples);
  EXPECT_EQ(read_samples(path, options).samples, samples);
  const auto changed = [&](const char* name, hsize_t row, auto&& change) {
    write_samples(path, samples);
    const hdf5::Id file(H5Fopen(path.c_str(), H5F_ACC_RDWR, H5P_DEFAULT), H5Fclose);
    const hdf5::Id dataset(H5Dopen2(file, name, H5P_DEFAULT), H5Dclose);
    const hdf5::Id space(H5Dget_space(dataset), H5Sclose), one = hdf5::simple_space({1});
    const hsize_t count = 1;
    const double value = 3.0;
    H5Sselect_hyperslab(space, H5S_SELECT_SET, &row, nullptr, &count, nullptr);
    H5Dwrite(dataset, H5T_NATIVE_DOUBLE, one, space, H5P_DEFAULT, &value);
    change(static_cast<hid_t>(dataset));
  };
  const auto nothing = [](hid_t) {};
  // A swapped value has a right checksum of HDF5's own.
  changed("y", 20'000, nothing);
  EXPECT_CONTAINS(hdf5_error(path, options),
                  "rows 16384 to 32767 of column 'y' are damaged: their checksum is ");
  changed("group", 39'999, nothing);
  EXPECT_CONTAINS(hdf5_error(path, options), "rows 32768 to 39999 of column 'group' are damaged");
  // Columns that are not read are not looked at, and rows with their neighbours.
  changed("y", 20'000, nothing);
  ReadOptions other;
  other.features = {"x"};
  EXPECT_EQ(read_samples(path, other).samples.size(), samples.size());
  other.features = {"y"};
  other.block_rows = 10;
  {
    SampleReader reader(path, other);
    EXPECT_EQ(reader.next()->size(), 10u);
    reader.seek(32'768);
    EXPECT_EQ(reader.next()->size(), 10u);
    reader.seek(32'767);
    EXPECT_CONTAINS(message_of<FileError>([&] { reader.next(); }), "rows 16384 to 32767");
  }
  // Files of other programs and of older versions have none; broken ones are told.
  changed("y", 20'000, [](hid_t dataset) { H5Adelete(dataset, "row_checksums"); });
  EXPECT_EQ(read_samples(path, options).samples.x(20'000, 1), 3.0);
  changed("y", 0, [](hid_t dataset) {
    H5Adelete(dataset, "row_checksums");
    hdf5::write_row_checksums("file.h5", dataset, {1000, {1, 2, 3}});
  });
  EXPECT_CONTAINS(hdf5_error(path, options), "the checksums of 'y' do not fit its rows");
}

TEST(Hdf5, AStopEndsTheReading) {
  const TemporaryFolder folder;
  Samples samples;
  samples.x = test::constant(10, 1, 1.0);
  samples.feature_names = {"x"};
  for (const char* name : {"file.h5", "file.npy", "file.csv"}) {
    write_samples(folder.path(name), samples);
    request_stop();
    EXPECT_THROW(read_samples(folder.path(name)), Interrupted) << name;
    clear_stop();
    EXPECT_EQ(read_samples(folder.path(name)).rows, 10u) << name;
  }
}

}  // namespace
}  // namespace neyman
