// What a generated program includes: it runs plans that the runtime (runtime.hpp) made ready.
//
// The context is a number that the program gets as an argument. The runtime is a library of its
// own, compiled once; programs reach it through the context, and compile fast.
#pragma once

#include <cstdint>
#include <cstdio>
#include <cstdlib>

namespace distspmd {
inline namespace v1 {

/// The beginning of a context, whatever library made it.
struct Executable {
  void (*run)(Executable *context, std::int64_t plan, const void *in, void *out);
};

/// Run a plan on the tiles of this rank.
inline void execute(std::int64_t context, std::int64_t plan, const void *in, void *out) {
  if (context == 0) {
    std::fprintf(stderr, "distspmd: a program runs before its plans are made.\n");
    std::abort();
  }
  Executable *executable = reinterpret_cast<Executable *>(static_cast<std::intptr_t>(context));
  executable->run(executable, plan, in, out);
}

}  // namespace v1
}  // namespace distspmd
