// Copy-in/copy-out: a step whose ranks are on one node, and whose boxes do not lie in shared memory.
//
// What a rank sends to another is cut into packets, the same way on both sides. Each goes through
// the mailbox (shm/mailbox.hpp): packed by the sender, unpacked or combined by the receiver, while other
// packets are on their way. That is two copies, one of them within the cache, and no call of MPI. A
// packet that several ranks get is packed once.
#pragma once

#include <mpi.h>

#include <algorithm>
#include <cstdint>
#include <iterator>
#include <map>
#include <tuple>
#include <utility>
#include <vector>

#include <distspmd/plan/boxes.hpp>
#include <distspmd/memory/streaming_copy.hpp>
#include <distspmd/memory/strided_copy.hpp>
#include <distspmd/shm/mailbox.hpp>
#include <distspmd/memory/reductions.hpp>
#include <distspmd/plan/step.hpp>
#include <distspmd/plan/decode.hpp>

namespace distspmd {
inline namespace v1 {

class CopyInCopyOut {
 public:
  /// `ranks`: the number on the node of each rank of the group.
  CopyInCopyOut(const StepTable &step, const PlanTable &plan, const Group &group,
          const std::vector<std::int64_t> &ranks, const Mailbox &mailbox)
      : mailbox_(&mailbox),
        comm_(group.comm),
        from_(plan.buffers[static_cast<std::size_t>(step.source)]),
        to_(plan.buffers[static_cast<std::size_t>(step.target)]),
        itemsize_(plan.itemsize),
        in_order_(step.operation != Operation::none) {
    write(step, group, ranks);
    std::int64_t bytes = 0;
    for (const Part &part : step.receives) bytes += volume(part.box) * itemsize_;
    in_order_ ? combine(step, ranks) : read(step, group, ranks, exceeds_cache(bytes, group.size));
    const bool may_alias = step.source == step.target ||
                           (step.source + step.target == 1 && from_.strides == to_.strides);
    keeps_ = may_alias && (in_order_ || meet(step));
  }

  /// Run the step; `aliased`: both buffers are the same memory. Returns the bytes that came in packets.
  std::int64_t run(const char *from, char *to, bool aliased) {
    if (aliased && keeps_) from = kept(from);
    std::size_t sent = 0, left = operands_.size();
    for (Queue &queue : received_) left += queue.packets.size(), queue.read = 0;
    bool brought = aliased;
    next_operand_ = 0;
    came_ = 0;
    Pause pause(comm_, mailbox_->crowded());
    while (sent < sent_.size() || left > 0 || !brought) {
      const std::size_t before = sent + left;
      while (sent < sent_.size() && send(sent_[sent], from)) ++sent;
      if (!brought) bring(own_, from, to);
      brought = true;
      for (Queue &queue : received_) left -= receive(queue, to);
      left -= receive_operands(from, to);
      sent + left != before ? pause.reset() : pause();
    }
    finish_streams();
    return came_;
  }

 private:
  /// A box within a packet, so many elements from its beginning.
  struct Piece {
    Box box;
    std::int64_t place;
  };

  struct Sent {
    std::vector<Move> moves;
    std::vector<Recipient> to;
  };

  /// What to do with the packets of one peer, by their index.
  struct Queue {
    std::int64_t peer;
    std::vector<std::vector<Move>> packets;
    std::size_t read = 0;
  };

  /// A packet that is combined when all before it are; of the rank's own source where from self.
  struct Operand {
    std::int64_t peer;
    Move move;
  };

  // -- made once ------------------------------------------------------------------------------

  /// Boxes for one rank as packets: large ones in pieces, each a packet; small ones together. It is
  /// the same for whoever has the boxes.
  std::vector<std::vector<Piece>> packets_of(const std::vector<Box> &boxes) const {
    const std::int64_t most = mailbox_->bytes() / itemsize_, together = most / 4;
    std::vector<std::vector<Piece>> found, open(1);
    std::int64_t filled = 0;
    for (const Box &box : boxes) {
      const std::int64_t elements = volume(box);
      if (elements > together) {
        cut(box, most, found);
        continue;
      }
      if (filled + elements > most) {
        open.emplace_back();
        filled = 0;
      }
      open.back().push_back({box, filled});
      filled += elements;
    }
    if (!open.back().empty())
      std::move(open.begin(), open.end(), std::back_inserter(found));
    return found;
  }

  static void cut(const Box &box, std::int64_t most, std::vector<std::vector<Piece>> &found) {
    if (volume(box) <= most) {
      found.push_back({{box, 0}});
      return;
    }
    std::size_t d = 0;
    while (box[d].hi - box[d].lo == 1) ++d;
    const std::int64_t row = volume(box) / (box[d].hi - box[d].lo);
    const std::int64_t rows = std::max<std::int64_t>(1, most / row);
    for (std::int64_t lo = box[d].lo; lo < box[d].hi; lo += rows) {
      Box piece = box;
      piece[d] = {lo, std::min(lo + rows, box[d].hi)};
      cut(piece, most, found);
    }
  }

  /// The boxes of each peer, beginning with the rank after (or before) this one.
  static std::vector<std::pair<std::size_t, std::vector<Box>>> by_peer(
      const std::vector<Part> &parts, const Group &group, int direction) {
    std::vector<std::pair<std::size_t, std::vector<Box>>> found;
    for (int turn = 1; turn < group.size; ++turn) {
      const int peer = (group.position + direction * turn + group.size) % group.size;
      std::vector<Box> boxes;
      for (const Part &part : parts)
        if (part.peer == peer || part.peer == all) boxes.push_back(part.box);
      if (!boxes.empty()) found.emplace_back(static_cast<std::size_t>(peer), std::move(boxes));
    }
    return found;
  }

  /// The packets that this rank sends: the first ones to all, then the second ones, and so on.
  ///
  /// So operands are sent in the order in which they are combined, and as a pool has a slot for
  /// each rank, no rank waits for a packet that finds no slot.
  void write(const StepTable &step, const Group &group, const std::vector<std::int64_t> &ranks) {
    std::map<std::vector<std::int64_t>, std::size_t> known;  // packets of one box, by index and box
    std::vector<std::tuple<std::int64_t, Sent>> written;
    for (const auto &[peer, boxes] : by_peer(step.sends, group, 1)) {
      std::int64_t index = 0;
      for (const std::vector<Piece> &pieces : packets_of(boxes)) {
        const Recipient to{ranks[peer], index};
        std::vector<std::int64_t> name{index};
        for (const Piece &piece : pieces)
          for (const Interval &i : piece.box) name.insert(name.end(), {i.lo, i.hi});
        const auto [at, fresh] = known.try_emplace(std::move(name), written.size());
        if (fresh) written.emplace_back(index, Sent{});
        Sent &packet = std::get<1>(written[at->second]);
        packet.to.push_back(to);
        ++index;
        if (!fresh) continue;
        for (const Piece &piece : pieces)
          packet.moves.emplace_back(from_, 0, Storage::of(piece.box), piece.place, piece.box,
                                    itemsize_);
      }
    }
    std::stable_sort(written.begin(), written.end(), [](const auto &a, const auto &b) {
      return std::get<0>(a) < std::get<0>(b);
    });
    for (auto &[index, packet] : written) sent_.push_back(std::move(packet));
  }

  /// Packets that replace what the target holds, in whatever order they come.
  void read(const StepTable &step, const Group &group, const std::vector<std::int64_t> &ranks,
            bool streams) {
    for (const Part &part : step.receives)
      if (part.peer == self)
        own_.emplace_back(from_, 0, to_, 0, part.box, itemsize_, nullptr, streams);
    for (const auto &[peer, boxes] : by_peer(step.receives, group, -1)) {
      Queue queue{ranks[peer], {}, 0};
      for (const std::vector<Piece> &pieces : packets_of(boxes)) {
        queue.packets.emplace_back();
        for (const Piece &piece : pieces)
          queue.packets.back().emplace_back(Storage::of(piece.box), piece.place, to_, 0, piece.box,
                                            itemsize_, nullptr, streams);
      }
      received_.push_back(std::move(queue));
    }
  }

  /// Operands of one box: the first packets of all of them, then the second ones, and so on.
  void combine(const StepTable &step, const std::vector<std::int64_t> &ranks) {
    if (step.receives.empty()) return;
    const Kernel kernel = step.reduction.kernel;
    for (const std::vector<Piece> &pieces : packets_of({step.receives[0].box}))
      for (std::size_t i = 0; i < step.receives.size(); ++i) {
        const std::int64_t peer = step.receives[i].peer;
        const Box &box = pieces[0].box;
        operands_.push_back(
            {peer == self ? self : ranks[static_cast<std::size_t>(peer)],
             Move(peer == self ? from_ : Storage::of(box), 0, to_, 0, box, itemsize_,
                  step.accumulate || i > 0 ? kernel : nullptr)});
      }
  }

  static bool meet(const StepTable &step) {
    for (const Part &sent : step.sends)
      for (const Part &received : step.receives)
        if (received.peer != self && !disjoint(sent.box, received.box)) return true;
    return false;
  }

  // -- run often ------------------------------------------------------------------------------

  /// A copy of the source, which the target is about to overwrite.
  const char *kept(const char *from) {
    Box last = from_.tile;
    for (Interval &i : last) i.lo = i.hi - 1;
    const std::int64_t begin = from_.offset(from_.tile) * itemsize_;
    const std::int64_t end = (from_.offset(last) + 1) * itemsize_;
    kept_.resize(static_cast<std::size_t>(end - begin));
    copy_run(kept_.data(), from + begin, kept_.size());
    return kept_.data() - begin;
  }

  /// Bring boxes from one place to another; returns their bytes.
  static std::int64_t bring(const std::vector<Move> &moves, const char *from, char *to) {
    std::int64_t bytes = 0;
    for (const Move &move : moves) bytes += move(from, to);
    return bytes;
  }

  /// Send a packet if there is a slot for it.
  bool send(const Sent &packet, const char *from) const {
    const std::int64_t slot = mailbox_->free_slot();
    if (slot < 0) return false;
    bring(packet.moves, from, mailbox_->packet(slot));
    mailbox_->send(slot, packet.to);
    return true;
  }

  /// Read what came from a peer; how many packets.
  std::size_t receive(Queue &queue, char *to) {
    const std::size_t before = queue.read;
    for (; queue.read < queue.packets.size(); ++queue.read) {
      const Arrival came = mailbox_->next(queue.peer);
      if (came.data == nullptr) break;
      came_ += bring(queue.packets[static_cast<std::size_t>(came.index)], came.data, to);
      mailbox_->discard(queue.peer);
    }
    return queue.read - before;
  }

  std::size_t receive_operands(const char *from, char *to) {
    const std::size_t before = next_operand_;
    for (; next_operand_ < operands_.size(); ++next_operand_) {
      const Operand &operand = operands_[next_operand_];
      const bool own = operand.peer == self;
      const char *data = own ? from : mailbox_->next(operand.peer).data;
      if (data == nullptr) break;
      const std::int64_t bytes = operand.move(data, to);
      if (own) continue;
      came_ += bytes;
      mailbox_->discard(operand.peer);
    }
    return next_operand_ - before;
  }

  const Mailbox *mailbox_;
  MPI_Comm comm_;
  Storage from_, to_;
  std::int64_t itemsize_;
  bool in_order_;                // operands, which are combined in the order of the plan
  std::vector<Sent> sent_;       // in the order in which they are sent
  std::vector<Queue> received_;  // by peer, beginning with the one before
  std::vector<Operand> operands_;
  std::size_t next_operand_ = 0;
  std::int64_t came_ = 0;  // bytes from other ranks
  std::vector<Move> own_;  // of the rank's own source
  bool keeps_ = false;     // where the buffers alias, the source is copied first
  std::vector<char> kept_;
};

}  // namespace v1
}  // namespace distspmd
