// Where a rank is, for the watchdog (runtime/watch/watchdog.py), which reads it from another thread.
#pragma once

#include <atomic>
#include <cstdint>

namespace distspmd {
inline namespace v1 {

/// How often data began to move between ranks, and how often they had arrived: rank_state.py has the
/// numbers. What moves is a plan by its number, or a fetch, -1 and below.
class Movements {
 public:
  void use(std::int64_t *numbers) { numbers_ = numbers; }

  /// While this lives, data move.
  class Going {
   public:
    Going(const Movements &movements, std::int64_t which) : numbers_(movements.numbers_) {
      store(0, which);
      store(1, numbers_[1] + 1);
    }
    ~Going() { store(2, numbers_[1]); }
    Going(const Going &) = delete;
    Going &operator=(const Going &) = delete;

   private:
    void store(int at, std::int64_t value) const {
      *static_cast<volatile std::int64_t *>(numbers_ + at) = value;
      std::atomic_signal_fence(std::memory_order_seq_cst);
    }
    std::int64_t *numbers_;
  };

 private:
  std::int64_t own_[3] = {};
  std::int64_t *numbers_ = own_;
};

}  // namespace v1
}  // namespace distspmd
