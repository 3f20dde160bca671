// Windows of arrays that are copied between the device's memory and the host's.
//
// What a generated program includes where it runs on a device: the host's part of it reads and writes
// copies of windows, which it has of its own.
#pragma once

#include <cstdint>

namespace distspmd {
inline namespace v1 {

/// Copy a window between the memories, at the same places of both, and wait for it. It begins when
/// what the device was told to do before is done. Strides are in elements.
void copy_window(const void *from, void *to, std::int64_t itemsize, std::int64_t dimensions,
                 const std::int64_t *extents, const std::int64_t *strides);

}  // namespace v1
}  // namespace distspmd
