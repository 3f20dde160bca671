// What a program asks Python's libraries while it runs. Python sets the function that answers
// (distspmd/execution/listening.py), which writes to the outputs; where nobody does, nothing is
// written, and the first output, which says how it went, tells so.
#pragma once

#include <cstdint>
#include <cstdio>
#include <cstdlib>

namespace distspmd {

/// Takes a question, the elements of its inputs and outputs, and all their extents in turn.
using Answerer = void (*)(const char *, const void *const *, void *const *, const std::int64_t *);

}  // namespace distspmd

inline __attribute__((visibility("default"), used)) distspmd::Answerer distspmd_answerer = nullptr;

namespace distspmd {

inline void ask(const char *question, const void *const *inputs, void *const *outputs,
                const std::int64_t *extents) {
  *static_cast<std::int64_t *>(outputs[0]) = -1;
  if (distspmd_answerer) distspmd_answerer(question, inputs, outputs, extents);
}

/// Calls a host function; of each array ``numbers`` has the extents, and then the steps in elements.
inline void ask_host(const char *question, const void *const *inputs, void *const *outputs,
                     const std::int64_t *numbers) {
  if (!distspmd_answerer) {
    std::fprintf(stderr, "distspmd: a host function is called, and no Python runs it.\n");
    std::abort();
  }
  distspmd_answerer(question, inputs, outputs, numbers);
}

}  // namespace distspmd
