// The indices that a rank touches, in those dimensions of an array where data decide which.
//
// A byte for each index, in memory that the system gives when it is written: what a rank touches
// costs memory, not what it could touch.
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <new>
#include <utility>
#include <vector>

#include <distspmd/plan/boxes.hpp>

namespace distspmd {
inline namespace v1 {

class Touched {
 public:
  /// Extents of the dimensions that data decide; at least one.
  explicit Touched(std::vector<std::int64_t> extents) : extents_(std::move(extents)) {
    for (const std::int64_t extent : extents_) volume_ *= extent;
    marks_ = static_cast<char *>(std::calloc(static_cast<std::size_t>(std::max<std::int64_t>(1, volume_)), 1));
    if (marks_ == nullptr) throw std::bad_alloc();
  }
  ~Touched() { std::free(marks_); }
  Touched(const Touched &) = delete;
  Touched &operator=(const Touched &) = delete;

  /// Touch all indices from `first` to `last`, both included; those outside the array do not count.
  template <std::size_t D>
  void operator()(const std::array<std::int64_t, D> &first, const std::array<std::int64_t, D> &last) {
    touch<D, 0>(first, last, 0);
  }

  /// Call `run(begin, length)` for each run of touched indices from `begin` on below `end`.
  template <class Run>
  void runs(std::int64_t begin, std::int64_t end, Run run) const {
    if (highest_ == 0) return;
    std::int64_t at = std::max(begin, lowest_);
    end = std::min(end, highest_);
    while (true) {
      while (at + 8 <= end && eight(at) == 0) at += 8;
      while (at < end && !marks_[at]) ++at;
      if (at >= end) return;
      const std::int64_t from = at;
      while (at + 8 <= end && eight(at) == 0x0101010101010101u) at += 8;
      while (at < end && marks_[at]) ++at;
      run(from, at - from);
    }
  }

  /// Forget all.
  void clear() {
    runs(0, volume_, [this](std::int64_t from, std::int64_t length) {
      std::fill_n(marks_ + from, length, char(0));
    });
    lowest_ = INT64_MAX;
    highest_ = 0;
  }

  const std::vector<std::int64_t> &extents() const { return extents_; }

 private:
  template <std::size_t D, std::size_t d>
  void touch(const std::array<std::int64_t, D> &first, const std::array<std::int64_t, D> &last,
             std::int64_t base) {
    const std::int64_t lo = std::max<std::int64_t>(first[d], 0);
    const std::int64_t hi = std::min(last[d] + 1, extents_[d]);
    if (hi <= lo) return;
    if constexpr (d + 1 < D) {
      for (std::int64_t i = lo; i < hi; ++i)
        touch<D, d + 1>(first, last, (base + i) * extents_[d + 1]);
    } else {
      if (hi - lo == 1)
        marks_[base + lo] = 1;
      else
        std::fill_n(marks_ + base + lo, hi - lo, char(1));
      lowest_ = std::min(lowest_, base + lo);
      highest_ = std::max(highest_, base + hi);
    }
  }

  std::uint64_t eight(std::int64_t at) const {
    std::uint64_t word;
    __builtin_memcpy(&word, marks_ + at, sizeof word);
    return word;
  }

  std::vector<std::int64_t> extents_;
  std::int64_t volume_ = 1, lowest_ = INT64_MAX, highest_ = 0;
  char *marks_;
};

/// What a rank touches where only loops and the ends of its tile decide: boxes, none in another.
class TouchedBoxes {
 public:
  explicit TouchedBoxes(const std::vector<std::int64_t> &extents) : extents_(extents) {}

  /// Touch all indices from `first` to `last`, both included; those outside the array do not count.
  template <std::size_t D>
  void operator()(const std::array<std::int64_t, D> &first, const std::array<std::int64_t, D> &last) {
    Box box;
    for (std::size_t d = 0; d < D; ++d)
      box.push_back({std::max<std::int64_t>(first[d], 0), std::min(last[d] + 1, extents_[d])});
    for (Box &piece : subtract_all(box, boxes_)) boxes_.push_back(std::move(piece));
  }

  const std::vector<Box> &boxes() const { return boxes_; }

 private:
  std::vector<std::int64_t> extents_;
  std::vector<Box> boxes_;
};

/// Code of a program that tells what the rank with these ends of its tile touches.
using Foresight = void (*)(const void *code, const std::int64_t *ends, TouchedBoxes &touched);

}  // namespace v1
}  // namespace distspmd
