// Memory of the emulated device: addresses of its own, which the host should never touch.
//
// An allocation ends at a page without access, and its addresses are not used again: what runs over
// its end, or uses it when it is freed, faults. It is filled with 0xFF, which is not a number in each
// type that has one. While the memory is guarded (DISTSPMD_EMULATED_GUARD, 1 where left out), it can
// be accessed only while the device works, so that a host that follows a device's pointer faults.
#pragma once

#include <signal.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <map>

namespace emulated {

class Arena {
 public:
  Arena() {
    const char *guard = std::getenv("DISTSPMD_EMULATED_GUARD");
    const char *bytes = std::getenv("DISTSPMD_EMULATED_BYTES");
    guarded_ = !guard || *guard != '0';
    limit_ = bytes ? std::strtoull(bytes, nullptr, 0) : std::size_t(1) << 34;
    void *found = mmap(nullptr, addresses, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE,
                       -1, 0);
    if (found == MAP_FAILED) {
      std::perror("distspmd: the emulated device has no addresses");
      std::abort();
    }
    base_ = static_cast<char *>(found);
    explain_faults(this);
  }

  /// Null where the device has not so much memory.
  void *allocate(std::size_t bytes) {
    const std::size_t whole = (bytes + page - 1) / page * page;
    if (held_bytes_ + bytes > limit_ || end_ + whole + page > addresses) return nullptr;
    char *block = base_ + end_;
    end_ += whole + page;  // the page behind it stays without access
    if (mprotect(block, whole, PROT_READ | PROT_WRITE) != 0) return nullptr;
    std::memset(block, 0xFF, whole);
    char *at = block + (whole - bytes) / alignment * alignment;
    held_[at] = {block, whole, bytes};
    held_bytes_ += bytes;
    if (guarded_ && !working_) mprotect(block, whole, PROT_NONE);
    return at;
  }

  bool release(void *at) {
    const auto found = held_.find(static_cast<char *>(at));
    if (found == held_.end()) return false;
    madvise(found->second.block, found->second.whole, MADV_DONTNEED);
    mprotect(found->second.block, found->second.whole, PROT_NONE);
    held_bytes_ -= found->second.bytes;
    held_.erase(found);
    return true;
  }

  bool has(const void *at) const { return at >= base_ && at < base_ + addresses; }
  std::size_t free_bytes() const { return limit_ - held_bytes_; }
  std::size_t limit() const { return limit_; }

  /// The device works, or no longer.
  void enter() {
    if (working_++ == 0 && guarded_) protect(PROT_READ | PROT_WRITE);
  }
  void leave() {
    if (--working_ == 0 && guarded_) protect(PROT_NONE);
  }

 private:
  struct Held {
    char *block;
    std::size_t whole, bytes;
  };
  static constexpr std::size_t page = 4096, alignment = 256, addresses = std::size_t(1) << 40;

  void protect(int access) {
    for (auto &[at, held] : held_) mprotect(held.block, held.whole, access);
  }

  /// Say what a fault on these addresses means; others are left to who handled them before.
  static void explain_faults(Arena *arena) {
    explained() = arena;
    struct sigaction ours {};
    ours.sa_sigaction = [](int number, siginfo_t *fault, void *) {
      if (explained()->has(fault->si_addr)) {
        static const char text[] =
            "distspmd: the emulated device: memory of the device was accessed by the host, behind "
            "the end of an allocation, or after it was freed.\n";
        if (write(2, text, sizeof text - 1) < 0) _exit(1);
      }
      sigaction(number, &before(), nullptr);  // the access is tried again, and faults there
    };
    ours.sa_flags = SA_SIGINFO;
    sigaction(SIGSEGV, &ours, &before());
  }
  static Arena *&explained() {
    static Arena *one;
    return one;
  }
  static struct sigaction &before() {
    static struct sigaction one;
    return one;
  }

  char *base_;
  bool guarded_;
  int working_ = 0;
  std::size_t limit_, held_bytes_ = 0, end_ = page;
  std::map<char *, Held> held_;
};

}  // namespace emulated
