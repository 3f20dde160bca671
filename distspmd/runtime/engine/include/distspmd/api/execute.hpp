// What a generated program includes: it runs plans that the runtime (api/runtime.hpp) made ready.
//
// The context is a number that the program gets as an argument. The runtime is a library of its
// own, compiled once; programs reach it through the context, and compile fast.
#pragma once

#include <cstdint>
#include <cstdio>
#include <cstdlib>

#include <distspmd/irregular/index_set.hpp>
#include <distspmd/irregular/row_sets.hpp>

namespace distspmd {
inline namespace v1 {

/// The beginning of a context, whatever library made it.
struct Executable {
  void (*run)(Executable *context, std::int64_t plan, const void *in, void *out);
  Touched *(*touched)(Executable *context, std::int64_t fetch);
  void (*ask)(Executable *context, std::int64_t fetch);
  void (*fetch)(Executable *context, std::int64_t fetch, const void *in, void *out);
  void (*foresee)(Executable *context, std::int64_t fetch, Foresight finds, const void *code);
  void (*exchange)(Executable *context, std::int64_t exchange, const RowEnds &ends);
};

inline Executable *executable(std::int64_t context) {
  if (context == 0) {
    std::fprintf(stderr, "distspmd: a program runs before its plans are made.\n");
    std::abort();
  }
  return reinterpret_cast<Executable *>(static_cast<std::intptr_t>(context));
}

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
