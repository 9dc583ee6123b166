#include "neyman/data/reader.hpp"

#include "neyman/data/writer.hpp"
#include "support.hpp"

namespace neyman {
namespace {

using test::message_of;
using test::TemporaryFolder;

TEST(Reader, FormatComesFromTheExtension) {
  EXPECT_EQ(file_format("a/b.csv"), FileFormat::csv);
  EXPECT_EQ(file_format("b.TXT"), FileFormat::csv);
  EXPECT_EQ(file_format("b.npy"), FileFormat::npy);
  EXPECT_EQ(file_format("b.h5"), FileFormat::hdf5);
  EXPECT_EQ(file_format("b.hdf5"), FileFormat::hdf5);
  EXPECT_EQ(file_format("b.dat", FileFormat::npy), FileFormat::npy);
  EXPECT_EQ(message_of<FileError>([] { file_format("b.dat"); }),
            "b.dat: has the extension '.dat', which names no format; say which of csv, npy and "
            "hdf5 it is (format = \"csv\" in a study, --format csv on the command line), or name "
            "the file .csv, .txt, .npy, .h5 or .hdf5");
  EXPECT_EQ(file_format_by_name("hdf5"), FileFormat::hdf5);
  EXPECT_CONTAINS(message_of<ArgumentError>([] { file_format_by_name("np"); }),
                  "did you mean 'npy'?");
}

TEST(Reader, TheFormatCanBeSet) {
  const TemporaryFolder folder;
  ReadOptions options;
  options.format = FileFormat::csv;
  EXPECT_EQ(read_samples(folder.file("events.dat", "a\n1\n"), options).samples.x,
            Matrix(1, 1, {1}));
}

TEST(Reader, MissingFilesAndFolders) {
  const TemporaryFolder folder;
  for (const std::string name : {"f.csv", "f.npy", "f.h5"}) {
    const std::string path = folder.path(name);
    EXPECT_EQ(message_of<FileError>([&] { read_samples(path); }), path + ": does not exist");
    std::filesystem::create_directory(path);
    EXPECT_EQ(message_of<FileError>([&] { read_samples(path); }),
              path + ": cannot be read: it is a folder");
  }
}

TEST(Reader, MissingColumnsAreAllListedWithThoseThatThereAre) {
  const TemporaryFolder folder;
  const std::string path = folder.file("f.csv", "x0,x1,w\n1,2,3\n");
  ReadOptions options;
  options.features = {"x0", "y"};
  options.parameters = {"alpha"};
  options.weight = "weight";
  EXPECT_EQ(message_of<FileError>([&] { SampleReader(path, options); }),
            path + ": has no columns 'y', 'alpha', 'weight'; columns are x0, x1, w");
}

TEST(Reader, ContradictoryOptionsAreRefused) {
  const TemporaryFolder folder;
  const std::string path = folder.file("f.csv", "x,w\n1,2\n");
  ReadOptions options;
  options.parameters = {"x"};
  options.weight = "x";
  EXPECT_CONTAINS(message_of<ArgumentError>([&] { SampleReader(path, options); }),
                  "SampleReader: column 'x' is named twice, but must be");
  options = {};
  options.block_rows = 0;
  EXPECT_EQ(message_of<ArgumentError>([&] { SampleReader(path, options); }),
            "SampleReader: block_rows is 0, but must be at least 1");
  options = {};
  options.parameters = {"x", "w"};
  EXPECT_EQ(message_of<FileError>([&] { SampleReader(path, options); }),
            path + ": has no column left for the features");
}

TEST(Reader, BlocksHaveTheSizeAskedFor) {
  const TemporaryFolder folder;
  ReadOptions options;
  options.block_rows = 2;
  SampleReader reader(folder.file("f.csv", "x,y\n1,2\n3,4\n5,6\n"), options);
  EXPECT_EQ(reader.columns(), (std::vector<std::string>{"x", "y"}));
  EXPECT_EQ(reader.next()->x, Matrix(2, 2, {1, 2, 3, 4}));
  EXPECT_EQ(reader.rows(), 2u);
  EXPECT_EQ(reader.next()->x, Matrix(1, 2, {5, 6}));
  EXPECT_FALSE(reader.next());
  EXPECT_FALSE(reader.next());
  EXPECT_EQ(reader.rows(), 3u);
}

TEST(Reader, ABlockWithoutValidRowsIsPassedOver) {
  const TemporaryFolder folder;
  ReadOptions options;
  options.block_rows = 1;
  options.on_invalid = OnInvalid::drop;
  SampleReader reader(folder.file("f.csv", "x\n1\nnan\nnan\n2\nnan\n"), options);
  EXPECT_EQ(reader.next()->x, Matrix(1, 1, {1}));
  EXPECT_EQ(reader.next()->x, Matrix(1, 1, {2}));
  EXPECT_FALSE(reader.next());
  EXPECT_EQ(reader.dropped(), 3u);
}

TEST(Reader, ColumnsAreKnownWithoutReadingRows) {
  const TemporaryFolder folder;
  const std::string path = folder.file("f.csv", "x,y\nabc,1\n");
  EXPECT_EQ(file_columns(path), (std::vector<std::string>{"x", "y"}));
}

TEST(Writer, RefusesWhatCannotBeReadBack) {
  const TemporaryFolder folder;
  const std::string path = folder.path("f.csv");
  Samples samples;
  samples.feature_names = {"x", "x"};
  samples.x = Matrix(1, 2, {1, 2});
  const auto error = [&] {
    return message_of<ArgumentError>([&] { write_samples(path, samples); });
  };
  EXPECT_CONTAINS(error(), "column 'x' is there twice");
  samples.feature_names = {"x", ""};
  EXPECT_CONTAINS(error(), "the name of column 1 is empty");
  samples.feature_names = {"x", "weight"};
  samples.weights = {1};
  EXPECT_CONTAINS(error(), "column 'weight' is there twice");
  samples.feature_names = {"x", "y"};
  samples.x(0, 1) = std::nan("");
  EXPECT_EQ(error(), "write_samples: x[0, 'y'] is nan, but must be finite");
  samples = {};
  EXPECT_CONTAINS(error(), "the number of features is 0");
  EXPECT_EQ(folder.count(), 0u);
}

}  // namespace
}  // namespace neyman
