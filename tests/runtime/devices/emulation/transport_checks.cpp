// A transport moves tiles of the device as its table says; TRANSPORTS has one without each wait.
#include <cuda_runtime.h>

#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>
#include <vector>

#include <distspmd/api/execute.hpp>

TRANSPORTS

using Tile = std::vector<double>;
constexpr std::int64_t rows = 4, columns = 6;

__global__ void fill(double *tile, std::int64_t count) {
  const std::int64_t i = std::int64_t(blockIdx.x) * blockDim.x + threadIdx.x;
  if (i < count) tile[i] = double(100 + i);
}
__global__ void add_one(const double *from, double *to, std::int64_t count) {
  const std::int64_t i = std::int64_t(blockIdx.x) * blockDim.x + threadIdx.x;
  if (i < count) to[i] = from[i] + 1;
}

/// Stands for the engine: the plan brings the middle two columns of rows 1 and 2 into the first two.
void run(distspmd::Executable *, std::int64_t, const void *in, void *out) {
  for (std::int64_t row = 1; row < 3; ++row)
    for (std::int64_t column = 0; column < 2; ++column)
      static_cast<double *>(out)[row * columns + column] =
          static_cast<const double *>(in)[row * columns + 2 + column];
}
[[noreturn]] void end(void *, const char *message) {
  std::printf("ended: %s\n", message);
  std::exit(3);
}

template <class Transport>
void check(const char *name, bool in_place) {
  distspmd::Executable engine{run, nullptr, nullptr, nullptr};
  const std::int64_t table[] = {1, 0, 8,                         // a plan, of 8-byte items
                                2, columns, 1, 1, 8, 2, 2,       // read: one box of 2 x 2
                                2, columns, 1, 0,                // nothing is kept
                                2, columns, 1, 1, 6, 2, 2};      // written: another
  Transport transport(&engine, end, table);
  double *in = nullptr, *out = nullptr, *after = nullptr;
  std::int64_t count = rows * columns;
  for (double **tile : {&in, &out, &after}) cudaMalloc(tile, count * sizeof(double));
  cudaMemset(out, 0, count * sizeof(double));
  if (in_place) out = in;
  void *filling[] = {&in, &count}, *adding[] = {&out, &after, &count};
  cudaLaunchKernel((void *)fill, dim3(1), dim3(32), filling, 0, nullptr);
  static_cast<distspmd::Executable &>(transport).run(&transport, 0, in, out);
  cudaLaunchKernel((void *)add_one, dim3(1), dim3(32), adding, 0, nullptr);
  Tile found(count), wanted(count, 0.);
  cudaMemcpy(found.data(), after, count * sizeof(double), cudaMemcpyDeviceToHost);
  if (in_place)
    for (std::int64_t i = 0; i < count; ++i) wanted[i] = double(100 + i);
  for (std::int64_t row = 1; row < 3; ++row)
    for (std::int64_t column = 0; column < 2; ++column)
      wanted[row * columns + column] = double(100 + row * columns + 2 + column);
  for (double &value : wanted) value += 1;
  std::printf("%s%s: %s, %d bytes out, %d bytes in\n", name, in_place ? " in place" : "",
              found == wanted ? "right" : "wrong", int(transport.to_host), int(transport.to_device));
}

int main() {
  CHECKS
  std::printf("done\n");
}
