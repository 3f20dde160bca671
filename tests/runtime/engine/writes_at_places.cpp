// Writes at places that data choose, as random_writes.py calls them.
#include <distspmd/kernels/own_places.hpp>

namespace {

struct Call {
  std::int64_t context, number, in_parts, fixed, keeps_values, first, rows, length;
  std::int64_t lengths[2];
  distspmd::Side picked[2], rest[1];
  const std::int64_t *indices[2];
  const double *values;  // of the rows and columns, and of the rest behind them; null for one number
  double number_for_all, *out;
  std::int64_t adds, *outside;
};

template <int picks, int others>
struct Write {
  using Places = distspmd::Places<std::uint32_t, picks, others>;
  Places places;

  bool run(const Call &call) {
    typename Places::Given given{call.context, call.number, call.in_parts != 0, call.fixed != 0, call.first,
                                 call.rows,    call.length, {},                 {},              {}};
    std::copy_n(call.lengths, picks, given.lengths.begin());
    std::copy_n(call.picked, picks, given.picked.begin());
    std::copy_n(call.rest, others, given.rest.begin());
    const std::int64_t width = others ? call.rest[0].extent : 1, step = others ? call.rest[0].stride : 0;
    const auto at = [&](std::int64_t row, std::int64_t column) {
      typename Places::Index found;
      for (int d = 0; d < picks; ++d) found[d] = call.indices[d][row * call.length + column];
      return found;
    };
    const auto set = [&](std::int64_t place, std::int64_t k, double value) {
      double &to = call.out[place + k * step];
      to = call.adds ? to + value : value;
    };
    if (!places.find(given, at)) {
      call.outside[0] = places.outside, call.outside[1] = places.length;
      return false;
    }
    places.template write<double>(
        given, call.keeps_values != 0, call.values ? width : 0, at,
        [&](std::int64_t place, std::int64_t row, std::int64_t column) {
          for (std::int64_t k = 0; k < width; ++k)
            set(place, k, call.values ? call.values[(row * call.length + column) * width + k] : call.number_for_all);
        },
        [&](std::int64_t row, std::int64_t column, double *to) {
          std::copy_n(call.values + (row * call.length + column) * width, width, to);
        },
        [&](std::int64_t place, const double *from) {
          for (std::int64_t k = 0; k < width; ++k) set(place, k, call.values ? from[k] : call.number_for_all);
        });
    return true;
  }
};

}  // namespace

#define WRITE(picks, others)                                                                              \
  extern "C" void *make_##picks##_##others() { return new Write<picks, others>(); }                       \
  extern "C" void free_##picks##_##others(void *write) { delete static_cast<Write<picks, others> *>(write); } \
  extern "C" int write_##picks##_##others(void *write, const Call *call) {                                \
    return static_cast<Write<picks, others> *>(write)->run(*call);                                        \
  }

WRITE(1, 0)
WRITE(1, 1)
WRITE(2, 0)
WRITE(2, 1)

extern "C" void begin_run() { ++distspmd_runs; }
