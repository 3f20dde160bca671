// The runtime of generated programs: runs plans that were made ready once, from a rank's table.
//
// distspmd/runtime/engine/engine.py compiles it once for all programs; they include api/execute.hpp alone. To
// include this header in a program works as well: the library then has the functions itself.
#pragma once

#include <mpi.h>

#include <cstdint>
#include <cstring>
#include <exception>
#include <map>
#include <memory>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include <distspmd/errors.hpp>
#include <distspmd/api/execute.hpp>
#include <distspmd/irregular/gather.hpp>
#include <distspmd/irregular/row_exchange.hpp>
#include <distspmd/shm/copy_in_copy_out.hpp>
#include <distspmd/shm/mailbox.hpp>
#include <distspmd/shm/single_copy.hpp>
#include <distspmd/mpi/buffers.hpp>
#include <distspmd/mpi/resources.hpp>
#include <distspmd/plan/step.hpp>
#include <distspmd/plan/decode.hpp>
#include <distspmd/together/farewell.hpp>
#include <distspmd/together/movements.hpp>

namespace distspmd {
inline namespace v1 {

struct Statistics {
  double seconds = 0;
  std::int64_t calls = 0, received_bytes = 0;
  std::int64_t asked_bytes = 0;  // of requests that came from others
};

/// A fetch, and what its calls took.
struct CountedFetch {
  Fetch fetch;
  Statistics statistics;
};

/// An exchange of rows, and what its calls took.
struct CountedExchange {
  RowExchange exchange;
  Statistics statistics;
};

/// A library call in which ranks talk, and what that took.
struct CountedTalk {
  std::string name;
  Statistics statistics;
};

struct Plan {
  std::string name;
  std::vector<Storage> storages;
  std::vector<Step> steps;
  std::vector<std::int64_t> scratch;  // bytes from the start of the scratch memory, by buffer
  PlanTable table;                    // of which single copies are made
  std::vector<const Group *> groups;  // by step; null where the rank is in none
  std::vector<std::unique_ptr<SingleCopy>> single_copies;  // by step; null where it goes another way
  std::vector<std::unique_ptr<CopyInCopyOut>> copies_in_out;  // likewise; messages carry what has neither
  std::int64_t itemsize;
  bool same_strides, reads_input = false, writes_output = false;
  Statistics statistics;
};

/// Memory that is kept from call to call.
class Memory {
 public:
  void reserve(std::int64_t bytes) { wanted_ = std::max(wanted_, bytes); }
  void allocate() { kept_.reset(new char[static_cast<std::size_t>(wanted_ + alignment)]); }
  std::int64_t wanted() const { return wanted_; }

  /// Use memory of somebody else instead, which is aligned.
  void use(char *other) {
    kept_.reset();
    other_ = other;
  }

  char *data() const {
    if (other_) return other_;
    const auto at = reinterpret_cast<std::uintptr_t>(kept_.get());
    return reinterpret_cast<char *>((at + alignment - 1) / alignment * alignment);
  }
  static constexpr std::int64_t alignment = 64;

 private:
  std::int64_t wanted_ = 0;
  std::unique_ptr<char[]> kept_;
  char *other_ = nullptr;
};

/// All plans of a rank, with the communicators, datatypes and memory that they share.
class Context : public Executable {
 public:
  Context(MPI_Comm comm, const std::int64_t *words, std::int64_t count,
          std::vector<Reduction> functions = {})
      : Executable{run_plan, touched_by, ask_for, run_fetch, foresee_of, run_exchange,
                   gather_of_all, add_of_all, carry_of, communicator_of} {
    check(MPI_Comm_dup(comm, &comm_), comm, "MPI_Comm_dup", creation);
    check(MPI_Comm_set_errhandler(comm_, MPI_ERRORS_RETURN), comm_, "MPI_Comm_set_errhandler",
          creation);
    resources_.comm = buffers_.comm = comm_;
    const Table table = Reader(comm_, words, count, std::move(functions)).table();
    agree(table);
    for (const Family &family : table.families) split(family);
    for (const PlanTable &plan : table.plans) add(plan);
    check(MPI_Comm_rank(comm_, &own_rank_), comm_, "MPI_Comm_rank", creation);
    send_staging_.allocate();
    receive_staging_.allocate();
    scratch_.allocate();
  }

  Context(const Context &) = delete;
  Context &operator=(const Context &) = delete;

  ~Context() {
    int finalized = 0;
    if (MPI_Finalized(&finalized) != MPI_SUCCESS || finalized) return;
    resources_.release();
    for (auto &group : groups_)
      if (group->comm != MPI_COMM_NULL) MPI_Comm_free(&group->comm);
    for (auto &[ranks, comm] : communicators_) MPI_Comm_free(&comm);
    if (talking_ != MPI_COMM_NULL) MPI_Comm_free(&talking_);
    MPI_Comm_free(&comm_);
  }

  void execute(std::int64_t number, const void *in, void *out) {
    Plan &plan = plan_of(number);
    if (plan.reads_input && in == nullptr)
      fail(comm_, plan.name + ": its input is a null pointer.");
    if (plan.writes_output && out == nullptr)
      fail(comm_, plan.name + ": its output is a null pointer.");
    const bool aliased = same_memory(plan, in, out);
    const Movements::Going going(movements_, number);
    const double begin = MPI_Wtime();
    for (std::size_t s = 0; s < plan.steps.size(); ++s) {
      Step &step = plan.steps[s];
      const char *from =
          step.source == 0 ? static_cast<const char *>(in) : buffer(plan, step.source, out);
      std::int64_t &received = plan.statistics.received_bytes;
      if (plan.single_copies[s]) {
        received += plan.single_copies[s]->run(from, buffer(plan, step.target, out));
        continue;
      }
      const bool shared = step.source == step.target || (step.source + step.target == 1 && aliased);
      if (plan.copies_in_out[s]) {
        received += plan.copies_in_out[s]->run(from, buffer(plan, step.target, out), shared);
        continue;
      }
      received += step.run(from, buffer(plan, step.target, out), shared, send_staging_.data(),
                           receive_staging_.data());
    }
    plan.statistics.seconds += MPI_Wtime() - begin;
    ++plan.statistics.calls;
  }

  /// Bytes of scratch that all plans share, and where a buffer of a plan lies in it.
  std::int64_t scratch_bytes() const { return scratch_.wanted(); }
  std::int64_t scratch_place(std::int64_t number, std::int64_t buffer) {
    return plan_of(number).scratch.at(static_cast<std::size_t>(buffer));
  }
  void use_scratch(char *memory) { scratch_.use(memory); }

  /// Use the mailbox of a node; see Mailbox.
  void use_mailbox(const std::int64_t *words, std::int64_t count) {
    mailbox_ = std::make_unique<Mailbox>(words, count);
    if (!mailbox_->fits()) fail(comm_, "the segments of the mailbox have another size.");
  }

  /// Let a step go by copy-in/copy-out; `words` has the number on the node of each rank of the group.
  void use_copy_in_copy_out(std::int64_t number, std::int64_t step, const std::int64_t *words) {
    Plan &plan = plan_of(number);
    const std::size_t at = static_cast<std::size_t>(step);
    const Group *group = plan.groups.at(at);
    if (!group) return;
    const std::vector<std::int64_t> ranks(words, words + group->size);
    plan.copies_in_out[at] =
        std::make_unique<CopyInCopyOut>(plan.table.steps[at], plan.table, *group, ranks, *mailbox_);
  }

  /// Let a step copy once. For each rank of the group `words` has its number on the node, the address of
  /// its source tile in this process (0: it holds nothing), and the origin and the strides of its
  /// storage.
  void use_single_copy(std::int64_t number, std::int64_t step, const std::int64_t *words) {
    Plan &plan = plan_of(number);
    const std::size_t at = static_cast<std::size_t>(step);
    const Group *group = plan.groups.at(at);
    if (!group) return;
    const std::size_t dimensions = plan.storages[0].tile.size();
    std::vector<Shared> sources;
    std::vector<std::int64_t> ranks;
    for (int position = 0; position < group->size; ++position) {
      ranks.push_back(*words++);
      Shared shared{reinterpret_cast<const char *>(static_cast<std::intptr_t>(*words++)), {}};
      for (auto *numbers : {&shared.storage.origin, &shared.storage.strides}) {
        numbers->assign(words, words + dimensions);
        words += dimensions;
      }
      sources.push_back(std::move(shared));
    }
    plan.single_copies[at] = std::make_unique<SingleCopy>(plan.table.steps[at], plan.table, *group, sources,
                                            std::move(ranks), *mailbox_);
  }

  /// Add a fetch, whose number is how many there were; all ranks add the same.
  void add_fetch(const std::int64_t *words, std::int64_t count) {
    int ranks = 0;
    check(MPI_Comm_size(comm_, &ranks), comm_, "MPI_Comm_size", creation);
    const FetchTable table = Reader(comm_, words, count).fetch(ranks);
    fetches_.push_back(std::unique_ptr<CountedFetch>(new CountedFetch{{table, comm_}, {}}));
  }

  /// Add an exchange of rows; all ranks add the same, in the same order.
  void add_exchange(const std::int64_t *words, std::int64_t count) {
    int rank = 0, ranks = 0;
    check(MPI_Comm_rank(comm_, &rank), comm_, "MPI_Comm_rank", creation);
    check(MPI_Comm_size(comm_, &ranks), comm_, "MPI_Comm_size", creation);
    RowTable table = Reader(comm_, words, count).rows(ranks);
    exchanges_.push_back({RowExchange(std::move(table), comm_, rank), {}});
  }

  /// Add a library call in which the first ranks talk to each other; all ranks add the same.
  void add_talk(const std::string &name, std::int64_t ranks) {
    if (talks_.empty()) {
      this->rank = own_rank_, this->ranks = ranks;
      const int color = own_rank_ < ranks ? 0 : MPI_UNDEFINED;
      check(MPI_Comm_split(comm_, color, own_rank_, &talking_), comm_, "MPI_Comm_split", creation);
    }
    talks_.push_back({name, {}});
  }
  Statistics talk_statistics(std::int64_t number) { return talk_of(number).statistics; }

  /// Tell in some numbers where this rank is; see Movements.
  void use_movements(std::int64_t *numbers) { movements_.use(numbers); }

  /// End all ranks.
  [[noreturn]] void end(const std::string &message) const { fail(comm_, message); }

  /// Meet the other ranks for a plan that somebody else carries out: each gives bytes, and gets all.
  void meet(std::int64_t number, const void *mine, std::int64_t bytes, void *all) {
    const Movements::Going going(movements_, number);
    const double begin = MPI_Wtime();
    const int size = count_of(bytes, comm_, plan_of(number).name);
    check(MPI_Allgather(mine, size, MPI_BYTE, all, size, MPI_BYTE, comm_), comm_, "MPI_Allgather",
          plan_of(number).name);
    plan_of(number).statistics.seconds += MPI_Wtime() - begin;
  }
  /// Send or receive a buffer for such a plan; see Buffers.
  std::int64_t post(std::int64_t number, bool sends, std::int64_t rank, void *at, std::int64_t bytes) {
    return buffers_.post(sends, static_cast<int>(rank), at, bytes, plan_of(number).name);
  }
  bool is_done(std::int64_t number, std::int64_t message, bool waits) {
    const Movements::Going going(movements_, number);
    const double begin = MPI_Wtime();
    const bool done = buffers_.is_done(message, waits, plan_of(number).name);
    plan_of(number).statistics.seconds += MPI_Wtime() - begin;
    return done;
  }
  void finish(std::int64_t number) {
    const Movements::Going going(movements_, number);
    const double begin = MPI_Wtime();
    buffers_.finish(plan_of(number).name);
    plan_of(number).statistics.seconds += MPI_Wtime() - begin;
  }
  /// Count a call of a plan that somebody else carried out.
  void count(std::int64_t number, std::int64_t received_bytes) {
    plan_of(number).statistics.received_bytes += received_bytes;
    ++plan_of(number).statistics.calls;
  }

  Touched &touched(std::int64_t number) { return fetch_of(number).fetch.touched(); }

  void ask(std::int64_t number) {
    CountedFetch &found = fetch_of(number);
    const Movements::Going going(movements_, -1 - number);
    const double begin = MPI_Wtime();
    found.statistics.asked_bytes += found.fetch.ask();
    found.statistics.seconds += MPI_Wtime() - begin;
  }

  void foresee(std::int64_t number, Foresight finds, const void *code) {
    CountedFetch &found = fetch_of(number);
    const double begin = MPI_Wtime();
    found.fetch.foresee(finds, code);
    found.statistics.seconds += MPI_Wtime() - begin;
  }

  void fetch(std::int64_t number, const void *in, void *out) {
    CountedFetch &found = fetch_of(number);
    const Movements::Going going(movements_, -1 - number);
    const double begin = MPI_Wtime();
    found.statistics.received_bytes += found.fetch.run(in, out);
    found.statistics.seconds += MPI_Wtime() - begin;
    ++found.statistics.calls;
  }

  void exchange(std::int64_t number, const RowEnds &ends) {
    CountedExchange &found = exchange_of(number);
    const Movements::Going going(movements_, -1 - static_cast<std::int64_t>(fetches_.size()) - number);
    const double begin = MPI_Wtime();
    found.statistics.received_bytes += found.exchange.run(ends);
    found.statistics.seconds += MPI_Wtime() - begin;
    ++found.statistics.calls;
  }

  Statistics statistics(std::int64_t number) { return plan_of(number).statistics; }
  Statistics fetch_statistics(std::int64_t number) { return fetch_of(number).statistics; }
  Statistics exchange_statistics(std::int64_t number) { return exchange_of(number).statistics; }

  void reset_statistics() {
    for (Plan &plan : plans_) plan.statistics = {};
    for (auto &fetch : fetches_) fetch->statistics = {};
    for (CountedExchange &exchange : exchanges_) exchange.statistics = {};
    for (CountedTalk &talk : talks_) talk.statistics = {};
  }

 private:
  static constexpr const char *creation = "the creation of the plans";

  static void run_plan(Executable *context, std::int64_t plan, const void *in, void *out) {
    static_cast<Context *>(context)->execute(plan, in, out);
  }

  static Touched *touched_by(Executable *context, std::int64_t fetch) {
    return &static_cast<Context *>(context)->touched(fetch);
  }
  static void ask_for(Executable *context, std::int64_t fetch) {
    static_cast<Context *>(context)->ask(fetch);
  }
  static void run_fetch(Executable *context, std::int64_t fetch, const void *in, void *out) {
    static_cast<Context *>(context)->fetch(fetch, in, out);
  }
  static void foresee_of(Executable *context, std::int64_t fetch, Foresight finds, const void *code) {
    static_cast<Context *>(context)->foresee(fetch, finds, code);
  }

  static void run_exchange(Executable *context, std::int64_t exchange, const RowEnds &ends) {
    static_cast<Context *>(context)->exchange(exchange, ends);
  }

  /// Where a rank talks in a library call, of which the time is counted.
  class Talking {
   public:
    Talking(Executable *context, std::int64_t number)
        : own(*static_cast<Context *>(context)),
          talk(own.talk_of(number)),
          going_(own.movements_, -1 - static_cast<std::int64_t>(own.fetches_.size() + own.exchanges_.size()) - number) {}
    ~Talking() { talk.statistics.seconds += MPI_Wtime() - begin_; }
    Talking(const Talking &) = delete;
    Talking &operator=(const Talking &) = delete;
    Context &own;
    CountedTalk &talk;

   private:
    Movements::Going going_;
    double begin_ = MPI_Wtime();
  };
  static void gather_of_all(Executable *context, std::int64_t number, const void *mine, std::int64_t bytes, void *all) {
    const Talking here(context, number);
    const int size = count_of(bytes, here.own.comm_, here.talk.name);
    check(MPI_Allgather(mine, size, MPI_BYTE, all, size, MPI_BYTE, here.own.talking_), here.own.comm_, "MPI_Allgather",
          here.talk.name);
    here.talk.statistics.asked_bytes += bytes * (here.own.ranks - 1);
  }
  static void add_of_all(Executable *context, std::int64_t number, std::int64_t *numbers, std::int64_t count) {
    const Talking here(context, number);
    check(MPI_Allreduce(MPI_IN_PLACE, numbers, count_of(count, here.own.comm_, here.talk.name), MPI_INT64_T, MPI_SUM,
                        here.own.talking_),
          here.own.comm_, "MPI_Allreduce", here.talk.name);
    here.talk.statistics.asked_bytes += count * 8;
  }
  static void carry_of(Executable *context, std::int64_t number, const std::vector<Parcel> &sends,
                       const std::vector<Parcel> &receives) {
    const Talking here(context, number);
    std::vector<MPI_Request> requests;
    const auto each = [&](const std::vector<Parcel> &parcels, bool sends_them) {
      constexpr std::int64_t chunk = std::int64_t(1) << 30;
      for (const Parcel &parcel : parcels)
        for (std::int64_t at = 0; at < parcel.bytes; at += chunk) {
          const int size = static_cast<int>(std::min(chunk, parcel.bytes - at)), peer = static_cast<int>(parcel.rank);
          requests.push_back(MPI_REQUEST_NULL);
          if (sends_them)
            check(MPI_Isend(parcel.at + at, size, MPI_BYTE, peer, 4, here.own.talking_, &requests.back()),
                  here.own.comm_, "MPI_Isend", here.talk.name);
          else
            check(MPI_Irecv(parcel.at + at, size, MPI_BYTE, peer, 4, here.own.talking_, &requests.back()),
                  here.own.comm_, "MPI_Irecv", here.talk.name);
        }
    };
    each(receives, false);
    each(sends, true);
    for (MPI_Request &request : requests)
      check(MPI_Wait(&request, MPI_STATUS_IGNORE), here.own.comm_, "MPI_Wait", here.talk.name);
    for (const Parcel &parcel : receives) here.talk.statistics.received_bytes += parcel.bytes;
    ++here.talk.statistics.calls;
  }
  /// Made once for the same ranks; none of the others takes part.
  static std::int64_t communicator_of(Executable *context, std::int64_t number,
                                      const std::vector<std::int64_t> &ranks) {
    const Talking here(context, number);
    MPI_Comm &found = here.own.communicators_.try_emplace(ranks, MPI_COMM_NULL).first->second;
    if (found == MPI_COMM_NULL) {
      const std::vector<int> members(ranks.begin(), ranks.end());
      MPI_Group all, own;
      const auto made = [&](int code, const char *call) { check(code, here.own.comm_, call, here.talk.name); };
      made(MPI_Comm_group(here.own.talking_, &all), "MPI_Comm_group");
      made(MPI_Group_incl(all, static_cast<int>(members.size()), members.data(), &own), "MPI_Group_incl");
      made(MPI_Comm_create_group(here.own.talking_, own, 5, &found), "MPI_Comm_create_group");
      MPI_Group_free(&own);
      MPI_Group_free(&all);
    }
    static_assert(sizeof(MPI_Comm) <= sizeof(std::int64_t));
    std::int64_t bits = 0;
    std::memcpy(&bits, &found, sizeof found);
    return bits;
  }
  CountedTalk &talk_of(std::int64_t number) {
    if (number < 0 || number >= static_cast<std::int64_t>(talks_.size()))
      fail(comm_, "there is no library call " + std::to_string(number) + " of " + std::to_string(talks_.size()) +
                      " in which ranks talk.");
    return talks_[static_cast<std::size_t>(number)];
  }

  CountedExchange &exchange_of(std::int64_t number) {
    if (number < 0 || number >= static_cast<std::int64_t>(exchanges_.size()))
      fail(comm_, "there is no exchange of rows " + std::to_string(number) + " of " +
                      std::to_string(exchanges_.size()) + ".");
    return exchanges_[static_cast<std::size_t>(number)];
  }

  CountedFetch &fetch_of(std::int64_t number) {
    if (number < 0 || number >= static_cast<std::int64_t>(fetches_.size()))
      fail(comm_, "there is no fetch " + std::to_string(number) + " of " +
                      std::to_string(fetches_.size()) + ".");
    return *fetches_[static_cast<std::size_t>(number)];
  }

  /// All ranks must have the same plans, for the right number of ranks.
  void agree(const Table &table) {
    int rank = 0, ranks = 0;
    check(MPI_Comm_rank(comm_, &rank), comm_, "MPI_Comm_rank", creation);
    check(MPI_Comm_size(comm_, &ranks), comm_, "MPI_Comm_size", creation);
    std::int64_t seen[2] = {table.fingerprint, -table.fingerprint};
    check(MPI_Allreduce(MPI_IN_PLACE, seen, 2, MPI_INT64_T, MPI_MAX, comm_), comm_, "MPI_Allreduce",
          creation);
    if (seen[0] != -seen[1]) fail(comm_, "the ranks have different plans.");
    if (table.rank != rank)
      fail(comm_, "the plans are those of rank " + std::to_string(table.rank) + ".");
    if (table.ranks > ranks)
      fail(comm_, "the plans are for " + std::to_string(table.ranks) + " ranks, but there are " +
                      std::to_string(ranks) + ". Start " + std::to_string(table.ranks) + ".");
  }

  void split(const Family &family) {
    auto group = std::make_unique<Group>();
    const int colour = family.colour < 0 ? MPI_UNDEFINED : static_cast<int>(family.colour);
    check(MPI_Comm_split(comm_, colour, static_cast<int>(family.position), &group->comm), comm_,
          "MPI_Comm_split", creation);
    if (group->comm != MPI_COMM_NULL) {
      check(MPI_Comm_set_errhandler(group->comm, MPI_ERRORS_RETURN), comm_,
            "MPI_Comm_set_errhandler", creation);
      check(MPI_Comm_rank(group->comm, &group->position), comm_, "MPI_Comm_rank", creation);
      check(MPI_Comm_size(group->comm, &group->size), comm_, "MPI_Comm_size", creation);
      if (group->position != family.position || group->size != family.size)
        fail(comm_, "bad plan table: the ranks disagree about a group.");
    }
    groups_.push_back(std::move(group));
  }

  void add(const PlanTable &table) {
    Plan plan{};
    plan.name = table.name;
    plan.itemsize = table.itemsize;
    plan.storages = table.buffers;
    plan.same_strides = table.buffers[0].strides == table.buffers[1].strides;
    std::int64_t scratch = 0;
    for (std::size_t b = 0; b < table.buffers.size(); ++b) {
      plan.scratch.push_back(scratch);
      if (b < 2) continue;
      const std::int64_t bytes = volume(table.buffers[b].tile) * table.itemsize;
      scratch += (bytes + Memory::alignment - 1) / Memory::alignment * Memory::alignment;
    }
    scratch_.reserve(scratch);
    for (const StepTable &step : table.steps) {
      const Group *group =
          step.family < 0 ? nullptr : groups_[static_cast<std::size_t>(step.family)].get();
      if (group && group->comm == MPI_COMM_NULL) group = nullptr;
      plan.steps.emplace_back(step, table, group, resources_);
      plan.groups.push_back(group);
      plan.single_copies.emplace_back();
      plan.copies_in_out.emplace_back();
      const Step &ready = plan.steps.back();
      send_staging_.reserve(ready.send_staging());
      receive_staging_.reserve(ready.receive_staging());
      plan.reads_input = plan.reads_input || (ready.source == 0 && ready.reads());
      plan.writes_output = plan.writes_output || (ready.target == 1 && ready.writes()) ||
                           (ready.source == 1 && ready.reads());
    }
    plan.table = table;
    plans_.push_back(std::move(plan));
  }

  Plan &plan_of(std::int64_t number) {
    if (number < 0 || number >= static_cast<std::int64_t>(plans_.size()))
      fail(comm_, "there is no plan " + std::to_string(number) + " of " +
                      std::to_string(plans_.size()) + ".");
    return plans_[static_cast<std::size_t>(number)];
  }

  /// Whether input and output are one memory, each element at the same place in both.
  bool same_memory(const Plan &plan, const void *in, const void *out) const {
    if (!plan.reads_input || !plan.writes_output) return false;
    const Storage &from = plan.storages[0], &to = plan.storages[1];
    const auto zero = [&plan](const void *pointer, const Storage &storage) {
      return reinterpret_cast<std::intptr_t>(pointer) - storage.from_zero() * plan.itemsize;
    };
    if (plan.same_strides && zero(in, from) == zero(out, to)) return true;
    if (in == out)
      fail(comm_, plan.name + ": input and output are one array, but tiles of different layouts.");
    return false;
  }

  char *buffer(const Plan &plan, std::size_t number, void *out) const {
    return number == 1 ? static_cast<char *>(out) : scratch_.data() + plan.scratch[number];
  }

  MPI_Comm comm_ = MPI_COMM_NULL;
  std::vector<std::unique_ptr<Group>> groups_;
  Resources resources_;
  std::unique_ptr<Mailbox> mailbox_;
  std::vector<Plan> plans_;
  std::vector<std::unique_ptr<CountedFetch>> fetches_;
  std::vector<CountedExchange> exchanges_;
  std::vector<CountedTalk> talks_;
  MPI_Comm talking_ = MPI_COMM_NULL;
  std::map<std::vector<std::int64_t>, MPI_Comm> communicators_;
  int own_rank_ = 0;
  Memory send_staging_, receive_staging_, scratch_;
  Movements movements_;
  Buffers buffers_;
};

/// The communicator whose handle mpi4py gives as a number: a pointer in Open MPI, an int in MPICH.
template <class Comm = MPI_Comm>
Comm communicator(std::int64_t handle) {
  if constexpr (std::is_pointer_v<Comm>) {
    return reinterpret_cast<Comm>(static_cast<std::intptr_t>(handle));
  } else {
    return static_cast<Comm>(handle);
  }
}

}  // namespace v1
}  // namespace distspmd

#define DISTSPMD_EXPORT __attribute__((used, visibility("default"))) inline

extern "C" {

/// Make a rank's plans ready; all ranks of the communicator call it together. Of each reduction that
/// the program has itself `addresses` has three functions: distspmd::Reduction's kernel, fill and
/// function.
DISTSPMD_EXPORT void *distspmd_create(std::int64_t comm_handle, const std::int64_t *words,
                                      std::int64_t count, void *const *addresses,
                                      std::int64_t reductions) {
  const MPI_Comm comm = distspmd::communicator(comm_handle);
  try {
    std::vector<distspmd::Reduction> functions(static_cast<std::size_t>(reductions));
    for (distspmd::Reduction &reduction : functions) {
      reduction.kernel = reinterpret_cast<distspmd::Kernel>(*addresses++);
      reduction.fill = reinterpret_cast<void (*)(char *, std::int64_t)>(*addresses++);
      reduction.function = reinterpret_cast<MPI_User_function *>(*addresses++);
    }
    return new distspmd::Context(comm, words, count, std::move(functions));
  } catch (const std::exception &error) {
    distspmd::fail(comm, std::string("cannot make the plans: ") + error.what());
  }
}

DISTSPMD_EXPORT void distspmd_destroy(void *context) {
  delete static_cast<distspmd::Context *>(context);
}

DISTSPMD_EXPORT void distspmd_execute(void *context, std::int64_t plan, const void *in, void *out) {
  static_cast<distspmd::Context *>(context)->execute(plan, in, out);
}

/// Add a fetch from a rank's words; all ranks add the same, in the same order.
DISTSPMD_EXPORT void distspmd_add_fetch(void *context, const std::int64_t *words,
                                        std::int64_t count) {
  distspmd::Context *made = static_cast<distspmd::Context *>(context);
  try {
    made->add_fetch(words, count);
  } catch (const std::exception &error) {
    made->end(std::string("cannot make a fetch: ") + error.what());
  }
}

/// Add an exchange of rows from a rank's words; all ranks add the same, in the same order.
DISTSPMD_EXPORT void distspmd_add_exchange(void *context, const std::int64_t *words,
                                           std::int64_t count) {
  distspmd::Context *made = static_cast<distspmd::Context *>(context);
  try {
    made->add_exchange(words, count);
  } catch (const std::exception &error) {
    made->end(std::string("cannot make an exchange of rows: ") + error.what());
  }
}

/// Add a library call in which the first ranks talk; all ranks add the same, in the same order.
DISTSPMD_EXPORT void distspmd_add_talk(void *context, const char *name, std::int64_t ranks) {
  static_cast<distspmd::Context *>(context)->add_talk(name, ranks);
}

DISTSPMD_EXPORT void distspmd_talk_statistics(void *context, std::int64_t number, double *seconds, std::int64_t *calls,
                                              std::int64_t *received_bytes) {
  const auto found = static_cast<distspmd::Context *>(context)->talk_statistics(number);
  *seconds = found.seconds;
  *calls = found.calls;
  *received_bytes = found.received_bytes;
}

DISTSPMD_EXPORT std::int64_t distspmd_scratch_bytes(void *context) {
  return static_cast<distspmd::Context *>(context)->scratch_bytes();
}

DISTSPMD_EXPORT std::int64_t distspmd_scratch_place(void *context, std::int64_t plan,
                                                    std::int64_t buffer) {
  return static_cast<distspmd::Context *>(context)->scratch_place(plan, buffer);
}

DISTSPMD_EXPORT void distspmd_use_scratch(void *context, void *memory) {
  static_cast<distspmd::Context *>(context)->use_scratch(static_cast<char *>(memory));
}

/// Use the mailbox of a node, and let a step of a plan go by copy-in/copy-out; see Context.
DISTSPMD_EXPORT void distspmd_use_mailbox(void *context, const std::int64_t *words,
                                       std::int64_t count) {
  static_cast<distspmd::Context *>(context)->use_mailbox(words, count);
}

DISTSPMD_EXPORT void distspmd_use_copy_in_copy_out(void *context, std::int64_t plan, std::int64_t step,
                                            const std::int64_t *words) {
  static_cast<distspmd::Context *>(context)->use_copy_in_copy_out(plan, step, words);
}

/// Let a step of a plan copy once, out of memory that the ranks share; see Context::use_single_copy.
DISTSPMD_EXPORT void distspmd_use_single_copy(void *context, std::int64_t plan, std::int64_t step,
                                   const std::int64_t *words) {
  static_cast<distspmd::Context *>(context)->use_single_copy(plan, step, words);
}

/// What the calls of a plan took on this rank, and the bytes that came from others in them.
DISTSPMD_EXPORT void distspmd_statistics(void *context, std::int64_t plan, double *seconds,
                                         std::int64_t *calls, std::int64_t *received_bytes) {
  const auto found = static_cast<distspmd::Context *>(context)->statistics(plan);
  *seconds = found.seconds;
  *calls = found.calls;
  *received_bytes = found.received_bytes;
}

/// The same of a fetch, and the bytes of requests that came from others.
DISTSPMD_EXPORT void distspmd_fetch_statistics(void *context, std::int64_t fetch, double *seconds,
                                               std::int64_t *calls, std::int64_t *received_bytes,
                                               std::int64_t *asked_bytes) {
  const auto found = static_cast<distspmd::Context *>(context)->fetch_statistics(fetch);
  *seconds = found.seconds;
  *calls = found.calls;
  *received_bytes = found.received_bytes;
  *asked_bytes = found.asked_bytes;
}

/// What the calls of an exchange of rows took, and the bytes of rows that came from others.
DISTSPMD_EXPORT void distspmd_exchange_statistics(void *context, std::int64_t exchange,
                                                  double *seconds, std::int64_t *calls,
                                                  std::int64_t *received_bytes) {
  const auto found = static_cast<distspmd::Context *>(context)->exchange_statistics(exchange);
  *seconds = found.seconds;
  *calls = found.calls;
  *received_bytes = found.received_bytes;
}

/// Run an exchange of rows between arrays, as a program does.
DISTSPMD_EXPORT void distspmd_exchange(void *context, std::int64_t exchange, const void *in, void *out,
                                       const std::int64_t *const *arrays,
                                       const std::int64_t *counts) {
  const distspmd::RowEnds ends{static_cast<const char *>(in),
                               static_cast<char *>(out),
                               {arrays[0], arrays[1], counts[0]},
                               {arrays[2], arrays[3], counts[1]}};
  static_cast<distspmd::Context *>(context)->exchange(exchange, ends);
}

/// Meet the other ranks for a plan that a device carries out, and count it; see Context.
DISTSPMD_EXPORT void distspmd_meet(void *context, std::int64_t plan, const void *mine, std::int64_t bytes,
                                   void *all) {
  static_cast<distspmd::Context *>(context)->meet(plan, mine, bytes, all);
}
/// The number of a message of a buffer, that it is done (1) or not, and that all are; see Buffers.
DISTSPMD_EXPORT std::int64_t distspmd_post(void *context, std::int64_t plan, std::int64_t sends,
                                           std::int64_t rank, void *at, std::int64_t bytes) {
  return static_cast<distspmd::Context *>(context)->post(plan, sends != 0, rank, at, bytes);
}
DISTSPMD_EXPORT std::int64_t distspmd_is_done(void *context, std::int64_t plan, std::int64_t message,
                                              std::int64_t waits) {
  return static_cast<distspmd::Context *>(context)->is_done(plan, message, waits != 0);
}
DISTSPMD_EXPORT void distspmd_finish(void *context, std::int64_t plan) {
  static_cast<distspmd::Context *>(context)->finish(plan);
}
DISTSPMD_EXPORT void distspmd_count(void *context, std::int64_t plan, std::int64_t received_bytes) {
  static_cast<distspmd::Context *>(context)->count(plan, received_bytes);
}

/// Tell in three numbers, which stay with the caller, what moves; see Movements.
DISTSPMD_EXPORT void distspmd_use_movements(void *context, std::int64_t *numbers) {
  static_cast<distspmd::Context *>(context)->use_movements(numbers);
}

/// Let the ranks of a communicator meet when they end, or no longer, since it is freed.
DISTSPMD_EXPORT void distspmd_add_farewell(std::int64_t comm_handle) {
  distspmd::Farewells::add(distspmd::communicator(comm_handle));
}

DISTSPMD_EXPORT void distspmd_remove_farewell(std::int64_t comm_handle) {
  distspmd::Farewells::remove(distspmd::communicator(comm_handle));
}

/// End all ranks, for what works on behalf of a context and is no part of it.
DISTSPMD_EXPORT void distspmd_end(void *context, const char *message) {
  static_cast<distspmd::Context *>(context)->end(message);
}

DISTSPMD_EXPORT void distspmd_reset_statistics(void *context) {
  static_cast<distspmd::Context *>(context)->reset_statistics();
}

}  // extern "C"
