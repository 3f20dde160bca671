// The post of the ranks of a node: two letter boxes from each rank to each, in shared memory.
//
// A rank that writes to another fills one of the two boxes between them, and the other one empties
// it: neither waits for the other while there is a full box to read or an empty one to fill. The
// boxes are so small that what is in them is still in the cache when it is read. All ranks use
// them for the same steps in the same order, so that no letter says what it is about.
#pragma once

#include <mpi.h>
#include <sched.h>

#include <atomic>
#include <cstdint>
#include <vector>

namespace distspmd {
inline namespace v1 {

/// What a rank does while it waits: it lets others run, and MPI go on.
class Pause {
 public:
  explicit Pause(MPI_Comm comm) : comm_(comm) {}

  void operator()() {
    if (++turns_ < spins) return;
    sched_yield();
    if (turns_ % each != 0) return;
    int found;
    MPI_Iprobe(MPI_ANY_SOURCE, MPI_ANY_TAG, comm_, &found, MPI_STATUS_IGNORE);
  }
  void reset() { turns_ = 0; }

 private:
  static constexpr std::int64_t spins = 32, each = 64;
  MPI_Comm comm_;
  std::int64_t turns_ = 0;
};

/// The segments of all ranks of the node, each with the boxes from that rank.
class Post {
 public:
  static constexpr std::int64_t boxes = 2, line = 64;

  /// `words`: this rank's number on the node, bytes of a box, and the address of each segment.
  Post(const std::int64_t *words, std::int64_t count)
      : me_(words[0]), bytes_(words[1]) {
    for (std::int64_t i = 2; i < count; ++i)
      segments_.push_back(reinterpret_cast<char *>(static_cast<std::intptr_t>(words[i])));
  }

  /// Bytes of a box.
  std::int64_t bytes() const { return bytes_; }

  /// An empty box to a peer, or null; it goes with `send`.
  char *empty_box(std::int64_t peer) const {
    const std::int64_t filled = counter(me_, peer, 0).load(std::memory_order_relaxed);
    if (filled - counter(me_, peer, 1).load(std::memory_order_acquire) >= boxes) return nullptr;
    return box(me_, peer, filled);
  }
  void send(std::int64_t peer) const { advance(me_, peer, 0); }

  /// A full box from a peer, or null; `discard` empties it.
  const char *full_box(std::int64_t peer) const {
    const std::int64_t emptied = counter(peer, me_, 1).load(std::memory_order_relaxed);
    if (counter(peer, me_, 0).load(std::memory_order_acquire) <= emptied) return nullptr;
    return box(peer, me_, emptied);
  }
  void discard(std::int64_t peer) const { advance(peer, me_, 1); }

  /// Wait until all of some ranks of the node have come here as often as this one.
  void meet(const std::vector<std::int64_t> &peers, MPI_Comm comm) const {
    for (std::int64_t peer : peers) advance(me_, peer, 2);
    Pause pause(comm);
    for (std::int64_t peer : peers)
      while (counter(peer, me_, 2).load(std::memory_order_acquire) <
             counter(me_, peer, 2).load(std::memory_order_relaxed))
        pause();
  }

 private:
  using Counter = std::atomic<std::int64_t>;
  static_assert(Counter::is_always_lock_free && sizeof(Counter) == sizeof(std::int64_t),
                "counters are words of shared memory");

  /// Of the boxes between two ranks: 0 those that were filled, 1 emptied, 2 how often they met.
  Counter &counter(std::int64_t from, std::int64_t to, std::int64_t which) const {
    return *reinterpret_cast<Counter *>(segments_[static_cast<std::size_t>(from)] +
                                        (3 * to + which) * line);
  }
  void advance(std::int64_t from, std::int64_t to, std::int64_t which) const {
    Counter &moved = counter(from, to, which);
    moved.store(moved.load(std::memory_order_relaxed) + 1, std::memory_order_release);
  }
  char *box(std::int64_t from, std::int64_t to, std::int64_t number) const {
    const std::int64_t ranks = static_cast<std::int64_t>(segments_.size());
    return segments_[static_cast<std::size_t>(from)] + 3 * ranks * line +
           (to * boxes + number % boxes) * bytes_;
  }

  std::int64_t me_, bytes_;
  std::vector<char *> segments_;
};

}  // namespace v1
}  // namespace distspmd
