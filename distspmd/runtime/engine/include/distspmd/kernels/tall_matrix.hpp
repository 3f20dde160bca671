// Orthogonal factorisations of one matrix of many rows, of which each rank has some: by a tree.
//
// Each rank factorises its rows, in pieces that a cache holds; of two triangles, one above the other, the next one is made, until one
// is left. Its factor goes back along the tree, and each rank multiplies its own by what comes. The signs
// are those of Householder's method on the whole matrix (G. Ballard et al., Reconstructing Householder
// vectors from tall-skinny QR, 2014), so that results are those of LAPACK. The rows stay where they are.
#pragma once

#include <distspmd/kernels/dealt_matrix.hpp>

namespace distspmd {
namespace lapack {

template <class T>
Columns<T> product(Columns<T> &a, Columns<T> b) {
  Columns<T> found(a.rows, b.columns);
  for (T &each : b.values) each = -each;
  subtract_product(CblasNoTrans, CblasNoTrans, a.rows, b.columns, a.columns, a.data(), a.lead, b.data(), b.lead,
                   found.data(), found.lead);
  return found;
}

/// The orthogonal factor and the triangle of a matrix, which the first replaces.
template <class T>
Columns<T> factorise(Columns<T> &a) {
  const int least = std::min(a.rows, a.columns);
  std::vector<T> tau(least + 1);
  geqrf(a, tau.data());
  Columns<T> triangle(least, a.columns), own(a.rows, least);
  for (int j = 0; j < a.columns; ++j)
    for (int i = 0; i <= std::min(j, least - 1); ++i) triangle(i, j) = a(i, j);
  for (int j = 0; j < least; ++j) std::copy_n(&a(0, j), a.rows, &own(0, j));
  if (own.rows && own.columns) orgqr(own, least, tau.data());
  a = std::move(own);
  return triangle;
}

/// One factorisation, as a rank takes part in it that has rows which no rank before it has.
template <class T>
class Tall {
 public:
  template <class S>
  Tall(const Team &team, const Window<S> &in) : team_(team), box_(in.box) {
    if (team.is_whole())
      holders_ = {team.rank()};
    else
      for (std::int64_t w = 0; w < team.size(); ++w)
        if (team.gives(team.rank_of(w), 0)) holders_.push_back(team.rank_of(w));
    const auto row = [&](std::int64_t rank) { return team.box(rank, 0).row; };
    std::sort(holders_.begin(), holders_.end(), [&](std::int64_t a, std::int64_t b) { return row(a) < row(b); });
    own_ = std::find(holders_.begin(), holders_.end(), team.rank()) - holders_.begin();
    top_ = std::min<std::int64_t>(team.extents(0).first, box_.columns);
    above_.assign(static_cast<std::size_t>(own_ ? 0 : top_ * box_.columns), T());
    bring_top(in);
    factorise_rows(in.view());
    climb();
    if (own_ == 0) sign();
  }

  Columns<T> triangle{0, 0};  // on the rank with the first rows

  bool is_first() const { return own_ == 0; }

  /// The rows of the orthogonal factor.
  Columns<T> orthogonal() {
    const std::int64_t n = box_.columns;
    Columns<T> factor(triangle.rows, n);
    if (own_ == 0)
      for (int i = 0; i < triangle.rows; ++i) factor(i, i) = signs_[i];
    else
      team_.exchange({}, {parcel(own_ - step_, factor)});
    for (; !levels_.empty(); levels_.pop_back()) {
      Level &level = levels_.back();
      Columns<T> both = product(level.factor, std::move(factor));
      factor = Columns<T>(both.rows - level.below, n);
      Columns<T> below(level.below, n);
      for (int j = 0; j < n; ++j) {
        std::copy_n(&both(0, j), factor.rows, &factor(0, j));
        std::copy_n(&both(0, j) + factor.rows, level.below, &below(0, j));
      }
      team_.exchange({parcel(level.child, below)}, {});
    }
    if (pieces_.size() > 1) factor = product(joint_, std::move(factor));
    Columns<T> found(box_.rows, n);
    std::int64_t row = 0, from = 0;
    for (Columns<T> &piece : pieces_) {
      Columns<T> own(piece.columns, n);
      for (int j = 0; j < n; ++j) std::copy_n(&factor(from, j), own.rows, &own(0, j));
      own = product(piece, std::move(own));
      for (int j = 0; j < n; ++j) std::copy_n(&own(0, j), own.rows, &found(row, j));
      row += piece.rows, from += piece.columns;
    }
    return found;
  }

 private:
  /// Factorise the own rows: pieces that a cache holds, then their triangles, one below the other.
  template <class S>
  void factorise_rows(const View<S> &rows) {
    constexpr std::int64_t cached = 1 << 17;
    const std::int64_t height = std::max(4 * rows.columns, cached / std::max<std::int64_t>(rows.columns, 1));
    std::vector<Columns<T>> triangles;
    std::int64_t count = 0;
    for (std::int64_t row = 0; row < rows.rows; row += height) {
      const std::int64_t own = std::min(height, rows.rows - row);
      pieces_.emplace_back(View<S>{rows.data + row * rows.down, own, rows.columns, rows.down, rows.across});
      triangles.push_back(factorise(pieces_.back()));
      count += triangles.back().rows;
    }
    triangle = std::move(triangles[0]);
    if (pieces_.size() == 1) return;
    joint_ = Columns<T>(count, rows.columns);
    std::int64_t row = 0;
    for (std::size_t n = 0; n < pieces_.size(); ++n) {
      Columns<T> &own = n ? triangles[n] : triangle;
      for (int j = 0; j < own.columns; ++j) std::copy_n(&own(0, j), own.rows, &joint_(row, j));
      row += own.rows;
    }
    triangle = factorise(joint_);
  }

  struct Level {
    std::int64_t child, below;  // the number of a holder, and the rows of its triangle
    Columns<T> factor;
  };

  Parcel parcel(std::int64_t holder, Columns<T> &values) const {
    return {holders_[static_cast<std::size_t>(holder)], reinterpret_cast<char *>(values.data()),
            std::int64_t(values.rows) * values.columns * std::int64_t(sizeof(T))};
  }

  /// Bring the first rows of the matrix to the first holder.
  template <class S>
  void bring_top(const Window<S> &in) {
    std::vector<std::vector<T>> packed(holders_.size());
    std::vector<Parcel> sends, receives;
    for (std::size_t h = 0; h < holders_.size(); ++h) {
      const Box &box = team_.box(holders_[h], 0);
      const std::int64_t rows = std::min(box.rows, top_ - box.row);
      if (rows <= 0 || (own_ && std::int64_t(h) != own_)) continue;
      packed[h].resize(static_cast<std::size_t>(rows * box_.columns));
      const Parcel own{holders_[own_ ? 0 : h], reinterpret_cast<char *>(packed[h].data()),
                       std::int64_t(packed[h].size() * sizeof(T))};
      if (std::int64_t(h) == own_)
        for (std::int64_t j = 0; j < box_.columns; ++j)
          for (std::int64_t i = 0; i < rows; ++i) packed[h][j * rows + i] = in.data[i * in.down + j * in.across];
      if (std::int64_t(h) != own_)
        receives.push_back(own);
      else if (own_)
        sends.push_back(own);
    }
    team_.exchange(sends, receives);
    for (std::size_t h = 0; own_ == 0 && h < holders_.size(); ++h) {
      const std::int64_t rows = packed[h].size() / box_.columns;
      for (std::int64_t j = 0; j < box_.columns; ++j)
        std::copy_n(packed[h].data() + j * rows, rows, above_.data() + j * top_ + team_.box(holders_[h], 0).row);
    }
  }

  /// Rows of the triangle of some holders.
  std::int64_t rows_of(std::int64_t first, std::int64_t count) const {
    std::int64_t found = 0;
    for (std::int64_t h = first; h < std::min<std::int64_t>(first + count, holders_.size()); ++h)
      found += team_.box(holders_[h], 0).rows;
    return std::min(found, box_.columns);
  }

  void climb() {
    const auto count = static_cast<std::int64_t>(holders_.size());
    for (step_ = 1; step_ < count; step_ *= 2) {
      if (own_ % (2 * step_)) {
        team_.exchange({parcel(own_ - step_, triangle)}, {});
        return;
      }
      const std::int64_t child = own_ + step_;
      if (child >= count) continue;
      Columns<T> below(rows_of(child, step_), box_.columns), both(triangle.rows + below.rows, box_.columns);
      team_.exchange({}, {parcel(child, below)});
      for (int j = 0; j < both.columns; ++j) {
        std::copy_n(&triangle(0, j), triangle.rows, &both(0, j));
        std::copy_n(&below(0, j), below.rows, &both(0, j) + triangle.rows);
      }
      triangle = factorise(both);
      levels_.push_back({child, below.rows, std::move(both)});
    }
  }

  /// Give the triangle the signs of Householder's method, which the first rows of the factor tell.
  void sign() {
    const std::int64_t n = triangle.rows;
    T *const x = above_.data();
    solve_with(CblasRight, CblasUpper, CblasNoTrans, CblasNonUnit, n, n, triangle.data(), triangle.lead, x, n);
    for (std::int64_t i = 0; i < n * n; ++i)
      if (!std::isfinite(std::abs(x[i]))) x[i] = T(0);
    for (std::int64_t i = 0; i < n; ++i) {
      const T own = std::real(x[i * n + i]) < 0 ? T(1) : T(-1);
      signs_.push_back(own);
      x[i * n + i] -= own;
      for (std::int64_t l = i + 1; l < n; ++l) x[i * n + l] /= x[i * n + i];
      for (std::int64_t j = i + 1; j < n; ++j)
        for (std::int64_t l = i + 1; l < n; ++l) x[j * n + l] -= x[i * n + l] * x[j * n + i];
      for (std::int64_t j = 0; j < triangle.columns; ++j) triangle(i, j) *= own;
    }
  }

  const Team &team_;
  Box box_;
  std::vector<Columns<T>> pieces_;  // of the rows, as factors
  Columns<T> joint_{0, 0};          // of their triangles
  std::vector<std::int64_t> holders_;
  std::int64_t own_ = 0, top_ = 0, step_ = 1;
  std::vector<T> above_, signs_;
  std::vector<Level> levels_;
};

template <class T>
void write_triangle(const Window<T> &r, Tall<T> *tall) {
  const View<T> to = r.view();
  for (std::int64_t i = 0; i < to.rows; ++i)
    for (std::int64_t j = 0; j < to.columns; ++j) to(i, j) = tall && tall->is_first() ? tall->triangle(i, j) : T(0);
}

template <class S, class T>
std::int64_t triangle_of_qr_together(std::int64_t context, std::int64_t number, std::int64_t, Window<S> in,
                                     Window<T> r) {
  const Team team(context, number, {in.box});
  if (team.place() < 0) return 0;
  const OneThread guard;
  if (!team.is_whole() && !team.gives(team.rank(), 0)) {
    write_triangle<T>(r, nullptr);
    return 0;
  }
  Tall<T> tall(team, in);
  write_triangle(r, &tall);
  return 0;
}

template <class S, class T>
std::int64_t qr_together(std::int64_t context, std::int64_t number, std::int64_t, Window<S> in, Window<T> q,
                         Window<T> r) {
  const Team team(context, number, {in.box});
  if (team.place() < 0) return 0;
  const OneThread guard;
  const bool is_whole = team.is_whole(), gives = is_whole || team.gives(team.rank(), 0);
  Columns<T> own(in.box.rows, in.box.columns);
  if (gives) {
    Tall<T> tall(team, in);
    write_triangle(r, &tall);
    own = tall.orthogonal();
  } else
    write_triangle<T>(r, nullptr);
  std::vector<Parcel> sends, receives;  // to ranks with the same rows
  for (std::int64_t w = 0; !is_whole && w < team.size(); ++w) {
    const std::int64_t other = team.rank_of(w);
    if (other == team.rank() || !(team.box(other, 0) == in.box)) continue;
    const Parcel all{other, reinterpret_cast<char *>(own.data()), std::int64_t(own.values.size() * sizeof(T))};
    if (gives)
      sends.push_back(all);
    else if (team.gives(other, 0))
      receives.push_back(all);
  }
  team.exchange(sends, receives);
  own.copy_to(q.view());
  return 0;
}

}  // namespace lapack
}  // namespace distspmd
