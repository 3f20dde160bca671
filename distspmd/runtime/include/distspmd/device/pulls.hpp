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

/// Operations that kernels combine with, by their codes (memory/reductions.hpp, whose meaning they have).
enum class Combine : std::int64_t { replace, sum, prod, min, max };

template <class T>
__device__ inline T combined_by(Combine by, T a, T b) {
  if (by == Combine::sum) return a + b;
  if (by == Combine::prod) return a * b;
  if (by == Combine::min) return a <= b || a != a ? a : b;
  return a >= b || a != a ? a : b;
}

/// Bring boxes to their places, of elements of so many units each. A row of the table has how many
/// elements are in those before it, which base it comes from, where it begins there and in the target,
/// whether it is combined with what is there, its extents, and the strides of both.
template <class Unit>
__global__ void pull_boxes(char *const *bases, Unit *to, const std::int64_t *rows, std::int64_t count,
                           std::int64_t dimensions, std::int64_t elements, std::int64_t units,
                           Combine by) {
  const std::int64_t row = 5 + 3 * dimensions;
  const std::int64_t step = std::int64_t(gridDim.x) * blockDim.x;
  std::int64_t t = std::int64_t(blockIdx.x) * blockDim.x + threadIdx.x;
  for (; t < elements * units; t += step) {
    const std::int64_t element = t / units;
    std::int64_t low = 0, high = count - 1;  // the last box that begins at the element or before it
    while (low < high) {
      const std::int64_t middle = (low + high + 1) / 2;
      if (rows[middle * row] <= element) {
        low = middle;
      } else {
        high = middle - 1;
      }
    }
    const std::int64_t *const box = rows + low * row;
    const std::int64_t *const extents = box + 5, *const from_strides = extents + dimensions;
    const std::int64_t *const to_strides = from_strides + dimensions;
    std::int64_t rest = element - box[0], from_at = box[2], to_at = box[3];
    for (std::int64_t d = dimensions - 1; d >= 0; --d) {
      const std::int64_t index = rest % extents[d];
      rest /= extents[d];
      from_at += index * from_strides[d];
      to_at += index * to_strides[d];
    }
    const Unit *const from = reinterpret_cast<const Unit *>(bases[box[1]]);
    const Unit value = from[from_at * units + t % units];
    Unit *const into = to + to_at * units + t % units;
    *into = box[4] ? combined_by(by, *into, value) : value;
  }
}

class Pulls {
 public:
  /// How the ranks meet: each gives so many bytes, and gets those of all. The number is that of a plan.
  using Meet = void (*)(void *engine, std::int64_t plan, const void *mine, std::int64_t bytes, void *all);
  /// Count a call of a plan, and the bytes that came from other ranks.
  using Count = void (*)(void *engine, std::int64_t plan, std::int64_t received);

  /// Words: number of this rank, ranks, plans; of each plan those of plans/pull_table.py.
  Pulls(void *engine, Meet meet, Count count, const std::int64_t *words)
      : engine_(engine), meet_(meet), count_(count), rank_(*words++), ranks_(*words++) {
    for (std::int64_t left = *words++; left > 0; --left) plans_.push_back(Plan::read(words));
    failed_ = cudaStreamCreateWithFlags(&stream_, cudaStreamNonBlocking);
    keep(cudaMalloc(reinterpret_cast<void **>(&bases_), std::size_t(2 * ranks_) * sizeof(char *)));
    for (Plan &plan : plans_)
      for (Step &step : plan.steps)
        for (Launch &launch : step.launches) {
          const std::size_t bytes = launch.rows.size() * sizeof(std::int64_t);
          keep(cudaMalloc(reinterpret_cast<void **>(&launch.table), bytes));
          if (launch.table)
            keep(cudaMemcpy(launch.table, launch.rows.data(), bytes, cudaMemcpyHostToDevice));
        }
  }
  Pulls(const Pulls &) = delete;
  Pulls &operator=(const Pulls &) = delete;
  ~Pulls() {
    for (auto &[key, at] : opened_) cudaIpcCloseMemHandle(at.first);
    for (Plan &plan : plans_)
      for (Step &step : plan.steps)
        for (Launch &launch : step.launches) cudaFree(launch.table);
    cudaFree(bases_);
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
      for (const Launch &launch : step.launches) pull(plan, launch, out);
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
  struct Launch {
    Combine by;
    std::int64_t dtype, dimensions, count, elements = 0;
    std::vector<std::int64_t> rows;
    std::int64_t *table = nullptr;  // on the device
  };
  struct Step {
    std::int64_t received;
    std::vector<Launch> launches;
  };
  struct Plan {
    bool fits, apart;
    std::int64_t itemsize, touched[2];  // of each end, where an element is; -1: there is none
    std::vector<Step> steps;

    static Plan read(const std::int64_t *&words) {
      Plan plan{};
      plan.fits = *words++;
      plan.apart = *words++;
      plan.itemsize = *words++;
      for (std::int64_t &at : plan.touched) at = *words++;
      for (std::int64_t steps = *words++; steps > 0; --steps) {
        Step step{*words++ * plan.itemsize, {}};
        for (std::int64_t launches = *words++; launches > 0; --launches) {
          Launch launch{Combine(words[0]), words[1], words[2], words[3]};
          words += 4;
          const std::int64_t row = 5 + 3 * launch.dimensions;
          launch.rows.assign(words, words + launch.count * row);
          words += launch.count * row;
          for (std::int64_t n = 0; n < launch.count; ++n) {
            std::int64_t *const box = launch.rows.data() + n * row, volume = 1;
            for (std::int64_t d = 0; d < launch.dimensions; ++d) volume *= box[5 + d];
            box[0] = launch.elements;
            launch.elements += volume;
          }
          step.launches.push_back(std::move(launch));
        }
        plan.steps.push_back(std::move(step));
      }
      return plan;
    }
  };

  /// Where a tile lies, for the other ranks.
  struct End {
    std::uint64_t allocation;  // 0: nothing is held
    std::int64_t offset;       // of the tile's pointer behind it
    std::int64_t lent;
    cudaIpcMemHandle_t handle;
  };
  struct Record {
    std::int64_t fits, aliased;
    End ends[2];
  };

  Record describe(const Plan &plan, const void *in, void *out) {
    Record record{};
    record.fits = failed_ == cudaSuccess;
    record.aliased = in == out && in;
    const void *const tiles[] = {in, out};
    for (int end = 0; end < 2; ++end) {
      if (plan.touched[end] < 0) continue;
      const char *const tile = static_cast<const char *>(tiles[end]);
      const char *const at = tile + plan.touched[end] * plan.itemsize;
      cudaPointerAttributes found;
      char *first = nullptr;
      End &own = record.ends[end];
      const bool here = cudaPointerGetAttributes(&found, at) == cudaSuccess &&
                        found.type == cudaMemoryTypeDevice && find_allocation(at, &first, &own.allocation);
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
    std::vector<char *> bases(std::size_t(2 * ranks_), nullptr);
    for (std::int64_t rank = 0; rank < ranks_; ++rank)
      for (int end = 0; end < 2; ++end) {
        const End &own = all[std::size_t(rank)].ends[end];
        char *&base = bases[std::size_t(2 * rank + end)];
        if (rank == rank_) {
          base = end ? static_cast<char *>(out) : const_cast<char *>(static_cast<const char *>(in));
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

  void pull(const Plan &plan, const Launch &launch, void *out) {
    if (!launch.elements || failed_ != cudaSuccess) return;
    if (launch.by != Combine::replace) {
      if (launch.dtype == 4) return start<std::int32_t>(launch, 1, out);
      if (launch.dtype == 5) return start<std::int64_t>(launch, 1, out);
      if (launch.dtype == 10) return start<float>(launch, 1, out);
      return start<double>(launch, 1, out);
    }
    const std::int64_t size = plan.itemsize;
    if (size % 8 == 0) return start<std::uint64_t>(launch, size / 8, out);
    if (size % 4 == 0) return start<std::uint32_t>(launch, size / 4, out);
    if (size % 2 == 0) return start<std::uint16_t>(launch, size / 2, out);
    start<std::uint8_t>(launch, size, out);
  }

  template <class Unit>
  void start(const Launch &launch, std::int64_t units, void *out) {
    Unit *to = static_cast<Unit *>(out);
    char *const *bases = bases_;
    std::int64_t count = launch.count, dimensions = launch.dimensions, elements = launch.elements;
    const std::int64_t *table = launch.table;
    Combine by = launch.by;
    constexpr std::int64_t threads = 256, most_blocks = 1 << 16;
    const std::int64_t blocks = (elements * units + threads - 1) / threads;
    void *arguments[] = {(void *)&bases,      (void *)&to,       (void *)&table, (void *)&count,
                         (void *)&dimensions, (void *)&elements, (void *)&units, (void *)&by};
    keep(cudaLaunchKernel((void *)pull_boxes<Unit>, dim3(unsigned(std::min(blocks, most_blocks))),
                          dim3(unsigned(threads)), arguments, 0, stream_));
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
  char **bases_ = nullptr;  // on the device
  cudaStream_t stream_ = nullptr;
  cudaError_t failed_ = cudaSuccess;
};

}  // namespace v1
}  // namespace distspmd
