// Messages of whole buffers, wherever MPI can read and write them: also in the memory of devices.
#pragma once

#include <mpi.h>

#include <cstdint>
#include <limits>
#include <string>
#include <vector>

#include <distspmd/errors.hpp>

namespace distspmd {
inline namespace v1 {

/// A number of bytes as MPI counts; plans/packed_table.py cuts messages so that they fit.
inline int count_of(std::int64_t bytes, MPI_Comm comm, const std::string &name) {
  constexpr std::int64_t most = std::numeric_limits<int>::max();
  if (bytes < 0 || bytes > most)
    fail(comm, name + ": a message of " + std::to_string(bytes) + " bytes, of which MPI counts " +
                   std::to_string(most) + " at most.");
  return static_cast<int>(bytes);
}

/// The messages of a plan that are on their way. Those of a pair of ranks have the same order on both.
class Buffers {
 public:
  MPI_Comm comm = MPI_COMM_NULL;

  /// Send a buffer to a rank, or receive one from it; the number of the message.
  std::int64_t post(bool sends, int rank, void *at, std::int64_t size, const std::string &name) {
    constexpr int tag = 7;
    const int bytes = count_of(size, comm, name);
    requests_.emplace_back();
    check(sends ? MPI_Isend(at, bytes, MPI_BYTE, rank, tag, comm, &requests_.back())
                : MPI_Irecv(at, bytes, MPI_BYTE, rank, tag, comm, &requests_.back()),
          comm, sends ? "MPI_Isend" : "MPI_Irecv", name);
    return std::int64_t(requests_.size()) - 1;
  }

  /// Whether a message has gone, or come; with `waits` it has when the call returns.
  bool is_done(std::int64_t message, bool waits, const std::string &name) {
    MPI_Request *const request = &requests_[std::size_t(message)];
    int done = 1;
    check(waits ? MPI_Wait(request, MPI_STATUS_IGNORE) : MPI_Test(request, &done, MPI_STATUS_IGNORE),
          comm, waits ? "MPI_Wait" : "MPI_Test", name);
    return done != 0;
  }

  /// Wait for all of them.
  void finish(const std::string &name) {
    check(MPI_Waitall(static_cast<int>(requests_.size()), requests_.data(), MPI_STATUSES_IGNORE), comm,
          "MPI_Waitall", name);
    requests_.clear();
  }

 private:
  std::vector<MPI_Request> requests_;
};

}  // namespace v1
}  // namespace distspmd
