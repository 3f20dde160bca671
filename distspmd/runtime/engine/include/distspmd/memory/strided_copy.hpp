// Moves: a box goes from one storage to another, copied or combined, run by run.
#pragma once

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <vector>

#include <distspmd/plan/boxes.hpp>
#include <distspmd/memory/streaming_copy.hpp>
#include <distspmd/memory/reductions.hpp>

namespace distspmd {
inline namespace v1 {

struct Sixteen {
  std::uint64_t a, b;
};

/// Copy n elements of a fixed size.
template <class T>
void copy_elements(char *target, std::int64_t target_stride, const char *source,
                   std::int64_t source_stride, std::int64_t n) {
  for (std::int64_t i = 0; i < n; ++i)
    std::memcpy(target + i * target_stride, source + i * source_stride, sizeof(T));
}

/// The kernel that copies elements of a number of bytes which do not lie in one run; null for odd
/// sizes.
inline Kernel copy_kernel(std::int64_t itemsize) {
  switch (itemsize) {
    case 1: return copy_elements<std::uint8_t>;
    case 2: return copy_elements<std::uint16_t>;
    case 4: return copy_elements<std::uint32_t>;
    case 8: return copy_elements<std::uint64_t>;
    case 16: return copy_elements<Sixteen>;
    default: return nullptr;
  }
}

/// A strided nest of runs, found once and run often.
class Move {
 public:
  /// The same box in two storages, `base` elements into each; copied where there is no reduction,
  /// past the cache if it streams.
  Move(const Storage &from, std::int64_t from_base, const Storage &to, std::int64_t to_base,
       const Box &box, std::int64_t itemsize, Kernel reduction = nullptr, bool streams = false)
      : itemsize_(itemsize),
        source_offset_((from_base + from.offset(box)) * itemsize),
        target_offset_((to_base + to.offset(box)) * itemsize),
        kernel_(reduction),
        streams_(streams) {
    bytes_ = volume(box) * itemsize;
    std::vector<Loop> loops;
    for (std::size_t d = 0; d < box.size(); ++d) {
      const std::int64_t extent = box[d].hi - box[d].lo;
      if (extent != 1)
        loops.push_back({extent, from.strides[d] * itemsize, to.strides[d] * itemsize});
    }
    std::stable_sort(loops.begin(), loops.end(),
                     [](const Loop &a, const Loop &b) { return a.target > b.target; });
    for (const Loop &loop : loops) {
      if (!outer_.empty() && outer_.back().source == loop.extent * loop.source &&
          outer_.back().target == loop.extent * loop.target)
        outer_.back() = {outer_.back().extent * loop.extent, loop.source, loop.target};
      else
        outer_.push_back(loop);
    }
    if (!outer_.empty()) {
      inner_ = outer_.back();
      outer_.pop_back();
    } else {
      inner_ = {1, itemsize, itemsize};
    }
    const bool run = inner_.source == itemsize && inner_.target == itemsize;
    if (!kernel_ && !run) kernel_ = copy_kernel(itemsize);
    if (!kernel_ && !run) {  // elements of an odd size: each is a run of its own
      outer_.push_back(inner_);
      inner_ = {1, itemsize, itemsize};
    }
  }

  /// Copy or combine the box; returns its bytes.
  std::int64_t operator()(const char *source, char *target) const {
    nest(outer_.data(), outer_.size(), source + source_offset_, target + target_offset_);
    return bytes_;
  }

 private:
  struct Loop {
    std::int64_t extent, source, target;  // strides in bytes
  };

  void nest(const Loop *loop, std::size_t depth, const char *source, char *target) const {
    if (depth > 0) {
      for (std::int64_t i = 0; i < loop->extent; ++i)
        nest(loop + 1, depth - 1, source + i * loop->source, target + i * loop->target);
    } else if (kernel_) {
      kernel_(target, inner_.target, source, inner_.source, inner_.extent);
    } else {
      (streams_ ? stream_run : copy_run)(target, source,
                                         static_cast<std::size_t>(inner_.extent * itemsize_));
    }
  }

  std::int64_t itemsize_, source_offset_, target_offset_, bytes_;
  Kernel kernel_;
  bool streams_;
  std::vector<Loop> outer_;
  Loop inner_{};
};

}  // namespace v1
}  // namespace distspmd
