// Sets of rows, one for each rank, that arrays and a part of each rank describe.
//
// A number s of a domain belongs to the rank whose part has it, or has what an array holds there:
// its member. The row is s itself, or what another array holds there: its index.
//     rows of a tile          s in part
//     rows of its experts     member[s] in part
//     rows at its indices     index[s], s in part
//     both                    index[s], member[s] in part
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <map>
#include <utility>
#include <vector>

namespace distspmd {
inline namespace v1 {

/// The arrays of one side, as many numbers each; one that is null is the number itself.
struct RowArrays {
  const std::int64_t *member = nullptr, *index = nullptr;
  std::int64_t count = 0;
};

/// What a program gives to an exchange: the first row that this rank has, and where all rows go.
struct RowEnds {
  const char *in;
  char *out;
  RowArrays has, needs;
};

using RowPart = std::pair<std::int64_t, std::int64_t>;  // from the first to before the last

class RowSets {
 public:
  RowSets(std::int64_t rows, const std::vector<RowPart> &parts, const RowArrays &arrays)
      : parts_(parts), of_(parts.size()) {
    for (std::size_t rank = 0; rank < parts.size(); ++rank)
      if (!is_empty(rank)) numbers_.emplace(parts[rank], 0);
    std::size_t next = 0;
    for (auto &[part, number] : numbers_) number = next++;
    for (std::size_t rank = 0; rank < parts.size(); ++rank)
      if (!is_empty(rank)) of_[rank] = numbers_[parts[rank]];
    found_.resize(numbers_.size());
    collect(rows, arrays);
  }

  bool is_empty(std::size_t rank) const { return parts_[rank].second <= parts_[rank].first; }

  /// The number of a rank's part; of equal parts the same.
  std::size_t part(std::size_t rank) const { return of_[rank]; }

  /// The rows of a part, in order, each once.
  const std::vector<std::int64_t> &rows(std::size_t part) const { return found_[part]; }

 private:
  void collect(std::int64_t rows, const RowArrays &arrays) {
    const std::int64_t count = arrays.member || arrays.index ? arrays.count : rows;
    std::int64_t longest = 0;
    for (const auto &[part, number] : numbers_) longest = std::max(longest, part.second - part.first);
    for (std::int64_t s = 0; s < count; ++s) {
      const std::int64_t row = arrays.index ? arrays.index[s] : s;
      if (row < 0 || row >= rows) continue;
      const std::int64_t key = arrays.member ? arrays.member[s] : s;
      // parts are in the order of their first numbers: others begin too early or behind the key
      for (auto at = numbers_.lower_bound(RowPart{key - longest, 0});
           at != numbers_.end() && at->first.first <= key; ++at)
        if (key < at->first.second) found_[at->second].push_back(row);
    }
    for (auto &own : found_) {
      std::sort(own.begin(), own.end());
      own.erase(std::unique(own.begin(), own.end()), own.end());
    }
  }

  std::vector<RowPart> parts_;
  std::vector<std::size_t> of_;
  std::map<RowPart, std::size_t> numbers_;
  std::vector<std::vector<std::int64_t>> found_;
};

}  // namespace v1
}  // namespace distspmd
