// Errors end all ranks with one message: mpi4py makes MPI return its errors, so each code is
// checked.
#pragma once

#include <mpi.h>

#include <cstdio>
#include <cstdlib>
#include <string>

namespace distspmd {
inline namespace v1 {

/// Print `distspmd: rank R: message` and end all ranks of the communicator.
[[noreturn]] inline void fail(MPI_Comm comm, const std::string &message) {
  int rank = -1;
  MPI_Comm_rank(comm, &rank);
  std::fprintf(stderr, "distspmd: rank %d: %s\n", rank, message.c_str());
  std::fflush(stderr);
  MPI_Abort(comm, 1);
  std::abort();
}

/// Fail unless an MPI call on behalf of `where` (the name of a distributed memlet) succeeded.
inline void check(int code, MPI_Comm comm, const char *call, const std::string &where) {
  if (code == MPI_SUCCESS) return;
  char text[MPI_MAX_ERROR_STRING] = "unknown error";
  int length = 0;
  MPI_Error_string(code, text, &length);
  fail(comm, std::string(call) + " failed in " + where + ": " + text);
}

}  // namespace v1
}  // namespace distspmd
