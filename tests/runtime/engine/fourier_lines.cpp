// Transforms of many lines as a program calls them, for types of elements.
#include <cstdlib>
#include <vector>

#include <distspmd/kernels/fourier.hpp>

using distspmd::fourier::Along;
using distspmd::fourier::Lines;

namespace {
Lines lines_of(int64_t dims, const int64_t *batch, const int64_t *steps) {
  Lines lines{{}, steps[0], steps[1]};
  for (int64_t d = 0; d < dims; ++d) lines.batch.push_back({batch[3 * d], batch[3 * d + 1], batch[3 * d + 2]});
  return lines;
}
}  // namespace

#define TRANSFORMS(NAME, T)                                                                                       \
  extern "C" void complex_##NAME(int64_t dims, const int64_t *batch, const int64_t *steps, const std::complex<T> *in, \
                                 int64_t have, std::complex<T> *out, int64_t n, bool inverse, double scale) {      \
    distspmd::fourier::complex_to_complex(lines_of(dims, batch, steps), in, have, out, n, inverse, scale);         \
  }                                                                                                                \
  extern "C" void widened_##NAME(int64_t dims, const int64_t *batch, const int64_t *steps, const T *in,            \
                                 int64_t have, std::complex<T> *out, int64_t n, bool inverse, double scale) {      \
    distspmd::fourier::complex_to_complex(lines_of(dims, batch, steps), in, have, out, n, inverse, scale);         \
  }                                                                                                                \
  extern "C" void real_##NAME(int64_t dims, const int64_t *batch, const int64_t *steps, const T *in, int64_t have, \
                              std::complex<T> *out, int64_t n, bool, double scale) {                               \
    distspmd::fourier::real_to_complex(lines_of(dims, batch, steps), in, have, out, n, scale);                     \
  }                                                                                                                \
  extern "C" void back_##NAME(int64_t dims, const int64_t *batch, const int64_t *steps, const std::complex<T> *in, \
                              int64_t have, T *out, int64_t n, bool, double scale) {                               \
    distspmd::fourier::complex_to_real(lines_of(dims, batch, steps), in, have, out, n, scale);                     \
  }

TRANSFORMS(float64, double)
TRANSFORMS(float32, float)

/// Transform 16 lines of a length, dense or side by side, so many times.
int main(int, char **arguments) {
  const int64_t n = std::atoll(arguments[1]), count = 16;
  const bool beside = std::atoi(arguments[3]);
  const Lines lines = beside ? Lines{{{count, 1, 1}}, count, count} : Lines{{{count, n, n}}};
  std::vector<std::complex<double>> in(n * count, 1), out(n * count);
  for (int64_t times = std::atoll(arguments[2]); times > 0; --times)
    distspmd::fourier::complex_to_complex(lines, in.data(), n, out.data(), n, false, 1.0);
  return out[0].real() != double(n);
}
