// Products and quotients of complex numbers as NumPy computes them.
//
// The operators of std::complex give infinities for products of which both parts are NaN, which NumPy
// does not, and ask for that at each product, so that compilers do not vectorise loops of them. This file
// stands behind dace/dace.h, before all code of a program.
#pragma once

#include <cmath>

#ifndef DACE_HDFI
#define DACE_HDFI inline
#endif

// Kernels of CUDA have complex numbers of thrust, and call their functions as those of std.
#ifdef __CUDACC__
#include <thrust/complex.h>

namespace std {
using thrust::abs, thrust::arg, thrust::conj, thrust::norm, thrust::pow, thrust::sqrt;
using thrust::exp, thrust::log, thrust::log10;
using thrust::acos, thrust::asin, thrust::atan, thrust::cos, thrust::sin, thrust::tan;
using thrust::acosh, thrust::asinh, thrust::atanh, thrust::cosh, thrust::sinh, thrust::tanh;
template <class T>
DACE_HDFI T real(const thrust::complex<T> &z) {
  return z.real();
}
template <class T>
DACE_HDFI T imag(const thrust::complex<T> &z) {
  return z.imag();
}
}  // namespace std
#endif

namespace distspmd {

/// The product by parts.
template <class T, template <class> class Complex>
DACE_HDFI Complex<T> times(const Complex<T> &a, const Complex<T> &b) {
  return {a.real() * b.real() - a.imag() * b.imag(), a.real() * b.imag() + a.imag() * b.real()};
}
/// Of a number that is not complex, or of another width.
template <class A, class B>
DACE_HDFI auto times(const A &a, const B &b) {
  return a * b;
}

/// The quotient, of which both are divided by the larger part of the divisor first.
template <class T, template <class> class Complex>
DACE_HDFI Complex<T> quotient(const Complex<T> &a, const Complex<T> &b) {
  const T real = std::abs(b.real()), imag = std::abs(b.imag());
  if (real >= imag) {
    if (real == T(0) && imag == T(0)) return {a.real() / real, a.imag() / real};
    const T ratio = b.imag() / b.real(), scale = T(1) / (b.real() + b.imag() * ratio);
    return {(a.real() + a.imag() * ratio) * scale, (a.imag() - a.real() * ratio) * scale};
  }
  const T ratio = b.real() / b.imag(), scale = T(1) / (b.imag() + b.real() * ratio);
  return {(a.real() * ratio + a.imag()) * scale, (a.imag() * ratio - a.real()) * scale};
}
template <class A, class B>
DACE_HDFI auto quotient(const A &a, const B &b) {
  return a / b;
}

}  // namespace distspmd
