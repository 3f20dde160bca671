// Reductions: for a dtype and an operation, a kernel for memory and the datatype and operation of
// MPI.
//
// The meaning is NumPy's: integers wrap, a NaN wins every minimum and maximum, sums of bool are
// `or`. Codes are those of distspmd/layouts/reductions.py (operations) and distspmd/plans/encoding.py
// (dtypes).
#pragma once

#include <mpi.h>

#include <complex>
#include <cstdint>
#include <cstring>
#include <limits>
#include <type_traits>

namespace distspmd {
inline namespace v1 {

enum class Operation : std::int64_t {
  none = 0,
  sum,
  prod,
  min,
  max,
  logical_and,
  logical_or,
  logical_xor,
  bit_and,
  bit_or,
  bit_xor,  // and from here on the functions that the program has itself
};
constexpr std::int64_t operations = 11;
constexpr std::int64_t dtypes = 14;  // 0: bytes, 1: bool, 2-5: int8-int64, 6-9: uint8-uint64, ...

/// Bring n elements to a target; strides are in bytes.
using Kernel = void (*)(char *target, std::int64_t target_stride, const char *source,
                        std::int64_t source_stride, std::int64_t n);

template <class T>
struct is_complex : std::false_type {};
template <class T>
struct is_complex<std::complex<T>> : std::true_type {};

template <Operation O, class T>
constexpr T neutral() {
  if constexpr (std::is_same_v<T, bool>) {
    return O == Operation::prod || O == Operation::min || O == Operation::logical_and ||
           O == Operation::bit_and;
  } else if constexpr (O == Operation::min || O == Operation::max) {
    using Limits = std::numeric_limits<T>;
    if constexpr (Limits::has_infinity) {
      return O == Operation::min ? Limits::infinity() : -Limits::infinity();
    } else {
      return O == Operation::min ? Limits::max() : Limits::lowest();
    }
  } else if constexpr (O == Operation::bit_and) {
    return static_cast<T>(~T(0));
  } else {
    return T(O == Operation::prod || O == Operation::logical_and ? 1 : 0);
  }
}

template <Operation O, class T>
inline T combined(T a, T b) {
  if constexpr (std::is_same_v<T, bool>) {
    if (O == Operation::logical_xor || O == Operation::bit_xor) return a != b;
    return neutral<O, T>() ? a && b : a || b;
  } else if constexpr (O == Operation::logical_xor) {
    return static_cast<T>((a != T(0)) != (b != T(0)));
  } else if constexpr (O == Operation::bit_and) {
    return static_cast<T>(a & b);
  } else if constexpr (O == Operation::bit_or) {
    return static_cast<T>(a | b);
  } else if constexpr (O == Operation::bit_xor) {
    return static_cast<T>(a ^ b);
  } else if constexpr (O == Operation::logical_and) {
    return static_cast<T>(a != T(0) && b != T(0));
  } else if constexpr (O == Operation::logical_or) {
    return static_cast<T>(a != T(0) || b != T(0));
  } else if constexpr (O == Operation::min) {
    return a <= b || a != a ? a : b;
  } else if constexpr (O == Operation::max) {
    return a >= b || a != a ? a : b;
  } else if constexpr (std::is_integral_v<T>) {
    using Wide = std::conditional_t<sizeof(T) <= 4, std::uint32_t, std::uint64_t>;
    const Wide x = static_cast<Wide>(a), y = static_cast<Wide>(b);
    return static_cast<T>(O == Operation::sum ? x + y : x * y);
  } else if constexpr (is_complex<T>::value && O == Operation::prod) {
    return T(a.real() * b.real() - a.imag() * b.imag(), a.real() * b.imag() + a.imag() * b.real());
  } else {
    return O == Operation::sum ? a + b : a * b;
  }
}

/// target = target combined with source, element by element.
template <Operation O, class T>
void combine(char *target, std::int64_t target_stride, const char *source,
             std::int64_t source_stride, std::int64_t n) {
  constexpr std::int64_t size = sizeof(T);
  if (target_stride == size && source_stride == size) {
    T *into = reinterpret_cast<T *>(target);
    const T *from = reinterpret_cast<const T *>(source);
    for (std::int64_t i = 0; i < n; ++i) into[i] = combined<O>(into[i], from[i]);
    return;
  }
  for (std::int64_t i = 0; i < n; ++i) {
    T *into = reinterpret_cast<T *>(target + i * target_stride);
    *into = combined<O>(*into, *reinterpret_cast<const T *>(source + i * source_stride));
  }
}

template <Operation O, class T>
void mpi_combine(void *source, void *target, int *n, MPI_Datatype *) {
  combine<O, T>(static_cast<char *>(target), sizeof(T), static_cast<const char *>(source),
                sizeof(T), *n);
}

template <Operation O, class T>
void fill_neutral(char *target, std::int64_t n) {
  T *into = reinterpret_cast<T *>(target);
  for (std::int64_t i = 0; i < n; ++i) into[i] = neutral<O, T>();
}

/// All that is needed to reduce values of one dtype with one operation.
struct Reduction {
  Kernel kernel = nullptr;                               // null: there is no such reduction
  void (*fill)(char *target, std::int64_t n) = nullptr;  // with the neutral element
  MPI_User_function *function = nullptr;                 // for MPI, where it has no such operation
  MPI_Op op = MPI_OP_NULL;                               // for MPI, where it has one
  MPI_Datatype type = MPI_DATATYPE_NULL;                 // null: that of so many bytes
};

template <class T>
MPI_Datatype mpi_type() {
  if constexpr (std::is_same_v<T, bool>) return MPI_C_BOOL;
  if constexpr (std::is_same_v<T, std::int8_t>) return MPI_INT8_T;
  if constexpr (std::is_same_v<T, std::int16_t>) return MPI_INT16_T;
  if constexpr (std::is_same_v<T, std::int32_t>) return MPI_INT32_T;
  if constexpr (std::is_same_v<T, std::int64_t>) return MPI_INT64_T;
  if constexpr (std::is_same_v<T, std::uint8_t>) return MPI_UINT8_T;
  if constexpr (std::is_same_v<T, std::uint16_t>) return MPI_UINT16_T;
  if constexpr (std::is_same_v<T, std::uint32_t>) return MPI_UINT32_T;
  if constexpr (std::is_same_v<T, std::uint64_t>) return MPI_UINT64_T;
  if constexpr (std::is_same_v<T, float>) return MPI_FLOAT;
  if constexpr (std::is_same_v<T, double>) return MPI_DOUBLE;
  if constexpr (std::is_same_v<T, std::complex<float>>) return MPI_C_FLOAT_COMPLEX;
  if constexpr (std::is_same_v<T, std::complex<double>>) return MPI_C_DOUBLE_COMPLEX;
  return MPI_DATATYPE_NULL;
}

/// The operation of MPI that means what NumPy's does, or MPI_OP_NULL.
template <Operation O, class T>
MPI_Op mpi_op() {
  constexpr bool real = std::is_floating_point_v<T>;
  if constexpr (O == Operation::logical_xor && !real) return MPI_LXOR;
  if constexpr (std::is_same_v<T, bool> && O == Operation::bit_xor) return MPI_LXOR;
  if constexpr (std::is_same_v<T, bool>) return neutral<O, T>() ? MPI_LAND : MPI_LOR;
  if constexpr (O == Operation::bit_and) return MPI_BAND;
  if constexpr (O == Operation::bit_or) return MPI_BOR;
  if constexpr (O == Operation::bit_xor) return MPI_BXOR;
  if constexpr (O == Operation::sum) return MPI_SUM;
  if constexpr (O == Operation::prod) return MPI_PROD;
  if constexpr (O == Operation::min && !real) return MPI_MIN;
  if constexpr (O == Operation::max && !real) return MPI_MAX;
  if constexpr (O == Operation::logical_and && !real) return MPI_LAND;
  if constexpr (O == Operation::logical_or && !real) return MPI_LOR;
  return MPI_OP_NULL;  // MPI_MIN loses NaN, MPI_LAND takes no floats
}

template <Operation O, class T>
Reduction reduction_of() {
  constexpr bool bits = O >= Operation::bit_and;
  if constexpr (is_complex<T>::value && O != Operation::sum && O != Operation::prod) {
    return {};
  } else if constexpr (bits && !std::is_integral_v<T>) {
    return {};
  } else {
    return {combine<O, T>, fill_neutral<O, T>, mpi_combine<O, T>, mpi_op<O, T>(), mpi_type<T>()};
  }
}

template <class T>
Reduction reduction_of(Operation operation) {
  switch (operation) {
    case Operation::none: return {};
    case Operation::sum: return reduction_of<Operation::sum, T>();
    case Operation::prod: return reduction_of<Operation::prod, T>();
    case Operation::min: return reduction_of<Operation::min, T>();
    case Operation::max: return reduction_of<Operation::max, T>();
    case Operation::logical_and: return reduction_of<Operation::logical_and, T>();
    case Operation::logical_or: return reduction_of<Operation::logical_or, T>();
    case Operation::logical_xor: return reduction_of<Operation::logical_xor, T>();
    case Operation::bit_and: return reduction_of<Operation::bit_and, T>();
    case Operation::bit_or: return reduction_of<Operation::bit_or, T>();
    case Operation::bit_xor: return reduction_of<Operation::bit_xor, T>();
  }
  return {};
}

// The one function that makes all kernels: a file of its own has it, where the macro is defined.
#ifdef DISTSPMD_REDUCTIONS_APART
Reduction reduction_of(Operation operation, std::int64_t dtype);
#else
__attribute__((used)) inline Reduction reduction_of(Operation operation, std::int64_t dtype) {
  switch (dtype) {
    case 1: return reduction_of<bool>(operation);
    case 2: return reduction_of<std::int8_t>(operation);
    case 3: return reduction_of<std::int16_t>(operation);
    case 4: return reduction_of<std::int32_t>(operation);
    case 5: return reduction_of<std::int64_t>(operation);
    case 6: return reduction_of<std::uint8_t>(operation);
    case 7: return reduction_of<std::uint16_t>(operation);
    case 8: return reduction_of<std::uint32_t>(operation);
    case 9: return reduction_of<std::uint64_t>(operation);
    case 10: return reduction_of<float>(operation);
    case 11: return reduction_of<double>(operation);
    case 12: return reduction_of<std::complex<float>>(operation);
    case 13: return reduction_of<std::complex<double>>(operation);
    default: return {};
  }
}
#endif

/// Bytes of one element; 0 for the dtype 0, which has no size of its own.
inline std::int64_t itemsize_of(std::int64_t dtype) {
  constexpr std::int64_t sizes[dtypes] = {0, 1, 1, 2, 4, 8, 1, 2, 4, 8, 4, 8, 8, 16};
  return sizes[dtype];
}

}  // namespace v1
}  // namespace distspmd
