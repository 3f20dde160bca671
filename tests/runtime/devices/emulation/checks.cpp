// What the emulated device does, one check a name: prints what is wrong, and "done" at the end.
#include <cuda_runtime.h>

#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>
#include <thread>
#include <vector>

#define EXPECT(condition) \
  do {                    \
    if (!(condition)) std::printf("line %d: %s\n", __LINE__, #condition); \
  } while (false)

__global__ void add(const float *x, const float *y, float *z, int n) {
  const int i = int(blockIdx.x * blockDim.x + threadIdx.x);
  if (i < n) z[i] = x[i] + y[i];
}

__global__ void sum_of_block(const double *x, double *total) {
  __shared__ double parts[32];
  double mine = x[blockIdx.x * blockDim.x + threadIdx.x];
  for (int by = 16; by > 0; by /= 2) mine += __shfl_xor_sync(0xffffffffu, mine, by);
  if (threadIdx.x % 32 == 0) parts[threadIdx.x / 32] = mine;
  __syncthreads();
  if (threadIdx.x != 0) return;
  double all = 0;
  for (unsigned warp = 0; warp < blockDim.x / 32; ++warp) all += parts[warp];
  atomicAdd(total, all);
}

__global__ void half_waits(int *x) {
  if (threadIdx.x % 2) return;
  __syncthreads();
  *x = 1;
}

__global__ void where(int *x) {
  const unsigned block = blockIdx.x + gridDim.x * (blockIdx.y + gridDim.y * blockIdx.z);
  const unsigned thread = threadIdx.x + blockDim.x * (threadIdx.y + blockDim.y * threadIdx.z);
  x[block * blockDim.x * blockDim.y * blockDim.z + thread] += 1;
}

template <class T>
T *on_device(const std::vector<T> &values) {
  T *at = nullptr;
  EXPECT(cudaMalloc(&at, values.size() * sizeof(T)) == cudaSuccess);
  EXPECT(cudaMemcpy(at, values.data(), values.size() * sizeof(T), cudaMemcpyHostToDevice) == cudaSuccess);
  return at;
}
template <class T>
std::vector<T> on_host(const T *at, std::size_t count) {
  std::vector<T> values(count);
  EXPECT(cudaMemcpy(values.data(), at, count * sizeof(T), cudaMemcpyDeviceToHost) == cudaSuccess);
  return values;
}

void launch_add(const float *x, const float *y, float *z, int n, cudaStream_t stream) {
  void *arguments[] = {(void *)&x, (void *)&y, (void *)&z, (void *)&n};
  EXPECT(cudaLaunchKernel((void *)add, dim3((n + 63) / 64), dim3(64), arguments, 0, stream) == cudaSuccess);
}

void kernels() {
  std::vector<float> x(1000), y(1000);
  for (int i = 0; i < 1000; ++i) x[i] = float(i), y[i] = float(2 * i);
  float *a = on_device(x), *b = on_device(y), *c = on_device(x);
  launch_add(a, b, c, 1000, nullptr);
  const std::vector<float> z = on_host(c, 1000);
  for (int i = 0; i < 1000; ++i) EXPECT(z[i] == float(3 * i));
  std::vector<int> none(2 * 3 * 4 * 5 * 2 * 3, 0);
  int *counts = on_device(none);
  void *arguments[] = {&counts};
  EXPECT(cudaLaunchKernel((void *)where, dim3(2, 3, 4), dim3(5, 2, 3), arguments, 0, nullptr) == cudaSuccess);
  for (const int count : on_host(counts, none.size())) EXPECT(count == 1);
}

void barriers() {
  std::vector<double> x(4 * 128, 0.5);
  double *a = on_device(x), *total = on_device(std::vector<double>{0});
  void *arguments[] = {&a, &total};
  EXPECT(cudaLaunchKernel((void *)sum_of_block, dim3(4), dim3(128), arguments, 0, nullptr) == cudaSuccess);
  EXPECT(on_host(total, 1)[0] == 256);
}

void ended_threads() {
  int *x = on_device(std::vector<int>{0});
  void *arguments[] = {&x};
  cudaLaunchKernel((void *)half_waits, dim3(1), dim3(4), arguments, 0, nullptr);
  cudaDeviceSynchronize();
}

void limits() {
  int *x = on_device(std::vector<int>{0});
  void *arguments[] = {&x};
  for (const auto &[grid, block] : {std::pair{dim3(1, 70000), dim3(1)}, {dim3(1), dim3(2048)},
                                    {dim3(0), dim3(1)}, {dim3(1, 1, 65536), dim3(1)}}) {
    EXPECT(cudaLaunchKernel((void *)where, grid, block, arguments, 0, nullptr) == cudaErrorInvalidConfiguration);
    EXPECT(cudaPeekAtLastError() == cudaErrorInvalidConfiguration);
    EXPECT(cudaGetLastError() == cudaErrorInvalidConfiguration);
    EXPECT(cudaGetLastError() == cudaSuccess);
  }
  EXPECT(on_host(x, 1)[0] == 0);
  void *much = nullptr;
  std::size_t free = 0, total = 0;
  EXPECT(cudaMemGetInfo(&free, &total) == cudaSuccess && free < total);
  EXPECT(cudaMalloc(&much, total) == cudaErrorMemoryAllocation && much == nullptr);
  EXPECT(std::string(cudaGetErrorString(cudaGetLastError())) == "out of memory");
  char host = 0;
  EXPECT(cudaMemcpy(&host, x, 1, cudaMemcpyHostToDevice) == cudaErrorInvalidMemcpyDirection);
  EXPECT(cudaMemset(&host, 0, 1) == cudaErrorInvalidValue);
  EXPECT(cudaFree(&host) == cudaErrorInvalidValue);
}

void memory() {
  float *x = nullptr;
  EXPECT(cudaMalloc(&x, 100 * sizeof(float)) == cudaSuccess);
  for (const float value : on_host(x, 100)) EXPECT(value != value);
  cudaPointerAttributes device, host;
  EXPECT(cudaPointerGetAttributes(&device, x + 7) == cudaSuccess && device.type == cudaMemoryTypeDevice);
  EXPECT(cudaPointerGetAttributes(&host, &x) == cudaSuccess && host.type != cudaMemoryTypeDevice);
  std::vector<float> rows(20);
  for (int i = 0; i < 20; ++i) rows[i] = float(i);
  EXPECT(cudaMemcpy2D(x, 16, rows.data(), 20, 12, 4, cudaMemcpyHostToDevice) == cudaSuccess);
  const std::vector<float> found = on_host(x, 16);
  for (int i = 0; i < 16; ++i) EXPECT(i % 4 == 3 ? found[i] != found[i] : found[i] == float(i / 4 * 5 + i % 4));
  EXPECT(cudaFree(x) == cudaSuccess && cudaFree(nullptr) == cudaSuccess);
}

void touched_by_host() { *on_device(std::vector<int>{1}) = 2; }
void behind_the_end() {
  float *x = on_device(std::vector<float>(64));
  launch_add(x, x, x, 1100, nullptr);
  cudaDeviceSynchronize();
}
void after_free() {
  float *x = on_device(std::vector<float>(64));
  cudaFree(x);
  launch_add(x, x, x, 64, nullptr);
  cudaDeviceSynchronize();
}

/// Prints in which order operations ran that nobody waited for, and whether waits put them right.
void streams() {
  cudaStream_t one, two;
  EXPECT(cudaStreamCreateWithFlags(&one, cudaStreamNonBlocking) == cudaSuccess);
  EXPECT(cudaStreamCreateWithFlags(&two, cudaStreamNonBlocking) == cudaSuccess);
  const std::vector<float> ones(64, 1.f), zeros(64, 0.f);
  float *x = on_device(ones), *y = on_device(zeros), *z = on_device(zeros);
  launch_add(x, x, y, 64, one);
  launch_add(y, y, z, 64, two);  // without a wait for the first
  EXPECT(cudaStreamSynchronize(two) == cudaSuccess);
  std::printf("without a wait: %g\n", on_host(z, 1)[0]);
  EXPECT(cudaDeviceSynchronize() == cudaSuccess);

  cudaEvent_t event;
  EXPECT(cudaEventCreate(&event) == cudaSuccess);
  launch_add(y, y, x, 64, one);  // 4
  EXPECT(cudaEventRecord(event, one) == cudaSuccess);
  launch_add(x, x, y, 64, one);  // 8, which the event does not have
  EXPECT(cudaStreamWaitEvent(two, event) == cudaSuccess);
  launch_add(x, x, z, 64, two);
  EXPECT(cudaStreamSynchronize(two) == cudaSuccess);
  EXPECT(cudaEventQuery(event) == cudaSuccess && on_host(z, 1)[0] == 8);
  EXPECT(cudaStreamSynchronize(one) == cudaSuccess && on_host(y, 1)[0] == 8);

  float seen = -1;
  launch_add(x, x, y, 64, one);
  EXPECT(cudaMemcpyAsync(&seen, y, sizeof seen, cudaMemcpyDeviceToHost, one) == cudaSuccess);
  std::printf("before the wait: %g\n", seen);
  EXPECT(cudaStreamSynchronize(one) == cudaSuccess && seen == 8);

  cudaStream_t blocking;
  EXPECT(cudaStreamCreate(&blocking) == cudaSuccess);
  EXPECT(cudaMemsetAsync(x, 0, 256, blocking) == cudaSuccess);
  launch_add(x, x, z, 64, nullptr);  // the legacy stream waits for blocking ones
  EXPECT(cudaStreamSynchronize(nullptr) == cudaSuccess && on_host(z, 1)[0] == 0);
  for (cudaStream_t stream : {one, two, blocking}) EXPECT(cudaStreamDestroy(stream) == cudaSuccess);
  EXPECT(cudaStreamSynchronize(one) == cudaErrorInvalidResourceHandle);
  EXPECT(cudaEventDestroy(event) == cudaSuccess);
}

int main(int, char **arguments) {
  const std::string name = arguments[1];
  if (name == "kernels") kernels();
  if (name == "barriers") barriers();
  if (name == "ended_threads") ended_threads();
  if (name == "limits") limits();
  if (name == "memory") memory();
  if (name == "touched_by_host") touched_by_host();
  if (name == "behind_the_end") behind_the_end();
  if (name == "after_free") after_free();
  if (name == "streams") streams();
  std::printf("done\n");
}
