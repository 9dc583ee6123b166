#include "neyman/data/checksum.hpp"

#include <algorithm>
#include <boost/crc.hpp>
#include <vector>

#include "data/input_file.hpp"

namespace neyman {

namespace {
using Crc64 =
    boost::crc_optimal<64, 0x42F0E1EBA9EA3693, 0xFFFFFFFFFFFFFFFF, 0xFFFFFFFFFFFFFFFF, true, true>;
}  // namespace

std::uint64_t checksum(std::string_view bytes) {
  Crc64 crc;
  crc.process_bytes(bytes.data(), bytes.size());
  return crc.checksum();
}

std::uint64_t file_checksum(const std::string& path, std::uint64_t from) {
  const InputFile file(path);
  Crc64 crc;
  std::vector<char> piece(1 << 20);
  const std::uint64_t size = file.size();
  for (std::uint64_t at = from; at < size; at += piece.size()) {
    piece.resize(std::min<std::uint64_t>(piece.size(), size - at));
    file.read_at(at, piece.data(), piece.size());
    crc.process_bytes(piece.data(), piece.size());
  }
  return crc.checksum();
}

}  // namespace neyman
