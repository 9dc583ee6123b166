#include "simulators/run_cache.hpp"

#include <fmt/format.h>

#include <cmath>
#include <cstring>
#include <filesystem>

#include "neyman/core/error.hpp"
#include "neyman/data/atomic_file.hpp"

namespace neyman::detail {

namespace {

namespace fs = std::filesystem;

constexpr std::string_view magic = "neyman.run/1\n";

/// FNV-1a, finished by the mixer of MurmurHash3: every bit of the content moves every bit.
std::uint64_t hash(std::string_view content) {
  std::uint64_t h = 0xcbf29ce484222325;
  for (const char c : content) h = (h ^ static_cast<unsigned char>(c)) * 0x100000001b3;
  h = (h ^ (h >> 33)) * 0xff51afd7ed558ccd;
  h = (h ^ (h >> 33)) * 0xc4ceb9fe1a85ec53;
  return h ^ (h >> 33);
}

template <class Number>
void put(std::string& out, Number number) {
  char bytes[sizeof number];
  std::memcpy(bytes, &number, sizeof number);
  out.append(bytes, sizeof number);
}

void put_text(std::string& out, std::string_view text) {
  put(out, static_cast<std::uint64_t>(text.size()));
  out += text;
}

/// Takes parts off the front of a text; `ok` turns false where it is too short.
struct Taker {
  std::string_view rest;
  bool ok = true;

  std::string_view bytes(std::uint64_t count) {
    if (count > rest.size()) {
      ok = false;
      return {};
    }
    const auto out = rest.substr(0, count);
    rest.remove_prefix(count);
    return out;
  }
  std::uint64_t number() {
    std::uint64_t out = 0;
    const auto from = bytes(sizeof out);
    if (ok) std::memcpy(&out, from.data(), sizeof out);
    return out;
  }
};

std::optional<CachedRun> decode(std::string_view content, std::string_view key) {
  if (content.size() < magic.size() + sizeof(std::uint64_t) ||
      content.substr(0, magic.size()) != magic)
    return std::nullopt;
  Taker taker{content.substr(magic.size())};
  if (taker.number() != hash(taker.rest)) return std::nullopt;
  if (taker.bytes(taker.number()) != key || !taker.ok) return std::nullopt;
  CachedRun out;
  const auto failures = taker.number();
  for (std::uint64_t i = 0; i < failures && taker.ok; ++i)
    out.failures.emplace_back(taker.bytes(taker.number()));
  const auto rows = taker.number(), cols = taker.number();
  if (!taker.ok || cols == 0 || rows != taker.rest.size() / sizeof(double) / cols ||
      rows * cols * sizeof(double) != taker.rest.size())
    return std::nullopt;
  out.x = Matrix(rows, cols);
  std::memcpy(out.x.data(), taker.rest.data(), taker.rest.size());
  return out;
}

}  // namespace

std::string content_hash(std::string_view content) { return fmt::format("{:016x}", hash(content)); }

std::string RunCache::file_of(const std::string& key) const {
  return (fs::path(folder_) / (content_hash(key) + ".run")).string();
}

std::optional<CachedRun> RunCache::find(const std::string& key, bool& damaged) const {
  damaged = false;
  const auto path = file_of(key);
  std::error_code ignored;
  if (!fs::exists(path, ignored)) return std::nullopt;
  try {
    auto found = decode(read_file(path), key);
    damaged = !found;
    return found;
  } catch (const FileError&) {
    damaged = true;
    return std::nullopt;
  }
}

void RunCache::keep(const std::string& key, const CachedRun& run) const {
  std::string body;
  put_text(body, key);
  put(body, static_cast<std::uint64_t>(run.failures.size()));
  for (const auto& failure : run.failures) put_text(body, failure);
  put(body, static_cast<std::uint64_t>(run.x.rows()));
  put(body, static_cast<std::uint64_t>(run.x.cols()));
  body.append(reinterpret_cast<const char*>(run.x.data()), run.x.values().size_bytes());
  std::string content(magic);
  put(content, hash(body));
  content += body;
  make_folder(folder_);
  write_file_atomically(file_of(key), content);
}

}  // namespace neyman::detail
