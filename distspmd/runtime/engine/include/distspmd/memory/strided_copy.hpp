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

/// Copy a few bytes, without a call: `memcpy` of a size that is not constant is one.
inline void copy_short(char *target, const char *source, std::int64_t bytes) {
  const auto ends = [&](auto word) {  // the first and the last of so many bytes, which may overlap
    std::memcpy(&word, source, sizeof word);
    decltype(word) last;
    std::memcpy(&last, source + bytes - sizeof word, sizeof word);
    std::memcpy(target, &word, sizeof word);
    std::memcpy(target + bytes - sizeof word, &last, sizeof word);
  };
  struct Sixteen {
    std::uint64_t a, b;
  };
  if (bytes >= 16) {
    for (std::int64_t at = 16; at + 16 < bytes; at += 16) std::memcpy(target + at, source + at, 16);
    ends(Sixteen{});
  } else if (bytes >= 8) {
    ends(std::uint64_t{});
  } else if (bytes >= 4) {
    ends(std::uint32_t{});
  } else {
    for (std::int64_t at = 0; at < bytes; ++at) target[at] = source[at];
  }
}

/// Copy n runs of some bytes each; strides are in bytes.
using Runs = void (*)(char *target, std::int64_t target_stride, const char *source,
                      std::int64_t source_stride, std::int64_t n, std::int64_t bytes);

template <std::int64_t bytes>
void copy_runs(char *target, std::int64_t target_stride, const char *source,
               std::int64_t source_stride, std::int64_t n, std::int64_t) {
  for (std::int64_t i = 0; i < n; ++i)
    std::memcpy(target + i * target_stride, source + i * source_stride, bytes);
}

inline void copy_runs_of(char *target, std::int64_t target_stride, const char *source,
                         std::int64_t source_stride, std::int64_t n, std::int64_t bytes) {
  for (std::int64_t i = 0; i < n; ++i)
    copy_short(target + i * target_stride, source + i * source_stride, bytes);
}

constexpr std::int64_t longest_short_run = 256;

inline Runs runs_of(std::int64_t bytes) {
  switch (bytes) {
    case 1: return copy_runs<1>;
    case 2: return copy_runs<2>;
    case 4: return copy_runs<4>;
    case 8: return copy_runs<8>;
    case 16: return copy_runs<16>;
    case 32: return copy_runs<32>;
    case 64: return copy_runs<64>;
    default: return copy_runs_of;
  }
}

/// A strided nest of runs, found once and run often.
class Move {
 public:
  /// The same box in two storages, `base` elements into each; copied where there is no reduction,
  /// past the cache if it streams.
  Move(const Storage &from, std::int64_t from_base, const Storage &to, std::int64_t to_base,
       const Box &box, std::int64_t itemsize, Kernel reduction = nullptr, bool streams = false)
      : source_offset_((from_base + from.offset(box)) * itemsize),
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
    if (kernel_) {
      run_ = itemsize;
    } else if (inner_.source != itemsize || inner_.target != itemsize) {
      run_ = itemsize, runs_ = runs_of(run_);
    } else {
      run_ = inner_.extent * itemsize;
      if (run_ <= longest_short_run && !outer_.empty()) {
        inner_ = outer_.back(), outer_.pop_back();
        runs_ = runs_of(run_);
      }
    }
    if (kernel_ || runs_) choose_tiles();
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

  /// Where the source has another loop innermost than the target, both go in tiles of whole lines.
  void choose_tiles() {
    const auto far = [](std::int64_t stride) { return stride < 0 ? -stride : stride; };
    const auto nearest =
        std::min_element(outer_.begin(), outer_.end(), [&](const Loop &a, const Loop &b) {
          return far(a.source) < far(b.source);
        });
    constexpr std::int64_t line = 64;
    if (nearest == outer_.end() || far(nearest->source) >= far(inner_.source) ||
        far(inner_.source) <= line || far(nearest->source) >= line)
      return;
    across_ = *nearest;
    outer_.erase(nearest);
    tile_ = std::max(beside, 2 * line / run_);
  }

  void nest(const Loop *loop, std::size_t depth, const char *source, char *target) const {
    if (depth > 0) {
      for (std::int64_t i = 0; i < loop->extent; ++i)
        nest(loop + 1, depth - 1, source + i * loop->source, target + i * loop->target);
    } else if (tile_) {
      for (std::int64_t a = 0; a < across_.extent; a += tile_)
        for (std::int64_t i = 0; i < inner_.extent; i += beside)
          for (std::int64_t b = a; b < std::min(a + tile_, across_.extent); ++b)
            row(source + b * across_.source + i * inner_.source,
                target + b * across_.target + i * inner_.target, std::min(beside, inner_.extent - i));
    } else {
      row(source, target, inner_.extent);
    }
  }

  void row(const char *source, char *target, std::int64_t n) const {
    if (runs_)
      runs_(target, inner_.target, source, inner_.source, n, run_);
    else if (kernel_)
      kernel_(target, inner_.target, source, inner_.source, n);
    else
      (streams_ ? stream_run : copy_run)(target, source, static_cast<std::size_t>(run_));
  }

  std::int64_t source_offset_, target_offset_, bytes_;
  // Runs of a tile that the target has side by side: fewer than lines of one set of the cache.
  static constexpr std::int64_t beside = 8;

  std::int64_t run_ = 0, tile_ = 0;  // bytes of a run, and runs across a tile, if there are tiles
  Kernel kernel_;
  Runs runs_ = nullptr;
  bool streams_;
  std::vector<Loop> outer_;
  Loop inner_{}, across_{};
};

}  // namespace v1
}  // namespace distspmd
