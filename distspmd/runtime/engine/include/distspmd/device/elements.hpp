// Kernels of a device that compute elements each by itself: their indices, and vectors of neighbours.
#pragma once

#include <cuda_runtime.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>

#ifdef DISTSPMD_EMULATED_DEVICE
#include <cstdio>
#include <cstdlib>
#endif

namespace distspmd {
inline namespace v1 {

constexpr unsigned threads_of_block = 256;

/// Blocks for so many threads; each thread goes on where a grid ends.
inline dim3 blocks_for(std::int64_t threads) {
  constexpr std::int64_t most = 1 << 20;
  return dim3(unsigned(std::min((threads + threads_of_block - 1) / threads_of_block, most)));
}

/// The index of the fastest variable; the rest remains. Small numbers are divided as such, which takes a
/// device a fraction of the time.
__device__ inline std::int64_t take_index(std::int64_t &rest, std::int64_t extent) {
  if ((rest | extent) >> 31 == 0) {
    const std::uint32_t number = std::uint32_t(rest), by = std::uint32_t(extent);
    rest = number / by;
    return number % by;
  }
  const std::int64_t index = rest % extent;
  rest /= extent;
  return index;
}

/// Neighbours that are read and written at once.
template <class T, int lanes>
struct alignas(lanes * sizeof(T)) Lanes {
  T of[lanes];
};

/// Whether vectors of neighbours may begin at an address; the host asks.
template <int lanes, class T>
inline bool is_aligned(const T *at) {
  return reinterpret_cast<std::uintptr_t>(at) % (lanes * sizeof(T)) == 0;
}

/// Hardware traps where a vector is not aligned; the host would not.
template <int lanes, class T>
__device__ inline void check_aligned(const T *at) {
#ifdef DISTSPMD_EMULATED_DEVICE
  if (is_aligned<lanes>(at)) return;
  std::fprintf(stderr, "distspmd: the emulated device: a vector is not aligned.\n");
  std::abort();
#endif
}

template <int lanes, class T>
__device__ inline Lanes<T, lanes> load_lanes(const T *at) {
  check_aligned<lanes>(at);
  return *reinterpret_cast<const Lanes<T, lanes> *>(at);
}
template <int lanes, class T>
__device__ inline void store_lanes(T *at, const Lanes<T, lanes> &values) {
  check_aligned<lanes>(at);
  *reinterpret_cast<Lanes<T, lanes> *>(at) = values;
}

}  // namespace v1
}  // namespace distspmd
