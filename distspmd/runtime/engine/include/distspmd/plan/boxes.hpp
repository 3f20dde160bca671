// Boxes: products of half-open intervals in global indices, as in distspmd/layouts/intervals.py.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

namespace distspmd {
inline namespace v1 {

struct Interval {
  std::int64_t lo, hi;
};

inline bool operator==(const Interval &a, const Interval &b) {
  return a.lo == b.lo && a.hi == b.hi;
}

using Box = std::vector<Interval>;

inline bool is_empty(const Box &box) {
  return std::any_of(box.begin(), box.end(), [](const Interval &i) { return i.hi <= i.lo; });
}

/// Number of elements, or -1 where that is no 64-bit number.
inline std::int64_t volume(const Box &box) {
  if (is_empty(box)) return 0;
  std::int64_t elements = 1;
  for (const Interval &i : box) {
    std::int64_t extent;
    if (__builtin_sub_overflow(i.hi, i.lo, &extent)) return -1;
    if (__builtin_mul_overflow(elements, extent, &elements)) return -1;
  }
  return elements;
}

inline bool contains(const Box &outer, const Box &inner) {
  if (is_empty(inner)) return true;
  for (std::size_t d = 0; d < outer.size(); ++d)
    if (inner[d].lo < outer[d].lo || inner[d].hi > outer[d].hi) return false;
  return true;
}

inline Box intersect(const Box &a, const Box &b) {
  Box common(a.size());
  for (std::size_t d = 0; d < a.size(); ++d)
    common[d] = {std::max(a[d].lo, b[d].lo), std::min(a[d].hi, b[d].hi)};
  return common;
}

inline bool disjoint(const Box &a, const Box &b) {
  for (std::size_t d = 0; d < a.size(); ++d)
    if (std::max(a[d].lo, b[d].lo) >= std::min(a[d].hi, b[d].hi)) return true;
  return false;
}

/// Add the elements of `a` outside `b` to `pieces`, as disjoint boxes.
inline void subtract(const Box &a, const Box &b, std::vector<Box> &pieces) {
  if (disjoint(a, b)) {
    pieces.push_back(a);
    return;
  }
  const Box common = intersect(a, b);
  Box rest = a;
  for (std::size_t d = 0; d < a.size(); ++d) {
    const Interval whole = rest[d];
    for (const Interval side :
         {Interval{whole.lo, common[d].lo}, Interval{common[d].hi, whole.hi}}) {
      if (side.hi <= side.lo) continue;
      rest[d] = side;
      pieces.push_back(rest);
    }
    rest[d] = common[d];
  }
}

/// Elements of `box` in none of `others`, as disjoint boxes.
inline std::vector<Box> subtract_all(const Box &box, const std::vector<Box> &others) {
  std::vector<Box> left;
  if (!is_empty(box)) left.push_back(box);
  for (const Box &other : others) {
    if (left.empty()) break;
    std::vector<Box> next;
    for (const Box &piece : left) subtract(piece, other, next);
    left.swap(next);
  }
  return left;
}

inline std::string text(const Box &box) {
  std::string found;
  for (const Interval &i : box)
    found += (found.empty() ? "" : ", ") + std::to_string(i.lo) + ":" + std::to_string(i.hi);
  return "[" + found + "]";
}

/// Where a rank keeps a tile: a pointer goes to the element `origin` of the global array.
struct Storage {
  Box tile;
  std::vector<std::int64_t> origin, strides;  // strides in elements

  /// A C-contiguous storage of exactly a box.
  static Storage of(const Box &box) {
    Storage storage{box, std::vector<std::int64_t>(box.size()),
                    std::vector<std::int64_t>(box.size())};
    std::int64_t stride = 1;
    for (std::size_t d = box.size(); d-- > 0;) {
      storage.origin[d] = box[d].lo;
      storage.strides[d] = stride;
      stride *= std::max<std::int64_t>(0, box[d].hi - box[d].lo);
    }
    return storage;
  }

  /// Elements from the pointer to the first element of a box.
  std::int64_t offset(const Box &box) const {
    std::int64_t elements = 0;
    for (std::size_t d = 0; d < box.size(); ++d) elements += (box[d].lo - origin[d]) * strides[d];
    return elements;
  }

  /// Elements from the element 0, 0, ... of the global array to the pointer.
  std::int64_t from_zero() const {
    std::int64_t elements = 0;
    for (std::size_t d = 0; d < origin.size(); ++d) elements += origin[d] * strides[d];
    return elements;
  }

  /// Whether a box is one run of elements, in row-major order.
  bool contiguous(const Box &box) const {
    std::int64_t run = 1;
    for (std::size_t d = box.size(); d-- > 0;) {
      const std::int64_t extent = box[d].hi - box[d].lo;
      if (extent == 1) continue;
      if (strides[d] != run) return false;
      run *= extent;
    }
    return true;
  }
};

}  // namespace v1
}  // namespace distspmd
