// Packed messages go in pieces: which of them are packed when one is sent, and unpacked when one is awaited.
//
// MPI is played: this is rank 0 of two, the other one sends 1000 * step + n. VARIANTS has the header as it is,
// and without each of its waits; TABLE is that of a plan of two steps. The device's memory is not guarded.
#include <cuda_runtime.h>

#include <cstdint>
#include <cstdio>
#include <cstring>
#include <string>
#include <utility>
#include <vector>

#include <distspmd/device/messages.hpp>

VARIANTS

constexpr std::int64_t rows = 4, columns = 8, half = columns / 2;  // of the tiles [4, 8] and [8, 4]
using Tile = std::vector<double>;

struct Engine {
  struct Message {
    double *at;
    std::int64_t count;
    bool sends, done;
  };
  double *target = nullptr;
  std::vector<Message> posted;
  Tile sent;
  std::string packed, unpacked;  // of each message, how many elements were there
  int steps = 0, received = 0, unfinished = 0;

  void deliver(Message &message) {
    if (message.done) return;
    message.done = true;
    if (message.sends) {  // what the buffer has when it is read
      sent.insert(sent.end(), message.at, message.at + message.count);
      return;
    }
    for (std::int64_t n = 0; n < message.count; ++n) message.at[n] = 1000. * steps + received++;
  }
  /// Elements of the target that have come from the other rank in this step.
  int came() const {
    int found = 0;
    for (std::int64_t n = 0; n < 2 * rows * half; ++n)
      found += target[n] >= 1000. * steps && target[n] < 1000. * (steps + 1);
    return found;
  }
};

Engine engine;

std::int64_t post(void *, std::int64_t, std::int64_t sends, std::int64_t, void *at, std::int64_t bytes) {
  if (engine.posted.empty() && !sends) {
    if (engine.steps && engine.came() != rows * half) ++engine.unfinished;  // the inbox is still needed
    ++engine.steps;
    engine.received = 0;
    engine.packed += "|";
    engine.unpacked += "|";
  }
  engine.posted.push_back({static_cast<double *>(at), bytes / 8, sends != 0, false});
  if (sends) {  // it goes at once, and nobody knows whether what follows is packed
    const double *const end = static_cast<double *>(at) + bytes / 8;
    int further = 0;
    const std::int64_t before = std::int64_t(engine.sent.size()) % (rows * half) + bytes / 8;
    for (std::int64_t n = 0; before + n < rows * half; ++n) further += end[n] == end[n];
    engine.packed += " " + std::to_string(further);
    engine.deliver(engine.posted.back());
  }
  return std::int64_t(engine.posted.size()) - 1;
}
std::int64_t is_done(void *, std::int64_t, std::int64_t message, std::int64_t waits) {
  Engine::Message &one = engine.posted[std::size_t(message)];
  if (waits) {
    engine.unpacked += " " + std::to_string(engine.came());
    engine.deliver(one);
  }
  return one.done;
}
void finish(void *, std::int64_t) {
  for (Engine::Message &message : engine.posted) engine.deliver(message);
  engine.posted.clear();
}
void meet(void *, std::int64_t, const void *mine, std::int64_t bytes, void *all) {
  for (int rank = 0; rank < 2; ++rank) std::memcpy(static_cast<char *>(all) + rank * bytes, mine, bytes);
}
void count(void *, std::int64_t, std::int64_t) {}

__global__ void fill(double *tile, std::int64_t count) {
  const std::int64_t i = std::int64_t(blockIdx.x) * blockDim.x + threadIdx.x;
  if (i < count) tile[i] = double(i);
}
void queue_fill(double *tile, std::int64_t elements) {
  void *arguments[] = {&tile, &elements};
  cudaLaunchKernel((void *)fill, dim3(1), dim3(64), arguments, 0, nullptr);
  cudaStreamSynchronize(nullptr);
}

template <class Messages, class ByMpi>
void check(const char *name) {
  const std::int64_t table[] = TABLE;
  engine = Engine();
  double *source = nullptr;
  cudaMalloc(&source, rows * columns * sizeof(double));
  cudaMalloc(&engine.target, 2 * rows * half * sizeof(double));
  queue_fill(source, rows * columns);
  Tile found(2 * rows * half), wanted(2 * rows * half), sent;
  {
    Messages messages(nullptr, meet, count, ByMpi{post, is_done, finish}, nullptr, true, table);
    const bool ran = messages.run(0, source, engine.target);
    std::memcpy(found.data(), engine.target, found.size() * sizeof(double));  // without a wait
    if (!ran || messages.error() != cudaSuccess) std::printf("it did not run\n");
    if (messages.to_host != messages.to_device || messages.to_host != 2 * rows * half * 8)
      std::printf("%d and %d bytes were copied\n", int(messages.to_host), int(messages.to_device));
  }
  for (std::int64_t row = 0; row < rows; ++row)
    for (std::int64_t column = 0; column < half; ++column) {
      wanted[row * half + column] = double(row * columns + column);
      wanted[(rows + row) * half + column] = 2000. + double(row * half + column);
      sent.push_back(double(row * columns + half + column));
    }
  sent.insert(sent.end(), sent.begin(), sent.begin() + rows * half);  // in each step
  const bool all = engine.posted.empty() && engine.steps == 2 && !engine.unfinished;
  const bool right = all && found == wanted && engine.sent == sent;
  std::printf("%s: %s; packed behind%s; unpacked before%s\n", name, right ? "right" : "wrong",
              engine.packed.c_str(), engine.unpacked.c_str());
  for (double *at : {source, engine.target}) cudaFree(at);
}

int main() {
  CHECKS
  std::printf("done\n");
}
