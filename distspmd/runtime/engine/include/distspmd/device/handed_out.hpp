// What happens when others let go of memory of a device that they were handed by DLPack.
//
// They may do so on any thread, and while Python unwinds an error, when none of its code can run. So it
// is only noted here, and Python asks later. dlpack.py makes the structures and the capsules.
#pragma once

#include <dlfcn.h>

#include <mutex>
#include <vector>

namespace distspmd {
inline namespace v1 {

class HandedOut {
 public:
  static HandedOut &all() {
    static HandedOut &one = *new HandedOut;  // others may let go when the process ends
    return one;
  }
  void note(void *structure) {
    const std::lock_guard<std::mutex> lock(mutex_);
    let_go_.push_back(structure);
  }
  /// One that nobody needs any more, each once; null if there is none.
  void *next() {
    const std::lock_guard<std::mutex> lock(mutex_);
    if (let_go_.empty()) return nullptr;
    void *const found = let_go_.back();
    let_go_.pop_back();
    return found;
  }

 private:
  std::mutex mutex_;
  std::vector<void *> let_go_;
};

/// The destructor of a capsule: if nobody took the array, the capsule still has the name it was given.
inline void drop_capsule(void *capsule) {
  using IsValid = int (*)(void *, const char *);
  using Pointer = void *(*)(void *, const char *);
  static const auto is_valid = reinterpret_cast<IsValid>(dlsym(RTLD_DEFAULT, "PyCapsule_IsValid"));
  static const auto pointer = reinterpret_cast<Pointer>(dlsym(RTLD_DEFAULT, "PyCapsule_GetPointer"));
  for (const char *name : {"dltensor", "dltensor_versioned"})
    if (is_valid && pointer && is_valid(capsule, name))
      HandedOut::all().note(pointer(capsule, name));
}

}  // namespace v1
}  // namespace distspmd
