// Products of packed blocks on operands behind whose last element no memory is.
#include <sys/mman.h>
#include <unistd.h>

#include <cstdint>
#include <cstring>

#include <distspmd/kernels/packed_product.hpp>

using namespace distspmd::packed;

namespace {

/// Elements that end where readable memory ends.
template <class T>
class Guarded {
 public:
  Guarded(const T *values, Int count) : count_(count), page_(sysconf(_SC_PAGESIZE)) {
    const Int bytes = count * static_cast<Int>(sizeof(T));
    pages_ = (bytes + page_ - 1) / page_;
    const int rights = PROT_READ | PROT_WRITE, kind = MAP_PRIVATE | MAP_ANONYMOUS;
    base_ = static_cast<char *>(mmap(nullptr, (pages_ + 2) * page_, rights, kind, -1, 0));
    mprotect(base_, page_, PROT_NONE);
    mprotect(base_ + (pages_ + 1) * page_, page_, PROT_NONE);
    std::memcpy(data(), values, bytes);
  }
  ~Guarded() { munmap(base_, (pages_ + 2) * page_); }
  T *data() const { return reinterpret_cast<T *>(base_ + (pages_ + 1) * page_) - count_; }

 private:
  Int count_, page_, pages_ = 0;
  char *base_ = nullptr;
};

template <class T>
void multiplied(const Int *numbers, const Int *counts, const T *a, const T *b, T *c, const Int *sizes) {
  Loops loops[3];
  for (int run = 0; run < 3; ++run)
    for (Int n = 0; n < counts[run]; ++n, numbers += 3) loops[run].push_back({numbers[0], numbers[1], numbers[2]});
  std::vector<Batch> batch;
  for (Int n = 0; n < counts[3]; ++n, numbers += 4) batch.push_back({numbers[0], numbers[1], numbers[2], numbers[3]});
  const Guarded<T> left(a, sizes[0]), right(b, sizes[1]), result(c, sizes[2]);
  multiply<T>(loops[0], loops[1], loops[2], batch, left.data(), right.data(), result.data());
  std::memcpy(c, result.data(), sizes[2] * sizeof(T));
}

}  // namespace

extern "C" void multiply_float(const Int *numbers, const Int *counts, const float *a, const float *b, float *c,
                               const Int *sizes) {
  multiplied(numbers, counts, a, b, c, sizes);
}
extern "C" void multiply_double(const Int *numbers, const Int *counts, const double *a, const double *b, double *c,
                                const Int *sizes) {
  multiplied(numbers, counts, a, b, c, sizes);
}
