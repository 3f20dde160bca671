// Eigenvalues and singular values of one matrix whose columns are dealt, by ScaLAPACK.
//
// Blocks of columns that are dealt in turn are ScaLAPACK's own layout for one row of processes, so it
// works on them where they lie. The library is loaded when the first matrix is in parts: programs need no
// other link, and DISTSPMD_SCALAPACK says which files, the ones first that the last one needs.
#pragma once

#include <dlfcn.h>

#include <string>

#include <distspmd/kernels/dealt_matrix.hpp>

#ifndef DISTSPMD_SCALAPACK
#define DISTSPMD_SCALAPACK ""
#endif

namespace distspmd {
namespace lapack {

/// The functions of the library, by their names.
class ScaLAPACK {
 public:
  static const ScaLAPACK &loaded(const Team &team) {
    static const ScaLAPACK library;
    if (!library.error_.empty()) team.end(library.error_.c_str());
    return library;
  }

  template <class Function = void (*)(...)>
  Function *function(const std::string &name) const {
    return reinterpret_cast<Function *>(dlsym(library_, name.c_str()));
  }

 private:
  ScaLAPACK() {
    std::string files = DISTSPMD_SCALAPACK;
    for (std::size_t at = 0, end; at <= files.size(); at = end + 1) {
      end = std::min(files.find(':', at), files.size());
      const std::string file = files.substr(at, end - at);
      library_ = dlopen(file.c_str(), RTLD_NOW | RTLD_GLOBAL);
      if (library_) continue;
      const char *why = dlerror();
      error_ = "ScaLAPACK was there when the program was compiled, but " + file + " cannot be loaded: " +
               (why ? why : "?") + ". Set DISTSPMD_SCALAPACK to its library, or to none, and compile again";
      return;
    }
  }

  void *library_ = nullptr;
  std::string error_;
};

/// One row of processes, which the workers of a team are; matrices are described by what is known of them.
class Grid {
 public:
  Grid(const Team &team, std::int64_t width) : team_(team), library_(ScaLAPACK::loaded(team)), width_(int(width)) {
    system_ = call<int(std::intptr_t)>("Csys2blacs_handle")(static_cast<std::intptr_t>(team.communicator()));
    context_ = system_;
    call<void(int *, const char *, int, int)>("Cblacs_gridinit")(&context_, "Row", 1, int(team.size()));
  }
  Grid(const Grid &) = delete;
  Grid &operator=(const Grid &) = delete;
  ~Grid() {
    call<void(int)>("Cblacs_gridexit")(context_);
    call<void(int)>("Cfree_blacs_system_handle")(system_);
  }

  template <class Function>
  Function *call(const std::string &name) const {
    Function *const found = library_.function<Function>(name);
    if (!found) team_.end((DISTSPMD_SCALAPACK " has no function " + name).c_str());
    return found;
  }

  /// On all ranks: what is so many rows above or below the diagonal, from the first column that has it on.
  template <class T>
  std::vector<Real<T>> diagonal(Dealt<T> &a, std::int64_t down) const {
    std::vector<Real<T>> found(std::size_t(std::max<std::int64_t>(0, a.rows - std::abs(down))), 0);
    for (std::int64_t b = 0; b < a.blocks(); ++b)
      for (std::int64_t j = a.begin(b); a.owns(b) && j < a.begin(b + 1); ++j)
        if (j + down >= 0 && j + down < a.rows)
          found[std::size_t(j + std::min<std::int64_t>(down, 0))] = std::real(a.at(b, j + down)[(j - a.begin(b)) * a.rows]);
    const int n = int(found.size());
    const std::string name = std::string("C") + (sizeof(Real<T>) == 4 ? "s" : "d") + "gsum2d";
    using Sum = void(int, const char *, const char *, int, int, Real<T> *, int, int, int);
    if (n) call<Sum>(name)(context_, "All", " ", n, 1, found.data(), n, -1, -1);
    return found;
  }

  /// A matrix whose columns are dealt, for calls.
  struct Description {
    int words[9];
  };
  Description describe(std::int64_t rows, std::int64_t columns) const {
    return {{1, context_, int(rows), int(columns), width_, width_, 0, 0, std::max(1, int(rows))}};
  }

 private:
  const Team &team_;
  const ScaLAPACK &library_;
  int width_, system_, context_;
};

template <class T>
std::string letter() {
  return is_complex<T> ? (sizeof(T) == 8 ? "c" : "z") : (sizeof(T) == 4 ? "s" : "d");
}

#define DISTSPMD_BANDS(T, sterf_, bdsdc_)                                                                          \
  extern "C" {                                                                                                     \
  void sterf_(const int *, T *, T *, int *);                                                                       \
  void bdsdc_(const char *, const char *, const int *, T *, T *, T *, const int *, T *, const int *, T *, int *,   \
              T *, int *, int *);                                                                                  \
  }                                                                                                                \
  /* Eigenvalues of a tridiagonal, which replace its diagonal. */                                                  \
  inline int sterf(std::vector<T> &diagonal, std::vector<T> &beside) {                                             \
    const int n = int(diagonal.size());                                                                            \
    int info = 0;                                                                                                  \
    sterf_(&n, diagonal.data(), beside.data(), &info);                                                             \
    return info;                                                                                                   \
  }                                                                                                                \
  /* Singular values of an upper or lower bidiagonal, which replace its diagonal, and vectors. */                  \
  inline int bdsdc(char part, std::vector<T> &diagonal, std::vector<T> &beside, Columns<T> *left,                  \
                   Columns<T> *right) {                                                                            \
    const int n = int(diagonal.size());                                                                            \
    const char job = left ? 'I' : 'N';                                                                             \
    std::vector<T> work(std::size_t(n) * (left ? 3 * n + 4 : 6));                                                  \
    std::vector<int> whole(8 * std::size_t(n));                                                                    \
    T none[1];                                                                                                     \
    int info = 0, one = 1;                                                                                         \
    bdsdc_(&part, &job, &n, diagonal.data(), beside.data(), left ? left->data() : none, left ? &left->lead : &one, \
           right ? right->data() : none, right ? &right->lead : &one, none, &one, work.data(), whole.data(),       \
           &info);                                                                                                 \
    return info;                                                                                                   \
  }

DISTSPMD_BANDS(float, ssterf_, sbdsdc_)
DISTSPMD_BANDS(double, dsterf_, dbdsdc_)
#undef DISTSPMD_BANDS

/// Call twice: for the sizes of the working memory, and with it. What is complex takes real memory too.
template <class T, class Call>
int with_memory(std::int64_t least, const Call &call) {
  std::vector<T> work(1);
  std::vector<Real<T>> real(1);
  std::vector<int> whole(1);
  int info = call(work.data(), -1, real.data(), -1, whole.data(), -1);
  if (info) return info;
  const auto size = [&](auto told) { return std::max(least, std::int64_t(std::real(told) * 1.0001) + 1); };
  work.resize(std::size_t(size(work[0]))), real.resize(std::size_t(size(real[0])));
  whole.resize(std::size_t(std::max<std::int64_t>(least, whole[0])));
  return call(work.data(), int(work.size()), real.data(), int(real.size()), whole.data(), int(whole.size()));
}

/// Whether all elements are numbers that have an end, on all ranks, which ask together.
template <class T>
bool is_finite(const Team &team, Dealt<T> *a) {
  bool is_so = true;
  for (std::int64_t j = 0; a && j < a->columns; ++j)
    for (std::int64_t i = 0; i < a->rows; ++i) is_so &= std::isfinite(std::abs(a->column(j)[i]));
  return !team.any(!is_so);
}

template <class T>
void write_own(const std::vector<T> &found, const Window<T> &out) {
  for (std::int64_t i = 0; i < out.box.rows; ++i) out.data[i * out.down] = found[std::size_t(out.box.row + i)];
}

/// Eigenvalues, in order, and eigenvectors; what ScaLAPACK reports.
template <class T>
int eigen(char part, Dealt<T> &a, Dealt<T> &vectors, std::int64_t width, std::vector<Real<T>> &values) {
  const Grid grid(a.team, width);
  const int n = int(a.rows), one = 1;
  const auto of = grid.describe(n, n);
  const char job = 'V';
  const std::string name = "p" + letter<T>() + (is_complex<T> ? "heevd_" : "syevd_");
  return with_memory<T>(4 * n, [&](T *work, int length, Real<T> *real, int reals, int *whole, int wholes) {
    int info = 0;
    const auto call = [&](auto... memory) {
      grid.call<void(const char *, const char *, const int *, T *, const int *, const int *, const int *, Real<T> *, T *,
                     const int *, const int *, const int *, decltype(memory)..., int *)>(name)(
          &job, &part, &n, a.column(0), &one, &one, of.words, values.data(), vectors.column(0), &one, &one, of.words,
          memory..., &info);
    };
    if constexpr (is_complex<T>)
      call(work, &length, real, &reals, whole, &wholes);
    else
      call(work, &length, whole, &wholes);
    return info;
  });
}

/// Eigenvalues alone: of a tridiagonal, which all ranks have then.
template <class T>
int eigen(char part, Dealt<T> &a, std::int64_t width, std::vector<Real<T>> &values) {
  const Grid grid(a.team, width);
  const int n = int(a.rows), one = 1;
  const auto of = grid.describe(n, n);
  const std::string name = "p" + letter<T>() + (is_complex<T> ? "hetrd_" : "sytrd_");
  std::vector<Real<T>> diagonal(std::size_t(a.columns) + 1), beside(diagonal);
  std::vector<T> factors(diagonal.size());
  const int info = with_memory<T>(n, [&](T *work, int length, Real<T> *, int, int *, int) {
    int found = 0;
    grid.call<void(const char *, const int *, T *, const int *, const int *, const int *, Real<T> *, Real<T> *, T *, T *,
                   const int *, int *)>(name)(&part, &n, a.column(0), &one, &one, of.words, diagonal.data(),
                                              beside.data(), factors.data(), work, &length, &found);
    return found;
  });
  values = grid.diagonal(a, 0);
  std::vector<Real<T>> off = grid.diagonal(a, part == 'L' ? 1 : -1);
  return info ? info : sterf(values, off);
}

/// Singular values, the largest first, and vectors where there is room for them: of a square matrix.
template <class T>
int singular(Dealt<T> &a, Dealt<T> *left, Dealt<T> *right, std::int64_t width, std::vector<Real<T>> &values) {
  const Grid grid(a.team, width);
  const int n = int(a.rows), one = 1;
  const auto of = grid.describe(n, n);
  std::vector<Real<T>> diagonal(std::size_t(n) + 1), beside(diagonal);
  std::vector<T> of_left(diagonal.size()), of_right(diagonal.size());
  int info = with_memory<T>(n, [&](T *work, int length, Real<T> *, int, int *, int) {
    int found = 0;
    grid.call<void(const int *, const int *, T *, const int *, const int *, const int *, Real<T> *, Real<T> *, T *, T *,
                   T *, const int *, int *)>("p" + letter<T>() + "gebrd_")(
        &n, &n, a.column(0), &one, &one, of.words, diagonal.data(), beside.data(), of_left.data(), of_right.data(), work,
        &length, &found);
    return found;
  });
  values = grid.diagonal(a, 0);
  std::vector<Real<T>> off = grid.diagonal(a, -1);
  const int side = left ? n : 1;
  Columns<Real<T>> u(side, side), v(side, side);
  if (!info) info = bdsdc('U', values, off, left ? &u : nullptr, left ? &v : nullptr);
  if (info || !left) return info;
  const auto vectors = [&](Dealt<T> &to, Columns<Real<T>> &from, char which, char where, char op, const T *factors) {
    for (std::int64_t b = 0; b < to.blocks(); ++b)
      for (std::int64_t j = 0; to.owns(b) && j < to.width(b); ++j)
        std::copy_n(&from(0, to.begin(b) + j), n, to.at(b, 0) + j * to.rows);
    return with_memory<T>(n, [&](T *work, int length, Real<T> *, int, int *, int) {
      int found = 0;
      grid.call<void(const char *, const char *, const char *, const int *, const int *, const int *, const T *,
                     const int *, const int *, const int *, const T *, T *, const int *, const int *, const int *, T *,
                     const int *, int *)>("p" + letter<T>() + (is_complex<T> ? "unmbr_" : "ormbr_"))(
          &which, &where, &op, &n, &n, &n, a.column(0), &one, &one, of.words, factors, to.column(0), &one, &one,
          of.words, work, &length, &found);
      return found;
    });
  };
  info = vectors(*left, u, 'Q', 'L', 'N', of_left.data());
  return info ? info : vectors(*right, v, 'P', 'R', is_complex<T> ? 'C' : 'T', of_right.data());
}

template <char part, class S, class T>
std::int64_t eigenvectors_together(std::int64_t context, std::int64_t number, std::int64_t width, Window<S> in,
                                   Window<Real<T>> w, Window<T> v) {
  const Team team(context, number, {in.box, v.box});
  if (team.is_whole()) return team.place() < 0 ? 0 : eigenvectors<part>(in.view(), w.view(), v.view());
  if (team.place() < 0) return is_finite<T>(team, nullptr), 0;
  const std::int64_t n = team.extents(0).first;
  const OneThread guard;
  Dealt<T> a(team, n, {n}, width), vectors(team, n, {n}, width);
  a.take(0, 0, in);
  if (!is_finite(team, &a)) return 1;
  std::vector<Real<T>> values(static_cast<std::size_t>(n));
  const int info = eigen(part, a, vectors, width, values);
  write_own(values, w);
  vectors.give(0, 1, v);
  return info;
}

/// Values alone, which ranks `find` together where they have parts of the matrix; else each has them of `all`.
template <class S, class All, class Find>
std::int64_t values_together(std::int64_t context, std::int64_t number, std::int64_t width, const Window<S> &in,
                             const Window<Real<S>> &out, const All &all, const Find &find) {
  using T = std::remove_const_t<S>;
  const Team team(context, number, {in.box});
  if (team.is_whole()) return team.place() < 0 ? 0 : all(in.view(), out.view());
  if (team.place() < 0) return is_finite<T>(team, nullptr), 0;
  const std::int64_t n = team.extents(0).first;
  const OneThread guard;
  Dealt<T> a(team, n, {n}, width);
  a.take(0, 0, in);
  if (!is_finite(team, &a)) return 1;
  std::vector<Real<T>> values;
  const int info = find(a, values);
  write_own(values, out);
  return info;
}

template <char part, class S>
std::int64_t eigenvalues_together(std::int64_t context, std::int64_t number, std::int64_t width, Window<S> in,
                                  Window<Real<S>> w) {
  return values_together(
      context, number, width, in, w, [](const auto &a, const auto &found) { return eigenvalues<part>(a, found); },
      [&](auto &a, auto &found) { return eigen(part, a, width, found); });
}

template <class S>
std::int64_t singular_values_together(std::int64_t context, std::int64_t number, std::int64_t width, Window<S> in,
                                      Window<Real<S>> s) {
  using Kept = Dealt<std::remove_const_t<S>>;
  return values_together(
      context, number, width, in, s, [](const auto &a, const auto &found) { return singular_values(a, found); },
      [&](auto &a, auto &found) { return singular(a, static_cast<Kept *>(nullptr), static_cast<Kept *>(nullptr), width, found); });
}

template <class S, class T>
std::int64_t svd_together(std::int64_t context, std::int64_t number, std::int64_t width, Window<S> in, Window<T> u,
                          Window<Real<T>> s, Window<T> v) {
  const Team team(context, number, {in.box, u.box, v.box});
  if (team.is_whole()) return team.place() < 0 ? 0 : svd(in.view(), u.view(), s.view(), v.view());
  if (team.place() < 0) return is_finite<T>(team, nullptr), 0;
  const std::int64_t n = team.extents(0).first;
  const OneThread guard;
  Dealt<T> a(team, n, {n}, width), left(team, n, {n}, width), right(team, n, {n}, width);
  a.take(0, 0, in);
  if (!is_finite(team, &a)) return 1;
  std::vector<Real<T>> values;
  const int info = singular(a, &left, &right, width, values);
  write_own(values, s);
  left.give(0, 1, u);
  right.give(0, 2, v);
  return info;
}

}  // namespace lapack
}  // namespace distspmd
