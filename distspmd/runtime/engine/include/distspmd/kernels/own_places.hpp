// Writes at places that data choose, by who holds a part of what is written.
#pragma once

#include <algorithm>
#include <cstdint>

namespace distspmd {

/// Call `write` for those of `count` numbers, in order, of which `is_own` is true.
///
/// Own numbers of a block are listed before any is written: whether a place is one's own is random,
/// and a branch on it would cost more than the write.
template <class IsOwn, class Write>
inline void for_own(std::int64_t count, bool all_are_own, IsOwn is_own, Write write) {
  if (all_are_own) {
    for (std::int64_t c = 0; c < count; ++c) write(c);
    return;
  }
  constexpr std::int64_t block = 256;
  std::int64_t own[block];
  for (std::int64_t first = 0; first < count; first += block) {
    const std::int64_t end = std::min(first + block, count);
    std::int64_t found = 0;
    for (std::int64_t c = first; c < end; ++c) {
      own[found] = c;
      found += is_own(c) ? 1 : 0;
    }
    for (std::int64_t n = 0; n < found; ++n) write(own[n]);
  }
}

}  // namespace distspmd
