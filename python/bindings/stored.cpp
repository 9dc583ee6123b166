#include "stored.hpp"

#include <cstdlib>
#include <filesystem>

#include "neyman/core/error.hpp"
#include "neyman/data/archive_file.hpp"
#include "neyman/data/atomic_file.hpp"
#include "work.hpp"

namespace neyman::python {

namespace {

constexpr int version = 1;

/// A file in a folder of its own, which is removed at the end.
class TemporaryFile {
 public:
  TemporaryFile() {
    auto name = (std::filesystem::temp_directory_path() / "neyman-XXXXXX").string();
    if (::mkdtemp(name.data()) == nullptr) throw FileError(name + ": the folder cannot be made");
    folder_ = name;
  }
  ~TemporaryFile() {
    std::error_code ignored;
    std::filesystem::remove_all(folder_, ignored);
  }
  TemporaryFile(const TemporaryFile&) = delete;
  TemporaryFile& operator=(const TemporaryFile&) = delete;
  std::string path() const { return folder_ + "/object.h5"; }

 private:
  std::string folder_;
};

}  // namespace

py::bytes file_bytes(const std::function<void(const std::string& path)>& write) {
  return short_work([&] {
    const TemporaryFile file;
    write(file.path());
    return read_file(file.path());
  });
}

void with_file(const py::bytes& bytes, const std::function<void(const std::string& path)>& read) {
  const std::string content = bytes;
  short_work([&] {
    const TemporaryFile file;
    write_file_atomically(file.path(), content);
    read(file.path());
  });
}

py::bytes dump(const std::string& what, const std::function<void(Archive&)>& save) {
  return file_bytes([&](const std::string& path) {
    Archive archive;
    save(archive);
    write_archive(path, archive, "neyman." + what, version, 0);
  });
}

Archive undump(const std::string& what, const py::bytes& bytes) {
  Archive out;
  with_file(bytes, [&](const std::string& path) {
    out = read_archive(path, "neyman." + what, version).tree;
  });
  return out;
}

}  // namespace neyman::python
