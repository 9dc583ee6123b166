#include "neyman/data/checksum.hpp"

#include "support.hpp"

namespace neyman {
namespace {

TEST(Checksum, KnownValues) {
  // The check value of CRC-64/XZ in catalogues of such codes.
  EXPECT_EQ(checksum("123456789"), 0x995DC9BBDF1939FAu);
  EXPECT_EQ(checksum(""), 0u);
}

TEST(Checksum, OfAFileInPiecesIsThatOfItsBytes) {
  const test::TemporaryFolder folder;
  std::string bytes(3'000'001, 'x');
  for (std::size_t i = 0; i < bytes.size(); ++i) bytes[i] = static_cast<char>(i * i >> 7);
  const auto path = folder.file("bytes", bytes);
  EXPECT_EQ(file_checksum(path), checksum(bytes));
  EXPECT_EQ(file_checksum(path, 17), checksum(std::string_view(bytes).substr(17)));
  EXPECT_EQ(file_checksum(folder.file("empty", "")), checksum(""));
  EXPECT_NE(test::message_of<FileError>([&] { file_checksum(folder.path("none")); }).find("none"),
            std::string::npos);
}

}  // namespace
}  // namespace neyman
