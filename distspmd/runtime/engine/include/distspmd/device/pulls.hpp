// Pulls: each rank of a node copies what a plan gives it out of the memory of the other ranks' devices.
//
// The ranks meet before, and say there where their tiles lie, by inter-process handles; behind each step,
// so that sources may change; and nothing passes through the host. Each step is one kernel for all boxes
// that a rank receives; of a reduction one for each operand, in the order of the plan's messages,
// which is that of the ranks: results have the same bits on all of them.
#pragma once

#include <cuda_runtime.h>

#ifndef DISTSPMD_EMULATED_DEVICE
#include <dlfcn.h>
#endif

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <map>
#include <vector>

#include <distspmd/device/box_moves.hpp>
#include <distspmd/device/plan_tables.hpp>

namespace distspmd {
inline namespace v1 {

/// The allocation that has an address of the device, and a number that no other one ever has.
inline bool find_allocation(const void *at, char **first, std::uint64_t *number) {
#ifdef DISTSPMD_EMULATED_DEVICE
  std::size_t bytes;
  void *found = nullptr;
  if (!emulated::allocation_of(at, &found, &bytes)) return false;
  *first = static_cast<char *>(found);
  *number = reinterpret_cast<std::uintptr_t>(found);  // addresses are never used again
  return true;
#else
  using Range = int (*)(unsigned long long *, std::size_t *, unsigned long long);
  using Attribute = int (*)(void *, int, unsigned long long);
  static void *const driver = dlopen("libcuda.so.1", RTLD_LAZY);
  static const auto range = driver ? Range(dlsym(driver, "cuMemGetAddressRange_v2")) : nullptr;
  static const auto attribute = driver ? Attribute(dlsym(driver, "cuPointerGetAttribute")) : nullptr;
  constexpr int buffer_id = 7;
  unsigned long long begin = 0;
  std::size_t bytes = 0;
  const auto address = (unsigned long long)reinterpret_cast<std::uintptr_t>(at);
  if (!range || !attribute || range(&begin, &bytes, address) != 0) return false;
  *first = reinterpret_cast<char *>(std::uintptr_t(begin));
  return attribute(number, buffer_id, address) == 0;
#endif
}

class Pulls {
 public:
  /// How the ranks meet: each gives so many bytes, and gets those of all. The number is that of a plan.
  using Meet = void (*)(void *engine, std::int64_t plan, const void *mine, std::int64_t bytes, void *all);
  /// Count a call of a plan, and the bytes that came from other ranks.
  using Count = void (*)(void *engine, std::int64_t plan, std::int64_t received);

  /// Words: number of this rank, ranks, bytes of scratch, plans; of each plan those of
  /// plans/pull_table.py.
  Pulls(void *engine, Meet meet, Count count, const std::int64_t *words)
      : engine_(engine), meet_(meet), count_(count), rank_(*words++), ranks_(*words++) {
    const std::int64_t scratch = *words++;
    if (scratch) keep(allocate(&scratch_, std::size_t(scratch)));
    plans_ = Plan::read_all(words);
    keep(cudaStreamCreateWithFlags(&stream_, cudaStreamNonBlocking));
    keep(allocate(reinterpret_cast<void **>(&bases_), std::size_t(ends * ranks_) * sizeof(char *)));
    keep(Plan::upload(plans_));
  }
  Pulls(const Pulls &) = delete;
  Pulls &operator=(const Pulls &) = delete;
  ~Pulls() {
    for (auto &[key, at] : opened_) cudaIpcCloseMemHandle(at.first);
    Plan::free(plans_);
    cudaFree(bases_);
    cudaFree(scratch_);
    cudaStreamDestroy(stream_);
  }

  /// Memory at an address is somebody else's, who may free it after a call.
  void lend(const void *at) {
    char *first;
    std::uint64_t number;
    if (find_allocation(at, &first, &number)) lent_.push_back(number);
  }
  void return_lent() { lent_.clear(); }

  /// Calls that were pulls so far.
  std::int64_t calls = 0;

  /// Run a plan if the tiles of all ranks allow it, which is the same on all of them; the error stays.
  /// What the program did before has to be done.
  bool run(std::int64_t number, const void *in, void *out) {
    const Plan &plan = plans_.at(std::size_t(number));
    if (!plan.fits) return false;
    std::vector<Record> all(static_cast<std::size_t>(ranks_));
    const Record mine = describe(plan, in, out);
    meet_(engine_, number, &mine, sizeof mine, all.data());
    for (const Record &record : all)
      if (!record.fits || (record.aliased && !plan.apart)) return false;
    if (!plan.steps.empty()) find_bases(all, in, out);
    std::int64_t received = 0;
    for (const Step &step : plan.steps) {
      for (const BoxMove &launch : step.launches) {
        if (failed_ != cudaSuccess) break;
        void *const target = launch.to == 1 ? out : scratch_;
        keep(launch.queue(bases_, target, plan.itemsize, stream_));
      }
      keep(cudaStreamSynchronize(stream_));
      received += step.received;
      if (&step == &plan.steps.back()) close_lent();
      char told = 0;
      std::vector<char> heard(static_cast<std::size_t>(ranks_));
      meet_(engine_, number, &told, 1, heard.data());
    }
    count_(engine_, number, received);
    ++calls;
    return true;
  }

  cudaError_t error() const { return failed_; }

 private:
  static constexpr int ends = 3;  // source, target, scratch

  struct Step {
    static constexpr int numbers = ends;  // of each end, where an element is; -1: there is none
    std::int64_t received;                // bytes
    std::vector<BoxMove> launches;

    static Step read(const std::int64_t *&words, const PlanTable<Step> &plan) {
      Step step{*words++ * plan.itemsize, {}};
      step.launches = BoxMove::read_all(words);
      return step;
    }
    template <class Do>
    void each_launch(Do act) {
      for (BoxMove &launch : launches) act(launch);
    }
  };
  using Plan = PlanTable<Step>;

  /// Where a tile lies, for the other ranks.
  struct End {
    std::uint64_t allocation;  // 0: nothing is held
    std::int64_t offset;       // of the tile's pointer behind it
    std::int64_t lent;
    cudaIpcMemHandle_t handle;
  };
  struct Record {
    std::int64_t fits, aliased;
    End of[ends];
  };

  Record describe(const Plan &plan, const void *in, void *out) {
    Record record{};
    record.fits = failed_ == cudaSuccess;
    record.aliased = in == out && in;
    const void *const tiles[] = {in, out, scratch_};
    for (int end = 0; end < ends; ++end) {
      if (plan.numbers[end] < 0) continue;
      const char *const tile = static_cast<const char *>(tiles[end]);
      const char *const at = tile + plan.numbers[end] * plan.itemsize;
      char *first = nullptr;
      End &own = record.of[end];
      const bool here = is_of_device(at) && find_allocation(at, &first, &own.allocation);
      if (!here || cudaIpcGetMemHandle(&own.handle, first) != cudaSuccess) {
        cudaGetLastError();  // it is told by what follows
        record.fits = 0;
        continue;
      }
      own.offset = tile - first;
      own.lent = std::find(lent_.begin(), lent_.end(), own.allocation) != lent_.end();
    }
    return record;
  }

  /// Where the tiles of all ranks are in this process; known ones are not opened again.
  void find_bases(const std::vector<Record> &all, const void *in, void *out) {
    const void *const tiles[] = {in, out, scratch_};
    std::vector<char *> bases(std::size_t(ends * ranks_), nullptr);
    for (std::int64_t rank = 0; rank < ranks_; ++rank)
      for (int end = 0; end < ends; ++end) {
        const End &own = all[std::size_t(rank)].of[end];
        char *&base = bases[std::size_t(ends * rank + end)];
        if (rank == rank_) {
          base = const_cast<char *>(static_cast<const char *>(tiles[end]));
          continue;
        }
        if (!own.allocation) continue;
        auto &[at, lent] = opened_[{rank, own.allocation}];
        if (!at) keep(cudaIpcOpenMemHandle(&at, own.handle, cudaIpcMemLazyEnablePeerAccess));
        lent = lent || own.lent;
        if (at) base = static_cast<char *>(at) + own.offset;
      }
    if (bases == known_) return;
    known_ = bases;
    keep(cudaMemcpy(bases_, known_.data(), known_.size() * sizeof(char *), cudaMemcpyHostToDevice));
  }

  void close_lent() {
    for (auto at = opened_.begin(); at != opened_.end();) {
      if (!at->second.second) {
        ++at;
        continue;
      }
      keep(cudaIpcCloseMemHandle(at->second.first));
      at = opened_.erase(at);
    }
  }

  void keep(cudaError_t error) {
    if (failed_ == cudaSuccess) failed_ = error;
  }

  void *engine_;
  Meet meet_;
  Count count_;
  std::int64_t rank_, ranks_;
  std::vector<Plan> plans_;
  std::map<std::pair<std::int64_t, std::uint64_t>, std::pair<void *, bool>> opened_;
  std::vector<std::uint64_t> lent_;
  std::vector<char *> known_;
  char **bases_ = nullptr;   // on the device
  void *scratch_ = nullptr;  // likewise, of plans that pass through other layouts
  cudaStream_t stream_ = nullptr;
  cudaError_t failed_ = cudaSuccess;
};

}  // namespace v1
}  // namespace distspmd
