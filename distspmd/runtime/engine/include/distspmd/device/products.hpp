// Products of matrices on a device: what a generated program includes where the device's library of
// products computes them.
#pragma once

#include <cstdint>

namespace distspmd {
inline namespace v1 {

/// A matrix of a batch of them, as it lies in the device's memory by columns.
struct BatchedMatrix {
  const void *at;
  bool transposed;
  std::int64_t leading, apart;  // elements between its columns, and to the next of the batch
};

/// How exactly products are computed of float32, and of complex numbers of it.
enum class Precision { full, pedantic, tf32, bfloat16 };

/// Queue ``c = a b``, or ``c += a b``, on a stream (of CUDA), for a batch of matrices of ``rows`` x
/// ``columns``. The type is BLAS' letter. An error stays the last one of products.
void multiply(void *stream, char type, Precision precision, std::int64_t rows, std::int64_t columns,
              std::int64_t depth, const BatchedMatrix &a, const BatchedMatrix &b, bool adds,
              const BatchedMatrix &c, std::int64_t batch, double factor = 1);

}  // namespace v1
}  // namespace distspmd
