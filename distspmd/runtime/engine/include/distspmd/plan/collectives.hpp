// The kinds of collective steps, one row each. Written by
// `python -m distspmd.runtime.engine.collectives_header` from distspmd/plans/collectives.py.
#pragma once

#include <cstdint>

namespace distspmd {
inline namespace v1 {

enum class Kind : std::int64_t {
  copy = 0,            // no call
  scatter = 1,         // MPI_Scatterv
  broadcast = 2,       // MPI_Bcast
  reduce = 3,          // MPI_Reduce
  gather = 4,          // MPI_Gatherv
  exchange = 5,        // MPI_Alltoallv
  all_gather = 7,      // MPI_Allgatherv
  reduce_scatter = 9,  // MPI_Reduce_scatter
  all_reduce = 10,     // MPI_Allreduce
};
constexpr std::int64_t last_kind = 10;

/// What only the first rank of a group does.
enum class First : char { none, sends, receives };

/// What a kind promises; distspmd/plans/collectives.py has the same names.
struct Collective {
  Kind kind;
  First first;
  bool moves, to_all, from_all, common;

  /// Whether MPI combines the operands.
  constexpr bool is_combined() const { return from_all && common; }

  /// Whether the runtime makes the call; it carries all other kinds message by message.
  constexpr bool is_called() const { return to_all || is_combined(); }
};

constexpr Collective collectives[] = {
    {Kind::copy, First::none, false, false, false, false},
    {Kind::scatter, First::sends, true, false, false, false},
    {Kind::broadcast, First::sends, true, true, false, true},
    {Kind::reduce, First::receives, true, false, true, true},
    {Kind::gather, First::receives, true, false, false, false},
    {Kind::exchange, First::none, true, false, false, false},
    {Kind::all_gather, First::none, true, true, false, false},
    {Kind::reduce_scatter, First::none, true, false, true, false},
    {Kind::all_reduce, First::none, true, true, true, true},
};

/// The row of a kind by its number; null where the runtime does not know it.
inline const Collective *collective_of(std::int64_t number) {
  for (const Collective &row : collectives)
    if (static_cast<std::int64_t>(row.kind) == number) return &row;
  return nullptr;
}

}  // namespace v1
}  // namespace distspmd
