#include "data/hdf5.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>

#include "data/input_file.hpp"
#include "neyman/core/error.hpp"

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
  const Id access(H5Pcreate(H5P_FILE_ACCESS), H5Pclose);
  H5Pset_fclose_degree(access, H5F_CLOSE_STRONG);
#if H5_VERSION_GE(1, 10, 7)
  // Files are replaced as a whole, so no lock is needed, and some file systems have none.
  H5Pset_file_locking(access, false, true);
#endif
  Id id(H5Fopen(path.c_str(), H5F_ACC_RDONLY, access), H5Fclose);
  if (id.ok()) return id;
  const std::string reason = last_error();
  const bool recognised = H5Fis_hdf5(path.c_str()) > 0;
  throw FileError(recognised ? fmt::format("{}: is a damaged HDF5 file (HDF5: {})", path, reason)
                             : path + ": is not an HDF5 file");
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
  std::vector<std::string> names;
  for (hsize_t i = 0; i < info.nlinks; ++i) {
    const ssize_t length =
        H5Lget_name_by_idx(group, ".", H5_INDEX_NAME, H5_ITER_INC, i, nullptr, 0, H5P_DEFAULT);
    if (length < 0) fail(path, "is damaged: a group cannot be listed");
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
