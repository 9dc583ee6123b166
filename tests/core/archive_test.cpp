#include "neyman/core/archive.hpp"

#include <gtest/gtest.h>

#include "neyman/core/error.hpp"

namespace neyman {
namespace {

TEST(Archive, ReturnsWhatWasSet) {
  Archive archive;
  archive.set("kind", "mlp");
  archive.set("rows", std::size_t{3});
  archive.child("layer").set("bias", std::vector<float>{1, 2});
  EXPECT_EQ(archive.text("kind"), "mlp");
  EXPECT_EQ(archive.integer("rows"), 3);
  EXPECT_EQ(archive.child("layer").get<std::vector<float>>("bias")[1], 2.0F);
  const Archive copy = archive;
  EXPECT_EQ(copy, archive);
}

TEST(Archive, NamesThePathOfWhatIsMissingOrWrong) {
  Archive archive;
  archive.child("layer").set("bias", 1.0);
  const Archive& read = archive;
  try {
    read.child("layer").text("bias");
    FAIL();
  } catch (const FileError& error) {
    EXPECT_STREQ(error.what(), "archive: entry /layer/bias has the wrong type");
  }
  try {
    read.child("layer").number("weight");
    FAIL();
  } catch (const FileError& error) {
    EXPECT_STREQ(error.what(), "archive: entry /layer/weight is missing");
  }
  EXPECT_THROW(read.child("other"), FileError);
}

}  // namespace
}  // namespace neyman
