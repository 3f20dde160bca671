// A fetch: a rank asks others for the elements that it touches, and only those are sent.
//
// Which rank has what is known before: each rank has a list of boxes that it may ask of others, and
// of boxes that others may ask of it; of each element there is one rank to ask. Which elements it
// needs, the program finds out when it runs (irregular/index_set.hpp). To ask is one message of runs of indices
// to each such rank; to fetch is one message of elements back. What was asked for once can be
// fetched often, as long as the same indices are touched.
//
// Where only loops and the ends of tiles decide what is touched, nobody asks: each rank foresees it
// for all ranks that it may send to, and sends what they will touch.
#pragma once

#include <mpi.h>

#include <algorithm>
#include <climits>
#include <cstdint>
#include <cstring>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include <distspmd/plan/boxes.hpp>
#include <distspmd/errors.hpp>
#include <distspmd/memory/strided_copy.hpp>
#include <distspmd/plan/decode.hpp>
#include <distspmd/irregular/index_set.hpp>

namespace distspmd {
inline namespace v1 {

class Fetch {
 public:
  Fetch(const FetchTable &table, MPI_Comm comm)
      : name_(table.name),
        itemsize_(table.itemsize),
        dimensions_(table.dimensions),
        source_(table.source),
        target_(table.target),
        ends_(table.ends),
        touched_(extents_of(table)),
        comm_(comm) {
    if (!table.receives.empty()) slab_ = slab_of(table);
    for (const Part &part : table.receives) {
      if (part.peer == self)
        own_.push_back(piece(part.box, &table.source, &table.target));
      else
        owners_[static_cast<int>(part.peer)].pieces.push_back(
            piece(part.box, nullptr, &table.target));
    }
    for (const Part &part : table.sends)
      askers_[static_cast<int>(part.peer)].pieces.push_back(
          piece(part.box, &table.source, nullptr));
    for (auto &[peer, far] : askers_) {
      const auto ends = table.peer_ends.find(peer);
      if (ends != table.peer_ends.end()) far.ends = ends->second;
      if (far.ends.size() != ends_.size())
        fail(comm_, name_ + ": the ends of the tile of rank " + std::to_string(peer) + " are missing.");
    }
  }

  /// The indices of which the rank needs elements.
  Touched &touched() { return touched_; }

  /// Exchange what is touched, and forget it; returns the bytes of requests that came from others.
  std::int64_t ask() {
    std::int64_t wanted = 0, found = 0, bytes = 0;  // elements, but of the requests
    touched_.runs(0, INT64_MAX, [&](std::int64_t, std::int64_t length) { wanted += length * slab_; });
    for (Piece &piece : own_) found += collect(piece);
    std::vector<MPI_Request> requests;
    for (auto &[peer, far] : owners_) {
      far.request.clear();
      for (Piece &piece : far.pieces) {
        found += collect(piece);
        far.request.push_back(static_cast<std::int64_t>(piece.runs.size()));
        for (const Run &run : piece.runs)
          far.request.insert(far.request.end(), {run.begin, run.length});
      }
      requests.push_back(MPI_REQUEST_NULL);
      checked("MPI_Isend", MPI_Isend(far.request.data(), counted(far.request.size()), MPI_INT64_T,
                                     peer, asks, comm_, &requests.back()));
    }
    check_found(wanted, found);
    for (auto &[peer, far] : askers_) bytes += listen(peer, far);
    finish(requests);
    touched_.clear();
    foreseen_ = false;
    return bytes;
  }

  /// Find what this rank touches, and what those touch that it may send to.
  void foresee(Foresight finds, const void *code) {
    const auto boxes_of = [&](const std::vector<std::int64_t> &ends) {
      TouchedBoxes touched(touched_.extents());
      finds(code, ends.data(), touched);
      return touched.boxes();
    };
    const std::vector<Box> boxes = boxes_of(ends_);
    std::int64_t wanted = 0, found = 0;  // elements
    for (const Box &box : boxes) wanted += volume(box) * slab_;
    for (Piece &piece : own_) found += cut(piece, boxes);
    for (auto &[peer, far] : owners_)
      for (Piece &piece : far.pieces) found += cut(piece, boxes);
    check_found(wanted, found);
    for (auto &[peer, far] : askers_) {
      const std::vector<Box> theirs = boxes_of(far.ends);
      for (Piece &piece : far.pieces) cut(piece, theirs);
    }
    foreseen_ = true;
  }

  /// Bring the elements that were asked for, or foreseen, last; returns the bytes that came from others.
  std::int64_t run(const void *in, void *out) {
    const char *from = static_cast<const char *>(in);
    char *to = static_cast<char *>(out);
    std::vector<MPI_Request> arrivals, departures;
    std::int64_t bytes = 0;
    for (auto &[peer, far] : owners_) {
      bytes += far.resize();
      for (std::size_t at = 0; at < far.elements.size(); at += chunk) {
        arrivals.push_back(MPI_REQUEST_NULL);
        checked("MPI_Irecv", MPI_Irecv(far.elements.data() + at, far.chunk_at(at), MPI_BYTE, peer,
                                       answers, comm_, &arrivals.back()));
      }
    }
    for (auto &[peer, far] : askers_) {
      far.resize();
      char *packed = far.elements.data();
      for (const Piece &piece : far.pieces) {
        transfer(piece, from, packed);
        packed += piece.nbytes();
      }
      for (std::size_t at = 0; at < far.elements.size(); at += chunk) {
        departures.push_back(MPI_REQUEST_NULL);
        checked("MPI_Isend", MPI_Isend(far.elements.data() + at, far.chunk_at(at), MPI_BYTE, peer,
                                       answers, comm_, &departures.back()));
      }
    }
    for (const Piece &piece : own_) transfer(piece, from, to);
    finish(arrivals);
    for (auto &[peer, far] : owners_) {
      const char *packed = far.elements.data();
      for (const Piece &piece : far.pieces) {
        transfer(piece, packed, to);
        packed += piece.nbytes();
      }
    }
    finish(departures);
    return bytes;
  }

 private:
  static constexpr int asks = 1, answers = 2;  // tags
  static constexpr std::size_t chunk = std::size_t(1) << 30;

  /// Touched indices, as numbers in the row-major order of the dimensions that data decide.
  struct Run {
    std::int64_t begin, length;
  };

  /// Where the elements of a box lie: in a tile, or packed one run after the other.
  struct End {
    bool packed;
    std::int64_t base;                  // bytes to the elements of index 0
    std::vector<std::int64_t> strides;  // bytes, of the dimensions that data decide
  };

  /// A box that one rank may ask of one rank.
  struct Piece {
    Box box;
    Box chosen;           // in the dimensions that data decide
    std::int64_t nslab;   // bytes of the elements of one index
    End from, to;
    bool dense;           // the elements of a run are one run of bytes at both ends
    Move slab;            // brings the elements of one index
    std::vector<Run> runs;     // of what was asked for
    std::vector<Move> moves;  // of what is foreseen
    std::int64_t indices = 0;

    std::int64_t nbytes() const { return indices * nslab; }
  };

  /// All that goes to, or comes from, one other rank.
  struct Far {
    std::vector<Piece> pieces;
    std::vector<std::int64_t> request, ends;
    std::vector<char> elements;

    std::int64_t resize() {
      std::int64_t bytes = 0;
      for (const Piece &piece : pieces) bytes += piece.nbytes();
      elements.resize(static_cast<std::size_t>(bytes));
      return bytes;
    }
    int chunk_at(std::size_t at) const {
      return static_cast<int>(std::min(chunk, elements.size() - at));
    }
  };

  static std::vector<std::int64_t> extents_of(const FetchTable &table) {
    std::vector<std::int64_t> extents;
    for (const std::size_t d : table.dimensions) extents.push_back(table.extents[d]);
    return extents;
  }

  /// Elements of one index: what the boxes of all owners have together in the other dimensions.
  std::int64_t slab_of(const FetchTable &table) const {
    Box hull = table.receives.front().box;
    for (const Part &part : table.receives)
      for (std::size_t d = 0; d < hull.size(); ++d)
        hull[d] = {std::min(hull[d].lo, part.box[d].lo), std::max(hull[d].hi, part.box[d].hi)};
    for (const std::size_t d : dimensions_) hull[d] = {0, 1};
    return volume(hull);
  }

  /// A box between two storages; one that is null is packed.
  Piece piece(const Box &box, const Storage *from, const Storage *to) const {
    Box slab = box, chosen;
    for (const std::size_t d : dimensions_) {
      chosen.push_back(box[d]);
      slab[d] = {0, 1};
    }
    const Storage packed = Storage::of(slab);
    const std::int64_t nslab = volume(slab) * itemsize_;
    const Storage &source = from ? *from : packed, &target = to ? *to : packed;
    const End begin = end(source, slab, from == nullptr, nslab);
    const End goal = end(target, slab, to == nullptr, nslab);
    const bool dense = source.contiguous(slab) && target.contiguous(slab) &&
                       begin.strides.back() == nslab && goal.strides.back() == nslab;
    return {box, chosen, nslab, begin, goal, dense, Move(source, 0, target, 0, slab, itemsize_),
            {}, {}};
  }

  End end(const Storage &storage, const Box &slab, bool packed, std::int64_t nslab) const {
    End found{packed, storage.offset(slab) * itemsize_, {}};
    for (const std::size_t d : dimensions_)
      found.strides.push_back(packed ? nslab : storage.strides[d] * itemsize_);
    return found;
  }

  /// Find what is touched of a piece; returns the number of its elements.
  std::int64_t collect(Piece &piece) {
    piece.runs.clear();
    piece.indices = 0;
    rows(piece, 0, 0);
    return piece.indices * (piece.nslab / itemsize_);
  }

  /// Find what boxes have of a piece; returns the number of its elements.
  std::int64_t cut(Piece &piece, const std::vector<Box> &boxes) const {
    piece.moves.clear();
    piece.indices = 0;
    std::int64_t packed = 0;  // elements
    for (const Box &touched : boxes) {
      const Box common = intersect(touched, piece.chosen);
      if (is_empty(common)) continue;
      Box box = piece.box;
      for (std::size_t c = 0; c < dimensions_.size(); ++c) box[dimensions_[c]] = common[c];
      const Storage line = Storage::of(box);
      const Storage &source = piece.from.packed ? line : source_;
      const Storage &target = piece.to.packed ? line : target_;
      piece.moves.push_back(Move(source, piece.from.packed ? packed : 0, target,
                                 piece.to.packed ? packed : 0, box, itemsize_));
      packed += volume(box);
      piece.indices += volume(common);
    }
    return packed;
  }

  void rows(Piece &piece, std::size_t d, std::int64_t base) {
    const Interval &interval = piece.chosen[d];
    base *= touched_.extents()[d];
    if (d + 1 < piece.chosen.size()) {
      for (std::int64_t i = interval.lo; i < interval.hi; ++i) rows(piece, d + 1, base + i);
      return;
    }
    touched_.runs(base + interval.lo, base + interval.hi,
                  [&piece](std::int64_t begin, std::int64_t length) {
                    piece.runs.push_back({begin, length});
                    piece.indices += length;
                  });
  }

  /// Receive what another rank asks for; returns the bytes of its request.
  std::int64_t listen(int peer, Far &far) {
    MPI_Status status;
    int words = 0;
    checked("MPI_Probe", MPI_Probe(peer, asks, comm_, &status));
    checked("MPI_Get_count", MPI_Get_count(&status, MPI_INT64_T, &words));
    far.request.resize(static_cast<std::size_t>(words));
    checked("MPI_Recv", MPI_Recv(far.request.data(), words, MPI_INT64_T, peer, asks, comm_,
                                 MPI_STATUS_IGNORE));
    const std::int64_t *at = far.request.data(), *stop = at + words;
    for (Piece &piece : far.pieces) {
      std::int64_t count = at < stop ? *at++ : -1;
      if (count < 0 || count > (stop - at) / 2) fail(comm_, name_ + ": a request is cut off.");
      piece.runs.clear();
      piece.indices = 0;
      for (; count > 0; --count, at += 2) {
        if (!holds(piece, {at[0], at[1]}))
          fail(comm_, name_ + ": rank " + std::to_string(peer) +
                          " asks for elements that are not here.");
        piece.runs.push_back({at[0], at[1]});
        piece.indices += at[1];
      }
    }
    return words * static_cast<std::int64_t>(sizeof(std::int64_t));
  }

  /// Whether a run lies in the box of a piece.
  bool holds(const Piece &piece, const Run &run) const {
    std::int64_t left = run.begin;
    if (run.begin < 0 || run.length < 1) return false;
    for (std::size_t d = piece.chosen.size(); d-- > 0;) {
      const std::int64_t extent = touched_.extents()[d], i = left % extent;
      const std::int64_t last = d + 1 == piece.chosen.size() ? i + run.length - 1 : i;
      if (i < piece.chosen[d].lo || last >= piece.chosen[d].hi) return false;
      left /= extent;
    }
    return left == 0;
  }

  /// Bytes from the elements of index 0 to those of another.
  std::int64_t place(const End &end, std::int64_t index) const {
    std::int64_t bytes = 0;
    for (std::size_t d = end.strides.size(); d-- > 1;) {
      bytes += index % touched_.extents()[d] * end.strides[d];
      index /= touched_.extents()[d];
    }
    return bytes + index * end.strides[0];
  }

  /// Bring the elements that were asked for of a piece.
  void transfer(const Piece &piece, const char *from, char *to) const {
    if (foreseen_) {
      for (const Move &move : piece.moves) move(from, to);
      return;
    }
    const std::int64_t from_step = piece.from.strides.back(), to_step = piece.to.strides.back();
    std::int64_t packed = 0;
    for (const Run &run : piece.runs) {
      const char *source = from + (piece.from.packed ? packed : place(piece.from, run.begin));
      char *target = to + (piece.to.packed ? packed : place(piece.to, run.begin));
      packed += run.length * piece.nslab;
      if (piece.dense) {
        std::memcpy(target + piece.to.base, source + piece.from.base,
                    static_cast<std::size_t>(run.length * piece.nslab));
        continue;
      }
      for (std::int64_t i = 0; i < run.length; ++i)
        piece.slab(source + i * from_step, target + i * to_step);
    }
  }

  void check_found(std::int64_t wanted, std::int64_t found) const {
    if (found != wanted)
      fail(comm_, name_ + ": " + std::to_string(wanted) + " elements are touched, but of " +
                      std::to_string(found) + " there is a rank to ask.");
  }

  int counted(std::size_t words) const {
    if (words > INT_MAX)
      fail(comm_, name_ + ": a request of " + std::to_string(words) + " words, more than MPI counts.");
    return static_cast<int>(words);
  }

  /// Wait for requests, one by one: so each tells its own error.
  void finish(std::vector<MPI_Request> &requests) const {
    for (MPI_Request &request : requests) checked("MPI_Wait", MPI_Wait(&request, MPI_STATUS_IGNORE));
  }

  void checked(const char *call, int code) const {
    if (code != MPI_SUCCESS) check(code, comm_, call, name_);
  }

  std::string name_;
  std::int64_t itemsize_;
  std::vector<std::size_t> dimensions_;  // those that data decide
  std::int64_t slab_ = 1;
  Storage source_, target_;
  std::vector<std::int64_t> ends_;  // by which all ranks foresee what this one touches
  bool foreseen_ = false;
  Touched touched_;
  MPI_Comm comm_;
  std::vector<Piece> own_;
  std::map<int, Far> owners_, askers_;  // by rank
};

}  // namespace v1
}  // namespace distspmd
