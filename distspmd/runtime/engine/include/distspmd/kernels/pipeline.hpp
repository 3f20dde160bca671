// Rims that a rank hands on to the next one in a pipeline, block by block.
//
// A rim consists of rows; each has elements one step apart, which may have further dimensions. Sender
// and receiver list the same rows in the same order, so that one message carries all of them.
#pragma once

#include <cstdint>
#include <cstring>
#include <utility>
#include <vector>

#include <distspmd/api/execute.hpp>

namespace distspmd::pipeline {

/// A dimension of a window: its elements, and the bytes from one to the next.
using Extent = std::pair<int64_t, int64_t>;

/// Rows of the tile of a rank, by the bytes from one element to the next.
struct Window {
  char *at;
  int64_t itemsize;
  std::vector<Extent> extents;

  int64_t bytes() const {
    int64_t found = itemsize;
    for (const Extent &extent : extents) found *= extent.first < 0 ? 0 : extent.first;
    return found;
  }
};

/// Copy between a window and a buffer; where it ends there.
inline char *copy(const Window &window, std::size_t d, char *at, char *buffer, bool packs) {
  if (d == window.extents.size()) {
    std::memcpy(packs ? buffer : at, packs ? at : buffer, window.itemsize);
    return buffer + window.itemsize;
  }
  const auto [count, step] = window.extents[d];
  if (d + 1 == window.extents.size() && step == window.itemsize) {
    const int64_t bytes = count * window.itemsize;
    std::memcpy(packs ? buffer : at, packs ? at : buffer, bytes);
    return buffer + bytes;
  }
  for (int64_t k = 0; k < count; ++k) buffer = copy(window, d + 1, at + k * step, buffer, packs);
  return buffer;
}

inline int64_t bytes_of(const std::vector<Window> &windows) {
  int64_t bytes = 0;
  for (const Window &window : windows) bytes += window.bytes();
  return bytes;
}

/// Get a rim from a rank, if it has any.
inline void receive(int64_t context, int64_t number, int64_t rank, const std::vector<Window> &windows) {
  std::vector<char> buffer(bytes_of(windows));
  if (buffer.empty()) return;
  Talk{context, number}.exchange({}, {Parcel{rank, buffer.data(), int64_t(buffer.size())}});
  char *from = buffer.data();
  for (const Window &window : windows)
    if (window.bytes()) from = copy(window, 0, window.at, from, false);
}

/// Give a rim to a rank, if there is any.
inline void send(int64_t context, int64_t number, int64_t rank, const std::vector<Window> &windows) {
  std::vector<char> buffer(bytes_of(windows));
  if (buffer.empty()) return;
  char *into = buffer.data();
  for (const Window &window : windows)
    if (window.bytes()) into = copy(window, 0, window.at, into, true);
  Talk{context, number}.exchange({Parcel{rank, buffer.data(), int64_t(buffer.size())}}, {});
}

}  // namespace distspmd::pipeline
