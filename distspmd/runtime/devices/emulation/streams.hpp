// Streams of the emulated device: queues of operations, of which DISTSPMD_EMULATED_STREAMS says when
// they run.
//
//   lazy         (where left out) when somebody waits for them, and not before: a wait that is missing
//                gives a wrong result each time
//   eager        at once
//   random:SEED  some at once, others later
//
// The rules of the legacy default stream hold: it waits for all blocking streams, and they for it.
#pragma once

#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <deque>
#include <functional>
#include <random>
#include <utility>
#include <vector>

#include "arena.hpp"

namespace emulated {

struct Stream {
  bool blocking = true;
  std::deque<std::function<void()>> queue;
  std::uint64_t done = 0, last = 0;

  void run_until(std::uint64_t end) {
    while (done < end) {
      const std::function<void()> operation = std::move(queue.front());
      queue.pop_front();
      ++done;
      operation();
    }
  }
  void run_all() { run_until(last); }
};

struct Event {
  Stream *stream = nullptr;
  std::uint64_t upto = 0;
};

class Streams {
 public:
  explicit Streams(Arena &arena) : arena_(arena), per_thread_(create(true)) {
    const char *how = std::getenv("DISTSPMD_EMULATED_STREAMS");
    if (!how) return;
    if (!std::strcmp(how, "eager")) order_ = Order::eager;
    if (!std::strncmp(how, "random", 6)) {
      order_ = Order::random;
      draw_.seed(how[6] ? unsigned(std::atoi(how + 7)) : 0u);
    }
  }

  /// The stream behind a handle; null for none that is alive.
  Stream *of(Stream *handle) {
    if (handle == nullptr || handle == reinterpret_cast<Stream *>(1)) return &legacy_;
    if (handle == reinterpret_cast<Stream *>(2)) return per_thread_;
    return std::find(others_.begin(), others_.end(), handle) == others_.end() ? nullptr : handle;
  }

  void push(Stream &stream, std::function<void()> operation) {
    if (&stream == &legacy_) {
      for (Stream *other : others_)
        if (other->blocking) wait_for(stream, *other, other->last);
    } else if (stream.blocking) {
      wait_for(stream, legacy_, legacy_.last);
    }
    add(stream, [this, operation = std::move(operation)] {
      arena_.enter();
      operation();
      arena_.leave();
    });
    if (order_ == Order::eager) stream.run_all();
    if (order_ != Order::random) return;
    run_some(legacy_);
    for (std::size_t n = 0; n < others_.size(); ++n) run_some(*others_[n]);
  }

  /// What comes into a stream from now on runs after what is in the other one so far.
  void wait_for(Stream &stream, Stream &other, std::uint64_t upto) {
    if (other.done >= upto) return;
    add(stream, [&other, upto] { other.run_until(upto); });
  }

  void run_all() {
    legacy_.run_all();
    for (Stream *other : others_) other->run_all();
  }

  Stream *create(bool blocking) {
    others_.push_back(new Stream);
    others_.back()->blocking = blocking;
    return others_.back();
  }

  /// It is no stream any more, but its memory stays, since events may name it.
  void destroy(Stream *stream) {
    stream->run_all();
    others_.erase(std::find(others_.begin(), others_.end(), stream));
    ended_.push_back(stream);
  }

 private:
  enum class Order { lazy, eager, random };

  static void add(Stream &stream, std::function<void()> operation) {
    stream.queue.push_back(std::move(operation));
    ++stream.last;
  }
  void run_some(Stream &stream) {
    if (stream.done < stream.last && draw_() % 3 == 0) stream.run_until(stream.done + 1);
  }

  Arena &arena_;
  Stream legacy_;
  std::vector<Stream *> others_, ended_;
  Stream *per_thread_;  // one of the others: the device has one thread
  Order order_ = Order::lazy;
  std::mt19937 draw_;
};

}  // namespace emulated
