// Wires: all boxes that a rank sends to, or receives from, one other rank in a step: one message.
#pragma once

#include <mpi.h>

#include <climits>
#include <cstdint>
#include <string>
#include <vector>

#include <distspmd/plan/boxes.hpp>
#include <distspmd/errors.hpp>
#include <distspmd/mpi/resources.hpp>
#include <distspmd/plan/decode.hpp>

namespace distspmd {
inline namespace v1 {

// Open MPI sends and receives strided boxes at the speed of a copy: 1.3 to 2.6 times faster than
// packing them. MPICH does not where the receiver's runs are short.
#if defined(OPEN_MPI)
constexpr bool sends_strided_boxes = true;
#else
constexpr bool sends_strided_boxes = false;
#endif

/// How a wire may use memory; the first that fits is taken.
struct Ways {
  bool direct;   // from or into the tile, where the boxes are one run of elements
  bool strided;  // from or into the tile, by a datatype that describes the boxes
};

struct Wire {
  int peer = 0;  // position in the group
  int count = 0;
  MPI_Datatype type = MPI_DATATYPE_NULL;
  std::int64_t elements = 0;
  std::int64_t offset = 0;  // bytes into the tile, or into the staging buffer
  bool staged = false;

  /// Where the message lies.
  char *at(char *tile, char *staging) const { return (staged ? staging : tile) + offset; }
  const char *at(const char *tile, const char *staging) const {
    return (staged ? staging : tile) + offset;
  }
};

struct Wires {
  std::vector<Wire> wires;           // by peer, beginning with the one after `first`
  std::vector<std::size_t> wire_of;  // number of each box's wire
  std::vector<std::int64_t> places;  // of each box, in elements of the staging buffer
  std::int64_t elements = 0;         // in all
  std::int64_t staged = 0;           // elements of the staging buffer
};

/// The boxes of each peer as one message.
inline Wires wires_of(const std::vector<Part> &parts, const Storage &storage, std::int64_t itemsize,
                      std::int64_t first, std::int64_t peers, Ways ways, Resources &resources,
                      const std::string &name) {
  std::vector<std::vector<Box>> boxes(static_cast<std::size_t>(peers));
  for (const Part &part : parts) boxes[static_cast<std::size_t>(part.peer)].push_back(part.box);
  Wires found;
  std::vector<std::size_t> number(boxes.size());
  std::vector<std::int64_t> filled;
  for (std::int64_t step = 1; step <= peers; ++step) {
    const std::int64_t peer = (first + step) % peers;
    const std::vector<Box> &held = boxes[static_cast<std::size_t>(peer)];
    if (held.empty()) continue;
    Wire wire;
    wire.peer = static_cast<int>(peer);
    bool run = true;
    for (const Box &box : held) {
      run = run && storage.contiguous(box) &&
            storage.offset(box) == storage.offset(held[0]) + wire.elements;
      wire.elements += volume(box);
    }
    if (wire.elements > INT_MAX)
      fail(resources.comm,
           name + ": " + std::to_string(wire.elements) +
               " elements in one call, more than MPI counts; split the plan into rounds.");
    wire.count = static_cast<int>(wire.elements);
    wire.type = resources.element(itemsize);
    if (!(ways.direct && run) && !ways.strided) {
      wire.staged = true;
      wire.offset = found.staged * itemsize;
      found.staged += wire.elements;
    } else {
      wire.offset = storage.offset(held[0]) * itemsize;
      if (!run) {
        wire.count = 1;
        wire.type = resources.boxes(held, storage, itemsize);
      }
    }
    found.elements += wire.elements;
    number[static_cast<std::size_t>(peer)] = found.wires.size();
    filled.push_back(wire.staged ? wire.offset / itemsize : 0);
    found.wires.push_back(wire);
  }
  for (const Part &part : parts) {
    const std::size_t wire = number[static_cast<std::size_t>(part.peer)];
    found.wire_of.push_back(wire);
    found.places.push_back(filled[wire]);
    filled[wire] += volume(part.box);
  }
  return found;
}

}  // namespace v1
}  // namespace distspmd
