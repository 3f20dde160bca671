// Orders of a line whose parts lie on several ranks, with NumPy's meaning: equal elements stay in theirs.
// And elements that a mask chooses of it, side by side.
//
// Each rank brings its part in order. Where the parts of the result begin in the parts that ranks have
// is found exactly, by samples: some elements between known bounds are counted on all ranks, until no
// element is left between them. Then each element moves once, to the rank that holds its place, and
// each rank merges what has come. Nothing depends on how elements are distributed, or how often one is
// there.
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <cstring>
#include <numeric>
#include <type_traits>
#include <utility>
#include <vector>

#include <distspmd/api/execute.hpp>
#include <distspmd/kernels/lines.hpp>

namespace distspmd::lines {

/// The places of a line that a rank has.
struct Part {
  int64_t begin, end;
  int64_t size() const { return end - begin; }
};

/// An element, and where it was.
template <class T>
struct Placed {
  T value;
  int64_t place;
};
template <class T>
inline bool before(const Placed<T> &a, const Placed<T> &b) {
  return before(a.value, b.value);
}

template <class T>
struct InOrder {
  bool operator()(const T &a, const T &b) const { return before(a, b); }
};

/// A whole number by whose order numbers are in theirs; NaN is the greatest, and both zeros are the same.
template <class T>
inline auto key_of(const T &value) {
  using Unsigned = std::conditional_t<sizeof(T) == 1, uint8_t,
                                      std::conditional_t<sizeof(T) == 2, uint16_t,
                                                         std::conditional_t<sizeof(T) == 4, uint32_t, uint64_t>>>;
  constexpr Unsigned sign = Unsigned(Unsigned(1) << (8 * sizeof(T) - 1));
  if constexpr (std::is_floating_point_v<T>) {
    if (is_nan(value)) return Unsigned(-1);
    const T own = value == 0 ? T(0) : value;
    Unsigned bits;
    std::memcpy(&bits, &own, sizeof(T));
    return Unsigned(bits & sign ? ~bits : bits | sign);
  } else if constexpr (std::is_signed_v<T>)
    return Unsigned(Unsigned(value) ^ sign);
  else
    return Unsigned(value);
}
template <class T>
inline auto key_of(const Placed<T> &element) {
  return key_of(element.value);
}

template <class T>
struct Number {
  using type = T;
};
template <class T>
struct Number<Placed<T>> {
  using type = T;
};

/// Put elements in order, by the bytes of their keys where they are many numbers; equal ones stay in theirs.
template <class T>
inline void put_in_order(std::vector<T> &line) {
  using Own = typename Number<T>::type;
  if constexpr (std::is_arithmetic_v<Own> && sizeof(Own) <= 8) {
    if (line.size() >= 4096) {
      constexpr std::size_t bytes = sizeof(Own);
      std::vector<std::array<std::size_t, 256>> places(bytes, std::array<std::size_t, 256>{});
      for (const T &each : line) {
        const auto key = key_of(each);
        for (std::size_t b = 0; b < bytes; ++b) ++places[b][key >> (8 * b) & 255];
      }
      std::vector<T> other(line.size());
      for (std::size_t b = 0; b < bytes; ++b) {
        auto &place = places[b];
        if (place[key_of(line[0]) >> (8 * b) & 255] == line.size()) continue;  // all have this byte
        std::exclusive_scan(place.begin(), place.end(), place.begin(), std::size_t(0));
        for (const T &each : line) other[place[key_of(each) >> (8 * b) & 255]++] = each;
        line.swap(other);
      }
      return;
    }
  }
  std::stable_sort(line.begin(), line.end(), InOrder<T>());
}

/// A line of which ranks have parts, as a rank takes part in what they do with it.
class LineInParts {
 public:
  LineInParts(int64_t context, int64_t number, Part part) : talk_{context, number}, part_(part) {
    if (part.size() == 0) part_ = part = {0, 0};
    parts_ = talk_.gather_all(std::vector<Part>{part});
    for (int64_t rank = 0; rank < talk_.ranks(); ++rank) {
      const auto same = [&](int64_t other) { return parts_[other].begin == parts_[rank].begin; };
      if (parts_[rank].size() && std::none_of(holders_.begin(), holders_.end(), same)) holders_.push_back(rank);
    }
    std::sort(holders_.begin(), holders_.end(), [&](int64_t a, int64_t b) { return parts_[a].begin < parts_[b].begin; });
    for (std::size_t k = 0; k < holders_.size(); ++k) {
      if (holders_[k] == talk_.rank()) own_ = static_cast<int64_t>(k);
      if (k && parts_[holders_[k]].begin != parts_[holders_[k - 1]].end) talk_.end("parts of a line that do not meet");
    }
  }

  /// Whether ranks that have anything have all of it.
  bool is_whole() const { return holders_.size() < 2; }

  /// The part of what is chosen, of what this rank has chosen of its part; zeros behind all that is.
  template <class T>
  std::vector<T> closed_up(std::vector<T> line) const {
    if (is_whole()) {
      line.resize(part_.size());
      return line;
    }
    const std::vector<int64_t> counts = talk_.gather_all(std::vector<int64_t>{static_cast<int64_t>(line.size())});
    std::vector<T> result(part_.size(), T());
    std::vector<Parcel> sends, receives;
    int64_t begin = 0, own_begin = 0;
    for (int64_t k = 0; k < own_; ++k) own_begin += counts[holders_[k]];
    for (int64_t k = 0; own_ >= 0 && k < count(); ++k) {
      const int64_t end = begin + counts[holders_[k]], own_end = own_begin + counts[talk_.rank()];
      const Part come = common({begin, end}, part_), leave = common({own_begin, own_end}, parts_[holders_[k]]);
      T *const into = result.data() + (come.begin - part_.begin);
      const T *const from = line.data() + (leave.begin - own_begin);
      if (k == own_)
        std::copy_n(from, leave.size(), into);
      else {
        if (leave.size()) sends.push_back({holders_[k], (char *)from, leave.size() * int64_t(sizeof(T))});
        if (come.size()) receives.push_back({holders_[k], (char *)into, come.size() * int64_t(sizeof(T))});
      }
      begin = end;
    }
    talk_.exchange(sends, receives);
    share(result);
    return result;
  }

 protected:
  int64_t count() const { return static_cast<int64_t>(holders_.size()); }

  static Part common(Part a, Part b) {
    const int64_t begin = std::max(a.begin, b.begin);
    return {begin, std::max(begin, std::min(a.end, b.end))};
  }

  /// Give the result to ranks with the same part as a holder.
  template <class T>
  void share(std::vector<T> &result) const {
    std::vector<Parcel> sends, receives;
    const int64_t bytes = part_.size() * int64_t(sizeof(T));
    for (int64_t rank = 0; rank < talk_.ranks(); ++rank) {
      if (rank == talk_.rank() || !bytes || parts_[rank].begin != part_.begin || !parts_[rank].size()) continue;
      const bool is_holder = std::find(holders_.begin(), holders_.end(), rank) != holders_.end();
      if (own_ >= 0) sends.push_back({rank, (char *)result.data(), bytes});
      if (is_holder) receives.push_back({rank, (char *)result.data(), bytes});
    }
    if (sends.size() + receives.size()) talk_.exchange(sends, receives);
  }

  Talk talk_;
  Part part_;
  std::vector<Part> parts_;
  std::vector<int64_t> holders_;  // ranks of which each has another part, by these
  int64_t own_ = -1;              // the number of this rank among them
};

/// One sort, as a rank takes part in it.
template <class T>
class SampleSort : public LineInParts {
 public:
  using LineInParts::LineInParts;

  /// The part of the result, of a part in order.
  std::vector<T> run(const std::vector<T> &line) {
    const std::vector<int64_t> ends = ends_of(line);
    std::vector<int64_t> runs;
    std::vector<T> result = exchanged(line, ends, runs);
    merge(result, runs);
    share(result);
    return result;
  }

 private:
  struct Sample {
    T value;
    int64_t index;  // in the part of its rank; -1: there is none
  };

  /// How many of the own elements come before the parts of the result, but the first; and all of them.
  std::vector<int64_t> ends_of(const std::vector<T> &line) {
    const int64_t goals = count() - 1, each = std::clamp<int64_t>(128 / talk_.ranks(), 1, 32);
    std::vector<int64_t> low(goals, 0), high(goals, own_ < 0 ? 0 : static_cast<int64_t>(line.size()));
    std::vector<int64_t> holder_of(talk_.ranks(), -1);
    for (int64_t k = 0; k < count(); ++k) holder_of[holders_[k]] = k;
    while (true) {
      std::vector<Sample> samples(goals * each, Sample{T(), -1});
      for (int64_t goal = 0; goal < goals; ++goal) {
        const int64_t width = high[goal] - low[goal], many = std::min(each, width);
        for (int64_t s = 0; s < many; ++s) {
          const int64_t index = low[goal] + width * (2 * s + 1) / (2 * many);
          samples[goal * each + s] = {line[index], index};
        }
      }
      const std::vector<Sample> all = talk_.gather_all(samples);
      if (std::all_of(all.begin(), all.end(), [](const Sample &s) { return s.index < 0; })) break;
      std::vector<int64_t> mine(all.size(), 0);
      for (std::size_t n = 0; n < all.size(); ++n)
        if (all[n].index >= 0 && own_ >= 0)
          mine[n] = earlier(line, all[n], holder_of[static_cast<int64_t>(n) / (goals * each)]);
      std::vector<int64_t> sums = mine;
      talk_.add_all(sums);
      for (std::size_t n = 0; n < all.size(); ++n) {
        if (all[n].index < 0) continue;
        const int64_t goal = static_cast<int64_t>(n) / each % goals, wanted = parts_[holders_[goal + 1]].begin;
        const bool is_own = own_ >= 0 && holder_of[static_cast<int64_t>(n) / (goals * each)] == own_;
        if (sums[n] < wanted)
          low[goal] = std::max(low[goal], mine[n] + (is_own ? 1 : 0));
        else
          high[goal] = std::min(high[goal], mine[n]);
      }
    }
    low.push_back(own_ < 0 ? 0 : static_cast<int64_t>(line.size()));
    return low;
  }

  /// Own elements before a sample of a holder: of equal ones those of earlier parts come first.
  int64_t earlier(const std::vector<T> &line, const Sample &sample, int64_t holder) const {
    if (holder == own_) return sample.index;
    const InOrder<T> less;
    const auto at = own_ < holder ? std::upper_bound(line.begin(), line.end(), sample.value, less)
                                  : std::lower_bound(line.begin(), line.end(), sample.value, less);
    return at - line.begin();
  }

  /// What comes to this rank: in order from each holder, in theirs.
  std::vector<T> exchanged(const std::vector<T> &line, const std::vector<int64_t> &ends, std::vector<int64_t> &runs) {
    const std::vector<int64_t> all = talk_.gather_all(ends);
    std::vector<T> arrived(part_.size());
    std::vector<Parcel> sends, receives;
    int64_t at = 0;
    for (int64_t k = 0; own_ >= 0 && k < count(); ++k) {
      const auto first = [&](int64_t from, int64_t to) { return to ? all[holders_[from] * count() + to - 1] : 0; };
      const int64_t sent = first(own_, k), come = ends_at(all, k) - first(k, own_);
      const int64_t leave = ends[k] - sent;
      T *const into = arrived.data() + at;
      if (k == own_)
        std::copy_n(line.begin() + sent, come, into);
      else {
        if (leave) sends.push_back({holders_[k], (char *)(line.data() + sent), leave * int64_t(sizeof(T))});
        if (come) receives.push_back({holders_[k], (char *)into, come * int64_t(sizeof(T))});
      }
      runs.push_back(at);
      at += come;
    }
    talk_.exchange(sends, receives);
    runs.push_back(at);
    return arrived;
  }
  int64_t ends_at(const std::vector<int64_t> &all, int64_t holder) const {
    return all[holders_[holder] * count() + own_];
  }

  static void merge(std::vector<T> &line, std::vector<int64_t> &runs) {
    std::vector<T> other(line.size());
    while (runs.size() > 2) {
      std::vector<int64_t> next{0};
      for (std::size_t r = 0; r + 1 < runs.size(); r += 2) {
        const int64_t middle = runs[r + 1], end = r + 2 < runs.size() ? runs[r + 2] : middle;
        std::merge(line.begin() + runs[r], line.begin() + middle, line.begin() + middle, line.begin() + end,
                   other.begin() + runs[r], InOrder<T>());
        next.push_back(end);
      }
      line.swap(other);
      runs.swap(next);
    }
  }
};

/// What elements are while they are sorted: a vector of bool has no elements in memory.
template <class T>
using Kept = std::conditional_t<std::is_same_v<T, bool>, uint8_t, T>;

/// The part of a line in order, of this rank's part of the line.
template <class T>
inline void sort_parts(int64_t context, int64_t number, Part part, const T *in, int64_t step, T *out, int64_t out_step) {
  SampleSort<Kept<T>> sort(context, number, part);
  std::vector<Kept<T>> line(part.size());
  for (int64_t k = 0; k < part.size(); ++k) line[k] = in[k * step];
  put_in_order(line);
  if (!sort.is_whole()) line = sort.run(line);
  for (int64_t k = 0; k < part.size(); ++k) out[k * out_step] = line[k];
}

/// The part of the places of a line in order.
template <class T>
inline void argsort_parts(int64_t context, int64_t number, Part part, const T *in, int64_t step, int64_t *out,
                          int64_t out_step) {
  using Element = Placed<Kept<T>>;
  SampleSort<Element> sort(context, number, part);
  std::vector<Element> line(part.size());
  for (int64_t k = 0; k < part.size(); ++k) line[k] = {in[k * step], part.begin + k};
  put_in_order(line);
  if (!sort.is_whole()) line = sort.run(line);
  for (int64_t k = 0; k < part.size(); ++k) out[k * out_step] = line[k].place;
}

/// The part of the elements that a mask chooses, in their order.
template <class T>
inline void choose_parts(int64_t context, int64_t number, Part part, const bool *mask, int64_t mask_step, const T *in,
                         int64_t step, T *out, int64_t out_step) {
  std::vector<Kept<T>> line;
  for (int64_t k = 0; k < part.size(); ++k)
    if (mask[k * mask_step]) line.push_back(in[k * step]);
  line = LineInParts(context, number, part).closed_up(line);
  for (int64_t k = 0; k < part.size(); ++k) out[k * out_step] = line[k];
}

/// The part of the places where a mask is true.
inline void choose_places(int64_t context, int64_t number, Part part, const bool *mask, int64_t mask_step, int64_t *out,
                          int64_t out_step) {
  std::vector<int64_t> line;
  for (int64_t k = 0; k < part.size(); ++k)
    if (mask[k * mask_step]) line.push_back(part.begin + k);
  line = LineInParts(context, number, part).closed_up(line);
  for (int64_t k = 0; k < part.size(); ++k) out[k * out_step] = line[k];
}

}  // namespace distspmd::lines
