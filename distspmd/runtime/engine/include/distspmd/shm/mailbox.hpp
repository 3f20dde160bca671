// The mailbox of the ranks of a node: a pool of packets for each rank, in shared memory.
//
// A rank writes a packet into a slot of its own pool, and puts an envelope into the mailbox of
// each rank that it is for: the number of the slot, and which packet of the step it is. The slot is
// free again when all of them have read it. So one packet may be for many ranks, and the pools are
// so small that what is in them is still in the cache when it is read. All ranks use them for the
// same steps in the same order, so that no packet says what step it belongs to.
#pragma once

#include <mpi.h>
#include <sched.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <cstdint>
#include <thread>
#include <utility>
#include <vector>

#if defined(__SSE2__)
#include <emmintrin.h>
#endif

namespace distspmd {
inline namespace v1 {

/// What a rank does while it waits: it lets others run, and MPI go on.
///
/// Ranks that have a core each rather turn a while: who yields to another program comes back when
/// that has had its time.
class Pause {
 public:
  Pause(MPI_Comm comm, bool crowded) : comm_(comm), crowded_(crowded), spins_(crowded ? 32 : 4096) {}

  void operator()() {
    if (++turns_ < spins_) return relax();
    if (crowded_ && turns_ > patience) {
      std::this_thread::sleep_for(std::chrono::microseconds(nap));
    } else {
      sched_yield();
    }
    if (turns_ % each != 0) return;
    int found;
    MPI_Iprobe(MPI_ANY_SOURCE, MPI_ANY_TAG, comm_, &found, MPI_STATUS_IGNORE);
  }
  void reset() { turns_ = 0; }

 private:
  static constexpr std::int64_t each = 64, patience = 512, nap = 20;

  static void relax() {
#if defined(__SSE2__)
    _mm_pause();
#endif
  }

  MPI_Comm comm_;
  bool crowded_;
  std::int64_t spins_, turns_ = 0;
};

/// The rank on the node that a packet is for, and which of the packets for it in the step it is.
struct Recipient {
  std::int64_t peer, index;
};

/// A packet that came: which of the step, and its content.
struct Arrival {
  std::int64_t index;
  const char *data;  // null: none came
};

/// The segments of all ranks of the node, each with that rank's pool and the envelopes from it.
class Mailbox {
 public:
  static constexpr std::int64_t line = 64, heading = 4;

  /// `words`: this rank's number on the node, bytes of a packet, slots of a pool, bytes of a
  /// segment, and the address of each segment.
  Mailbox(const std::int64_t *words, std::int64_t count)
      : me_(words[0]), bytes_(words[1]), slots_(words[2]) {
    for (std::int64_t i = heading; i < count; ++i)
      segments_.push_back(reinterpret_cast<char *>(static_cast<std::intptr_t>(words[i])));
    crowded_ = ranks() > sysconf(_SC_NPROCESSORS_ONLN);
    fits_ = words[3] == segment_bytes(count - heading, bytes_, slots_);
  }

  /// Bytes of the segment of one rank among so many; shared.py knows it too.
  static constexpr std::int64_t segment_bytes(std::int64_t ranks, std::int64_t bytes,
                                              std::int64_t slots) {
    return ranks * (3 * line + slots * word) + slots * ((1 + 2 * ranks) * word + bytes);
  }
  bool fits() const { return fits_; }

  std::int64_t bytes() const { return bytes_; }  // of a packet

  /// Whether the ranks of the node have no core each.
  bool crowded() const { return crowded_; }

  /// A free slot of this rank's pool, or -1; the packet in it goes with `send`.
  std::int64_t free_slot() const {
    for (std::int64_t slot = 0; slot < slots_; ++slot)
      if (is_free(slot)) return slot;
    return -1;
  }
  char *packet(std::int64_t slot) const { return packet(me_, slot); }

  void send(std::int64_t slot, const std::vector<Recipient> &recipients) const {
    std::int64_t *record = record_of(slot);
    record[0] = 0;
    for (const Recipient &to : recipients) {
      Counter &sent = counter(me_, to.peer, 0);
      const std::int64_t number = sent.load(std::memory_order_relaxed);
      envelope(me_, to.peer, number) = to.index * slots_ + slot;
      record[1 + 2 * record[0]] = to.peer;
      record[2 + 2 * record[0]] = number + 1;
      ++record[0];
      sent.store(number + 1, std::memory_order_release);
    }
  }

  /// The next packet from a peer; `discard` frees its slot.
  Arrival next(std::int64_t peer) const {
    const std::int64_t read = counter(peer, me_, 1).load(std::memory_order_relaxed);
    if (counter(peer, me_, 0).load(std::memory_order_acquire) <= read) return {0, nullptr};
    const std::int64_t found = envelope(peer, me_, read);
    return {found / slots_, packet(peer, found % slots_)};
  }
  void discard(std::int64_t peer) const { advance(peer, me_, 1); }

  /// Wait until all of some ranks of the node have come here as often as this one.
  void meet(const std::vector<std::int64_t> &peers, MPI_Comm comm) const {
    for (std::int64_t peer : peers) advance(me_, peer, 2);
    Pause pause(comm, crowded_);
    for (std::int64_t peer : peers)
      while (counter(peer, me_, 2).load(std::memory_order_acquire) <
             counter(me_, peer, 2).load(std::memory_order_relaxed))
        pause();
  }

 private:
  using Counter = std::atomic<std::int64_t>;
  static constexpr std::int64_t word = sizeof(std::int64_t);
  static_assert(Counter::is_always_lock_free && sizeof(Counter) == word,
                "counters are words of shared memory");

  std::int64_t ranks() const { return static_cast<std::int64_t>(segments_.size()); }
  char *segment(std::int64_t rank) const { return segments_[static_cast<std::size_t>(rank)]; }

  /// Between two ranks: 0 packets that were sent, 1 those that were read, 2 how often they met.
  Counter &counter(std::int64_t from, std::int64_t to, std::int64_t which) const {
    return *reinterpret_cast<Counter *>(segment(from) + slots_ * bytes_ + (3 * to + which) * line);
  }
  void advance(std::int64_t from, std::int64_t to, std::int64_t which) const {
    Counter &moved = counter(from, to, which);
    moved.store(moved.load(std::memory_order_relaxed) + 1, std::memory_order_release);
  }

  char *packet(std::int64_t rank, std::int64_t slot) const {
    return segment(rank) + slot * bytes_;
  }

  /// No more packets than slots are on their way to a rank.
  std::int64_t &envelope(std::int64_t from, std::int64_t to, std::int64_t number) const {
    char *words = segment(from) + slots_ * bytes_ + ranks() * 3 * line;
    return reinterpret_cast<std::int64_t *>(words)[to * slots_ + number % slots_];
  }

  /// Of a slot of this rank: how many have not read it, and for each who, and its packet's number.
  std::int64_t *record_of(std::int64_t slot) const {
    char *words = segment(me_) + slots_ * bytes_ + ranks() * (3 * line + slots_ * word);
    return reinterpret_cast<std::int64_t *>(words) + slot * (1 + 2 * ranks());
  }

  bool is_free(std::int64_t slot) const {
    std::int64_t *record = record_of(slot), &left = record[0];
    while (left > 0 && counter(me_, record[2 * left - 1], 1).load(std::memory_order_acquire) >=
                           record[2 * left])
      --left;
    return left == 0;
  }

  std::int64_t me_, bytes_, slots_;
  std::vector<char *> segments_;
  bool fits_, crowded_;
};

}  // namespace v1
}  // namespace distspmd
