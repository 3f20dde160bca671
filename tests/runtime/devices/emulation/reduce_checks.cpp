// Reductions by many threads give what loops give, for each shape; VARIANTS has the header as it is,
// and without each of its barriers.
#include <cuda_runtime.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <limits>
#include <vector>

VARIANTS

using Number = std::int64_t;

TEMPLATES

/// Sums of rows and of columns of numbers that differ, in each shape, on few blocks.
template <class Launch>
void check(const char *name, Launch launch) {
  int wrong = 0, done = 0;
  for (const Number elements : {3, 70})
    for (const Number terms : {0, 300})
      for (const Number wide : {32, 128})
        for (const Number chunks : {1, 3})
          for (const unsigned blocks : {1u}) {
            const Number size = std::max<Number>(elements * terms, 1);
            std::vector<Number> given(size), found(elements), wanted(elements, 0);
            for (Number i = 0; i < size; ++i) given[i] = (i * 7919) % 1009 + 1;
            for (Number e = 0; e < elements; ++e)
              for (Number t = 0; t < terms; ++t) wanted[e] += given[e * terms + t];
            Number *in, *out, *parts;
            cudaMalloc(&in, size * sizeof(Number));
            cudaMalloc(&out, elements * sizeof(Number));
            cudaMalloc(&parts, elements * chunks * sizeof(Number));
            cudaMemcpy(in, given.data(), size * sizeof(Number), cudaMemcpyHostToDevice);
            launch(blocks, elements, terms, wide, chunks, in, out, parts);
            cudaMemcpy(found.data(), out, elements * sizeof(Number), cudaMemcpyDeviceToHost);
            wrong += found != wanted;
            ++done;
            for (Number *at : {in, out, parts}) cudaFree(at);
          }
  std::printf("%s: %s of %d\n", name, wrong ? "wrong" : "right", done);
}

int main() {
  using Shape = distspmd::ReductionShape;
  for (const Number elements : {Number(1), Number(100), Number(1) << 20})
    for (const Number terms : {Number(1), Number(1000), Number(1) << 30})
      for (const bool differ : {false, true}) {
        const Shape shape = Shape::of(elements, terms, differ);
        const bool fits = Shape::threads % shape.wide == 0 && shape.chunks >= 1 &&
                          (shape.chunks == 1 || elements * shape.chunks <= Shape::parts);
        if (!fits || (differ && shape.wide < 32)) std::printf("a shape does not fit\n");
      }
  CHECKS
  std::printf("done\n");
}
