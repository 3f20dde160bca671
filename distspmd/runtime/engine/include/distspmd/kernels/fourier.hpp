// Discrete Fourier transforms of lines, of any length, in the precision of their elements.
//
// The library is PocketFFT. As many lines as a vector has lanes are transformed side by side, wherever they lie. A long
// line is a matrix, row by row: columns are transformed, turned by roots, and rows are transformed
// (the four-step method), so that a line alone has lanes too.
#pragma once

#include <algorithm>
#include <array>
#include <cmath>
#include <complex>
#include <cstdint>
#include <map>
#include <type_traits>
#include <vector>

#include "../third_party/pocketfft.hpp"
#include "complex_numbers.hpp"

namespace distspmd::fourier {

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

/// A dimension of a batch: how many lines, and elements from one to the next where they are read and written.
struct Along {
  int64_t count, in, out;
};

/// Lines that are transformed together, and elements from one element of a line to the next.
struct Lines {
  std::vector<Along> batch;
  int64_t in = 1, out = 1;

  int64_t count() const {
    int64_t all = 1;
    for (const Along &along : batch) all *= along.count;
    return all;
  }
  /// Where a line begins that is read, and that is written.
  std::array<int64_t, 2> begin(int64_t line) const {
    std::array<int64_t, 2> found{0, 0};
    for (auto along = batch.rbegin(); along != batch.rend(); ++along) {
      const int64_t place = line % along->count;
      found[0] += place * along->in, found[1] += place * along->out, line /= along->count;
    }
    return found;
  }
};

/// `N` numbers, one of each line.
template <class T, int N>
struct Lanes;
template <class T>
struct Lanes<T, 1> {
  using type = T;
};
template <>
struct Lanes<float, 8> {
  using type = float __attribute__((vector_size(32)));
};
template <>
struct Lanes<float, 16> {
  using type = float __attribute__((vector_size(64)));
};
template <>
struct Lanes<double, 4> {
  using type = double __attribute__((vector_size(32)));
};
template <>
struct Lanes<double, 8> {
  using type = double __attribute__((vector_size(64)));
};

template <class V, class T>
inline void put(V &lanes, int lane, T value) {
  if constexpr (std::is_arithmetic_v<V>)
    lanes = value;
  else
    lanes[lane] = value;
}
template <class V>
inline auto get(const V &lanes, int lane) {
  if constexpr (std::is_arithmetic_v<V>)
    return lanes;
  else
    return lanes[lane];
}

/// What the library knows of a length; each thread that calls has its own.
template <class Plan>
inline const Plan &plan_of(int64_t n) {
  thread_local std::map<int64_t, Plan> known;
  return known.try_emplace(n, n).first->second;
}

// What each kind of transform reads, does, and writes, for some lines side by side: `at(lane, k)` is
// element `k` of a line that is read, `to(lane, k)` of one that is written.

template <class T>
struct ComplexToComplex {
  using Plan = pocketfft::detail::pocketfft_c<T>;
  template <class V>
  using Element = pocketfft::detail::cmplx<V>;
  int64_t have, n;
  bool inverse;
  T scale;

  template <int N, class V, class At>
  void read(Element<V> *line, const At &at) const {
    const int64_t end = std::min(have, n);
    for (int64_t k = 0; k < end; ++k) {
      V real{}, imaginary{};
      for (int lane = 0; lane < N; ++lane) {
        const std::complex<T> value(at(lane, k));
        put(real, lane, value.real()), put(imaginary, lane, value.imag());
      }
      line[k].r = real, line[k].i = imaginary;
    }
    for (int64_t k = end; k < n; ++k) line[k].r = V{}, line[k].i = V{};
  }
  template <class V>
  void run(const Plan &plan, Element<V> *line) const {
    plan.exec(line, scale, !inverse);
  }
  template <int N, class V, class To>
  void write(const Element<V> *line, const To &to) const {
    for (int64_t k = 0; k < n; ++k) {
      const V real = line[k].r, imaginary = line[k].i;
      for (int lane = 0; lane < N; ++lane) to(lane, k) = {get(real, lane), get(imaginary, lane)};
    }
  }
};

/// The first `n / 2 + 1` elements; the library has real and imaginary parts in turn, but for the first.
template <class T>
struct RealToComplex {
  using Plan = pocketfft::detail::pocketfft_r<T>;
  template <class V>
  using Element = V;
  int64_t have, n;
  T scale;

  template <int N, class V, class At>
  void read(V *line, const At &at) const {
    const int64_t end = std::min(have, n);
    for (int64_t k = 0; k < end; ++k) {
      V value{};
      for (int lane = 0; lane < N; ++lane) put(value, lane, T(at(lane, k)));
      line[k] = value;
    }
    std::fill(line + end, line + n, V{});
  }
  template <class V>
  void run(const Plan &plan, V *line) const {
    plan.exec(line, scale, true);
  }
  template <int N, class V, class To>
  void write(const V *line, const To &to) const {
    for (int lane = 0; lane < N; ++lane) to(lane, 0) = get(line[0], lane);
    for (int64_t k = 1; 2 * k < n; ++k)
      for (int lane = 0; lane < N; ++lane) to(lane, k) = {get(line[2 * k - 1], lane), get(line[2 * k], lane)};
    if (n % 2 == 0)
      for (int lane = 0; lane < N; ++lane) to(lane, n / 2) = get(line[n - 1], lane);
  }
};

template <class T>
struct ComplexToReal {
  using Plan = pocketfft::detail::pocketfft_r<T>;
  template <class V>
  using Element = V;
  int64_t have, n;
  T scale;

  template <int N, class V, class At>
  void read(V *line, const At &at) const {
    for (int64_t k = 0; 2 * k <= n; ++k) {
      V real{}, imaginary{};
      for (int lane = 0; lane < N && k < have; ++lane) {
        const std::complex<T> value(at(lane, k));
        put(real, lane, value.real()), put(imaginary, lane, value.imag());
      }
      line[k == 0 ? 0 : 2 * k - 1] = real;
      if (k > 0 && 2 * k < n) line[2 * k] = imaginary;
    }
  }
  template <class V>
  void run(const Plan &plan, V *line) const {
    plan.exec(line, scale, false);
  }
  template <int N, class V, class To>
  void write(const V *line, const To &to) const {
    for (int64_t k = 0; k < n; ++k)
      for (int lane = 0; lane < N; ++lane) to(lane, k) = get(line[k], lane);
  }
};

/// Transform lines from `first`, `N` side by side.
template <int N, class T, class Job, class In, class Out>
inline void side_by_side(const Job &job, const typename Job::Plan &plan, const Lines &lines, int64_t first, const In *in,
                         Out *out, void *memory) {
  using V = typename Lanes<T, N>::type;
  auto *const line = static_cast<typename Job::template Element<V> *>(memory);
  const In *from[N];
  Out *into[N];
  bool beside = true;
  for (int lane = 0; lane < N; ++lane) {
    const auto [read, written] = lines.begin(first + lane);
    from[lane] = in + read, into[lane] = out + written;
    beside = beside && from[lane] == from[0] + lane && into[lane] == into[0] + lane;
  }
  const int64_t step = lines.in, out_step = lines.out;
  if (beside) {
    job.template read<N, V>(line, [&](int lane, int64_t k) -> const In & { return from[0][k * step + lane]; });
    job.run(plan, line);
    job.template write<N, V>(line, [&](int lane, int64_t k) -> Out & { return into[0][k * out_step + lane]; });
  } else {
    job.template read<N, V>(line, [&](int lane, int64_t k) -> const In & { return from[lane][k * step]; });
    job.run(plan, line);
    job.template write<N, V>(line, [&](int lane, int64_t k) -> Out & { return into[lane][k * out_step]; });
  }
}

/// Elements of lines from which threads share them.
constexpr int64_t SHARED = int64_t(1) << 14;

/// Transform as many lines from `first` as are whole groups of `N`; the first line that is left.
template <int N, class T, class Job, class In, class Out>
inline int64_t in_groups(const Job &job, const Lines &lines, int64_t first, int64_t end, const In *in, Out *out) {
  using Element = typename Job::template Element<typename Lanes<T, N>::type>;
  const typename Job::Plan &plan = plan_of<typename Job::Plan>(job.n);
  const int64_t groups = (end - first) / N;
#pragma omp parallel if (groups > 1 && groups * N * job.n >= SHARED)
  {
    pocketfft::detail::arr<Element> memory(job.n);
#pragma omp for
    for (int64_t k = 0; k < groups; ++k) side_by_side<N, T>(job, plan, lines, first + k * N, in, out, memory.data());
  }
  return first + groups * N;
}

template <class T, class Job, class In, class Out>
inline void transform(const Job &job, const Lines &lines, const In *in, Out *out) {
  constexpr int widest = 64 / sizeof(T);
  const int64_t end = lines.count();
  if (end <= 0 || job.n <= 0) return;
  // dense lines are far apart: fewer of them stay in the cache
  int64_t left = lines.in == 1 && lines.out == 1 ? 0 : in_groups<widest, T>(job, lines, 0, end, in, out);
  left = in_groups<widest / 2, T>(job, lines, left, end, in, out);
  in_groups<1, T>(job, lines, left, end, in, out);
}

/// Rows and columns of a line as a matrix, row by row; the rows are no more than the columns.
inline std::array<int64_t, 2> balanced(int64_t length) {
  int64_t rows = static_cast<int64_t>(std::sqrt(static_cast<double>(length))) + 1;
  while (rows > 1 && (length % rows || rows * rows > length)) --rows;
  return {rows, length / std::max<int64_t>(rows, 1)};
}

/// Roots of a large order, of two tables.
template <class T>
class Roots {
 public:
  explicit Roots(int64_t order) : order_(std::max<int64_t>(order, 1)) {
    while ((int64_t(1) << 2 * bits_) < order_) ++bits_;
    for (int64_t k = 0; k < int64_t(1) << bits_; ++k) low_.push_back(root<double>(k, order_));
    for (int64_t k = 0; k << bits_ < order_; ++k) high_.push_back(root<double>(k << bits_, order_));
  }
  /// `exp(-2 pi i k / order)` for a `k` from 0 to the order.
  std::complex<T> at(int64_t k) const {
    const std::complex<double> found = times(low_[k & ((int64_t(1) << bits_) - 1)], high_[k >> bits_]);
    return {T(found.real()), T(found.imag())};
  }
  int64_t order() const { return order_; }

 private:
  int64_t order_, bits_ = 0;
  std::vector<std::complex<double>> low_, high_;
};

/// Elements of a line from which it is a matrix, if that has as many rows as a vector has lanes.
constexpr int64_t LONG = 1 << 12;

/// One long line in four steps; whether it can be.
template <class T, class In>
inline bool in_four_steps(const ComplexToComplex<T> &job, const Lines &one, const In *in, std::complex<T> *out) {
  const auto [rows, columns] = balanced(job.n);
  if (job.n < LONG || job.have < job.n || rows < int64_t(64 / sizeof(T))) return false;
  thread_local std::map<int64_t, Roots<T>> known;
  const Roots<T> &roots = known.try_emplace(job.n, job.n).first->second;
  thread_local std::vector<std::complex<T>> kept;  // fresh memory costs as much as a step
  kept.resize(std::max<std::size_t>(kept.size(), job.n));
  std::complex<T> *const matrix = kept.data();
  const ComplexToComplex<T> down{rows, rows, job.inverse, T(1)}, across{columns, columns, job.inverse, job.scale};
  transform<T>(down, Lines{{{columns, one.in, 1}}, columns * one.in, columns}, in, matrix);
#pragma omp parallel for if (job.n >= SHARED)
  for (int64_t row = 1; row < rows; ++row)
    for (int64_t column = 1; column < columns; ++column) {
      const std::complex<T> turn = roots.at(row * column);
      std::complex<T> &each = matrix[row * columns + column];
      each = times(each, job.inverse ? std::conj(turn) : turn);
    }
  transform<T>(across, Lines{{{rows, columns, one.out}}, 1, rows * one.out}, matrix, out);
  return true;
}

/// The transforms of lines of `have` elements, cut or filled up with zeros to `n`, times `scale`.
template <class In, class T>
inline void complex_to_complex(const Lines &lines, const In *in, int64_t have, std::complex<T> *out, int64_t n,
                               bool inverse, double scale) {
  const ComplexToComplex<T> job{have, n, inverse, T(scale)};
  const int64_t count = n < LONG ? 0 : lines.count();
  for (int64_t line = 0; line < count; ++line) {
    const auto [read, written] = lines.begin(line);
    if (!in_four_steps(job, lines, in + read, out + written)) break;
    if (line + 1 == count) return;
  }
  transform<T>(job, lines, in, out);
}

/// Transform lines of `n` elements, one behind the other, in place.
template <class T>
inline void forward(std::complex<T> *lines, int64_t n, int64_t count) {
  if (n > 0) complex_to_complex(Lines{{{count, n, n}}}, lines, n, lines, n, false, 1.0);
}

/// The first `n / 2 + 1` elements of the transforms of real numbers.
template <class In, class T>
inline void real_to_complex(const Lines &lines, const In *in, int64_t have, std::complex<T> *out, int64_t n, double scale) {
  transform<T>(RealToComplex<T>{have, n, T(scale)}, lines, in, out);
}

/// The `n` real numbers of whose transforms the first elements are given.
template <class In, class T>
inline void complex_to_real(const Lines &lines, const In *in, int64_t have, T *out, int64_t n, double scale) {
  transform<T>(ComplexToReal<T>{have, n, T(scale)}, lines, in, out);
}

}  // namespace distspmd::fourier
