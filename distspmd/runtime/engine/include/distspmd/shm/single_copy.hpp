// Single copies: a step whose ranks are on one node, and whose sources lie in memory that they share.
//
// Each rank brings what it wants out of the tiles of the others, with one copy and no message. The
// group meets twice: before, so that the sources are there, and after, so that they may change.
#pragma once

#include <mpi.h>

#include <algorithm>
#include <cstdint>
#include <utility>
#include <vector>

#include <distspmd/plan/boxes.hpp>
#include <distspmd/memory/streaming_copy.hpp>
#include <distspmd/errors.hpp>
#include <distspmd/memory/strided_copy.hpp>
#include <distspmd/shm/mailbox.hpp>
#include <distspmd/memory/reductions.hpp>
#include <distspmd/plan/step.hpp>
#include <distspmd/plan/decode.hpp>

namespace distspmd {
inline namespace v1 {

/// The source tile of a rank of the group, as this process sees it.
struct Shared {
  const char *data;  // null: the rank holds nothing
  Storage storage;
};

class SingleCopy {
 public:
  // Operands are combined in pieces that stay in the cache until the last one came.
  static constexpr std::int64_t piece_bytes = 1 << 16, most_pieces = 4096;

  SingleCopy(const StepTable &step, const PlanTable &plan, const Group &group,
       const std::vector<Shared> &sources, std::vector<std::int64_t> ranks,
       const Mailbox &mailbox)
      : comm_(group.comm), ranks_(std::move(ranks)), mailbox_(&mailbox) {
    const Storage &from = plan.buffers[static_cast<std::size_t>(step.source)];
    const Storage &to = plan.buffers[static_cast<std::size_t>(step.target)];
    const Kernel kernel = step.reduction.kernel;
    const auto pieces = Step::pieces_of(step);
    std::int64_t bytes = 0;
    for (const Part &part : step.receives) bytes += volume(part.box) * plan.itemsize;
    const bool streams = step.operation == Operation::none && exceeds_cache(bytes, group.size);
    for (const Box &slab : slabs(step, to, plan.itemsize)) {
      for (std::size_t i = 0; i < step.receives.size(); ++i) {
        const Part &part = step.receives[i];
        const bool own = part.peer == self;
        const Shared *source = own ? nullptr : &sources[static_cast<std::size_t>(part.peer)];
        if (source && source->data == nullptr)
          fail(comm_, plan.name + ": a rank that holds nothing has a box to copy.");
        for (const Step::Piece &piece : pieces[i]) {
          const Box box = intersect(piece.box, slab);
          if (is_empty(box)) continue;
          moves_.push_back({Move(own ? from : source->storage, 0, to, 0, box, plan.itemsize,
                                 piece.combine ? kernel : nullptr, streams),
                            own ? nullptr : source->data});
        }
      }
    }
  }

  /// Run the step; returns the bytes that were read from tiles of other ranks.
  std::int64_t run(const char *from, char *to) const {
    mailbox_->meet(ranks_, comm_);
    std::int64_t received = 0;
    for (const auto &[move, data] : moves_) {
      const std::int64_t bytes = move(data ? data : from, to);
      if (data) received += bytes;
    }
    finish_streams();
    mailbox_->meet(ranks_, comm_);
    return received;
  }

 private:
  /// All that arrives, cut along the dimension whose elements lie farthest apart; in one piece
  /// where nothing is combined.
  static std::vector<Box> slabs(const StepTable &step, const Storage &to, std::int64_t itemsize) {
    if (step.receives.empty()) return {};
    Box hull = step.receives[0].box;
    for (const Part &part : step.receives)
      for (std::size_t d = 0; d < hull.size(); ++d)
        hull[d] = {std::min(hull[d].lo, part.box[d].lo), std::max(hull[d].hi, part.box[d].hi)};
    if (step.operation == Operation::none) return {hull};
    std::size_t along = 0;
    for (std::size_t d = 1; d < hull.size(); ++d)
      if (hull[d].hi - hull[d].lo > 1 &&
          (hull[along].hi - hull[along].lo == 1 || to.strides[d] > to.strides[along]))
        along = d;
    const std::int64_t extent = hull[along].hi - hull[along].lo;
    const std::int64_t row = volume(hull) / extent * itemsize;
    const std::int64_t least = (extent + most_pieces - 1) / most_pieces;
    const std::int64_t rows = std::max({std::int64_t(1), least, piece_bytes / row});
    std::vector<Box> found;
    for (std::int64_t lo = hull[along].lo; lo < hull[along].hi; lo += rows) {
      Box slab = hull;
      slab[along] = {lo, std::min(lo + rows, hull[along].hi)};
      found.push_back(std::move(slab));
    }
    return found;
  }

  MPI_Comm comm_;
  std::vector<std::int64_t> ranks_;  // numbers of the group on the node
  const Mailbox *mailbox_;
  std::vector<std::pair<Move, const char *>> moves_;  // null: from the rank's own source
};

}  // namespace v1
}  // namespace distspmd
