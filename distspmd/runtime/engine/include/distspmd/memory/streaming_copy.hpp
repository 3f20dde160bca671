// Copies of runs of memory, past two traps of plain memcpy.
//
// On AMD's processors memcpy takes three to six times as long where the target lies a few bytes
// behind the source modulo a page, as windows (aligned to 64) and NumPy's arrays (16 bytes behind a
// page) do. And what is larger than the cache is better written past it: the lines of the target
// are not read first, which saves a third of the traffic.
#pragma once

#include <unistd.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>

#if defined(__SSE2__)
#include <emmintrin.h>
#endif

namespace distspmd {
inline namespace v1 {

constexpr std::size_t shortest_streamed = 512;  // bytes of a run, from which on lines are whole

inline void copy_run(char *target, const char *source, std::size_t bytes) {
  constexpr std::size_t piece = 1024, page = 4096, trap = 64;
  const std::size_t apart =
      (reinterpret_cast<std::uintptr_t>(target) - reinterpret_cast<std::uintptr_t>(source)) % page;
  if (bytes > piece && apart > 0 && apart < trap) {
    for (; bytes > piece; bytes -= piece, target += piece, source += piece)
      std::memcpy(target, source, piece);
  }
  std::memcpy(target, source, bytes);
}

/// Copy a run past the cache; `finish_streams` comes before anybody else may read it.
inline void stream_run(char *target, const char *source, std::size_t bytes) {
#if defined(__SSE2__)
  constexpr std::size_t line = 64;
  if (bytes >= shortest_streamed) {
    const std::size_t head = -reinterpret_cast<std::uintptr_t>(target) % line;
    std::memcpy(target, source, head);
    target += head, source += head, bytes -= head;
    for (; bytes >= line; bytes -= line, target += line, source += line) {
      const __m128i *from = reinterpret_cast<const __m128i *>(source);
      __m128i *to = reinterpret_cast<__m128i *>(target);
      const __m128i a = _mm_loadu_si128(from), b = _mm_loadu_si128(from + 1);
      const __m128i c = _mm_loadu_si128(from + 2), d = _mm_loadu_si128(from + 3);
      _mm_stream_si128(to, a);
      _mm_stream_si128(to + 1, b);
      _mm_stream_si128(to + 2, c);
      _mm_stream_si128(to + 3, d);
    }
  }
#endif
  copy_run(target, source, bytes);
}

inline void finish_streams() {
#if defined(__SSE2__)
  _mm_sfence();
#endif
}

/// Whether what so many ranks write at the same time, of so many bytes each, is larger than the
/// cache that they share.
inline bool exceeds_cache(std::int64_t bytes, std::int64_t ranks) {
#if defined(_SC_LEVEL3_CACHE_SIZE)
  static const std::int64_t known = sysconf(_SC_LEVEL3_CACHE_SIZE);
#else
  static const std::int64_t known = 0;
#endif
  const std::int64_t cache = known > 0 ? known : std::int64_t(32) << 20;
  return bytes > cache / 2 / std::max<std::int64_t>(1, ranks);  // half of it: the source is there
}

}  // namespace v1
}  // namespace distspmd
