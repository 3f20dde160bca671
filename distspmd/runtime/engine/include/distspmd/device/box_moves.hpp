// Kernels that bring boxes of tiles to their places, as tables of plans/pull_table.py say.
#pragma once

#include <cuda_runtime.h>

#include <algorithm>
#include <cstdint>
#include <utility>
#include <vector>

#include <distspmd/device/memory.hpp>

namespace distspmd {
inline namespace v1 {

/// Operations that kernels combine with, by their codes (memory/reductions.hpp, whose meaning they have).
enum class Combine : std::int64_t { replace, sum, prod, min, max };

template <class T>
__device__ inline T combined_by(Combine by, T a, T b) {
  if (by == Combine::sum) return a + b;
  if (by == Combine::prod) return a * b;
  if (by == Combine::min) return a <= b || a != a ? a : b;
  return a >= b || a != a ? a : b;
}

/// The row of the box that an element is in. Rows begin with how many elements are in those before.
__device__ inline const std::int64_t *find_box(const std::int64_t *rows, std::int64_t row,
                                               std::int64_t count, std::int64_t element) {
  std::int64_t low = 0, high = count - 1;  // the last box that begins at the element or before it
  while (low < high) {
    const std::int64_t middle = (low + high + 1) / 2;
    if (rows[middle * row] <= element) {
      low = middle;
    } else {
      high = middle - 1;
    }
  }
  return rows + low * row;
}

/// Bring boxes to their places, of elements of so many units each. A row of the table has how many
/// elements are in those before it, which base it comes from, where it begins there and in the target,
/// whether it is combined with what is there, its extents, and the strides of both. Elements of all boxes
/// are counted through; those from the first to the last one are brought.
template <class Unit>
__global__ void pull_boxes(char *const *bases, Unit *to, const std::int64_t *rows, std::int64_t count,
                           std::int64_t dimensions, std::int64_t first, std::int64_t last,
                           std::int64_t units, Combine by) {
  const std::int64_t row = 5 + 3 * dimensions;
  const std::int64_t step = std::int64_t(gridDim.x) * blockDim.x;
  std::int64_t t = first * units + std::int64_t(blockIdx.x) * blockDim.x + threadIdx.x;
  for (; t < last * units; t += step) {
    const std::int64_t element = t / units;
    const std::int64_t *const box = find_box(rows, row, count, element);
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

/// One launch of such a kernel: an operation, a type, dimensions, the base that is written, and boxes.
struct BoxMove {
  Combine by;
  std::int64_t dtype, dimensions, to, count, elements = 0;
  std::vector<std::int64_t> rows;
  std::int64_t *table = nullptr;  // on the device

  static std::vector<BoxMove> read_all(const std::int64_t *&words) {
    std::vector<BoxMove> found;
    for (std::int64_t left = *words++; left > 0; --left) {
      BoxMove move{Combine(words[0]), words[1], words[2], words[3], words[4]};
      words += 5;
      const std::int64_t row = 5 + 3 * move.dimensions;
      move.rows.assign(words, words + move.count * row);
      words += move.count * row;
      for (std::int64_t n = 0; n < move.count; ++n) {
        std::int64_t *const box = move.rows.data() + n * row, volume = 1;
        for (std::int64_t d = 0; d < move.dimensions; ++d) volume *= box[5 + d];
        box[0] = move.elements;
        move.elements += volume;
      }
      found.push_back(std::move(move));
    }
    return found;
  }

  cudaError_t upload() {
    const std::size_t bytes = rows.size() * sizeof(std::int64_t);
    const cudaError_t error = allocate(reinterpret_cast<void **>(&table), bytes);
    if (error != cudaSuccess || !table) return error;
    return cudaMemcpy(table, rows.data(), bytes, cudaMemcpyHostToDevice);
  }

  /// Queue it; the bases lie on the device, and what is written is given as an address, too.
  cudaError_t queue(char *const *bases, void *target, std::int64_t itemsize, cudaStream_t stream) const {
    return queue_part(bases, target, itemsize, stream, 0, elements);
  }

  /// Likewise, of its elements from the first to the last one.
  cudaError_t queue_part(char *const *bases, void *target, std::int64_t itemsize, cudaStream_t stream,
                         std::int64_t first, std::int64_t last) const {
    if (first >= last) return cudaSuccess;
    const Part part{bases, target, stream, first, last};
    if (by != Combine::replace) {
      if (dtype == 4) return start<std::int32_t>(part, 1);
      if (dtype == 5) return start<std::int64_t>(part, 1);
      if (dtype == 10) return start<float>(part, 1);
      return start<double>(part, 1);
    }
    if (itemsize % 8 == 0) return start<std::uint64_t>(part, itemsize / 8);
    if (itemsize % 4 == 0) return start<std::uint32_t>(part, itemsize / 4);
    if (itemsize % 2 == 0) return start<std::uint16_t>(part, itemsize / 2);
    return start<std::uint8_t>(part, itemsize);
  }

 private:
  struct Part {
    char *const *bases;
    void *target;
    cudaStream_t stream;
    std::int64_t first, last;
  };

  template <class Unit>
  cudaError_t start(const Part &part, std::int64_t units) const {
    char *const *bases = part.bases;
    Unit *to = static_cast<Unit *>(part.target);
    const std::int64_t *words = table;
    std::int64_t boxes = count, dims = dimensions, first = part.first, last = part.last;
    Combine how = by;
    constexpr std::int64_t threads = 256, most_blocks = 1 << 16;
    const std::int64_t blocks = ((last - first) * units + threads - 1) / threads;
    void *arguments[] = {(void *)&bases, (void *)&to,   (void *)&words, (void *)&boxes, (void *)&dims,
                         (void *)&first, (void *)&last, (void *)&units, (void *)&how};
    return cudaLaunchKernel((void *)pull_boxes<Unit>, dim3(unsigned(std::min(blocks, most_blocks))),
                            dim3(unsigned(threads)), arguments, 0, part.stream);
  }
};

/// Whether an address lies in the memory of a device.
inline bool is_of_device(const void *at) {
  cudaPointerAttributes found;
  const bool known = cudaPointerGetAttributes(&found, at) == cudaSuccess;
  if (!known) cudaGetLastError();  // whoever asks next would be told of it
  return known && found.type == cudaMemoryTypeDevice;
}

}  // namespace v1
}  // namespace distspmd
