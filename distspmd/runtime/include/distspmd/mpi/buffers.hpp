// Messages of whole buffers, wherever MPI can read and write them: also in the memory of devices.
#pragma once

#include <mpi.h>

#include <algorithm>
#include <cstdint>
#include <string>
#include <vector>

#include <distspmd/errors.hpp>

namespace distspmd {
inline namespace v1 {

/// Send and receive buffers, and wait for all: of each a rank, an address and bytes; first those that
/// go out. Those of a pair of ranks have the same order on both.
inline void carry_buffers(MPI_Comm comm, std::int64_t out, std::int64_t in, const std::int64_t *words,
                          const std::string &name) {
  constexpr std::int64_t most = std::int64_t(1) << 30;  // MPI counts in int
  constexpr int tag = 7;
  std::vector<MPI_Request> requests;
  for (const bool sends : {false, true}) {  // who receives is there first
    for (std::int64_t n = sends ? 0 : out; n < (sends ? out : out + in); ++n) {
      const int rank = static_cast<int>(words[3 * n]);
      char *const at = reinterpret_cast<char *>(static_cast<std::intptr_t>(words[3 * n + 1]));
      for (std::int64_t begin = 0; begin < words[3 * n + 2]; begin += most) {
        const int bytes = static_cast<int>(std::min(most, words[3 * n + 2] - begin));
        requests.emplace_back();
        const int error =
            sends ? MPI_Isend(at + begin, bytes, MPI_BYTE, rank, tag, comm, &requests.back())
                  : MPI_Irecv(at + begin, bytes, MPI_BYTE, rank, tag, comm, &requests.back());
        check(error, comm, sends ? "MPI_Isend" : "MPI_Irecv", name);
      }
    }
  }
  check(MPI_Waitall(static_cast<int>(requests.size()), requests.data(), MPI_STATUSES_IGNORE), comm,
        "MPI_Waitall", name);
}

}  // namespace v1
}  // namespace distspmd
