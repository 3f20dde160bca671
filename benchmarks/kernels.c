// Plain C, what a programmer would write: -O3 -march=native -ffast-math -fopenmp.
#include <math.h>
#include <stddef.h>

static void step(size_t n, const float *restrict a, float *restrict b) {
#pragma omp parallel for
  for (size_t i = 1; i < n - 1; ++i)
    for (size_t j = 1; j < n - 1; ++j)
      b[i * n + j] = 0.2f * (a[i * n + j] + a[i * n + j - 1] + a[i * n + j + 1] +
                             a[(i - 1) * n + j] + a[(i + 1) * n + j]);
}

void jacobi(size_t n, size_t steps, float *a, float *b) {
  for (size_t t = 0; t < steps; t += 2) {
    step(n, a, b);
    step(n, b, a);
  }
}

void softmax(size_t rows, size_t n, const float *restrict x, float *restrict y) {
#pragma omp parallel for
  for (size_t r = 0; r < rows; ++r) {
    float top = -INFINITY, sum = 0;
    for (size_t j = 0; j < n; ++j) top = fmaxf(top, x[r * n + j]);
    for (size_t j = 0; j < n; ++j) sum += y[r * n + j] = expf(x[r * n + j] - top);
    for (size_t j = 0; j < n; ++j) y[r * n + j] /= sum;
  }
}
