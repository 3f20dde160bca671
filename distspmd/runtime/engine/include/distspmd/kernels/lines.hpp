// What is done with one line of an array: scans, orders and searches, with NumPy's meaning.
//
// A line is `n` elements that lie one after the other. NaN is the largest number in every order.
#pragma once

#include <algorithm>
#include <cmath>
#include <complex>
#include <cstdint>
#include <numeric>
#include <type_traits>
#include <vector>

namespace distspmd::lines {

// --- orders ---

/// Whether `a` comes before `b`.
template <class T>
inline bool before(const T &a, const T &b) {
  if constexpr (std::is_floating_point_v<T>)
    return a < b || (b != b && a == a);
  else
    return a < b;
}

/// Complex numbers by their real parts, and then by the imaginary ones; those with a NaN last.
template <class T>
inline bool before(const std::complex<T> &a, const std::complex<T> &b) {
  const T p = a.real(), q = a.imag(), r = b.real(), s = b.imag();
  if (p < r) return q == q || s != s;
  if (p > r) return s != s && q == q;
  if (p == r || (p != p && r != r)) return q < s || (s != s && q == q);
  return r != r;
}

template <class T>
inline bool is_nan(const T &a) {
  return a != a;
}

/// The elements in order; equal ones stay in theirs.
template <class T>
inline void sort(const T *in, T *out, int64_t n) {
  std::copy(in, in + n, out);
  std::stable_sort(out, out + n, [](const T &a, const T &b) { return before(a, b); });
}

/// The places of the elements in order; of equal ones in theirs.
template <class T>
inline void argsort(const T *in, int64_t *out, int64_t n) {
  std::iota(out, out + n, int64_t(0));
  std::stable_sort(out, out + n, [in](int64_t a, int64_t b) { return before(in[a], in[b]); });
}

/// The elements in order, or in the reverse one, and their places; equal ones stay in theirs.
template <class T>
inline void in_order(const T *in, T *out, int64_t *places, int64_t n, bool reverse) {
  std::iota(places, places + n, int64_t(0));
  std::stable_sort(places, places + n, [in, reverse](int64_t a, int64_t b) {
    return reverse ? before(in[b], in[a]) : before(in[a], in[b]);
  });
  for (int64_t k = 0; k < n; ++k) out[k] = in[places[k]];
}

/// The first place of a line in order at which `value` could stand, or the last.
template <class T>
inline int64_t search(const T *line, int64_t n, const T &value, bool last) {
  const auto less = [](const T &a, const T &b) { return before(a, b); };
  return (last ? std::upper_bound(line, line + n, value, less) : std::lower_bound(line, line + n, value, less)) - line;
}

/// The same where `places` tell the order of the line.
template <class T, class Place>
inline int64_t search_by(const T *line, const Place *places, int64_t n, const T &value, bool last) {
  int64_t low = 0, high = n;
  while (low < high) {
    const int64_t middle = low + (high - low) / 2;
    const T &there = line[places[middle]];
    if (last ? !before(value, there) : before(there, value))
      low = middle + 1;
    else
      high = middle;
  }
  return low;
}

/// The bin of a value, of edges that grow or fall.
template <class T>
inline int64_t digit(const T *edges, int64_t n, const T &value, bool right) {
  if (n < 2 || !before(edges[n - 1], edges[0])) return search(edges, n, value, !right);
  int64_t low = 0, high = n;  // falling edges: those that are greater come first
  while (low < high) {
    const int64_t middle = low + (high - low) / 2;
    if (right ? !before(edges[middle], value) : before(value, edges[middle]))
      low = middle + 1;
    else
      high = middle;
  }
  return low;
}

/// The bin of a value between `n` edges that grow, the last of which is in its bin; else `n - 1`.
template <class T>
inline int64_t bin(const T *edges, int64_t n, const T &value) {
  if (!(value >= edges[0] && value <= edges[n - 1])) return n - 1;
  return std::min(search(edges, n, value, true) - 1, n - 2);
}

// --- scans ---

/// Each element combined with all before it.
template <class In, class Out, class Operation>
inline void scan(const In *in, Out *out, int64_t n, Operation operation) {
  if (n <= 0) return;
  Out sum = static_cast<Out>(in[0]);
  out[0] = sum;
  for (int64_t k = 1; k < n; ++k) out[k] = sum = static_cast<Out>(operation(sum, static_cast<Out>(in[k])));
}

/// For each of some places the elements up to the next one combined, or the element if that is not
/// behind it.
template <class T, class Operation>
inline void reduce_between(const T *in, const int64_t *places, T *out, int64_t count, int64_t n,
                           Operation operation) {
  for (int64_t j = 0; j < count; ++j) {
    const int64_t first = places[j], end = j + 1 < count ? places[j + 1] : n;
    T sum = in[first];
    for (int64_t k = first + 1; k < end; ++k) sum = static_cast<T>(operation(sum, in[k]));
    out[j] = sum;
  }
}

/// The extreme of the elements so far, and the last place of it; a NaN wins, and then the next one.
template <class T, class Wins>
inline void running(const T *in, T *out, int64_t *places, int64_t n, Wins wins) {
  int64_t best = 0;
  for (int64_t k = 0; k < n; ++k) {
    if (is_nan(in[k]) || (!is_nan(in[best]) && wins(in[k], in[best]))) best = k;
    out[k] = in[best];
    places[k] = best;
  }
}

// --- quantiles ---

/// How the place of a quantile between two elements is found, by NumPy's names of the methods.
enum class Quantile {
  inverted_cdf,
  averaged_inverted_cdf,
  closest_observation,
  interpolated_inverted_cdf,
  hazen,
  weibull,
  linear,
  median_unbiased,
  normal_unbiased,
  lower,
  higher,
  midpoint,
  nearest
};

/// Some elements of a line, by their places, which grow.
template <class T>
struct Few {
  const T *elements;
  const int64_t *places;
  int64_t count;
  const T &operator[](int64_t place) const { return elements[std::lower_bound(places, places + count, place) - places]; }
};
template <class T>
inline Few<T> few(const T *elements, const int64_t *places, int64_t count) {
  return {elements, places, count};
}

/// A quantile of a line in order that has no NaN.
template <class Out, class Line>
inline Out quantile_of_sorted(const Line &line, int64_t n, double q, Quantile method) {
  const double count = double(n);
  const auto between = [&](double a, double b) { return count * q + (a + q * (1 - a - b)) - 1; };
  const auto at = [&](double place) {
    return Out(line[std::clamp<int64_t>(int64_t(place), 0, n - 1)]);
  };
  double place = (count - 1) * q;
  switch (method) {
    case Quantile::inverted_cdf: {
      const double index = count * q - 1, floor = std::floor(index);
      return at(index == floor ? floor : floor + 1);
    }
    case Quantile::closest_observation: {
      const double index = count * q - 1.5, floor = std::floor(index);
      const bool is_odd = floor - 2 * std::floor(floor / 2) == 1;
      return at(index == floor && is_odd ? floor : floor + 1);
    }
    case Quantile::lower: return at(std::floor(place));
    case Quantile::higher: return at(std::ceil(place));
    case Quantile::nearest: return at(std::nearbyint(place));
    case Quantile::averaged_inverted_cdf: place = count * q - 1; break;
    case Quantile::interpolated_inverted_cdf: place = between(0, 1); break;
    case Quantile::hazen: place = between(0.5, 0.5); break;
    case Quantile::weibull: place = between(0, 0); break;
    case Quantile::median_unbiased: place = between(1 / 3.0, 1 / 3.0); break;
    case Quantile::normal_unbiased: place = between(3 / 8.0, 3 / 8.0); break;
    case Quantile::midpoint: place = 0.5 * (std::floor(place) + std::ceil(place)); break;
    default: break;
  }
  if (place >= count - 1) return Out(line[n - 1]);
  if (place < 0) return Out(line[0]);
  const double floor = std::floor(place);
  double part = place - floor;
  if (method == Quantile::averaged_inverted_cdf) part = part == 0 ? 0.5 : 1.0;
  if (method == Quantile::midpoint) part = part == 0 ? 0.0 : 0.5;
  const Out a = Out(line[int64_t(floor)]), b = Out(line[int64_t(floor) + 1]), t = Out(part);
  return t >= Out(0.5) ? b - (b - a) * (1 - t) : a + (b - a) * t;
}

/// How many elements of a line in order count: none if it has a NaN, or all but those, as `skips` says.
template <class Line>
inline int64_t numbers_of(const Line &line, int64_t n, bool skips) {
  if (!skips && n > 0 && is_nan(line[n - 1])) return 0;
  while (n > 0 && is_nan(line[n - 1])) --n;
  return n;
}

/// Quantiles of a line in order: NaN if it has one, or without those, as `skips` says.
template <class Out, class Line>
inline void quantiles(const Line &line, int64_t n, const double *q, int64_t many, Out *out, Quantile method,
                      bool skips) {
  const int64_t numbers = numbers_of(line, n, skips);
  for (int64_t k = 0; k < many; ++k)
    if (numbers == 0)
      out[k] = Out(std::numeric_limits<double>::quiet_NaN());
    else
      out[k] = quantile_of_sorted<Out>(line, numbers, q[k], method);
}

/// The middle of a line in order, or the mean of the two there.
template <class Out, class Line>
inline Out median(const Line &line, int64_t n, bool skips) {
  const int64_t numbers = numbers_of(line, n, skips);
  if (numbers == 0) return Out(std::numeric_limits<double>::quiet_NaN());
  const int64_t half = numbers / 2;
  return numbers % 2 ? Out(line[half]) : (Out(line[half - 1]) + Out(line[half])) / Out(2);
}

// --- between points ---

/// Linear interpolation at `x` between points in order, as np.interp.
template <class Out>
inline Out interpolate(double x, const double *xs, const Out *ys, int64_t n, Out left, Out right) {
  if (is_nan(x)) return Out(x);
  if (x > xs[n - 1]) return right;
  if (x < xs[0]) return left;
  const int64_t j = std::upper_bound(xs, xs + n, x) - xs - 1;
  if (j >= n - 1) return ys[n - 1];
  if (xs[j] == x) return ys[j];
  const Out slope = (ys[j + 1] - ys[j]) / (xs[j + 1] - xs[j]);
  Out found = slope * (x - xs[j]) + ys[j];
  if (is_nan(found)) {
    found = slope * (x - xs[j + 1]) + ys[j + 1];
    if (is_nan(found) && ys[j] == ys[j + 1]) found = ys[j];
  }
  return found;
}

/// The sum of products of two lines of one length.
template <class T>
inline T dot(const T *a, const T *b, int64_t n) {
  T sum = T(0);
  for (int64_t k = 0; k < n; ++k) sum = static_cast<T>(sum + a[k] * b[k]);
  return sum;
}

/// A polynomial, of which the highest coefficient comes first.
template <class T>
inline T polynomial(const T *p, int64_t n, const T &x) {
  T sum = T(0);
  for (int64_t k = 0; k < n; ++k) sum = static_cast<T>(sum * x + p[k]);
  return sum;
}

}  // namespace distspmd::lines
