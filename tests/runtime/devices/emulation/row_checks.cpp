// Threads that share rows: each gets the whole of its row, for each number of threads, and several times.
// The test puts in the header as it is, and without each of its barriers; CHECKS calls each.
#include <cuda_runtime.h>

#include <cstdio>
#include <vector>

#include <distspmd/device/elements.hpp>

VARIANTS

struct Join {  // neither associative nor commutative: an order that differs is seen
  __device__ void operator()(std::int64_t &a, std::int64_t b) const {
    a = std::int64_t(31 * std::uint64_t(a) + 7 * std::uint64_t(b));
  }
};

#define CHECK(SPACE)                                                                               \
  template <int wide>                                                                              \
  __global__ void SPACE##_kernel(std::int64_t *out) {                                              \
    for (int n = 0; n < 3; ++n)                                                                    \
      out[3 * threadIdx.x + n] =                                                                   \
          SPACE::combine_row<wide>(std::int64_t(threadIdx.x) * (n + 1) % 1000, Join());            \
  }                                                                                                \
  template <int wide>                                                                              \
  int SPACE##_wrong() {                                                                            \
    const unsigned threads = SPACE::threads_of_rows(wide);                                         \
    std::vector<std::int64_t> found(3 * threads);                                                  \
    std::int64_t *out;                                                                             \
    cudaMalloc((void **)&out, found.size() * sizeof(std::int64_t));                                \
    void *arguments[] = {(void *)&out};                                                            \
    cudaLaunchKernel((void *)SPACE##_kernel<wide>, dim3(1), dim3(threads), arguments, 0, nullptr); \
    cudaMemcpy(found.data(), out, found.size() * sizeof(std::int64_t), cudaMemcpyDeviceToHost);    \
    int wrong = 0;                                                                                 \
    for (unsigned t = 0; t < threads; ++t)                                                         \
      for (int n = 0; n < 3; ++n) wrong += found[3 * t + n] != expected(t / wide * wide, wide, n); \
    return wrong;                                                                                  \
  }                                                                                                \
  void SPACE##_check(const char *name) {                                                           \
    const int wrong = SPACE##_wrong<1>() + SPACE##_wrong<2>() + SPACE##_wrong<16>() +              \
                      SPACE##_wrong<32>() + SPACE##_wrong<64>() + SPACE##_wrong<256>() +           \
                      SPACE##_wrong<1024>();                                                       \
    std::printf("%s: %s\n", name, wrong ? "wrong" : "right");                                      \
  }

/// The same by one thread: pairs of a warp first, then the warps one after another.
std::int64_t expected(unsigned first, unsigned wide, int n) {
  const unsigned inside = wide < 32 ? wide : 32;
  std::int64_t whole = 0;
  for (unsigned warp = 0; warp < wide / inside; ++warp) {
    std::vector<std::int64_t> parts(inside);
    for (unsigned lane = 0; lane < inside; ++lane)
      parts[lane] = std::int64_t(first + warp * inside + lane) * (n + 1) % 1000;
    for (unsigned by = inside / 2; by > 0; by /= 2)
      for (unsigned lane = 0; lane < by; ++lane) Join()(parts[lane], parts[lane + by]);
    if (warp == 0) {
      whole = parts[0];
    } else {
      Join()(whole, parts[0]);
    }
  }
  return whole;
}

SPACES

int main() {
  CHECKS
  std::printf("done\n");
}
