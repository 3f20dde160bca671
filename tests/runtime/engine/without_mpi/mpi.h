// Just enough of MPI to read tables and make steps without it: what would end all ranks throws.
#pragma once

#include <stdexcept>

using MPI_Comm = int;
using MPI_Datatype = int;
using MPI_Op = int;
using MPI_Request = int;
using MPI_Aint = long;
using MPI_User_function = void(void *, void *, int *, MPI_Datatype *);

enum {
  MPI_COMM_NULL = 0,
  MPI_DATATYPE_NULL = 0,
  MPI_OP_NULL = 0,
  MPI_REQUEST_NULL = 0,
  MPI_SUCCESS = 0
};
enum { MPI_MAX_ERROR_STRING = 64 };
enum {
  MPI_BYTE = 20,
  MPI_C_BOOL = 1,
  MPI_INT8_T,
  MPI_INT16_T,
  MPI_INT32_T,
  MPI_INT64_T,
  MPI_UINT8_T
};
enum { MPI_UINT16_T = 7, MPI_UINT32_T, MPI_UINT64_T, MPI_FLOAT, MPI_DOUBLE };
enum { MPI_C_FLOAT_COMPLEX = 12, MPI_C_DOUBLE_COMPLEX };
enum { MPI_SUM = 1, MPI_PROD, MPI_MIN, MPI_MAX, MPI_LAND, MPI_LOR, MPI_LXOR, MPI_BAND, MPI_BOR, MPI_BXOR };
#define MPI_IN_PLACE nullptr
#define MPI_STATUS_IGNORE nullptr

inline int MPI_Comm_rank(MPI_Comm, int *) { return MPI_SUCCESS; }
inline int MPI_Comm_size(MPI_Comm, int *) { return MPI_SUCCESS; }
inline int MPI_Abort(MPI_Comm, int) { throw std::runtime_error("ended"); }
inline int MPI_Error_string(int, char *, int *) { return MPI_SUCCESS; }

template <class... Arguments>
int made(Arguments...) {
  return MPI_SUCCESS;
}
#define MPI_Op_create made
#define MPI_Op_free made
#define MPI_Type_commit made
#define MPI_Type_contiguous made
#define MPI_Type_create_hvector made
#define MPI_Type_create_struct made
#define MPI_Type_dup made
#define MPI_Type_free made

template <class... Arguments>
int never(Arguments...) {
  throw std::logic_error("communicates");
}
#define MPI_Allgatherv never
#define MPI_Allreduce never
#define MPI_Bcast never
#define MPI_Ibcast never
#define MPI_Irecv never
#define MPI_Isend never
#define MPI_Reduce never
#define MPI_Wait never
#define MPI_Waitany never
