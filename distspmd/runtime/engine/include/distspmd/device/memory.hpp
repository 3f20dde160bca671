// Memory of a device that stays: where there is none, what is kept for others is freed first.
#pragma once

#include <cuda_runtime.h>

#include <cstddef>
#include <cstdint>

namespace distspmd {
inline namespace v1 {

/// Frees what is kept for who asks for as much again; how many allocations that were.
using MakeRoom = std::int64_t (*)();
inline MakeRoom make_room = nullptr;

inline cudaError_t allocate(void **at, std::size_t bytes) {
  const cudaError_t error = cudaMalloc(at, bytes);
  if (error != cudaErrorMemoryAllocation || !make_room || !make_room()) return error;
  cudaGetLastError();  // nothing is missing any more
  return cudaMalloc(at, bytes);
}

}  // namespace v1
}  // namespace distspmd
