
#include "neyman/data/atomic_file.hpp"
#include "neyman/data/writer.hpp"
#include "support.hpp"

namespace neyman {
namespace {

using test::message_of;
using test::TemporaryFolder;

/// Reads a CSV file of this text.
ReadResult read_text(const std::string& text, const ReadOptions& options = {}) {
  const TemporaryFolder folder;
  return read_samples(folder.file("file.csv", text), options);
}

/// The error of reading it, without the folder.
std::string csv_error(const std::string& text, const ReadOptions& options = {}) {
  const std::string message = message_of<FileError>([&] { read_text(text, options); });
  const std::size_t name = message.find("file.csv");
  return name == message.npos ? message : message.substr(name);
}

TEST(Csv, PlainFile) {
  const Samples samples = read_text("a,b\n1,2\n-3.5,4e2\n").samples;
  EXPECT_EQ(samples.feature_names, (std::vector<std::string>{"a", "b"}));
  EXPECT_EQ(samples.x, Matrix(2, 2, {1, 2, -3.5, 400}));
  EXPECT_TRUE(samples.parameter_names.empty());
  EXPECT_TRUE(samples.weights.empty());
}

TEST(Csv, CommentsBlankLinesCrlfAndByteOrderMark) {
  const Samples expected = read_text("a,b\n1,2\n3,4\n").samples;
  EXPECT_EQ(read_text("\xEF\xBB\xBF# made by \"hand\r\n\r\na, b\r\n1,2\r\n#9,9\r\n \r\n 3 ,\t4\r\n")
                .samples,
            expected);
  EXPECT_EQ(read_text("\n\n#\na,b\n1,2\n3,4").samples, expected);
}

TEST(Csv, QuotedValues) {
  const Samples samples =
      read_text("\"a,\"\"1\"\"\",\"two\nlines\",c\r\n\"1\", \"2\" ,3\n\"4\",5,\"6\"").samples;
  EXPECT_EQ(samples.feature_names, (std::vector<std::string>{"a,\"1\"", "two\nlines", "c"}));
  EXPECT_EQ(samples.x, Matrix(2, 3, {1, 2, 3, 4, 5, 6}));
}

TEST(Csv, NumbersInEverySpelling) {
  const Samples samples = read_text("a\n+1\n.5\n5.\n1E3\n-0\n1e-400\n-1e-400\n0.1\n").samples;
  const std::vector<double> expected = {1, 0.5, 5, 1000, -0.0, 0.0, -0.0, 0.1};
  EXPECT_TRUE(test::same_bits(samples.x.column(0), expected));
}

TEST(Csv, HeaderIsDetected) {
  EXPECT_EQ(read_text("1,2\n3,4\n").samples.feature_names, (std::vector<std::string>{"x0", "x1"}));
  EXPECT_EQ(read_text("1,2\n3,4\n").samples.size(), 2u);
  EXPECT_EQ(read_text("5\n").samples.feature_names, (std::vector<std::string>{"x"}));
  EXPECT_EQ(read_text("\"1\",\"2\"\n3,4\n").samples.feature_names,
            (std::vector<std::string>{"1", "2"}));
  ReadOptions options;
  options.header = Header::present;
  EXPECT_EQ(read_text("1,2\n3,4\n", options).samples.feature_names,
            (std::vector<std::string>{"1", "2"}));
  options.header = Header::absent;
  options.columns = {"u", "v"};
  EXPECT_EQ(read_text("\"1\",\"2\"\n3,4\n", options).samples.feature_names, options.columns);
  EXPECT_EQ(read_text("\"1\",\"2\"\n3,4\n", options).samples.size(), 2u);
  EXPECT_EQ(csv_error("a,2\n3,4\n"),
            "file.csv:1: the first row has both names and numbers; correct it, or say whether it "
            "is a header");
}

TEST(Csv, SelectsColumns) {
  ReadOptions options;
  options.parameters = {"alpha"};
  options.weight = "w";
  options.group = "run";
  const std::string text = "run,x,note,alpha,w,y\n5,1,abc,0.1,2,3\n-6,4,\"d,e\",0.2,1,6\n";
  EXPECT_EQ(csv_error(text, options), "file.csv:2: column 'note' is 'abc', but must be a number");
  options.features = {"y", "x"};
  const Samples samples = read_text(text, options).samples;
  EXPECT_EQ(samples.feature_names, options.features);
  EXPECT_EQ(samples.x, Matrix(2, 2, {3, 1, 6, 4}));
  EXPECT_EQ(samples.theta, Matrix(2, 1, {0.1, 0.2}));
  EXPECT_EQ(samples.weights, (std::vector<double>{2, 1}));
  EXPECT_EQ(samples.groups, (std::vector<std::int64_t>{5, -6}));
}

TEST(Csv, OtherSeparators) {
  ReadOptions options;
  options.separator = ';';
  EXPECT_EQ(read_text("a;b\n1;2\n", options).samples.x, Matrix(1, 2, {1, 2}));
  options.separator = '\t';
  EXPECT_EQ(read_text("a\tb\n1\t2\n\n", options).samples.x, Matrix(1, 2, {1, 2}));
  options.separator = '#';
  EXPECT_CONTAINS(message_of<ArgumentError>([&] { read_text("a\n1\n", options); }), "separator");
}

TEST(Csv, InvalidValuesAreRefusedWithRowAndColumn) {
  EXPECT_EQ(csv_error("a,b\n1,2\n3,nan\n"),
            "file.csv:3: column 'b' is 'nan', but must be a finite number");
  EXPECT_EQ(csv_error("a,b\n1,2\n-inf,2\n"),
            "file.csv:3: column 'a' is '-inf', but must be a finite number");
  EXPECT_EQ(csv_error("a,b\n1,\n"), "file.csv:2: column 'b' is '', but must be a finite number");
  EXPECT_EQ(csv_error("a\n1e999\n"),
            "file.csv:2: column 'a' is '1e999', but must be a finite number");
  // Lines count as an editor shows them, also behind values that span several.
  EXPECT_EQ(csv_error("# c\n\"a\n\",b\n\n1,2\n3,NA\n"),
            "file.csv:6: column 'b' is 'NA', but must be a finite number");
}

TEST(Csv, InvalidRowsAreDroppedAndCounted) {
  ReadOptions options;
  options.on_invalid = OnInvalid::drop;
  options.weight = "w";
  const ReadResult result =
      read_text("a,w,b\n1,1,1\nnan,1,1\n2,1,inf\n3,,3\n4,1,NA\n5,1,1e999\n6,2,6\n", options);
  EXPECT_EQ(result.rows, 7u);
  EXPECT_EQ(result.dropped, 5u);
  EXPECT_EQ(result.samples.x, Matrix(2, 2, {1, 1, 6, 6}));
  EXPECT_EQ(result.samples.weights, (std::vector<double>{1, 2}));
  EXPECT_EQ(csv_error("a\nnan\ninf\n", options), "file.csv: has no column 'w'; columns are a");
  options.weight.clear();
  EXPECT_EQ(csv_error("a\nnan\ninf\n", options),
            "file.csv: has no valid row: all 2 have a value that is not finite");
  // Only what is not finite is dropped: what is not a number is a mistake.
  EXPECT_EQ(csv_error("a\n1\nabc\n", options),
            "file.csv:3: column 'a' is 'abc', but must be a number");
}

TEST(Csv, BrokenFilesSayWhatIsWrong) {
  EXPECT_EQ(csv_error(""), "file.csv: is empty");
  EXPECT_EQ(csv_error("# only\n\n"), "file.csv: has no rows");
  EXPECT_EQ(csv_error("a,b\n"), "file.csv: has no rows");
  EXPECT_EQ(csv_error("a,b\n1,2\n3\n"), "file.csv:3: has 1 value, but must have 2 (as line 1)");
  EXPECT_EQ(csv_error("a,b\n1,2,3,4\n"), "file.csv:2: has 4 values, but must have 2 (as line 1)");
  EXPECT_EQ(csv_error("\na,b\n\"1\",2,3\n"),
            "file.csv:3: has 3 values, but must have 2 (as line 2)");
  EXPECT_EQ(csv_error("a,b,a\n1,2,3\n"), "file.csv: has two columns named 'a'");
  EXPECT_EQ(csv_error("a,\n1,2\n"),
            "file.csv: column 2 has no name; give it one, or say which columns are features");
  EXPECT_EQ(csv_error("a\n1\n\"2\n3\n"),
            "file.csv:3: a quoted value begins here that does not end");
  EXPECT_EQ(csv_error("a,b\n\"1\"2,3\n"),
            "file.csv:2: '2' follows a quoted value, but must be ',' or the end of the line");
  EXPECT_EQ(csv_error("a,b\n1\"2\",3\n"),
            "file.csv:2: '1\"2\"' has a quote, but is not quoted as a whole");
  EXPECT_EQ(csv_error("a\n0x10\n"), "file.csv:2: column 'a' is '0x10', but must be a number");
  EXPECT_EQ(csv_error("a\n+-1\n"), "file.csv:2: column 'a' is '+-1', but must be a number");
  EXPECT_EQ(csv_error("a\n1 2\n"), "file.csv:2: column 'a' is '1 2', but must be a number");
  EXPECT_EQ(csv_error(std::string("\xFF\xFE") + "a"), "file.csv: is UTF-16, but must be UTF-8");
}

TEST(Csv, GroupsAreWholeNumbers) {
  ReadOptions options;
  options.group = "g";
  EXPECT_EQ(read_text("x,g\n1,9223372036854775807\n1,3.0\n1,1e3\n", options).samples.groups,
            (std::vector<std::int64_t>{9223372036854775807, 3, 1000}));
  EXPECT_EQ(csv_error("x,g\n1,1.5\n", options),
            "file.csv:2: column 'g' is '1.5', but must be a whole number");
  EXPECT_EQ(csv_error("x,g\n1,\n", options),
            "file.csv:2: column 'g' is '', but must be a whole number");
  EXPECT_EQ(csv_error("x,g\n1,1e17\n", options),
            "file.csv:2: column 'g' is '1e17', but must be a whole number");
}

TEST(Csv, LinesLongerThanTheBuffer) {
  // Several times the first buffer of 1 MiB, plain and quoted.
  const std::string padding(3'000'000, ' ');
  EXPECT_EQ(read_text("a,b\n" + padding + "1,2\n3,\"" + padding + "4\"\n5,6").samples.x,
            Matrix(3, 2, {1, 2, 3, 4, 5, 6}));
}

TEST(Csv, AnEndlessQuoteDoesNotFillTheMemory) {
  std::string text = "a\n\"";
  text.append((std::size_t{1} << 26) + 100, '1');
  EXPECT_EQ(csv_error(text),
            "file.csv:2: a line or a quoted value begins here that does not end within 64 MiB");
}

TEST(Csv, WrittenFileIsPlainText) {
  const TemporaryFolder folder;
  Samples samples;
  samples.feature_names = {"a", "b,c", "1e5", "#d", " e", "say \"x\""};
  samples.x = Matrix(1, 6, {0.1, 1e300, -0.0, 3, 1.0 / 3, 5e-324});
  samples.weights = {2.5};
  samples.groups = {-4};
  const std::string path = folder.path("out.csv");
  write_samples(path, samples);
  EXPECT_EQ(read_file(path),
            "a,\"b,c\",\"1e5\",\"#d\",\" e\",\"say \"\"x\"\"\",weight,group\n"
            "0.1,1e+300,-0,3,0.3333333333333333,5e-324,2.5,-4\n");
}

RC_GTEST_PROP(Csv, RoundTripIsExactInBlocksOfAnySize, ()) {
  const TemporaryFolder folder;
  // Any bytes at all may be in a name, awkward ones more often.
  const auto name = rc::gen::suchThat(
      rc::gen::container<std::string>(rc::gen::oneOf(
          rc::gen::arbitrary<char>(),
          rc::gen::element('"', ',', '\n', '\r', ' ', '#', '\t', '1', '.', '+', 'N', 'A'))),
      [](const std::string& text) { return !text.empty() && text != "weight" && text != "group"; });
  const Samples samples = test::arbitrary_samples(name, INT64_MAX);
  const std::string path = folder.path("file.csv");
  write_samples(path, samples);
  const ReadOptions options = test::options_for(samples);
  const ReadResult result = read_samples(path, options);
  RC_ASSERT(test::same_bits(result.samples, samples));
  RC_ASSERT(result.rows == samples.size());
  const auto block = *rc::gen::inRange<std::size_t>(1, 14);
  RC_ASSERT(test::same_bits(test::read_in_blocks(path, options, block), samples));
}

RC_GTEST_PROP(Csv, AnyBytesAreReadOrRefused, ()) {
  // Broken input ends in a FileError or in a table, never in a crash (the sanitizers watch).
  const TemporaryFolder folder;
  const auto text = *rc::gen::container<std::string>(rc::gen::oneOf(
      rc::gen::arbitrary<char>(),
      rc::gen::element('"', ',', '\n', '\r', ' ', '#', '1', '2', '.', 'e', '-', 'a')));
  const std::string path = folder.file("file.csv", text);
  try {
    const ReadResult result = read_samples(path);
    RC_ASSERT(result.samples.size() > 0u);
    result.samples.check("fuzz");
  } catch (const FileError& error) {
    RC_ASSERT(std::string(error.what()).starts_with(path));
  }
}

TEST(Csv, LongLinesGiveShortMessages) {
  const TemporaryFolder folder;
  std::string wide = "0";
  for (int i = 0; i < 100'000; ++i) wide += ",0";
  EXPECT_CONTAINS(
      message_of<FileError>([&] { read_samples(folder.file("file.csv", wide)); }),
      "has 100001 columns, but must have at most 100000, and a row for each event; is it "
      "transposed?");
  const std::string text(1'000'000, 'y');
  for (const auto& content : {"x\n" + text + "\n", text + "\nz\n", text + "," + text + "\n1,2\n"})
    EXPECT_LT(message_of<FileError>([&] { read_samples(folder.file("file.csv", content)); }).size(),
              400u);
}

}  // namespace
}  // namespace neyman
