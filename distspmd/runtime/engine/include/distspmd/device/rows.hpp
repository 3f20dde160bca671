// Kernels of a device whose threads share rows: they combine values of a row, in an order that its length
// alone decides, so that results have the same bits each time.
//
// A row has `wide` threads, a power of two: some lanes of a warp, a warp, or several warps of a block.
#pragma once

#include <distspmd/device/elements.hpp>

namespace distspmd {
inline namespace v1 {

/// Threads of a block whose rows have so many each.
constexpr unsigned threads_of_rows(unsigned wide) {
  return wide < threads_of_block ? threads_of_block : wide;
}

/// What a lane gets from the one so far behind it, or from the first, among `wide` neighbours. Types of
/// less than 4 bytes pass as int.
template <int wide, class T>
__device__ inline T from_behind(T value, int by) {
  if constexpr (sizeof(T) < 4) return T(__shfl_down_sync(0xffffffffu, int(value), by, wide));
  else return __shfl_down_sync(0xffffffffu, value, by, wide);
}
template <int wide, class T>
__device__ inline T from_first(T value) {
  if constexpr (sizeof(T) < 4) return T(__shfl_sync(0xffffffffu, int(value), 0, wide));
  else return __shfl_sync(0xffffffffu, value, 0, wide);
}

/// Combine the parts of the threads of a row; all of them get the whole. `combine(part, other)` combines
/// another part into one. All threads of the block have to come.
template <int wide, class T, class Combine>
__device__ T combine_row(T part, Combine combine) {
  constexpr int inside = wide < 32 ? wide : 32;
  for (int by = inside / 2; by > 0; by /= 2) combine(part, from_behind<inside>(part, by));
  if constexpr (wide <= 32) {
    return from_first<inside>(part);
  } else {
    __shared__ T parts[threads_of_rows(wide) / 32];
    if (threadIdx.x % 32 == 0) parts[threadIdx.x / 32] = part;
    __syncthreads();
    const int first = int(threadIdx.x) / wide * (wide / 32);
    T whole = parts[first];
    for (int warp = 1; warp < wide / 32; ++warp) combine(whole, parts[first + warp]);
    __syncthreads();  // before the parts are those of other values
    return whole;
  }
}

/// Blocks for so many rows of so many threads each.
inline dim3 blocks_of_rows(std::int64_t rows, unsigned wide) {
  constexpr std::int64_t most = 1 << 20;
  const std::int64_t together = threads_of_rows(wide) / wide;
  return dim3(unsigned(std::min((rows + together - 1) / together, most)));
}

}  // namespace v1
}  // namespace distspmd
