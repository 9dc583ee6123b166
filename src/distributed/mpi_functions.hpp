#pragma once

// The border between the library and the module that is linked with MPI, in C alone: the module is
// loaded where there are ranks, and neither side needs symbols of the other.
extern "C" {

struct NeymanMpi {
  int rank, size;
  int neighbours;  ///< ranks on this machine, this one included
  void (*sizes)(long long mine, long long* all);
  /// `places` and `sizes` are those of each rank's bytes in `all`.
  void (*gather)(const char* mine, int size, char* all, const int* sizes, const int* places);
  /// Bytes to and from each rank.
  void (*exchange)(const char* const* to, const int* to_sizes, char* const* from,
                   const int* from_sizes);
  void (*broadcast)(char* bytes, long long size);
  void (*restart)();
  long long (*take)(long long count);
  int (*meet)(double seconds);
  void (*end_all)(int status);
  void (*finish)();
};

/// Starts MPI, once; null where it cannot be used.
using NeymanMpiStart = const NeymanMpi* (*)();
}
