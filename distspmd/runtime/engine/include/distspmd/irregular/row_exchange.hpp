// An exchange of rows that data choose: an all-to-all whose counts the run finds.
//
// Each rank has some rows of an operand, and needs some rows of the value. Both sets are functions
// of arrays that all ranks hold whole, and of the part of them that is each rank's, so that every
// rank knows what every other one has and needs: nobody asks. What ranks have of one row is added
// up; in a gather one rank has it, and in a scatter-add several may.
#pragma once

#include <mpi.h>

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include <distspmd/errors.hpp>
#include <distspmd/irregular/row_sets.hpp>
#include <distspmd/memory/reductions.hpp>
#include <distspmd/plan/decode.hpp>

namespace distspmd {
inline namespace v1 {

class RowExchange {
 public:
  RowExchange(RowTable table, MPI_Comm comm, int rank)
      : table_(std::move(table)), comm_(comm), rank_(static_cast<std::size_t>(rank)) {
    add_ = reduction_of(Operation::sum, table_.dtype).kernel;
    if (!add_) fail(comm_, table_.name + ": rows of this type are not added up.");
  }

  /// Fill the rows that this rank needs, and others with zeros; returns the bytes that came from
  /// other ranks.
  std::int64_t run(const RowEnds &ends) {
    const RowSets has(table_.rows, table_.has, ends.has), needs(table_.rows, table_.needs, ends.needs);
    nrow_ = table_.width * table_.itemsize;
    std::memset(ends.out, 0, static_cast<std::size_t>(table_.rows * nrow_));
    filled_.assign(static_cast<std::size_t>(table_.rows), 0);
    if (rank_ >= table_.has.size()) return 0;
    std::map<int, Rows> sends = messages(has, needs, true), receives = messages(has, needs, false);
    const char *in = ends.in - table_.first * nrow_;
    std::vector<MPI_Request> requests;
    std::map<int, std::vector<char>> arrived, packed;
    std::int64_t bytes = 0;
    for (auto &[peer, rows] : receives) {
      if (static_cast<std::size_t>(peer) == rank_) continue;
      std::vector<char> &into = arrived[peer];
      into.resize(rows.size() * static_cast<std::size_t>(nrow_));
      bytes += static_cast<std::int64_t>(into.size());
      in_chunks(into, [&](char *at, int n) {
        requests.push_back(MPI_REQUEST_NULL);
        checked("MPI_Irecv", MPI_Irecv(at, n, MPI_BYTE, peer, tag, comm_, &requests.back()));
      });
    }
    for (auto &[peer, rows] : sends) {
      if (static_cast<std::size_t>(peer) == rank_) continue;
      std::vector<char> &from = packed[peer];
      from.resize(rows.size() * static_cast<std::size_t>(nrow_));
      char *at = from.data();
      for (const std::int64_t row : rows) {
        std::memcpy(at, in + row * nrow_, static_cast<std::size_t>(nrow_));
        at += nrow_;
      }
      in_chunks(from, [&](char *part, int n) {
        requests.push_back(MPI_REQUEST_NULL);
        checked("MPI_Isend", MPI_Isend(part, n, MPI_BYTE, peer, tag, comm_, &requests.back()));
      });
    }
    for (MPI_Request &request : requests) checked("MPI_Wait", MPI_Wait(&request, MPI_STATUS_IGNORE));
    for (auto &[peer, rows] : receives) {  // in the order of ranks: sums have the same bits
      const bool own = static_cast<std::size_t>(peer) == rank_;
      const char *packed_row = own ? nullptr : arrived[peer].data();
      for (const std::int64_t row : rows) {
        add(ends.out, row, own ? in + row * nrow_ : packed_row);
        if (!own) packed_row += nrow_;
      }
    }
    return bytes;
  }

 private:
  using Rows = std::vector<std::int64_t>;
  static constexpr int tag = 3;  // fetches have 1 and 2
  static constexpr std::size_t chunk = std::size_t(1) << 30;

  /// Rows that this rank sends to, or receives from, each rank; itself among them.
  std::map<int, Rows> messages(const RowSets &has, const RowSets &needs, bool sends) const {
    std::map<int, Rows> found;
    const std::size_t ranks = table_.has.size();
    std::map<std::size_t, std::vector<std::size_t>> holders;  // of each operand
    for (std::size_t rank = 0; rank < ranks; ++rank)
      if (!has.is_empty(rank)) holders[has.part(rank)].push_back(rank);
    std::map<std::size_t, std::size_t> asked;  // how many ranks need the same
    for (std::size_t to = 0; to < ranks; ++to) {
      if (needs.is_empty(to)) continue;
      const std::size_t turn = asked[needs.part(to)]++;
      if (!sends && to != rank_) continue;
      for (const auto &[operand, of] : holders) {
        const bool own = !has.is_empty(to) && has.part(to) == operand;
        const std::size_t from = own ? to : of[turn % of.size()];
        if (sends && from != rank_) continue;
        Rows both;
        const Rows &a = has.rows(operand), &b = needs.rows(needs.part(to));
        std::set_intersection(a.begin(), a.end(), b.begin(), b.end(), std::back_inserter(both));
        if (!both.empty()) found[static_cast<int>(sends ? to : from)] = std::move(both);
      }
    }
    return found;
  }

  void add(char *out, std::int64_t row, const char *from) {
    char *into = out + row * nrow_;
    char &filled = filled_[static_cast<std::size_t>(row)];
    if (filled)
      add_(into, table_.itemsize, from, table_.itemsize, table_.width);
    else
      std::memcpy(into, from, static_cast<std::size_t>(nrow_));
    filled = 1;
  }

  template <class Each>
  static void in_chunks(std::vector<char> &bytes, const Each &each) {
    for (std::size_t at = 0; at < bytes.size(); at += chunk)
      each(bytes.data() + at, static_cast<int>(std::min(chunk, bytes.size() - at)));
  }

  void checked(const char *call, int code) const { check(code, comm_, call, table_.name); }

  RowTable table_;
  MPI_Comm comm_;
  std::size_t rank_;
  Kernel add_ = nullptr;
  std::int64_t nrow_ = 0;
  std::vector<char> filled_;
};

}  // namespace v1
}  // namespace distspmd
