// The CUDA runtime's interface on the emulated device: generated programs include this header in the
// place of NVIDIA's, and g++ compiles their text as it stands.
//
//   g++ -x c++ -std=c++20 -DWITH_CUDA -I<this folder> program.cu -l:<the emulated device>
//
// The device is one library (emulated_device.cpp), which all libraries of a process share. It is
// stricter than hardware: see streams.hpp and arena.hpp. What is missing here does not compile.
#pragma once

#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <functional>
#include <tuple>
#include <type_traits>
#include <utility>

#define DISTSPMD_EMULATED_DEVICE 1
#define CUDART_VERSION 13000
#define __global__
#define __device__
#define __host__
#define __constant__
#define __shared__ static  // blocks run one after another
#define __forceinline__ inline
#define __launch_bounds__(...)
#define __grid_constant__
#define __restrict__ __restrict

enum cudaError_t {
  cudaSuccess = 0,
  cudaErrorInvalidValue = 1,
  cudaErrorMemoryAllocation = 2,
  cudaErrorInvalidConfiguration = 9,
  cudaErrorInvalidMemcpyDirection = 21,
  cudaErrorInvalidDevice = 101,
  cudaErrorInvalidResourceHandle = 400,
  cudaErrorNotReady = 600,
  cudaErrorLaunchFailure = 719,
};
enum cudaMemcpyKind {
  cudaMemcpyHostToHost,
  cudaMemcpyHostToDevice,
  cudaMemcpyDeviceToHost,
  cudaMemcpyDeviceToDevice,
  cudaMemcpyDefault,
};
enum cudaMemoryType {
  cudaMemoryTypeUnregistered,
  cudaMemoryTypeHost,
  cudaMemoryTypeDevice,
  cudaMemoryTypeManaged,  // the device has none
};
enum {
  cudaStreamDefault = 0,
  cudaStreamNonBlocking = 1,
  cudaEventDefault = 0,
  cudaEventDisableTiming = 2,
  cudaHostAllocDefault = 0,
  cudaHostAllocMapped = 2,
};

enum cudaDeviceAttr { cudaDevAttrMultiProcessorCount = 16, cudaDevAttrMaxSharedMemoryPerBlockOptin = 97 };
enum cudaFuncAttribute { cudaFuncAttributeMaxDynamicSharedMemorySize = 8 };

struct dim3 {
  unsigned x, y, z;
  constexpr dim3(unsigned a = 1, unsigned b = 1, unsigned c = 1) : x(a), y(b), z(c) {}
};
struct uint3 {
  unsigned x, y, z;
};
struct cudaPointerAttributes {
  cudaMemoryType type;
  int device;
  void *devicePointer, *hostPointer;
};
struct cudaIpcMemHandle_t {
  char reserved[64];
};
enum { cudaIpcMemLazyEnablePeerAccess = 1 };
struct cudaDeviceProp {
  char name[256];
  std::size_t totalGlobalMem;
  int multiProcessorCount, major, minor;
};

/// Of the thread that runs; the device sets them.
extern uint3 threadIdx, blockIdx;
extern dim3 blockDim, gridDim;
constexpr int warpSize = 32;

namespace emulated {

struct Stream;
struct Event;

/// Queue a launch; an error if the device has no such grids or blocks.
cudaError_t enqueue(dim3 grid, dim3 block, Stream *stream, std::function<void()> thread);
/// The thread that runs waits for all others of its block (-1), or of its warp.
void wait(int warp);
/// The allocation that has an address; false for none. CUDA's driver says so, not its runtime.
bool allocation_of(const void *at, void **first, std::size_t *bytes);
/// The number of the thread that runs in its block, and memory of the block to exchange values in.
unsigned thread();
std::uint64_t *slots();

template <class... P, std::size_t... I>
cudaError_t launch(void (*kernel)(P...), dim3 grid, dim3 block, void **arguments, Stream *stream,
                   std::index_sequence<I...>) {
  // as on hardware, a launch copies the arguments of the kernel
  std::tuple<std::remove_cv_t<P>...> copied(*static_cast<std::remove_cv_t<P> *>(arguments[I])...);
  return enqueue(grid, block, stream, [kernel, copied] { std::apply(kernel, copied); });
}
template <class... P>
cudaError_t launch(void (*kernel)(P...), dim3 grid, dim3 block, void **arguments, std::size_t,
                   Stream *stream) {
  return launch(kernel, grid, block, arguments, stream, std::index_sequence_for<P...>{});
}

/// The lane whose value a lane gets, where `width` neighbours are a warp of their own, and itself where
/// the lane that it asks for is in another one.
inline unsigned within(unsigned lane, long from, int width) {
  const long begin = long(lane / unsigned(width)) * width;
  return from >= begin && from < begin + width ? unsigned(from) : lane;
}

/// What a lane of the warp passes to another one.
template <class T>
T shuffle(T value, unsigned from) {
  static_assert(sizeof(T) <= sizeof(std::uint64_t));
  const unsigned me = thread();
  std::memcpy(slots() + me, &value, sizeof value);
  wait(int(me / 32));
  T got;
  std::memcpy(&got, slots() + (me / 32 * 32 + from % 32), sizeof got);
  wait(int(me / 32));
  return got;
}

}  // namespace emulated

using cudaStream_t = emulated::Stream *;
using cudaEvent_t = emulated::Event *;
// The cast to void* is taken off again, so that the launch knows the kernel's parameters.
#define EMULATED_UNCAST(type)
#define cudaLaunchKernel(kernel, ...) emulated::launch(EMULATED_UNCAST kernel, __VA_ARGS__)
#define cudaStreamLegacy (reinterpret_cast<cudaStream_t>(1))
#define cudaStreamPerThread (reinterpret_cast<cudaStream_t>(2))

// -- on the device ---------------------------------------------------------------------------------
inline void __syncthreads() { emulated::wait(-1); }
inline void __syncwarp(unsigned = 0xffffffffu) { emulated::wait(int(emulated::thread() / 32)); }
inline void __threadfence() {}
template <class T>
T __shfl_sync(unsigned, T value, int lane, int width = 32) {
  const unsigned me = emulated::thread() % 32;
  return emulated::shuffle(value, me / unsigned(width) * unsigned(width) + unsigned(lane % width));
}
template <class T>
T __shfl_xor_sync(unsigned, T value, int mask, int width = 32) {
  const unsigned me = emulated::thread() % 32;
  return emulated::shuffle(value, emulated::within(me, long(me ^ unsigned(mask)), width));
}
template <class T>
T __shfl_down_sync(unsigned, T value, unsigned by, int width = 32) {
  const unsigned me = emulated::thread() % 32;
  return emulated::shuffle(value, emulated::within(me, long(me) + long(by), width));
}
template <class T>
T __shfl_up_sync(unsigned, T value, unsigned by, int width = 32) {
  const unsigned me = emulated::thread() % 32;
  return emulated::shuffle(value, emulated::within(me, long(me) - long(by), width));
}
template <class T>
T atomicExch(T *at, T value) {
  return std::exchange(*at, value);
}
template <class T>
T atomicAdd(T *at, T value) {
  return atomicExch(at, T(*at + value));
}
template <class T>
T atomicMax(T *at, T value) {
  return atomicExch(at, *at < value ? value : *at);
}
template <class T>
T atomicMin(T *at, T value) {
  return atomicExch(at, value < *at ? value : *at);
}
template <class T>
T atomicCAS(T *at, T compare, T value) {
  return atomicExch(at, *at == compare ? value : *at);
}

// -- on the host -----------------------------------------------------------------------------------
const char *cudaGetErrorName(cudaError_t error);
const char *cudaGetErrorString(cudaError_t error);
cudaError_t cudaGetLastError();
cudaError_t cudaPeekAtLastError();
cudaError_t cudaGetDeviceCount(int *count);
cudaError_t cudaSetDevice(int number);
cudaError_t cudaGetDevice(int *number);
cudaError_t cudaGetDeviceProperties(cudaDeviceProp *properties, int number);
cudaError_t cudaDeviceGetAttribute(int *value, cudaDeviceAttr attribute, int number);
cudaError_t cudaFuncSetAttribute(const void *kernel, cudaFuncAttribute attribute, int value);
cudaError_t cudaMemGetInfo(std::size_t *free, std::size_t *total);

cudaError_t cudaMalloc(void **to, std::size_t bytes);
cudaError_t cudaFree(void *at);
cudaError_t cudaIpcGetMemHandle(cudaIpcMemHandle_t *to, void *at);
cudaError_t cudaIpcOpenMemHandle(void **to, cudaIpcMemHandle_t handle, unsigned flags);
cudaError_t cudaIpcCloseMemHandle(void *at);
cudaError_t cudaMallocAsync(void **to, std::size_t bytes, cudaStream_t stream);
cudaError_t cudaFreeAsync(void *at, cudaStream_t stream);
cudaError_t cudaMallocHost(void **to, std::size_t bytes);
cudaError_t cudaHostAlloc(void **to, std::size_t bytes, unsigned flags);
cudaError_t cudaFreeHost(void *at);
cudaError_t cudaPointerGetAttributes(cudaPointerAttributes *attributes, const void *at);
template <class T>
cudaError_t cudaMalloc(T **to, std::size_t bytes) {
  return cudaMalloc(reinterpret_cast<void **>(to), bytes);
}
template <class T>
cudaError_t cudaMallocHost(T **to, std::size_t bytes) {
  return cudaMallocHost(reinterpret_cast<void **>(to), bytes);
}

cudaError_t cudaMemcpy(void *to, const void *from, std::size_t bytes, cudaMemcpyKind kind);
cudaError_t cudaMemcpyAsync(void *to, const void *from, std::size_t bytes, cudaMemcpyKind kind,
                            cudaStream_t stream = nullptr);
cudaError_t cudaMemcpy2D(void *to, std::size_t to_pitch, const void *from, std::size_t from_pitch,
                         std::size_t width, std::size_t height, cudaMemcpyKind kind);
cudaError_t cudaMemcpy2DAsync(void *to, std::size_t to_pitch, const void *from,
                              std::size_t from_pitch, std::size_t width, std::size_t height,
                              cudaMemcpyKind kind, cudaStream_t stream = nullptr);
cudaError_t cudaMemset(void *to, int value, std::size_t bytes);
cudaError_t cudaMemsetAsync(void *to, int value, std::size_t bytes, cudaStream_t stream = nullptr);

cudaError_t cudaDeviceSynchronize();
cudaError_t cudaStreamCreate(cudaStream_t *to);
cudaError_t cudaStreamCreateWithFlags(cudaStream_t *to, unsigned flags);
cudaError_t cudaStreamDestroy(cudaStream_t stream);
cudaError_t cudaStreamSynchronize(cudaStream_t stream);
cudaError_t cudaStreamWaitEvent(cudaStream_t stream, cudaEvent_t event, unsigned flags = 0);
cudaError_t cudaEventCreate(cudaEvent_t *to);
cudaError_t cudaEventCreateWithFlags(cudaEvent_t *to, unsigned flags);
cudaError_t cudaEventDestroy(cudaEvent_t event);
cudaError_t cudaEventRecord(cudaEvent_t event, cudaStream_t stream = nullptr);
cudaError_t cudaEventSynchronize(cudaEvent_t event);
cudaError_t cudaEventQuery(cudaEvent_t event);
