// Messages: tiles of devices go between ranks as packed buffers in the memory of the devices.
//
// One kernel packs what a rank sends in a step, somebody carries the messages from device to device,
// and kernels unpack what came; of a reduction one for each operand, in the order of the plan's
// messages, which is that of the ranks: results have the same bits as by any other way. Buffers have
// no gaps, so nobody needs datatypes in the memory of a device.
//
// Two can carry them: an MPI that knows the memory of devices, which the host has to wait for, and the
// library of collectives (nccl.hpp), on the stream of the kernels.
#pragma once

#include <cuda_runtime.h>

#include <algorithm>
#include <cstdint>
#include <string>
#include <vector>

#include <distspmd/device/box_moves.hpp>
#include <distspmd/device/nccl.hpp>
#include <distspmd/device/pulls.hpp>

namespace distspmd {
inline namespace v1 {

class Messages {
 public:
  /// Who sends and receives buffers by MPI: of each a rank, an address and bytes. It waits for all.
  using Carry = void (*)(void *engine, std::int64_t plan, std::int64_t out, std::int64_t in,
                         const std::int64_t *words);

  /// Words: those of plans/packed_table.py. A group of the library of collectives carries, or, where
  /// it is null, MPI.
  Messages(void *engine, Pulls::Meet meet, Pulls::Count count, Carry carry, void *group,
           const std::int64_t *words)
      : engine_(engine), meet_(meet), count_(count), carry_(carry), group_(group) {
    ++words;  // the rank
    ranks_ = *words++;
    std::int64_t most[3] = {0, 0, 0};
    for (std::int64_t left = *words++; left > 0; --left) {
      plans_.push_back(Plan::read(words));
      for (int end = 0; end < 3; ++end)
        most[end] = std::max(most[end], plans_.back().own[end] * plans_.back().itemsize);
    }
    keep(cudaStreamCreateWithFlags(&stream_, cudaStreamNonBlocking));
    keep(cudaMalloc(reinterpret_cast<void **>(&bases_), ends * sizeof(char *)));
    for (int end = 0; end < 3; ++end)
      if (most[end]) keep(cudaMalloc(&own_[end], std::size_t(most[end])));
    for (Plan &plan : plans_)
      for (Step &step : plan.steps)
        for (auto *moves : {&step.packs, &step.unpacks})
          for (BoxMove &move : *moves) keep(move.upload());
  }
  Messages(const Messages &) = delete;
  Messages &operator=(const Messages &) = delete;
  ~Messages() {
    for (Plan &plan : plans_)
      for (Step &step : plan.steps)
        for (auto *moves : {&step.packs, &step.unpacks})
          for (BoxMove &move : *moves) cudaFree(move.table);
    for (void *own : own_) cudaFree(own);
    cudaFree(bases_);
    cudaStreamDestroy(stream_);
  }

  /// Calls of plans that were carried so.
  std::int64_t calls = 0;

  /// Run a plan if the tiles of all ranks lie on devices; the error stays. What the program did before
  /// has to be done.
  bool run(std::int64_t number, const void *in, void *out) {
    const Plan &plan = plans_.at(std::size_t(number));
    if (!plan.fits) return false;
    const void *const tiles[] = {in, out};
    char mine = failed_ == cudaSuccess && (in != out || !in || plan.apart);
    for (int end = 0; end < 2; ++end)
      if (plan.touched[end] >= 0 &&
          !is_of_device(static_cast<const char *>(tiles[end]) + plan.touched[end] * plan.itemsize))
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
      for (const BoxMove &move : step.packs) queue(plan, move, bases);
      send(plan, number, step);
      for (const BoxMove &move : step.unpacks) queue(plan, move, bases);
      received += step.received * plan.itemsize;
    }
    keep(cudaStreamSynchronize(stream_));
    count_(engine_, number, received);
    ++calls;
    return true;
  }

  cudaError_t error() const { return failed_; }
  const std::string &said() const { return said_; }

 private:
  static constexpr int ends = 5;  // source, target, scratch, outbox, inbox

  struct Step {
    std::int64_t received = 0;
    std::vector<std::int64_t> messages[2];  // out and in: of each a rank, where it begins, elements
    std::vector<BoxMove> packs, unpacks;
  };
  struct Plan {
    bool fits, apart;
    std::int64_t itemsize, touched[2], own[3];
    std::vector<Step> steps;

    static Plan read(const std::int64_t *&words) {
      Plan plan{};
      plan.fits = *words++;
      plan.apart = *words++;
      plan.itemsize = *words++;
      for (std::int64_t &at : plan.touched) at = *words++;
      for (std::int64_t &elements : plan.own) elements = *words++;
      for (std::int64_t steps = *words++; steps > 0; --steps) {
        Step step;
        step.received = *words++;
        for (auto &messages : step.messages) {
          const std::int64_t count = 3 * *words++;
          messages.assign(words, words + count);
          words += count;
        }
        step.packs = BoxMove::read_all(words);
        step.unpacks = BoxMove::read_all(words);
        plan.steps.push_back(std::move(step));
      }
      return plan;
    }
  };

  void queue(const Plan &plan, const BoxMove &move, const std::vector<char *> &bases) {
    if (failed_ != cudaSuccess) return;
    keep(move.queue(bases_, bases[std::size_t(move.to)], plan.itemsize, stream_));
  }

  /// Bring the messages of a step from outboxes to inboxes.
  void send(const Plan &plan, std::int64_t number, const Step &step) {
    std::vector<std::int64_t> words;
    for (int way = 0; way < 2; ++way)
      for (std::size_t n = 0; n < step.messages[way].size(); n += 3) {
        const std::int64_t *const message = step.messages[way].data() + n;
        char *const box = static_cast<char *>(own_[1 + way]) + message[1] * plan.itemsize;
        words.insert(words.end(), {message[0], std::int64_t(reinterpret_cast<std::intptr_t>(box)),
                                   message[2] * plan.itemsize});
      }
    const auto out = std::int64_t(step.messages[0].size() / 3);
    const auto in = std::int64_t(step.messages[1].size() / 3);
    if (group_) {
      const std::string said = Nccl::of_process().carry(group_, stream_, out, in, words.data());
      if (said_.empty()) said_ = said;
      return;
    }
    keep(cudaStreamSynchronize(stream_));  // what is packed, and what the inbox had
    carry_(engine_, number, out, in, words.data());
  }

  void keep(cudaError_t error) {
    if (failed_ == cudaSuccess) failed_ = error;
  }

  void *engine_;
  Pulls::Meet meet_;
  Pulls::Count count_;
  Carry carry_;
  void *group_;
  std::string said_;
  std::int64_t ranks_ = 0;
  std::vector<Plan> plans_;
  std::vector<char *> known_;
  char **bases_ = nullptr;                           // on the device
  void *own_[3] = {nullptr, nullptr, nullptr};       // likewise: scratch, outbox, inbox
  cudaStream_t stream_ = nullptr;
  cudaError_t failed_ = cudaSuccess;
};

}  // namespace v1
}  // namespace distspmd
