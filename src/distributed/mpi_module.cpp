#define OMPI_SKIP_MPICXX
#include <mpi.h>

#include <algorithm>
#include <chrono>
#include <thread>
#include <vector>

#include "distributed/mpi_functions.hpp"

// MPI's own handling of errors stays: they end all ranks with a message.
namespace {

MPI_Comm work = MPI_COMM_NULL, end = MPI_COMM_NULL;
MPI_Win window = MPI_WIN_NULL;
long long* counter = nullptr;  // rank 0's is the one that counts

void sizes(long long mine, long long* all) {
  MPI_Allgather(&mine, 1, MPI_LONG_LONG, all, 1, MPI_LONG_LONG, work);
}

void gather(const char* mine, int size, char* all, const int* sizes_of, const int* places) {
  MPI_Allgatherv(mine, size, MPI_BYTE, all, sizes_of, places, MPI_BYTE, work);
}

void exchange(const char* const* to, const int* to_sizes, char* const* from,
              const int* from_sizes) {
  int size = 0;
  MPI_Comm_size(work, &size);
  std::vector<MPI_Request> requests(2 * static_cast<std::size_t>(size), MPI_REQUEST_NULL);
  for (int r = 0; r < size; ++r)
    MPI_Irecv(from[r], from_sizes[r], MPI_BYTE, r, 0, work, &requests[2 * r]);
  for (int r = 0; r < size; ++r)
    MPI_Isend(to[r], to_sizes[r], MPI_BYTE, r, 0, work, &requests[2 * r + 1]);
  MPI_Waitall(2 * size, requests.data(), MPI_STATUSES_IGNORE);
}

void broadcast(char* bytes, long long size) {
  constexpr long long piece = 1LL << 30;
  for (long long at = 0; at < size; at += piece)
    MPI_Bcast(bytes + at, static_cast<int>(std::min(piece, size - at)), MPI_BYTE, 0, work);
}

long long update(long long value, MPI_Op how) {
  long long before = 0;
  MPI_Fetch_and_op(&value, &before, MPI_LONG_LONG, 0, 0, how, window);
  MPI_Win_flush(0, window);
  return before;
}

void restart() {
  int rank = 0;
  MPI_Comm_rank(work, &rank);
  MPI_Barrier(work);  // all have taken what they wanted
  if (rank == 0) update(0, MPI_REPLACE);
  MPI_Barrier(work);
}

long long take(long long count) { return update(count, MPI_SUM); }

int meet(double seconds) {
  using Clock = std::chrono::steady_clock;
  const auto until = Clock::now() + std::chrono::duration<double>(seconds);
  MPI_Request request = MPI_REQUEST_NULL;
  MPI_Ibarrier(end, &request);
  for (int done = 0; done == 0;) {
    MPI_Test(&request, &done, MPI_STATUS_IGNORE);
    if (done != 0) return 1;
    if (Clock::now() > until) return 0;
    std::this_thread::sleep_for(std::chrono::milliseconds(5));
  }
  return 1;
}

void end_all(int status) { MPI_Abort(MPI_COMM_WORLD, status); }

void finish() {
  MPI_Win_unlock_all(window);
  MPI_Win_free(&window);
  MPI_Comm_free(&work);
  MPI_Comm_free(&end);
  MPI_Finalize();
}

NeymanMpi start() {
  NeymanMpi out{0, 1, 1, sizes, gather, exchange, broadcast, restart, take, meet, end_all, finish};
  MPI_Comm_dup(MPI_COMM_WORLD, &work);
  MPI_Comm_dup(MPI_COMM_WORLD, &end);
  MPI_Comm_rank(work, &out.rank);
  MPI_Comm_size(work, &out.size);
  MPI_Comm machine = MPI_COMM_NULL;
  MPI_Comm_split_type(work, MPI_COMM_TYPE_SHARED, 0, MPI_INFO_NULL, &machine);
  MPI_Comm_size(machine, &out.neighbours);
  MPI_Comm_free(&machine);
  MPI_Win_allocate(out.rank == 0 ? sizeof *counter : 0, sizeof *counter, MPI_INFO_NULL, work,
                   &counter, &window);
  MPI_Win_lock_all(MPI_MODE_NOCHECK, window);
  return out;
}

}  // namespace

extern "C" __attribute__((visibility("default"))) const NeymanMpi* neyman_mpi_start() {
  int had = 0, level = 0;
  MPI_Initialized(&had);
  if (had != 0) return nullptr;
  if (MPI_Init_thread(nullptr, nullptr, MPI_THREAD_SERIALIZED, &level) != MPI_SUCCESS ||
      level < MPI_THREAD_SERIALIZED)
    return nullptr;
  static const NeymanMpi functions = start();
  return &functions;
}
