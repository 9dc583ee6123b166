#include "neyman/distributed/packing.hpp"

#include "neyman/core/error.hpp"

namespace neyman {

namespace {

template <std::size_t... Index>
Archive::Value default_value(std::size_t wanted, std::index_sequence<Index...>) {
  Archive::Value out;
  ((Index == wanted ? static_cast<void>(out.emplace<Index>()) : static_cast<void>(0)), ...);
  return out;
}

enum class Kind : char { none, other, argument, file, simulator, interrupted };

Kind kind_of(const std::exception& error) {
  if (dynamic_cast<const ArgumentError*>(&error) != nullptr) return Kind::argument;
  if (dynamic_cast<const FileError*>(&error) != nullptr) return Kind::file;
  if (dynamic_cast<const SimulatorError*>(&error) != nullptr) return Kind::simulator;
  if (dynamic_cast<const Interrupted*>(&error) != nullptr) return Kind::interrupted;
  return Kind::other;
}

std::exception_ptr make_error(Kind kind, const std::string& text) {
  switch (kind) {
    case Kind::none:
      return nullptr;
    case Kind::argument:
      return std::make_exception_ptr(ArgumentError(text));
    case Kind::file:
      return std::make_exception_ptr(FileError(text));
    case Kind::simulator:
      return std::make_exception_ptr(SimulatorError(text));
    case Kind::interrupted:
      return std::make_exception_ptr(Interrupted());
    case Kind::other:
      break;
  }
  return std::make_exception_ptr(Error(text));
}

}  // namespace

void Packer::put(const Matrix& matrix) {
  put(matrix.rows());
  put(matrix.cols());
  bytes_.append(reinterpret_cast<const char*>(matrix.data()), matrix.values().size_bytes());
}

void Packer::put(const Archive& archive) {
  put(archive.values().size());
  for (const auto& [key, value] : archive.values()) {
    put(key);
    put(value.index());
    std::visit([this](const auto& content) { put(content); }, value);
  }
  put(archive.children().size());
  for (const auto& [name, child] : archive.children()) {
    put(name);
    put(child);
  }
}

void Packer::put(const std::exception_ptr& error) {
  if (!error) return put(Kind::none);
  try {
    std::rethrow_exception(error);
  } catch (const std::exception& known) {
    put(kind_of(known));
    put(std::string(known.what()));
  } catch (...) {
    put(Kind::other);
    put(std::string("an error that is not known"));
  }
}

std::string_view Unpacker::bytes(std::size_t count) {
  if (count > rest_.size()) throw FileError("packed values: the bytes end too early");
  const auto out = rest_.substr(0, count);
  rest_.remove_prefix(count);
  return out;
}

std::size_t Unpacker::length() {
  std::size_t out = 0;
  get(out);
  // Each element takes a byte at least: nothing is allocated for a length that cannot be.
  if (out > rest_.size()) throw FileError("packed values: the bytes end too early");
  return out;
}

void Unpacker::get(Matrix& matrix) {
  const std::size_t rows = length();
  std::size_t cols = 0;
  get(cols);
  if (cols > 0 && rows > rest_.size() / sizeof(double) / cols)
    throw FileError("packed values: the bytes end too early");
  matrix = Matrix(rows, cols);
  const auto from = bytes(matrix.values().size_bytes());
  if (!from.empty()) std::memcpy(matrix.data(), from.data(), from.size());
}

void Unpacker::get(Archive& archive) {
  archive = {};
  fill(archive);
}

void Unpacker::fill(Archive& archive) {
  for (std::size_t left = length(); left > 0; --left) {
    std::string key;
    std::size_t index = 0;
    (*this)(key, index);
    if (index >= std::variant_size_v<Archive::Value>)
      throw FileError("packed values: an entry of unknown type");
    auto value =
        default_value(index, std::make_index_sequence<std::variant_size_v<Archive::Value>>());
    std::visit([this](auto& content) { get(content); }, value);
    archive.set(key, std::move(value));
  }
  for (std::size_t left = length(); left > 0; --left) {
    std::string name;
    get(name);
    fill(archive.child(name));
  }
}

void Unpacker::get(std::exception_ptr& error) {
  Kind kind{};
  std::string text;
  get(kind);
  if (kind != Kind::none) get(text);
  error = make_error(kind, text);
}

}  // namespace neyman
