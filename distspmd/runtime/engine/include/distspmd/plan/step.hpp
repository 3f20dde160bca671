// A step as one rank runs it: what is packed, which MPI calls carry it, what is unpacked or
// combined.
//
// Everything is found when the step is made; running it allocates nothing. A broadcast and a
// reduction are one collective call. Scatter, gather and exchange are the messages that
// MPI_Scatterv, MPI_Gatherv and MPI_Alltoallv would send, as calls of our own: so each message can
// go straight from tile to tile where its boxes allow, and what arrives is unpacked while the rest
// is on its way. Operands are combined in the order of the plan's messages, which is the same on
// all ranks: replicas of a reduced value are equal to the last bit.
#pragma once

#include <mpi.h>

#include <algorithm>
#include <climits>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include <distspmd/plan/boxes.hpp>
#include <distspmd/memory/streaming_copy.hpp>
#include <distspmd/errors.hpp>
#include <distspmd/memory/strided_copy.hpp>
#include <distspmd/memory/reductions.hpp>
#include <distspmd/mpi/resources.hpp>
#include <distspmd/plan/decode.hpp>
#include <distspmd/mpi/peer_messages.hpp>

namespace distspmd {
inline namespace v1 {

// The first rank of a broadcast copies its own box meanwhile, where the box is worth it.
constexpr std::int64_t overlapped_bytes = 1 << 18;

/// A rank's group in a family.
struct Group {
  MPI_Comm comm = MPI_COMM_NULL;
  int position = 0, size = 0;
};

class Step {
 public:
  /// Make a step ready; `group` is null where the rank is in no group of the step.
  Step(const StepTable &table, const PlanTable &plan, const Group *group, Resources &resources)
      : source(static_cast<std::size_t>(table.source)),
        target(static_cast<std::size_t>(table.target)),
        collective_(table.collective),
        itemsize_(plan.itemsize),
        element_(resources.element(plan.itemsize)),
        reduction_(table.reduction),
        op_(resources.operation(table, plan.dtype)),
        group_(group),
        comm_(resources.comm),
        name_(plan.name) {
    if (reduction_.type == MPI_DATATYPE_NULL) reduction_.type = element_;
    const Storage &from = plan.buffers[source], &to = plan.buffers[target];
    const bool common = collective_.common, to_all = collective_.is_called();
    const bool gathers = to_all && !common;
    const std::int64_t first = group ? group->position : 0, peers = group ? group->size : 0;
    const bool may_alias = source == target || (source + target == 1 && from.strides == to.strides);
    const std::vector<Part> outgoing = remote(table.sends, to_all, true);
    const std::vector<Part> incoming = remote(table.receives, common, false);
    const auto pieces = pieces_of(table);
    for (const std::vector<Piece> &of_part : pieces)
      plain_ = plain_ && of_part.size() == 1 && !of_part[0].combine;
    const bool strided = sends_strided_boxes && !to_all;
    const bool meets = may_alias && plain_ && !is_reduction() && meet(outgoing, incoming);
    const bool direct = plain_ && (!gathers || gathers_into(to, table));
    const Ways in{direct, direct && strided}, out{!meets, !meets && strided};
    receive_ = common ? peer_messages_of(incoming, to, itemsize_, 0, 1, in, resources, name_)
                      : peer_messages_of(incoming, to, itemsize_, first, peers, in, resources, name_);
    send_ = to_all ? peer_messages_of(outgoing, from, itemsize_, 0, 1, out, resources, name_)
                   : peer_messages_of(outgoing, from, itemsize_, first, peers, out, resources, name_);
    requests_.resize(send_.messages.size() + receive_.messages.size(), MPI_REQUEST_NULL);
    pack(outgoing, from);
    deliver(table.receives, pieces, from, to, may_alias);
    if (gathers && group) gather_with_own(table, to, direct);
    // The first rank of a reduction may have no operand of its own: it gives the neutral element.
    neutral_ = is_reduction() && outgoing.empty() && !incoming.empty();
  }

  std::size_t source, target;  // numbers of the buffers

  /// A part of a box that arrives: it replaces the target, or combines with it.
  struct Piece {
    Box box;
    bool combine;
  };

  /// Of each box that arrives, what replaces the target and what combines with it.
  static std::vector<std::vector<Piece>> pieces_of(const StepTable &table) {
    std::vector<std::vector<Piece>> found;
    std::vector<Box> reached;
    for (const Part &part : table.receives) {
      std::vector<Piece> pieces;
      if (table.operation == Operation::none || table.accumulate) {
        pieces.push_back({part.box, table.accumulate});
      } else {
        for (const Box &again : reached)
          if (!disjoint(part.box, again)) pieces.push_back({intersect(part.box, again), true});
        for (Box &fresh : subtract_all(part.box, reached)) {
          pieces.push_back({fresh, false});
          reached.push_back(std::move(fresh));
        }
      }
      found.push_back(std::move(pieces));
    }
    return found;
  }

  /// Bytes of staging that the step needs.
  std::int64_t send_staging() const {
    return (neutral_ ? receive_.elements : send_.staged) * itemsize_;
  }
  std::int64_t receive_staging() const { return receive_end_ * itemsize_; }

  bool reads() const { return send_.elements > 0 || copies_; }
  bool writes() const { return receive_.elements > 0 || copies_; }

  /// Run the step; `aliased`: both buffers are the same memory. Returns the bytes that came from
  /// other ranks: those of the messages and of the calls that were made.
  std::int64_t run(const char *from, char *to, bool aliased, char *send_staging,
                   char *receive_staging) {
    if (aliased)
      for (const Delivery &delivery : deliveries_)
        if (delivery.hazard) delivery.rescue[0](from, receive_staging);
    std::int64_t received = 0;
    switch (collective_.kind) {
      case Kind::copy: break;
      case Kind::broadcast: received = broadcast(from, to, send_staging, receive_staging); break;
      case Kind::reduce:
      case Kind::all_reduce: received = reduce(from, to, send_staging, receive_staging); break;
      case Kind::all_gather: received = gather_all(from, to, send_staging, receive_staging); break;
      case Kind::scatter:
      case Kind::gather:
      case Kind::reduce_scatter:
      case Kind::exchange: received = begin(from, to, send_staging, receive_staging); break;
    }
    if (aliased) finish_sends();  // before what they read is written
    if (plain_) {
      for (const Delivery &delivery : deliveries_)
        if (delivery.local) bring(delivery, from, to, aliased, receive_staging);
      unpack_arrivals(to, receive_staging);
    } else {
      finish(0, receive_.messages.size());
      for (const Delivery &delivery : deliveries_)
        bring(delivery, from, to, aliased, receive_staging);
    }
    finish_sends();
    finish_streams();
    return received * itemsize_;
  }

 private:
  /// A box that goes into the target: from the receive staging, or from the rank's own source.
  struct Delivery {
    Move move;
    std::size_t message;
    Box box;
    bool local, combine;
    bool hazard;  // where the buffers alias, others change the source before it is read
    std::vector<Move> rescue;  // so it goes to the staging first, and from there to the target
  };

  // -- made once ------------------------------------------------------------------------------

  /// The parts that go to, or come from, other ranks; of a call for one box, the peer is 0.
  static std::vector<Part> remote(const std::vector<Part> &parts, bool common, bool outgoing) {
    std::vector<Part> found;
    for (const Part &part : parts)
      if (part.peer != self || outgoing) found.push_back({common ? 0 : part.peer, part.box});
    return found;
  }

  static bool meet(const std::vector<Part> &some, const std::vector<Part> &others) {
    for (const Part &a : some)
      for (const Part &b : others)
        if (!disjoint(a.box, b.box)) return true;
    return false;
  }

  void pack(const std::vector<Part> &outgoing, const Storage &from) {
    packs_.resize(send_.messages.size());
    for (std::size_t i = 0; i < outgoing.size(); ++i) {
      const std::size_t message = send_.message_of[i];
      if (send_.messages[message].staged)
        packs_[message].emplace_back(from, 0, Storage::of(outgoing[i].box), send_.places[i],
                                  outgoing[i].box, itemsize_);
    }
  }

  void deliver(const std::vector<Part> &receives, const std::vector<std::vector<Piece>> &pieces,
               const Storage &from, const Storage &to, bool may_alias) {
    receive_end_ = receive_.staged;
    std::int64_t bytes = 0;
    for (const Part &part : receives)
      if (part.peer == self) bytes += volume(part.box) * itemsize_;
    int ranks = 1;  // all copy at the same time
    checked("MPI_Comm_size", MPI_Comm_size(comm_, &ranks));
    const bool streams = exceeds_cache(bytes, ranks);
    arrivals_.resize(receive_.messages.size());
    std::size_t arrived = 0;
    for (std::size_t i = 0; i < receives.size(); ++i) {
      const Box &box = receives[i].box;
      const bool local = receives[i].peer == self;
      const std::size_t message = local ? 0 : receive_.message_of[arrived];
      const std::int64_t place = local ? 0 : receive_.places[arrived];
      arrived += !local;
      copies_ = copies_ || local;
      if (!local && !receive_.messages[message].staged) continue;
      const Storage held = local ? from : Storage::of(box);
      const bool hazard = local && may_alias && touched(receives, i);
      for (const Piece &piece : pieces[i]) {
        const Kernel kernel = piece.combine ? reduction_.kernel : nullptr;
        Delivery delivery{{held, place, to, 0, piece.box, itemsize_, kernel, local && streams},
                          message,
                          piece.box,
                          local,
                          piece.combine,
                          hazard,
                          {}};
        if (hazard) {
          const Storage kept = Storage::of(piece.box);
          delivery.rescue.emplace_back(from, 0, kept, receive_end_, piece.box, itemsize_);
          delivery.rescue.emplace_back(kept, receive_end_, to, 0, piece.box, itemsize_, kernel);
          receive_end_ += volume(piece.box);
        }
        if (!local) arrivals_[message].push_back(deliveries_.size());
        deliveries_.push_back(std::move(delivery));
      }
    }
  }

  bool is_reduction() const { return collective_.is_combined(); }

  /// Whether all that an all-gather collects, the rank's own box too, are runs of the target tile.
  static bool gathers_into(const Storage &to, const StepTable &table) {
    bool own = table.sends.empty();
    std::int64_t lowest = INT64_MAX, highest = 0;
    for (const Part &part : table.receives) {
      if (part.peer == self && (table.sends.empty() || !(part.box == table.sends[0].box))) continue;
      if (!to.contiguous(part.box)) return false;
      own = own || part.peer == self;
      lowest = std::min(lowest, to.offset(part.box));
      highest = std::max(highest, to.offset(part.box));
    }
    return own && highest - lowest <= INT_MAX;
  }

  /// The counts and places of an all-gather. MPI brings the rank's own box too: into its place in
  /// the target, or into the staging, where it is left.
  void gather_with_own(const StepTable &table, const Storage &to, bool direct) {
    counts_.assign(static_cast<std::size_t>(group_->size), 0);
    std::vector<std::int64_t> places(counts_.size(), 0);
    for (const PeerMessage &message : receive_.messages) {
      counts_[static_cast<std::size_t>(message.peer)] = message.count;
      places[static_cast<std::size_t>(message.peer)] = message.offset / itemsize_;
    }
    const std::size_t me = static_cast<std::size_t>(group_->position);
    if (!table.sends.empty()) {
      counts_[me] = send_.messages[0].count;
      places[me] = direct ? to.offset(table.sends[0].box) : receive_end_;
      if (!direct) receive_end_ += send_.elements;
      const auto comes_with_it = [&](const Delivery &delivery) {
        return direct && delivery.local && delivery.box == table.sends[0].box;
      };
      deliveries_.erase(std::remove_if(deliveries_.begin(), deliveries_.end(), comes_with_it),
                        deliveries_.end());
    }
    std::int64_t lowest = INT64_MAX;
    for (std::size_t peer = 0; peer < counts_.size(); ++peer)
      if (counts_[peer] > 0) lowest = std::min(lowest, places[peer]);
    base_ = direct && lowest != INT64_MAX ? lowest : 0;
    for (std::size_t peer = 0; peer < counts_.size(); ++peer) {
      const std::int64_t place = counts_[peer] > 0 ? places[peer] - base_ : 0;
      if (place > INT_MAX)
        fail(comm_,
             name_ + ": more elements in one call than MPI counts; split the plan into rounds.");
      displacements_.push_back(static_cast<int>(place));
    }
    staged_ = !direct;
  }

  /// Whether another box than number `i` reaches elements of it.
  static bool touched(const std::vector<Part> &receives, std::size_t i) {
    for (std::size_t other = 0; other < receives.size(); ++other)
      if (other != i && !disjoint(receives[other].box, receives[i].box)) return true;
    return false;
  }

  // -- run often: each returns the elements that this rank receives -----------------------------

  std::int64_t broadcast(const char *from, char *to, char *send_staging, char *receive_staging) {
    if (send_.messages.empty() && receive_.messages.empty()) return 0;
    const bool first = !send_.messages.empty();
    if (first)
      for (const Move &move : packs_[0]) move(from, send_staging);
    const PeerMessage &message = first ? send_.messages[0] : receive_.messages[0];
    void *data =
        first ? const_cast<char *>(message.at(from, send_staging)) : message.at(to, receive_staging);
    if (message.elements * itemsize_ < overlapped_bytes)
      checked("MPI_Bcast", MPI_Bcast(data, message.count, message.type, 0, group_->comm));
    else
      checked("MPI_Ibcast",
              MPI_Ibcast(data, message.count, message.type, 0, group_->comm, requests_.data()));
    return first ? 0 : message.elements;
  }

  std::int64_t reduce(const char *from, char *to, char *send_staging, char *receive_staging) {
    if (send_.messages.empty() && receive_.messages.empty()) return 0;
    const bool first = !receive_.messages.empty();
    const char *operand = send_staging;
    if (neutral_) {
      reduction_.fill(send_staging, receive_.elements);
    } else {
      for (const Move &move : packs_[0]) move(from, send_staging);
      operand = send_.messages[0].at(from, send_staging);
    }
    char *result = first ? receive_.messages[0].at(to, receive_staging) : nullptr;
    const int count = first ? receive_.messages[0].count : send_.messages[0].count;
    const void *given = operand == result ? MPI_IN_PLACE : operand;
    if (collective_.kind == Kind::all_reduce)
      checked("MPI_Allreduce",
              MPI_Allreduce(given, result, count, reduction_.type, op_, group_->comm));
    else
      checked("MPI_Reduce",
              MPI_Reduce(given, result, count, reduction_.type, op_, 0, group_->comm));
    return combined(count);
  }

  /// What this rank receives in a call that combines so many elements: a rule, as MPI does not tell
  /// how it combines them; `received_in_groups` in distspmd/plans/collectives.py has it in words.
  std::int64_t combined(std::int64_t elements) const {
    const std::int64_t ranks = group_->size, at = group_->position;
    if (collective_.first == First::receives) return at < ranks - 1 ? elements : 0;
    const auto piece = [&](std::int64_t number) {
      return elements / ranks + (number % ranks < elements % ranks);
    };
    return 2 * elements - piece(at) - piece(at + 1);
  }

  std::int64_t gather_all(const char *from, char *to, char *send_staging, char *receive_staging) {
    if (!group_) return 0;
    for (const auto &packs : packs_)
      for (const Move &move : packs) move(from, send_staging);
    const std::size_t me = static_cast<std::size_t>(group_->position);
    char *all = staged_ ? receive_staging : to + base_ * itemsize_;
    const char *place = all + displacements_[me] * itemsize_;
    const char *own = send_.messages.empty() ? send_staging : send_.messages[0].at(from, send_staging);
    checked("MPI_Allgatherv",
            MPI_Allgatherv(own == place ? MPI_IN_PLACE : own, counts_[me], element_, all,
                           counts_.data(), displacements_.data(), element_, group_->comm));
    std::int64_t elements = -counts_[me];
    for (const int count : counts_) elements += count;
    return elements;
  }

  /// Begin to receive and to send all messages.
  std::int64_t begin(const char *from, char *to, char *send_staging, char *receive_staging) {
    MPI_Request *request = requests_.data();
    std::int64_t elements = 0;
    for (const PeerMessage &message : receive_.messages) {
      checked("MPI_Irecv", MPI_Irecv(message.at(to, receive_staging), message.count, message.type, message.peer,
                                     0, group_->comm, request++));
      elements += message.elements;
    }
    for (std::size_t i = 0; i < send_.messages.size(); ++i) {
      const PeerMessage &message = send_.messages[i];
      for (const Move &move : packs_[i]) move(from, send_staging);
      checked("MPI_Isend", MPI_Isend(message.at(from, send_staging), message.count, message.type, message.peer,
                                     0, group_->comm, request++));
    }
    return elements;
  }

  /// Bring a box into the target.
  static void bring(const Delivery &delivery, const char *from, char *to, bool aliased,
                    char *receive_staging) {
    if (!delivery.local)
      delivery.move(receive_staging, to);
    else if (!aliased)
      delivery.move(from, to);
    else if (delivery.hazard)
      delivery.rescue[1](receive_staging, to);
    else if (delivery.combine)
      delivery.move(from, to);
  }

  /// Unpack each message when it arrives.
  void unpack_arrivals(char *to, char *receive_staging) {
    const bool messages = collective_.moves && !collective_.is_called();
    if (!messages) finish(0, receive_.messages.size());
    for (std::size_t i = 0; i < receive_.messages.size(); ++i) {
      std::size_t message = i;
      if (messages) {
        int arrived = 0;
        checked("MPI_Waitany", MPI_Waitany(static_cast<int>(receive_.messages.size()),
                                           requests_.data(), &arrived, MPI_STATUS_IGNORE));
        message = static_cast<std::size_t>(arrived);
      }
      for (std::size_t number : arrivals_[message]) deliveries_[number].move(receive_staging, to);
    }
  }

  void finish_sends() { finish(receive_.messages.size(), requests_.size()); }

  /// Wait for requests, one by one: so each tells its own error.
  void finish(std::size_t begin, std::size_t end) {
    for (std::size_t i = begin; i < end; ++i)
      checked("MPI_Wait", MPI_Wait(&requests_[i], MPI_STATUS_IGNORE));
  }

  void checked(const char *call, int code) const {
    if (code != MPI_SUCCESS) check(code, comm_, call, name_);
  }

  Collective collective_;
  std::int64_t itemsize_;
  MPI_Datatype element_;
  Reduction reduction_;
  MPI_Op op_;
  const Group *group_;
  MPI_Comm comm_;  // to end all ranks
  std::string name_;
  PeerMessages send_, receive_;
  std::vector<MPI_Request> requests_;               // of receives, then of sends
  std::vector<std::vector<Move>> packs_;            // by message
  std::vector<std::vector<std::size_t>> arrivals_;  // numbers of the deliveries, by message
  std::vector<Delivery> deliveries_;
  std::vector<int> counts_, displacements_;  // of an all-gather, by position
  std::int64_t base_ = 0;                    // elements into the tile where displacements begin
  bool staged_ = false;
  std::int64_t receive_end_ = 0;  // elements of the receive staging, with what is rescued
  bool plain_ = true;             // nothing is combined
  bool neutral_ = false, copies_ = false;
};

}  // namespace v1
}  // namespace distspmd
