#include "neyman/data/archive_file.hpp"

#include <fmt/format.h>
#include <sys/resource.h>

#include <boost/crc.hpp>
#include <csignal>
#include <cstring>
#include <limits>

#include "data/hdf5.hpp"
#include "neyman/data/atomic_file.hpp"
#include "not_finite.hpp"
#include "support.hpp"

namespace neyman {
namespace {

using test::message_of;
using test::TemporaryFolder;

template <class T>
std::string bytes_of(const T* values, std::size_t count) {
  std::string bytes(count * sizeof(T), '\0');
  if (count > 0) std::memcpy(bytes.data(), values, bytes.size());
  return bytes;
}
std::string bytes_of(bool value) { return value ? "1" : "0"; }
std::string bytes_of(std::int64_t value) { return bytes_of(&value, 1); }
std::string bytes_of(double value) { return bytes_of(&value, 1); }
std::string bytes_of(const std::string& text) { return text; }
template <class T>
std::string bytes_of(const std::vector<T>& values) {
  return bytes_of(values.data(), values.size());
}
std::string bytes_of(const std::vector<std::string>& texts) {
  std::string bytes;
  for (const auto& text : texts) bytes += std::to_string(text.size()) + ":" + text;
  return bytes;
}
std::string bytes_of(const Matrix& matrix) {
  return std::to_string(matrix.rows()) + "x" + std::to_string(matrix.cols()) +
         bytes_of(matrix.data(), matrix.values().size());
}

/// Whether two trees have the same bits; == on trees finds NaN unlike itself.
bool same_tree(const Archive& a, const Archive& b) {
  const auto same_value = [](const auto& u, const auto& v) {
    if (u.first != v.first || u.second.index() != v.second.index()) return false;
    const auto bytes = [](const auto& value) { return bytes_of(value); };
    return std::visit(bytes, u.second) == std::visit(bytes, v.second);
  };
  const auto same_child = [](const auto& u, const auto& v) {
    return u.first == v.first && same_tree(u.second, v.second);
  };
  return std::equal(a.values().begin(), a.values().end(), b.values().begin(), b.values().end(),
                    same_value) &&
         std::equal(a.children().begin(), a.children().end(), b.children().begin(),
                    b.children().end(), same_child);
}

/// Every type of value, the hard ones among them. What model_v1.h5 holds: never change it.
Archive golden_tree() {
  Archive tree;
  tree.set("yes", true);
  tree.set("no", false);
  tree.set("smallest", std::numeric_limits<std::int64_t>::min());
  tree.set("third", 1.0 / 3.0);
  tree.set("nan", nan);
  tree.set("minus_zero", -0.0);
  tree.set("text", "naïve θ");
  tree.set("empty_text", "");
  Archive& arrays = tree.child("arrays");
  arrays.set("doubles", std::vector<double>{0.1, -infinity, 5e-324});
  arrays.set("no_doubles", std::vector<double>{});
  arrays.set("floats", std::vector<float>{0.1f, -2.5f});
  arrays.set("integers", std::vector<std::int64_t>{-1, std::numeric_limits<std::int64_t>::max()});
  arrays.set("bytes", std::vector<std::uint8_t>{0, 127, 255});
  arrays.set("texts", std::vector<std::string>{"x0", "", "a/b%"});
  arrays.set("no_texts", std::vector<std::string>{});
  arrays.set("matrix", Matrix(2, 3, {1, 2, 3, 4, 5, 6}));
  arrays.set("no_rows", Matrix(0, 3));
  std::vector<double> large(2000);
  for (std::size_t i = 0; i < large.size(); ++i) large[i] = 0.25 * static_cast<double>(i % 100);
  arrays.set("large", large);
  tree.child("deep").child("er").set("key", std::int64_t{7});
  tree.child("empty");
  return tree;
}

TEST(ArchiveFile, EveryTypeComesBackWithTheSameBits) {
  const TemporaryFolder folder;
  const std::string path = folder.path("model.h5");
  write_archive(path, golden_tree(), "neyman.model", 1);
  const StoredArchive stored = read_archive(path, "neyman.model", 1);
  EXPECT_EQ(stored.version, 1);
  EXPECT_TRUE(same_tree(stored.tree, golden_tree()));
  EXPECT_EQ(folder.count(), 1u);
}

TEST(ArchiveFile, Version1StaysReadable) {
  // The file was written by write_archive(path, golden_tree(), "neyman.model", 1) when version 1
  // was new. It must never be written again.
  const StoredArchive stored = read_archive(NEYMAN_TEST_DATA "/model_v1.h5", "neyman.model", 3);
  EXPECT_EQ(stored.version, 1);
  EXPECT_TRUE(same_tree(stored.tree, golden_tree()));
}

TEST(ArchiveFile, AwkwardNames) {
  Archive tree;
  for (const std::string& name :
       {std::string(""), std::string("."), std::string(".."), std::string("/"), std::string("a/b"),
        std::string("%"), std::string("%2F"), std::string("a%"), std::string("\0", 1),
        std::string("a\0b", 3), std::string("θ"), std::string(" "), std::string("type"),
        std::string("schema")}) {
    tree.set(name, "value of " + name);
    tree.child(name).set(name, "child's value of " + name);
  }
  tree.set("texts with zeros", std::vector<std::string>{std::string("a\0", 2), "", "%00", "a"});
  const TemporaryFolder folder;
  const std::string path = folder.path("model.h5");
  write_archive(path, tree, "neyman.model", 1);
  EXPECT_TRUE(same_tree(read_archive(path, "neyman.model", 1).tree, tree));
}

TEST(ArchiveFile, LargeArraysAreCompressed) {
  Archive tree;
  tree.set("zeros", std::vector<double>(1'000'000, 0.0));
  tree.set("matrix", test::constant(1000, 1000, 0.5));
  tree.set("wide", test::constant(1, 1'000'000, 0.5));
  tree.set("text", std::string(200'000, 'x'));
  const TemporaryFolder folder;
  const std::string path = folder.path("model.h5");
  write_archive(path, tree, "neyman.model", 1);
  EXPECT_LT(std::filesystem::file_size(path), 1'000'000u);
  EXPECT_TRUE(same_tree(read_archive(path, "neyman.model", 1).tree, tree));
}

TEST(ArchiveFile, ForeignSchemasAndNewerVersionsAreRefused) {
  const TemporaryFolder folder;
  const std::string path = folder.path("model.h5");
  write_archive(path, golden_tree(), "neyman.model", 2);
  EXPECT_EQ(read_archive(path, "neyman.model", 2).version, 2);
  EXPECT_EQ(message_of<FileError>([&] { read_archive(path, "neyman.model", 1); }),
            path +
                ": holds 'neyman.model/2', which a newer neyman wrote; this one reads up to "
                "'neyman.model/1'");
  EXPECT_EQ(message_of<FileError>([&] { read_archive(path, "neyman.toys", 1); }),
            path + ": holds 'neyman.model/2', but must hold 'neyman.toys/1'");
}

TEST(ArchiveFile, ForeignFilesAreRefused) {
  const TemporaryFolder folder;
  const auto error = [&](const std::string& path) {
    return message_of<FileError>([&] { read_archive(path, "neyman.model", 1); });
  };
  const std::string missing = folder.path("no.h5");
  EXPECT_EQ(error(missing), missing + ": does not exist");
  const std::string empty = folder.file("empty.h5", "");
  EXPECT_EQ(error(empty), empty + ": is empty");
  const std::string text = folder.file("text.h5", "a,b\n1,2\n");
  EXPECT_EQ(error(text), text + ": is not an HDF5 file");
  const std::string other = folder.path("other.h5");
  write_file_atomically(other, hdf5::FileInMemory(other).bytes());
  EXPECT_EQ(error(other), other + ": is an HDF5 file, but was not written by neyman as a model");
}

/// The seal in front of an archive's file: layout, size and CRC-64 of all behind the 512th byte.
std::string seal_for(const std::string& file, const std::string& layout = "neyman.archive/1") {
  boost::crc_optimal<64, 0x42F0E1EBA9EA3693, 0xFFFFFFFFFFFFFFFF, 0xFFFFFFFFFFFFFFFF, true, true>
      crc;
  crc.process_bytes(file.data() + 512, file.size() - 512);
  std::string seal = fmt::format("{}\nsize {}\ncrc64 {:016x}\n", layout, file.size(),
                                 static_cast<std::uint64_t>(crc.checksum()));
  seal.resize(512, '\0');
  return seal;
}

TEST(ArchiveFile, TheSealIsWhatTheDocumentationSays) {
  const std::string file = read_file(NEYMAN_TEST_DATA "/model_v1.h5");
  EXPECT_EQ(file.substr(0, 512), seal_for(file));
}

/// Writes an archive, changes it with HDF5's own functions and, where `seal` is set, seals it
/// again; the error of reading it.
template <class Change>
std::string error_after(bool seal, Change&& change) {
  const TemporaryFolder folder;
  const std::string path = folder.path("model.h5");
  write_archive(path, golden_tree(), "neyman.model", 1);
  {
    const hdf5::Id file(H5Fopen(path.c_str(), H5F_ACC_RDWR, H5P_DEFAULT), H5Fclose);
    change(static_cast<hid_t>(file));
  }
  if (seal) {
    const std::string bytes = read_file(path);
    write_file_atomically(path, seal_for(bytes) + bytes.substr(512));
  }
  return message_of<FileError>([&] { read_archive(path, "neyman.model", 1); });
}

TEST(ArchiveFile, ChangedContentIsNoticed) {
  const auto change = [](hid_t file) {
    const hdf5::Id dataset(H5Dopen2(file, "third", H5P_DEFAULT), H5Dclose);
    const double value = 0.25;
    H5Dwrite(dataset, H5T_NATIVE_DOUBLE, H5S_ALL, H5S_ALL, H5P_DEFAULT, &value);
  };
  EXPECT_CONTAINS(error_after(false, change), "model.h5: is damaged: its content has checksum ");
  EXPECT_EQ(error_after(true, change), "no exception");
}

TEST(ArchiveFile, SealedFilesThatAreNoTreesAreRefused) {
  EXPECT_CONTAINS(
      error_after(true, [](hid_t file) { H5Adelete_by_name(file, "third", "type", H5P_DEFAULT); }),
      "is damaged: 'third' has the unknown type ''");
  EXPECT_CONTAINS(error_after(true,
                              [](hid_t file) {
                                H5Lcreate_external("/etc/x.h5", "/x", file, "x", H5P_DEFAULT,
                                                   H5P_DEFAULT);
                              }),
                  "'x' is a link to elsewhere, which is not followed");
  EXPECT_CONTAINS(error_after(true,
                              [](hid_t file) {
                                H5Lcreate_hard(file, "/", file, "deep/loop", H5P_DEFAULT,
                                               H5P_DEFAULT);
                              }),
                  "is damaged: its groups are nested too deeply");
  EXPECT_CONTAINS(error_after(true, [](hid_t file) { H5Adelete(file, "schema"); }),
                  "is damaged: it names no schema");
}

TEST(ArchiveFile, ANewerLayoutIsRefused) {
  const TemporaryFolder folder;
  const std::string bytes = read_file(NEYMAN_TEST_DATA "/model_v1.h5");
  const std::string path = folder.file("model.h5", seal_for(bytes, "neyman.archive/2"));
  EXPECT_EQ(message_of<FileError>([&] { read_archive(path, "neyman.model", 1); }),
            path +
                ": is laid out as 'neyman.archive/2', which a newer neyman wrote; this one "
                "reads up to 'neyman.archive/1'");
}

TEST(ArchiveFile, EveryTruncationIsNoticed) {
  const TemporaryFolder folder;
  write_archive(folder.path("model.h5"), golden_tree(), "neyman.model", 1);
  const std::string whole = read_file(folder.path("model.h5"));
  for (std::size_t size = 0; size < whole.size(); size += 97) {
    const std::string path = folder.file("cut.h5", whole.substr(0, size));
    const std::string message =
        message_of<FileError>([&] { read_archive(path, "neyman.model", 1); });
    EXPECT_TRUE(message.starts_with(path + ": is ")) << size << ": " << message;
    if (size > 512) {
      EXPECT_EQ(message, fmt::format("{}: is truncated: it has {} bytes, but must have {}", path,
                                     size, whole.size()));
    }
  }
}

TEST(ArchiveFile, NoFlippedByteGoesUnnoticed) {
  const TemporaryFolder folder;
  const Archive tree = golden_tree();
  write_archive(folder.path("model.h5"), tree, "neyman.model", 1);
  const std::string whole = read_file(folder.path("model.h5"));
  const std::size_t padding = whole.find('\0');
  for (std::size_t at = 0; at < whole.size(); at += at < padding ? 1 : 13) {
    std::string flipped = whole;
    flipped[at] = static_cast<char>(flipped[at] ^ (1 << at % 8));
    const std::string path = folder.file("flipped.h5", flipped);
    for (const auto& message :
         {message_of<FileError>([&] { read_archive(path, "neyman.model", 1); }),
          message_of<FileError>([&] { check_archive(path); })})
      EXPECT_TRUE(message.starts_with(path + ": is ")) << at << ": " << message;
  }
  check_archive(folder.path("model.h5"));
}

TEST(ArchiveFile, TheSameTreeGivesTheSameBytesAtAnyTime) {
  const TemporaryFolder folder;
  write_archive(folder.path("first.h5"), golden_tree(), "neyman.model", 1);
  ::sleep(1);  // HDF5 counts seconds
  write_archive(folder.path("second.h5"), golden_tree(), "neyman.model", 1);
  EXPECT_TRUE(read_file(folder.path("first.h5")) == read_file(folder.path("second.h5")));
}

TEST(ArchiveFile, CompressionChangesNoBitOfATree) {
  const TemporaryFolder folder;
  for (const int compression : {0, 9}) {
    write_archive(folder.path("model.h5"), golden_tree(), "neyman.model", 1, compression);
    EXPECT_TRUE(
        same_tree(read_archive(folder.path("model.h5"), "neyman.model", 1).tree, golden_tree()));
  }
  EXPECT_THROW(write_archive(folder.path("model.h5"), golden_tree(), "neyman.model", 1, 10),
               ArgumentError);
}

TEST(ArchiveFile, AFullDiskLeavesTheOldFile) {
  const TemporaryFolder folder;
  const std::string path = folder.path("model.h5");
  Archive tree;
  tree.set("a", std::int64_t{1});
  write_archive(path, tree, "neyman.model", 1);
  rlimit before{};
  getrlimit(RLIMIT_FSIZE, &before);
  const auto handler = std::signal(SIGXFSZ, SIG_IGN);
  const rlimit limit{2000, before.rlim_max};
  setrlimit(RLIMIT_FSIZE, &limit);
  const std::string message =
      message_of<FileError>([&] { write_archive(path, golden_tree(), "neyman.model", 1); });
  setrlimit(RLIMIT_FSIZE, &before);
  std::signal(SIGXFSZ, handler);
  EXPECT_EQ(message, path + ": cannot be written: File too large");
  EXPECT_TRUE(same_tree(read_archive(path, "neyman.model", 1).tree, tree));
}

TEST(ArchiveFile, WrongArgumentsAreRefused) {
  const TemporaryFolder folder;
  EXPECT_EQ(message_of<ArgumentError>([&] { write_archive(folder.path("a.h5"), {}, "a", 0); }),
            "write_archive: version is 0, but must be positive");
  EXPECT_EQ(message_of<ArgumentError>([&] { write_archive(folder.path("a.h5"), {}, "", 1); }),
            "write_archive: schema is empty, but must be a name");
}

rc::Gen<std::string> any_text() {
  return rc::gen::container<std::string>(
      rc::gen::oneOf(rc::gen::arbitrary<char>(), rc::gen::element('%', '/', '.', '\0', 'a')));
}

Archive::Value arbitrary_value() {
  const auto doubles = [](std::size_t count) {
    return *rc::gen::container<std::vector<double>>(
        count, rc::gen::oneOf(test::finite_double(),
                              rc::gen::element(std::numeric_limits<double>::infinity(),
                                               std::numeric_limits<double>::quiet_NaN())));
  };
  const auto size = *rc::gen::inRange<std::size_t>(0, 5);
  switch (*rc::gen::inRange(0, 10)) {
    case 0:
      return *rc::gen::arbitrary<bool>();
    case 1:
      return *rc::gen::arbitrary<std::int64_t>();
    case 2:
      return doubles(1)[0];
    case 3:
      return *any_text();
    case 4:
      return doubles(size);
    case 5:
      return *rc::gen::container<std::vector<float>>(size, rc::gen::arbitrary<float>());
    case 6:
      return *rc::gen::container<std::vector<std::int64_t>>(size,
                                                            rc::gen::arbitrary<std::int64_t>());
    case 7:
      return *rc::gen::container<std::vector<std::uint8_t>>(size,
                                                            rc::gen::arbitrary<std::uint8_t>());
    case 8:
      return *rc::gen::container<std::vector<std::string>>(size, any_text());
    default: {
      const auto cols = *rc::gen::inRange<std::size_t>(0, 4);
      return Matrix(size, cols, doubles(size * cols));
    }
  }
}

void fill(Archive& tree, int depth) {
  const auto values = *rc::gen::inRange(0, 4);
  for (int i = 0; i < values; ++i) tree.set(*any_text(), arbitrary_value());
  const auto children = depth == 0 ? 0 : *rc::gen::inRange(0, 3);
  for (int i = 0; i < children; ++i) fill(tree.child(*any_text()), depth - 1);
}

RC_GTEST_PROP(ArchiveFile, RoundTripIsExact, ()) {
  const TemporaryFolder folder;
  const std::string path = folder.path("model.h5");
  Archive tree;
  fill(tree, 3);
  write_archive(path, tree, "neyman.model", 1);
  RC_ASSERT(same_tree(read_archive(path, "neyman.model", 1).tree, tree));
}

TEST(ArchiveFile, SealedFilesReadNoOtherFileAndNoImpossibleSize) {
  const auto with_dataset = [](const char* type, hid_t of, std::vector<hsize_t> extents,
                               auto&& prepare) {
    return error_after(true, [&](hid_t file) {
      const hdf5::Id layout(H5Pcreate(H5P_DATASET_CREATE), H5Pclose);
      const hdf5::Id space = hdf5::simple_space(extents);
      prepare(layout, space);
      const hdf5::Id dataset(H5Dcreate2(file, "x", of, space, H5P_DEFAULT, layout, H5P_DEFAULT),
                             H5Dclose);
      ASSERT_TRUE(dataset.ok());
      hdf5::write_text_attribute("model.h5", dataset, "type", type);
    });
  };
  EXPECT_CONTAINS(
      with_dataset("doubles", H5T_IEEE_F64LE, {2},
                   [](hid_t layout, hid_t) { H5Pset_external(layout, "/etc/hostname", 0, 16); }),
      "the values of 'x' lie in other files, which are not followed");
  EXPECT_CONTAINS(with_dataset("doubles", H5T_IEEE_F64LE, {2},
                               [](hid_t layout, hid_t space) {
                                 H5Pset_virtual(layout, space, "other.h5", "x", space);
                               }),
                  "the values of 'x' lie in other files, which are not followed");
  // 2^60 + 2 texts of 16 bytes are 32 bytes where the product overflows.
  const auto in_chunks = [](hid_t layout, hid_t) {
    const hsize_t chunk = 64;
    H5Pset_chunk(layout, 1, &chunk);
  };
  const hdf5::Id text = hdf5::text_type(16);
  EXPECT_CONTAINS(with_dataset("texts", text, {(hsize_t{1} << 60) + 2}, in_chunks),
                  "'x' claims 18446744073709551615 bytes in a file of ");
  EXPECT_CONTAINS(with_dataset("doubles", H5T_IEEE_F64LE, {hsize_t{1} << 61}, in_chunks),
                  "'x' claims 18446744073709551615 bytes in a file of ");
  EXPECT_CONTAINS(with_dataset("doubles", H5T_IEEE_F64LE, {100}, in_chunks),
                  "'x' has only 0 of its 800 bytes");
  const auto packed = [&](hid_t layout, hid_t space) {
    in_chunks(layout, space);
    H5Pset_deflate(layout, 1);
  };
  EXPECT_CONTAINS(with_dataset("doubles", H5T_IEEE_F64LE, {100'000'000}, packed),
                  "'x' claims 800000000 bytes, but has 0");
}

TEST(ArchiveFile, GroupsThatGoRoundInCirclesComeToAnEnd) {
  EXPECT_CONTAINS(error_after(true,
                              [](hid_t file) {
                                for (int level = 0; level < 60; ++level) {
                                  const auto name = fmt::format("g{}", level);
                                  hdf5::Id(H5Gcreate2(file, name.c_str(), H5P_DEFAULT, H5P_DEFAULT,
                                                      H5P_DEFAULT),
                                           H5Gclose);
                                  if (level == 0) continue;
                                  for (const char* twin : {"a", "b"}) {
                                    const auto link = fmt::format("g{}/{}", level, twin);
                                    const auto below = fmt::format("g{}", level - 1);
                                    H5Lcreate_hard(file, below.c_str(), file, link.c_str(),
                                                   H5P_DEFAULT, H5P_DEFAULT);
                                  }
                                }
                              }),
                  "is damaged: it has more members than room");
}

}  // namespace
}  // namespace neyman
