// The library of products of a device, cuBLAS 12 or later, loaded while the process runs.
//
// Its functions are declared here, so that nothing of it is needed to compile, and the process has
// only one handle. Factors are in the memory of the host, and all of a batch has the same ones.
#pragma once

#include <cuda_runtime.h>
#include <dlfcn.h>

#include <cstdint>
#include <string>
#include <utility>

#include <distspmd/device/products.hpp>

namespace distspmd {
inline namespace v1 {

class Cublas {
 public:
  static Cublas &of_process() {
    static Cublas &one = *new Cublas;  // programs are still freed when the process ends
    return one;
  }

  /// Load the library of a path, unless it is there already; what failed, empty if nothing did.
  std::string load(const char *path) {
    if (handle_) return "";
    void *const library = dlopen(path, RTLD_NOW | RTLD_LOCAL);
    if (!library) {
      const char *said = dlerror();
      return said ? said : "it cannot be loaded";
    }
    for (auto [name, function] : {std::pair<const char *, void *>{"cublasCreate_v2", &create_},
                                  {"cublasSetStream_v2", &set_stream_},
                                  {"cublasGetStatusString", &describe_},
                                  {"cublasGemmEx_64", &gemm_},
                                  {"cublasGemmStridedBatchedEx_64", &batched_}}) {
      void *const found = dlsym(library, name);
      if (!found) return std::string("it has no ") + name + ", as cuBLAS 12 and later have";
      *static_cast<void **>(function) = found;
    }
    const int status = create_(&handle_);
    if (status == success) return "";
    handle_ = nullptr;
    return describe(status);
  }

  /// What failed since somebody asked; empty if nothing did.
  std::string error() { return std::exchange(error_, ""); }

  void multiply(cudaStream_t stream, char type, Precision precision, std::int64_t rows,
                std::int64_t columns, std::int64_t depth, const BatchedMatrix &a,
                const BatchedMatrix &b, bool adds, const BatchedMatrix &c, std::int64_t batch,
                double factor) {
    if (rows <= 0 || columns <= 0 || batch <= 0) return;  // an idle rank
    if (!handle_) return note("no library of products is loaded");
    int status = set_stream_(handle_, stream);
    // in the type of the scale: for complex numbers, the real part comes first
    const double doubles[2][2] = {{factor, 0}, {adds ? 1. : 0., 0}};
    const float floats[2][2] = {{float(factor), 0}, {adds ? 1.f : 0.f, 0}};
    const bool is_double = type == 'd' || type == 'z';
    const void *const alpha = is_double ? (const void *)doubles[0] : floats[0];
    const void *const beta = is_double ? (const void *)doubles[1] : floats[1];
    const int kind = kind_of(type), compute = compute_of(is_double, precision);
    void *const to = const_cast<void *>(c.at);
    if (status == success && batch == 1)
      status = gemm_(handle_, a.transposed, b.transposed, rows, columns, depth, alpha, a.at, kind,
                     a.leading, b.at, kind, b.leading, beta, to, kind, c.leading, compute, any);
    else if (status == success)
      status = batched_(handle_, a.transposed, b.transposed, rows, columns, depth, alpha, a.at,
                        kind, a.leading, a.apart, b.at, kind, b.leading, b.apart, beta, to, kind,
                        c.leading, c.apart, batch, compute, any);
    if (status != success) note(describe(status));
  }

 private:
  using Number = std::int64_t;
  static constexpr int success = 0, any = -1;  // of the algorithms

  /// Numbers of CUDA for the types of elements.
  static int kind_of(char type) {
    switch (type) {
      case 's': return 0;
      case 'd': return 1;
      case 'c': return 4;
      default: return 5;
    }
  }

  /// Numbers of cuBLAS for how products are computed.
  static int compute_of(bool is_double, Precision precision) {
    if (is_double) return precision == Precision::pedantic ? 71 : 70;
    switch (precision) {
      case Precision::full: return 68;
      case Precision::pedantic: return 69;
      case Precision::tf32: return 77;
      case Precision::bfloat16: return 75;
    }
    return 68;
  }

  void note(const std::string &what) {
    if (error_.empty()) error_ = "a product: " + what;
  }

  std::string describe(int status) const {
    return std::string(describe_(status)) + " (" + std::to_string(status) + " of cuBLAS)";
  }

  int (*create_)(void **) = nullptr;
  int (*set_stream_)(void *, cudaStream_t) = nullptr;
  const char *(*describe_)(int) = nullptr;
  int (*gemm_)(void *, int, int, Number, Number, Number, const void *, const void *, int, Number,
               const void *, int, Number, const void *, void *, int, Number, int, int) = nullptr;
  int (*batched_)(void *, int, int, Number, Number, Number, const void *, const void *, int, Number,
                  long long, const void *, int, Number, long long, const void *, void *, int,
                  Number, long long, Number, int, int) = nullptr;
  void *handle_ = nullptr;
  std::string error_;
};

void multiply(void *stream, char type, Precision precision, std::int64_t rows, std::int64_t columns,
              std::int64_t depth, const BatchedMatrix &a, const BatchedMatrix &b, bool adds,
              const BatchedMatrix &c, std::int64_t batch, double factor) {
  Cublas::of_process().multiply(static_cast<cudaStream_t>(stream), type, precision, rows, columns,
                                depth, a, b, adds, c, batch, factor);
}

}  // namespace v1
}  // namespace distspmd
