// The library of collectives of a device, NCCL, loaded while the process runs: its messages alone.
//
// Its functions are declared here, so that nothing of it is needed to compile. Sums are not its own:
// it would add operands in an order of its own, and results would differ between transports.
#pragma once

#include <cuda_runtime.h>
#include <dlfcn.h>

#include <cstdint>
#include <string>
#include <utility>

namespace distspmd {
inline namespace v1 {

class Nccl {
 public:
  /// By which ranks find each other; made by one of them.
  struct Id {
    char words[128];
  };

  static Nccl &of_process() {
    static Nccl &one = *new Nccl;  // programs are still freed when the process ends
    return one;
  }

  /// Load the library of a path, unless it is there already; what failed, empty if nothing did.
  std::string load(const char *path) {
    if (loaded_) return "";
    void *const library = dlopen(path, RTLD_NOW | RTLD_LOCAL);
    if (!library) {
      const char *said = dlerror();
      return said ? said : "it cannot be loaded";
    }
    for (auto [name, function] : {std::pair<const char *, void *>{"ncclGetUniqueId", &unique_},
                                  {"ncclCommInitRank", &create_},
                                  {"ncclCommDestroy", &destroy_},
                                  {"ncclGroupStart", &begin_},
                                  {"ncclGroupEnd", &end_},
                                  {"ncclSend", &send_},
                                  {"ncclRecv", &receive_},
                                  {"ncclGetErrorString", &describe_}}) {
      void *const found = dlsym(library, name);
      if (!found) return std::string("it has no ") + name + ", as NCCL has since 2.7";
      *static_cast<void **>(function) = found;
    }
    loaded_ = true;
    return "";
  }

  /// A new id; what failed, empty if nothing did.
  std::string make(Id *id) { return said(unique_(id)); }

  /// Join the others of an id, of whom each calls it; what failed, empty if nothing did.
  std::string join(void **made, const Id &id, int ranks, int rank) {
    return said(create_(made, ranks, id, rank));
  }
  void leave(void *group) { destroy_(group); }

  /// Queue messages of a group: of each a rank, an address and bytes; first those that go out.
  std::string carry(void *group, cudaStream_t stream, std::int64_t out, std::int64_t in,
                    const std::int64_t *words) {
    constexpr int chars = 0;
    int error = begin_();
    for (std::int64_t n = 0; n < out + in; ++n) {
      const std::int64_t *const message = words + 3 * n;
      void *const at = reinterpret_cast<void *>(static_cast<std::intptr_t>(message[1]));
      const auto bytes = static_cast<std::size_t>(message[2]);
      const int rank = static_cast<int>(message[0]);
      const int one = n < out ? send_(at, bytes, chars, rank, group, stream)
                              : receive_(at, bytes, chars, rank, group, stream);
      error = error ? error : one;
    }
    const int last = end_();
    return said(error ? error : last);
  }

 private:
  Nccl() = default;
  std::string said(int status) const {
    if (!status) return "";
    const char *text = describe_(status);
    return std::string("NCCL: ") + (text ? text : "an unknown error");
  }

  bool loaded_ = false;
  int (*unique_)(Id *) = nullptr;
  int (*create_)(void **, int, Id, int) = nullptr;
  int (*destroy_)(void *) = nullptr;
  int (*begin_)() = nullptr;
  int (*end_)() = nullptr;
  int (*send_)(const void *, std::size_t, int, int, void *, cudaStream_t) = nullptr;
  int (*receive_)(void *, std::size_t, int, int, void *, cudaStream_t) = nullptr;
  const char *(*describe_)(int) = nullptr;
};

}  // namespace v1
}  // namespace distspmd
