// Writes at places that data choose, by who holds a part of what is written.
//
// Each rank has some of the indices, in parts in their order, or all of them. What is written at a
// place goes from one rank that has its index to each rank that holds the place, and nowhere else: an
// all-to-all of which the indices say the counts. Ranks write what comes to them in the order of the
// indices, so the last write to a place wins as in NumPy. All indices are looked at before any place is
// written. Where they are those of the last time, only values move; where no value changes in a run
// either, nothing does.
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <memory>
#include <vector>

#include <distspmd/api/execute.hpp>

/// Runs of the program so far, which Python counts: some operands stay as they are in one.
inline __attribute__((visibility("default"), used)) std::int64_t distspmd_runs = 0;

namespace distspmd {

/// A dimension of the window of a rank, with the stride of its elements.
struct Side {
  std::int64_t begin, extent, stride;
};

/// What a write is called with.
template <int picks, int others>
struct Writing {
  std::int64_t context, number;
  bool in_parts;       // ranks have different indices
  bool fixed;          // no index changes in a run
  std::int64_t first;  // the number of the first index that this rank has
  std::int64_t rows, length;
  std::array<std::int64_t, picks> lengths;  // of the whole array
  std::array<Side, picks> picked;           // the window, in dimensions that indices pick
  std::array<Side, others> rest;            // and in the others
  std::int64_t count() const { return std::max<std::int64_t>(rows, 0) * std::max<std::int64_t>(length, 0); }
};

/// The places of one write, as a rank finds and keeps them; a `Number` counts indices and elements.
template <class Number, int picks, int others>
class Places {
 public:
  using Given = Writing<picks, others>;
  using Index = std::array<std::int64_t, picks>;
  std::int64_t outside = 0, length = 0;  // the first index that is out of range, and of what

  /// Find where each rank writes, by `at(row, column)`; whether no index is out of range.
  template <class At>
  bool find(const Given &given, At at) {
    const bool same_run = ready_ && run_ == distspmd_runs && context_ == given.context;
    if (same_run && given.fixed) return true;
    if (!same_run) tries_ = 0;
    Told mine{given.first, given.first + given.count(), given.picked, given.rest, 0, 0, 0, 0};
    look(given, at, mine);
    mine.changed = !mine.outside && (is_changed(given, at) || !ready_ || context_ != given.context);
    std::vector<Told> all{mine};
    if (given.in_parts) all = talk(given).gather_all(all);
    const Told *wrong = nullptr;
    for (const Told &told : all)
      if (told.outside && (!wrong || told.first < wrong->first)) wrong = &told;
    if (wrong) {
      outside = wrong->index, length = wrong->length;
      ready_ = false;
      return false;
    }
    const bool moved = told_.size() != all.size() || !std::equal(all.begin(), all.end(), told_.begin(), are_same);
    const bool anew = moved || std::any_of(all.begin(), all.end(), [](const Told &told) { return told.changed; });
    if (moved) meet(given, all);
    if (anew) list(given, at);
    if (anew || !same_run) has_values_ = false;
    ready_ = true, run_ = distspmd_runs, context_ = given.context;
    return true;
  }

  /// Write: `own(place, row, column)` an own value, `put(place, from)` one of `width` elements that `pack(row, column, to)`
  /// took along; of width 0 where all places get one number.
  template <class T, class At, class Own, class Pack, class Put>
  void write(const Given &given, bool fixed_values, std::int64_t width, At at, Own own, Pack pack, Put put) {
    if (is_direct(given)) {
      for (std::int64_t row = 0; row < given.rows; ++row)
        for (std::int64_t column = 0; column < given.length; ++column) {
          own(place_in(given.picked, inside(given, at(row, column))), row, column);
          in_turn();
        }
      return;
    }
    if (given.in_parts && (are_new_ || (width && !(fixed_values && has_values_)))) carry<T>(given, width, pack);
    has_values_ = true;
    for (const std::int64_t source : sources_) {
      if (source == self_) {
        const Going &stays = mine();
        const Number *places = stays.places.get(), *numbers = stays.numbers.get();
        const std::int64_t count = stays.count;
        for (std::int64_t n = 0; n < count; ++n) {
          at_number(given, numbers[n], [&](std::int64_t row, std::int64_t column) { own(places[n], row, column); });
          in_turn();
        }
        continue;
      }
      const Coming &come = coming_[source];
      const T *from = reinterpret_cast<const T *>(come.values.data());
      for (const Number place : come.places) {
        put(place, from);
        from += width;
        in_turn();
      }
    }
  }

 private:
  /// What a rank tells the others.
  struct Told {
    std::int64_t first, end;  // numbers of the indices that it has
    std::array<Side, picks> picked;
    std::array<Side, others> rest;
    std::int64_t changed, outside, index, length;
    bool has_places() const {
      const auto some = [](const Side &side) { return side.extent > 0; };
      return std::all_of(picked.begin(), picked.end(), some) && std::all_of(rest.begin(), rest.end(), some);
    }
  };
  /// What goes to another rank, or stays.
  struct Going {
    std::int64_t rank;
    std::array<Side, picks> picked;  // its window
    std::int64_t count, room;
    std::unique_ptr<Number[]> places, numbers;
    std::vector<char> values;

    /// Have room for so many, which are not filled in.
    void empty(std::int64_t most) {
      if (room < most) places.reset(new Number[most]), numbers.reset(new Number[most]), room = most;
      count = 0;
    }
  };
  struct Coming {
    std::vector<Number> places;
    std::vector<char> values;
  };

  /// Keep a compiler from writes of several places in one instruction, which take longer than one by one.
  static void in_turn() { asm volatile(""); }

  static Talk talk(const Given &given) { return {given.context, given.number}; }

  static bool same_sides(const Side *a, const Side *b, int count, bool with_strides) {
    for (int d = 0; d < count; ++d)
      if (a[d].begin != b[d].begin || a[d].extent != b[d].extent || (with_strides && a[d].stride != b[d].stride)) return false;
    return true;
  }
  static bool are_same(const Told &a, const Told &b) {
    return a.first == b.first && a.end == b.end && same_sides(a.picked.data(), b.picked.data(), picks, true) &&
           same_sides(a.rest.data(), b.rest.data(), others, true);
  }

  /// The one rank with indices and the whole window writes as it reads.
  static bool is_direct(const Given &given) {
    for (int d = 0; d < picks; ++d)
      if (given.picked[d].extent != given.lengths[d]) return false;
    return !given.in_parts;
  }

  /// Call with the row and the column of a number; to divide takes longer than to write.
  template <class Call>
  static void at_number(const Given &given, std::int64_t number, Call call) {
    given.rows == 1 ? call(0, number) : call(number / given.length, number % given.length);
  }

  static Index inside(const Given &given, Index index) {
    for (int d = 0; d < picks; ++d)
      if (index[d] < 0) index[d] += given.lengths[d];
    return index;
  }
  static std::int64_t place_in(const std::array<Side, picks> &box, const Index &index) {
    std::int64_t found = 0;
    for (int d = 0; d < picks; ++d) found += (index[d] - box[d].begin) * box[d].stride;
    return found;
  }

  /// Whether all indices are in range; if not, which is the first that is not.
  template <class At>
  static void look(const Given &given, At at, Told &mine) {
    for (std::int64_t row = 0; row < given.rows; ++row) {
      std::uint64_t wrong = 0;
      for (std::int64_t column = 0; column < given.length; ++column) {
        const Index index = at(row, column);
        for (int d = 0; d < picks; ++d)
          wrong |= std::uint64_t(index[d] + given.lengths[d]) >= 2 * std::uint64_t(given.lengths[d]);
      }
      for (std::int64_t column = 0; wrong && column < given.length; ++column)
        for (int d = 0; d < picks; ++d) {
          const std::int64_t index = at(row, column)[d], length = given.lengths[d];
          if (mine.outside || std::uint64_t(index + length) < 2 * std::uint64_t(length)) continue;
          mine.outside = 1, mine.index = index, mine.length = length;
        }
      if (wrong) return;
    }
  }

  /// Whether indices are other ones than the last time; those that change each time are not kept.
  template <class At>
  bool is_changed(const Given &given, At at) {
    if (is_direct(given)) return false;
    if (tries_ > 1 && !given.fixed) return true;
    const std::int64_t count = given.count();
    bool found = static_cast<std::int64_t>(kept_.size()) != count;
    if (found) kept_.resize(count);
    for (std::int64_t row = 0; row < given.rows; ++row) {
      Index *const kept = kept_.data() + row * given.length;
      std::int64_t begin = 0;
      for (constexpr std::int64_t block = 1024; !found && begin < given.length; begin += block) {
        const std::int64_t end = std::min(begin + block, given.length);
        std::int64_t other = 0;
        for (std::int64_t column = begin; column < end; ++column)
          for (int d = 0; d < picks; ++d) other |= kept[column][d] ^ at(row, column)[d];
        found = other != 0;
        if (found) break;
      }
      if (found)
        for (std::int64_t column = begin; column < given.length; ++column) kept[column] = at(row, column);
    }
    if (found && ++tries_ > 1 && !given.fixed) kept_ = {};
    return found;
  }

  /// Find with whom this rank exchanges anything, of all windows and parts of the indices.
  void meet(const Given &given, const std::vector<Told> &all) {
    told_ = all;
    self_ = given.in_parts ? talk(given).rank() : 0;
    const std::int64_t ranks = static_cast<std::int64_t>(all.size());
    const auto beside = [&](std::int64_t rank) {
      return all[rank].has_places() && same_sides(all[rank].rest.data(), all[self_].rest.data(), others, false);
    };
    const auto same_part = [&](std::int64_t a, std::int64_t b) { return all[a].first == all[b].first && all[a].end == all[b].end; };
    const auto same_box = [&](std::int64_t a, std::int64_t b) {
      return same_sides(all[a].picked.data(), all[b].picked.data(), picks, false);
    };
    std::vector<std::int64_t> group;
    for (std::int64_t rank = 0; rank < ranks; ++rank)
      if (beside(rank)) group.push_back(rank);
    // who sends to a rank what another one has: the rank itself, or those that have it in turn
    const auto sender = [&](std::int64_t to, std::int64_t of) {
      if (same_part(to, of)) return to;
      std::vector<std::int64_t> holders;
      std::int64_t turn = 0;
      for (const std::int64_t rank : group) {
        if (same_part(rank, of)) holders.push_back(rank);
        if (rank < to && same_box(rank, to)) ++turn;
      }
      return holders[turn % holders.size()];
    };
    going_.clear(), sources_.clear();
    coming_.assign(ranks, {});
    if (!beside(self_)) return;
    for (const std::int64_t rank : group)
      if (all[self_].end > all[self_].first && sender(rank, self_) == self_) going_.push_back({rank, all[rank].picked, 0, 0, {}, {}, {}});
    for (const std::int64_t rank : group)
      if (all[rank].end > all[rank].first && sender(self_, rank) == rank) sources_.push_back(rank);
    std::sort(sources_.begin(), sources_.end(), [&](std::int64_t a, std::int64_t b) { return all[a].first < all[b].first; });
    cut(given, group);
  }

  /// The cells into which windows cut the places, and what goes where of each; some may be nobody's.
  void cut(const Given &given, const std::vector<std::int64_t> &group) {
    std::int64_t cells = 1;
    for (int d = picks - 1; d >= 0; --d) {
      begins_[d].assign(1, 0);
      for (const std::int64_t rank : group) {
        const Side &side = told_[rank].picked[d];
        begins_[d].push_back(side.begin);
        if (side.begin + side.extent < given.lengths[d]) begins_[d].push_back(side.begin + side.extent);
      }
      std::sort(begins_[d].begin(), begins_[d].end());
      begins_[d].erase(std::unique(begins_[d].begin(), begins_[d].end()), begins_[d].end());
      steps_[d] = cells;
      cells *= static_cast<std::int64_t>(begins_[d].size());
    }
    std::vector<std::vector<std::size_t>> goals(cells);
    for (std::size_t n = 0; n < going_.size(); ++n) {
      Index begin;
      for (int d = 0; d < picks; ++d) begin[d] = going_[n].picked[d].begin;
      goals[Cells(begins_, steps_).of(begin)].push_back(n);
    }
    goals_.clear(), ends_.assign(1, 0);
    for (const auto &own : goals) {
      goals_.insert(goals_.end(), own.begin(), own.end());
      ends_.push_back(goals_.size());
    }
  }

  /// Finds the cell of a place.
  struct Cells {
    std::array<const std::int64_t *, picks> begins;
    Index counts, steps;
    Cells(const std::array<std::vector<std::int64_t>, picks> &of, const Index &own) : steps(own) {
      for (int d = 0; d < picks; ++d) begins[d] = of[d].data(), counts[d] = static_cast<std::int64_t>(of[d].size());
    }
    std::int64_t of(const Index &index) const {
      std::int64_t found = 0;
      for (int d = 0; d < picks; ++d) {
        std::int64_t cell = 0;
        if (counts[d] <= 16)
          for (std::int64_t k = 1; k < counts[d]; ++k) cell += index[d] >= begins[d][k];
        else
          cell = std::upper_bound(begins[d], begins[d] + counts[d], index[d]) - begins[d] - 1;
        found += cell * steps[d];
      }
      return found;
    }
  };

  static constexpr std::size_t few = 4;  // ranks for which to go through all indices for each is faster

  /// List what goes to one rank; whether an index does is random, and a branch on it takes longer than a write.
  template <class At>
  static void list_one(const Given &given, At at, Going &going) {
    going.empty(given.count() + 1);
    Number *const places = going.places.get(), *const numbers = going.numbers.get();
    const std::array<Side, picks> box = going.picked;
    const std::int64_t rows = given.rows, length = given.length;
    std::int64_t found = 0;
    for (std::int64_t row = 0; row < rows; ++row)
      for (std::int64_t column = 0; column < length; ++column) {
        const Index index = inside(given, at(row, column));
        bool is_there = true;
        for (int d = 0; d < picks; ++d) is_there &= std::uint64_t(index[d] - box[d].begin) < std::uint64_t(box[d].extent);
        places[found] = static_cast<Number>(place_in(box, index));
        numbers[found] = static_cast<Number>(row * length + column);
        found += is_there ? 1 : 0;
      }
    going.count = found;
  }

  /// List what goes where.
  template <class At>
  void list(const Given &given, At at) {
    are_new_ = given.in_parts;
    if (is_direct(given) || going_.empty()) return;
    if (going_.size() <= few) {
      for (Going &going : going_) list_one(given, at, going);
      return;
    }
    struct Cursor {
      Number *place, *number;
      std::array<Side, picks> box;
    };
    std::vector<Cursor> cursors;
    for (Going &going : going_) {
      going.empty(given.count());
      cursors.push_back({going.places.get(), going.numbers.get(), going.picked});
    }
    const Cells cells(begins_, steps_);
    Cursor *const goes = cursors.data();
    const std::size_t *const goals = goals_.data(), *const ends = ends_.data();
    const std::int64_t rows = given.rows, length = given.length;
    for (std::int64_t row = 0; row < rows; ++row)
      for (std::int64_t column = 0; column < length; ++column) {
        const Index index = inside(given, at(row, column));
        const std::int64_t cell = cells.of(index);
        for (std::size_t n = ends[cell]; n < ends[cell + 1]; ++n) {
          Cursor &to = goes[goals[n]];
          *to.place++ = static_cast<Number>(place_in(to.box, index));
          *to.number++ = static_cast<Number>(row * length + column);
        }
      }
    for (std::size_t n = 0; n < going_.size(); ++n) going_[n].count = cursors[n].place - going_[n].places.get();
  }

  const Going &mine() const {
    return *std::find_if(going_.begin(), going_.end(), [&](const Going &going) { return going.rank == self_; });
  }

  /// Send places, if they are new, and values to the ranks that write them.
  template <class T, class Pack>
  void carry(const Given &given, std::int64_t width, Pack pack) {
    const Talk ranks = talk(given);
    std::vector<std::int64_t> counts(ranks.ranks(), 0);
    for (const Going &going : going_) counts[going.rank] = going.count;
    if (are_new_) {
      const std::vector<std::int64_t> all = ranks.gather_all(counts);
      for (const std::int64_t source : sources_)
        if (source != self_) coming_[source].places.resize(all[source * ranks.ranks() + self_]);
    }
    std::vector<Parcel> sends, receives;
    const auto parcel = [](std::vector<Parcel> &parcels, std::int64_t rank, void *at, std::size_t bytes) {
      if (bytes) parcels.push_back({rank, static_cast<char *>(at), static_cast<std::int64_t>(bytes)});
    };
    for (const std::int64_t source : sources_) {
      Coming &come = coming_[source];
      if (source == self_) continue;
      if (are_new_) parcel(receives, source, come.places.data(), come.places.size() * sizeof(Number));
      come.values.resize(come.places.size() * width * sizeof(T));
      parcel(receives, source, come.values.data(), come.values.size());
    }
    for (Going &going : going_) {
      if (going.rank == self_) continue;
      const std::int64_t count = going.count;
      if (are_new_) parcel(sends, going.rank, going.places.get(), count * sizeof(Number));
      going.values.resize(count * width * sizeof(T));
      T *to = reinterpret_cast<T *>(going.values.data());
      const Number *const numbers = going.numbers.get();
      for (std::int64_t n = 0; width && n < count; ++n, to += width)
        at_number(given, numbers[n], [&](std::int64_t row, std::int64_t column) { pack(row, column, to); });
      parcel(sends, going.rank, going.values.data(), going.values.size());
    }
    ranks.exchange(sends, receives);
    are_new_ = false;
  }

  bool ready_ = false, are_new_ = false, has_values_ = false;
  std::int64_t run_ = -1, context_ = 0, self_ = 0;
  int tries_ = 0;                 // how often indices have changed
  std::vector<Index> kept_;       // indices as they were
  std::vector<Told> told_;        // of all ranks
  std::array<std::vector<std::int64_t>, picks> begins_;  // of cells
  Index steps_;
  std::vector<std::size_t> goals_, ends_;  // which of `going_` places of a cell are, one cell behind the other
  std::vector<Going> going_;
  std::vector<std::int64_t> sources_;  // ranks from which anything comes, in the order of their indices
  std::vector<Coming> coming_;
};

}  // namespace distspmd
