// Functions of LAPACK on matrices with any strides: each takes views of its operands and of its
// results, and returns what LAPACK reports, 0 for success. The text of nodes/lapack.py calls them,
// after the header of the BLAS, which may give the functions of LAPACK other names.
#pragma once

#include <algorithm>
#include <cmath>
#include <complex>
#include <cstdint>
#include <limits>
#include <type_traits>
#include <vector>

namespace distspmd {
namespace lapack {

template <class T>
struct RealOf {
  using type = T;
};
template <class T>
struct RealOf<std::complex<T>> {
  using type = T;
};
template <class T>
using Real = typename RealOf<std::remove_const_t<T>>::type;

template <class T>
constexpr bool is_complex = !std::is_same_v<std::remove_const_t<T>, Real<T>>;

/// A matrix in memory; a vector is one column, and a number one element.
template <class T>
struct View {
  T *data;
  std::int64_t rows, columns, down, across;

  T &operator()(std::int64_t i, std::int64_t j = 0) const { return data[i * down + j * across]; }
};

template <class T>
View<T> view(T *data, std::int64_t rows, std::int64_t columns, std::int64_t down,
             std::int64_t across) {
  return {data, rows, columns, down, across};
}

/// A matrix of its own, by columns, as LAPACK takes it.
template <class T>
struct Columns {
  int rows, columns, lead;
  std::vector<T> values;

  Columns(std::int64_t m, std::int64_t n)
      : rows(int(m)), columns(int(n)), lead(std::max(1, int(m))), values(std::size_t(lead) * n) {}

  template <class S>
  explicit Columns(const View<S> &from) : Columns(from.rows, from.columns) {
    for (int j = 0; j < columns; ++j)
      for (int i = 0; i < rows; ++i) (*this)(i, j) = from(i, j);
  }

  T &operator()(std::int64_t i, std::int64_t j) { return values[std::size_t(j) * lead + i]; }
  T *data() { return values.data(); }

  /// Its upper left part fills a view.
  void copy_to(const View<T> &to) {
    for (std::int64_t i = 0; i < to.rows; ++i)
      for (std::int64_t j = 0; j < to.columns; ++j) to(i, j) = (*this)(i, j);
  }
};

template <class S>
Columns(const View<S> &) -> Columns<std::remove_const_t<S>>;

/// What is left of a result where LAPACK reports an error.
template <class T>
void spoil(const View<T> &to) {
  for (std::int64_t i = 0; i < to.rows; ++i)
    for (std::int64_t j = 0; j < to.columns; ++j)
      to(i, j) = std::is_integral_v<T> ? T(0) : T(std::numeric_limits<Real<T>>::quiet_NaN());
}

// --- the functions, by the type of the elements --------------------------------------------------

#define DISTSPMD_LAPACK_OF(T, R, gesv_, getrf_, getrs_, potrf_, potrs_, geqrf_, orgqr_, trtrs_)        \
  extern "C" {                                                                                         \
  void gesv_(const int *, const int *, T *, const int *, int *, T *, const int *, int *);              \
  void getrf_(const int *, const int *, T *, const int *, int *, int *);                               \
  void getrs_(const char *, const int *, const int *, const T *, const int *, const int *, T *,        \
              const int *, int *);                                                                     \
  void potrf_(const char *, const int *, T *, const int *, int *);                                     \
  void potrs_(const char *, const int *, const int *, const T *, const int *, T *, const int *, int *);\
  void geqrf_(const int *, const int *, T *, const int *, T *, T *, const int *, int *);               \
  void orgqr_(const int *, const int *, const int *, T *, const int *, const T *, T *, const int *,    \
              int *);                                                                                  \
  void trtrs_(const char *, const char *, const char *, const int *, const int *, const T *,           \
              const int *, T *, const int *, int *);                                                   \
  }                                                                                                    \
  inline int gesv(Columns<T> &a, int *p, Columns<T> &b) {                                              \
    int info = 0;                                                                                      \
    gesv_(&a.rows, &b.columns, a.data(), &a.lead, p, b.data(), &b.lead, &info);                        \
    return info;                                                                                       \
  }                                                                                                    \
  inline int getrf(Columns<T> &a, int *p) {                                                            \
    int info = 0;                                                                                      \
    getrf_(&a.rows, &a.columns, a.data(), &a.lead, p, &info);                                          \
    return info;                                                                                       \
  }                                                                                                    \
  inline int getrs(char trans, Columns<T> &a, const int *p, Columns<T> &b) {                           \
    int info = 0;                                                                                      \
    getrs_(&trans, &a.rows, &b.columns, a.data(), &a.lead, p, b.data(), &b.lead, &info);               \
    return info;                                                                                       \
  }                                                                                                    \
  inline int potrf(char part, Columns<T> &a) {                                                         \
    int info = 0;                                                                                      \
    potrf_(&part, &a.rows, a.data(), &a.lead, &info);                                                  \
    return info;                                                                                       \
  }                                                                                                    \
  inline int potrs(char part, Columns<T> &a, Columns<T> &b) {                                          \
    int info = 0;                                                                                      \
    potrs_(&part, &a.rows, &b.columns, a.data(), &a.lead, b.data(), &b.lead, &info);                   \
    return info;                                                                                       \
  }                                                                                                    \
  inline int geqrf(Columns<T> &a, T *tau) {                                                            \
    int info = 0, ask = -1;                                                                            \
    T size{};                                                                                          \
    geqrf_(&a.rows, &a.columns, a.data(), &a.lead, tau, &size, &ask, &info);                           \
    std::vector<T> work(std::size_t(std::real(size)) + 1);                                             \
    const int length = int(work.size());                                                               \
    geqrf_(&a.rows, &a.columns, a.data(), &a.lead, tau, work.data(), &length, &info);                  \
    return info;                                                                                       \
  }                                                                                                    \
  inline int orgqr(Columns<T> &q, int reflectors, const T *tau) {                                      \
    int info = 0, ask = -1;                                                                            \
    T size{};                                                                                          \
    orgqr_(&q.rows, &q.columns, &reflectors, q.data(), &q.lead, tau, &size, &ask, &info);              \
    std::vector<T> work(std::size_t(std::real(size)) + 1);                                             \
    const int length = int(work.size());                                                               \
    orgqr_(&q.rows, &q.columns, &reflectors, q.data(), &q.lead, tau, work.data(), &length, &info);     \
    return info;                                                                                       \
  }                                                                                                    \
  inline int trtrs(char part, char trans, char diagonal, Columns<T> &a, Columns<T> &b) {               \
    int info = 0;                                                                                      \
    trtrs_(&part, &trans, &diagonal, &a.rows, &b.columns, a.data(), &a.lead, b.data(), &b.lead, &info);\
    return info;                                                                                       \
  }

DISTSPMD_LAPACK_OF(float, float, sgesv_, sgetrf_, sgetrs_, spotrf_, spotrs_, sgeqrf_, sorgqr_, strtrs_)
DISTSPMD_LAPACK_OF(double, double, dgesv_, dgetrf_, dgetrs_, dpotrf_, dpotrs_, dgeqrf_, dorgqr_, dtrtrs_)
DISTSPMD_LAPACK_OF(std::complex<float>, float, cgesv_, cgetrf_, cgetrs_, cpotrf_, cpotrs_, cgeqrf_, cungqr_,
                   ctrtrs_)
DISTSPMD_LAPACK_OF(std::complex<double>, double, zgesv_, zgetrf_, zgetrs_, zpotrf_, zpotrs_, zgeqrf_, zungqr_,
                   ztrtrs_)
#undef DISTSPMD_LAPACK_OF

#define DISTSPMD_LAPACK_REAL(T, syevd_, gesdd_, gelsd_, geev_)                                         \
  extern "C" {                                                                                         \
  void syevd_(const char *, const char *, const int *, T *, const int *, T *, T *, const int *, int *, \
              const int *, int *);                                                                     \
  void gesdd_(const char *, const int *, const int *, T *, const int *, T *, T *, const int *, T *,    \
              const int *, T *, const int *, int *, int *);                                            \
  void gelsd_(const int *, const int *, const int *, T *, const int *, T *, const int *, T *,          \
              const T *, int *, T *, const int *, int *, int *);                                       \
  void geev_(const char *, const char *, const int *, T *, const int *, T *, T *, T *, const int *,    \
             T *, const int *, T *, const int *, int *);                                               \
  }                                                                                                    \
  inline int geev(char job, Columns<T> &a, T *real, T *imaginary, Columns<T> &v) {                     \
    int info = 0, ask = -1;                                                                            \
    const int one = 1;                                                                                 \
    const char no = 'N';                                                                               \
    T size{}, left{};                                                                                  \
    geev_(&no, &job, &a.rows, a.data(), &a.lead, real, imaginary, &left, &one, v.data(), &v.lead,      \
          &size, &ask, &info);                                                                         \
    std::vector<T> work(std::size_t(size) + 1);                                                        \
    const int length = int(work.size());                                                               \
    geev_(&no, &job, &a.rows, a.data(), &a.lead, real, imaginary, &left, &one, v.data(), &v.lead,      \
          work.data(), &length, &info);                                                                \
    return info;                                                                                       \
  }                                                                                                    \
  inline int heevd(char job, char part, Columns<T> &a, T *w) {                                         \
    int info = 0, ask = -1, count = 0;                                                                 \
    T size{};                                                                                          \
    syevd_(&job, &part, &a.rows, a.data(), &a.lead, w, &size, &ask, &count, &ask, &info);              \
    std::vector<T> work(std::size_t(size) + 1);                                                        \
    std::vector<int> whole(std::size_t(count) + 1);                                                    \
    const int length = int(work.size()), wholes = int(whole.size());                                   \
    syevd_(&job, &part, &a.rows, a.data(), &a.lead, w, work.data(), &length, whole.data(), &wholes,    \
           &info);                                                                                     \
    return info;                                                                                       \
  }                                                                                                    \
  inline int gesdd(char job, Columns<T> &a, T *s, Columns<T> &u, Columns<T> &v) {                      \
    int info = 0, ask = -1;                                                                            \
    T size{};                                                                                          \
    std::vector<int> whole(8 * std::size_t(std::min(a.rows, a.columns)) + 1);                          \
    gesdd_(&job, &a.rows, &a.columns, a.data(), &a.lead, s, u.data(), &u.lead, v.data(), &v.lead,      \
           &size, &ask, whole.data(), &info);                                                          \
    std::vector<T> work(std::size_t(size) + 1);                                                        \
    const int length = int(work.size());                                                               \
    gesdd_(&job, &a.rows, &a.columns, a.data(), &a.lead, s, u.data(), &u.lead, v.data(), &v.lead,      \
           work.data(), &length, whole.data(), &info);                                                 \
    return info;                                                                                       \
  }                                                                                                    \
  inline int gelsd(Columns<T> &a, Columns<T> &b, T *s, T rcond, int *rank) {                           \
    int info = 0, ask = -1, count = 0;                                                                 \
    T size{};                                                                                          \
    gelsd_(&a.rows, &a.columns, &b.columns, a.data(), &a.lead, b.data(), &b.lead, s, &rcond, rank,     \
           &size, &ask, &count, &info);                                                                \
    std::vector<T> work(std::size_t(size) + 1);                                                        \
    std::vector<int> whole(std::size_t(count) + 1);                                                    \
    const int length = int(work.size());                                                               \
    gelsd_(&a.rows, &a.columns, &b.columns, a.data(), &a.lead, b.data(), &b.lead, s, &rcond, rank,     \
           work.data(), &length, whole.data(), &info);                                                 \
    return info;                                                                                       \
  }

DISTSPMD_LAPACK_REAL(float, ssyevd_, sgesdd_, sgelsd_, sgeev_)
DISTSPMD_LAPACK_REAL(double, dsyevd_, dgesdd_, dgelsd_, dgeev_)
#undef DISTSPMD_LAPACK_REAL

#define DISTSPMD_LAPACK_COMPLEX(T, R, heevd_, gesdd_, gelsd_, geev_)                                   \
  extern "C" {                                                                                         \
  void heevd_(const char *, const char *, const int *, T *, const int *, R *, T *, const int *, R *,   \
              const int *, int *, const int *, int *);                                                 \
  void gesdd_(const char *, const int *, const int *, T *, const int *, R *, T *, const int *, T *,    \
              const int *, T *, const int *, R *, int *, int *);                                       \
  void gelsd_(const int *, const int *, const int *, T *, const int *, T *, const int *, R *,          \
              const R *, int *, T *, const int *, R *, int *, int *);                                  \
  void geev_(const char *, const char *, const int *, T *, const int *, T *, T *, const int *, T *,    \
             const int *, T *, const int *, R *, int *);                                               \
  }                                                                                                    \
  inline int heevd(char job, char part, Columns<T> &a, R *w) {                                         \
    int info = 0, ask = -1, count = 0;                                                                 \
    T size{};                                                                                          \
    R reals{};                                                                                         \
    heevd_(&job, &part, &a.rows, a.data(), &a.lead, w, &size, &ask, &reals, &ask, &count, &ask, &info);\
    std::vector<T> work(std::size_t(size.real()) + 1);                                                 \
    std::vector<R> real(std::size_t(reals) + 1);                                                       \
    std::vector<int> whole(std::size_t(count) + 1);                                                    \
    const int length = int(work.size()), own = int(real.size()), wholes = int(whole.size());           \
    heevd_(&job, &part, &a.rows, a.data(), &a.lead, w, work.data(), &length, real.data(), &own,        \
           whole.data(), &wholes, &info);                                                              \
    return info;                                                                                       \
  }                                                                                                    \
  inline int gesdd(char job, Columns<T> &a, R *s, Columns<T> &u, Columns<T> &v) {                      \
    int info = 0, ask = -1;                                                                            \
    T size{};                                                                                          \
    const std::size_t least = std::size_t(std::min(a.rows, a.columns));                                \
    const std::size_t most = std::size_t(std::max(a.rows, a.columns));                                 \
    std::vector<int> whole(8 * least + 1);                                                             \
    std::vector<R> real(std::max(5 * least * least + 7 * least, 2 * (most + least) * least + least) + 1);\
    gesdd_(&job, &a.rows, &a.columns, a.data(), &a.lead, s, u.data(), &u.lead, v.data(), &v.lead,      \
           &size, &ask, real.data(), whole.data(), &info);                                             \
    std::vector<T> work(std::size_t(size.real()) + 1);                                                 \
    const int length = int(work.size());                                                               \
    gesdd_(&job, &a.rows, &a.columns, a.data(), &a.lead, s, u.data(), &u.lead, v.data(), &v.lead,      \
           work.data(), &length, real.data(), whole.data(), &info);                                    \
    return info;                                                                                       \
  }                                                                                                    \
  inline int gelsd(Columns<T> &a, Columns<T> &b, R *s, R rcond, int *rank) {                           \
    int info = 0, ask = -1, count = 0;                                                                 \
    T size{};                                                                                          \
    R reals{};                                                                                         \
    gelsd_(&a.rows, &a.columns, &b.columns, a.data(), &a.lead, b.data(), &b.lead, s, &rcond, rank,     \
           &size, &ask, &reals, &count, &info);                                                        \
    std::vector<T> work(std::size_t(size.real()) + 1);                                                 \
    std::vector<R> real(std::size_t(reals) + 1);                                                       \
    std::vector<int> whole(std::size_t(count) + 1);                                                    \
    const int length = int(work.size());                                                               \
    gelsd_(&a.rows, &a.columns, &b.columns, a.data(), &a.lead, b.data(), &b.lead, s, &rcond, rank,     \
           work.data(), &length, real.data(), whole.data(), &info);                                    \
    return info;                                                                                       \
  }                                                                                                    \
  inline int geev(char job, Columns<T> &a, T *w, Columns<T> &v) {                                      \
    int info = 0, ask = -1;                                                                            \
    const int one = 1;                                                                                 \
    const char no = 'N';                                                                               \
    T size{}, left{};                                                                                  \
    std::vector<R> real(2 * std::size_t(a.rows) + 1);                                                  \
    geev_(&no, &job, &a.rows, a.data(), &a.lead, w, &left, &one, v.data(), &v.lead, &size, &ask,       \
          real.data(), &info);                                                                         \
    std::vector<T> work(std::size_t(size.real()) + 1);                                                 \
    const int length = int(work.size());                                                               \
    geev_(&no, &job, &a.rows, a.data(), &a.lead, w, &left, &one, v.data(), &v.lead, work.data(),       \
          &length, real.data(), &info);                                                                \
    return info;                                                                                       \
  }

DISTSPMD_LAPACK_COMPLEX(std::complex<float>, float, cheevd_, cgesdd_, cgelsd_, cgeev_)
DISTSPMD_LAPACK_COMPLEX(std::complex<double>, double, zheevd_, zgesdd_, zgelsd_, zgeev_)
#undef DISTSPMD_LAPACK_COMPLEX

// --- what programs call --------------------------------------------------------------------------

template <class S, class T>
int solve(const View<S> &a, const View<S> &b, const View<T> &x) {
  Columns lu(a), found(b);
  if (lu.rows == 0 || found.columns == 0) return 0;
  std::vector<int> pivots(lu.rows);
  const int info = gesv(lu, pivots.data(), found);
  if (info == 0) found.copy_to(x);
  return info;
}

template <class S, class T>
int inverse(const View<S> &a, const View<T> &x) {
  Columns lu(a);
  Columns<T> found(a.rows, a.rows);
  if (lu.rows == 0) return 0;
  for (int i = 0; i < lu.rows; ++i) found(i, i) = T(1);
  std::vector<int> pivots(lu.rows);
  const int info = gesv(lu, pivots.data(), found);
  if (info == 0) found.copy_to(x);
  return info;
}

/// The sign of a determinant and the logarithm of its absolute value: 0 and -inf for singular ones.
template <class S, class T>
int logarithm_of_determinant(const View<S> &a, const View<T> &sign, const View<Real<T>> &log) {
  Columns lu(a);
  std::vector<int> pivots(lu.rows + 1);
  T unit(1);
  Real<T> sum(0);
  if (lu.rows > 0 && getrf(lu, pivots.data()) > 0) {
    unit = T(0);
    sum = -std::numeric_limits<Real<T>>::infinity();
  } else {
    for (int i = 0; i < lu.rows; ++i) {
      if (pivots[i] != i + 1) unit = -unit;
      const T element = lu(i, i);
      const Real<T> size = std::abs(element);
      if constexpr (is_complex<T>)
        unit *= element / size;
      else if (element < 0)
        unit = -unit;
      sum += std::log(size);
    }
  }
  sign(0) = unit;
  log(0) = sum;
  return 0;
}

/// The diagonal of the upper factor, with the signs of the exchanges of rows; zeros where it is singular.
template <class S, class T>
int diagonal_of_factor(const View<S> &a, const View<T> &diagonal) {
  Columns lu(a);
  std::vector<int> pivots(lu.rows + 1);
  const bool is_singular = lu.rows > 0 && getrf(lu, pivots.data()) > 0;
  for (int i = 0; i < lu.rows; ++i)
    diagonal(i) = is_singular ? T(0) : pivots[i] == i + 1 ? lu(i, i) : -lu(i, i);
  return 0;
}

/// The triangle of a positive definite matrix, of which one part is read.
template <char part, class S, class T>
int cholesky(const View<S> &a, const View<T> &x) {
  Columns found(a);
  const int info = found.rows > 0 ? potrf(part, found) : 0;
  if (info) return info;
  for (int j = 0; j < found.columns; ++j)
    for (int i = 0; i < found.rows; ++i)
      if (part == 'L' ? i < j : i > j) found(i, j) = T(0);
  found.copy_to(x);
  return 0;
}

template <class T>
void upper(Columns<T> &from, const View<T> &to) {
  for (std::int64_t i = 0; i < to.rows; ++i)
    for (std::int64_t j = 0; j < to.columns; ++j) to(i, j) = i <= j ? from(i, j) : T(0);
}

template <class S, class T>
int qr(const View<S> &a, const View<T> &q, const View<T> &r) {
  Columns found(a);
  const int least = std::min(found.rows, found.columns);
  std::vector<T> tau(least + 1);
  int info = least ? geqrf(found, tau.data()) : 0;
  upper(found, r);
  Columns<T> own(found.rows, q.columns);
  for (int j = 0; j < least; ++j) std::copy_n(&found(0, j), found.rows, &own(0, j));
  if (info == 0 && own.rows && own.columns) info = orgqr(own, least, tau.data());
  own.copy_to(q);
  return info;
}

template <class S, class T>
int triangle_of_qr(const View<S> &a, const View<T> &r) {
  Columns found(a);
  const int least = std::min(found.rows, found.columns);
  std::vector<T> tau(least + 1);
  const int info = least ? geqrf(found, tau.data()) : 0;
  upper(found, r);
  return info;
}

template <char part, class S, class T>
int eigenvectors(const View<S> &a, const View<Real<T>> &w, const View<T> &v) {
  Columns found(a);
  std::vector<Real<T>> values(found.rows + 1);
  const int info = found.rows ? heevd('V', part, found, values.data()) : 0;
  for (int i = 0; i < found.rows; ++i) w(i) = values[i];
  found.copy_to(v);
  return info;
}

template <char part, class S>
int eigenvalues(const View<S> &a, const View<Real<S>> &w) {
  Columns found(a);
  std::vector<Real<S>> values(found.rows + 1);
  const int info = found.rows ? heevd('N', part, found, values.data()) : 0;
  for (int i = 0; i < found.rows; ++i) w(i) = values[i];
  return info;
}

template <class S, class T>
int general_eigenvectors(const View<S> &a, const View<T> &w, const View<T> &v) {
  Columns found(a);
  Columns<T> vectors(found.rows, found.rows);
  std::vector<T> values(found.rows + 1);
  const int info = found.rows ? geev('V', found, values.data(), vectors) : 0;
  for (int i = 0; i < found.rows; ++i) w(i) = values[i];
  vectors.copy_to(v);
  return info;
}

template <class S, class T>
int general_eigenvalues(const View<S> &a, const View<T> &w) {
  Columns found(a);
  Columns<T> none(1, 1);
  std::vector<T> values(found.rows + 1);
  const int info = found.rows ? geev('N', found, values.data(), none) : 0;
  for (int i = 0; i < found.rows; ++i) w(i) = values[i];
  return info;
}

/// Of a real matrix, as complex numbers: the imaginary parts of what is real are 0.
template <class S, class T>
int eigenvectors_of_real(const View<S> &a, const View<T> &w, const View<T> &v) {
  Columns found(a);
  using R = Real<T>;
  Columns<R> vectors(found.rows, found.rows);
  std::vector<R> real(found.rows + 1), imaginary(found.rows + 1);
  const int info =
      found.rows ? geev('V', found, real.data(), imaginary.data(), vectors) : 0;
  for (int j = 0; j < found.rows; ++j) {
    w(j) = T(real[j], imaginary[j]);
    const int first = imaginary[j] < 0 && j > 0 ? j - 1 : j;  // of two that are conjugate
    const int second = imaginary[j] == 0 || first + 1 == found.rows ? first : first + 1;
    for (int i = 0; i < found.rows; ++i) {
      const R part = second == first ? R(0) : vectors(i, second);
      v(i, j) = T(vectors(i, first), imaginary[j] < 0 ? -part : part);
    }
  }
  return info;
}

template <class S, class T>
int eigenvalues_of_real(const View<S> &a, const View<T> &w) {
  Columns found(a);
  using R = Real<T>;
  Columns<R> none(1, 1);
  std::vector<R> real(found.rows + 1), imaginary(found.rows + 1);
  const int info = found.rows ? geev('N', found, real.data(), imaginary.data(), none) : 0;
  for (int j = 0; j < found.rows; ++j) w(j) = T(real[j], imaginary[j]);
  return info;
}

template <class S, class T>
int svd(const View<S> &a, const View<T> &u, const View<Real<T>> &s, const View<T> &v) {
  Columns found(a);
  const int least = std::min(found.rows, found.columns);
  const bool whole = u.columns > least || v.rows > least;
  Columns<T> left(u.rows, u.columns), right(v.rows, v.columns);
  std::vector<Real<T>> values(least + 1);
  int info = 0;
  if (least)
    info = gesdd(whole ? 'A' : 'S', found, values.data(), left, right);
  else {
    for (int i = 0; i < left.rows && i < left.columns; ++i) left(i, i) = T(1);
    for (int i = 0; i < right.rows && i < right.columns; ++i) right(i, i) = T(1);
  }
  for (int i = 0; i < least; ++i) s(i) = values[i];
  left.copy_to(u);
  right.copy_to(v);
  return info;
}

template <class S>
int singular_values(const View<S> &a, const View<Real<S>> &s) {
  Columns found(a);
  Columns<std::remove_const_t<S>> none(1, 1), other(1, 1);
  const int least = std::min(found.rows, found.columns);
  std::vector<Real<S>> values(least + 1);
  const int info = least ? gesdd('N', found, values.data(), none, other) : 0;
  for (int i = 0; i < least; ++i) s(i) = values[i];
  return info;
}

/// Least squares: solutions, sums of squared residuals, the rank, and the singular values.
/// Singular values below ``rcond`` times the largest count as zero; where it is not a number,
/// below what the larger extent makes of the rounding of one operation.
template <class S, class T>
int least_squares(const View<S> &a, const View<S> &b, double rcond, const View<T> &x,
                  const View<Real<T>> &residuals, const View<std::int64_t> &rank,
                  const View<Real<T>> &s) {
  Columns found(a);
  const int least = std::min(found.rows, found.columns);
  if (std::isnan(rcond))
    rcond = double(std::numeric_limits<Real<T>>::epsilon()) * std::max(found.rows, found.columns);
  Columns<T> solved(std::max(found.rows, found.columns), b.columns);
  for (std::int64_t i = 0; i < b.rows; ++i)
    for (std::int64_t j = 0; j < b.columns; ++j) solved(i, j) = b(i, j);
  std::vector<Real<T>> values(least + 1);
  int own = 0, info = 0;
  if (least && solved.columns) info = gelsd(found, solved, values.data(), Real<T>(rcond), &own);
  rank(0) = own;
  for (int i = 0; i < least; ++i) s(i) = values[i];
  solved.copy_to(x);
  for (int j = 0; j < solved.columns; ++j) {
    Real<T> sum(0);
    for (std::int64_t i = a.columns; i < a.rows; ++i) sum += std::norm(solved(i, j));
    residuals(j) = sum;
  }
  return info;
}

template <char part, char trans, char diagonal, class S, class T>
int solve_triangle(const View<S> &a, const View<S> &b, const View<T> &x) {
  Columns given(a), found(b);
  const int info =
      given.rows && found.columns ? trtrs(part, trans, diagonal, given, found) : 0;
  if (info == 0) found.copy_to(x);
  return info;
}

/// The factors of a matrix, and with which row each was exchanged, from 0; it may be singular.
template <class S, class T>
int factors(const View<S> &a, const View<T> &lu, const View<std::int32_t> &pivots) {
  Columns found(a);
  const int least = std::min(found.rows, found.columns);
  std::vector<int> rows(least + 1);
  if (least) getrf(found, rows.data());
  found.copy_to(lu);
  for (int i = 0; i < least; ++i) pivots(i) = rows[i] - 1;
  return 0;
}

template <char trans, class S, class P, class T>
int solve_factored(const View<S> &lu, const View<P> &pivots, const View<S> &b, const View<T> &x) {
  Columns given(lu), found(b);
  std::vector<int> rows(given.rows + 1);
  for (int i = 0; i < given.rows; ++i) rows[i] = int(pivots(i)) + 1;
  const int info = given.rows && found.columns ? getrs(trans, given, rows.data(), found) : 0;
  if (info == 0) found.copy_to(x);
  return info;
}

template <char part, class S, class T>
int solve_definite(const View<S> &triangle, const View<S> &b, const View<T> &x) {
  Columns given(triangle), found(b);
  const int info = given.rows && found.columns ? potrs(part, given, found) : 0;
  if (info == 0) found.copy_to(x);
  return info;
}

}  // namespace lapack
}  // namespace distspmd
