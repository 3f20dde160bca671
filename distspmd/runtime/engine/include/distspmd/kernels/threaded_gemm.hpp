// Products of matrices on the threads of OpenMP.
//
// A BLAS may have threads of its own, which would spin beside those of OpenMP and take their cores. So
// BLAS runs on the thread that calls it, and what threads share are the matrices of a batch, or the rows
// or columns of one product. Programs include this behind the header of their BLAS.
#pragma once

#include <algorithm>
#include <complex>
#include <cstdint>

#include <omp.h>

#ifndef DISTSPMD_BLAS_THREADS
#define DISTSPMD_BLAS_THREADS() 1
#define DISTSPMD_SET_BLAS_THREADS(number) static_cast<void>(number)
#endif

namespace distspmd {
inline namespace v1 {

/// While it lives, BLAS runs on one thread.
class OneThread {
 public:
  OneThread() : blas_(DISTSPMD_BLAS_THREADS()), threads_(omp_get_max_threads()) { DISTSPMD_SET_BLAS_THREADS(1); }
  ~OneThread() {
    DISTSPMD_SET_BLAS_THREADS(blas_);
    omp_set_num_threads(threads_);  // a BLAS on OpenMP has set it, too
  }
  OneThread(const OneThread &) = delete;
  OneThread &operator=(const OneThread &) = delete;

 private:
  int blas_, threads_;
};

/// How many threads so many operations are worth.
inline int threads_for(double operations) {
  return operations < 1e6 || omp_in_parallel() ? 1 : omp_get_max_threads();
}

/// Call `run(n)` for each n of a batch, on threads if there are enough of them.
template <class Run>
void each(std::int64_t count, double operations, Run run) {
  const int threads = threads_for(operations);
  if (threads == 1 || count < threads) {
    for (std::int64_t n = 0; n < count; ++n) run(n);
    return;
  }
  const OneThread guard;
#pragma omp parallel for num_threads(threads)
  for (std::int64_t n = 0; n < count; ++n) run(n);
}

#define DISTSPMD_GEMM(type, letter, factor)                                                                    \
  inline void gemm_on_thread(CBLAS_TRANSPOSE of_a, CBLAS_TRANSPOSE of_b, std::int64_t m, std::int64_t n,       \
                             std::int64_t k, type alpha, const type *a, std::int64_t lda, const type *b,       \
                             std::int64_t ldb, type beta, type *c, std::int64_t ldc) {                         \
    cblas_##letter##gemm(CblasRowMajor, of_a, of_b, m, n, k, factor alpha, a, lda, b, ldb, factor beta, c, ldc); \
  }                                                                                                            \
  inline void gemv_on_thread(CBLAS_TRANSPOSE of_a, std::int64_t m, std::int64_t k, type alpha, const type *a,  \
                             std::int64_t lda, const type *x, std::int64_t step_x, type beta, type *y,         \
                             std::int64_t step_y) {                                                            \
    const bool plain = of_a == CblasNoTrans;                                                                   \
    cblas_##letter##gemv(CblasRowMajor, of_a, plain ? m : k, plain ? k : m, factor alpha, a, lda, x, step_x,   \
                         factor beta, y, step_y);                                                              \
  }
DISTSPMD_GEMM(float, s, )
DISTSPMD_GEMM(double, d, )
DISTSPMD_GEMM(std::complex<float>, c, &)
DISTSPMD_GEMM(std::complex<double>, z, &)
#undef DISTSPMD_GEMM

/// y = alpha a x + beta y, where a has m rows and k columns; elements of x and y are some steps apart.
template <class T>
void gemv(CBLAS_TRANSPOSE of_a, std::int64_t m, std::int64_t k, T alpha, const T *a, std::int64_t lda, const T *x,
          std::int64_t step_x, T beta, T *y, std::int64_t step_y) {
  if (m <= 0) return;
  if (k <= 0) {  // a BLAS need not touch y then
    for (std::int64_t i = 0; i < m; ++i) y[i * step_y] = beta == T(0) ? T(0) : beta * y[i * step_y];
    return;
  }
  const int threads = threads_for(2.0 * static_cast<double>(m) * static_cast<double>(k));
  if (threads == 1) {
    gemv_on_thread(of_a, m, k, alpha, a, lda, x, step_x, beta, y, step_y);
    return;
  }
  const std::int64_t part = (m + threads - 1) / threads;
  const OneThread guard;
#pragma omp parallel for num_threads(threads)
  for (std::int64_t first = 0; first < m; first += part) {
    const T *from = a + first * (of_a == CblasNoTrans ? lda : 1);
    gemv_on_thread(of_a, std::min(part, m - first), k, alpha, from, lda, x, step_x, beta, y + first * step_y, step_y);
  }
}

/// c = alpha a b + beta c, stored by rows.
template <class T>
void gemm(CBLAS_TRANSPOSE of_a, CBLAS_TRANSPOSE of_b, std::int64_t m, std::int64_t n, std::int64_t k, T alpha,
          const T *a, std::int64_t lda, const T *b, std::int64_t ldb, T beta, T *c, std::int64_t ldc) {
  if (n == 1) {
    gemv(of_a, m, k, alpha, a, lda, b, of_b == CblasNoTrans ? ldb : 1, beta, c, ldc);
    return;
  }
  if (m == 1) {
    const auto turned = of_b == CblasNoTrans ? CblasTrans : CblasNoTrans;
    gemv(turned, n, k, alpha, b, ldb, a, of_a == CblasNoTrans ? 1 : lda, beta, c, 1);
    return;
  }
  const int threads = threads_for(2.0 * static_cast<double>(m) * static_cast<double>(n) * static_cast<double>(k));
  if (threads == 1) {
    gemm_on_thread(of_a, of_b, m, n, k, alpha, a, lda, b, ldb, beta, c, ldc);
    return;
  }
  const bool rows = m >= n;
  const std::int64_t whole = rows ? m : n, grain = 16;
  const std::int64_t part = (whole + threads * grain - 1) / (threads * grain) * grain;
  const OneThread guard;
#pragma omp parallel for num_threads(threads)
  for (std::int64_t first = 0; first < whole; first += part) {
    const std::int64_t size = std::min(part, whole - first);
    if (rows) {
      const T *from = a + first * (of_a == CblasNoTrans ? lda : 1);
      gemm_on_thread(of_a, of_b, size, n, k, alpha, from, lda, b, ldb, beta, c + first * ldc, ldc);
    } else {
      const T *from = b + first * (of_b == CblasNoTrans ? 1 : ldb);
      gemm_on_thread(of_a, of_b, m, size, k, alpha, a, lda, from, ldb, beta, c + first, ldc);
    }
  }
}

}  // namespace v1
}  // namespace distspmd
