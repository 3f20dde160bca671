// Reductions on a device by many threads, without atomic operations, in an order that the extents
// alone decide: results have the same bits each time.
//
// A block has `wide` elements of the result beside each other, and for each of them as many threads
// as it has besides. A thread combines terms at equal distances; then threads combine theirs in pairs.
// Where there are few elements and many terms, these are cut into chunks, whose parts lie in scratch
// memory until a second kernel combines them.
#pragma once

#include <cuda_runtime.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>

namespace distspmd {
inline namespace v1 {

/// How a reduction is shared: `wide` is a power of two that divides the threads of a block.
struct ReductionShape {
  static constexpr std::int64_t threads = 256;
  static constexpr std::int64_t parts = 1 << 14;  // that scratch memory has room for
  std::int64_t wide, chunks;

  /// Of so many elements of so many terms each, whose neighbours in memory belong to one element, or
  /// to different ones.
  static ReductionShape of(std::int64_t elements, std::int64_t terms, bool neighbours_differ) {
    constexpr std::int64_t least = 8;     // terms of a thread that are worth it
    constexpr std::int64_t blocks = 512;  // that are enough for any device
    const std::int64_t most_deep = neighbours_differ ? 8 : threads;
    std::int64_t deep = 1;
    while (deep < most_deep && 2 * deep * least <= terms) deep *= 2;
    const std::int64_t wide = threads / deep, groups = (elements + wide - 1) / wide;
    std::int64_t chunks = 1;
    if (groups > 0 && groups < blocks)
      chunks = std::min({blocks / groups, terms / (deep * least), parts / elements});
    return {wide, std::max<std::int64_t>(chunks, 1)};
  }
};

/// Memory of the device for the parts of one reduction, of up to 16 bytes each: all are on one stream.
void *reduction_scratch();

/// What the threads of a block do. `gather(e, first, end, step, part)` combines terms of an element into
/// a part, `combine(part, other)` a part with that of other terms, and `store(e, chunk, part)` keeps it.
template <class T, class Gather, class Combine, class Store>
__device__ void reduce_elements(std::int64_t elements, std::int64_t terms, ReductionShape shape,
                                T neutral, Gather gather, Combine combine, Store store) {
  alignas(16) __shared__ unsigned char bytes[ReductionShape::threads * sizeof(T)];
  T *const parts = reinterpret_cast<T *>(bytes);
  const std::int64_t deep = ReductionShape::threads / shape.wide;
  const std::int64_t column = threadIdx.x % shape.wide, row = threadIdx.x / shape.wide;
  const std::int64_t groups = (elements + shape.wide - 1) / shape.wide;
  const std::int64_t size = (terms + shape.chunks - 1) / shape.chunks;
  for (std::int64_t n = blockIdx.x; n < groups * shape.chunks; n += gridDim.x) {
    const std::int64_t e = n % groups * shape.wide + column, chunk = n / groups;
    const std::int64_t begin = chunk * size;
    const std::int64_t end = begin + size < terms ? begin + size : terms;
    T part = neutral;
    if (e < elements) gather(e, begin + row, end, deep, part);
    if (deep > 1) {
      parts[threadIdx.x] = part;
      for (std::int64_t half = deep / 2; half > 0; half /= 2) {
        __syncthreads();
        if (row < half) {
          combine(part, parts[threadIdx.x + half * shape.wide]);
          parts[threadIdx.x] = part;
        }
      }
    }
    if (row == 0 && e < elements) store(e, chunk, part);
    if (deep > 1) __syncthreads();  // before its parts are those of other elements
  }
}

/// Queue a reduction on a stream: a kernel that takes the shape, and one for the parts of the chunks.
template <class First, class Second>
void launch_reduction(void *stream, std::int64_t elements, std::int64_t terms,
                      bool neighbours_differ, First first, Second second) {
  if (elements <= 0) return;
  constexpr std::int64_t most_blocks = 1 << 20;
  const ReductionShape shape = ReductionShape::of(elements, terms, neighbours_differ);
  const auto grid = [&](const ReductionShape &of) {
    const std::int64_t groups = (elements + of.wide - 1) / of.wide;
    return dim3(unsigned(std::min(groups * of.chunks, most_blocks)));
  };
  first(grid(shape), dim3(unsigned(ReductionShape::threads)), shape, cudaStream_t(stream));
  if (shape.chunks == 1) return;
  ReductionShape rest = ReductionShape::of(elements, shape.chunks, false);
  rest.chunks = 1;
  second(grid(rest), dim3(unsigned(ReductionShape::threads)), shape.chunks, rest,
         cudaStream_t(stream));
}

}  // namespace v1
}  // namespace distspmd
