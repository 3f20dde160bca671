// PeerMessages: all boxes that a rank sends to, or receives from, one other rank in a step: one message.
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

/// How a message may use memory; the first that fits is taken.
struct Ways {
  bool direct;   // from or into the tile, where the boxes are one run of elements
  bool strided;  // from or into the tile, by a datatype that describes the boxes
};

struct PeerMessage {
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

struct PeerMessages {
  std::vector<PeerMessage> messages;           // by peer, beginning with the one after `first`
  std::vector<std::size_t> message_of;  // number of each box's message
  std::vector<std::int64_t> places;  // of each box, in elements of the staging buffer
  std::int64_t elements = 0;         // in all
  std::int64_t staged = 0;           // elements of the staging buffer
};

/// The boxes of each peer as one message.
inline PeerMessages peer_messages_of(const std::vector<Part> &parts, const Storage &storage, std::int64_t itemsize,
                      std::int64_t first, std::int64_t peers, Ways ways, Resources &resources,
                      const std::string &name) {
  std::vector<std::vector<Box>> boxes(static_cast<std::size_t>(peers));
  for (const Part &part : parts) boxes[static_cast<std::size_t>(part.peer)].push_back(part.box);
  PeerMessages found;
  std::vector<std::size_t> number(boxes.size());
  std::vector<std::int64_t> filled;
  for (std::int64_t step = 1; step <= peers; ++step) {
    const std::int64_t peer = (first + step) % peers;
    const std::vector<Box> &held = boxes[static_cast<std::size_t>(peer)];
    if (held.empty()) continue;
    PeerMessage message;
    message.peer = static_cast<int>(peer);
    bool run = true;
    for (const Box &box : held) {
      run = run && storage.contiguous(box) &&
            storage.offset(box) == storage.offset(held[0]) + message.elements;
      message.elements += volume(box);
    }
    if (message.elements > INT_MAX)
      fail(resources.comm,
           name + ": " + std::to_string(message.elements) +
               " elements in one call, more than MPI counts; split the plan into rounds.");
    message.count = static_cast<int>(message.elements);
    message.type = resources.element(itemsize);
    if (!(ways.direct && run) && !ways.strided) {
      message.staged = true;
      message.offset = found.staged * itemsize;
      found.staged += message.elements;
    } else {
      message.offset = storage.offset(held[0]) * itemsize;
      if (!run) {
        message.count = 1;
        message.type = resources.boxes(held, storage, itemsize);
      }
    }
    found.elements += message.elements;
    number[static_cast<std::size_t>(peer)] = found.messages.size();
    filled.push_back(message.staged ? message.offset / itemsize : 0);
    found.messages.push_back(message);
  }
  for (const Part &part : parts) {
    const std::size_t message = number[static_cast<std::size_t>(part.peer)];
    found.message_of.push_back(message);
    found.places.push_back(filled[message]);
    filled[message] += volume(part.box);
  }
  return found;
}

}  // namespace v1
}  // namespace distspmd
