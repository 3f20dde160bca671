// What a rank does when its program ends: it comes to one more meeting of each communicator.
//
// Ranks meet before whatever they do together (runtime/watch/agreement.py). If all of them end, this
// meeting is the last one. If others have come for a call, they hear that this rank has ended, where
// they would wait for it for ever. It takes place at the beginning of MPI_Finalize, in which ranks
// wait for each other in any case.
#pragma once

#include <mpi.h>
#include <unistd.h>

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <vector>

namespace distspmd {
inline namespace v1 {

class Farewells {
 public:
  // agreement.py knows these too: bytes of what each rank tells where they disagree, what this one
  // tells, and the tag of a rank that ends, beyond those of all calls.
  static constexpr int text_bytes = 1024;
  static constexpr const char *text = "ended";
  static constexpr std::int64_t tag = std::int64_t(1) << 62;

  /// The ranks of a communicator meet when they end, until it is taken out.
  static void add(MPI_Comm comm) {
    State &state = of_process();
    if (state.key == MPI_KEYVAL_INVALID) {
      MPI_Comm_create_keyval(MPI_COMM_NULL_COPY_FN, at_end, &state.key, nullptr);
      MPI_Comm_set_attr(MPI_COMM_SELF, state.key, &state);
    }
    if (std::find(state.comms.begin(), state.comms.end(), comm) == state.comms.end())
      state.comms.push_back(comm);
  }

  static void remove(MPI_Comm comm) {
    std::vector<MPI_Comm> &comms = of_process().comms;
    comms.erase(std::remove(comms.begin(), comms.end(), comm), comms.end());
  }

 private:
  struct State {
    std::vector<MPI_Comm> comms;
    int key = MPI_KEYVAL_INVALID;
    pid_t process = getpid();
  };

  /// It outlives all objects of the program: MPI ends after them.
  static State &of_process() {
    static State *state = new State;
    return *state;
  }

  /// MPI deletes what hangs on MPI_COMM_SELF before it does anything else to end.
  static int at_end(MPI_Comm, int, void *held, void *) {
    const State &state = *static_cast<State *>(held);
    if (state.process != getpid()) return MPI_SUCCESS;  // a fork is no rank
    for (MPI_Comm comm : state.comms) meet(comm);
    return MPI_SUCCESS;
  }

  static void meet(MPI_Comm comm) {
    int ranks = 0;
    if (MPI_Comm_size(comm, &ranks) != MPI_SUCCESS) return;
    std::int64_t word[3] = {ranks, tag, -tag};
    if (MPI_Allreduce(MPI_IN_PLACE, word, 3, MPI_INT64_T, MPI_MIN, comm) != MPI_SUCCESS) return;
    if (word[1] == -word[2]) return;
    char told[text_bytes] = {};
    std::strcpy(told, text);
    std::vector<char> all(static_cast<std::size_t>(text_bytes) * static_cast<std::size_t>(ranks));
    MPI_Allgather(told, text_bytes, MPI_BYTE, all.data(), text_bytes, MPI_BYTE, comm);
  }
};

}  // namespace v1
}  // namespace distspmd
