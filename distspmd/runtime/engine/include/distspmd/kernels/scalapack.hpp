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

template <class T>
void write_own(const std::vector<T> &found, const Window<T> &out) {
  for (std::int64_t i = 0; i < out.box.rows; ++i) out.data[i * out.down] = found[std::size_t(out.box.row + i)];
}

/// Eigenvalues, in order, and eigenvectors where there is room for them; what ScaLAPACK reports.
template <class T>
int eigen(char part, Dealt<T> &a, Dealt<T> *vectors, std::int64_t width, std::vector<Real<T>> &values) {
  const Grid grid(a.team, width);
  const int n = int(a.rows), one = 1;
  const auto of = grid.describe(n, n);
  const char job = vectors ? 'V' : 'N';
  T none[1];
  T *const z = vectors ? vectors->column(0) : none;
  const std::string name = "p" + letter<T>() + (is_complex<T> ? "heev" : "syev") + (vectors ? "d_" : "_");
  return with_memory<T>(4 * n, [&](T *work, int length, Real<T> *real, int reals, int *whole, int wholes) {
    int info = 0;
    // real: ..., work, whole; complex: ..., work, real, whole; whole where there are vectors
    const auto call = [&](auto... memory) {
      grid.call<void(const char *, const char *, const int *, T *, const int *, const int *, const int *, Real<T> *, T *,
                     const int *, const int *, const int *, decltype(memory)..., int *)>(name)(
          &job, &part, &n, a.column(0), &one, &one, of.words, values.data(), z, &one, &one, of.words, memory..., &info);
    };
    if constexpr (is_complex<T>)
      vectors ? call(work, &length, real, &reals, whole, &wholes) : call(work, &length, real, &reals);
    else
      vectors ? call(work, &length, whole, &wholes) : call(work, &length);
    return info;
  });
}

template <char part, class S, class T>
std::int64_t eigenvectors_together(std::int64_t context, std::int64_t number, std::int64_t width, Window<S> in,
                                   Window<Real<T>> w, Window<T> v) {
  const Team team(context, number, {in.box, v.box});
  if (team.place() < 0) return 0;
  if (team.is_whole()) return eigenvectors<part>(in.view(), w.view(), v.view());
  const std::int64_t n = team.extents(0).first;
  const OneThread guard;
  Dealt<T> a(team, n, {n}, width), vectors(team, n, {n}, width);
  a.take(0, 0, in);
  std::vector<Real<T>> values(static_cast<std::size_t>(n));
  const int info = eigen(part, a, &vectors, width, values);
  write_own(values, w);
  vectors.give(0, 1, v);
  return info;
}

template <char part, class S>
std::int64_t eigenvalues_together(std::int64_t context, std::int64_t number, std::int64_t width, Window<S> in,
                                  Window<Real<S>> w) {
  using T = std::remove_const_t<S>;
  const Team team(context, number, {in.box});
  if (team.place() < 0) return 0;
  if (team.is_whole()) return eigenvalues<part>(in.view(), w.view());
  const std::int64_t n = team.extents(0).first;
  const OneThread guard;
  Dealt<T> a(team, n, {n}, width);
  a.take(0, 0, in);
  std::vector<Real<T>> values(static_cast<std::size_t>(n));
  const int info = eigen<T>(part, a, nullptr, width, values);
  write_own(values, w);
  return info;
}

}  // namespace lapack
}  // namespace distspmd
