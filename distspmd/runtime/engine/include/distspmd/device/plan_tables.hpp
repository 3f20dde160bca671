// Tables of plans, as transports between devices read them: plans/pull_table.py and packed_table.py.
#pragma once

#include <cuda_runtime.h>

#include <cstdint>
#include <utility>
#include <vector>

#include <distspmd/device/box_moves.hpp>

namespace distspmd {
inline namespace v1 {

/// A plan as its table says it: whether a transport carries it, whether its source and its target may be
/// one memory, and numbers of its ends. A step reads its own words, given the plan, and calls a function
/// with each of its launches.
template <class Step>
struct PlanTable {
  bool fits = false, apart = false;
  std::int64_t itemsize = 0;
  std::int64_t numbers[Step::numbers] = {};  // where an element of the source is, of the target, and more
  std::vector<Step> steps;

  static std::vector<PlanTable> read_all(const std::int64_t *&words) {
    std::vector<PlanTable> found;
    for (std::int64_t left = *words++; left > 0; --left) {
      PlanTable plan;
      plan.fits = *words++;
      plan.apart = *words++;
      plan.itemsize = *words++;
      for (std::int64_t &number : plan.numbers) number = *words++;
      for (std::int64_t more = *words++; more > 0; --more) plan.steps.push_back(Step::read(words, plan));
      found.push_back(std::move(plan));
    }
    return found;
  }

  /// Bring the launches of plans to the device; the first error.
  static cudaError_t upload(std::vector<PlanTable> &plans) {
    cudaError_t failed = cudaSuccess;
    each(plans, [&](BoxMove &move) {
      const cudaError_t error = move.upload();
      if (failed == cudaSuccess) failed = error;
    });
    return failed;
  }

  static void free(std::vector<PlanTable> &plans) {
    each(plans, [](BoxMove &move) { cudaFree(move.table); });
  }

 private:
  template <class Do>
  static void each(std::vector<PlanTable> &plans, Do act) {
    for (PlanTable &plan : plans)
      for (Step &step : plan.steps) step.each_launch(act);
  }
};

}  // namespace v1
}  // namespace distspmd
