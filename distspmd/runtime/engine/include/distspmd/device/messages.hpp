// Messages: tiles of devices go between ranks as packed buffers.
//
// Kernels pack what a rank sends in a step, somebody carries the messages, and kernels unpack what came; of
// a reduction one for each operand, in the order of the plan's messages, which is that of the ranks:
// results have the same bits as by any other way. Buffers have no gaps, so nobody needs datatypes in the
// memory of a device.
//
// Three can carry them: the library of collectives (nccl.hpp), on the stream of the kernels; an MPI that knows
// the memory of devices; and any MPI, where buffers lie in pinned memory of the host, which kernels
// write and read. MPI carries pieces: while one is on its way the next is packed, and what has come is
// unpacked.
#pragma once

#include <cuda_runtime.h>

#include <algorithm>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include <distspmd/device/box_moves.hpp>
#include <distspmd/device/nccl.hpp>
#include <distspmd/device/plan_tables.hpp>
#include <distspmd/device/pulls.hpp>

namespace distspmd {
inline namespace v1 {

/// How MPI carries buffers of a plan: a message is posted, which gives its number, and is done some time
/// later (1), which can be waited for; and all of them are finished.
struct ByMpi {
  std::int64_t (*post)(void *engine, std::int64_t plan, std::int64_t sends, std::int64_t rank, void *at,
                       std::int64_t bytes);
  std::int64_t (*is_done)(void *engine, std::int64_t plan, std::int64_t message, std::int64_t waits);
  void (*finish)(void *engine, std::int64_t plan);
};

class Messages {
 public:
  /// Words: those of plans/packed_table.py. A group of the library of collectives carries, or, where
  /// it is null, MPI; its buffers lie in the memory of the device, or in pinned memory of the host.
  Messages(void *engine, Pulls::Meet meet, Pulls::Count count, ByMpi mpi, void *group, bool pinned,
           const std::int64_t *words)
      : engine_(engine), meet_(meet), count_(count), mpi_(mpi), group_(group), pinned_(pinned) {
    ++words;  // the rank
    ranks_ = *words++;
    std::int64_t most[3] = {0, 0, 0};
    std::size_t portions = 0;
    plans_ = Plan::read_all(words);
    for (const Plan &plan : plans_) {
      for (int end = 0; end < 3; ++end)
        most[end] = std::max(most[end], plan.numbers[Step::own + end] * plan.itemsize);
      for (const Step &step : plan.steps) portions = std::max(portions, step.portions.size());
    }
    keep(cudaStreamCreateWithFlags(&stream_, cudaStreamNonBlocking));
    keep(allocate(reinterpret_cast<void **>(&bases_), ends * sizeof(char *)));
    for (int end = 0; end < 3; ++end)
      if (most[end]) keep(buffer(&own_[end], std::size_t(most[end]), pinned && end > 0));
    packed_.resize(group ? 0 : portions);
    for (cudaEvent_t &event : packed_) keep(cudaEventCreateWithFlags(&event, cudaEventDisableTiming));
    keep(Plan::upload(plans_));
  }
  Messages(const Messages &) = delete;
  Messages &operator=(const Messages &) = delete;
  ~Messages() {
    Plan::free(plans_);
    for (int end = 0; end < 3; ++end)
      if (own_[end]) pinned_ && end > 0 ? cudaFreeHost(own_[end]) : cudaFree(own_[end]);
    for (cudaEvent_t event : packed_) cudaEventDestroy(event);
    cudaFree(bases_);
    cudaStreamDestroy(stream_);
  }

  /// Calls of plans that were carried so; bytes that were copied from the device to the host, and back.
  std::int64_t calls = 0, to_host = 0, to_device = 0;

  bool is_pinned() const { return pinned_; }

  /// Run a plan if the tiles of all ranks lie on devices; the error stays. What the program did before
  /// has to be done.
  bool run(std::int64_t number, const void *in, void *out) {
    const Plan &plan = plans_.at(std::size_t(number));
    if (!plan.fits) return false;
    const void *const tiles[] = {in, out};
    char mine = failed_ == cudaSuccess && (in != out || !in || plan.apart);
    for (int end = 0; end < 2; ++end)
      if (plan.numbers[end] >= 0 &&
          !is_of_device(static_cast<const char *>(tiles[end]) + plan.numbers[end] * plan.itemsize))
        mine = 0;
    std::vector<char> all(static_cast<std::size_t>(ranks_));
    meet_(engine_, number, &mine, 1, all.data());
    if (std::find(all.begin(), all.end(), 0) != all.end()) return false;
    const std::vector<char *> bases{const_cast<char *>(static_cast<const char *>(in)),
                               static_cast<char *>(out), static_cast<char *>(own_[0]),
                               static_cast<char *>(own_[1]), static_cast<char *>(own_[2])};
    if (bases != known_) {
      known_ = bases;
      keep(cudaMemcpy(bases_, known_.data(), ends * sizeof(char *), cudaMemcpyHostToDevice));
    }
    std::int64_t received = 0;
    for (const Step &step : plan.steps) {
      if (group_) {
        exchange_on_stream(plan, step);
      } else {
        Exchange(*this, plan, step, number).run();
      }
      received += step.received * plan.itemsize;
      if (pinned_) {
        to_host += step.packed(plan.itemsize);
        to_device += step.came(plan.itemsize);
      }
    }
    keep(cudaStreamSynchronize(stream_));
    count_(engine_, number, received);
    ++calls;
    return true;
  }

  cudaError_t error() const { return failed_; }
  const std::string &said() const { return said_; }

 private:
  static constexpr int ends = 5, outbox = 3, inbox = 4;  // source, target, scratch, outbox, inbox

  /// Elements of the outbox, from one place on, for a rank.
  struct Out {
    std::int64_t rank, begin, elements;
  };
  /// Elements that go to the inbox; then a launch may unpack those from `first` on among its own, all of
  /// its own (-1), or nothing does yet (launch -1). Without elements nobody sends.
  struct In {
    std::int64_t rank, begin, elements, launch, first;
  };
  struct Step {
    /// Where an element of the source and of the target is, or -1; elements of the rank's own scratch,
    /// outbox and inbox; those of a portion.
    static constexpr int numbers = 6, own = 2, portion = 5;
    std::int64_t received = 0;
    std::vector<Out> out;
    std::vector<In> in;
    std::vector<BoxMove> packs, unpacks;
    std::vector<std::int64_t> portions;  // where each ends in the outbox

    static Step read(const std::int64_t *&words, const PlanTable<Step> &plan) {
      Step step;
      step.received = *words++;
      for (std::int64_t left = *words++; left > 0; --left, words += 3)
        step.out.push_back({words[0], words[1], words[2]});
      for (std::int64_t left = *words++; left > 0; --left, words += 5)
        step.in.push_back({words[0], words[1], words[2], words[3], words[4]});
      step.packs = BoxMove::read_all(words);
      step.unpacks = BoxMove::read_all(words);
      std::int64_t begin = 0, end = 0;  // messages that are small have a portion together
      for (const Out &one : step.out) {
        end = std::max(end, one.begin + one.elements);
        if (end - begin < plan.numbers[portion]) continue;
        step.portions.push_back(begin = end);
      }
      if (end > begin) step.portions.push_back(end);
      return step;
    }
    template <class Do>
    void each_launch(Do act) {
      for (auto *moves : {&packs, &unpacks})
        for (BoxMove &move : *moves) act(move);
    }

    std::int64_t packed(std::int64_t itemsize) const {
      std::int64_t elements = 0;
      for (const BoxMove &move : packs) elements += move.elements;
      return elements * itemsize;
    }
    std::int64_t came(std::int64_t itemsize) const {
      std::int64_t elements = 0;
      for (const In &one : in) elements += one.elements;
      for (const BoxMove &move : packs) elements += move.to == inbox ? move.elements : 0;
      return elements * itemsize;
    }
  };
  using Plan = PlanTable<Step>;

  /// A step that MPI carries.
  class Exchange {
   public:
    Exchange(Messages &own, const Plan &plan, const Step &step, std::int64_t number)
        : own_(own), plan_(plan), step_(step), number_(number), requests_(step.in.size(), -1) {}

    void run() {
      own_.keep(cudaStreamSynchronize(own_.stream_));  // what the inbox had is unpacked
      for (std::size_t n = 0; n < step_.in.size(); ++n)
        if (step_.in[n].elements)
          requests_[n] = post(false, step_.in[n].rank, inbox, step_.in[n].begin, step_.in[n].elements);
      for (const BoxMove &move : step_.packs) {
        if (move.to == outbox) {
          pack(move);
        } else {
          own_.queue(plan_, move, 0, move.elements);
        }
      }
      std::size_t packed = 0;
      for (const Out &one : step_.out) {
        while (packed == 0 || step_.portions[packed - 1] < one.begin + one.elements)
          own_.keep(cudaEventSynchronize(own_.packed_[packed++]));
        post(true, one.rank, outbox, one.begin, one.elements);
        unpack(false);
      }
      unpack(true);
      own_.mpi_.finish(own_.engine_, number_);
    }

   private:
    std::int64_t post(bool sends, std::int64_t rank, int box, std::int64_t begin, std::int64_t elements) {
      char *const at = own_.known_[std::size_t(box)] + begin * plan_.itemsize;
      return own_.mpi_.post(own_.engine_, number_, sends, rank, at, elements * plan_.itemsize);
    }

    /// Queue the portions of the outbox, and an event behind each.
    void pack(const BoxMove &move) {
      std::int64_t begin = 0;
      for (std::size_t n = 0; n < step_.portions.size(); ++n) {
        own_.queue(plan_, move, begin, step_.portions[n]);
        own_.keep(cudaEventRecord(own_.packed_[n], own_.stream_));
        begin = step_.portions[n];
      }
    }

    /// Unpack what has come, in the order of the table, as far as it has; or, if it waits, all.
    void unpack(bool waits) {
      while (next_ < step_.in.size() && is_here(waits)) {
        const In &one = step_.in[next_++];
        if (one.launch < 0) continue;
        const BoxMove &move = step_.unpacks[std::size_t(one.launch)];
        if (one.first < 0) {
          own_.queue(plan_, move, 0, move.elements);
          continue;
        }
        std::int64_t last = one.first + one.elements;
        while (next_ < step_.in.size() && step_.in[next_].launch == one.launch && is_here(false))
          last += step_.in[next_++].elements;
        own_.queue(plan_, move, one.first, last);
      }
    }

    bool is_here(bool waits) {
      const std::int64_t message = requests_[next_];
      return message < 0 || own_.mpi_.is_done(own_.engine_, number_, message, waits);
    }

    Messages &own_;
    const Plan &plan_;
    const Step &step_;
    const std::int64_t number_;
    std::vector<std::int64_t> requests_;
    std::size_t next_ = 0;  // of the messages that come
  };

  /// A step that the library of collectives carries, between kernels on one stream.
  void exchange_on_stream(const Plan &plan, const Step &step) {
    for (const BoxMove &move : step.packs) queue(plan, move, 0, move.elements);
    std::vector<std::int64_t> words;
    const auto add = [&](std::int64_t rank, int box, std::int64_t begin, std::int64_t elements) {
      char *const at = known_[std::size_t(box)] + begin * plan.itemsize;
      words.insert(words.end(), {rank, std::int64_t(reinterpret_cast<std::intptr_t>(at)),
                                 elements * plan.itemsize});
    };
    std::int64_t come = 0;
    for (const Out &one : step.out) add(one.rank, outbox, one.begin, one.elements);
    for (const In &one : step.in) {
      if (!one.elements) continue;
      add(one.rank, inbox, one.begin, one.elements);
      ++come;
    }
    const auto go = std::int64_t(step.out.size());
    const std::string said = Nccl::of_process().carry(group_, stream_, go, come, words.data());
    if (said_.empty()) said_ = said;
    for (const BoxMove &move : step.unpacks) queue(plan, move, 0, move.elements);
  }

  void queue(const Plan &plan, const BoxMove &move, std::int64_t first, std::int64_t last) {
    if (failed_ != cudaSuccess) return;
    keep(move.queue_part(bases_, known_[std::size_t(move.to)], plan.itemsize, stream_, first, last));
  }

  static cudaError_t buffer(void **to, std::size_t bytes, bool pinned) {
    return pinned ? cudaHostAlloc(to, bytes, cudaHostAllocMapped) : allocate(to, bytes);
  }

  void keep(cudaError_t error) {
    if (failed_ == cudaSuccess) failed_ = error;
  }

  void *engine_;
  Pulls::Meet meet_;
  Pulls::Count count_;
  ByMpi mpi_;
  void *group_;
  bool pinned_;
  std::string said_;
  std::int64_t ranks_ = 0;
  std::vector<Plan> plans_;
  std::vector<char *> known_;
  std::vector<cudaEvent_t> packed_;             // behind each portion of the outbox
  char **bases_ = nullptr;                      // on the device
  void *own_[3] = {nullptr, nullptr, nullptr};  // scratch on the device; outbox, inbox
  cudaStream_t stream_ = nullptr;
  cudaError_t failed_ = cudaSuccess;
};

}  // namespace v1
}  // namespace distspmd
