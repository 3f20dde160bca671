// The emulated device: one for all libraries of a process that are linked with it.
//
// It runs on the thread that calls it, so that a kernel's threads have an order, and shows no races
// between them; DISTSPMD_EMULATED_BYTES says how much memory it has.
#include "cuda_runtime.h"

#include <cstdio>
#include <cstring>
#include <string>

#include "arena.hpp"
#include "blocks.hpp"
#include "failures.hpp"
#include "streams.hpp"

uint3 threadIdx, blockIdx;
dim3 blockDim, gridDim;

namespace emulated {
namespace {

struct Device {
  Arena arena;
  Streams streams{arena};
  Block block;
  Failures failures;
  cudaError_t error = cudaSuccess;
};

/// It is never destroyed: libraries may still free their memory when the process ends.
Device &device() {
  static Device &one = *new Device;
  return one;
}

/// An error is kept until somebody asks for the last one.
cudaError_t told(cudaError_t error) {
  if (error != cudaSuccess) device().error = error;
  return error;
}

/// Of a call that would succeed: after a kernel that faulted none does.
cudaError_t done() { return device().failures.broken ? told(cudaErrorLaunchFailure) : cudaSuccess; }

/// The error of a call that is asked to fail, else none.
cudaError_t asked(const char *kind, cudaError_t error) {
  return device().failures.now(kind) ? told(error) : done();
}

bool fits_direction(const void *to, const void *from, cudaMemcpyKind kind) {
  if (kind == cudaMemcpyDefault) return true;
  const bool into = kind == cudaMemcpyHostToDevice || kind == cudaMemcpyDeviceToDevice;
  const bool out = kind == cudaMemcpyDeviceToHost || kind == cudaMemcpyDeviceToDevice;
  return device().arena.has(to) == into && device().arena.has(from) == out;
}

cudaError_t push(Stream *handle, std::function<void()> operation) {
  Stream *stream = device().streams.of(handle);
  if (!stream) return told(cudaErrorInvalidResourceHandle);
  device().streams.push(*stream, std::move(operation));
  return done();
}

cudaError_t finish(Stream *handle) {
  Stream *stream = device().streams.of(handle);
  if (!stream) return told(cudaErrorInvalidResourceHandle);
  stream->run_all();
  return done();
}

}  // namespace

cudaError_t enqueue(dim3 grid, dim3 block, Stream *stream, std::function<void()> thread) {
  const unsigned long long threads = 1ull * block.x * block.y * block.z;
  const bool grid_fits = grid.x && grid.x <= 0x7fffffffu && grid.y && grid.y <= 65535 && grid.z &&
                         grid.z <= 65535;
  if (!grid_fits || !threads || threads > 1024 || block.z > 64)
    return told(cudaErrorInvalidConfiguration);
  const cudaError_t error = asked("launch", cudaErrorInvalidConfiguration);
  if (error != cudaSuccess) return error;
  const bool faults = device().failures.now("kernel");
  return push(stream, [=] {
    if (faults) device().failures.broken = true;
    if (device().failures.broken) return;
    gridDim = grid;
    blockDim = block;
    for (unsigned z = 0; z < grid.z; ++z)
      for (unsigned y = 0; y < grid.y; ++y)
        for (unsigned x = 0; x < grid.x; ++x) {
          blockIdx = {x, y, z};
          device().block.run(thread, block);
        }
  });
}

bool allocation_of(const void *at, void **first, std::size_t *bytes) {
  Arena::Place place;
  return device().arena.find(at, first, bytes, &place);
}

void wait(int warp) { device().block.wait(warp); }
unsigned thread() { return device().block.thread(); }
std::uint64_t *slots() { return device().block.slots; }

}  // namespace emulated

using emulated::device;
using emulated::told;

const char *cudaGetErrorName(cudaError_t error) {
  switch (error) {
    case cudaSuccess: return "cudaSuccess";
    case cudaErrorInvalidValue: return "cudaErrorInvalidValue";
    case cudaErrorMemoryAllocation: return "cudaErrorMemoryAllocation";
    case cudaErrorInvalidConfiguration: return "cudaErrorInvalidConfiguration";
    case cudaErrorInvalidMemcpyDirection: return "cudaErrorInvalidMemcpyDirection";
    case cudaErrorInvalidDevice: return "cudaErrorInvalidDevice";
    case cudaErrorInvalidResourceHandle: return "cudaErrorInvalidResourceHandle";
    case cudaErrorNotReady: return "cudaErrorNotReady";
    case cudaErrorLaunchFailure: return "cudaErrorLaunchFailure";
  }
  return "an unknown error";
}

const char *cudaGetErrorString(cudaError_t error) {
  switch (error) {
    case cudaSuccess: return "no error";
    case cudaErrorInvalidValue: return "invalid argument";
    case cudaErrorMemoryAllocation: return "out of memory";
    case cudaErrorInvalidConfiguration: return "invalid configuration argument";
    case cudaErrorInvalidMemcpyDirection: return "invalid copy direction for memcpy";
    case cudaErrorInvalidDevice: return "invalid device ordinal";
    case cudaErrorInvalidResourceHandle: return "invalid resource handle";
    case cudaErrorNotReady: return "device not ready";
    case cudaErrorLaunchFailure: return "unspecified launch failure";
  }
  return "an unknown error";
}

cudaError_t cudaGetLastError() { return std::exchange(device().error, cudaSuccess); }
cudaError_t cudaPeekAtLastError() { return device().error; }
cudaError_t cudaGetDeviceCount(int *count) {
  *count = 1;
  return cudaSuccess;
}
cudaError_t cudaSetDevice(int number) {
  return number == 0 ? cudaSuccess : told(cudaErrorInvalidDevice);
}
cudaError_t cudaGetDevice(int *number) {
  *number = 0;
  return cudaSuccess;
}
cudaError_t cudaGetDeviceProperties(cudaDeviceProp *properties, int number) {
  if (number != 0) return told(cudaErrorInvalidDevice);
  *properties = {"emulated", device().arena.limit(), 4, 9, 0};
  return cudaSuccess;
}
cudaError_t cudaDeviceGetAttribute(int *value, cudaDeviceAttr attribute, int number) {
  *value = attribute == cudaDevAttrMultiProcessorCount ? 4 : 48 << 10;
  return number == 0 ? cudaSuccess : told(cudaErrorInvalidDevice);
}
cudaError_t cudaFuncSetAttribute(const void *, cudaFuncAttribute, int value) {
  return value <= 48 << 10 ? cudaSuccess : told(cudaErrorInvalidValue);
}
cudaError_t cudaMemGetInfo(std::size_t *free, std::size_t *total) {
  *free = device().arena.free_bytes();
  *total = device().arena.limit();
  return cudaSuccess;
}

cudaError_t cudaMalloc(void **to, std::size_t bytes) {
  *to = nullptr;
  const cudaError_t error = emulated::asked("allocation", cudaErrorMemoryAllocation);
  if (error != cudaSuccess) return error;
  *to = bytes ? device().arena.allocate(bytes) : nullptr;
  return *to || !bytes ? cudaSuccess : told(cudaErrorMemoryAllocation);
}
cudaError_t cudaFree(void *at) {
  device().streams.run_all();
  return !at || device().arena.release(at) ? cudaSuccess : told(cudaErrorInvalidValue);
}
cudaError_t cudaIpcGetMemHandle(cudaIpcMemHandle_t *to, void *at) {
  void *first;
  std::size_t bytes;
  emulated::Arena::Place place;
  static_assert(sizeof place <= sizeof *to);
  if (!device().arena.find(at, &first, &bytes, &place)) return told(cudaErrorInvalidValue);
  *to = {};
  std::memcpy(to, &place, sizeof place);
  return cudaSuccess;
}
cudaError_t cudaIpcOpenMemHandle(void **to, cudaIpcMemHandle_t handle, unsigned) {
  emulated::Arena::Place place;
  std::memcpy(&place, &handle, sizeof place);
  const bool own = place.process == getpid();  // as CUDA: a process opens none of its own
  *to = own ? nullptr : device().arena.open(place);
  return *to ? cudaSuccess : told(cudaErrorInvalidResourceHandle);
}
cudaError_t cudaIpcCloseMemHandle(void *at) {
  device().streams.run_all();
  return device().arena.release(at, true) ? cudaSuccess : told(cudaErrorInvalidValue);
}
cudaError_t cudaMallocAsync(void **to, std::size_t bytes, cudaStream_t) {
  return cudaMalloc(to, bytes);
}
cudaError_t cudaFreeAsync(void *at, cudaStream_t stream) {
  return emulated::push(stream, [at] {
    if (at && !device().arena.release(at)) told(cudaErrorInvalidValue);
  });
}
cudaError_t cudaMallocHost(void **to, std::size_t bytes) {
  *to = nullptr;
  const cudaError_t error = emulated::asked("allocation", cudaErrorMemoryAllocation);
  if (error != cudaSuccess) return error;
  const std::size_t whole = (bytes + 4095) / 4096 * 4096;
  *to = aligned_alloc(4096, whole);
  if (*to) std::memset(*to, 0xFF, whole);  // as memory of the device that nobody wrote
  return *to ? cudaSuccess : told(cudaErrorMemoryAllocation);
}
cudaError_t cudaHostAlloc(void **to, std::size_t bytes, unsigned) {
  return cudaMallocHost(to, bytes);
}
cudaError_t cudaFreeHost(void *at) {
  device().streams.run_all();
  free(at);
  return cudaSuccess;
}
cudaError_t cudaPointerGetAttributes(cudaPointerAttributes *attributes, const void *at) {
  void *const pointer = const_cast<void *>(at);
  const bool own = device().arena.has(at);
  *attributes = {own ? cudaMemoryTypeDevice : cudaMemoryTypeUnregistered, own ? 0 : -1,
                 own ? pointer : nullptr, own ? nullptr : pointer};
  return cudaSuccess;
}

cudaError_t cudaMemcpy2DAsync(void *to, std::size_t to_pitch, const void *from,
                              std::size_t from_pitch, std::size_t width, std::size_t height,
                              cudaMemcpyKind kind, cudaStream_t stream) {
  if (width > to_pitch || width > from_pitch) return told(cudaErrorInvalidValue);
  if (width && height && !emulated::fits_direction(to, from, kind))
    return told(cudaErrorInvalidMemcpyDirection);
  const cudaError_t error = emulated::asked("copy", cudaErrorInvalidValue);
  if (error != cudaSuccess) return error;
  return emulated::push(stream, [=] {
    for (std::size_t row = 0; row < height; ++row)
      std::memcpy(static_cast<char *>(to) + row * to_pitch,
                  static_cast<const char *>(from) + row * from_pitch, width);
  });
}
cudaError_t cudaMemcpy2D(void *to, std::size_t to_pitch, const void *from, std::size_t from_pitch,
                         std::size_t width, std::size_t height, cudaMemcpyKind kind) {
  const cudaError_t error =
      cudaMemcpy2DAsync(to, to_pitch, from, from_pitch, width, height, kind, nullptr);
  return error == cudaSuccess ? cudaStreamSynchronize(nullptr) : error;
}
cudaError_t cudaMemcpyAsync(void *to, const void *from, std::size_t bytes, cudaMemcpyKind kind,
                            cudaStream_t stream) {
  return cudaMemcpy2DAsync(to, bytes, from, bytes, bytes, 1, kind, stream);
}
cudaError_t cudaMemcpy(void *to, const void *from, std::size_t bytes, cudaMemcpyKind kind) {
  return cudaMemcpy2D(to, bytes, from, bytes, bytes, 1, kind);
}
cudaError_t cudaMemsetAsync(void *to, int value, std::size_t bytes, cudaStream_t stream) {
  if (bytes && !device().arena.has(to)) return told(cudaErrorInvalidValue);
  const cudaError_t error = emulated::asked("copy", cudaErrorInvalidValue);
  if (error != cudaSuccess) return error;
  return emulated::push(stream, [=] { std::memset(to, value, bytes); });
}
cudaError_t cudaMemset(void *to, int value, std::size_t bytes) {
  return cudaMemsetAsync(to, value, bytes, nullptr);
}

cudaError_t cudaDeviceSynchronize() {
  device().streams.run_all();
  return emulated::done();
}
cudaError_t cudaStreamCreateWithFlags(cudaStream_t *to, unsigned flags) {
  *to = device().streams.create(!(flags & cudaStreamNonBlocking));
  return cudaSuccess;
}
cudaError_t cudaStreamCreate(cudaStream_t *to) { return cudaStreamCreateWithFlags(to, 0); }
cudaError_t cudaStreamDestroy(cudaStream_t stream) {
  if (!stream || !device().streams.of(stream)) return told(cudaErrorInvalidResourceHandle);
  device().streams.destroy(stream);
  return cudaSuccess;
}
cudaError_t cudaStreamSynchronize(cudaStream_t stream) { return emulated::finish(stream); }
cudaError_t cudaStreamWaitEvent(cudaStream_t handle, cudaEvent_t event, unsigned) {
  emulated::Stream *stream = device().streams.of(handle);
  if (!stream) return told(cudaErrorInvalidResourceHandle);
  if (event->stream) device().streams.wait_for(*stream, *event->stream, event->upto);
  return cudaSuccess;
}
cudaError_t cudaEventCreateWithFlags(cudaEvent_t *to, unsigned) {
  *to = new emulated::Event;
  return cudaSuccess;
}
cudaError_t cudaEventCreate(cudaEvent_t *to) { return cudaEventCreateWithFlags(to, 0); }
cudaError_t cudaEventDestroy(cudaEvent_t event) {
  delete event;
  return cudaSuccess;
}
cudaError_t cudaEventRecord(cudaEvent_t event, cudaStream_t handle) {
  emulated::Stream *stream = device().streams.of(handle);
  if (!stream) return told(cudaErrorInvalidResourceHandle);
  const cudaError_t error = emulated::asked("event", cudaErrorInvalidResourceHandle);
  if (error != cudaSuccess) return error;
  *event = {stream, stream->last};
  return cudaSuccess;
}
cudaError_t cudaEventSynchronize(cudaEvent_t event) {
  if (event->stream) event->stream->run_until(event->upto);
  return emulated::done();
}
cudaError_t cudaEventQuery(cudaEvent_t event) {
  return !event->stream || event->stream->done >= event->upto ? cudaSuccess : cudaErrorNotReady;
}

/// Let a call fail, as DISTSPMD_EMULATED_FAILS does, counted from now.
extern "C" __attribute__((used, visibility("default"))) void distspmd_emulated_fail(const char *text) {
  device().failures.arm(text);
}
