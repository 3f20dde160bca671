// Stands between MPI and its callers, and counts the bytes of their calls: preloaded into a rank, its
// functions come before those of MPI, which it calls by their other names (PMPI).
//
// What is counted: the bytes of each message that is sent or received, of each broadcast that
// arrives, and of each box of others that an all-gather brings. A rule stands for calls that combine: a sum
// to one rank moves the box once for each other rank, a sum to all twice. Any other call that
// carries data is told as strange.
//
// Where the library has counters of what it sends itself, also within collective calls, they are
// read (the component "monitoring" of Open MPI).
#include <mpi.h>

#include <cstddef>
#include <cstdint>
#include <vector>

namespace {

struct Counts {
  std::int64_t sent, received, combined, strange;
} counts;

MPI_T_pvar_session session;
MPI_T_pvar_handle library_sends = MPI_T_PVAR_HANDLE_NULL;

std::int64_t bytes(std::int64_t elements, MPI_Datatype type) {
  int size = 0;
  PMPI_Type_size(type, &size);
  return elements * size;
}

int rank_in(MPI_Comm comm) {
  int rank = 0;
  PMPI_Comm_rank(comm, &rank);
  return rank;
}

int others_in(MPI_Comm comm) {
  int ranks = 0;
  PMPI_Comm_size(comm, &ranks);
  return ranks - 1;
}

}  // namespace

extern "C" {

void counted_reset() { counts = {}; }

void counted_read(std::int64_t *found) {
  const std::int64_t numbers[] = {counts.sent, counts.received, counts.combined, counts.strange};
  for (const std::int64_t number : numbers) *found++ = number;
}

/// Let the library count; whether it does.
int library_watch() {
  int provided = 0, index = 0, count = 0;
  MPI_Comm world = MPI_COMM_WORLD;
  return MPI_T_init_thread(MPI_THREAD_SINGLE, &provided) == MPI_SUCCESS &&
         MPI_T_pvar_get_index("pml_monitoring_messages_size", MPI_T_PVAR_CLASS_SIZE, &index) ==
             MPI_SUCCESS &&
         MPI_T_pvar_session_create(&session) == MPI_SUCCESS &&
         MPI_T_pvar_handle_alloc(session, index, &world, &library_sends, &count) == MPI_SUCCESS &&
         MPI_T_pvar_start(session, library_sends) == MPI_SUCCESS && count == others_in(world) + 1;
}

/// Bytes that the library has sent to each rank of the world so far; whether it could be read.
int library_read(std::int64_t *sent) {
  std::vector<unsigned long> found(static_cast<std::size_t>(others_in(MPI_COMM_WORLD) + 1));
  if (MPI_T_pvar_read(session, library_sends, found.data()) != MPI_SUCCESS) return 0;
  for (const unsigned long number : found) *sent++ = static_cast<std::int64_t>(number);
  return 1;
}

int MPI_Send(const void *data, int count, MPI_Datatype type, int peer, int tag, MPI_Comm comm) {
  counts.sent += bytes(count, type);
  return PMPI_Send(data, count, type, peer, tag, comm);
}

int MPI_Isend(const void *data, int count, MPI_Datatype type, int peer, int tag, MPI_Comm comm,
              MPI_Request *request) {
  counts.sent += bytes(count, type);
  return PMPI_Isend(data, count, type, peer, tag, comm, request);
}

int MPI_Recv(void *data, int count, MPI_Datatype type, int peer, int tag, MPI_Comm comm,
             MPI_Status *status) {
  counts.received += bytes(count, type);
  return PMPI_Recv(data, count, type, peer, tag, comm, status);
}

int MPI_Irecv(void *data, int count, MPI_Datatype type, int peer, int tag, MPI_Comm comm,
              MPI_Request *request) {
  counts.received += bytes(count, type);
  return PMPI_Irecv(data, count, type, peer, tag, comm, request);
}

int MPI_Bcast(void *data, int count, MPI_Datatype type, int root, MPI_Comm comm) {
  const std::int64_t box = bytes(count, type);
  if (rank_in(comm) == root)
    counts.sent += box * others_in(comm);
  else
    counts.received += box;
  return PMPI_Bcast(data, count, type, root, comm);
}

int MPI_Ibcast(void *data, int count, MPI_Datatype type, int root, MPI_Comm comm,
               MPI_Request *request) {
  const std::int64_t box = bytes(count, type);
  if (rank_in(comm) == root)
    counts.sent += box * others_in(comm);
  else
    counts.received += box;
  return PMPI_Ibcast(data, count, type, root, comm, request);
}

int MPI_Allgatherv(const void *given, int count, MPI_Datatype type, void *all, const int *each,
                   const int *places, MPI_Datatype of_all, MPI_Comm comm) {
  const int me = rank_in(comm), others = others_in(comm);
  counts.sent += bytes(each[me], of_all) * others;
  for (int rank = 0; rank <= others; ++rank)
    if (rank != me) counts.received += bytes(each[rank], of_all);
  return PMPI_Allgatherv(given, count, type, all, each, places, of_all, comm);
}

int MPI_Reduce(const void *given, void *result, int count, MPI_Datatype type, MPI_Op op, int root,
               MPI_Comm comm) {
  if (rank_in(comm) == root) counts.combined += bytes(count, type) * others_in(comm);
  return PMPI_Reduce(given, result, count, type, op, root, comm);
}

int MPI_Allreduce(const void *given, void *result, int count, MPI_Datatype type, MPI_Op op,
                  MPI_Comm comm) {
  if (rank_in(comm) == 0) counts.combined += 2 * bytes(count, type) * others_in(comm);
  return PMPI_Allreduce(given, result, count, type, op, comm);
}

#define STRANGE(name, parameters, arguments) \
  int MPI_##name parameters {                \
    ++counts.strange;                        \
    return PMPI_##name arguments;            \
  }

STRANGE(Sendrecv,
        (const void *a, int b, MPI_Datatype c, int d, int e, void *f, int g, MPI_Datatype h, int i,
         int j, MPI_Comm k, MPI_Status *l),
        (a, b, c, d, e, f, g, h, i, j, k, l))
STRANGE(Scatterv,
        (const void *a, const int *b, const int *c, MPI_Datatype d, void *e, int f, MPI_Datatype g,
         int h, MPI_Comm i),
        (a, b, c, d, e, f, g, h, i))
STRANGE(Gatherv,
        (const void *a, int b, MPI_Datatype c, void *d, const int *e, const int *f, MPI_Datatype g,
         int h, MPI_Comm i),
        (a, b, c, d, e, f, g, h, i))
STRANGE(Allgather,
        (const void *a, int b, MPI_Datatype c, void *d, int e, MPI_Datatype f, MPI_Comm g),
        (a, b, c, d, e, f, g))
STRANGE(Alltoall,
        (const void *a, int b, MPI_Datatype c, void *d, int e, MPI_Datatype f, MPI_Comm g),
        (a, b, c, d, e, f, g))
STRANGE(Alltoallv,
        (const void *a, const int *b, const int *c, MPI_Datatype d, void *e, const int *f,
         const int *g, MPI_Datatype h, MPI_Comm i),
        (a, b, c, d, e, f, g, h, i))
STRANGE(Alltoallw,
        (const void *a, const int *b, const int *c, const MPI_Datatype *d, void *e, const int *f,
         const int *g, const MPI_Datatype *h, MPI_Comm i),
        (a, b, c, d, e, f, g, h, i))
STRANGE(Reduce_scatter,
        (const void *a, void *b, const int *c, MPI_Datatype d, MPI_Op e, MPI_Comm f),
        (a, b, c, d, e, f))
STRANGE(Iallreduce,
        (const void *a, void *b, int c, MPI_Datatype d, MPI_Op e, MPI_Comm f, MPI_Request *g),
        (a, b, c, d, e, f, g))
STRANGE(Put,
        (const void *a, int b, MPI_Datatype c, int d, MPI_Aint e, int f, MPI_Datatype g, MPI_Win h),
        (a, b, c, d, e, f, g, h))
STRANGE(Get,
        (void *a, int b, MPI_Datatype c, int d, MPI_Aint e, int f, MPI_Datatype g, MPI_Win h),
        (a, b, c, d, e, f, g, h))

}  // extern "C"
