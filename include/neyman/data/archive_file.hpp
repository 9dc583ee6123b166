#pragma once

#include <string>
#include <string_view>

#include "neyman/core/archive.hpp"

namespace neyman {

/// Writes a tree into an HDF5 file, whole or not at all.
///
/// Each child is an HDF5 group and each value a dataset whose attribute `type` names its type, so
/// that other programs can look inside; long arrays are compressed. The attribute `schema` of the
/// root ("neyman.model/1") says what the tree is and the version of its entries. The file's first
/// 512 bytes, HDF5's user block, hold the version of this layout ("neyman.archive/1"), the size of
/// the file and a CRC-64 of all that follows. Every value comes back with the same bits.
/// `compression` is that of zlib, from 0 (none, many times faster) to 9.
/// @throw FileError where the file cannot be written.
void write_archive(const std::string& path, const Archive& archive, std::string_view schema,
                   int version, int compression = 4);

/// Checks size and checksum of a file that `write_archive` wrote, without HDF5, which may crash on
/// a damaged one.
/// @throw FileError as `read_archive`, where it is missing, not one of these, or not whole.
void check_archive(const std::string& path);

struct StoredArchive {
  Archive tree;
  int version = 0;  ///< of the schema; at most the one that the reader knows
};

/// Reads a tree back. Older versions than `newest_version` are read too: `version` says which it
/// is, and the caller supplies what it lacks.
/// @throw FileError that names the file and what is wrong: it is missing, not HDF5, not of this
///   schema, of a newer version than `newest_version`, truncated, or damaged (the checksum does
///   not match). Nothing of a damaged file is interpreted.
StoredArchive read_archive(const std::string& path, std::string_view schema, int newest_version);

}  // namespace neyman
