// cuBLAS on the emulated device: products of matrices that lie by columns, queued on the stream of
// the handle, and computed by the BLAS of the host.
//
// What cuBLAS documents as an error of its arguments is one here, with the same number. A matrix that
// does not lie in the memory of the device as a whole is an error, too, where a GPU would fault. Of
// TF32 and bfloat16 operands have as many bits as a GPU's units take. DISTSPMD_EMULATED_PRODUCTS is
// the number of calls that succeed; with 0 there is no handle.
#include "cuda_runtime.h"

#include <complex>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <new>
#include <vector>

#include DISTSPMD_CBLAS_HEADER

#define JOINED(a, b) a##b
#define PREFIXED(a, b) JOINED(a, b)
#define CBLAS(name) PREFIXED(DISTSPMD_CBLAS_PREFIX, name)

#define EXPORT extern "C" __attribute__((used, visibility("default")))

namespace {

enum Status {
  success = 0,
  not_initialized = 1,
  alloc_failed = 3,
  invalid_value = 7,
  execution_failed = 13,
  not_supported = 15,
};
using Number = std::int64_t;

struct Handle {
  static constexpr std::uint32_t alive = 0xb1a5b1a5u;
  std::uint32_t mark = alive;
  cudaStream_t stream = nullptr;
};

/// How many calls still succeed; negative for all.
int &calls_left() {
  static const char *given = std::getenv("DISTSPMD_EMULATED_PRODUCTS");
  static int left = given ? std::atoi(given) : -1;
  return left;
}

void product(CBLAS_TRANSPOSE a_order, CBLAS_TRANSPOSE b_order, Number m, Number n, Number k,
             float alpha, const float *a, Number lda, const float *b, Number ldb, float beta,
             float *c, Number ldc) {
  CBLAS(cblas_sgemm)(CblasColMajor, a_order, b_order, m, n, k, alpha, a, lda, b, ldb, beta, c, ldc);
}
void product(CBLAS_TRANSPOSE a_order, CBLAS_TRANSPOSE b_order, Number m, Number n, Number k,
             double alpha, const double *a, Number lda, const double *b, Number ldb, double beta,
             double *c, Number ldc) {
  CBLAS(cblas_dgemm)(CblasColMajor, a_order, b_order, m, n, k, alpha, a, lda, b, ldb, beta, c, ldc);
}
void product(CBLAS_TRANSPOSE a_order, CBLAS_TRANSPOSE b_order, Number m, Number n, Number k,
             std::complex<float> alpha, const std::complex<float> *a, Number lda,
             const std::complex<float> *b, Number ldb, std::complex<float> beta,
             std::complex<float> *c, Number ldc) {
  CBLAS(cblas_cgemm)
  (CblasColMajor, a_order, b_order, m, n, k, &alpha, a, lda, b, ldb, &beta, c, ldc);
}
void product(CBLAS_TRANSPOSE a_order, CBLAS_TRANSPOSE b_order, Number m, Number n, Number k,
             std::complex<double> alpha, const std::complex<double> *a, Number lda,
             const std::complex<double> *b, Number ldb, std::complex<double> beta,
             std::complex<double> *c, Number ldc) {
  CBLAS(cblas_zgemm)
  (CblasColMajor, a_order, b_order, m, n, k, &alpha, a, lda, b, ldb, &beta, c, ldc);
}

/// A number with so many bits of its mantissa, rounded to the nearest.
float rounded(float value, int kept) {
  if (value != value) return value;
  std::uint32_t bits;
  std::memcpy(&bits, &value, sizeof bits);
  const int lost = 23 - kept;
  bits += (1u << (lost - 1)) - 1 + ((bits >> lost) & 1);
  bits &= ~((1u << lost) - 1);
  std::memcpy(&value, &bits, sizeof value);
  return value;
}

struct Matrix {
  const void *at;
  Number rows, columns, leading;
  long long apart;

  /// Whether its first and its last element are in the memory of the device.
  bool is_on_device(Number count, std::size_t itemsize) const {
    if (rows <= 0 || columns <= 0) return true;
    const Number last = (count - 1) * apart + (columns - 1) * leading + rows - 1;
    for (const Number element : {Number(0), last}) {
      cudaPointerAttributes found;
      const char *const byte = static_cast<const char *>(at) + element * Number(itemsize);
      if (cudaPointerGetAttributes(&found, byte) != cudaSuccess) return false;
      if (found.type != cudaMemoryTypeDevice) return false;
    }
    return true;
  }
};

/// The elements of a batch of matrices, with as many bits as the units of the device take.
template <class T>
const T *taken(const T *at, const Matrix &matrix, Number count, int bits, std::vector<T> &own) {
  if (bits == 0 || matrix.rows <= 0 || matrix.columns <= 0) return at;
  const Number size =
      (count - 1) * matrix.apart + (matrix.columns - 1) * matrix.leading + matrix.rows;
  own.assign(at, at + size);
  if constexpr (sizeof(T) == sizeof(float)) {
    for (T &element : own) element = rounded(element, bits);
  } else if constexpr (std::is_same_v<T, std::complex<float>>) {
    for (T &element : own) element = {rounded(element.real(), bits), rounded(element.imag(), bits)};
  }
  return own.data();
}

struct Call {
  Handle *handle;
  int a_order, b_order;
  Number m, n, k;
  const void *alpha, *beta;
  Matrix a, b, c;
  Number count;
  int bits;

  template <class T>
  Status queue() const {
    for (const Matrix *one : {&a, &b, &c})
      if (!one->is_on_device(count, sizeof(T))) return execution_failed;
    T factor, kept;  // they are the caller's only until this returns
    std::memcpy(&factor, alpha, sizeof(T));
    std::memcpy(&kept, beta, sizeof(T));
    const Call self = *this;
    const auto run = [self, factor, kept] {
      std::vector<T> own[2];
      const T *left = taken(static_cast<const T *>(self.a.at), self.a, self.count, self.bits, own[0]);
      const T *right = taken(static_cast<const T *>(self.b.at), self.b, self.count, self.bits, own[1]);
      for (Number i = 0; i < self.count; ++i)
        product(order(self.a_order), order(self.b_order), self.m, self.n, self.k, factor,
                left + i * self.a.apart, self.a.leading, right + i * self.b.apart, self.b.leading,
                kept, static_cast<T *>(const_cast<void *>(self.c.at)) + i * self.c.apart,
                self.c.leading);
    };
    const cudaError_t error = emulated::enqueue({1}, {1}, handle->stream, run);
    return error == cudaSuccess ? success : execution_failed;
  }

  static CBLAS_TRANSPOSE order(int operation) {
    return operation == 0 ? CblasNoTrans : operation == 1 ? CblasTrans : CblasConjTrans;
  }
};

/// Bits of the operands' mantissas for a way to compute; 0 for all, negative if the types have it not.
int bits_of(int compute, int type) {
  const bool is_double = type == 1 || type == 5, is_single = type == 0 || type == 4;
  if (is_double && (compute == 70 || compute == 71)) return 0;
  if (is_single && (compute == 68 || compute == 69)) return 0;
  if (is_single && compute == 77) return 10;
  if (is_single && compute == 75) return 7;
  return -1;
}

Status checked(Call call, int type, int b_type, int c_type, int compute) {
  if (!call.handle || call.handle->mark != Handle::alive) return not_initialized;
  if (type != b_type || type != c_type) return not_supported;
  call.bits = bits_of(compute, type);
  if (call.bits < 0) return not_supported;
  if (call.m < 0 || call.n < 0 || call.k < 0 || call.count < 0) return invalid_value;
  for (const int operation : {call.a_order, call.b_order})
    if (operation < 0 || operation > 2) return invalid_value;
  for (const Matrix *one : {&call.a, &call.b, &call.c})
    if (one->leading < 1 || one->leading < one->rows) return invalid_value;
  if (!call.alpha || !call.beta) return invalid_value;
  if (!call.m || !call.n || !call.count) return success;
  if (call.count > 1 && call.c.apart == 0) return invalid_value;  // all would write one matrix
  if (calls_left() == 0) return execution_failed;
  if (calls_left() > 0) --calls_left();
  switch (type) {
    case 0: return call.queue<float>();
    case 1: return call.queue<double>();
    case 4: return call.queue<std::complex<float>>();
    default: return call.queue<std::complex<double>>();
  }
}

}  // namespace

EXPORT int cublasCreate_v2(void **handle) {
  *handle = calls_left() ? new (std::nothrow) Handle : nullptr;
  return *handle ? success : alloc_failed;
}
EXPORT int cublasDestroy_v2(void *handle) {
  static_cast<Handle *>(handle)->mark = 0;
  delete static_cast<Handle *>(handle);
  return success;
}
EXPORT int cublasSetStream_v2(void *handle, cudaStream_t stream) {
  if (!handle || static_cast<Handle *>(handle)->mark != Handle::alive) return not_initialized;
  static_cast<Handle *>(handle)->stream = stream;
  return success;
}
EXPORT const char *cublasGetStatusString(int status) {
  switch (status) {
    case success: return "success";
    case not_initialized: return "the library was not initialized";
    case alloc_failed: return "the resource allocation failed";
    case invalid_value: return "an unsupported value or parameter was passed to the function";
    case execution_failed: return "the function failed to launch on the GPU";
    case not_supported: return "the functionality requested is not supported";
  }
  return "unknown";
}

EXPORT int cublasGemmStridedBatchedEx_64(void *handle, int a_order, int b_order, Number m, Number n,
                                         Number k, const void *alpha, const void *a, int a_type,
                                         Number lda, long long a_apart, const void *b, int b_type,
                                         Number ldb, long long b_apart, const void *beta, void *c,
                                         int c_type, Number ldc, long long c_apart, Number count,
                                         int compute, int) {
  const Matrix left{a, a_order ? k : m, a_order ? m : k, lda, a_apart};
  const Matrix right{b, b_order ? n : k, b_order ? k : n, ldb, b_apart};
  const Matrix result{c, m, n, ldc, c_apart};
  const Call call{static_cast<Handle *>(handle), a_order, b_order, m,      n, k, alpha, beta, left,
                  right,                         result,  count,   0};
  return checked(call, a_type, b_type, c_type, compute);
}
EXPORT int cublasGemmEx_64(void *handle, int a_order, int b_order, Number m, Number n, Number k,
                           const void *alpha, const void *a, int a_type, Number lda, const void *b,
                           int b_type, Number ldb, const void *beta, void *c, int c_type, Number ldc,
                           int compute, int algorithm) {
  return cublasGemmStridedBatchedEx_64(handle, a_order, b_order, m, n, k, alpha, a, a_type, lda, 0,
                                       b, b_type, ldb, 0, beta, c, c_type, ldc, 0, 1, compute,
                                       algorithm);
}
