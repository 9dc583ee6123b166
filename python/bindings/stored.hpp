#pragma once

#include <functional>
#include <string>
#include <utility>

#include "bindings.hpp"
#include "neyman/core/archive.hpp"

// Fitted objects as the bytes of an archive file (neyman/data/archive_file.hpp): what pickle and
// copy carry, and what `save` puts into a file. Reading them executes nothing.
namespace neyman::python {

/// The bytes of a file of schema "neyman.<what>/1".
py::bytes dump(const std::string& what, const std::function<void(Archive&)>& save);
/// @throw FileError where the bytes are not such a file, or are damaged.
Archive undump(const std::string& what, const py::bytes& bytes);

/// The bytes of the file that `write` makes under the path it is given, and the reverse.
py::bytes file_bytes(const std::function<void(const std::string& path)>& write);
void with_file(const py::bytes& bytes, const std::function<void(const std::string& path)>& read);

template <class Load>
auto load(const std::string& what, const py::bytes& bytes, Load&& make) {
  return make(std::as_const(static_cast<const Archive&>(undump(what, bytes))));
}

}  // namespace neyman::python
