#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace neyman {

/// CRC-64/XZ: tells whether bytes have changed by accident, not by intent.
std::uint64_t checksum(std::string_view bytes);
/// The same of a file, from a position on, read in pieces.
/// @throw FileError where it cannot be read.
std::uint64_t file_checksum(const std::string& path, std::uint64_t from = 0);

}  // namespace neyman
