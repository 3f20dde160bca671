// Copies of boxes between two storages: called by tests, and a program whose instructions are counted.
#include <cstdlib>
#include <vector>

#include <distspmd/memory/strided_copy.hpp>

using namespace distspmd;

namespace {
Storage storage_of(std::int64_t dims, const std::int64_t *extents, const std::int64_t *strides) {
  Box box;
  for (std::int64_t d = 0; d < dims; ++d) box.push_back({0, extents[d]});
  Storage storage = Storage::of(box);
  for (std::int64_t d = 0; d < dims; ++d) storage.strides[d] = strides[d];
  return storage;
}
}  // namespace

extern "C" void copy_box(std::int64_t dims, const std::int64_t *extents, const std::int64_t *from,
                         const std::int64_t *to, std::int64_t itemsize, const char *source, char *target) {
  const Storage a = storage_of(dims, extents, from), b = storage_of(dims, extents, to);
  Move(a, 0, b, 0, a.tile, itemsize)(source, target);
}

/// Copy a box with runs of so many bytes, of which 16 are side by side in 64 rows, so many times.
int main(int, char **arguments) {
  const std::int64_t run = std::atoll(arguments[1]), rows = 64, inner = 16;
  const std::int64_t extents[] = {rows, inner, run}, from[] = {2 * run * inner, 2 * run, 1};
  const std::int64_t to[] = {inner * run, run, 1};
  std::vector<char> source(2 * run * inner * rows, 1), target(run * inner * rows);
  for (std::int64_t times = std::atoll(arguments[2]); times > 0; --times)
    copy_box(3, extents, from, to, 1, source.data(), target.data());
  return target.back() - 1;
}
