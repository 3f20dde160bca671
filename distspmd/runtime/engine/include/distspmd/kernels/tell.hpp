// What a program tells Python while it runs: what to print, or with which error it ends. Python
// sets the function that listens (distspmd/execution/messages.py); where nobody does, nothing is told.
#pragma once

#include <cstdint>
#include <memory>

namespace distspmd {

/// Takes a message, the elements of its values in reading order, and all their extents one after
/// the other; whether the program ends.
using Listener = int (*)(const char *, const void *const *, const std::int64_t *);

/// What ends a program: the function that is called from outside catches it.
struct Ended {};

}  // namespace distspmd

inline __attribute__((visibility("default"), used)) distspmd::Listener distspmd_listener = nullptr;

namespace distspmd {

inline void tell(const char *message, const void *const *values, const std::int64_t *extents) {
  if (distspmd_listener && distspmd_listener(message, values, extents)) throw Ended{};
}

/// Elements in reading order, of an array with any strides.
template <class T, int rank>
std::unique_ptr<T[]> in_order(const T *data, const std::int64_t (&extents)[rank],
                              const std::int64_t (&strides)[rank]) {
  std::int64_t count = 1;
  for (std::int64_t n : extents) count *= n;
  std::unique_ptr<T[]> found(new T[count > 0 ? count : 1]);
  for (std::int64_t place = 0; place < count; ++place) {
    std::int64_t rest = place, offset = 0;
    for (int d = rank - 1; d >= 0; --d) {
      offset += (rest % extents[d]) * strides[d];
      rest /= extents[d];
    }
    found[place] = data[offset];
  }
  return found;
}

}  // namespace distspmd
