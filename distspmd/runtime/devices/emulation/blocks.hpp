// The threads of a block on the emulated device.
//
// They run one after another on one stack. A thread that reaches a barrier keeps its stack, and the
// next one gets another: what has no barrier costs nothing for having threads. A block whose threads
// wait for some that have ended ends the process, with a message. DISTSPMD_EMULATED_THREADS says which go
// on after a barrier:
//
//   forwards   (where left out) all that can, the first thread first
//   backwards  all that can, the last thread first
//   warps      one warp, as far as it gets without the others
#pragma once

#include <ucontext.h>

#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <functional>
#include <memory>
#include <vector>

#include "cuda_runtime.h"

namespace emulated {

class Block {
 public:
  void run(const std::function<void()> &body, dim3 extents) {
    body_ = &body;
    extents_ = extents;
    next_ = ended_ = 0;
    count_ = extents.x * extents.y * extents.z;
    while (ended_ < count_) {
      if (next_ < count_) {
        resume(idle());
        continue;
      }
      std::vector<Worker *> free;
      for (Worker *worker : waiting_)
        if (may_pass(worker->barrier)) free.push_back(worker);
      for (Worker *worker : free)
        waiting_.erase(std::find(waiting_.begin(), waiting_.end(), worker));
      ready_.insert(ready_.end(), free.begin(), free.end());
      if (ready_.empty()) {
        std::fprintf(stderr, "distspmd: the emulated device: threads of a block wait for others "
                             "that have ended.\n");
        std::abort();
      }
      for (Worker *worker : taken()) resume(worker);
    }
  }

  /// The thread that runs waits for the block (-1), or for a warp.
  void wait(int barrier) {
    Worker *worker = current_;
    worker->barrier = barrier;
    waiting_.push_back(worker);
    swapcontext(&worker->context, &main_);
    set(worker->thread);
  }

  unsigned thread() const { return current_->thread; }
  std::uint64_t slots[1024];

 private:
  struct Worker {
    ucontext_t context;
    std::unique_ptr<char[]> stack;
    unsigned thread;
    int barrier;
  };
  static constexpr std::size_t stack_bytes = 1 << 18;

  static void work(unsigned high, unsigned low) {
    Block *self = reinterpret_cast<Block *>((std::uintptr_t(high) << 32) | low);
    Worker *worker = self->current_;
    for (;;) {
      while (self->next_ < self->count_) {
        worker->thread = self->next_++;
        self->set(worker->thread);
        (*self->body_)();
        ++self->ended_;
      }
      self->idle_.push_back(worker);
      swapcontext(&worker->context, &self->main_);
    }
  }

  Worker *idle() {
    if (idle_.empty()) {
      all_.push_back(std::make_unique<Worker>());
      prepare(*all_.back());
      return all_.back().get();
    }
    Worker *worker = idle_.back();
    idle_.pop_back();
    return worker;
  }

  void prepare(Worker &worker) {
    worker.stack.reset(new char[stack_bytes]);
    getcontext(&worker.context);
    worker.context.uc_stack.ss_sp = worker.stack.get();
    worker.context.uc_stack.ss_size = stack_bytes;
    worker.context.uc_link = nullptr;
    const auto me = reinterpret_cast<std::uintptr_t>(this);
    const auto begin = reinterpret_cast<void (*)()>(work);
    makecontext(&worker.context, begin, 2, unsigned(me >> 32), unsigned(me));
  }

  void resume(Worker *worker) {
    current_ = worker;
    swapcontext(&main_, &worker->context);
  }

  void set(unsigned thread) {
    threadIdx = {thread % extents_.x, thread / extents_.x % extents_.y,
                 thread / extents_.x / extents_.y};
  }

  /// Whether all threads of the block, or those of a warp that have not ended, are at the barrier.
  bool may_pass(int barrier) const {
    if (barrier < 0 && (ended_ > 0 || !ready_.empty())) return false;
    for (const Worker *worker : ready_)
      if (int(worker->thread / 32) == barrier) return false;
    return std::none_of(waiting_.begin(), waiting_.end(), [barrier](const Worker *worker) {
      return worker->barrier != barrier && (barrier < 0 || int(worker->thread / 32) == barrier);
    });
  }

  /// Those of the ready ones that go on now.
  std::vector<Worker *> taken() {
    std::vector<Worker *> found;
    found.swap(ready_);
    if (order_ == Order::backwards) std::reverse(found.begin(), found.end());
    if (order_ != Order::warps) return found;
    unsigned first = found.front()->thread / 32;
    for (const Worker *worker : found) first = std::min(first, worker->thread / 32);
    const auto rest = std::stable_partition(
        found.begin(), found.end(), [first](const Worker *w) { return w->thread / 32 == first; });
    ready_.assign(rest, found.end());
    found.erase(rest, found.end());
    return found;
  }

  enum class Order { forwards, backwards, warps };
  static Order asked_order() {
    const char *order = std::getenv("DISTSPMD_EMULATED_THREADS");
    if (!order) return Order::forwards;
    return *order == 'b' ? Order::backwards : *order == 'w' ? Order::warps : Order::forwards;
  }

  const Order order_ = asked_order();
  const std::function<void()> *body_;
  dim3 extents_;
  unsigned next_, count_, ended_;
  ucontext_t main_;
  Worker *current_ = nullptr;
  std::vector<std::unique_ptr<Worker>> all_;
  std::vector<Worker *> idle_, waiting_;
  std::vector<Worker *> ready_;  // that wait for nothing any more
};

}  // namespace emulated
