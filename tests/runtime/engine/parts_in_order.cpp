// Sorts of parts as a program calls them, for types of elements.
#include <distspmd/kernels/sample_sort.hpp>

#define SORTS(NAME, TYPE)                                                                                     \
  extern "C" void sort_##NAME(int64_t context, int64_t number, int64_t begin, int64_t end, const TYPE *in,    \
                              int64_t step, TYPE *out, const bool *) {                                        \
    distspmd::lines::sort_parts(context, number, {begin, end}, in, step, out, 1);                             \
  }                                                                                                           \
  extern "C" void argsort_##NAME(int64_t context, int64_t number, int64_t begin, int64_t end, const TYPE *in, \
                                 int64_t step, int64_t *out, const bool *) {                                  \
    distspmd::lines::argsort_parts(context, number, {begin, end}, in, step, out, 1);                          \
  }                                                                                                           \
  extern "C" void choose_##NAME(int64_t context, int64_t number, int64_t begin, int64_t end, const TYPE *in,  \
                                int64_t step, TYPE *out, const bool *mask) {                                  \
    distspmd::lines::choose_parts(context, number, {begin, end}, mask, 1, in, step, out, 1);                  \
  }

SORTS(float64, double)
SORTS(float32, float)
SORTS(int64, int64_t)
SORTS(uint8, uint8_t)
SORTS(bool, bool)
SORTS(complex128, std::complex<double>)
