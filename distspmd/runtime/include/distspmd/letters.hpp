// Letters: a step whose ranks are on one node, and whose boxes do not lie in shared memory.
//
// What a rank sends to another is cut into letters, the same way on both sides. Each goes through
// the post (post.hpp): packed by the sender, unpacked or combined by the receiver, while other
// letters are on their way. That is two copies, one of them within the cache, and no call of MPI.
#pragma once

#include <mpi.h>

#include <algorithm>
#include <cstdint>
#include <iterator>
#include <utility>
#include <vector>

#include "boxes.hpp"
#include "copies.hpp"
#include "moves.hpp"
#include "post.hpp"
#include "reductions.hpp"
#include "steps.hpp"
#include "tables.hpp"

namespace distspmd {
inline namespace v1 {

class Letters {
 public:
  /// `ranks`: the number on the node of each rank of the group.
  Letters(const StepTable &step, const PlanTable &plan, const Group &group,
          const std::vector<std::int64_t> &ranks, const Post &post)
      : post_(&post),
        comm_(group.comm),
        from_(plan.buffers[static_cast<std::size_t>(step.source)]),
        itemsize_(plan.itemsize),
        in_order_(step.operation != Operation::none) {
    const Storage &to = plan.buffers[static_cast<std::size_t>(step.target)];
    std::vector<Queue> sent(ranks.size()), received(ranks.size());
    std::int64_t bytes = 0;
    for (const Part &part : step.receives) bytes += volume(part.box) * itemsize_;
    const bool streams = !in_order_ && exceeds_cache(bytes, group.size);
    for (const Part &part : step.sends)
      for (const Box &box : cut(part.box))
        add(sent[static_cast<std::size_t>(part.peer)], ranks, part.peer, box,
            [&](std::int64_t place, const Storage &packed) {
              return Move(from_, 0, packed, place, box, itemsize_);
            });
    const Kernel kernel = reduction_of(step.operation, plan.dtype).kernel;
    std::vector<Queue> operands;
    for (std::size_t i = 0; i < step.receives.size(); ++i) {
      const Part &part = step.receives[i];
      const bool own = part.peer == self;
      const bool combine = step.accumulate || (in_order_ && i > 0);
      Queue apart;
      Queue &queue = in_order_ || own ? apart : received[static_cast<std::size_t>(part.peer)];
      for (const Box &box : cut(part.box))
        add(queue, ranks, part.peer, box, [&](std::int64_t place, const Storage &packed) {
          return Move(own ? from_ : packed, own ? 0 : place, to, 0, box, itemsize_,
                      combine ? kernel : nullptr, streams);
        });
      if (in_order_)
        operands.push_back(std::move(queue));
      else if (own)
        std::move(queue.letters.begin(), queue.letters.end(), std::back_inserter(own_.letters));
    }
    for (auto [queues, kept] : {std::pair{&sent, &sent_}, std::pair{&received, &received_}})
      for (std::size_t turn = 1; turn <= queues->size(); ++turn) {
        const std::size_t at = static_cast<std::size_t>(
            (group.position + (queues == &sent ? turn : queues->size() - turn)) % queues->size());
        if (!(*queues)[at].letters.empty()) kept->push_back(std::move((*queues)[at]));
      }
    if (in_order_) interleave(operands);
    const bool may_alias = step.source == step.target ||
                           (step.source + step.target == 1 && from_.strides == to.strides);
    keeps_ = may_alias && (in_order_ || meet(step));
  }

  /// Run the step; `aliased`: both buffers are the same memory.
  void run(const char *from, char *to, bool aliased) {
    const bool local = !aliased || in_order_;
    if (aliased && keeps_) from = kept(from);
    std::size_t left = 0;
    for (Queue &queue : sent_) left += queue.letters.size(), queue.next = 0;
    for (Queue &queue : received_) left += queue.letters.size(), queue.next = 0;
    bool brought = !local || own_.letters.empty();
    Pause pause(comm_);
    while (left > 0 || !brought) {
      std::size_t done = 0;
      for (Queue &queue : sent_) done += send(queue, from);
      if (!brought) {
        for (const Letter &letter : own_.letters) letter.bring(from, to);
        brought = true;
      }
      for (Queue &queue : received_) done += receive(queue, from, to);
      left -= done;
      done > 0 ? pause.reset() : pause();
    }
    finish_streams();
  }

 private:
  struct Letter {
    std::int64_t peer;  // its number on the node, or self
    std::vector<Move> moves;
    void bring(const char *from, char *to) const {
      for (const Move &move : moves) move(from, to);
    }
  };

  /// Letters to or from one peer; of operands, from all in the order in which they are combined.
  struct Queue {
    std::vector<Letter> letters;
    std::size_t next = 0;
    std::int64_t filled = 0;  // elements in the last letter
  };

  /// A box in pieces that each fit into a letter: the same for whoever has the box.
  std::vector<Box> cut(const Box &box) const {
    std::vector<Box> found;
    cut(box, post_->bytes() / itemsize_, found);
    return found;
  }
  static void cut(const Box &box, std::int64_t elements, std::vector<Box> &found) {
    if (volume(box) <= elements) {
      found.push_back(box);
      return;
    }
    std::size_t d = 0;
    while (box[d].hi - box[d].lo == 1) ++d;
    const std::int64_t row = volume(box) / (box[d].hi - box[d].lo);
    const std::int64_t rows = std::max<std::int64_t>(1, elements / row);
    for (std::int64_t lo = box[d].lo; lo < box[d].hi; lo += rows) {
      Box piece = box;
      piece[d] = {lo, std::min(lo + rows, box[d].hi)};
      cut(piece, elements, found);
    }
  }

  /// Add a box to the last letter of a queue, or to a new one if it is full.
  template <class Make>
  void add(Queue &queue, const std::vector<std::int64_t> &ranks, std::int64_t peer, const Box &box,
           Make make) const {
    const std::int64_t elements = volume(box);
    if (queue.letters.empty() || (queue.filled + elements) * itemsize_ > post_->bytes()) {
      queue.letters.push_back({peer == self ? self : ranks[static_cast<std::size_t>(peer)], {}});
      queue.filled = 0;
    }
    queue.letters.back().moves.push_back(make(queue.filled, Storage::of(box)));
    queue.filled += elements;
  }

  /// Operands of one box: the first letters of all of them, then the second ones, and so on.
  void interleave(std::vector<Queue> &operands) {
    Queue all;
    for (std::size_t n = 0; !operands.empty() && n < operands[0].letters.size(); ++n)
      for (Queue &operand : operands) all.letters.push_back(std::move(operand.letters[n]));
    if (!all.letters.empty()) received_.push_back(std::move(all));
  }

  static bool meet(const StepTable &step) {
    for (const Part &sent : step.sends)
      for (const Part &received : step.receives)
        if (received.peer != self && !disjoint(sent.box, received.box)) return true;
    return false;
  }

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

  std::size_t send(Queue &queue, const char *from) const {
    const std::size_t before = queue.next;
    for (; queue.next < queue.letters.size(); ++queue.next) {
      const Letter &letter = queue.letters[queue.next];
      char *box = post_->empty_box(letter.peer);
      if (box == nullptr) break;
      letter.bring(from, box);
      post_->send(letter.peer);
    }
    return queue.next - before;
  }

  std::size_t receive(Queue &queue, const char *from, char *to) const {
    const std::size_t before = queue.next;
    for (; queue.next < queue.letters.size(); ++queue.next) {
      const Letter &letter = queue.letters[queue.next];
      const bool own = letter.peer == self;
      const char *box = own ? from : post_->full_box(letter.peer);
      if (box == nullptr) break;
      letter.bring(box, to);
      if (!own) post_->discard(letter.peer);
    }
    return queue.next - before;
  }

  const Post *post_;
  MPI_Comm comm_;
  Storage from_;
  std::int64_t itemsize_;
  bool in_order_;                      // operands, which are combined in the order of the plan
  std::vector<Queue> sent_, received_;  // by peer, beginning with the next one
  Queue own_;                          // of the rank's own source
  bool keeps_ = false;                 // where the buffers alias, the source is copied first
  std::vector<char> kept_;
};

}  // namespace v1
}  // namespace distspmd
