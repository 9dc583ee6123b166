#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <exception>
#include <optional>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

#include "neyman/core/archive.hpp"
#include "neyman/core/matrix.hpp"

// Values as bytes, between processes of one program on one kind of machine. One list of fields
// serves both ways:
//
//   const auto fields = [](auto& bytes, auto& value) { bytes(value.ok, value.point); };
namespace neyman {

/// Appends values to bytes.
class Packer {
 public:
  template <class... Values>
  void operator()(const Values&... values) {
    (put(values), ...);
  }
  /// Values of which another function lists the fields.
  template <class T, class Fields>
  void list(const std::vector<T>& values, Fields&& fields) {
    put(values.size());
    for (const auto& value : values) fields(*this, value);
  }
  std::string take() { return std::exchange(bytes_, {}); }

 private:
  template <class T>
  requires std::is_trivially_copyable_v<T>
  void put(const T& value) { bytes_.append(reinterpret_cast<const char*>(&value), sizeof value); }
  void put(const std::string& text) {
    put(text.size());
    bytes_ += text;
  }
  template <class T>
  void put(const std::vector<T>& values) {
    put(values.size());
    if constexpr (std::is_trivially_copyable_v<T>)
      bytes_.append(reinterpret_cast<const char*>(values.data()), values.size() * sizeof(T));
    else
      for (const auto& value : values) put(value);
  }
  template <class T>
  void put(const std::optional<T>& value) {
    put(value.has_value());
    if (value) put(*value);
  }
  void put(const Matrix& matrix);
  void put(const Archive& archive);
  /// An error of the library keeps its kind; others become an Error.
  void put(const std::exception_ptr& error);

  std::string bytes_;
};

/// Takes values off bytes that a Packer made of the same types.
class Unpacker {
 public:
  /// The bytes must outlive it.
  explicit Unpacker(std::string_view bytes) : rest_(bytes) {}

  /// @throw FileError where the bytes end too early.
  template <class... Values>
  void operator()(Values&... values) {
    (get(values), ...);
  }
  template <class T, class Fields>
  void list(std::vector<T>& values, Fields&& fields) {
    values.clear();
    for (std::size_t left = length(); left > 0; --left) fields(*this, values.emplace_back());
  }
  bool empty() const { return rest_.empty(); }

 private:
  std::string_view bytes(std::size_t count);
  std::size_t length();

  template <class T>
  requires std::is_trivially_copyable_v<T>
  void get(T& value) { std::memcpy(&value, bytes(sizeof value).data(), sizeof value); }
  void get(std::string& text) { text = bytes(length()); }
  template <class T>
  void get(std::vector<T>& values) {
    const std::size_t count = length();
    values.clear();
    if constexpr (std::is_trivially_copyable_v<T>) {
      const auto from = bytes(count * sizeof(T));
      values.resize(count);
      if (count > 0) std::memcpy(values.data(), from.data(), from.size());
    } else {
      for (std::size_t i = 0; i < count; ++i) get(values.emplace_back());
    }
  }
  template <class T>
  void get(std::optional<T>& value) {
    bool there = false;
    get(there);
    value.reset();
    if (there) get(value.emplace());
  }
  void get(Matrix& matrix);
  void get(Archive& archive);
  void get(std::exception_ptr& error);
  void fill(Archive& archive);

  std::string_view rest_;
};

/// Fields of objects that save themselves into an archive: `save(value, archive)`, and a value from
/// `load(archive)`.
template <class Save, class Load>
struct Archived {
  Save save;
  Load load;
  template <class T>
  void operator()(Packer& bytes, const T& value) const {
    Archive archive;
    save(value, archive);
    bytes(archive);
  }
  template <class T>
  void operator()(Unpacker& bytes, T& value) const {
    Archive archive;
    bytes(archive);
    value = load(archive);
  }
};

}  // namespace neyman
