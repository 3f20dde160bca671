// NCCL on the emulated device: messages between processes of one machine, queued on their stream, by
// sockets. What NCCL refuses of its arguments is refused; what it would fault at, too.
//
// DISTSPMD_EMULATED_GROUPS is the number of groups that can be joined: with 0 there is none, as for two
// ranks on one GPU.
#include "cuda_runtime.h"

#include <poll.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <vector>

#define EXPORT extern "C" __attribute__((used, visibility("default")))

namespace {

enum Status { success = 0, unhandled_cuda_error = 1, system_error = 2, invalid_argument = 4, invalid_usage = 5 };

struct Id {
  char words[128];
};

/// A message that has begun, or not yet.
struct Message {
  bool sends;
  char *at;
  std::size_t left;
  int peer;
};

struct Group {
  int rank = 0;
  std::vector<int> sockets;  // by rank
};

struct Queued {
  Group *group;
  cudaStream_t stream;
  Message message;
};
int depth = 0;
std::vector<Queued> queued;

sockaddr_un address_of(const Id &id, int rank, socklen_t *length) {
  sockaddr_un found{};
  found.sun_family = AF_UNIX;  // a name that is in no folder
  const int written = std::snprintf(found.sun_path + 1, sizeof found.sun_path - 1, "%.64s-%d",
                                    id.words, rank);
  *length = socklen_t(offsetof(sockaddr_un, sun_path) + 1 + std::size_t(written));
  return found;
}

bool whole(ssize_t done) { return done == sizeof(int); }

/// All messages of a group at once: those of a pair of ranks and a direction one after another.
void carry_all(const Group &group, std::vector<Message> messages) {
  for (std::size_t left = messages.size(); left > 0;) {
    std::vector<pollfd> waiting;
    std::vector<std::size_t> first;
    for (int peer = 0; peer < int(group.sockets.size()); ++peer)
      for (const bool sends : {false, true})
        for (std::size_t n = 0; n < messages.size(); ++n)
          if (messages[n].left && messages[n].peer == peer && messages[n].sends == sends) {
            waiting.push_back({group.sockets[std::size_t(peer)], short(sends ? POLLOUT : POLLIN), 0});
            first.push_back(n);
            break;
          }
    if (waiting.empty()) return;
    poll(waiting.data(), nfds_t(waiting.size()), -1);
    for (std::size_t w = 0; w < waiting.size(); ++w) {
      if (!waiting[w].revents) continue;
      Message &message = messages[first[w]];
      const ssize_t done =
          message.sends ? send(waiting[w].fd, message.at, message.left, MSG_DONTWAIT | MSG_NOSIGNAL)
                        : recv(waiting[w].fd, message.at, message.left, MSG_DONTWAIT);
      if (done == 0 || (done < 0 && !(waiting[w].revents & (POLLIN | POLLOUT)))) {
        std::fprintf(stderr, "distspmd: a rank of an emulated group has ended.\n");
        std::abort();
      }
      if (done < 0) continue;
      message.at += done;
      message.left -= std::size_t(done);
      left -= message.left == 0;
    }
  }
}

int add(bool sends, const void *at, std::size_t count, int type, int peer, void *group, cudaStream_t stream) {
  Group *const found = static_cast<Group *>(group);
  if (!found || type != 0 || peer < 0 || peer >= int(found->sockets.size()) || peer == found->rank)
    return invalid_argument;
  cudaPointerAttributes lies;
  if (count && (cudaPointerGetAttributes(&lies, at) != cudaSuccess || lies.type != cudaMemoryTypeDevice))
    return invalid_argument;
  if (!depth) return invalid_usage;  // what is not grouped could wait for the other for ever
  char *const bytes = static_cast<char *>(const_cast<void *>(at));
  if (count) queued.push_back({found, stream, {sends, bytes, count, peer}});
  return success;
}

}  // namespace

EXPORT int ncclGetUniqueId(Id *id) {
  static int count = 0;
  std::memset(id, 0, sizeof *id);
  std::snprintf(id->words, sizeof id->words, "distspmd-%d-%d", int(getpid()), count++);
  return success;
}

EXPORT int ncclCommInitRank(void **made, int ranks, Id id, int rank) {
  static int left = std::getenv("DISTSPMD_EMULATED_GROUPS")
                        ? std::atoi(std::getenv("DISTSPMD_EMULATED_GROUPS"))
                        : -1;
  if (left == 0) return invalid_usage;
  --left;
  auto group = std::make_unique<Group>();
  group->rank = rank;
  group->sockets.assign(std::size_t(ranks), -1);
  socklen_t length;
  const int listening = socket(AF_UNIX, SOCK_STREAM, 0);
  sockaddr_un own = address_of(id, rank, &length);
  if (bind(listening, reinterpret_cast<sockaddr *>(&own), length) || listen(listening, ranks))
    return system_error;
  for (int peer = 0; peer < rank; ++peer) {
    const int made_socket = group->sockets[std::size_t(peer)] = socket(AF_UNIX, SOCK_STREAM, 0);
    sockaddr_un other = address_of(id, peer, &length);
    while (connect(made_socket, reinterpret_cast<sockaddr *>(&other), length)) usleep(1000);
    if (!whole(send(made_socket, &rank, sizeof rank, MSG_NOSIGNAL))) return system_error;
  }
  for (int others = ranks - rank - 1; others > 0; --others) {
    int peer = -1;
    const int accepted = accept(listening, nullptr, nullptr);
    if (!whole(recv(accepted, &peer, sizeof peer, MSG_WAITALL)) || peer <= rank || peer >= ranks)
      return system_error;
    group->sockets[std::size_t(peer)] = accepted;
  }
  close(listening);
  *made = group.release();
  return success;
}

EXPORT int ncclCommDestroy(void *group) {
  Group *const found = static_cast<Group *>(group);
  for (const int one : found->sockets)
    if (one >= 0) close(one);
  delete found;
  return success;
}

EXPORT int ncclGroupStart() {
  ++depth;
  return success;
}
EXPORT int ncclGroupEnd() {
  if (!depth || --depth) return depth ? success : invalid_usage;
  const std::vector<Queued> all = std::move(queued);
  queued.clear();
  if (all.empty()) return success;
  std::vector<Message> messages;
  for (const Queued &one : all) messages.push_back(one.message);
  Group *const group = all.front().group;
  const auto run = [group, messages] { carry_all(*group, messages); };
  return emulated::enqueue({1}, {1}, all.front().stream, run) == cudaSuccess ? success
                                                                             : unhandled_cuda_error;
}
EXPORT int ncclSend(const void *at, std::size_t count, int type, int peer, void *group, cudaStream_t stream) {
  return add(true, at, count, type, peer, group, stream);
}
EXPORT int ncclRecv(void *at, std::size_t count, int type, int peer, void *group, cudaStream_t stream) {
  return add(false, at, count, type, peer, group, stream);
}
EXPORT const char *ncclGetErrorString(int status) {
  return status == invalid_usage ? "invalid usage" : status == invalid_argument ? "invalid argument" : "error";
}
