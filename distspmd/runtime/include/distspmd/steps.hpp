// A step as one rank runs it: what is packed, which MPI call carries it, what is unpacked or
// combined.
//
// Everything is found when the step is made; running it allocates nothing. Data is sent from, and
// received into, the tile itself where the boxes of each peer are one run of elements there; else
// it goes through staging buffers. Operands are combined in the order of the plan's messages, which
// is the same on all ranks: replicas of a reduced value are equal to the last bit.
#pragma once

#include <mpi.h>

#include <climits>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "boxes.hpp"
#include "errors.hpp"
#include "moves.hpp"
#include "reductions.hpp"
#include "tables.hpp"

namespace distspmd {
inline namespace v1 {

/// A rank's group in a family.
struct Group {
  MPI_Comm comm = MPI_COMM_NULL;
  int position = 0, size = 0;
};

/// What a step needs of MPI, made once for all steps.
struct Transport {
  MPI_Comm comm = MPI_COMM_NULL;  // to end all ranks
  const Group *group = nullptr;   // null: the rank is in no group of the step
  MPI_Datatype element = MPI_DATATYPE_NULL;
  MPI_Op op = MPI_OP_NULL;
};

/// The boxes for, or from, each position of a group: counts and displacements in elements.
struct Bundles {
  std::vector<int> counts, displacements;
  std::vector<std::int64_t> places;  // of each box, in the staging buffer
  std::int64_t elements = 0;
  std::int64_t base = 0;  // elements from the tile's pointer to where displacements begin
  bool staged = false;    // or the boxes are sent from, or received into, the tile
};

/// Lay out boxes by peer; in the tile itself if `direct` and the storage allows.
inline Bundles bundles(const std::vector<Part> &parts, const Storage &storage, std::size_t peers,
                       bool direct, MPI_Comm comm, const std::string &name) {
  std::vector<std::int64_t> counts(peers, 0), starts(peers, 0);
  std::int64_t lowest = INT64_MAX;
  for (const Part &part : parts) {
    const std::size_t peer = static_cast<std::size_t>(part.peer);
    const std::int64_t at = storage.offset(part.box);
    if (counts[peer] == 0) starts[peer] = at;
    direct = direct && storage.contiguous(part.box) && at == starts[peer] + counts[peer];
    counts[peer] += volume(part.box);
    lowest = std::min(lowest, starts[peer]);
  }
  for (std::size_t peer = 0; peer < peers; ++peer)
    direct = direct && (counts[peer] == 0 || starts[peer] - lowest <= INT_MAX);
  Bundles found;
  found.staged = !direct;
  if (direct && !parts.empty()) found.base = lowest;
  for (std::size_t peer = 0; peer < peers; ++peer) {
    const std::int64_t displacement = counts[peer] == 0 ? 0
                                      : direct          ? starts[peer] - lowest
                                                        : found.elements;
    if (counts[peer] > INT_MAX || displacement > INT_MAX)
      fail(comm, name + ": " + std::to_string(found.elements + counts[peer]) +
                     " elements in one call, more than MPI counts; split the plan into rounds.");
    found.counts.push_back(static_cast<int>(counts[peer]));
    found.displacements.push_back(static_cast<int>(displacement));
    found.elements += counts[peer];
  }
  std::vector<std::int64_t> filled(peers, 0);
  for (const Part &part : parts) {
    const std::size_t peer = static_cast<std::size_t>(part.peer);
    found.places.push_back(found.displacements[peer] + filled[peer]);
    filled[peer] += volume(part.box);
  }
  return found;
}

class Step {
 public:
  Step(const StepTable &table, const PlanTable &plan, const Transport &transport)
      : kind_(table.kind),
        source(static_cast<std::size_t>(table.source)),
        target(static_cast<std::size_t>(table.target)),
        itemsize_(plan.itemsize),
        reduction_(reduction_of(table.operation, plan.dtype)),
        transport_(transport),
        name_(plan.name) {
    const Storage &from = plan.buffers[source], &to = plan.buffers[target];
    const bool common = kind_ == Kind::broadcast || kind_ == Kind::reduce;
    const std::size_t peers = common            ? 1
                              : transport.group ? static_cast<std::size_t>(transport.group->size)
                                                : 0;
    const bool may_alias = source == target || (source + target == 1 && from.strides == to.strides);
    const std::vector<Part> outgoing = remote(table.sends, common, true);
    const std::vector<Part> incoming = remote(table.receives, common, false);
    calls_ = transport.group && (!common || !outgoing.empty() || !incoming.empty());

    const auto pieces = pieces_of(table);
    bool plain = true;  // nothing that arrives is combined
    for (std::size_t i = 0; i < pieces.size(); ++i)
      plain = plain &&
              (table.receives[i].peer == self || (pieces[i].size() == 1 && !pieces[i][0].combine));
    receive_ = bundles(incoming, to, peers, plain, transport.comm, name_);
    const bool overlap =
        may_alias && !receive_.staged && kind_ != Kind::reduce && meet(outgoing, incoming);
    send_ = bundles(outgoing, from, peers, !overlap, transport.comm, name_);
    pack(outgoing, from);
    deliver(table.receives, pieces, from, to, may_alias);
    // The first rank of a reduction has no operand of its own: it sends the neutral element.
    if (kind_ == Kind::reduce && outgoing.empty() && !incoming.empty()) {
      neutral_ = true;
      send_.staged = true;
      send_.elements = receive_.elements;
    }
  }

  /// Bytes of staging that the step needs.
  std::int64_t send_staging() const { return send_.staged ? send_.elements * itemsize_ : 0; }
  std::int64_t receive_staging() const { return hazards_end_ * itemsize_; }

  bool reads() const { return (send_.elements > 0 && !neutral_) || copies_; }
  bool writes() const { return receive_.elements > 0 || copies_; }

  /// Run the step; `aliased`: both buffers are the same memory. Returns the bytes received.
  std::int64_t run(const char *from, char *to, bool aliased, char *send_staging,
                   char *receive_staging) const {
    for (const Move &move : packs_) move(from, send_staging);
    if (neutral_) reduction_.fill(send_staging, send_.elements);
    if (aliased)
      for (const Delivery &delivery : deliveries_)
        if (delivery.hazard) delivery.rescue[0](from, receive_staging);
    if (calls_)
      communicate(send_.staged ? send_staging : from + send_.base * itemsize_,
                  receive_.staged ? receive_staging : to + receive_.base * itemsize_);
    for (const Delivery &delivery : deliveries_) {
      if (!delivery.local)
        delivery.move(receive_staging, to);
      else if (!aliased)
        delivery.move(from, to);
      else if (delivery.hazard)
        delivery.rescue[1](receive_staging, to);
      else if (delivery.combine)
        delivery.move(from, to);
    }
    return receive_.elements * itemsize_;
  }

 private:
  struct Piece {
    Box box;
    bool combine;
  };

  /// A box that goes into the target: from the receive staging, or from the rank's own source.
  struct Delivery {
    Move move;
    bool local, combine;
    bool hazard;  // where the buffers alias, others change the source before it is read
    std::vector<Move> rescue;  // so it goes to the staging first, and from there to the target
  };

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

  void pack(const std::vector<Part> &outgoing, const Storage &from) {
    if (!send_.staged) return;
    for (std::size_t i = 0; i < outgoing.size(); ++i)
      packs_.emplace_back(from, 0, Storage::of(outgoing[i].box), send_.places[i], outgoing[i].box,
                          itemsize_);
  }

  void deliver(const std::vector<Part> &receives, const std::vector<std::vector<Piece>> &pieces,
               const Storage &from, const Storage &to, bool may_alias) {
    hazards_end_ = receive_.staged ? receive_.elements : 0;
    std::size_t arrived = 0;
    for (std::size_t i = 0; i < receives.size(); ++i) {
      const bool local = receives[i].peer == self;
      if (!local && !receive_.staged) continue;
      const Storage staged = Storage::of(receives[i].box);
      copies_ = copies_ || local;
      const bool hazard = local && may_alias && touched(receives, i);
      for (const Piece &piece : pieces[i]) {
        const Kernel kernel = piece.combine ? reduction_.kernel : nullptr;
        const Storage &source_storage = local ? from : staged;
        const std::int64_t place = local ? 0 : receive_.places[arrived];
        Delivery delivery{{source_storage, place, to, 0, piece.box, itemsize_, kernel},
                          local,
                          piece.combine,
                          hazard,
                          {}};
        if (hazard) {
          const Storage kept = Storage::of(piece.box);
          delivery.rescue.emplace_back(from, 0, kept, hazards_end_, piece.box, itemsize_);
          delivery.rescue.emplace_back(kept, hazards_end_, to, 0, piece.box, itemsize_, kernel);
          hazards_end_ += volume(piece.box);
        }
        deliveries_.push_back(std::move(delivery));
      }
      arrived += !local;
    }
  }

  /// Whether another box than number `i` reaches elements of it.
  static bool touched(const std::vector<Part> &receives, std::size_t i) {
    for (std::size_t other = 0; other < receives.size(); ++other)
      if (other != i && !disjoint(receives[other].box, receives[i].box)) return true;
    return false;
  }

  void communicate(const char *sent, char *received) const {
    const MPI_Comm comm = transport_.group->comm;
    const MPI_Datatype type = transport_.element;
    const bool first = transport_.group->position == 0;
    const int *sends = send_.counts.data(), *sends_at = send_.displacements.data();
    const int *receives = receive_.counts.data(), *receives_at = receive_.displacements.data();
    switch (kind_) {
      case Kind::copy: return;
      case Kind::scatter:
        return checked("MPI_Scatterv", first ? MPI_Scatterv(sent, sends, sends_at, type,
                                                            MPI_IN_PLACE, 0, type, 0, comm)
                                             : MPI_Scatterv(nullptr, nullptr, nullptr, type,
                                                            received, receives[0], type, 0, comm));
      case Kind::gather:
        return checked("MPI_Gatherv", first ? MPI_Gatherv(MPI_IN_PLACE, 0, type, received, receives,
                                                          receives_at, type, 0, comm)
                                            : MPI_Gatherv(sent, sends[0], type, nullptr, nullptr,
                                                          nullptr, type, 0, comm));
      case Kind::broadcast:
        return checked("MPI_Bcast",
                       first ? MPI_Bcast(const_cast<char *>(sent), sends[0], type, 0, comm)
                             : MPI_Bcast(received, receives[0], type, 0, comm));
      case Kind::reduce: {
        const int count = first ? receives[0] : sends[0];
        const void *operand = first && sent == received ? MPI_IN_PLACE : sent;
        return checked("MPI_Reduce", MPI_Reduce(operand, first ? received : nullptr, count,
                                                reduction_.type, transport_.op, 0, comm));
      }
      case Kind::exchange:
        return checked("MPI_Alltoallv", MPI_Alltoallv(sent, sends, sends_at, type, received,
                                                      receives, receives_at, type, comm));
    }
  }

  void checked(const char *call, int code) const { check(code, transport_.comm, call, name_); }

  Kind kind_;

 public:
  std::size_t source, target;  // numbers of the buffers

 private:
  std::int64_t itemsize_;
  Reduction reduction_;
  Transport transport_;
  std::string name_;
  Bundles send_, receive_;
  std::vector<Move> packs_;
  std::vector<Delivery> deliveries_;
  std::int64_t hazards_end_ = 0;  // elements of the receive staging, with what is rescued
  bool calls_ = false, neutral_ = false, copies_ = false;
};

}  // namespace v1
}  // namespace distspmd
