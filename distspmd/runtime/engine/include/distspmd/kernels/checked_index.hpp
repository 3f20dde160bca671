// Values of the run that Python refuses. The first is noted, for Python to raise an error after the call
// (distspmd/execution/messages.py); the program goes on with element 0, or with what C++ computes.
#pragma once

#include <cstdint>

/// Whether something was noted since Python last asked, and of the first: which error it is, the line of
/// the program, and two numbers that the error names.
inline __attribute__((visibility("default"), used)) std::int64_t distspmd_noted[5] = {0, 0, 0, 0, 0};

/// Note an error.
inline void distspmd_note(std::int64_t kind, std::int64_t line, std::int64_t first, std::int64_t second) {
  if (__atomic_exchange_n(&distspmd_noted[0], 1, __ATOMIC_ACQ_REL)) return;
  distspmd_noted[1] = kind;
  distspmd_noted[2] = line;
  distspmd_noted[3] = first;
  distspmd_noted[4] = second;
}

/// The place of an index that is negative or out of range; out of line, for loops to stay short.
__attribute__((noinline, cold, unused)) static std::int64_t distspmd_other_index(std::int64_t index, std::int64_t count,
                                                                                std::int64_t line) {
  if (index < 0 && index + count >= 0) return index + count;
  distspmd_note(0, line, index, count);
  return 0;
}

/// The place of an index among `count` elements; a negative one is counted from the end.
inline std::int64_t distspmd_checked_index(std::int64_t index, std::int64_t count, std::int64_t line) {
  if (__builtin_expect(static_cast<std::uint64_t>(index) < static_cast<std::uint64_t>(count), 1)) return index;
  return distspmd_other_index(index, count, line);
}

/// The same for who only looks which elements will be read: an index that is out of range is 0.
inline std::int64_t distspmd_place(std::int64_t index, std::int64_t count) {
  const std::int64_t place = index < 0 ? index + count : index;
  return place >= 0 && place < count ? place : 0;
}

/// A value, of which an error is noted if it has failed.
template <class Value>
inline Value distspmd_checked(Value value, bool failed, std::int64_t kind, std::int64_t line, std::int64_t first,
                              std::int64_t second) {
  if (__builtin_expect(failed, 0)) distspmd_note(kind, line, first, second);
  return value;
}
