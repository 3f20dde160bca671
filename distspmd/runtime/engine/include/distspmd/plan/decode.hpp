// The decoder of a rank's table of plans; distspmd/plans/encoding.py describes the words.
#pragma once

#include <mpi.h>

#include <algorithm>
#include <cstdint>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include <distspmd/irregular/row_sets.hpp>
#include <distspmd/plan/boxes.hpp>
#include <distspmd/plan/collectives.hpp>
#include <distspmd/errors.hpp>
#include <distspmd/memory/reductions.hpp>

namespace distspmd {
inline namespace v1 {

constexpr std::int64_t self = -1;  // peer: the rank's own memory
constexpr std::int64_t all = -2;   // peer: all of the group

struct Family {
  std::int64_t colour, position, size;
};

struct Part {
  std::int64_t peer;
  Box box;
};

struct StepTable {
  Collective collective;
  std::int64_t source, target, family;
  Operation operation;
  Reduction reduction;  // that the operation is for the dtype
  bool accumulate;
  std::vector<Part> sends, receives;
};

struct PlanTable {
  std::string name;
  std::int64_t dtype, itemsize;
  std::vector<Storage> buffers;
  std::vector<StepTable> steps;
};

/// What a rank may ask of others, and others of it; distspmd/plans/request_encoding.py has the words.
struct FetchTable {
  std::string name;
  std::int64_t itemsize;
  std::vector<std::int64_t> extents;
  std::vector<std::size_t> dimensions;  // those in which data decide
  Storage source, target;
  std::vector<Part> sends, receives;
  std::vector<std::int64_t> ends;  // of the tile by which all ranks foresee what this one touches
  std::map<int, std::vector<std::int64_t>> peer_ends;  // those of the ranks that it sends to
};

/// Which rows ranks have and need; distspmd/plans/row_encoding.py has the words.
struct RowTable {
  std::string name;
  std::int64_t dtype, itemsize;
  std::int64_t rows, width;           // elements of a row
  std::int64_t first;                 // row of this rank's source
  std::vector<RowPart> has, needs;  // parts of all ranks
};

struct Table {
  std::int64_t rank, ranks, fingerprint;
  std::vector<Family> families;
  std::vector<PlanTable> plans;
};

/// Reads words one by one, and fails on any that cannot be.
class Reader {
 public:
  /// `functions`: the reductions that the program has itself, numbered on from `operations`.
  Reader(MPI_Comm comm, const std::int64_t *words, std::int64_t count,
         std::vector<Reduction> functions = {})
      : comm_(comm), words_(words), count_(count), functions_(std::move(functions)) {}

  Table table() {
    constexpr std::int64_t magic = 0x64697374'73706d64, version = 1;
    where_ = "the table";
    if (words_ == nullptr || count_ < 3) wrong("it has less than three words");
    if (next() != magic) wrong("it does not begin as one");
    const std::int64_t found = next();
    if (found != version)
      wrong("version " + std::to_string(found) + ", but this runtime reads version " +
            std::to_string(version));
    if (next() != count_) wrong("it is cut off");
    Table table{};
    table.rank = within(0, max_count, "rank");
    table.ranks = within(1, max_count, "ranks");
    table.fingerprint = next();
    const std::int64_t families = count("families", 3), plans = count("plans", 6);
    for (std::int64_t f = 0; f < families; ++f) {
      const std::int64_t colour = within(-1, max_count, "colour");
      const std::int64_t position = within(0, max_count, "position");
      const std::int64_t size = within(0, max_count, "size of a group");
      if (colour >= 0 && position >= size) wrong("a position outside its group");
      table.families.push_back({colour, position, size});
    }
    for (std::int64_t p = 0; p < plans; ++p) table.plans.push_back(plan(table.families));
    where_ = "the table";
    if (at_ != count_) wrong("words are left over");
    return table;
  }

  RowTable rows(std::int64_t ranks) {
    RowTable table{};
    where_ = "an exchange of rows";
    table.name = where_ = name();
    table.dtype = within(0, dtypes - 1, "dtype");
    table.itemsize = within(1, max_count, "itemsize");
    table.rows = within(0, INT64_MAX, "number of rows");
    table.width = within(0, INT64_MAX / table.itemsize, "elements of a row");
    table.first = within(0, table.rows, "first row");
    for (auto *parts : {&table.has, &table.needs}) {
      const std::int64_t known = within(0, ranks, "number of parts");
      for (std::int64_t rank = 0; rank < known; ++rank) {
        const std::int64_t begin = next();
        parts->push_back({begin, next()});
      }
    }
    if (table.has.size() != table.needs.size()) wrong("ranks have parts on one side alone");
    if (at_ != count_) wrong("words are left over");
    return table;
  }

  FetchTable fetch(std::int64_t ranks) {
    FetchTable fetch{};
    where_ = "a fetch";
    fetch.name = where_ = name();
    fetch.itemsize = within(1, max_count, "itemsize");
    const std::int64_t dimensions = within(1, 64, "number of dimensions");
    for (std::int64_t d = 0; d < dimensions; ++d)
      fetch.extents.push_back(within(0, INT64_MAX, "extent"));
    const std::int64_t chosen = within(1, dimensions, "number of chosen dimensions");
    for (std::int64_t c = 0; c < chosen; ++c)
      fetch.dimensions.push_back(
          static_cast<std::size_t>(within(0, dimensions - 1, "chosen dimension")));
    fetch.source = storage(dimensions, fetch.itemsize);
    fetch.target = storage(dimensions, fetch.itemsize);
    const Family everyone{0, -1, ranks};
    const std::int64_t sends = count("sends", 1 + 2 * dimensions);
    for (std::int64_t i = 0; i < sends; ++i)
      fetch.sends.push_back(part(everyone, fetch.source.tile));
    const std::int64_t receives = count("receives", 1 + 2 * dimensions);
    for (std::int64_t i = 0; i < receives; ++i)
      fetch.receives.push_back(part(everyone, fetch.target.tile));
    const std::int64_t ends = count("ends", 1);
    for (std::int64_t e = 0; e < ends; ++e) fetch.ends.push_back(next());
    const std::int64_t peers = count("peers", 1 + ends);
    for (std::int64_t p = 0; p < peers; ++p) {
      std::vector<std::int64_t> &own =
          fetch.peer_ends[static_cast<int>(within(0, ranks - 1, "peer"))];
      for (std::int64_t e = 0; e < ends; ++e) own.push_back(next());
    }
    if (at_ != count_) wrong("words are left over");
    return fetch;
  }

 private:
  static constexpr std::int64_t max_count = INT32_MAX;

  [[noreturn]] void wrong(const std::string &what) const {
    fail(comm_, "bad plan table: " + where_ + ": " + what + " (word " + std::to_string(at_) +
                    " of " + std::to_string(count_) + ").");
  }

  std::int64_t next() {
    if (at_ >= count_) wrong("it ends too early");
    return words_[at_++];
  }

  std::int64_t within(std::int64_t lo, std::int64_t hi, const char *what) {
    const std::int64_t word = next();
    if (word < lo || word > hi)
      wrong(std::string(what) + " is " + std::to_string(word) + ", not within " +
            std::to_string(lo) + ".." + std::to_string(hi));
    return word;
  }

  /// A number of items of at least so many words each, which must still be there.
  std::int64_t count(const char *what, std::int64_t words_each) {
    return within(0, (count_ - at_) / words_each, what);
  }

  Box box(std::int64_t dimensions) {
    Box found(static_cast<std::size_t>(dimensions));
    for (Interval &i : found) i = {next(), next()};
    if (volume(found) < 0) wrong("the box " + text(found) + " is too large");
    return found;
  }

  std::string name() {
    const std::int64_t bytes = within(0, 8 * (count_ - at_), "length of a name");
    std::string found;
    for (std::int64_t at = 0; at < bytes; at += 8) {
      const std::uint64_t word = static_cast<std::uint64_t>(next());
      for (int byte = 0; byte < 8; ++byte) found += static_cast<char>(word >> (8 * byte) & 0xff);
    }
    found.resize(static_cast<std::size_t>(bytes));
    if (found.find('\0') != std::string::npos) wrong("a name is no text");
    return found;
  }

  PlanTable plan(const std::vector<Family> &families) {
    PlanTable plan{};
    const std::int64_t begin = at_, length = next();
    plan.name = name();
    where_ = plan.name;
    plan.dtype = within(0, dtypes - 1, "dtype");
    plan.itemsize = within(1, max_count, "itemsize");
    if (plan.dtype != 0 && plan.itemsize != itemsize_of(plan.dtype))
      wrong("dtype and itemsize differ");
    const std::int64_t dimensions = within(1, 64, "number of dimensions");
    const std::int64_t buffers = within(2, (count_ - at_) / (4 * dimensions), "number of buffers");
    const std::int64_t steps = count("steps", 8);
    for (std::int64_t b = 0; b < buffers; ++b)
      plan.buffers.push_back(storage(dimensions, plan.itemsize));
    for (std::int64_t s = 0; s < steps; ++s) plan.steps.push_back(step(plan, families));
    if (at_ - begin != length) wrong("its length is not what it says");
    return plan;
  }

  Storage storage(std::int64_t dimensions, std::int64_t itemsize) {
    Storage storage{box(dimensions), {}, {}};
    for (std::int64_t d = 0; d < dimensions; ++d) storage.origin.push_back(next());
    for (std::int64_t d = 0; d < dimensions; ++d) storage.strides.push_back(next());
    if (is_empty(storage.tile)) return storage;
    std::int64_t end = 1;  // elements up to the end of the tile
    for (std::size_t d = 0; d < storage.tile.size(); ++d) {
      const std::int64_t stride = storage.strides[d];
      if (storage.tile[d].lo < storage.origin[d])
        wrong("the tile " + text(storage.tile) + " begins before its storage");
      if (stride < 1) wrong("a stride is not positive");
      std::int64_t last, reach, far;
      if (__builtin_sub_overflow(storage.tile[d].hi - 1, storage.origin[d], &last) ||
          __builtin_mul_overflow(last, stride, &reach) ||
          __builtin_add_overflow(end, reach, &end) ||
          __builtin_mul_overflow(storage.origin[d], stride, &far))
        wrong("the storage of " + text(storage.tile) + " is too large");
    }
    std::int64_t bytes;
    if (__builtin_mul_overflow(std::max(end, volume(storage.tile)), itemsize, &bytes))
      wrong("the storage of " + text(storage.tile) + " is too large");
    return storage;
  }

  StepTable step(const PlanTable &plan, const std::vector<Family> &families) {
    const std::int64_t buffers = static_cast<std::int64_t>(plan.buffers.size());
    StepTable step{};
    step.collective = collective();
    step.source = within(0, buffers - 1, "source buffer");
    step.target = within(1, buffers - 1, "target buffer");
    step.family = within(-1, static_cast<std::int64_t>(families.size()) - 1, "family");
    const auto last = operations + static_cast<std::int64_t>(functions_.size()) - 1;
    const std::int64_t operation = within(0, last, "reduction");
    step.operation = static_cast<Operation>(operation);
    step.reduction = operation < operations
                         ? reduction_of(step.operation, plan.dtype)
                         : functions_[static_cast<std::size_t>(operation - operations)];
    step.accumulate = within(0, 1, "accumulate") != 0;
    if (step.operation != Operation::none && step.reduction.kernel == nullptr)
      wrong("there is no such reduction of its dtype");
    if (step.operation == Operation::none && step.accumulate)
      wrong("accumulates without a reduction");
    const std::int64_t dimensions = static_cast<std::int64_t>(plan.buffers[0].tile.size());
    const std::int64_t sends = count("sends", 1 + 2 * dimensions);
    const std::int64_t receives = count("receives", 1 + 2 * dimensions);
    const Family none{-1, 0, 0};
    const Family &group = step.family < 0 ? none : families[static_cast<std::size_t>(step.family)];
    const auto &source = plan.buffers[static_cast<std::size_t>(step.source)].tile;
    const auto &target = plan.buffers[static_cast<std::size_t>(step.target)].tile;
    for (std::int64_t i = 0; i < sends; ++i) step.sends.push_back(part(group, source));
    for (std::int64_t i = 0; i < receives; ++i) step.receives.push_back(part(group, target));
    check_shape(step, group, source);
    return step;
  }

  Collective collective() {
    const Collective *row = collective_of(within(0, last_kind, "kind of a step"));
    if (row == nullptr) wrong("a kind that is carried as an exchange");
    return *row;
  }

  Part part(const Family &group, const Box &tile) {
    Part part{next(), box(static_cast<std::int64_t>(tile.size()))};
    if (part.peer < all || part.peer >= group.size)
      wrong("peer " + std::to_string(part.peer) + " of a group of " + std::to_string(group.size));
    if (part.peer >= 0 && part.peer == group.position) wrong("a rank is its own peer");
    if (is_empty(part.box)) wrong("an empty box");
    if (!contains(tile, part.box))
      wrong("the box " + text(part.box) + " is outside the tile " + text(tile));
    return part;
  }

  /// What the kind of a step forbids: the shape of its call.
  void check_shape(const StepTable &step, const Family &group, const Box &source) {
    const Collective &collective = step.collective;
    const bool first = group.position == 0, combines = collective.is_combined();
    const bool only_first = collective.first == First::receives;
    const Box *box = nullptr;
    std::size_t from_all = 0;
    for (const Part &part : step.sends) {
      if (part.peer == self ? !(combines && only_first && first)
                            : !may_send(collective, part.peer, first))
        wrong("a send that the kind of the step forbids, to " + std::to_string(part.peer));
      see(step, group, part, box);
    }
    for (const Part &part : step.receives) {
      if (part.peer == self) {
        if (!contains(source, part.box))
          wrong("a copy of " + text(part.box) + ", which is not there");
        continue;
      }
      if (!may_receive(collective, part.peer, first))
        wrong("a receive that the kind of the step forbids, from " + std::to_string(part.peer));
      if (collective.common || !collective.to_all) see(step, group, part, box);
      from_all += part.peer == all;
    }
    if (box != nullptr && combines) {
      if (step.operation == Operation::none) wrong("a reduction without an operation");
      if (from_all != (first || !only_first)) wrong("an operand without a result");
      if (!only_first && step.sends.empty()) wrong("a result without an operand");
    }
    if (collective.is_called() && step.sends.size() > 1)
      wrong("two sends in one call for one box");
  }

  /// Any message is in a group; a call for one box has one box.
  void see(const StepTable &step, const Family &group, const Part &part, const Box *&box) const {
    if (group.colour < 0) wrong("a message in no group");
    if (step.collective.common && box != nullptr && !(*box == part.box))
      wrong("two boxes in one call for one box");
    box = &part.box;
  }

  /// Whether a rank may send to a peer: to all in one call, or from or to the first rank only.
  static bool may_send(const Collective &collective, std::int64_t peer, bool first) {
    if (!collective.moves) return false;
    if (collective.first == First::receives) return !first && peer == 0;
    if (collective.first == First::sends && !first) return false;
    return collective.to_all ? peer == all : peer >= 0;
  }

  /// Whether a rank may receive from a peer; what is combined comes from all.
  static bool may_receive(const Collective &collective, std::int64_t peer, bool first) {
    if (!collective.moves) return false;
    if (collective.first == First::sends) return !first && peer == 0;
    if (collective.first == First::receives && !first) return false;
    return collective.is_combined() ? peer == all : peer >= 0;
  }

  MPI_Comm comm_;
  const std::int64_t *words_;
  std::int64_t count_;
  std::vector<Reduction> functions_;
  std::int64_t at_ = 0;
  std::string where_ = "the table";
};

}  // namespace v1
}  // namespace distspmd
