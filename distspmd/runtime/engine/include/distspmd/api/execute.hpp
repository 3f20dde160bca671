// What a generated program includes: it runs plans that the runtime (api/runtime.hpp) made ready.
//
// The context is a number that the program gets as an argument. The runtime is a library of its
// own, compiled once; programs reach it through the context, and compile fast.
#pragma once

#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <vector>

#include <distspmd/irregular/index_set.hpp>
#include <distspmd/irregular/row_sets.hpp>

namespace distspmd {
inline namespace v1 {

/// Bytes that go to a rank, or come from it.
struct Parcel {
  std::int64_t rank;
  char *at;
  std::int64_t bytes;
};

/// The beginning of a context, whatever library made it.
struct Executable {
  void (*run)(Executable *context, std::int64_t plan, const void *in, void *out);
  Touched *(*touched)(Executable *context, std::int64_t fetch);
  void (*ask)(Executable *context, std::int64_t fetch);
  void (*fetch)(Executable *context, std::int64_t fetch, const void *in, void *out);
  void (*foresee)(Executable *context, std::int64_t fetch, Foresight finds, const void *code);
  void (*exchange)(Executable *context, std::int64_t exchange, const RowEnds &ends);
  void (*gather_all)(Executable *context, std::int64_t number, const void *mine, std::int64_t bytes, void *all);
  void (*add_all)(Executable *context, std::int64_t number, std::int64_t *numbers, std::int64_t count);
  void (*carry)(Executable *context, std::int64_t number, const std::vector<Parcel> &sends,
                const std::vector<Parcel> &receives);
  std::int64_t (*communicator)(Executable *context, std::int64_t number, const std::vector<std::int64_t> &ranks);
  std::int64_t rank = 0, ranks = 1;  // of those that take part
};

inline Executable *executable(std::int64_t context) {
  if (context == 0) {
    std::fprintf(stderr, "distspmd: a program runs before its plans are made.\n");
    std::abort();
  }
  return reinterpret_cast<Executable *>(static_cast<std::intptr_t>(context));
}

/// What ranks that take part in the run tell each other within a library call, which has a number.
struct Talk {
  std::int64_t context, number;

  std::int64_t rank() const { return executable(context)->rank; }
  std::int64_t ranks() const { return executable(context)->ranks; }
  [[noreturn]] void end(const char *message) const {
    std::fprintf(stderr, "distspmd: %s.\n", message);
    std::abort();
  }

  /// What each rank has, by ranks; all have as much.
  template <class T>
  std::vector<T> gather_all(const std::vector<T> &mine) const {
    std::vector<T> all(mine.size() * static_cast<std::size_t>(ranks()));
    const auto bytes = static_cast<std::int64_t>(mine.size() * sizeof(T));
    executable(context)->gather_all(executable(context), number, mine.data(), bytes, all.data());
    return all;
  }
  /// Sums of the numbers of all ranks.
  void add_all(std::vector<std::int64_t> &numbers) const {
    const auto count = static_cast<std::int64_t>(numbers.size());
    executable(context)->add_all(executable(context), number, numbers.data(), count);
  }
  void exchange(const std::vector<Parcel> &sends, const std::vector<Parcel> &receives) const {
    executable(context)->carry(executable(context), number, sends, receives);
  }
  /// The bits of a communicator of MPI that some ranks have, for a library; they ask for it together.
  std::int64_t communicator(const std::vector<std::int64_t> &ranks) const {
    return executable(context)->communicator(executable(context), number, ranks);
  }
};

/// Run a plan on the tiles of this rank.
inline void execute(std::int64_t context, std::int64_t plan, const void *in, void *out) {
  executable(context)->run(executable(context), plan, in, out);
}

/// Where a fetch is told what this rank touches; empty.
inline Touched &touched(std::int64_t context, std::int64_t fetch) {
  return *executable(context)->touched(executable(context), fetch);
}

/// Tell the ranks that hold it what of it this rank touches.
inline void ask(std::int64_t context, std::int64_t fetch) {
  executable(context)->ask(executable(context), fetch);
}

/// Find out what of it each rank touches, where `code(ends, touched)` can tell that of all of them.
template <class Code>
inline void foresee(std::int64_t context, std::int64_t fetch, const Code &code) {
  const Foresight finds = [](const void *code, const std::int64_t *ends, TouchedBoxes &touched) {
    (*static_cast<const Code *>(code))(ends, touched);
  };
  executable(context)->foresee(executable(context), fetch, finds, &code);
}

/// Bring what was asked for, or foreseen, from the tiles of all ranks.
inline void fetch(std::int64_t context, std::int64_t fetch, const void *in, void *out) {
  executable(context)->fetch(executable(context), fetch, in, out);
}

/// Bring rows that data choose from the ranks that have them to those that need them.
inline void exchange_rows(std::int64_t context, std::int64_t exchange, const RowEnds &ends) {
  executable(context)->exchange(executable(context), exchange, ends);
}

}  // namespace v1
}  // namespace distspmd
