// Datatypes and operations of MPI, made once, shared by all plans, and freed with the context.
#pragma once

#include <mpi.h>

#include <cstdint>
#include <map>
#include <utility>
#include <vector>

#include <distspmd/plan/boxes.hpp>
#include <distspmd/errors.hpp>
#include <distspmd/memory/reductions.hpp>
#include <distspmd/plan/decode.hpp>

namespace distspmd {
inline namespace v1 {

class Resources {
 public:
  Resources() = default;
  Resources(const Resources &) = delete;
  Resources &operator=(const Resources &) = delete;

  /// Free all; only while MPI runs.
  void release() {
    for (MPI_Datatype &type : own_types_) MPI_Type_free(&type);
    for (MPI_Op &op : own_ops_) MPI_Op_free(&op);
    own_types_.clear();
    own_ops_.clear();
  }

  /// The datatype of one element of so many bytes.
  MPI_Datatype element(std::int64_t itemsize) {
    auto [found, fresh] = elements_.try_emplace(itemsize, MPI_DATATYPE_NULL);
    if (fresh) found->second = make_element(itemsize);
    return found->second;
  }

  /// The operation by which a step reduces values of a dtype.
  MPI_Op operation(const StepTable &step, std::int64_t dtype) {
    if (step.operation == Operation::none) return MPI_OP_NULL;
    auto [found, fresh] = ops_.try_emplace({step.operation, dtype}, MPI_OP_NULL);
    if (!fresh) return found->second;
    const Reduction &reduction = step.reduction;
    found->second = reduction.op;
    if (reduction.op == MPI_OP_NULL) {
      check(MPI_Op_create(reduction.function, 1, &found->second), comm, "MPI_Op_create", where);
      own_ops_.push_back(found->second);
    }
    return found->second;
  }

  /// The datatype of boxes of a storage in row-major order, one after the other, from the first
  /// element of the first box on.
  MPI_Datatype boxes(const std::vector<Box> &boxes, const Storage &storage, std::int64_t itemsize) {
    MPI_Datatype all = strided(boxes[0], storage, itemsize);
    if (boxes.size() > 1) {
      std::vector<MPI_Datatype> types{all};
      std::vector<MPI_Aint> places{0};
      const std::vector<int> ones(boxes.size(), 1);
      for (std::size_t i = 1; i < boxes.size(); ++i) {
        types.push_back(strided(boxes[i], storage, itemsize));
        places.push_back(static_cast<MPI_Aint>(
            (storage.offset(boxes[i]) - storage.offset(boxes[0])) * itemsize));
      }
      check(MPI_Type_create_struct(static_cast<int>(boxes.size()), ones.data(), places.data(),
                                   types.data(), &all),
            comm, "MPI_Type_create_struct", where);
      for (MPI_Datatype &type : types) MPI_Type_free(&type);
    }
    check(MPI_Type_commit(&all), comm, "MPI_Type_commit", where);
    own_types_.push_back(all);
    return all;
  }

  MPI_Comm comm = MPI_COMM_NULL;

 private:
  static constexpr const char *where = "the creation of the plans";

  MPI_Datatype make_element(std::int64_t itemsize) {
    switch (itemsize) {
      case 1: return MPI_BYTE;
      case 2: return MPI_UINT16_T;
      case 4: return MPI_UINT32_T;
      case 8: return MPI_UINT64_T;
      default: break;
    }
    MPI_Datatype type;
    check(MPI_Type_contiguous(static_cast<int>(itemsize), MPI_BYTE, &type), comm,
          "MPI_Type_contiguous", where);
    check(MPI_Type_commit(&type), comm, "MPI_Type_commit", where);
    own_types_.push_back(type);
    return type;
  }

  /// A box from its first element on: a nest of vectors, runs merged where they meet.
  MPI_Datatype strided(const Box &box, const Storage &storage, std::int64_t itemsize) {
    MPI_Datatype type;
    check(MPI_Type_dup(element(itemsize), &type), comm, "MPI_Type_dup", where);
    std::int64_t run = 1;  // elements of the type so far, if they are one run
    for (std::size_t d = box.size(); d-- > 0;) {
      const std::int64_t extent = box[d].hi - box[d].lo;
      if (extent == 1) continue;
      const bool joins = storage.strides[d] == run;
      MPI_Datatype inner = type;
      const int code =
          joins ? MPI_Type_contiguous(static_cast<int>(extent), inner, &type)
                : MPI_Type_create_hvector(static_cast<int>(extent), 1,
                                          static_cast<MPI_Aint>(storage.strides[d] * itemsize),
                                          inner, &type);
      check(code, comm, "MPI_Type_create_hvector", where);
      MPI_Type_free(&inner);
      run = joins ? run * extent : 0;
    }
    return type;
  }

  std::map<std::int64_t, MPI_Datatype> elements_;
  std::map<std::pair<Operation, std::int64_t>, MPI_Op> ops_;
  std::vector<MPI_Datatype> own_types_;
  std::vector<MPI_Op> own_ops_;
};

}  // namespace v1
}  // namespace distspmd
