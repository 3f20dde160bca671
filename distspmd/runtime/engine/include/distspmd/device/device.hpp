// The library of a kind of device: its memory, copies to and from it, and the transport of tiles.
//
// distspmd/runtime/devices/kinds.py compiles it once for each kind; it is text for CUDA's compiler, and for
// g++ with the header of the emulated device.
#pragma once

#include <cuda_runtime.h>

#include <cstdint>
#include <string>

#include <distspmd/device/cublas.hpp>
#include <distspmd/device/handed_out.hpp>
#include <distspmd/device/memory.hpp>
#include <distspmd/device/reduce.hpp>
#include <distspmd/device/transport.hpp>
#include <distspmd/device/windows.hpp>

namespace distspmd {
inline namespace v1 {

/// An error stays the device's last one; whoever calls the program asks for it.
void copy_window(const void *from, void *to, std::int64_t itemsize, std::int64_t dimensions,
                 const std::int64_t *extents, const std::int64_t *strides) {
  for (std::int64_t d = 0; d < dimensions; ++d)
    if (extents[d] <= 0) return;
  while (dimensions > 0 && extents[0] == 1) ++extents, ++strides, --dimensions;
  const char *source = static_cast<const char *>(from);
  char *target = static_cast<char *>(to);
  if (dimensions > 2 || (dimensions == 2 && strides[1] != 1)) {
    for (std::int64_t n = 0; n < extents[0]; ++n) {
      const std::int64_t at = n * strides[0] * itemsize;
      copy_window(source + at, target + at, itemsize, dimensions - 1, extents + 1, strides + 1);
    }
    return;
  }
  // rows of neighbours; in one dimension, of one element each
  const bool rows = dimensions == 2 || (dimensions == 1 && strides[0] != 1);
  const std::int64_t count = rows ? extents[0] : 1;
  const std::int64_t own = dimensions == 0 ? 1 : extents[dimensions - 1];
  const std::int64_t width = (dimensions == 1 && rows ? 1 : own) * itemsize;
  const std::int64_t pitch = rows ? strides[0] * itemsize : width;
  cudaMemcpy2D(target, std::size_t(pitch), source, std::size_t(pitch), std::size_t(width),
               std::size_t(count), cudaMemcpyDefault);  // on the stream of the kernels; it waits
}

namespace {
void *scratch = nullptr;
}
void *reduction_scratch() { return scratch; }

}  // namespace v1
}  // namespace distspmd

#define DISTSPMD_DEVICE_EXPORT extern "C" __attribute__((used, visibility("default")))

/// Null where the device has not so much memory.
DISTSPMD_DEVICE_EXPORT void *distspmd_device_allocate(std::int64_t bytes) {
  void *at = nullptr;
  return distspmd::allocate(&at, std::size_t(bytes)) == cudaSuccess ? at : nullptr;
}
/// What frees memory that is kept for others, where an allocation finds none; see allocate.
DISTSPMD_DEVICE_EXPORT void distspmd_device_make_room_by(distspmd::MakeRoom frees) {
  distspmd::make_room = frees;
}
DISTSPMD_DEVICE_EXPORT void distspmd_device_free(void *at) { cudaFree(at); }

/// Wait for whoever may still use memory that somebody else gets, as cudaFree does.
DISTSPMD_DEVICE_EXPORT void distspmd_device_give_up(void *at, std::int64_t bytes) {
  cudaDeviceSynchronize();  // for streams of others; an error stays the device's last one
#ifdef DISTSPMD_EMULATED_DEVICE  // as memory that nobody wrote
  cudaMemsetAsync(at, 0xFF, std::size_t(bytes), nullptr);
  cudaStreamSynchronize(nullptr);
#endif
  (void)at, (void)bytes;
}
/// Copy between any memories, and wait for it.
DISTSPMD_DEVICE_EXPORT int distspmd_device_copy(void *to, const void *from, std::int64_t bytes) {
  return int(cudaMemcpy(to, from, std::size_t(bytes), cudaMemcpyDefault));
}
/// Wait for all that the device was told to do; its last error.
DISTSPMD_DEVICE_EXPORT int distspmd_device_wait() {
  const cudaError_t error = cudaDeviceSynchronize();
  const cudaError_t last = cudaGetLastError();
  return int(error != cudaSuccess ? error : last);
}
/// Whether an address lies in the memory of the device of this process: 1; of another device: 2; 0 of
/// the host, or unknown to the device.
DISTSPMD_DEVICE_EXPORT int distspmd_device_has(const void *at) {
  cudaPointerAttributes found;
  int own = 0;
  if (cudaGetDevice(&own) != cudaSuccess || cudaPointerGetAttributes(&found, at) != cudaSuccess) {
    cudaGetLastError();  // else whoever asks for the last error would find this one
    return 0;
  }
  if (found.type != cudaMemoryTypeDevice && found.type != cudaMemoryTypeManaged) return 0;
  return found.device == own || found.type == cudaMemoryTypeManaged ? 1 : 2;
}
/// Let one stream begin what comes into it from now on when another has done what it has so far.
DISTSPMD_DEVICE_EXPORT int distspmd_device_order(void *after, void *before) {
  cudaEvent_t event;
  cudaError_t error = cudaEventCreateWithFlags(&event, cudaEventDisableTiming);
  if (error == cudaSuccess) {
    error = cudaEventRecord(event, static_cast<cudaStream_t>(before));
    if (error == cudaSuccess) error = cudaStreamWaitEvent(static_cast<cudaStream_t>(after), event, 0);
    cudaEventDestroy(event);
  }
  cudaGetLastError();  // whoever called this raises the error
  return int(error);
}
/// Queue a copy between any memories on a stream; memory of the host has to stay until it is done.
DISTSPMD_DEVICE_EXPORT int distspmd_device_copy_on(void *stream, void *to, const void *from,
                                                   std::int64_t bytes) {
  const cudaError_t error = cudaMemcpyAsync(to, from, std::size_t(bytes), cudaMemcpyDefault,
                                            static_cast<cudaStream_t>(stream));
  cudaGetLastError();
  return int(error);
}
/// A stream that the legacy default one does not wait for; null where there is none.
DISTSPMD_DEVICE_EXPORT void *distspmd_device_stream_create() {
  cudaStream_t made = nullptr;
  return cudaStreamCreateWithFlags(&made, cudaStreamNonBlocking) == cudaSuccess ? made : nullptr;
}
DISTSPMD_DEVICE_EXPORT void distspmd_device_stream_destroy(void *stream) {
  cudaStreamDestroy(static_cast<cudaStream_t>(stream));
}
DISTSPMD_DEVICE_EXPORT int distspmd_device_stream_wait(void *stream) {
  return int(cudaStreamSynchronize(static_cast<cudaStream_t>(stream)));
}
/// Work on one of the devices that this process sees, by the number of the process on its node.
DISTSPMD_DEVICE_EXPORT int distspmd_device_use(int process) {
  int count = 0;
  const cudaError_t error = cudaGetDeviceCount(&count);
  if (error != cudaSuccess) return int(error);
  return count ? int(cudaSetDevice(process % count)) : -1;
}
/// The number of the device of this process, among those that it sees.
DISTSPMD_DEVICE_EXPORT int distspmd_device_number() {
  int own = 0;
  return cudaGetDevice(&own) == cudaSuccess ? own : -1;
}
/// Bytes of the memory of the device of this process, used ones too.
DISTSPMD_DEVICE_EXPORT std::int64_t distspmd_device_bytes() {
  std::size_t unused = 0, all = 0;
  return cudaMemGetInfo(&unused, &all) == cudaSuccess ? std::int64_t(all) : 0;
}
/// What others call when they no longer need an array that DLPack handed to them, or its capsule.
DISTSPMD_DEVICE_EXPORT void distspmd_device_let_go(void *structure) {
  distspmd::HandedOut::all().note(structure);
}
DISTSPMD_DEVICE_EXPORT void distspmd_device_drop_capsule(void *capsule) {
  distspmd::drop_capsule(capsule);
}
DISTSPMD_DEVICE_EXPORT void *distspmd_device_next_let_go() {
  return distspmd::HandedOut::all().next();
}
DISTSPMD_DEVICE_EXPORT const char *distspmd_device_error(int error) {
  return cudaGetErrorString(cudaError_t(error));
}

/// Have memory for the parts of reductions; it stays until the process ends.
DISTSPMD_DEVICE_EXPORT int distspmd_device_prepare_reductions() {
  if (distspmd::scratch) return 0;
  return int(distspmd::allocate(&distspmd::scratch, 16 * std::size_t(distspmd::ReductionShape::parts)));
}
/// Load a library of products; what failed, null if nothing did.
DISTSPMD_DEVICE_EXPORT const char *distspmd_products_load(const char *path) {
  static std::string said;
  said = distspmd::Cublas::of_process().load(path);
  return said.empty() ? nullptr : said.c_str();
}
/// What failed of the products since somebody asked; null if nothing did.
DISTSPMD_DEVICE_EXPORT const char *distspmd_products_error() {
  static std::string said;
  said = distspmd::Cublas::of_process().error();
  return said.empty() ? nullptr : said.c_str();
}

DISTSPMD_DEVICE_EXPORT void *distspmd_transport_create(void *engine,
                                                       distspmd::Transport::End end,
                                                       const std::int64_t *words) {
  return new distspmd::Transport(engine, end, words);
}
DISTSPMD_DEVICE_EXPORT void distspmd_transport_destroy(void *transport) {
  delete static_cast<distspmd::Transport *>(transport);
}
/// The name of its next plan, or of its next fetch behind all plans, for messages about errors.
DISTSPMD_DEVICE_EXPORT void distspmd_transport_name(void *transport, const char *name) {
  static_cast<distspmd::Transport *>(transport)->name(name);
}
/// Run a plan on tiles that lie in the memory of the device or of the host.
DISTSPMD_DEVICE_EXPORT void distspmd_transport_run(void *transport, std::int64_t plan,
                                                   const void *in, void *out) {
  auto *found = static_cast<distspmd::Transport *>(transport);
  found->run(found, plan, in, out);
}
/// Bytes that it has copied from the device to the host, and back.
DISTSPMD_DEVICE_EXPORT void distspmd_transport_bytes(void *transport, std::int64_t *both) {
  const auto *found = static_cast<distspmd::Transport *>(transport);
  both[0] = found->copied(false);
  both[1] = found->copied(true);
}
/// Let ranks pull out of the memory of each other's devices; see Pulls.
DISTSPMD_DEVICE_EXPORT void distspmd_transport_use_pulls(void *transport, distspmd::Pulls::Meet meet,
                                                         distspmd::Pulls::Count count,
                                                         const std::int64_t *words) {
  static_cast<distspmd::Transport *>(transport)->use_pulls(meet, count, words);
}
/// Memory that may be freed after the call; null: there is none any more.
DISTSPMD_DEVICE_EXPORT void distspmd_transport_lend(void *transport, const void *at) {
  distspmd::Pulls *const pulls = static_cast<distspmd::Transport *>(transport)->pulls();
  if (pulls && at) pulls->lend(at);
  if (pulls && !at) pulls->return_lent();
}
/// Let ranks send packed buffers; see Messages.
DISTSPMD_DEVICE_EXPORT void distspmd_transport_use_messages(
    void *transport, distspmd::Pulls::Meet meet, distspmd::Pulls::Count count,
    const distspmd::ByMpi *mpi, void *group, int pinned, const std::int64_t *words) {
  static_cast<distspmd::Transport *>(transport)->use_messages(meet, count, *mpi, group, pinned, words);
}
/// Calls of plans so far whose packed messages lay in pinned memory of the host, or in that of devices.
DISTSPMD_DEVICE_EXPORT std::int64_t distspmd_transport_messages(void *transport, int pinned) {
  return static_cast<distspmd::Transport *>(transport)->calls(pinned);
}
/// Load the library of collectives; what failed, null if nothing did.
DISTSPMD_DEVICE_EXPORT const char *distspmd_nccl_load(const char *path) {
  static std::string said;
  said = distspmd::Nccl::of_process().load(path);
  return said.empty() ? nullptr : said.c_str();
}
/// The 128 bytes by which ranks find each other; likewise.
DISTSPMD_DEVICE_EXPORT const char *distspmd_nccl_make(void *id) {
  static std::string said;
  said = distspmd::Nccl::of_process().make(static_cast<distspmd::Nccl::Id *>(id));
  return said.empty() ? nullptr : said.c_str();
}
/// Join a group of ranks, all of which call it; likewise.
DISTSPMD_DEVICE_EXPORT const char *distspmd_nccl_join(void **group, const void *id, int ranks, int rank) {
  static std::string said;
  const auto *known = static_cast<const distspmd::Nccl::Id *>(id);
  said = distspmd::Nccl::of_process().join(group, *known, ranks, rank);
  return said.empty() ? nullptr : said.c_str();
}
DISTSPMD_DEVICE_EXPORT void distspmd_nccl_leave(void *group) {
  distspmd::Nccl::of_process().leave(group);
}
/// Calls that were pulls so far.
DISTSPMD_DEVICE_EXPORT std::int64_t distspmd_transport_pulls(void *transport) {
  const distspmd::Pulls *const pulls = static_cast<distspmd::Transport *>(transport)->pulls();
  return pulls ? pulls->calls : 0;
}
/// The 64 bytes by which another process opens an allocation; an error's number, or 0.
DISTSPMD_DEVICE_EXPORT int distspmd_device_export(void *at, void *handle) {
  const cudaError_t error = cudaIpcGetMemHandle(static_cast<cudaIpcMemHandle_t *>(handle), at);
  cudaGetLastError();  // who asks has the answer
  return int(error);
}
/// Open what another process has exported, and close it again; an error's number, or 0.
DISTSPMD_DEVICE_EXPORT int distspmd_device_try_open(const void *handle) {
  void *at = nullptr;
  cudaError_t error = cudaIpcOpenMemHandle(&at, *static_cast<const cudaIpcMemHandle_t *>(handle),
                                           cudaIpcMemLazyEnablePeerAccess);
  if (error == cudaSuccess) error = cudaIpcCloseMemHandle(at);
  cudaGetLastError();
  return int(error);
}
