// Device tiles move from device to device where they can (pulls.hpp, messages.hpp), else by way of mirrors in
// pinned memory of the host, in which the engine of the plans finds them.
//
// A transport stands between a program and the engine. Of each end of a plan that lies in the
// device's memory it has a mirror: one kernel copies what the plan reads into the mirror, the engine
// moves it there, and one kernel copies what has been written back. Mirrors have the strides of the
// tiles, so plans and their tables know nothing of devices, and operands of reductions are combined
// in the same order: results have the same bits.
#pragma once

#include <cuda_runtime.h>

#include <algorithm>
#include <cstdint>
#include <initializer_list>
#include <memory>
#include <string>
#include <vector>

#include <distspmd/api/execute.hpp>
#include <distspmd/device/box_moves.hpp>
#include <distspmd/device/messages.hpp>
#include <distspmd/device/pulls.hpp>

namespace distspmd {
inline namespace v1 {

/// Boxes of a tile as numbers: dimensions, strides, boxes; of each box how many elements are in those
/// before it, where it begins, and its extents.
struct Boxes {
  std::vector<std::int64_t> words;
  std::int64_t elements = 0;  // of all
  std::int64_t reach = 0;     // elements of a storage that has them
  std::int64_t begin = -1;    // of the first one that is not empty, in elements of the storage

  static Boxes read(const std::int64_t *&at) {
    Boxes made;
    const std::int64_t dimensions = *at++;
    const std::int64_t *const strides = at;
    at += dimensions;
    const std::int64_t count = *at++;
    made.words = {dimensions};
    made.words.insert(made.words.end(), strides, strides + dimensions);
    made.words.push_back(count);
    for (std::int64_t n = 0; n < count; ++n, at += 1 + dimensions) {
      std::int64_t volume = 1, last = at[0];
      for (std::int64_t d = 0; d < dimensions; ++d) {
        volume *= at[1 + d];
        last += (at[1 + d] - 1) * strides[d];
      }
      made.words.push_back(made.elements);
      made.words.insert(made.words.end(), at, at + 1 + dimensions);
      made.elements += volume;
      if (volume > 0 && made.begin < 0) made.begin = at[0];
      made.reach = std::max(made.reach, last + 1);
    }
    return made;
  }
};

/// Copy the elements of boxes, of so many units each, to the same places of another memory.
template <class Unit>
__global__ void move_boxes(const Unit *from, Unit *to, const std::int64_t *words,
                           std::int64_t elements, std::int64_t units) {
  const std::int64_t dimensions = words[0], row = 2 + dimensions;
  const std::int64_t *const strides = words + 1;
  const std::int64_t *const boxes = words + 2 + dimensions;
  const std::int64_t count = words[1 + dimensions];
  const std::int64_t step = std::int64_t(gridDim.x) * blockDim.x;
  std::int64_t t = std::int64_t(blockIdx.x) * blockDim.x + threadIdx.x;
  for (; t < elements * units; t += step) {
    const std::int64_t element = t / units;
    const std::int64_t *const box = find_box(boxes, row, count, element);
    std::int64_t rest = element - box[0], at = box[1];
    for (std::int64_t d = dimensions - 1; d >= 0; --d) {
      at += rest % box[2 + d] * strides[d];
      rest /= box[2 + d];
    }
    to[at * units + t % units] = from[at * units + t % units];
  }
}

class Transport : public Executable {
 public:
  using End = void (*)(void *context, const char *message);

  /// Words: numbers of plans and of fetches; of each its item size, the boxes that are read from the
  /// source, those of the target that have to be there before, and those that are written.
  Transport(void *engine, End end, const std::int64_t *words)
      : Executable{run_plan, touched_by, ask_for, run_fetch, foresee_of, run_exchange,
                   gather_of_all, add_of_all, carry_of, communicator_of},
        engine_(static_cast<Executable *>(engine)),
        end_(end) {
    rank = engine_->rank, ranks = engine_->ranks;
    const std::int64_t plans = *words++, fetches = *words++;
    for (std::int64_t n = 0; n < plans + fetches; ++n) {
      Route route;
      route.itemsize = *words++;
      for (Part *part : {&route.read, &route.kept, &route.written}) {
        part->boxes = Boxes::read(words);
        upload(*part);
        std::int64_t &most = reach_[part == &route.read ? 0 : 1];
        most = std::max(most, part->boxes.reach * route.itemsize);
      }
      (n < plans ? plans_ : fetches_).push_back(route);
    }
    check(cudaStreamCreateWithFlags(&stream_, cudaStreamNonBlocking), "cudaStreamCreate");
  }
  Transport(const Transport &) = delete;
  Transport &operator=(const Transport &) = delete;

  ~Transport() {
    for (auto *routes : {&plans_, &fetches_})
      for (Route &route : *routes)
        for (Part *part : {&route.read, &route.kept, &route.written}) cudaFree(part->table);
    for (void *mirror : mirrors_)
      if (mirror) cudaFreeHost(mirror);
    cudaStreamDestroy(stream_);
  }

  /// Let messages about errors name what moved: plans first, then fetches.
  void name(const char *one) { names_.emplace_back(one); }

  /// Let ranks pull out of the memory of each other's devices, where they can; see Pulls.
  void use_pulls(Pulls::Meet meet, Pulls::Count count, const std::int64_t *words) {
    pulls_ = std::make_unique<Pulls>(engine_, meet, count, words);
    check(pulls_->error(), "the tables of pulls");
  }
  Pulls *pulls() { return pulls_.get(); }

  /// Let ranks send packed buffers from device to device, where they can; see Messages.
  void use_messages(Pulls::Meet meet, Pulls::Count count, ByMpi mpi, void *group, bool pinned,
                    const std::int64_t *words) {
    messages_.push_back(std::make_unique<Messages>(engine_, meet, count, mpi, group, pinned, words));
    check(messages_.back()->error(), "the tables of messages");
  }

  /// Calls of plans whose packed messages lay in pinned memory of the host, or in that of devices.
  std::int64_t calls(bool pinned) const {
    std::int64_t found = 0;
    for (const auto &messages : messages_) found += messages->is_pinned() == pinned ? messages->calls : 0;
    return found;
  }

  /// Bytes that have been copied from the device to the host, or back.
  std::int64_t copied(bool back) const {
    std::int64_t found = back ? to_device : to_host;
    for (const auto &messages : messages_) found += back ? messages->to_device : messages->to_host;
    return found;
  }

  std::int64_t to_host = 0, to_device = 0;  // by way of mirrors

 private:
  struct Part {
    Boxes boxes;
    std::int64_t *table = nullptr;  // on the device
  };
  struct Route {
    std::int64_t itemsize;
    Part read, kept, written;
  };

  template <class Go>
  void by(const Route &route, const void *in, void *out, Go go) {
    wait(nullptr);  // for what the program does with the tiles
    const bool from_device = is_on_device(route.itemsize, in, {&route.read});
    const bool to_device = is_on_device(route.itemsize, out, {&route.kept, &route.written});
    for (const int side : {0, 1})  // the first time; programs whose tiles go otherwise have none
      if (reach_[side] && !mirrors_[side])
        check(cudaHostAlloc(&mirrors_[side], std::size_t(std::max(reach_[0], reach_[1])),
                            cudaHostAllocMapped),
              "cudaHostAlloc");
    const bool in_place = in == out && mirrors_[0];  // else nothing is read
    char *const source = static_cast<char *>(mirrors_[0]);
    char *const target = static_cast<char *>(mirrors_[in_place ? 0 : 1]);
    if (from_device) move(route, route.read, in, source);
    if (to_device) move(route, route.kept, out, target);
    wait(stream_);
    go(from_device ? source : in, to_device ? target : out);
    if (to_device) move(route, route.written, target, out);
    wait(stream_);
  }

  void move(const Route &route, const Part &part, const void *from, void *to) {
    if (!part.boxes.elements) return;
    const std::int64_t bytes = part.boxes.elements * route.itemsize;
    (is_on_device(route.itemsize, to, {&part}) ? to_device : to_host) += bytes;
    const std::int64_t size = route.itemsize;
    if (size % 8 == 0) return launch<std::uint64_t>(part, size / 8, from, to);
    if (size % 4 == 0) return launch<std::uint32_t>(part, size / 4, from, to);
    if (size % 2 == 0) return launch<std::uint16_t>(part, size / 2, from, to);
    launch<std::uint8_t>(part, size, from, to);
  }

  template <class Unit>
  void launch(const Part &part, std::int64_t units, const void *from, void *to) {
    const Unit *source = static_cast<const Unit *>(from);
    Unit *target = static_cast<Unit *>(to);
    const std::int64_t *table = part.table;
    std::int64_t elements = part.boxes.elements;
    const std::int64_t blocks = (elements * units + threads - 1) / threads;
    void *arguments[] = {(void *)&source, (void *)&target, (void *)&table, (void *)&elements,
                         (void *)&units};
    check(cudaLaunchKernel((void *)move_boxes<Unit>,
                           dim3(unsigned(std::min<std::int64_t>(blocks, most_blocks))),
                           dim3(threads), arguments, 0, stream_),
          "the launch of a copy");
  }

  void upload(Part &part) {
    const std::size_t bytes = part.boxes.words.size() * sizeof(std::int64_t);
    check(allocate(reinterpret_cast<void **>(&part.table), bytes), "cudaMalloc");
    if (part.table)
      check(cudaMemcpy(part.table, part.boxes.words.data(), bytes, cudaMemcpyHostToDevice),
            "cudaMemcpy");
  }

  void end(const std::string &message) {
    const bool knows = moving_ < names_.size();
    end_(engine_, ((knows ? names_[moving_] + ": " : std::string()) + message).c_str());
  }

  void wait(cudaStream_t stream) { check(cudaStreamSynchronize(stream), "cudaStreamSynchronize"); }

  void check(cudaError_t error, const char *what) {
    if (error == cudaSuccess) return;
    end(std::string("the device: ") + what + ": " + cudaGetErrorString(error) + ".");
  }

  /// Whether a tile is in the memory of the device, of which parts are touched; its storage may begin
  /// behind the pointer, where nothing is.
  static bool is_on_device(std::int64_t itemsize, const void *pointer,
                           std::initializer_list<const Part *> parts) {
    for (const Part *part : parts) {
      if (part->boxes.begin < 0) continue;
      cudaPointerAttributes found;
      const char *const touched = static_cast<const char *>(pointer) + part->boxes.begin * itemsize;
      return cudaPointerGetAttributes(&found, touched) == cudaSuccess &&
             found.type == cudaMemoryTypeDevice;
    }
    return false;
  }

  static void run_plan(Executable *own, std::int64_t plan, const void *in, void *out) {
    Transport *self = static_cast<Transport *>(own);
    Executable *engine = self->engine_;
    self->moving_ = std::size_t(plan);
    if (self->pulls_) {
      self->wait(nullptr);  // for what the program does with the tiles
      const bool done = self->pulls_->run(plan, in, out);
      self->check(self->pulls_->error(), "a pull");
      if (done) return;
    }
    for (const auto &messages : self->messages_) {
      self->wait(nullptr);  // likewise
      const bool done = messages->run(plan, in, out);
      if (!messages->said().empty()) self->end(messages->said());
      self->check(messages->error(), "a message");
      if (done) return;
    }
    self->by(self->plans_.at(std::size_t(plan)), in, out,
             [=](const void *from, void *to) { engine->run(engine, plan, from, to); });
  }
  static Touched *touched_by(Executable *own, std::int64_t fetch) {
    Executable *engine = static_cast<Transport *>(own)->engine_;
    return engine->touched(engine, fetch);
  }
  static void ask_for(Executable *own, std::int64_t fetch) {
    Executable *engine = static_cast<Transport *>(own)->engine_;
    engine->ask(engine, fetch);
  }
  static void foresee_of(Executable *own, std::int64_t fetch, Foresight finds, const void *code) {
    Executable *engine = static_cast<Transport *>(own)->engine_;
    engine->foresee(engine, fetch, finds, code);
  }
  static void run_exchange(Executable *own, std::int64_t exchange, const RowEnds &ends) {
    Executable *engine = static_cast<Transport *>(own)->engine_;
    engine->exchange(engine, exchange, ends);
  }
  static void gather_of_all(Executable *own, std::int64_t number, const void *mine, std::int64_t bytes, void *all) {
    Executable *engine = static_cast<Transport *>(own)->engine_;
    engine->gather_all(engine, number, mine, bytes, all);
  }
  static void add_of_all(Executable *own, std::int64_t number, std::int64_t *numbers, std::int64_t count) {
    Executable *engine = static_cast<Transport *>(own)->engine_;
    engine->add_all(engine, number, numbers, count);
  }
  static void carry_of(Executable *own, std::int64_t number, const std::vector<Parcel> &sends,
                       const std::vector<Parcel> &receives) {
    Executable *engine = static_cast<Transport *>(own)->engine_;
    engine->carry(engine, number, sends, receives);
  }
  static std::int64_t communicator_of(Executable *own, std::int64_t number, const std::vector<std::int64_t> &ranks) {
    Executable *engine = static_cast<Transport *>(own)->engine_;
    return engine->communicator(engine, number, ranks);
  }
  static void run_fetch(Executable *own, std::int64_t fetch, const void *in, void *out) {
    Transport *self = static_cast<Transport *>(own);
    Executable *engine = self->engine_;
    self->moving_ = self->plans_.size() + std::size_t(fetch);
    self->by(self->fetches_.at(std::size_t(fetch)), in, out,
             [=](const void *from, void *to) { engine->fetch(engine, fetch, from, to); });
  }

  static constexpr unsigned threads = 256;
  static constexpr std::int64_t most_blocks = 1 << 16;

  Executable *engine_;
  End end_;
  std::unique_ptr<Pulls> pulls_;
  std::vector<std::unique_ptr<Messages>> messages_;  // a plan goes by one of them at most
  std::vector<Route> plans_, fetches_;
  std::vector<std::string> names_;
  std::size_t moving_ = std::size_t(-1);  // which of them moves, or has moved last
  std::int64_t reach_[2] = {0, 0};  // bytes of a mirror that has all boxes of a source, of a target
  void *mirrors_[2] = {nullptr, nullptr};
  cudaStream_t stream_ = nullptr;
};

}  // namespace v1
}  // namespace distspmd
