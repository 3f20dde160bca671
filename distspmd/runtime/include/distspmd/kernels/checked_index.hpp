// Indices that are values of the run. One that is out of range is noted, for Python to raise an error
// after the call (distspmd/execution/messages.py), and element 0 is taken in its place.
#pragma once

#include <cstdint>

/// Whether an index was out of range since Python last asked, and of the first: the index, the number of
/// elements, and the line of the program.
inline __attribute__((visibility("default"), used)) std::int64_t distspmd_out_of_range[4] = {0, 0, 0, 0};

/// The place of an index among `count` elements; a negative one is counted from the end.
inline std::int64_t distspmd_checked_index(std::int64_t index, std::int64_t count, std::int64_t line) {
  const std::int64_t place = index < 0 ? index + count : index;
  if (__builtin_expect(place >= 0 && place < count, 1)) return place;
  if (!__atomic_exchange_n(&distspmd_out_of_range[0], 1, __ATOMIC_ACQ_REL)) {
    distspmd_out_of_range[1] = index;
    distspmd_out_of_range[2] = count;
    distspmd_out_of_range[3] = line;
  }
  return 0;
}
