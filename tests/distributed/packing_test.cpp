#include "neyman/distributed/packing.hpp"

#include <gtest/gtest.h>

#include <cmath>
#include <cstdlib>
#include <limits>

#include "neyman/core/error.hpp"

namespace neyman {
namespace {

template <class T>
std::string packed(const T& value) {
  Packer bytes;
  bytes(value);
  return bytes.take();
}

template <class T>
T unpacked(const std::string& bytes) {
  T out{};
  Unpacker from(bytes);
  from(out);
  EXPECT_TRUE(from.empty());
  return out;
}

TEST(Packing, GivesTheSameValues) {
  const std::vector<std::vector<double>> rows = {{1.0, -0.0, 1e-320}, {}, {0.1}};
  Packer bytes;
  bytes(true, std::size_t{7}, std::string("a\0b", 3), rows, std::optional<double>(2.5),
        std::optional<double>());
  const auto all = bytes.take();
  bool flag = false;
  std::size_t size = 0;
  std::string text;
  std::vector<std::vector<double>> found = {{9.0}};
  std::optional<double> some, none = 1.0;
  Unpacker from(all);
  from(flag, size, text, found, some, none);
  EXPECT_TRUE(flag);
  EXPECT_EQ(size, 7U);
  EXPECT_EQ(text, std::string("a\0b", 3));
  EXPECT_EQ(found, rows);
  EXPECT_TRUE(std::signbit(found[0][1]));
  EXPECT_EQ(some, 2.5);
  EXPECT_EQ(none, std::nullopt);
  EXPECT_TRUE(from.empty());
}

TEST(Packing, KeepsAnArchiveWithAllKindsOfValues) {
  Archive archive;
  archive.set("flag", true);
  archive.set("count", std::size_t{3});
  archive.set("number", std::numeric_limits<double>::infinity());
  archive.set("text", "words");
  archive.set("numbers", std::vector<double>{1.0, 2.0});
  archive.set("floats", std::vector<float>{0.1f});
  archive.set("integers", std::vector<std::int64_t>{-1, 2});
  archive.set("bytes", std::vector<std::uint8_t>{0, 255});
  archive.set("names", std::vector<std::string>{"a", ""});
  auto& child = archive.child("child");
  child.set("matrix", Matrix(2, 3, {1, 2, 3, 4, 5, 6}));
  child.set("empty", Matrix(0, 4));
  child.child("inner").set("x", 1.0);
  EXPECT_EQ(unpacked<Archive>(packed(archive)), archive);
}

TEST(Packing, KeepsTheKindOfAnError) {
  const auto again = [](const auto& error) {
    std::rethrow_exception(unpacked<std::exception_ptr>(packed(std::make_exception_ptr(error))));
  };
  EXPECT_THROW(again(ArgumentError("a")), ArgumentError);
  EXPECT_THROW(again(FileError("a")), FileError);
  EXPECT_THROW(again(SimulatorError("a")), SimulatorError);
  EXPECT_THROW(again(Interrupted()), Interrupted);
  try {
    again(std::runtime_error("what it says"));
    FAIL();
  } catch (const Error& error) {
    EXPECT_STREQ(error.what(), "what it says");
  }
  EXPECT_EQ(unpacked<std::exception_ptr>(packed(std::exception_ptr())), nullptr);
}

TEST(Packing, RefusesBytesThatEndTooEarly) {
  Archive archive;
  archive.set("numbers", std::vector<double>{1.0, 2.0});
  archive.child("child").set("matrix", Matrix(2, 2));
  const auto whole = packed(archive);
  for (std::size_t size = 0; size < whole.size(); ++size) {
    Archive out;
    const auto part = whole.substr(0, size);
    Unpacker from(part);
    EXPECT_THROW(from(out), FileError) << size;
  }
  // A length that no memory could hold is refused before any is asked for.
  const auto huge = packed(std::numeric_limits<std::size_t>::max() / 2);
  Unpacker from(huge);
  std::vector<double> numbers;
  EXPECT_THROW(from(numbers), FileError);
}

}  // namespace
}  // namespace neyman
