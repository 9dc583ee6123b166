#include "neyman/data/archive_file.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <limits>
#include <new>
#include <stdexcept>

#include "data/hdf5.hpp"
#include "data/input_file.hpp"
#include "neyman/core/check.hpp"
#include "neyman/core/error.hpp"
#include "neyman/core/text.hpp"
#include "neyman/data/atomic_file.hpp"
#include "neyman/data/checksum.hpp"

namespace neyman {

namespace {

constexpr std::string_view layout_name = "neyman.archive";
constexpr int layout_version = 1;
constexpr int deepest_tree = 64;

// ---- Seal: a text in front of the HDF5 part (its "user block") with size and checksum of that
// part. It is compared before HDF5 sees the file: HDF5 1.10 can crash on a damaged one.

constexpr std::size_t seal_bytes = 512;  // the smallest user block

struct Seal {
  int version = 0;
  std::uint64_t size = 0;      ///< of the whole file
  std::uint64_t checksum = 0;  ///< CRC-64/XZ of everything behind the seal
};

std::string seal_text(const Seal& seal) {
  std::string text = fmt::format("{}/{}\nsize {}\ncrc64 {:016x}\n", layout_name, seal.version,
                                 seal.size, seal.checksum);
  text.resize(seal_bytes, '\0');
  return text;
}

/// Takes `prefix`, a number and a line end from the front of `text`.
template <class Number>
bool take_line(std::string_view& text, std::string_view prefix, int base, Number& number) {
  if (!text.starts_with(prefix)) return false;
  text.remove_prefix(prefix.size());
  const char* end = text.data() + text.size();
  const auto [stop, error] = std::from_chars(text.data(), end, number, base);
  if (error != std::errc{} || stop == end || *stop != '\n') return false;
  text.remove_prefix(static_cast<std::size_t>(stop + 1 - text.data()));
  return true;
}

/// Throws FileError unless the file is one of ours and whole.
void check_seal(const InputFile& file) {
  const std::string& path = file.path();
  const std::uint64_t size = file.size();
  if (size == 0) throw FileError(path + ": is empty");
  std::string bytes(std::min<std::uint64_t>(size, seal_bytes), '\0');
  file.read_at(0, bytes.data(), bytes.size());
  std::string_view text = bytes;
  if (!text.starts_with(layout_name)) {
    throw FileError(path + (H5Fis_hdf5(path.c_str()) > 0
                                ? ": is an HDF5 file, but was not written by neyman as a model"
                                : ": is not an HDF5 file"));
  }
  Seal seal;
  text.remove_prefix(layout_name.size());
  if (!take_line(text, "/", 10, seal.version) || seal.version < 1) {
    throw FileError(path + ": is damaged: its first line is broken");
  }
  if (seal.version > layout_version) {
    throw FileError(fmt::format(
        "{}: is laid out as '{}/{}', which a newer neyman wrote; this one reads up to '{}/{}'",
        path, layout_name, seal.version, layout_name, layout_version));
  }
  if (!take_line(text, "size ", 10, seal.size) || !take_line(text, "crc64 ", 16, seal.checksum)) {
    throw FileError(path + ": is damaged: its first lines are broken");
  }
  if (size < seal.size) {
    throw FileError(
        fmt::format("{}: is truncated: it has {} bytes, but must have {}", path, size, seal.size));
  }
  const std::uint64_t found = file_checksum(path, seal_bytes);
  if (size != seal.size || found != seal.checksum) {
    throw FileError(
        fmt::format("{}: is damaged: its content has checksum {:016x}, but must have {:016x}", path,
                    found, seal.checksum));
  }
  if (bytes != seal_text(seal)) throw FileError(path + ": is damaged: its first lines are broken");
}

// ---- Names: what HDF5 cannot hold is written as %XX. A % alone stands for nothing: it makes the
// empty name one that HDF5 accepts, and a child's name differ from that of a value.

std::string escape(std::string_view text, std::string_view special) {
  std::string escaped;
  for (const char c : text) {
    if (special.find(c) == special.npos) {
      escaped += c;
    } else {
      escaped += fmt::format("%{:02X}", static_cast<unsigned char>(c));
    }
  }
  return escaped;
}

std::string unescape(std::string_view text) {
  std::string plain;
  for (std::size_t i = 0; i < text.size(); ++i) {
    unsigned code = 0;
    if (text[i] != '%') {
      plain += text[i];
    } else if (i + 2 < text.size() &&
               std::from_chars(&text[i + 1], &text[i + 1] + 2, code, 16).ptr == &text[i + 1] + 2) {
      plain += static_cast<char>(code);
      i += 2;
    }
  }
  return plain;
}

std::string link_name(std::string_view name) {
  if (name.empty()) return "%";
  if (name == ".") return "%2E";
  return escape(name, std::string_view("%/\0", 3));
}

std::string child_link_name(const Archive& parent, std::string_view name) {
  return link_name(name) + (parent.has(name) ? "%" : "");
}

constexpr std::string_view text_special("%\0", 2);

// ---- Writing.

class TreeWriter {
 public:
  TreeWriter(const std::string& path, int compression) : path_(path), compression_(compression) {}

  void write(hid_t group, const Archive& tree) {
    for (const auto& [key, value] : tree.values()) {
      std::visit([&, link = link_name(key)](const auto& content) { put(group, link, content); },
                 value);
    }
    for (const auto& [name, child] : tree.children()) {
      const hdf5::Id next(H5Gcreate2(group, child_link_name(tree, name).c_str(), H5P_DEFAULT,
                                     hdf5::timeless(H5P_GROUP_CREATE), H5P_DEFAULT),
                          H5Gclose);
      if (!next.ok()) hdf5::fail(path_, "cannot be written");
      write(next, child);
    }
  }

 private:
  void put(hid_t group, const std::string& link, bool value) {
    const std::uint8_t byte = value ? 1 : 0;
    put_scalar(group, link, "bool", H5T_STD_U8LE, H5T_NATIVE_UINT8, &byte);
  }
  void put(hid_t group, const std::string& link, std::int64_t value) {
    put_scalar(group, link, "int64", H5T_STD_I64LE, H5T_NATIVE_INT64, &value);
  }
  void put(hid_t group, const std::string& link, double value) {
    put_scalar(group, link, "double", H5T_IEEE_F64LE, H5T_NATIVE_DOUBLE, &value);
  }
  void put(hid_t group, const std::string& link, const std::string& text) {
    // An empty text has no bytes, which HDF5 calls a null dataspace.
    const hdf5::Id type = hdf5::text_type(std::max<std::size_t>(text.size(), 1));
    const hdf5::Id space(H5Screate(text.empty() ? H5S_NULL : H5S_SCALAR), H5Sclose);
    put_dataset(group, link, "text", type, type, space, hdf5::timeless(H5P_DATASET_CREATE),
                text.empty() ? nullptr : text.data());
  }
  void put(hid_t group, const std::string& link, const std::vector<double>& values) {
    put_array(group, link, "doubles", H5T_IEEE_F64LE, H5T_NATIVE_DOUBLE, {values.size()}, 8,
              values.data());
  }
  void put(hid_t group, const std::string& link, const std::vector<float>& values) {
    put_array(group, link, "floats", H5T_IEEE_F32LE, H5T_NATIVE_FLOAT, {values.size()}, 4,
              values.data());
  }
  void put(hid_t group, const std::string& link, const std::vector<std::int64_t>& values) {
    put_array(group, link, "int64s", H5T_STD_I64LE, H5T_NATIVE_INT64, {values.size()}, 8,
              values.data());
  }
  void put(hid_t group, const std::string& link, const std::vector<std::uint8_t>& values) {
    put_array(group, link, "bytes", H5T_STD_U8LE, H5T_NATIVE_UINT8, {values.size()}, 1,
              values.data());
  }
  void put(hid_t group, const std::string& link, const std::vector<std::string>& texts) {
    std::vector<std::string> escaped;
    for (const std::string& text : texts) escaped.push_back(escape(text, text_special));
    const std::size_t length = hdf5::longest_text(escaped);
    const hdf5::Id type = hdf5::text_type(length);
    put_array(group, link, "texts", type, type, {texts.size()}, length,
              hdf5::pack_texts(escaped, length).data());
  }
  void put(hid_t group, const std::string& link, const Matrix& matrix) {
    put_array(group, link, "matrix", H5T_IEEE_F64LE, H5T_NATIVE_DOUBLE,
              {matrix.rows(), matrix.cols()}, 8, matrix.data());
  }

  void put_scalar(hid_t group, const std::string& link, std::string_view type_name, hid_t file_type,
                  hid_t memory_type, const void* value) {
    const hdf5::Id space(H5Screate(H5S_SCALAR), H5Sclose);
    const hdf5::Id layout = hdf5::timeless(H5P_DATASET_CREATE);
    H5Pset_layout(layout, H5D_COMPACT);
    put_dataset(group, link, type_name, file_type, memory_type, space, layout, value);
  }
  void put_array(hid_t group, const std::string& link, std::string_view type_name, hid_t file_type,
                 hid_t memory_type, const std::vector<hsize_t>& extents, std::size_t item_size,
                 const void* values) {
    const hdf5::Id space = hdf5::simple_space(extents);
    const hdf5::Id layout = hdf5::array_layout(extents, item_size, compression_);
    put_dataset(group, link, type_name, file_type, memory_type, space, layout, values);
  }
  void put_dataset(hid_t group, const std::string& link, std::string_view type_name,
                   hid_t file_type, hid_t memory_type, hid_t space, hid_t layout,
                   const void* values) {
    const hdf5::Id dataset(
        H5Dcreate2(group, link.c_str(), file_type, space, H5P_DEFAULT, layout, H5P_DEFAULT),
        H5Dclose);
    if (!dataset.ok()) hdf5::fail(path_, "cannot be written");
    if (H5Sget_simple_extent_npoints(space) > 0) {
      hdf5::check(path_, H5Dwrite(dataset, memory_type, H5S_ALL, H5S_ALL, H5P_DEFAULT, values),
                  "cannot be written");
    }
    hdf5::write_text_attribute(path_, dataset, "type", type_name);
  }

  std::string path_;
  int compression_;
};

// ---- Reading.

class TreeReader {
 public:
  explicit TreeReader(const std::string& path) : path_(path) {}

  void read(hid_t group, Archive& tree, int depth = 0) {
    if (depth > deepest_tree) fail("its groups are nested too deeply");
    // A member that is reached by two ways could be reached by any number of them.
    constexpr std::uint64_t least_bytes_of_member = 16;
    const std::uint64_t most_members = InputFile(path_).size() / least_bytes_of_member;
    for (const std::string& link : hdf5::member_names(path_, group)) {
      if (++members_ > most_members) fail("it has more members than room");
      const hdf5::Id member = hdf5::open_member(path_, group, link);
      switch (H5Iget_type(member)) {
        case H5I_GROUP:
          read(member, tree.child(unescape(link)), depth + 1);
          break;
        case H5I_DATASET:
          tree.set(unescape(link), read_value(link, member));
          break;
        default:
          fail("'" + link + "' is neither a group nor a dataset");
      }
    }
  }

 private:
  [[noreturn]] void fail(const std::string& what) const {
    throw FileError(path_ + ": is damaged: " + what);
  }

  Archive::Value read_value(const std::string& link, hid_t dataset) {
    hdf5::check_stored(path_, dataset, link);
    hdf5::check_stored_whole(path_, dataset, link);
    const std::vector<std::string> names = hdf5::read_text_attribute(path_, dataset, "type");
    const std::string type = names.size() == 1 ? names[0] : "";
    if (type == "bool") return read_scalar<std::uint8_t>(link, dataset, H5T_NATIVE_UINT8) != 0;
    if (type == "int64") return read_scalar<std::int64_t>(link, dataset, H5T_NATIVE_INT64);
    if (type == "double") return read_scalar<double>(link, dataset, H5T_NATIVE_DOUBLE);
    if (type == "text") return read_text(link, dataset);
    if (type == "doubles") return read_array<double>(link, dataset, H5T_NATIVE_DOUBLE, 1);
    if (type == "floats") return read_array<float>(link, dataset, H5T_NATIVE_FLOAT, 1);
    if (type == "int64s") return read_array<std::int64_t>(link, dataset, H5T_NATIVE_INT64, 1);
    if (type == "bytes") return read_array<std::uint8_t>(link, dataset, H5T_NATIVE_UINT8, 1);
    if (type == "texts") return read_texts(link, dataset);
    if (type == "matrix") {
      std::vector<double> values = read_array<double>(link, dataset, H5T_NATIVE_DOUBLE, 2);
      const std::vector<hsize_t> extents = hdf5::extents_of(dataset);
      return Matrix(extents[0], extents[1], std::move(values));
    }
    fail(fmt::format("'{}' has the unknown type '{}'", shortened(link), shortened(type)));
  }

  void read_into(const std::string& link, hid_t dataset, hid_t type, void* out) {
    if (H5Dread(dataset, type, H5S_ALL, H5S_ALL, H5P_DEFAULT, out) < 0) {
      hdf5::fail(path_, fmt::format("is damaged: '{}' cannot be read", link));
    }
  }

  std::size_t point_count(const std::string& link, hid_t dataset, std::size_t rank) {
    if (hdf5::extents_of(dataset).size() != rank) fail("'" + link + "' has another shape");
    const hdf5::Id space(H5Dget_space(dataset), H5Sclose);
    const hssize_t points = H5Sget_simple_extent_npoints(space);
    if (points < 0) fail("'" + link + "' has no shape");
    return static_cast<std::size_t>(points);
  }

  template <class T>
  T read_scalar(const std::string& link, hid_t dataset, hid_t type) {
    if (point_count(link, dataset, 0) != 1) fail("'" + link + "' has no value");
    T value{};
    read_into(link, dataset, type, &value);
    return value;
  }
  template <class T>
  std::vector<T> read_array(const std::string& link, hid_t dataset, hid_t type, std::size_t rank) {
    std::vector<T> values(point_count(link, dataset, rank));
    if (!values.empty()) read_into(link, dataset, type, values.data());
    return values;
  }

  /// The type of a dataset of texts, which must be of fixed length.
  hdf5::Id fixed_text_type(const std::string& link, hid_t dataset) {
    hdf5::Id type(H5Dget_type(dataset), H5Tclose);
    if (H5Tget_class(type) != H5T_STRING || H5Tis_variable_str(type) > 0) {
      fail("'" + link + "' is not a text");
    }
    return type;
  }
  std::string read_text(const std::string& link, hid_t dataset) {
    const hdf5::Id type = fixed_text_type(link, dataset);
    if (point_count(link, dataset, 0) == 0) return {};
    std::string text(H5Tget_size(type), '\0');
    read_into(link, dataset, type, text.data());
    return text;
  }
  std::vector<std::string> read_texts(const std::string& link, hid_t dataset) {
    const hdf5::Id type = fixed_text_type(link, dataset);
    const std::size_t length = H5Tget_size(type);
    const std::size_t count = point_count(link, dataset, 1);
    if (length == 0 || count > std::numeric_limits<std::size_t>::max() / length)
      fail("'" + link + "' has no shape");
    std::vector<char> bytes(count * length);
    if (!bytes.empty()) read_into(link, dataset, type, bytes.data());
    std::vector<std::string> texts = hdf5::unpack_texts(bytes, length);
    for (std::string& text : texts) text = unescape(text);
    return texts;
  }

  std::string path_;
  std::uint64_t members_ = 0;
};

/// The version of a schema such as "neyman.model/1".
int check_schema(const std::string& path, const std::string& stored, std::string_view schema,
                 int newest) {
  const std::size_t slash = stored.rfind('/');
  int version = 0;
  if (slash != stored.npos) {
    const char* end = stored.data() + stored.size();
    const auto [stop, error] = std::from_chars(stored.data() + slash + 1, end, version);
    if (error != std::errc{} || stop != end) version = 0;
  }
  if (version < 1 || std::string_view(stored).substr(0, slash) != schema) {
    throw FileError(fmt::format("{}: holds '{}', but must hold '{}/{}'", path, shortened(stored),
                                schema, newest));
  }
  if (version > newest) {
    throw FileError(
        fmt::format("{}: holds '{}', which a newer neyman wrote; this one reads up to '{}/{}'",
                    path, stored, schema, newest));
  }
  return version;
}

StoredArchive read_tree(const std::string& path, std::string_view schema, int newest) {
  const hdf5::Session session;
  check_seal(InputFile(path));
  const hdf5::Id file = hdf5::open_file(path);
  const hdf5::Id root(H5Gopen2(file, "/", H5P_DEFAULT), H5Gclose);
  if (!root.ok()) hdf5::fail(path, "is a damaged HDF5 file");
  const std::vector<std::string> stored_schema = hdf5::read_text_attribute(path, root, "schema");
  if (stored_schema.size() != 1) throw FileError(path + ": is damaged: it names no schema");
  StoredArchive stored;
  stored.version = check_schema(path, stored_schema[0], schema, newest);
  TreeReader(path).read(root, stored.tree);
  return stored;
}

}  // namespace

void write_archive(const std::string& path, const Archive& archive, std::string_view schema,
                   int version, int compression) {
  check_in_range("write_archive", "compression", compression, 0, 9);
  if (version < 1)
    fail_argument("write_archive", "version", fmt::format("{}", version), "positive");
  if (schema.empty()) fail_argument("write_archive", "schema", "empty", "a name");
  const hdf5::Session session;
  const hdf5::FileInMemory file(path, seal_bytes);
  hdf5::write_text_attribute(path, file, "schema", fmt::format("{}/{}", schema, version));
  {
    const hdf5::Id root(H5Gopen2(file, "/", H5P_DEFAULT), H5Gclose);
    TreeWriter(path, compression).write(root, archive);
  }
  const std::string_view bytes = file.bytes();
  AtomicFile target(path);
  target.write(seal_text({layout_version, bytes.size(), checksum(bytes.substr(seal_bytes))}));
  target.write(bytes.substr(seal_bytes));
  target.commit();
}

void check_archive(const std::string& path) {
  const hdf5::Session session;
  check_seal(InputFile(path));
}

StoredArchive read_archive(const std::string& path, std::string_view schema, int newest_version) {
  try {
    return read_tree(path, schema, newest_version);
  } catch (const std::bad_alloc&) {
    throw FileError(path + ": is damaged, or too large for memory");
  } catch (const std::length_error&) {
    throw FileError(path + ": is damaged: it claims an impossible size");
  }
}

}  // namespace neyman
