#pragma once

#include <hdf5.h>

#include <cstdint>
#include <mutex>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

// What the HDF5 files of this room have in common: handles that close themselves, errors that
// become FileErrors, and the file format that is written.
namespace neyman::hdf5 {

/// While it lives, HDF5 does not print its errors, and no other thread of ours is inside HDF5,
/// which need not have been built for threads. Every use of HDF5 takes place in a session.
class Session {
 public:
  Session();
  ~Session();
  Session(const Session&) = delete;
  Session& operator=(const Session&) = delete;

 private:
  std::unique_lock<std::recursive_mutex> lock_;
  H5E_auto2_t print_ = nullptr;
  void* print_data_ = nullptr;
};

/// An identifier that is closed at the end of its scope.
class Id {
 public:
  using Close = herr_t (*)(hid_t);
  Id() = default;
  Id(hid_t id, Close closer) : id_(id), close_(closer) {}
  Id(Id&& other) noexcept : id_(std::exchange(other.id_, -1)), close_(other.close_) {}
  Id& operator=(Id&& other) noexcept {
    std::swap(id_, other.id_);
    std::swap(close_, other.close_);
    return *this;
  }
  ~Id() {
    if (id_ >= 0) close_(id_);
  }
  operator hid_t() const { return id_; }  // NOLINT: for HDF5's functions
  bool ok() const { return id_ >= 0; }

 private:
  hid_t id_ = -1;
  Close close_ = nullptr;
};

/// The innermost description on HDF5's stack of errors.
std::string last_error();
/// Throws FileError "path: what (HDF5: reason)".
[[noreturn]] void fail(const std::string& path, const std::string& what);
/// Throws unless `status` is a success.
void check(const std::string& path, herr_t status, const std::string& what);

/// Opens a file for reading; says whether it is missing, foreign or damaged. The first time, a
/// process of its own goes through all of the file's structure, which ends HDF5 where it is
/// damaged.
Id open_file(const std::string& path);

/// The path of an object in its file.
std::string name_of(hid_t object);
/// Refuses a dataset whose values lie in other files, and one that claims more of them than the
/// file can hold, or was never written.
void check_stored(const std::string& path, hid_t dataset, const std::string& name);
/// Refuses a dataset that claims more than its stored bytes can give, however well compressed.
void check_stored_whole(const std::string& path, hid_t dataset, const std::string& name);
/// Refuses rows of which a part was never written, or is no longer found: HDF5 would give the fill
/// value for them, which is zero.
void check_rows_stored(const std::string& path, hid_t dataset, const std::string& name,
                       hsize_t first, hsize_t rows);

/// A file that is made in memory, so that HDF5 never meets a full disk: it cannot close a file
/// that it could not write, and crashes at the end of the program. Its metadata carry checksums,
/// and HDF5 1.8 and later read it.
class FileInMemory {
 public:
  /// HDF5 leaves the first `user_block` bytes alone: 0, or a power of two from 512 on.
  explicit FileInMemory(const std::string& path, std::size_t user_block = 0);
  operator hid_t() const { return file_; }  // NOLINT: for HDF5's functions
  /// What is to be written to disk; it lasts as long as nothing more is added.
  std::string_view bytes() const;

 private:
  std::string path_;
  std::size_t user_block_;
  Id file_;
};

/// The names of a group's members, sorted.
std::vector<std::string> member_names(const std::string& path, hid_t group);
/// Opens a member that lies in the same file; links to elsewhere are refused.
Id open_member(const std::string& path, hid_t group, const std::string& name);
/// The same by the names of groups with slashes between them; nothing where a member is missing.
Id open_path(const std::string& path, hid_t group, const std::string& names);

Id simple_space(const std::vector<hsize_t>& extents);
std::vector<hsize_t> extents_of(hid_t dataset);

/// A list of properties of what is created (H5P_DATASET_CREATE, …), which then does not note the
/// time: the same content gives the same bytes.
Id timeless(hid_t kind);

/// Layout for an array: chunked, checksummed and compressed where that pays, otherwise inside
/// the header of the dataset.
Id array_layout(const std::vector<hsize_t>& extents, std::size_t item_size, int compression);

/// The checksums of a column's values: of so many rows each, from the top.
struct RowChecksums {
  hsize_t rows = 0;  ///< of each but the last
  std::vector<std::uint64_t> sums = {};
};
/// Of values of 8 bytes.
RowChecksums checksums_of(const void* values, hsize_t rows);
std::uint64_t checksum_of(const void* values, hsize_t rows);
void write_row_checksums(const std::string& path, hid_t dataset, const RowChecksums& checksums);
/// Empty where the dataset has none: neyman has not written it, or an older one has.
RowChecksums read_row_checksums(const std::string& path, hid_t dataset, const std::string& name);

/// A type of texts with this length.
Id text_type(std::size_t length);
void write_text_attribute(const std::string& path, hid_t object, const char* name,
                          std::string_view text);
/// Text of fixed or variable length; empty where there is no such attribute.
std::vector<std::string> read_text_attribute(const std::string& path, hid_t object,
                                             const char* name);
void write_text_list_attribute(const std::string& path, hid_t object, const char* name,
                               const std::vector<std::string>& texts);
/// Texts as one block of bytes, each padded with zeros to `length`.
std::vector<char> pack_texts(const std::vector<std::string>& texts, std::size_t length);
std::vector<std::string> unpack_texts(const std::vector<char>& bytes, std::size_t length);
/// The length of the longest, and at least one.
std::size_t longest_text(const std::vector<std::string>& texts);

}  // namespace neyman::hdf5
