// Calls of the emulated device that fail because somebody asks for it: DISTSPMD_EMULATED_FAILS=KIND:N
// lets the N-th of a kind fail, counted from the start of the process, or from when it was asked for
// again (distspmd_emulated_fail).
//
//   launch      a kernel does not start
//   kernel      a kernel starts and faults; from then on each call fails, as on CUDA
//   copy        a copy, or memory that is set
//   allocation  of memory of the device, or of pinned memory of the host
//   event       the record of an event
#pragma once

#include <cstdlib>
#include <string>

namespace emulated {

class Failures {
 public:
  Failures() {
    const char *text = std::getenv("DISTSPMD_EMULATED_FAILS");
    if (text) arm(text);
  }

  void arm(const std::string &text) {
    const std::size_t colon = text.find(':');
    kind_ = text.substr(0, colon);
    left_ = colon == std::string::npos ? 0 : std::atol(text.c_str() + colon + 1);
  }

  /// Whether this call of a kind is the one that fails.
  bool now(const char *kind) { return left_ > 0 && kind_ == kind && --left_ == 0; }

  bool broken = false;  // a kernel has faulted

 private:
  std::string kind_;
  long left_ = 0;
};

}  // namespace emulated
