// Orthogonal factorisations of one matrix whose columns are dealt: reflections of blocks, by Householder.
//
// The owner of a block finds its reflections, and all others get them and bring what is to its right up
// to date (R. Schreiber, C. Van Loan, A storage-efficient WY representation for products of Householder
// transformations, 1989). The orthogonal factor is made of further blocks, which begin as the identity
// and which the reflections go through from the last one on. Signs are those of LAPACK.
#pragma once

#include <distspmd/kernels/dealt_matrix.hpp>

namespace distspmd {
namespace lapack {

#define DISTSPMD_REFLECTIONS(T, larft_, larfb_)                                                                   \
  extern "C" {                                                                                                    \
  void larft_(const char *, const char *, const int *, const int *, T *, const int *, const T *, T *, const int *); \
  void larfb_(const char *, const char *, const char *, const char *, const int *, const int *, const int *,      \
              const T *, const int *, const T *, const int *, T *, const int *, T *, const int *);                \
  }                                                                                                               \
  /* Columns of as many rows as a panel, multiplied by its reflections, or by their adjoint. */                   \
  inline void reflect(bool adjoint, Columns<T> &panel, const T *factors, T *columns, std::int64_t count,          \
                      std::int64_t lead) {                                                                        \
    const int own = std::min(panel.rows, panel.columns), n = int(count), ldc = int(lead);                         \
    if (own == 0 || n == 0) return;                                                                               \
    std::vector<T> triangle(std::size_t(own) * own), work(std::size_t(n) * own);                                  \
    const char left = 'L', forward = 'F', by_columns = 'C', op = !adjoint ? 'N' : is_complex<T> ? 'C' : 'T';      \
    larft_(&forward, &by_columns, &panel.rows, &own, panel.data(), &panel.lead, factors, triangle.data(), &own);  \
    larfb_(&left, &op, &forward, &by_columns, &panel.rows, &n, &own, panel.data(), &panel.lead, triangle.data(),  \
           &own, columns, &ldc, work.data(), &n);                                                                 \
  }

DISTSPMD_REFLECTIONS(float, slarft_, slarfb_)
DISTSPMD_REFLECTIONS(double, dlarft_, dlarfb_)
DISTSPMD_REFLECTIONS(std::complex<float>, clarft_, clarfb_)
DISTSPMD_REFLECTIONS(std::complex<double>, zlarft_, zlarfb_)
#undef DISTSPMD_REFLECTIONS

/// The blocks of the first part of a deal, as reflections above which the triangle is.
template <class T>
class Reflections {
 public:
  explicit Reflections(Dealt<T> &a) : a_(a), factors_(static_cast<std::size_t>(a.begin(a.first(1))), T()) {
    for (std::int64_t k = 0; k < blocks(); ++k) {
      Columns<T> panel = below(k);
      if (a.owns(k)) {
        geqrf(panel, factors(k));
        for (std::int64_t j = 0; j < a.width(k); ++j)
          std::copy_n(&panel(0, j), panel.rows, a.at(k, a.begin(k)) + j * a.rows);
      }
      bring(k, panel, a.everyone(k));
      const std::int64_t from = a.columns_before(k + 1), end = a.columns_before(a.first(1));
      reflect(true, panel, factors(k), a.column(from) + a.begin(k), end - from, a.rows);
    }
  }

  /// Make the orthogonal factor in the second part, which is zero.
  void multiply() {
    const std::int64_t first = a_.first(1);
    for (std::int64_t b = first; b < a_.blocks(); ++b)
      for (std::int64_t j = 0; a_.owns(b) && j < a_.width(b); ++j)
        a_.at(b, 0)[j * a_.rows + a_.begin(b) - a_.begin(first) + j] = T(1);
    for (std::int64_t k = blocks() - 1; k >= 0; --k) {  // columns before those of the block stay as they are
      Columns<T> panel = below(k);
      bring(k, panel, a_.owners(k, first + k, a_.blocks()));
      const std::int64_t from = a_.columns_before(first + k);
      reflect(false, panel, factors(k), a_.column(from) + a_.begin(k), a_.columns - from, a_.rows);
    }
  }

  /// Leave the triangle alone in the first part.
  void keep_triangle() {
    for (std::int64_t k = 0; k < blocks(); ++k)
      for (std::int64_t j = 0; a_.owns(k) && j < a_.width(k); ++j) {
        const std::int64_t row = std::min(a_.begin(k) + j + 1, a_.rows);
        std::fill_n(a_.at(k, row) + j * a_.rows, a_.rows - row, T(0));
      }
  }

 private:
  /// Blocks that have elements below the diagonal.
  std::int64_t blocks() const {
    std::int64_t found = 0;
    while (found < a_.first(1) && a_.begin(found) < a_.rows) ++found;
    return found;
  }
  T *factors(std::int64_t block) { return factors_.data() + a_.begin(block); }

  /// An own block from the diagonal on; one more row takes the factors along.
  Columns<T> below(std::int64_t block) {
    const std::int64_t top = a_.begin(block);
    Columns<T> panel(a_.rows - top + 1, a_.width(block));
    panel.rows = int(a_.rows - top);
    for (std::int64_t j = 0; a_.owns(block) && j < a_.width(block); ++j)
      std::copy_n(a_.at(block, top) + j * a_.rows, panel.rows, &panel(0, j));
    return panel;
  }
  void bring(std::int64_t block, Columns<T> &panel, const std::vector<std::int64_t> &workers) {
    for (int j = 0; j < panel.columns; ++j) panel(panel.rows, j) = factors(block)[j];
    a_.team.broadcast(workers, panel.data(), static_cast<std::int64_t>(panel.values.size()));
    for (int j = 0; j < panel.columns; ++j) factors(block)[j] = panel(panel.rows, j);
  }

  Dealt<T> &a_;
  std::vector<T> factors_;
};

/// The triangle goes to the rows of its window; where it has fewer than the matrix, windows are whole, and
/// what ranks give is summed: each gives its own columns.
template <class T>
void give_triangle(Dealt<T> &a, std::size_t which, const Window<T> &r) {
  const std::int64_t n = a.begin(a.first(1));
  if (a.rows <= n) return a.give(0, which, r);
  const View<T> to = r.view();
  for (std::int64_t b = 0; b < a.first(1); ++b)
    for (std::int64_t j = 0; j < a.width(b); ++j)
      for (std::int64_t i = 0; i < n; ++i) to(i, a.begin(b) + j) = a.owns(b) ? a.at(b, i)[j * a.rows] : T(0);
}

template <class S, class T>
std::int64_t qr_by_columns_together(std::int64_t context, std::int64_t number, std::int64_t width, Window<S> in,
                                    Window<T> q, Window<T> r) {
  const Team team(context, number, {in.box, q.box, r.box});
  if (team.place() < 0) return 0;
  if (team.is_whole()) return qr(in.view(), q.view(), r.view());
  const auto [m, n] = team.extents(0);
  const OneThread guard;
  Dealt<T> a(team, m, {n, std::min(m, n)}, width);
  a.take(0, 0, in);
  Reflections<T> reflections(a);
  reflections.multiply();
  reflections.keep_triangle();
  a.give(1, 1, q);
  give_triangle(a, 2, r);
  return 0;
}

template <class S, class T>
std::int64_t triangle_by_columns_together(std::int64_t context, std::int64_t number, std::int64_t width, Window<S> in,
                                          Window<T> r) {
  const Team team(context, number, {in.box, r.box});
  if (team.place() < 0) return 0;
  if (team.is_whole()) return triangle_of_qr(in.view(), r.view());
  const auto [m, n] = team.extents(0);
  const OneThread guard;
  Dealt<T> a(team, m, {n}, width);
  a.take(0, 0, in);
  Reflections<T> reflections(a);
  reflections.keep_triangle();
  give_triangle(a, 1, r);
  return 0;
}

}  // namespace lapack
}  // namespace distspmd
