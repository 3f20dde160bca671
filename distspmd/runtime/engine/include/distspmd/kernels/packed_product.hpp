// Products of matrices whose rows, columns and depth are several indices each, as those of windows that slide.
//
// c[rows, columns] = sum over depth of a[rows, depth] * b[depth, columns], where each of the three is any
// number of loops, and an operand moves by any number of elements with each. So a convolution is one
// product, also with strides, dilation and groups. Blocks of a and b are packed into the order in which the
// innermost loops read them, and stay in the cache while these run: b in panels of two vectors of columns,
// a by rows. As many rows as there are registers for are multiplied with a panel.
//
// Each element is added up in the order of the depth, whatever else is computed beside it.
//
// Functions are those of one file: programs that are compiled by other flags may be in the same process.
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <cstring>
#include <type_traits>
#include <utility>
#include <vector>

#include <omp.h>
#ifdef __AVX512F__
#include <immintrin.h>
#endif

namespace distspmd {
inline namespace v1 {
namespace packed {
namespace {

using Int = std::int64_t;

/// A loop, and how many elements two operands move with it.
struct Loop {
  Int extent, first, second;
};
using Loops = std::vector<Loop>;

/// A loop around products, and how many elements a, b and c move with it.
struct Batch {
  Int extent, a, b, c;
};

#if defined(__AVX512F__)
constexpr int vector_bytes = 64, most_rows = 14;
#elif defined(__AVX__)
constexpr int vector_bytes = 32, most_rows = 6;
#elif defined(__aarch64__)
constexpr int vector_bytes = 16, most_rows = 14;
#else
constexpr int vector_bytes = 16, most_rows = 6;
#endif
/// Of the depth of a block: a panel of b stays in the first cache.
constexpr Int block_bytes = 1536;
/// What is worth a second thread.
constexpr double threaded_operations = 1e6;

template <class T>
constexpr int lanes = vector_bytes / static_cast<int>(sizeof(T));
template <class T>
constexpr int panel = 2 * lanes<T>;
/// Between rows of a block of a; it is known to the compiler, so that rows need no address each.
template <class T>
constexpr Int pitch = (block_bytes + vector_bytes) / static_cast<Int>(sizeof(T));

template <class T>
struct VectorOf {
  typedef T type __attribute__((vector_size(vector_bytes), aligned(alignof(T)), may_alias));
};
template <class T>
using Vector = typename VectorOf<T>::type;
template <class T>
struct LanesOf {
  using Number = std::conditional_t<sizeof(T) == 4, std::int32_t, std::int64_t>;
  typedef Number type __attribute__((vector_size(vector_bytes)));
};
template <class T>
using Numbers = typename LanesOf<T>::type;

template <class T>
inline Vector<T> load(const T *from) {
  return *reinterpret_cast<const Vector<T> *>(from);
}
template <class T>
inline void store(T *to, Vector<T> value) {
  *reinterpret_cast<Vector<T> *>(to) = value;
}

#ifdef __AVX512F__
inline Vector<float> load_first(const float *from, int count) {
  return (Vector<float>)_mm512_maskz_loadu_ps(static_cast<__mmask16>((1u << count) - 1), from);
}
inline Vector<double> load_first(const double *from, int count) {
  return (Vector<double>)_mm512_maskz_loadu_pd(static_cast<__mmask8>((1u << count) - 1), from);
}
inline void store_first(float *to, Vector<float> value, int count) {
  _mm512_mask_storeu_ps(to, static_cast<__mmask16>((1u << count) - 1), (__m512)value);
}
inline void store_first(double *to, Vector<double> value, int count) {
  _mm512_mask_storeu_pd(to, static_cast<__mmask8>((1u << count) - 1), (__m512d)value);
}
#else
template <class T>
inline Vector<T> load_first(const T *from, int count) {
  if (count == lanes<T>) return load(from);
  Vector<T> value = {};
  for (int i = 0; i < count; ++i) value[i] = from[i];
  return value;
}
template <class T>
inline void store_first(T *to, Vector<T> value, int count) {
  for (int i = 0; i < count; ++i) to[i] = value[i];
}
#endif

/// The lanes of two vectors that have these numbers, of which those of the second come behind those of the first.
template <class T, int... I>
inline Vector<T> chosen(Vector<T> low, Vector<T> high) {
#ifdef __clang__
  return __builtin_shufflevector(low, high, I...);
#else
  return __builtin_shuffle(low, high, Numbers<T>{I...});
#endif
}

template <class T, int... I>
inline Vector<T> even_lanes(Vector<T> low, Vector<T> high, std::integer_sequence<int, I...>) {
  return chosen<T, (2 * I)...>(low, high);
}

/// Up to a vector of elements that are `step` apart; nothing beyond the last is touched.
template <class T>
inline Vector<T> load_apart(const T *from, Int step, int count) {
  constexpr int size = lanes<T>;
  if (step == 1) return load_first(from, count);
  if (step == 2) {
    const int reach = 2 * count - 1;
    const auto low = load_first(from, std::min(size, reach));
    const auto high = load_first(from + (reach > size ? size : 0), std::max(0, reach - size));
    return even_lanes<T>(low, high, std::make_integer_sequence<int, size>());
  }
  Vector<T> value = {};
  for (int i = 0; i < count; ++i) value[i] = from[i * step];
  return value;
}

/// Places of a run of loops in two operands, in order.
struct Places {
  std::vector<Int> first, second;

  explicit Places(const Loops &loops) : first{0}, second{0} {
    for (const Loop &loop : loops) {
      std::vector<Int> outer_first, outer_second;
      outer_first.swap(first);
      outer_second.swap(second);
      first.reserve(outer_first.size() * loop.extent);
      second.reserve(outer_first.size() * loop.extent);
      for (std::size_t n = 0; n < outer_first.size(); ++n)
        for (Int i = 0; i < loop.extent; ++i) {
          first.push_back(outer_first[n] + i * loop.first);
          second.push_back(outer_second[n] + i * loop.second);
        }
    }
  }
  Int size() const { return static_cast<Int>(first.size()); }
};

/// Neighbours that are equally far apart, up to a vector of them.
struct Run {
  Int begin;
  int count;
  Int step;
};

/// The runs of `count` places.
inline void find_runs(const Int *places, Int count, int most, std::vector<Run> &found) {
  found.clear();
  for (Int begin = 0; begin < count;) {
    const Int step = begin + 1 < count ? places[begin + 1] - places[begin] : 1;
    Int end = begin + 1;
    while (end < count && end - begin < most && places[end] - places[end - 1] == step) ++end;
    if (end - begin == 2 && step != 1 && end < count) end = begin + 1;  // the next run has its second
    found.push_back({begin, static_cast<int>(end - begin), end - begin == 1 ? 1 : step});
    begin = end;
  }
}

template <class T, int Distance, int... I>
inline void exchange(Vector<T> &low, Vector<T> &high, std::integer_sequence<int, I...>) {
  constexpr int size = sizeof...(I);
  const auto a = low, b = high;
  low = chosen<T, (I & Distance ? size + I - Distance : I)...>(a, b);
  high = chosen<T, (I & Distance ? size + I : I + Distance)...>(a, b);
}

template <class T, int Distance>
inline void exchange_all(Vector<T> (&rows)[lanes<T>]) {
  constexpr int size = lanes<T>;
#pragma GCC unroll 16
  for (int i = 0; i < size; ++i)
    if (!(i & Distance))
      exchange<T, Distance>(rows[i], rows[i + Distance], std::make_integer_sequence<int, size>());
  if constexpr (Distance > 1) exchange_all<T, Distance / 2>(rows);
}

/// `to[j * width + i] = from[across[i] + along[j]]` for places across and along, whichever are neighbours.
template <class T>
class Packer {
 public:
  /// Up to a vector behind `to` may be written.
  void pack(const T *from, const Int *across, Int count, const Int *along, Int length, Int width, T *to) {
    if (beside(across, count) >= beside(along, length)) {
      find_runs(across, count, lanes<T>, runs_);
      for (const Run &run : runs_) copied(from + across[run.begin], run, along, length, width, to + run.begin);
    } else {
      find_runs(along, length, lanes<T>, runs_);
      for (const Run &run : runs_) turned(from + along[run.begin], run, across, count, width, to + run.begin * width);
    }
  }

  /// Of each of some places, the part that has another one beside it or next but one; a sample is looked at.
  static double beside(const Int *places, Int count) {
    const Int looked = std::min<Int>(count, 4 * panel<T>);
    Int found = 0;
    for (Int i = 1; i < looked; ++i) found += places[i] - places[i - 1] == 1 || places[i] - places[i - 1] == 2;
    return static_cast<double>(found) / static_cast<double>(looked);
  }

 private:
  static void copied(const T *from, const Run &run, const Int *along, Int length, Int width, T *to) {
    const int count = run.count;
    const Int step = run.step;
    if (step == 1 && count == lanes<T>) {
      for (Int j = 0; j < length; ++j) store(to + j * width, load(from + along[j]));
    } else if (step == 1) {
      for (Int j = 0; j < length; ++j) store_first(to + j * width, load_first(from + along[j], count), count);
    } else {
      for (Int j = 0; j < length; ++j) store_first(to + j * width, load_apart(from + along[j], step, count), count);
    }
  }

  static void turned(const T *from, const Run &run, const Int *across, Int count, Int width, T *to) {
    constexpr int size = lanes<T>;
    for (Int left = 0; left < count; left += size) {
      Vector<T> rows[size] = {};
      const int own = static_cast<int>(std::min<Int>(size, count - left));
      for (int i = 0; i < own; ++i) rows[i] = load_apart(from + across[left + i], run.step, run.count);
      exchange_all<T, size / 2>(rows);
      for (int j = 0; j < run.count; ++j) store_first(to + j * width + left, rows[j], own);
    }
  }

  std::vector<Run> runs_;
};

/// Where a tile of c goes: places of its rows and columns.
template <class T>
struct Target {
  T *c;
  const Int *rows, *columns;
  int count;
  const std::vector<Run> *runs;  // of columns
  bool is_first, is_whole;
};

template <class T>
inline void add_first(T *to, Vector<T> value, int count, bool is_first) {
  store_first(to, is_first ? value : value + load_first(to, count), count);
}

/// Columns of a tile as rows, where rows are neighbours in c.
template <class T>
void put_turned(const T *tile, int rows, const Target<T> &to) {
  constexpr int size = lanes<T>;
  for (int top = 0; top < rows; top += size) {
    for (int left = 0; left < to.count; left += size) {
      Vector<T> block[size] = {};
      const int own = std::min(size, rows - top);
      for (int i = 0; i < own; ++i) block[i] = load(tile + (top + i) * panel<T> + left);
      exchange_all<T, size / 2>(block);
      for (int j = 0; j < std::min(size, to.count - left); ++j)
        add_first(to.c + to.rows[top] + to.columns[left + j], block[j], own, to.is_first);
    }
  }
}

template <class T>
void put_apart(const T *tile, int rows, const Target<T> &to) {
  if (rows > 1 && to.rows[rows - 1] - to.rows[0] == rows - 1 && static_cast<int>(to.runs->size()) > rows) {
    put_turned(tile, rows, to);
    return;
  }
  for (int i = 0; i < rows; ++i, tile += panel<T>) {
    T *const row = to.c + to.rows[i];
    for (const Run &run : *to.runs) {
      T *const here = row + to.columns[run.begin];
      if (run.step == 1) {
        add_first(here, load(tile + run.begin), run.count, to.is_first);
      } else {
        for (int j = 0; j < run.count; ++j)
          here[j * run.step] = tile[run.begin + j] + (to.is_first ? T(0) : here[j * run.step]);
      }
    }
  }
}

/// A tile of c, which is in registers while it is added up.
template <class T, int Rows>
void tile(Int depth, const T *a, const T *b, const Target<T> &to) {
  constexpr int size = lanes<T>;
  Vector<T> sums[Rows][2] = {};
  for (Int k = 0; k < depth; ++k, b += 2 * size) {
    const auto left = load(b), right = load(b + size);
#pragma GCC unroll 16
    for (int i = 0; i < Rows; ++i) {
      const T factor = a[i * pitch<T> + k];
      sums[i][0] += factor * left;
      sums[i][1] += factor * right;
    }
  }
  if (to.is_whole) {
    const Int column = to.columns[0];
#pragma GCC unroll 16
    for (int i = 0; i < Rows; ++i) {
      T *const row = to.c + to.rows[i] + column;
      if (!to.is_first) sums[i][0] += load(row), sums[i][1] += load(row + size);
      store(row, sums[i][0]);
      store(row + size, sums[i][1]);
    }
    return;
  }
  T values[Rows * 2 * size + size];
#pragma GCC unroll 16
  for (int i = 0; i < Rows; ++i) {
    store(values + i * 2 * size, sums[i][0]);
    store(values + i * 2 * size + size, sums[i][1]);
  }
  put_apart(values, Rows, to);
}

template <class T, int... I>
void tile_of(int rows, Int depth, const T *a, const T *b, const Target<T> &to, std::integer_sequence<int, I...>) {
  using Call = void (*)(Int, const T *, const T *, const Target<T> &);
  static constexpr Call calls[] = {tile<T, I + 1>...};
  calls[rows - 1](depth, a, b, to);
}

/// Rows in groups that differ by one row at most.
struct Groups {
  Int rows, number;
  explicit Groups(Int of) : rows(of), number((of + most_rows - 1) / most_rows) {}
  Int begin(Int n) const { return n * (rows / number) + std::min(n, rows % number); }
  int size(Int n) const { return static_cast<int>(begin(n + 1) - begin(n)); }
};

/// Memory that a thread keeps from call to call.
template <class T>
T *room(Int elements, int number) {
  thread_local std::array<std::vector<T>, 2> kept;
  if (static_cast<Int>(kept[number].size()) < elements) kept[number].resize(elements);
  return kept[number].data();
}

/// Products of one shape, each on the threads that are given to it.
template <class T>
class Product {
 public:
  Product(const Loops &rows, const Loops &columns, const Loops &depth)
      : rows_(rows), columns_(columns), depth_(depth), groups_(0) {
    if (packing(columns_, depth_.second, rows_, depth_.first) < packing(rows_, depth_.first, columns_, depth_.second)) {
      std::swap(rows_, columns_);
      std::swap(depth_.first, depth_.second);
      is_turned_ = true;
    }
    groups_ = Groups(rows_.size());
  }

  double operations() const {
    return 2.0 * static_cast<double>(rows_.size()) * static_cast<double>(columns_.size()) *
           static_cast<double>(depth_.size());
  }

  void run(const T *a, const T *b, T *c, int threads) const {
    if (!rows_.size() || !columns_.size()) return;
    if (!depth_.size()) {
      for (const Int row : rows_.second)
        for (const Int column : columns_.second) c[row + column] = T(0);
      return;
    }
    if (is_turned_) std::swap(a, b);
    const Int most = block_bytes / static_cast<Int>(sizeof(T));
    const Int blocks = (depth_.size() + most - 1) / most, block = (depth_.size() + blocks - 1) / blocks;
    T *const packed = room<T>(rows_.size() * pitch<T> + lanes<T>, 0);
    for (Int first = 0; first < depth_.size(); first += block) {
      const Int depth = std::min(block, depth_.size() - first);
      if (threads == 1) {
        pack_rows(a, first, depth, packed, 0, 1);
        multiply(b, c, first, depth, packed, 0, 1);
        continue;
      }
#pragma omp parallel num_threads(threads)
      {
        const int own = omp_get_thread_num(), all = omp_get_num_threads();
        pack_rows(a, first, depth, packed, own, all);
#pragma omp barrier
        multiply(b, c, first, depth, packed, own, all);
      }
    }
  }

 private:
  /// What it takes to pack rows by rows and columns in panels, and to write c, about.
  static double packing(const Places &rows, const std::vector<Int> &of_rows, const Places &columns,
                        const std::vector<Int> &of_columns) {
    const auto beside = [](const std::vector<Int> &places) {
      return Packer<T>::beside(places.data(), static_cast<Int>(places.size()));
    };
    const auto cost = [&](const std::vector<Int> &wanted, const std::vector<Int> &other) {
      return 0.15 + (beside(wanted) > 0.5 ? 0.0 : beside(other) > 0.5 ? 0.35 : 1.35);
    };
    const auto size = [](const std::vector<Int> &places) { return static_cast<double>(places.size()); };
    return size(of_rows) * (size(rows.first) * cost(of_rows, rows.first) +
                            size(columns.first) * cost(columns.first, of_columns)) +
           size(rows.first) * size(columns.first) * cost(columns.second, rows.second) *
               (1 + size(of_rows) * sizeof(T) / block_bytes);
  }

  void pack_rows(const T *a, Int first, Int depth, T *packed, int own, int all) const {
    Packer<T> packer;
    const Int begin = rows_.size() * own / all, end = rows_.size() * (own + 1) / all;
    packer.pack(a, depth_.first.data() + first, depth, rows_.first.data() + begin, end - begin, pitch<T>,
                packed + begin * pitch<T>);
  }

  /// All tiles of a block of the depth, shared by panels of columns, and by rows where these are few.
  void multiply(const T *b, T *c, Int first, Int depth, const T *packed, int own, int all) const {
    constexpr int width = panel<T>;
    const Int across = (columns_.size() + width - 1) / width;
    const Int parts = across >= 4 * all ? 1 : std::min<Int>(groups_.number, all);
    T *const panel_of_b = room<T>(depth * width + width, 1);
    Packer<T> packer;
    std::vector<Run> runs;
    for (Int item = own * across * parts / all; item < (own + 1) * across * parts / all; ++item) {
      const Int column = item / parts * width, part = item % parts;
      const int count = static_cast<int>(std::min<Int>(width, columns_.size() - column));
      const Int *const from = columns_.first.data() + column, *const to = columns_.second.data() + column;
      packer.pack(b, from, count, depth_.second.data() + first, depth, width, panel_of_b);
      find_runs(to, count, lanes<T>, runs);
      const bool whole = count == width && to[width - 1] - to[0] == width - 1 && runs.size() == 2;
      for (Int n = part * groups_.number / parts; n < (part + 1) * groups_.number / parts; ++n) {
        const Int begin = groups_.begin(n);
        const Target<T> target{c, rows_.second.data() + begin, to, count, &runs, first == 0, whole};
        tile_of(groups_.size(n), depth, packed + begin * pitch<T>, panel_of_b, target,
                std::make_integer_sequence<int, most_rows>());
      }
    }
  }

  Places rows_, columns_, depth_;
  Groups groups_;
  bool is_turned_ = false;
};

/// c = a b, for each item of a batch, on threads if that is worth it.
///
/// Loops are outermost first. Those of rows move a and c, those of columns b and c, those of depth a and b.
template <class T>
void multiply(const Loops &rows, const Loops &columns, const Loops &depth, const std::vector<Batch> &batch, const T *a,
              const T *b, T *c) {
  const Product<T> product(rows, columns, depth);
  Int count = 1;
  for (const Batch &loop : batch) count *= loop.extent;
  const auto run = [&](Int item, int threads) {
    Int places[3] = {0, 0, 0};
    for (auto loop = batch.rbegin(); loop != batch.rend(); ++loop) {
      const Int index = item % loop->extent;
      item /= loop->extent;
      places[0] += index * loop->a, places[1] += index * loop->b, places[2] += index * loop->c;
    }
    product.run(a + places[0], b + places[1], c + places[2], threads);
  };
  const double operations = product.operations() * static_cast<double>(count);
  const int threads = operations < threaded_operations || omp_in_parallel() ? 1 : omp_get_max_threads();
  if (threads > 1 && count >= threads) {
#pragma omp parallel for num_threads(threads)
    for (Int item = 0; item < count; ++item) run(item, 1);
  } else {
    for (Int item = 0; item < count; ++item) run(item, threads);
  }
}

}  // namespace
}  // namespace packed
}  // namespace v1
}  // namespace distspmd
