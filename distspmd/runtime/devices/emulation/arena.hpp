// Memory of the emulated device: addresses of its own, which the host should never touch.
//
// An allocation ends at a page without access, and its addresses are not used again: what runs over
// its end, or uses it when it is freed, faults. It is filled with 0xFF, which is not a number in each
// type that has one. While the memory is guarded (DISTSPMD_EMULATED_GUARD, 1 where left out), it can
// be accessed only while the device works, so that a host that follows a device's pointer faults.
//
// It lies in a file without a name, so that another process can map an allocation to addresses of its
// own, as CUDA's inter-process handles do; its pages go when no process has them any more.
//
// Where it is compiled with the address sanitizer, each byte beside an allocation is an error.
#pragma once

#include <fcntl.h>
#include <signal.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <map>

#ifdef __SANITIZE_ADDRESS__
#include <sanitizer/asan_interface.h>
#else
#define ASAN_POISON_MEMORY_REGION(at, bytes) ((void)0)
#define ASAN_UNPOISON_MEMORY_REGION(at, bytes) ((void)0)
#endif

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
    file_ = memfd_create("distspmd-device", MFD_CLOEXEC);
    if (file_ < 0) {
      std::perror("distspmd: the emulated device has no memory");
      std::abort();
    }
    explain_faults(this);
  }

  /// Null where the device has not so much memory.
  void *allocate(std::size_t bytes) {
    const std::size_t whole = (bytes + page - 1) / page * page;
    if (held_bytes_ + bytes > limit_ || end_ + whole + page > addresses) return nullptr;
    const std::size_t place = end_;
    char *block = base_ + place;
    if (ftruncate(file_, off_t(place + whole)) != 0) return nullptr;
    if (!map(block, whole, file_, place)) return nullptr;
    std::memset(block, 0xFF, whole);
    char *at = block + (whole - bytes) / alignment * alignment;
    held_[at] = {block, whole, bytes, place};
    ASAN_POISON_MEMORY_REGION(block, std::size_t(at - block));  // what the pages have besides
    ASAN_POISON_MEMORY_REGION(at + bytes, std::size_t(block + whole - at) - bytes);
    held_bytes_ += bytes;
    if (guarded_ && !working_) mprotect(block, whole, PROT_NONE);
    return at;
  }

  /// Where an allocation is, for other processes.
  struct Place {
    std::int64_t process, file;
    std::uint64_t place, whole, bytes;
  };

  /// The allocation that has an address: its first one, how many bytes, and its place; false for none.
  bool find(const void *at, void **first, std::size_t *bytes, Place *place) const {
    auto found = held_.upper_bound(static_cast<char *>(const_cast<void *>(at)));
    if (found == held_.begin()) return false;
    --found;
    const Held &held = found->second;
    if (at >= held.block + held.whole || held.imported) return false;
    *first = found->first;
    *bytes = held.bytes;
    *place = {getpid(), file_, held.place, held.whole, held.bytes};
    return true;
  }

  /// Another process' allocation at addresses of this one; null where it cannot be had.
  void *open(const Place &place) {
    char path[64];
    std::snprintf(path, sizeof path, "/proc/%lld/fd/%lld", (long long)place.process,
                  (long long)place.file);
    const int file = ::open(path, O_RDWR | O_CLOEXEC);
    if (file < 0) return nullptr;
    char *block = base_ + end_;
    const bool mapped = end_ + place.whole + page <= addresses &&
                        map(block, place.whole, file, std::size_t(place.place));
    close(file);
    if (!mapped) return nullptr;
    char *at = block + (place.whole - place.bytes) / alignment * alignment;
    held_[at] = {block, place.whole, 0, 0, true};
    if (guarded_ && !working_) mprotect(block, place.whole, PROT_NONE);
    return at;
  }

  /// Free an allocation of this process, or let go of one of another process.
  bool release(void *at, bool imported = false) {
    const auto found = held_.find(static_cast<char *>(at));
    if (found == held_.end() || found->second.imported != imported) return false;
    const Held &held = found->second;
    ASAN_UNPOISON_MEMORY_REGION(held.block, held.whole);
    if (!imported)
      fallocate(file_, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, off_t(held.place), off_t(held.whole));
    mmap(held.block, held.whole, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_FIXED, -1,
         0);
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
    std::size_t whole, bytes, place;  // in the file
    bool imported = false;            // from another process
  };
  static constexpr std::size_t page = 4096, alignment = 256, addresses = std::size_t(1) << 40;

  /// Map a part of a file to the next addresses; the page behind it stays without access.
  bool map(char *block, std::size_t whole, int file, std::size_t place) {
    end_ += whole + page;
    return mmap(block, whole, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_FIXED, file, off_t(place)) !=
           MAP_FAILED;
  }

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
  int file_;
  bool guarded_;
  int working_ = 0;
  std::size_t limit_, held_bytes_ = 0, end_ = page;
  std::map<char *, Held> held_;
};

}  // namespace emulated
