// Transforms of parts as a program calls them, for types of elements.
#include <distspmd/kernels/long_transform.hpp>

#define TRANSFORMS(NAME, IN, OUT)                                                                                \
  extern "C" void transform_##NAME(int64_t context, int64_t begin, int64_t end, bool inverse, const IN *in,      \
                                   int64_t step, OUT *out) {                                                     \
    distspmd::lines::transform_parts(context, 0, {begin, end}, inverse, inverse ? 1 : 0, in, step, out, 1); \
  }

TRANSFORMS(float64, double, std::complex<double>)
TRANSFORMS(float32, float, std::complex<float>)
TRANSFORMS(complex128, std::complex<double>, std::complex<double>)
TRANSFORMS(complex64, std::complex<float>, std::complex<float>)
