#include "neyman/data/feature_columns.hpp"

#include "neyman/data/writer.hpp"
#include "support.hpp"

namespace neyman {
namespace {

using test::message_of;
using test::TemporaryFolder;
using Strings = std::vector<std::string>;
using Places = std::vector<std::size_t>;
constexpr auto leave_out = OtherColumns::leave_out;
constexpr auto refuse = OtherColumns::refuse;

TEST(FeatureColumns, NamesDecideInWhateverOrder) {
  const auto found = find_features({"x0", "x1", "x2"}, {"x2", "x1", "x0"}, true, refuse);
  EXPECT_EQ(found.places, (Places{2, 1, 0}));
  EXPECT_FALSE(found.by_position);
  EXPECT_TRUE(found.left_out.empty());
}

TEST(FeatureColumns, OtherNamesAreRefusedWithBothLists) {
  EXPECT_EQ(message_of<ArgumentError>([] {
              find_features({"x0", "x1"}, {"y", "z"}, true, leave_out);
            }),
            "find_features: has the columns y, z, but must have x0, x1, in any order");
  EXPECT_CONTAINS(message_of<ArgumentError>([] {
                    find_features({"a", "b"}, {"b", "c"}, true, leave_out);
                  }),
                  "has the columns b, c, but must have a, b");
}

TEST(FeatureColumns, FurtherColumnsAreLeftOutOrRefused) {
  const auto found = find_features({"a", "b"}, {"id", "b", "a"}, true, leave_out);
  EXPECT_EQ(found.places, (Places{2, 1}));
  EXPECT_EQ(found.left_out, Strings{"id"});
  EXPECT_CONTAINS(message_of<ArgumentError>([] {
                    find_features({"x"}, {"x", "y"}, true, refuse);
                  }),
                  "has the columns x, y, but must have x");
}

TEST(FeatureColumns, WithoutNamesTheOrderCounts) {
  const auto found = find_features({"mass", "pt"}, {"x0", "x1"}, false, refuse);
  EXPECT_EQ(found.places, (Places{0, 1}));
  EXPECT_TRUE(found.by_position);
  // x1 is the second column, wherever a list has it.
  EXPECT_EQ(find_features({"x1", "x0"}, {"x0", "x1"}, false, refuse).places, (Places{1, 0}));
  EXPECT_EQ(find_features({"x2", "x0"}, {"x0", "x1", "x2"}, false, leave_out).left_out,
            Strings{"x1"});
  EXPECT_CONTAINS(message_of<ArgumentError>([] {
                    find_features({"mass"}, {"x0", "x1"}, false, leave_out);
                  }),
                  "has 2 columns without names, but must have 1 (mass)");
}

TEST(FeatureColumns, FilesWithNamesAreReorderedAndOthersNamed) {
  const TemporaryFolder folder;
  const auto named = folder.file("named.csv", "pt,w,mass\n1,2,3\n");
  ReadOptions options;
  options.weight = "w";
  const auto reading = find_features(named, options, {"mass", "pt"}, refuse);
  EXPECT_EQ(reading.note, "");
  const auto events = read_samples(named, reading.options).samples;
  EXPECT_EQ(events.feature_names, (Strings{"mass", "pt"}));
  EXPECT_EQ(events.x, Matrix(1, 2, {3, 1}));
  EXPECT_EQ(events.weights, std::vector{2.0});

  const auto bare = folder.file("bare.csv", "1,2\n3,4\n");
  const auto by_position = find_features(bare, {}, {"mass", "pt"}, refuse);
  EXPECT_EQ(by_position.note,
            "the columns of bare.csv have no names: they are taken in their order as mass, pt");
  const auto in_order = read_samples(bare, by_position.options).samples;
  EXPECT_EQ(in_order.feature_names, (Strings{"mass", "pt"}));
  EXPECT_EQ(in_order.x, Matrix(2, 2, {1, 2, 3, 4}));

  // A name that is the default of another column.
  const auto crossed = find_features(bare, {}, {"x1", "other"}, refuse);
  EXPECT_EQ(read_samples(bare, crossed.options).samples.x, Matrix(2, 2, {1, 2, 3, 4}));

  EXPECT_EQ(message_of<FileError>([&] {
              find_features(named, {}, {"mass", "pt"}, refuse);
            }),
            named + ": has the columns pt, w, mass, but must have mass, pt, in any order");
  EXPECT_EQ(find_features(named, {}, {"mass", "pt"}, leave_out).note,
            "of named.csv, w is no feature of the model and left out");
}

TEST(FeatureColumns, FormatsSayWhetherTheyName) {
  const TemporaryFolder folder;
  Samples events;
  events.feature_names = {"a", "b"};
  events.x = Matrix(2, 2, {1, 2, 3, 4});
  write_samples(folder.path("f.h5"), events);
  write_samples(folder.path("f.npy"), events);
  write_samples(folder.path("f.csv"), events);
  EXPECT_TRUE(table_columns(folder.path("f.h5")).named);
  EXPECT_TRUE(table_columns(folder.path("f.csv")).named);
  EXPECT_FALSE(table_columns(folder.path("f.npy")).named);
  ReadOptions options;
  options.columns = {"b", "a"};
  EXPECT_TRUE(table_columns(folder.path("f.npy"), options).named);
}

TEST(FeatureColumns, EventsInMemoryFollowTheSameRule) {
  Samples events;
  events.feature_names = {"b", "a"};
  events.x = Matrix(2, 2, {1, 2, 3, 4});
  events.weights = {1, 2};
  std::string note;
  const auto taken = with_features("fit", events, {"a", "b"}, refuse, note);
  EXPECT_EQ(taken.x, Matrix(2, 2, {2, 1, 4, 3}));
  EXPECT_EQ(taken.feature_names, (Strings{"a", "b"}));
  EXPECT_EQ(taken.weights, events.weights);
  EXPECT_EQ(note, "");
  EXPECT_EQ(message_of<ArgumentError>([&] {
              with_features("fit", events, {"a", "c"}, refuse, note);
            }),
            "fit: the table of events has the columns b, a, but must have a, c, in any order");
  events.feature_names = default_feature_names(2);
  EXPECT_EQ(with_features("fit", events, {"a", "c"}, refuse, note).x, events.x);
  EXPECT_THROW(with_features("fit", events, {"a"}, leave_out, note), ArgumentError);
}

TEST(FeatureColumns, AMessageHasAtMostTenNames) {
  Strings names;
  for (int i = 0; i < 12; ++i) names.push_back("c" + std::to_string(i));
  EXPECT_EQ(some_names(names), "c0, c1, c2, c3, c4, c5, c6, c7, c8, c9, … (12 in all)");
}

TEST(FileNames, ADatasetStandsBehindAColon) {
  const TemporaryFolder folder;
  EXPECT_EQ(table_name("sims.h5:run1/events").file, "sims.h5");
  EXPECT_EQ(table_name("sims.h5:run1/events").dataset, "run1/events");
  EXPECT_EQ(table_name("plain.csv").dataset, "");
  EXPECT_EQ(table_name("C:plain.csv").dataset, "");
  const auto odd = folder.file("a.h5:b", "");
  EXPECT_EQ(table_name(odd).file, odd);
  EXPECT_CONTAINS(
      message_of<FileError>([&] { read_samples(folder.file("t.csv", "x\n1\n") + ":group"); }),
      "but only HDF5 files have tables inside");
}

TEST(FileNames, PatternsAreExpandedInOrder) {
  const TemporaryFolder folder;
  for (const char* name : {"b.csv", "a.csv", "a10.csv", "c.txt"}) folder.file(name, "x\n1\n");
  EXPECT_EQ(matching_files(folder.path("*.csv")),
            (Strings{folder.path("a.csv"), folder.path("a10.csv"), folder.path("b.csv")}));
  EXPECT_EQ(matching_files(folder.path("c.txt")), Strings{folder.path("c.txt")});
  EXPECT_EQ(matching_files(folder.path("absent.csv")), Strings{folder.path("absent.csv")});
  EXPECT_EQ(message_of<FileError>([&] { matching_files(folder.path("*.npy")); }),
            folder.path("*.npy") + ": no file matches this pattern");
  const auto bracket = folder.file("d[1].csv", "x\n1\n");
  EXPECT_EQ(matching_files(bracket), Strings{bracket});
  folder.file("s1.h5", "");
  EXPECT_EQ(matching_files(folder.path("s?.h5:run")), Strings{folder.path("s1.h5:run")});
}

TEST(FileNames, FormatsThatAreNotReadSayHowToConvertThem) {
  EXPECT_CONTAINS(message_of<FileError>([] { file_format("a/sims.root"); }),
                  "uproot.open('sims.root')['TREE'].arrays(library='pd').to_csv('sims.csv'");
  EXPECT_CONTAINS(message_of<FileError>([] { file_format("sims.parquet"); }),
                  "pandas.read_parquet('sims.parquet').to_csv('sims.csv', index=False)");
  EXPECT_CONTAINS(message_of<FileError>([] { file_format("sims.npz"); }), "numpy.load('sims.npz')");
  EXPECT_CONTAINS(message_of<FileError>([] { file_format("sims.csv.gz"); }), "unpack it");
}

}  // namespace
}  // namespace neyman
