// Discrete Fourier transforms of lines, of any length, in the precision of their elements.
//
// Lengths whose prime factors are small are transformed by Stockham's algorithm of mixed radices,
// which needs no reordering; others as a convolution of such a length (Bluestein). A length of real
// numbers that is even is transformed as half as many complex ones.
#pragma once

#include <algorithm>
#include <cmath>
#include <complex>
#include <cstdint>
#include <map>
#include <memory>
#include <type_traits>
#include <vector>

#include "complex_numbers.hpp"

namespace distspmd::fourier {

constexpr int64_t LARGEST_FACTOR = 13;

/// `exp(-2 pi i k / n)`, rounded once.
template <class T>
inline std::complex<T> root(int64_t k, int64_t n) {
  const long double turn = 2 * 3.141592653589793238462643383279502884L;
  // of an eighth of a turn at most, sines and cosines are good
  k %= n;
  const int64_t eighths = (8 * k + n / 2) / n;
  const long double rest = turn * (8 * k - eighths * n) / (8 * (long double)n);
  const long double c = std::cos(rest), s = std::sin(rest), h = std::sqrt(0.5L);
  long double x = c, y = s;
  switch (eighths % 8) {
    case 1: x = h * (c - s), y = h * (c + s); break;
    case 2: x = -s, y = c; break;
    case 3: x = -h * (c + s), y = h * (c - s); break;
    case 4: x = -c, y = -s; break;
    case 5: x = h * (s - c), y = -h * (c + s); break;
    case 6: x = s, y = -c; break;
    case 7: x = h * (c + s), y = h * (s - c); break;
    default: break;
  }
  return {T(x), T(-y)};
}

/// All that transforms of one length need; its methods are for one thread.
template <class T>
class Transform {
  using Complex = std::complex<T>;

 public:
  explicit Transform(int64_t length) : n(length), roots(std::max<int64_t>(length, 1)) {
    int64_t left = n;
    for (int64_t factor : {int64_t(4), int64_t(2), int64_t(3), int64_t(5), int64_t(7), int64_t(11), LARGEST_FACTOR})
      while (left > 1 && left % factor == 0) factors.push_back(factor), left /= factor;
    if (left > 1) {
      prepare_convolution();
      return;
    }
    for (int64_t k = 0; k < n; ++k) roots[k] = root<T>(k, n);
    work.resize(n);
  }

  /// Transform `data` in place, by `exp(-2 pi i jk / n)`.
  void forward(Complex *data) {
    if (inner)
      convolve(data);
    else
      stockham(data);
  }

 private:
  void stockham(Complex *data) {
    Complex *x = data, *y = work.data();
    int64_t length = n, stride = 1;
    for (const int64_t p : factors) {
      switch (p) {
        case 2: pass<2>(x, y, length, stride); break;
        case 3: pass<3>(x, y, length, stride); break;
        case 4: pass<4>(x, y, length, stride); break;
        case 5: pass<5>(x, y, length, stride); break;
        case 7: pass<7>(x, y, length, stride); break;
        case 11: pass<11>(x, y, length, stride); break;
        default: pass<LARGEST_FACTOR>(x, y, length, stride); break;
      }
      length /= p, stride *= p;
      std::swap(x, y);
    }
    if (x != data) std::copy(x, x + n, data);
  }

  /// One pass: `stride` transforms, side by side, of `length` elements become `p` times as many.
  template <int64_t p>
  void pass(const Complex *x, Complex *y, int64_t length, int64_t stride) const {
    const int64_t m = length / p, step = n / length;
    Complex own[p];
    for (int64_t t = 0; t < p; ++t) own[t] = roots[t * (n / p)];
    for (int64_t q = 0; q < m; ++q) {
      Complex turn[p];
      for (int64_t t = 0; t < p; ++t) turn[t] = roots[t * q * step];
      const Complex *from = x + stride * q;
      Complex *into = y + stride * p * q;
      for (int64_t k = 0; k < stride; ++k) {
        Complex a[p], b[p];
        for (int64_t j = 0; j < p; ++j) a[j] = from[k + stride * m * j];
        butterfly<p>(a, b, own);
        into[k] = b[0];
        for (int64_t t = 1; t < p; ++t) into[k + stride * t] = times(b[t], turn[t]);
      }
    }
  }

  template <int64_t p>
  static void butterfly(const Complex *a, Complex *b, const Complex *own) {
    if constexpr (p == 2) {
      b[0] = a[0] + a[1], b[1] = a[0] - a[1];
    } else if constexpr (p == 4) {
      const Complex s = a[0] + a[2], d = a[0] - a[2], u = a[1] + a[3], v = a[1] - a[3];
      const Complex w{v.imag(), -v.real()};
      b[0] = s + u, b[1] = d + w, b[2] = s - u, b[3] = d - w;
    } else {  // of odd factors, elements j and p - j have conjugate roots
      constexpr int64_t half = (p - 1) / 2;
      Complex sums[half], differences[half];
      b[0] = a[0];
      for (int64_t j = 1; j <= half; ++j) {
        sums[j - 1] = a[j] + a[p - j], differences[j - 1] = a[j] - a[p - j];
        b[0] += sums[j - 1];
      }
      for (int64_t t = 1; t <= half; ++t) {
        Complex even = a[0], odd{0, 0};
        for (int64_t j = 1; j <= half; ++j) {
          const Complex w = own[j * t % p];
          even += w.real() * sums[j - 1];
          odd += w.imag() * differences[j - 1];
        }
        const Complex turned{-odd.imag(), odd.real()};
        b[t] = even + turned, b[p - t] = even - turned;
      }
    }
  }

  void prepare_convolution() {
    int64_t length = 2 * n - 1;
    for (;; ++length) {  // the next that has the factors 2, 3 and 5 alone
      int64_t left = length;
      for (int64_t factor : {2, 3, 5})
        while (left % factor == 0) left /= factor;
      if (left == 1) break;
    }
    factors.clear();
    inner = std::make_unique<Transform>(length);
    for (int64_t k = 0; k < n; ++k)  // exp(-pi i k^2 / n); k^2 modulo 2n keeps the angle small
      roots[k] = root<T>(int64_t((unsigned __int128)k * k % (2 * n)), 2 * n);
    chirp.assign(length, Complex(0));
    for (int64_t k = 0; k < n; ++k) chirp[k] = chirp[(length - k) % length] = std::conj(roots[k]);
    inner->forward(chirp.data());
    for (Complex &c : chirp) c /= T(length);
    work.resize(length);
  }

  void convolve(Complex *data) {
    std::fill(work.begin(), work.end(), Complex(0));
    for (int64_t k = 0; k < n; ++k) work[k] = times(data[k], roots[k]);
    inner->forward(work.data());
    for (size_t k = 0; k < work.size(); ++k) work[k] = std::conj(times(work[k], chirp[k]));
    inner->forward(work.data());
    for (int64_t k = 0; k < n; ++k) data[k] = times(std::conj(work[k]), roots[k]);
  }

  int64_t n;
  std::vector<int64_t> factors;
  std::vector<Complex> roots, chirp, work;
  std::unique_ptr<Transform> inner;
};

/// The transform of a length; each thread has its own.
template <class T>
inline Transform<T> &transform_of(int64_t n) {
  thread_local std::map<int64_t, Transform<T>> known;
  return known.try_emplace(n, n).first->second;
}

/// The first half of the roots of a length; each thread has its own.
template <class T>
inline const std::vector<std::complex<T>> &roots_of(int64_t n) {
  thread_local std::map<int64_t, std::vector<std::complex<T>>> known;
  std::vector<std::complex<T>> &found = known[n];
  if (found.empty())
    for (int64_t k = 0; k <= n / 2; ++k) found.push_back(root<T>(k, n));
  return found;
}

template <class In, class T>
inline void take(const In *in, int64_t have, std::complex<T> *out, int64_t n, bool conjugates) {
  for (int64_t k = 0; k < std::min(have, n); ++k) {
    out[k] = std::complex<T>(in[k]);
    if (conjugates) out[k] = std::conj(out[k]);
  }
  std::fill(out + std::min(have, n), out + n, std::complex<T>(0));
}

/// The transform of `have` elements, cut or filled up with zeros to `n`, times `scale`.
template <class In, class T>
inline void complex_to_complex(const In *in, int64_t have, std::complex<T> *out, int64_t n, bool inverse, double scale) {
  take(in, have, out, n, inverse);
  transform_of<T>(n).forward(out);
  for (int64_t k = 0; k < n; ++k) out[k] = (inverse ? std::conj(out[k]) : out[k]) * T(scale);
}

/// The first `n / 2 + 1` elements of the transform of real numbers.
template <class In, class T>
inline void real_to_complex(const In *in, int64_t have, std::complex<T> *out, int64_t n, double scale) {
  using Complex = std::complex<T>;
  thread_local std::vector<Complex> packed;
  const auto at = [&](int64_t k) { return k < have ? T(in[k]) : T(0); };
  const int64_t half = n / 2;
  if (n % 2) {
    packed.resize(n);
    take(in, have, packed.data(), n, false);
    transform_of<T>(n).forward(packed.data());
    for (int64_t k = 0; k <= half; ++k) out[k] = packed[k] * T(scale);
    return;
  }
  packed.resize(half);
  for (int64_t k = 0; k < half; ++k) packed[k] = {at(2 * k), at(2 * k + 1)};
  transform_of<T>(half).forward(packed.data());
  const std::vector<Complex> &roots = roots_of<T>(n);
  for (int64_t k = 0; k <= half; ++k) {
    const Complex a = packed[k % half], b = std::conj(packed[(half - k) % half]);
    const Complex even = T(0.5) * (a + b), odd = T(0.5) * (a - b);
    out[k] = (even + times(times(odd, Complex(0, -1)), roots[k])) * T(scale);
  }
}

/// The `n` real numbers of whose transform the first elements are given.
template <class In, class T>
inline void complex_to_real(const In *in, int64_t have, T *out, int64_t n, double scale) {
  using Complex = std::complex<T>;
  thread_local std::vector<Complex> packed;
  packed.resize(n);
  const int64_t half = n / 2;
  const auto at = [&](int64_t k) { return k < have ? Complex(in[k]) : Complex(0); };
  packed[0] = at(0).real();
  for (int64_t k = 1; k <= half; ++k) {  // what is conjugated here is conjugated back in the results
    packed[k] = std::conj(at(k));
    packed[n - k] = at(k);
  }
  if (n % 2 == 0) packed[half] = at(half).real();
  transform_of<T>(n).forward(packed.data());
  for (int64_t k = 0; k < n; ++k) out[k] = packed[k].real() * T(scale);
}

}  // namespace distspmd::fourier
