// Factorisations of one matrix by all ranks that have parts of it: columns in blocks, dealt in turn.
//
// Each rank brings a window of a matrix, whatever it is; windows are brought to the blocks, the ranks
// factorise, and what they found is brought to the windows of the result. The owner of a block
// factorises it, as wide as it is, and all others get it and bring what is to its right up to date.
// Right-hand sides are further blocks of the same deal. Where no rank lacks anything, LAPACK does all.
#pragma once

#include <algorithm>
#include <complex>
#include <cstdint>
#include <cstring>
#include <numeric>
#include <type_traits>
#include <utility>
#include <vector>

#include <distspmd/api/execute.hpp>
#include <distspmd/kernels/lapack.hpp>

namespace distspmd {
namespace lapack {

/// The part of a matrix that a rank has, by global indices.
struct Box {
  std::int64_t row, rows, column, columns;

  bool empty() const { return rows <= 0 || columns <= 0; }
  bool operator==(const Box &other) const {
    return row == other.row && rows == other.rows && column == other.column && columns == other.columns;
  }
};

/// Such a part in memory.
template <class T>
struct Window {
  T *data;
  Box box;
  std::int64_t down, across;

  lapack::View<T> view() const {
    return {data, std::max<std::int64_t>(box.rows, 0), std::max<std::int64_t>(box.columns, 0), down, across};
  }
  Window turned() const { return {data, {box.column, box.columns, box.row, box.rows}, across, down}; }
};

#define DISTSPMD_DEALT_BLAS(T, letter, factor)                                                                   \
  /* c -= a b, by columns */                                                                                     \
  inline void subtract_product(CBLAS_TRANSPOSE of_a, CBLAS_TRANSPOSE of_b, std::int64_t m, std::int64_t n,       \
                               std::int64_t k, const T *a, std::int64_t lda, const T *b, std::int64_t ldb, T *c, \
                               std::int64_t ldc) {                                                               \
    const T minus(-1), one(1);                                                                                   \
    if (m > 0 && n > 0 && k > 0)                                                                                 \
      cblas_##letter##gemm(CblasColMajor, of_a, of_b, m, n, k, factor minus, a, lda, b, ldb, factor one, c, ldc); \
  }                                                                                                              \
  /* b = the solution of a x = b, or of x a = b, with a triangle */                                              \
  inline void solve_with(CBLAS_SIDE side, CBLAS_UPLO part, CBLAS_TRANSPOSE of_a, CBLAS_DIAG diagonal,            \
                         std::int64_t m, std::int64_t n, const T *a, std::int64_t lda, T *b, std::int64_t ldb) { \
    const T one(1);                                                                                              \
    if (m > 0 && n > 0)                                                                                          \
      cblas_##letter##trsm(CblasColMajor, side, part, of_a, diagonal, m, n, factor one, a, lda, b, ldb);         \
  }
DISTSPMD_DEALT_BLAS(float, s, )
DISTSPMD_DEALT_BLAS(double, d, )
DISTSPMD_DEALT_BLAS(std::complex<float>, c, &)
DISTSPMD_DEALT_BLAS(std::complex<double>, z, &)
#undef DISTSPMD_DEALT_BLAS

/// The ranks that have parts of a matrix, and what each has of all operands and results.
class Team {
 public:
  /// All ranks that talk make it together, of their windows; the first is that of the matrix.
  Team(std::int64_t context, std::int64_t number, std::vector<Box> own) : talk_{context, number}, windows_(own.size()) {
    for (Box &box : own)
      if (box.empty()) box = {0, 0, 0, 0};
    boxes_ = talk_.gather_all(own);
    for (std::int64_t rank = 0; rank < talk_.ranks(); ++rank) {
      bool works = true;
      for (std::size_t which = 0; which < windows_; ++which) works &= !box(rank, which).empty();
      if (rank == talk_.rank()) place_ = works ? static_cast<std::int64_t>(workers_.size()) : -1;
      if (works) workers_.push_back(rank);
    }
  }

  std::int64_t size() const { return static_cast<std::int64_t>(workers_.size()); }
  std::int64_t place() const { return place_; }  // among those that work; -1: not there
  std::int64_t rank_of(std::int64_t worker) const { return workers_[static_cast<std::size_t>(worker)]; }
  std::int64_t rank() const { return talk_.rank(); }
  std::int64_t ranks() const { return talk_.ranks(); }
  const Box &box(std::int64_t rank, std::size_t which) const {
    return boxes_[static_cast<std::size_t>(rank) * windows_ + which];
  }
  void exchange(const std::vector<Parcel> &sends, const std::vector<Parcel> &receives) const {
    if (sends.size() + receives.size()) talk_.exchange(sends, receives);
  }

  /// The bits of a communicator of those that work.
  std::int64_t communicator() const { return talk_.communicator(workers_); }
  [[noreturn]] void end(const char *message) const { talk_.end(message); }

  /// Whether something is so on any rank of those that talk.
  bool any(bool is_so) const {
    std::vector<std::int64_t> found{is_so};
    talk_.add_all(found);
    return found[0] > 0;
  }

  /// Whether each rank that works has all of the matrix.
  bool is_whole() const {
    return std::all_of(workers_.begin(), workers_.end(),
                       [&](std::int64_t rank) { return box(rank, 0) == box(workers_[0], 0); });
  }
  /// Rows and columns of an operand or result.
  std::pair<std::int64_t, std::int64_t> extents(std::size_t which) const {
    std::int64_t rows = 0, columns = 0;
    for (std::int64_t rank = 0; rank < ranks(); ++rank) {
      rows = std::max(rows, box(rank, which).row + box(rank, which).rows);
      columns = std::max(columns, box(rank, which).column + box(rank, which).columns);
    }
    return {rows, columns};
  }

  /// Whether a rank gives what it has of a window: it is the first with the same.
  bool gives(std::int64_t rank, std::size_t which) const {
    if (box(rank, which).empty()) return false;
    for (std::int64_t other = 0; other < rank; ++other)
      if (box(other, which) == box(rank, which)) return false;
    return true;
  }

  /// Give what the first of some workers has to the others, each of which passes it on.
  template <class T>
  void broadcast(const std::vector<std::int64_t> &workers, T *values, std::int64_t count) const {
    const auto size = static_cast<std::int64_t>(workers.size());
    const auto own = static_cast<std::int64_t>(std::find(workers.begin(), workers.end(), place_) - workers.begin());
    if (own == size || size < 2 || count == 0) return;
    const std::int64_t bytes = count * static_cast<std::int64_t>(sizeof(T));
    std::int64_t step = 1;
    while (step <= own) step *= 2;  // the giver is as far away as the highest bit says
    if (own) exchange({}, {{rank_of(workers[own - step / 2]), reinterpret_cast<char *>(values), bytes}});
    std::vector<Parcel> sends;
    for (; own + step < size; step *= 2)
      sends.push_back({rank_of(workers[own + step]), reinterpret_cast<char *>(values), bytes});
    exchange(sends, {});
  }

 private:
  Talk talk_;
  std::size_t windows_;
  std::vector<Box> boxes_;  // by ranks, then by windows
  std::vector<std::int64_t> workers_;
  std::int64_t place_ = -1;
};

/// A matrix whose columns lie in blocks that are dealt to the workers of a team in turn.
template <class T>
class Dealt {
 public:
  /// Of so many rows; the columns of each part begin a block.
  Dealt(const Team &team, std::int64_t rows, const std::vector<std::int64_t> &parts, std::int64_t width)
      : team(team), rows(rows) {
    std::int64_t at = 0;
    for (const std::int64_t columns : parts) {
      first_.push_back(static_cast<std::int64_t>(begins_.size()));
      for (std::int64_t done = 0; done < columns; done += width) begins_.push_back(at + done);
      at += columns;
    }
    first_.push_back(static_cast<std::int64_t>(begins_.size()));
    begins_.push_back(at);
    std::vector<std::int64_t> held(static_cast<std::size_t>(team.size()), 0);
    for (std::int64_t b = 0; b < blocks(); ++b) {
      std::int64_t &own = held[static_cast<std::size_t>(owner(b))];
      offsets_.push_back(own);
      own += this->width(b);
    }
    columns = team.place() < 0 ? 0 : held[static_cast<std::size_t>(team.place())];
    values_.assign(static_cast<std::size_t>(rows * columns), T());
  }

  const Team &team;
  const std::int64_t rows;
  std::int64_t columns;  // of this rank

  std::int64_t blocks() const { return static_cast<std::int64_t>(begins_.size()) - 1; }
  std::int64_t first(std::size_t part) const { return first_[part]; }  // block of a part
  std::int64_t begin(std::int64_t block) const { return begins_[static_cast<std::size_t>(block)]; }
  std::int64_t width(std::int64_t block) const { return begin(block + 1) - begin(block); }
  std::int64_t owner(std::int64_t block) const { return block % team.size(); }
  bool owns(std::int64_t block) const { return owner(block) == team.place(); }

  /// The element of a row in the first column of an own block.
  T *at(std::int64_t block, std::int64_t row) { return column(offsets_[static_cast<std::size_t>(block)]) + row; }
  T *column(std::int64_t own) { return values_.data() + own * rows; }

  /// Own columns in front of those of a block and what follows.
  std::int64_t columns_before(std::int64_t block) const {
    for (; block < blocks(); ++block)
      if (owns(block)) return offsets_[static_cast<std::size_t>(block)];
    return columns;
  }
  /// The workers that own blocks between two, behind the one that owns another block.
  std::vector<std::int64_t> owners(std::int64_t giver, std::int64_t from, std::int64_t end) const {
    std::vector<std::int64_t> found{owner(giver)};
    for (std::int64_t w = 1; w < team.size(); ++w) {
      const std::int64_t other = (owner(giver) + w) % team.size();
      for (std::int64_t b = from; b < std::min(end, from + team.size()); ++b)
        if (owner(b) == other) found.push_back(other);
    }
    return found;
  }
  /// All workers, behind the one that owns a block.
  std::vector<std::int64_t> everyone(std::int64_t giver) const { return owners(giver, 0, team.size()); }

  /// Fill a part from the windows of all ranks.
  template <class S>
  void take(std::size_t part, std::size_t which, const Window<S> &window) {
    move<true>(part, which, window);
  }
  /// Fill the windows of all ranks from a part.
  void give(std::size_t part, std::size_t which, const Window<T> &window) { move<false>(part, which, window); }

  void conjugate() {
    if constexpr (is_complex<T>)
      for (T &each : values_) each = std::conj(each);
  }

 private:
  /// Columns of a box of a part that a worker owns: their blocks, and where they are.
  std::vector<std::pair<std::int64_t, std::int64_t>> columns_of(std::size_t part, const Box &box,
                                                                std::int64_t worker) const {
    std::vector<std::pair<std::int64_t, std::int64_t>> found;
    const std::int64_t base = begin(first_[part]) + box.column;
    for (std::int64_t b = first_[part]; b < first_[part + 1]; ++b)
      if (owner(b) == worker)
        for (std::int64_t j = std::max(begin(b), base); j < std::min(begin(b + 1), base + box.columns); ++j)
          found.push_back({b, j});
    return found;
  }

  /// Between windows and blocks: what each pair of ranks has of both goes as one message.
  template <bool takes, class S>
  void move(std::size_t part, std::size_t which, const Window<S> &window) {
    const auto ranks = static_cast<std::size_t>(team.ranks());
    std::vector<std::vector<T>> of_windows(ranks), of_blocks(ranks);  // by the other rank
    const std::int64_t own = team.rank(), base = begin(first_[part]);
    const auto of_window = [&](std::int64_t worker, bool writes) {
      std::vector<T> &packed = of_windows[static_cast<std::size_t>(team.rank_of(worker))];
      const Box &box = team.box(own, which);
      const auto columns = columns_of(part, box, worker);
      packed.resize(columns.size() * static_cast<std::size_t>(box.rows));
      constexpr std::int64_t tile = 16;  // of which a cache holds the lines, whatever lies side by side
      const auto count = static_cast<std::int64_t>(columns.size());
      for (std::int64_t c0 = 0; (takes || writes) && c0 < count; c0 += tile)
        for (std::int64_t i0 = 0; i0 < box.rows; i0 += tile)
          for (std::int64_t c = c0; c < std::min(c0 + tile, count); ++c) {
            S *const there = window.data + (columns[c].second - base - box.column) * window.across;
            T *const at = packed.data() + c * box.rows;
            for (std::int64_t i = i0; i < std::min(i0 + tile, box.rows); ++i) {
              if constexpr (takes)
                at[i] = there[i * window.down];
              else
                there[i * window.down] = at[i];
            }
          }
    };
    const auto of_own_blocks = [&](std::int64_t rank, bool writes) {
      std::vector<T> &packed = of_blocks[static_cast<std::size_t>(rank)];
      const Box &box = team.box(rank, which);
      const auto columns = columns_of(part, box, team.place());
      packed.resize(columns.size() * static_cast<std::size_t>(box.rows));
      T *at = packed.data();
      for (const auto &[b, j] : columns) {
        T *const here = this->at(b, box.row) + (j - begin(b)) * rows;
        if (!takes)
          std::copy_n(here, box.rows, at);
        else if (writes)
          std::copy_n(at, box.rows, here);
        at += box.rows;
      }
    };
    const auto all_windows = [&](bool writes) {
      const bool takes_part = takes ? team.gives(own, which) : !team.box(own, which).empty();
      for (std::int64_t w = 0; takes_part && w < team.size(); ++w) of_window(w, writes);
    };
    const auto all_blocks = [&](bool writes) {
      for (std::int64_t rank = 0; team.place() >= 0 && rank < team.ranks(); ++rank)
        if (takes ? team.gives(rank, which) : !team.box(rank, which).empty()) of_own_blocks(rank, writes);
    };
    all_windows(false);
    all_blocks(false);
    std::vector<std::vector<T>> &from = takes ? of_windows : of_blocks, &to = takes ? of_blocks : of_windows;
    to[static_cast<std::size_t>(own)].swap(from[static_cast<std::size_t>(own)]);
    std::vector<Parcel> sends, receives;
    const auto parcels = [&](std::vector<std::vector<T>> &packed, std::vector<Parcel> &found) {
      for (std::int64_t rank = 0; rank < team.ranks(); ++rank) {
        std::vector<T> &values = packed[static_cast<std::size_t>(rank)];
        const auto bytes = static_cast<std::int64_t>(values.size() * sizeof(T));
        if (rank != own && bytes) found.push_back({rank, reinterpret_cast<char *>(values.data()), bytes});
      }
    };
    parcels(from, sends);
    parcels(to, receives);
    team.exchange(sends, receives);
    takes ? all_blocks(true) : all_windows(true);
  }

  std::vector<std::int64_t> first_, begins_, offsets_;
  std::vector<T> values_;
};

// --- definite matrices ---------------------------------------------------------------------------

/// Factorise a block of a definite matrix, whose first element is no number afterwards where it is not definite.
template <class T>
void factorise_definite(Dealt<T> &a, std::int64_t block, Columns<T> &panel) {
  const std::int64_t top = a.begin(block), width = a.width(block);
  for (std::int64_t j = 0; j < width; ++j) std::copy_n(a.at(block, top) + j * a.rows, panel.rows, &panel(0, j));
  Columns<T> corner(width, width);
  for (std::int64_t j = 0; j < width; ++j) std::copy_n(&panel(0, j), width, &corner(0, j));
  if (potrf('L', corner)) {
    panel(0, 0) = T(std::numeric_limits<Real<T>>::quiet_NaN());
    return;
  }
  const CBLAS_TRANSPOSE adjoint = is_complex<T> ? CblasConjTrans : CblasTrans;
  solve_with(CblasRight, CblasLower, adjoint, CblasNonUnit, panel.rows - width, width, corner.data(), corner.lead,
             panel.data() + width, panel.lead);
  for (std::int64_t j = 0; j < width; ++j) {
    for (std::int64_t i = 0; i < width; ++i) panel(i, j) = i < j ? T(0) : corner(i, j);
    std::copy_n(&panel(0, j), panel.rows, a.at(block, top) + j * a.rows);
    std::fill_n(a.at(block, 0) + j * a.rows, top, T(0));
  }
}

/// Bring what is right of a block of a definite matrix up to date, by its panel.
template <class T>
void update_definite(Dealt<T> &a, std::int64_t block, Columns<T> &panel) {
  constexpr std::size_t together = 4;  // blocks in a product: what lies above the first of them is no result
  const CBLAS_TRANSPOSE adjoint = is_complex<T> ? CblasConjTrans : CblasTrans;
  const std::int64_t top = a.begin(block), width = a.width(block);
  std::vector<std::int64_t> own;
  for (std::int64_t b = block + 1; b < a.blocks(); ++b)
    if (a.owns(b)) own.push_back(b);
  for (std::size_t first = 0; first < own.size(); first += together) {
    const std::size_t end = std::min(first + together, own.size());
    std::int64_t count = 0;
    for (std::size_t n = first; n < end; ++n) count += a.width(own[n]);
    Columns<T> beside(count, width);
    std::int64_t at = 0;
    for (std::size_t n = first; n < end; at += a.width(own[n++]))
      for (std::int64_t j = 0; j < width; ++j)
        std::copy_n(&panel(a.begin(own[n]) - top, j), a.width(own[n]), &beside(at, j));
    const std::int64_t row = a.begin(own[first]);
    subtract_product(CblasNoTrans, adjoint, a.rows - row, count, width, &panel(row - top, 0), panel.lead, beside.data(),
                     beside.lead, a.at(own[first], row), a.rows);
  }
}

/// The triangle of a positive definite matrix, of which one part is read; what LAPACK reports.
template <char part, class S, class T>
std::int64_t cholesky_together(std::int64_t context, std::int64_t number, std::int64_t width, Window<S> in,
                               Window<T> out) {
  const Team team(context, number, {part == 'L' ? in.box : in.turned().box, part == 'L' ? out.box : out.turned().box});
  if (team.place() < 0) return 0;
  if (team.is_whole()) return cholesky<part>(in.view(), out.view());
  if (part == 'U') in = in.turned(), out = out.turned();
  const std::int64_t n = team.extents(0).first;
  const OneThread guard;
  Dealt<T> a(team, n, {n}, width);
  a.take(0, 0, in);
  if (part == 'U') a.conjugate();
  std::int64_t info = 0;
  for (std::int64_t k = 0; k < a.blocks() && !info; ++k) {
    Columns<T> panel(n - a.begin(k), a.width(k));
    if (a.owns(k)) factorise_definite(a, k, panel);
    team.broadcast(a.everyone(k), panel.data(), panel.values.size());
    if (!(std::real(panel(0, 0)) > 0)) info = a.begin(k) + 1;
    if (!info) update_definite(a, k, panel);
  }
  if (part == 'U') a.conjugate();
  a.give(0, 1, out);
  return info;
}

// --- elimination ---------------------------------------------------------------------------------

/// Eliminate below the blocks of the first part, in all that is to their right; what LAPACK reports.
///
/// Afterwards blocks have the upper factor. `seen` gets the elements of its diagonal, with the signs of
/// the exchanges of rows.
template <class T, class Seen>
std::int64_t eliminate(Dealt<T> &a, Seen seen) {
  for (std::int64_t k = 0; k < a.first(1); ++k) {
    const std::int64_t top = a.begin(k), width = a.width(k);
    Columns<T> panel(a.rows - top, width);
    std::vector<std::int64_t> told(static_cast<std::size_t>(width) + 1, 0);  // the error, and rows from 1
    if (a.owns(k)) {
      for (std::int64_t j = 0; j < width; ++j) std::copy_n(a.at(k, top) + j * a.rows, panel.rows, &panel(0, j));
      std::vector<int> pivots(static_cast<std::size_t>(width));
      told[0] = getrf(panel, pivots.data());
      std::copy(pivots.begin(), pivots.end(), told.begin() + 1);
      for (std::int64_t j = 0; j < width; ++j) std::copy_n(&panel(0, j), panel.rows, a.at(k, top) + j * a.rows);
    }
    const std::vector<std::int64_t> everyone = a.everyone(k);
    a.team.broadcast(everyone, told.data(), static_cast<std::int64_t>(told.size()));
    a.team.broadcast(everyone, panel.data(), static_cast<std::int64_t>(panel.values.size()));
    for (std::int64_t j = 0; j < width; ++j) seen(top + j, told[j + 1] == j + 1 ? panel(j, j) : -panel(j, j));
    if (told[0]) return top + told[0];
    const std::int64_t from = a.columns_before(k + 1), count = a.columns - from;
    if (count == 0) continue;
    for (std::int64_t j = from; j < a.columns; ++j)
      for (std::int64_t i = 0; i < width; ++i) std::swap(a.column(j)[top + i], a.column(j)[top + told[i + 1] - 1]);
    T *const right = a.column(from) + top;
    solve_with(CblasLeft, CblasLower, CblasNoTrans, CblasUnit, width, count, panel.data(), panel.lead, right, a.rows);
    subtract_product(CblasNoTrans, CblasNoTrans, panel.rows - width, count, width, panel.data() + width, panel.lead,
                     right, a.rows, right + width, a.rows);
  }
  return 0;
}

/// Solve with one triangle of the first part for the columns of the second.
template <char part, char trans, char diagonal, class T>
void substitute(Dealt<T> &a) {
  constexpr CBLAS_UPLO uplo = part == 'L' ? CblasLower : CblasUpper;
  constexpr CBLAS_TRANSPOSE op = trans == 'N' ? CblasNoTrans : trans == 'T' ? CblasTrans : CblasConjTrans;
  const std::int64_t from = a.columns_before(a.first(1)), count = a.columns - from, blocks = a.first(1);
  for (std::int64_t n = 0; n < blocks; ++n) {
    const std::int64_t k = (part == 'L') == (trans == 'N') ? n : blocks - 1 - n;
    const std::int64_t top = a.begin(k), width = a.width(k), first = part == 'L' ? top : 0;
    const std::int64_t rest = part == 'L' ? top + width : 0, others = part == 'L' ? a.rows - rest : top;
    if (count == 0 && !a.owns(k)) continue;
    Columns<T> panel(width + others, width);
    for (std::int64_t j = 0; a.owns(k) && j < width; ++j)
      std::copy_n(a.at(k, first) + j * a.rows, panel.rows, &panel(0, j));
    a.team.broadcast(a.owners(k, blocks, a.blocks()), panel.data(), static_cast<std::int64_t>(panel.values.size()));
    if (count == 0) continue;
    T *const sides = a.column(from), *const corner = panel.data() + (top - first), *const beside = panel.data() + (rest - first);
    if (trans != 'N')
      subtract_product(op, CblasNoTrans, width, count, others, beside, panel.lead, sides + rest, a.rows, sides + top, a.rows);
    solve_with(CblasLeft, uplo, op, diagonal == 'U' ? CblasUnit : CblasNonUnit, width, count, corner, panel.lead,
               sides + top, a.rows);
    if (trans == 'N')
      subtract_product(CblasNoTrans, CblasNoTrans, others, count, width, beside, panel.lead, sides + top, a.rows,
                       sides + rest, a.rows);
  }
}

template <char part, char trans, char diagonal, class S, class T>
std::int64_t solve_triangle_together(std::int64_t context, std::int64_t number, std::int64_t width, Window<S> in,
                                     Window<S> sides, Window<T> out) {
  const Team team(context, number, {in.box, sides.box, out.box});
  if (team.is_whole())
    return team.place() < 0 ? 0 : solve_triangle<part, trans, diagonal>(in.view(), sides.view(), out.view());
  if (team.place() < 0) return team.any(false), 0;
  const std::int64_t n = team.extents(0).first;
  const OneThread guard;
  Dealt<T> a(team, n, {n, team.extents(1).second}, width);
  a.take(0, 0, in);
  a.take(1, 1, sides);
  bool is_singular = false;
  for (std::int64_t k = 0; diagonal != 'U' && k < a.first(1); ++k)
    for (std::int64_t j = 0; a.owns(k) && j < a.width(k); ++j) is_singular |= a.at(k, a.begin(k) + j)[j * n] == T(0);
  if (team.any(is_singular)) return 1;
  substitute<part, trans, diagonal>(a);
  a.give(1, 2, out);
  return 0;
}

template <class S, class T>
std::int64_t solve_together(std::int64_t context, std::int64_t number, std::int64_t width, Window<S> in, Window<S> sides,
                            Window<T> out) {
  const Team team(context, number, {in.box, sides.box, out.box});
  if (team.place() < 0) return 0;
  if (team.is_whole()) return solve(in.view(), sides.view(), out.view());
  const std::int64_t n = team.extents(0).first;
  const OneThread guard;
  Dealt<T> a(team, n, {n, team.extents(1).second}, width);
  a.take(0, 0, in);
  a.take(1, 1, sides);
  const std::int64_t info = eliminate(a, [](std::int64_t, T) {});
  if (!info) substitute<'U', 'N', 'N'>(a);
  a.give(1, 2, out);
  return info;
}

template <class S, class T>
std::int64_t inverse_together(std::int64_t context, std::int64_t number, std::int64_t width, Window<S> in,
                              Window<T> out) {
  const Team team(context, number, {in.box, out.box});
  if (team.place() < 0) return 0;
  if (team.is_whole()) return inverse(in.view(), out.view());
  const std::int64_t n = team.extents(0).first;
  const OneThread guard;
  Dealt<T> a(team, n, {n, n}, width);
  a.take(0, 0, in);
  for (std::int64_t b = a.first(1); b < a.blocks(); ++b)
    for (std::int64_t j = 0; a.owns(b) && j < a.width(b); ++j)
      a.at(b, 0)[j * n + a.begin(b) - n + j] = T(1);
  const std::int64_t info = eliminate(a, [](std::int64_t, T) {});
  if (!info) substitute<'U', 'N', 'N'>(a);
  a.give(1, 1, out);
  return info;
}

/// The diagonal of the upper factor, with the signs of the exchanges of rows; zeros where it is singular.
template <class S, class T>
std::int64_t diagonal_of_factor_together(std::int64_t context, std::int64_t number, std::int64_t width, Window<S> in,
                                         Window<T> out) {
  const Team team(context, number, {in.box, out.box});
  if (team.place() < 0) return 0;
  if (team.is_whole()) return diagonal_of_factor(in.view(), out.view());
  const std::int64_t n = team.extents(0).first;
  const OneThread guard;
  Dealt<T> a(team, n, {n}, width);
  a.take(0, 0, in);
  std::vector<T> found(static_cast<std::size_t>(n), T());
  if (eliminate(a, [&](std::int64_t row, T value) { found[row] = value; })) found.assign(found.size(), T());
  for (std::int64_t i = 0; i < out.box.rows; ++i) out.data[i * out.down] = found[out.box.row + i];
  return 0;
}

}  // namespace lapack
}  // namespace distspmd
