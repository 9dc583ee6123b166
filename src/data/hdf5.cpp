#include "data/hdf5.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <cstring>

#include "data/hdf5_trial.hpp"
#include "data/input_file.hpp"
#include "neyman/core/error.hpp"
#include "neyman/core/text.hpp"
#include "neyman/data/checksum.hpp"

namespace neyman::hdf5 {

namespace {

std::recursive_mutex& library_mutex() {
  static std::recursive_mutex mutex;
  return mutex;
}

herr_t keep_innermost(unsigned depth, const H5E_error2_t* error, void* text) {
  if (depth == 0 && error->desc != nullptr) *static_cast<std::string*>(text) = error->desc;
  return 0;
}

/// Below this many bytes an array lies in the header of its dataset.
constexpr std::size_t compact_bytes = 4096;
constexpr std::size_t chunk_bytes = 1 << 17;

/// How many times less than its values a filter may take: deflate reaches 1000 with zeros.
constexpr std::uint64_t best_compression = 100'000;

/// a b, or the largest number where that is too large.
std::uint64_t product(std::uint64_t a, std::uint64_t b) {
  std::uint64_t out = 0;
  return __builtin_mul_overflow(a, b, &out) ? UINT64_MAX : out;
}

std::uint64_t product(const std::vector<hsize_t>& extents, std::uint64_t item) {
  std::uint64_t out = item;
  // A zero is zero, however large the others.
  if (std::find(extents.begin(), extents.end(), 0u) != extents.end()) return 0;
  for (const hsize_t extent : extents) out = product(out, extent);
  return out;
}

std::vector<hsize_t> chunk_of(hid_t properties) {
  std::vector<hsize_t> chunk(H5S_MAX_RANK);
  const int rank = H5Pget_chunk(properties, H5S_MAX_RANK, chunk.data());
  chunk.resize(static_cast<std::size_t>(std::max(rank, 0)));
  return chunk;
}

std::uint64_t file_bytes(hid_t object) {
  const Id file(H5Iget_file_id(object), H5Fclose);
  hsize_t size = 0;
  return file.ok() && H5Fget_filesize(file, &size) >= 0 ? size : 0;
}

[[noreturn]] void fail_unfinished(const std::string& path, const std::string& name,
                                  const std::string& what) {
  throw FileError(fmt::format("{}: '{}' {}: its writing was not finished, or it is damaged", path,
                              shortened(name), what));
}

}  // namespace

Session::Session() : lock_(library_mutex()) {
  H5Eget_auto2(H5E_DEFAULT, &print_, &print_data_);
  H5Eset_auto2(H5E_DEFAULT, nullptr, nullptr);
}

Session::~Session() {
  H5Eclear2(H5E_DEFAULT);
  H5Eset_auto2(H5E_DEFAULT, print_, print_data_);
}

std::string last_error() {
  std::string text;
  H5Ewalk2(H5E_DEFAULT, H5E_WALK_UPWARD, keep_innermost, &text);
  // Of a failed system call only its reason is of use, not the time and the addresses.
  constexpr std::string_view label = "error message = '";
  const std::size_t begin = text.find(label);
  if (begin == text.npos) return text;
  const std::size_t reason = begin + label.size();
  return text.substr(reason, text.find('\'', reason) - reason);
}

void fail(const std::string& path, const std::string& what) {
  const std::string reason = last_error();
  throw FileError(reason.empty() ? fmt::format("{}: {}", path, what)
                                 : fmt::format("{}: {} (HDF5: {})", path, what, reason));
}

void check(const std::string& path, herr_t status, const std::string& what) {
  if (status < 0) fail(path, what);
}

Id open_file(const std::string& path) {
  const InputFile file(path);  // says why a file cannot be opened better than HDF5 does
  if (file.size() == 0) throw FileError(path + ": is empty");
  if (H5Fis_hdf5(path.c_str()) <= 0) throw FileError(path + ": is not an HDF5 file");
  try_structure(path);
  const Id access(H5Pcreate(H5P_FILE_ACCESS), H5Pclose);
  H5Pset_fclose_degree(access, H5F_CLOSE_STRONG);
#if H5_VERSION_GE(1, 10, 7)
  // Files are replaced as a whole, so no lock is needed, and some file systems have none.
  H5Pset_file_locking(access, false, true);
#endif
  Id id(H5Fopen(path.c_str(), H5F_ACC_RDONLY, access), H5Fclose);
  if (!id.ok()) fail(path, "is a damaged HDF5 file");
  return id;
}

std::string name_of(hid_t object) {
  const ssize_t length = H5Iget_name(object, nullptr, 0);
  std::string name(static_cast<std::size_t>(std::max<ssize_t>(length, 0)), '\0');
  H5Iget_name(object, name.data(), name.size() + 1);
  return name;
}

void check_stored(const std::string& path, hid_t dataset, const std::string& name) {
  const Id properties(H5Dget_create_plist(dataset), H5Pclose);
  const Id type(H5Dget_type(dataset), H5Tclose);
  const Id space(H5Dget_space(dataset), H5Sclose);
  if (!properties.ok() || !type.ok() || !space.ok())
    fail(path, fmt::format("is damaged: '{}' cannot be read", shortened(name)));
  const H5D_layout_t layout = H5Pget_layout(properties);
  if (H5Pget_external_count(properties) > 0 || layout == H5D_VIRTUAL)
    throw FileError(
        fmt::format("{}: the values of '{}' lie in other files, which are not followed; copy them "
                    "into this one",
                    path, shortened(name)));
  if (H5Sget_simple_extent_type(space) == H5S_NULL) return;
  const std::uint64_t item = H5Tget_size(type), claimed = product(extents_of(dataset), item);
  if (claimed == 0) return;
  const bool filtered = layout == H5D_CHUNKED && H5Pget_nfilters(properties) > 0;
  const std::uint64_t file = file_bytes(dataset);
  const std::uint64_t most = product(file, filtered ? best_compression : 1);
  const std::uint64_t chunk =
      layout == H5D_CHUNKED ? product(chunk_of(properties), item) : std::uint64_t{0};
  if (claimed > most || chunk > most)
    fail_unfinished(path, name,
                    fmt::format("claims {} bytes in a file of {}", std::max(claimed, chunk), file));
  if (filtered) return;
  const std::uint64_t stored = H5Dget_storage_size(dataset);
  if (stored < claimed)
    fail_unfinished(path, name, fmt::format("has only {} of its {} bytes", stored, claimed));
}

void check_stored_whole(const std::string& path, hid_t dataset, const std::string& name) {
  // Deflate's best, and some bytes of each chunk.
  constexpr std::uint64_t best_deflate = 1100;
  const Id type(H5Dget_type(dataset), H5Tclose);
  const Id space(H5Dget_space(dataset), H5Sclose);
  if (H5Sget_simple_extent_type(space) == H5S_NULL) return;
  const std::uint64_t claimed = product(extents_of(dataset), H5Tget_size(type));
  const std::uint64_t stored = H5Dget_storage_size(dataset);
  if (claimed > product(stored, best_deflate))
    fail_unfinished(path, name, fmt::format("claims {} bytes, but has {}", claimed, stored));
}

void check_rows_stored(const std::string& path, hid_t dataset, const std::string& name,
                       hsize_t first, hsize_t rows) {
#if H5_VERSION_GE(1, 10, 3)
  const Id properties(H5Dget_create_plist(dataset), H5Pclose);
  if (rows == 0 || H5Pget_layout(properties) != H5D_CHUNKED) return;
  const std::vector<hsize_t> chunk = chunk_of(properties), extents = extents_of(dataset);
  if (chunk.size() != extents.size() || product(chunk, 1) == 0)
    fail(path, fmt::format("is damaged: '{}' cannot be read", shortened(name)));
  std::vector<hsize_t> at(chunk.size(), 0);
  for (at[0] = first / chunk[0] * chunk[0]; at[0] < first + rows; at[0] += chunk[0]) {
    const hsize_t width = extents.size() > 1 ? extents[1] : 1,
                  step = chunk.size() > 1 ? chunk[1] : 1;
    for (hsize_t column = 0; column < width; column += step) {
      if (at.size() > 1) at[1] = column;
      hsize_t bytes = 0;
      if (H5Dget_chunk_storage_size(dataset, at.data(), &bytes) >= 0 && bytes > 0) continue;
      H5Eclear2(H5E_DEFAULT);
      fail_unfinished(path, name,
                      fmt::format("has no values for its rows {} to {}", at[0],
                                  std::min(at[0] + chunk[0], extents[0]) - 1));
    }
  }
#endif
}

FileInMemory::FileInMemory(const std::string& path, std::size_t user_block)
    : path_(path), user_block_(user_block) {
  const Id access(H5Pcreate(H5P_FILE_ACCESS), H5Pclose);
  H5Pset_libver_bounds(access, H5F_LIBVER_V18, H5F_LIBVER_V18);
  H5Pset_fclose_degree(access, H5F_CLOSE_STRONG);
  H5Pset_fapl_core(access, std::size_t{1} << 20, false);
  const Id creation = timeless(H5P_FILE_CREATE);
  H5Pset_userblock(creation, user_block);
  file_ = Id(H5Fcreate(path.c_str(), H5F_ACC_TRUNC, creation, access), H5Fclose);
  if (!file_.ok()) fail(path, "cannot be written");
}

std::string_view FileInMemory::bytes() const {
  // H5Fget_file_image would copy the bytes and, in 1.10, break the checksum of the superblock;
  // only its size is used, which leaves the user block out.
  check(path_, H5Fflush(file_, H5F_SCOPE_GLOBAL), "cannot be written");
  const ssize_t size = H5Fget_file_image(file_, nullptr, 0);
  void* handle = nullptr;
  if (size < 0 || H5Fget_vfd_handle(file_, H5P_DEFAULT, &handle) < 0) {
    fail(path_, "cannot be written");
  }
  return {*static_cast<const char* const*>(handle), static_cast<std::size_t>(size) + user_block_};
}

std::vector<std::string> member_names(const std::string& path, hid_t group) {
  H5G_info_t info;
  check(path, H5Gget_info(group, &info), "is damaged: a group cannot be listed");
  // Each name and each of its letters takes room in the file.
  std::uint64_t room = file_bytes(group);
  if (info.nlinks > room) fail(path, "is damaged: a group has more members than room");
  std::vector<std::string> names;
  for (hsize_t i = 0; i < info.nlinks; ++i) {
    const ssize_t length =
        H5Lget_name_by_idx(group, ".", H5_INDEX_NAME, H5_ITER_INC, i, nullptr, 0, H5P_DEFAULT);
    if (length < 0 || static_cast<std::uint64_t>(length) > room)
      fail(path, "is damaged: a group cannot be listed");
    room -= static_cast<std::uint64_t>(length);
    std::string name(static_cast<std::size_t>(length), '\0');
    H5Lget_name_by_idx(group, ".", H5_INDEX_NAME, H5_ITER_INC, i, name.data(), name.size() + 1,
                       H5P_DEFAULT);
    names.push_back(std::move(name));
  }
  std::sort(names.begin(), names.end());
  return names;
}

Id open_member(const std::string& path, hid_t group, const std::string& name) {
  H5L_info_t info;
  check(path, H5Lget_info(group, name.c_str(), &info, H5P_DEFAULT),
        fmt::format("is damaged: '{}' cannot be opened", name));
  if (info.type != H5L_TYPE_HARD) {
    throw FileError(
        fmt::format("{}: '{}' is a link to elsewhere, which is not followed", path, name));
  }
  Id id(H5Oopen(group, name.c_str(), H5P_DEFAULT), H5Oclose);
  if (!id.ok()) fail(path, fmt::format("is damaged: '{}' cannot be opened", name));
  return id;
}

Id open_path(const std::string& path, hid_t group, const std::string& names) {
  Id at(H5Gopen2(group, ".", H5P_DEFAULT), H5Gclose);
  for (std::size_t begin = 0; begin < names.size();) {
    const std::size_t end = std::min(names.find('/', begin), names.size());
    const std::string name = names.substr(begin, end - begin);
    begin = end + 1;
    if (name.empty() || name == ".") continue;
    if (H5Iget_type(at) != H5I_GROUP || H5Lexists(at, name.c_str(), H5P_DEFAULT) <= 0) return {};
    at = open_member(path, at, name);
  }
  return at;
}

Id simple_space(const std::vector<hsize_t>& extents) {
  return {H5Screate_simple(static_cast<int>(extents.size()), extents.data(), nullptr), H5Sclose};
}

std::vector<hsize_t> extents_of(hid_t dataset) {
  const Id space(H5Dget_space(dataset), H5Sclose);
  const int rank = H5Sget_simple_extent_ndims(space);
  std::vector<hsize_t> extents(static_cast<std::size_t>(std::max(rank, 0)));
  if (!extents.empty()) H5Sget_simple_extent_dims(space, extents.data(), nullptr);
  return extents;
}

Id timeless(hid_t kind) {
  Id list(H5Pcreate(kind), H5Pclose);
  H5Pset_obj_track_times(list, false);
  return list;
}

Id array_layout(const std::vector<hsize_t>& extents, std::size_t item_size, int compression) {
  Id layout = timeless(H5P_DATASET_CREATE);
  hsize_t bytes = item_size;
  for (const hsize_t extent : extents) bytes *= extent;
  if (bytes <= compact_bytes) {
    H5Pset_layout(layout, H5D_COMPACT);
    return layout;
  }
  std::vector<hsize_t> chunk = extents;
  const hsize_t row_bytes = bytes / extents[0];
  chunk[0] = std::clamp<hsize_t>(chunk_bytes / row_bytes, 1, extents[0]);
  if (chunk.size() > 1) {
    chunk[1] = std::clamp<hsize_t>(chunk_bytes / item_size, 1, extents[1]);
  }
  H5Pset_chunk(layout, static_cast<int>(chunk.size()), chunk.data());
  if (compression > 0 && H5Zfilter_avail(H5Z_FILTER_DEFLATE) > 0) {
    H5Pset_shuffle(layout);
    H5Pset_deflate(layout, static_cast<unsigned>(compression));
  }
  H5Pset_fletcher32(layout);
  return layout;
}

namespace {

constexpr const char* checksums_attribute = "row_checksums";
constexpr std::size_t most_checksums = 4096;  // what lies in the header of a dataset
constexpr std::size_t value_bytes = 8;

}  // namespace

std::uint64_t checksum_of(const void* values, hsize_t rows) {
  const std::string_view bytes(static_cast<const char*>(values), rows * value_bytes);
  if constexpr (std::endian::native == std::endian::little) return checksum(bytes);
  std::string turned(bytes);
  for (std::size_t i = 0; i < turned.size(); i += value_bytes)
    std::reverse(turned.data() + i, turned.data() + i + value_bytes);
  return checksum(turned);
}

RowChecksums checksums_of(const void* values, hsize_t rows) {
  // As many rows as a chunk has, or several chunks.
  constexpr hsize_t of_chunk = chunk_bytes / value_bytes;
  RowChecksums out{of_chunk * std::max<hsize_t>(1, (rows + of_chunk * most_checksums - 1) /
                                                       (of_chunk * most_checksums))};
  for (hsize_t row = 0; row < rows; row += out.rows)
    out.sums.push_back(checksum_of(static_cast<const char*>(values) + row * value_bytes,
                                   std::min(out.rows, rows - row)));
  return out;
}

void write_row_checksums(const std::string& path, hid_t dataset, const RowChecksums& checksums) {
  std::vector<std::uint64_t> numbers = {checksums.rows};
  numbers.insert(numbers.end(), checksums.sums.begin(), checksums.sums.end());
  const Id space = simple_space({numbers.size()});
  const Id attribute(
      H5Acreate2(dataset, checksums_attribute, H5T_STD_U64LE, space, H5P_DEFAULT, H5P_DEFAULT),
      H5Aclose);
  if (!attribute.ok() || H5Awrite(attribute, H5T_NATIVE_UINT64, numbers.data()) < 0)
    fail(path, "cannot be written");
}

RowChecksums read_row_checksums(const std::string& path, hid_t dataset, const std::string& name) {
  if (H5Aexists(dataset, checksums_attribute) <= 0) return {};
  const auto extents = extents_of(dataset);
  const Id attribute(H5Aopen(dataset, checksums_attribute, H5P_DEFAULT), H5Aclose);
  const Id space(attribute.ok() ? H5Aget_space(attribute) : -1, H5Sclose);
  const hssize_t count = space.ok() ? H5Sget_simple_extent_npoints(space) : -1;
  std::vector<std::uint64_t> numbers;
  if (count > 1 && count <= static_cast<hssize_t>(most_checksums) + 1) {
    numbers.resize(static_cast<std::size_t>(count));
    if (H5Aread(attribute, H5T_NATIVE_UINT64, numbers.data()) < 0) numbers.clear();
  }
  const bool fits = !numbers.empty() && numbers[0] > 0 && extents.size() == 1 &&
                    numbers.size() - 1 == extents[0] / numbers[0] + (extents[0] % numbers[0] > 0);
  if (!fits)
    throw FileError(fmt::format("{}: is damaged: the checksums of '{}' do not fit its rows", path,
                                shortened(name)));
  return {numbers[0], {numbers.begin() + 1, numbers.end()}};
}

Id text_type(std::size_t length) {
  Id type(H5Tcopy(H5T_C_S1), H5Tclose);
  H5Tset_size(type, length);
  H5Tset_strpad(type, H5T_STR_NULLPAD);
  H5Tset_cset(type, H5T_CSET_UTF8);
  return type;
}

std::size_t longest_text(const std::vector<std::string>& texts) {
  std::size_t length = 1;
  for (const std::string& text : texts) length = std::max(length, text.size());
  return length;
}

std::vector<char> pack_texts(const std::vector<std::string>& texts, std::size_t length) {
  std::vector<char> bytes(texts.size() * length, '\0');
  for (std::size_t i = 0; i < texts.size(); ++i) {
    std::copy(texts[i].begin(), texts[i].end(), bytes.data() + i * length);
  }
  return bytes;
}

std::vector<std::string> unpack_texts(const std::vector<char>& bytes, std::size_t length) {
  std::vector<std::string> texts;
  for (std::size_t i = 0; i + length <= bytes.size(); i += length) {
    texts.emplace_back(bytes.data() + i, ::strnlen(bytes.data() + i, length));
  }
  return texts;
}

void write_text_attribute(const std::string& path, hid_t object, const char* name,
                          std::string_view text) {
  const Id type = text_type(std::max<std::size_t>(text.size(), 1));
  const Id space(H5Screate(H5S_SCALAR), H5Sclose);
  const Id attribute(H5Acreate2(object, name, type, space, H5P_DEFAULT, H5P_DEFAULT), H5Aclose);
  const std::string bytes = text.empty() ? std::string(1, '\0') : std::string(text);
  if (!attribute.ok() || H5Awrite(attribute, type, bytes.data()) < 0) {
    fail(path, "cannot be written");
  }
}

void write_text_list_attribute(const std::string& path, hid_t object, const char* name,
                               const std::vector<std::string>& texts) {
  const std::size_t length = longest_text(texts);
  const Id type = text_type(length);
  const Id space = simple_space({texts.size()});
  const Id attribute(H5Acreate2(object, name, type, space, H5P_DEFAULT, H5P_DEFAULT), H5Aclose);
  if (!attribute.ok() || H5Awrite(attribute, type, pack_texts(texts, length).data()) < 0) {
    fail(path, "cannot be written");
  }
}

std::vector<std::string> read_text_attribute(const std::string& path, hid_t object,
                                             const char* name) {
  if (H5Aexists(object, name) <= 0) return {};
  const std::string what = fmt::format("its attribute '{}' cannot be read as text", name);
  const Id attribute(H5Aopen(object, name, H5P_DEFAULT), H5Aclose);
  if (!attribute.ok()) fail(path, what);
  const Id type(H5Aget_type(attribute), H5Tclose);
  const Id space(H5Aget_space(attribute), H5Sclose);
  const hssize_t points = H5Sget_simple_extent_npoints(space);
  if (H5Tget_class(type) != H5T_STRING || points < 0) fail(path, what);
  const std::size_t count = static_cast<std::size_t>(points);
  if (product(count, std::max<std::size_t>(H5Tget_size(type), 1)) > file_bytes(object))
    throw FileError(fmt::format(
        "{}: is damaged: its attribute '{}' claims more than the file holds", path, name));
  if (H5Tis_variable_str(type) > 0) {
    std::vector<char*> pointers(count, nullptr);
    check(path, H5Aread(attribute, type, pointers.data()), what);
    std::vector<std::string> texts;
    for (const char* text : pointers) texts.emplace_back(text != nullptr ? text : "");
    H5Dvlen_reclaim(type, space, H5P_DEFAULT, pointers.data());
    return texts;
  }
  const std::size_t length = H5Tget_size(type);
  if (length == 0) fail(path, what);
  std::vector<char> bytes(count * length);
  check(path, H5Aread(attribute, type, bytes.data()), what);
  return unpack_texts(bytes, length);
}

}  // namespace neyman::hdf5
