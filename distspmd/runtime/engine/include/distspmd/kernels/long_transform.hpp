// Fourier transforms of a line whose parts lie on several ranks, of any length.
//
// The line is a matrix, row by row, of which ranks have columns first, and then rows: so columns are
// transformed, turned by roots, and rows are transformed (the four-step method, D. H. Bailey, FFTs in
// external or hierarchical memory, 1990). A length without two factors of some size is transformed as
// a convolution of a length that has them (Bluestein). Between the steps each element moves once.
#pragma once

#include <algorithm>
#include <cmath>
#include <complex>
#include <cstdint>
#include <map>
#include <type_traits>
#include <utility>
#include <vector>

#include <distspmd/kernels/fourier.hpp>
#include <distspmd/kernels/sample_sort.hpp>

namespace distspmd::lines {

/// Rows and columns of the matrix that a line is; and whether that is longer than the line.
struct Matrix {
  int64_t rows, columns;
  int64_t size() const { return rows * columns; }
};

/// The least rows for which a line of a length is such a matrix itself.
constexpr int64_t FEWEST_ROWS = 16;

/// The matrix for a line; larger than the line where it is transformed as a convolution.
inline Matrix matrix_of(int64_t length) {
  const auto [rows, columns] = fourier::balanced(length);
  const Matrix own{rows, columns};
  if (own.rows >= FEWEST_ROWS) return own;
  int64_t side = 1;
  while (side * side < 2 * length - 1) side *= 2;
  return side / 2 * side >= 2 * length - 1 ? Matrix{side / 2, side} : Matrix{side, side};
}

/// What transforms of one length need; each thread has its own.
template <class T>
struct OfLength {
  explicit OfLength(int64_t length)
      : length(length), matrix(matrix_of(length)), turns(matrix.size()), chirps(2 * length) {}
  bool convolves() const { return matrix.size() != length; }
  /// The factor of element `k` in a convolution: `exp(-pi i k^2 / length)`.
  std::complex<T> chirp(int64_t k) const {
    return chirps.at(static_cast<int64_t>((unsigned __int128)k * k % (2 * length)));
  }
  /// The transform of all factors, conjugate, in some rows of the matrix.
  const std::vector<std::complex<T>> &filter_of(Part rows) {
    if (rows.begin == filtered.begin && rows.end == filtered.end) return filter;
    std::vector<std::complex<T>> line(matrix.size(), 0);
    for (int64_t k = 0; k < length; ++k)
      line[k] = line[(matrix.size() - k) % matrix.size()] = std::conj(chirp(k)) / T(matrix.size());
    fourier::forward(line.data(), matrix.size(), 1);
    filter.clear();
    for (int64_t row = rows.begin; row < rows.end; ++row)
      for (int64_t column = 0; column < matrix.columns; ++column) filter.push_back(line[row + matrix.rows * column]);
    filtered = rows;
    return filter;
  }

  int64_t length;
  Matrix matrix;
  fourier::Roots<T> turns, chirps;
  std::vector<std::complex<T>> filter;
  Part filtered{0, 0};
  // what a rank has of the matrix in one step and the next, and what leaves and comes between them
  std::vector<std::complex<T>> matrices[2], leaving, coming;

  static OfLength &known(int64_t length) {
    thread_local std::map<int64_t, OfLength> all;
    return all.try_emplace(length, length).first->second;
  }
};

/// One transform, as a rank takes part in it.
template <class T>
class LongTransform : public LineInParts {
  using Complex = std::complex<T>;

 public:
  LongTransform(int64_t context, int64_t number, Part part)
      : LineInParts(context, number, part), all_(OfLength<T>::known(holders_.empty() ? 0 : part_of(count() - 1).end)) {}

  int64_t length() const { return all_.length; }

  /// Transform a part of the line to that part of the transform.
  void run(std::vector<Complex> &line) {
    if (own_ >= 0) {
      if (all_.convolves())
        convolve(line);
      else
        take_four_steps(line);
    }
    share(line);
  }

 private:
  /// Of the matrix: the columns, or the rows, that a holder has.
  Part columns(int64_t k) const { return {all_.matrix.columns * k / count(), all_.matrix.columns * (k + 1) / count()}; }
  Part rows(int64_t k) const { return {all_.matrix.rows * k / count(), all_.matrix.rows * (k + 1) / count()}; }
  Part part_of(int64_t k) const { return parts_[holders_[k]]; }

  void take_four_steps(std::vector<Complex> &line) {
    to_columns(line);
    transform_columns();
    to_rows();
    transform_each(all_.matrix.columns);
    from_rows(line);
  }

  void convolve(std::vector<Complex> &line) {
    for (int64_t k = 0; k < part_.size(); ++k) line[k] = times(line[k], all_.chirp(part_.begin + k));
    to_columns(line);
    transform_columns();
    to_rows();
    transform_each(all_.matrix.columns);
    const std::vector<Complex> &filter = all_.filter_of(rows(own_));
    std::vector<Complex> &matrix = all_.matrices[0];
    for (std::size_t k = 0; k < filter.size(); ++k) matrix[k] = std::conj(times(matrix[k], filter[k]));
    transform_each(all_.matrix.columns);
    back_to_columns();
    turn();
    transform_each(all_.matrix.rows);
    from_columns(line);
    for (int64_t k = 0; k < part_.size(); ++k) line[k] = times(std::conj(line[k]), all_.chirp(part_.begin + k));
  }

  void transform_each(int64_t length) {
    std::vector<Complex> &lines = all_.matrices[0];
    fourier::forward(lines.data(), length, int64_t(lines.size()) / length);
  }
  void transform_columns() {
    transform_each(all_.matrix.rows);
    turn();
  }
  /// Times the root of the row and the column of each element.
  void turn() {
    auto each = all_.matrices[0].begin();
    const Part own = columns(own_);
    for (int64_t column = own.begin; column < own.end; ++column)
      for (int64_t row = 0; row < all_.matrix.rows; ++row, ++each) *each = times(*each, all_.turns.at(row * column));
  }

  /// Call `code(line, first, last)` for what is in a part of a matrix of so wide lines, within a window of these.
  template <class Code>
  static void pieces(Part part, int64_t width, Part window, const Code &code) {
    if (part.size() == 0) return;
    for (int64_t line = part.begin / width; line * width < part.end; ++line) {
      const Part own = common({part.begin - line * width, part.end - line * width}, window);
      if (own.size()) code(line, own.begin, own.end);
    }
  }
  static int64_t in_pieces(Part part, int64_t width, Part window) {
    int64_t found = 0;
    pieces(part, width, window, [&](int64_t, int64_t begin, int64_t end) { found += end - begin; });
    return found;
  }

  /// Call `code(line, place, packed)` for each of these elements, which lie in a parcel line by line.
  template <class Code>
  static void places(Part part, int64_t width, Part window, const Code &code) {
    struct Piece {
      int64_t line, begin, end, packed;
    };
    constexpr std::size_t tile = 16;  // lines of a matrix whose elements are side by side in memory
    std::vector<Piece> some;
    const auto done = [&] {
      for (int64_t place = window.begin; place < window.end; ++place)
        for (const Piece &piece : some)
          if (piece.begin <= place && place < piece.end) code(piece.line, place, piece.packed + place - piece.begin);
      some.clear();
    };
    int64_t packed = 0;
    pieces(part, width, window, [&](int64_t line, int64_t begin, int64_t end) {
      some.push_back({line, begin, end, packed});
      packed += end - begin;
      if (some.size() == tile) done();
    });
    done();
  }

  /// Carry what holders send each other: `elements_of(k, l)` elements from `k` to `l`.
  template <class Count, class Pack, class Unpack>
  void move(const Count &elements_of, const Pack &pack, const Unpack &unpack) {
    std::vector<int64_t> left{0}, come{0};
    for (int64_t k = 0; k < count(); ++k) {
      left.push_back(left.back() + elements_of(own_, k));
      come.push_back(come.back() + (k == own_ ? 0 : elements_of(k, own_)));
    }
    all_.leaving.resize(left.back()), all_.coming.resize(come.back());
    std::vector<Parcel> sends, receives;
    const auto parcel = [&](int64_t k, std::vector<Complex> &all, const std::vector<int64_t> &ends) {
      return Parcel{holders_[k], (char *)(all.data() + ends[k]), (ends[k + 1] - ends[k]) * int64_t(sizeof(Complex))};
    };
    for (int64_t k = 0; k < count(); ++k) {
      pack(k, all_.leaving.data() + left[k]);
      if (k == own_) continue;
      if (left[k + 1] > left[k]) sends.push_back(parcel(k, all_.leaving, left));
      if (come[k + 1] > come[k]) receives.push_back(parcel(k, all_.coming, come));
    }
    talk_.exchange(sends, receives);
    for (int64_t k = 0; k < count(); ++k)
      unpack(k, k == own_ ? all_.leaving.data() + left[k] : all_.coming.data() + come[k]);
  }

  /// The matrix in columns of `height` elements, of a part of a line of so wide rows; zeros where it ends before them.
  void to_columns(const std::vector<Complex> &line) {
    const int64_t width = all_.matrix.columns, height = all_.matrix.rows;
    const Part own = columns(own_);
    std::vector<Complex> &matrix = all_.matrices[0];
    matrix.resize(own.size() * height);
    if (all_.convolves()) std::fill(matrix.begin(), matrix.end(), Complex(0));
    move([&](int64_t k, int64_t l) { return in_pieces(part_of(k), width, columns(l)); },
         [&](int64_t k, Complex *into) {
           pieces(part_, width, columns(k), [&](int64_t row, int64_t begin, int64_t end) {
             into = std::copy_n(line.data() + (row * width + begin - part_.begin), end - begin, into);
           });
         },
         [&](int64_t k, const Complex *from) {
           places(part_of(k), width, own, [&](int64_t row, int64_t column, int64_t packed) {
             matrix[(column - own.begin) * height + row] = from[packed];
           });
         });
  }
  /// The part of the line of which columns are at hand.
  void from_columns(std::vector<Complex> &line) {
    const int64_t width = all_.matrix.columns;
    from_lines(line, width, all_.matrix.rows, [&](int64_t k) { return columns(k); });
  }
  /// The part of the line whose element `height * column + row` is that of a row, and rows are at hand.
  void from_rows(std::vector<Complex> &line) {
    const int64_t height = all_.matrix.rows;
    from_lines(line, height, all_.matrix.columns, [&](int64_t k) { return rows(k); });
  }
  template <class Window>
  void from_lines(std::vector<Complex> &line, int64_t width, int64_t length, const Window &window) {
    const Part own = window(own_);
    const std::vector<Complex> &matrix = all_.matrices[0];
    move([&](int64_t k, int64_t l) { return in_pieces(part_of(l), width, window(k)); },
         [&](int64_t k, Complex *into) {
           places(part_of(k), width, own, [&](int64_t row, int64_t column, int64_t packed) {
             into[packed] = matrix[(column - own.begin) * length + row];
           });
         },
         [&](int64_t k, const Complex *from) {
           pieces(part_, width, window(k), [&](int64_t row, int64_t begin, int64_t end) {
             std::copy_n(from, end - begin, line.data() + (row * width + begin - part_.begin));
             from += end - begin;
           });
         });
  }
  void to_rows() {
    const int64_t width = all_.matrix.columns, height = all_.matrix.rows;
    transpose(height, width, [&](int64_t k) { return columns(k); }, [&](int64_t k) { return rows(k); });
  }
  void back_to_columns() {
    const int64_t width = all_.matrix.columns, height = all_.matrix.rows;
    transpose(width, height, [&](int64_t k) { return rows(k); }, [&](int64_t k) { return columns(k); });
  }
  /// Lines of one length become lines of another across them.
  template <class Before, class After>
  void transpose(int64_t length, int64_t length_after, const Before &before, const After &after) {
    const Part had = before(own_), has = after(own_);
    const std::vector<Complex> &matrix = all_.matrices[0];
    std::vector<Complex> &result = all_.matrices[1];
    result.resize(has.size() * length_after);
    move([&](int64_t k, int64_t l) { return before(k).size() * after(l).size(); },
         [&](int64_t k, Complex *into) {
           for (int64_t line = had.begin; line < had.end; ++line)
             into = std::copy_n(matrix.data() + ((line - had.begin) * length + after(k).begin), after(k).size(), into);
         },
         [&](int64_t k, const Complex *from) {
           constexpr int64_t tile = 16;  // lines of which caches keep what is written
           const Part lines = before(k);
           for (int64_t first = lines.begin; first < lines.end; first += tile) {
             const int64_t last = std::min(first + tile, lines.end);
             const Complex *const here = from + (first - lines.begin) * has.size();
             for (int64_t at = 0; at < has.size(); ++at)
               for (int64_t line = first; line < last; ++line)
                 result[at * length_after + line] = here[(line - first) * has.size() + at];
           }
         });
    std::swap(all_.matrices[0], all_.matrices[1]);
  }

  OfLength<T> &all_;
};

/// The part of the transform of a line, times the square root of its length by minus `halves`, of this rank's part.
template <class In, class T>
inline void transform_parts(int64_t context, int64_t number, Part part, bool inverse, int halves, const In *in,
                            int64_t step, std::complex<T> *out, int64_t out_step) {
  LongTransform<T> transform(context, number, part);
  std::vector<std::complex<T>> line(part.size());
  for (int64_t k = 0; k < part.size(); ++k) {
    line[k] = std::complex<T>(in[k * step]);
    if (inverse) line[k] = std::conj(line[k]);
  }
  if (transform.is_whole())
    fourier::forward(line.data(), part.size(), 1);
  else
    transform.run(line);
  const double scale = std::pow(double(std::max<int64_t>(transform.length(), 1)), -0.5 * halves);
  for (int64_t k = 0; k < part.size(); ++k) out[k * out_step] = (inverse ? std::conj(line[k]) : line[k]) * T(scale);
}

}  // namespace distspmd::lines
