// A group of ranks: collectives, point-to-point messages, and asynchronous calls that overlap with
// computation.
//
//   auto comm = make_communicator({.rank = r, .size = n, .store = store});
//   comm->all_reduce(gradients.data(), count, f32, ReduceOp::kAverage);
//   Work work = comm->start(Call::all_reduce(bucket, count, f32, ReduceOp::kSum));  // asynchronous
//   work.wait();
//
// All ranks of a group make the same calls in the same order. Reductions have a fixed order, a
// balanced tree over the ranks (reduction_tree.h), in every backend, on any number of hosts and
// whatever the timing: the same inputs give the same bits. Halves are summed in f32 and rounded
// once; an average is the sum divided by the number of ranks.
//
// Every call has a deadline. When a rank dies or does not answer in time, all other ranks get an
// Error that names it (kComm: gone, kTimeout: no answer). The group is broken then and must be
// rebuilt.
//
// Thread-safe: calls of one communicator run one after the other, in the order they were made.
#pragma once

#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "fleetx/base/dtype.h"
#include "fleetx/comm/call_queue.h"
#include "fleetx/comm/store.h"

namespace fleetx::comm {

enum class ReduceOp : uint8_t { kSum, kProd, kMin, kMax, kAverage };
std::string_view name_of(ReduceOp op);

enum class CallKind : uint8_t {
  kAllReduce,
  kReduceScatter,
  kAllGather,
  kBroadcast,
  kReduce,
  kAllToAll,
  kBarrier,
  kSend,
  kRecv
};
std::string_view name_of(CallKind kind);

// What a call moves over the network, on this rank.
struct Traffic {
  int64_t bytes_sent = 0, bytes_received = 0;
  double seconds = 0;  // from the first byte to the last
};

// When a call ran, and what it moved. Of several calls with one record: the begin of the first, the
// end of the last, and the traffic of all.
struct CallRecord {
  int64_t begin_ns = 0, end_ns = 0;  // of the steady clock; 0: none of them has run yet
  Traffic traffic;
};

// The arguments of a call. `count` is in elements; the functions below define `in` and `out`.
struct Call {
  CallKind kind = CallKind::kBarrier;
  const void* in = nullptr;
  void* out = nullptr;
  int64_t count = 0;
  DType dtype = DType::kU8;
  ReduceOp op = ReduceOp::kSum;
  int peer = 0;             // root, or the other side of a message
  int tag = 0;              // of a message; those of one tag arrive in order
  Milliseconds timeout{0};  // 0: the communicator's
  // If given, count is multiplied by times(about). Asked when the call begins, so that an earlier
  // call can find out how much a later one moves.
  int64_t (*times)(const int64_t* about) = nullptr;
  const int64_t* about = nullptr;
  CallRecord* record = nullptr;  // if given, the call adds itself when it is done

  static Call all_reduce(void* data, int64_t count, DType dtype, ReduceOp op);
  // in: size() parts of `count`; out: part rank() of their reduction.
  static Call reduce_scatter(const void* in, void* out, int64_t count, DType dtype, ReduceOp op);
  // in: `count` elements; out: those of all ranks. in may be this rank's part of out.
  static Call all_gather(const void* in, void* out, int64_t count, DType dtype);
  static Call broadcast(void* data, int64_t count, DType dtype, int root);
  // out is used at the root only, and may be in.
  static Call reduce(const void* in, void* out, int64_t count, DType dtype, ReduceOp op, int root);
  // in, out: size() parts of `count`; part i of rank j goes to part j of rank i. Must not overlap.
  static Call all_to_all(const void* in, void* out, int64_t count, DType dtype);
  static Call barrier();
  // Buffered: the sender does not wait for the receiver and may reuse `data` at once.
  static Call send(const void* data, int64_t count, DType dtype, int to, int tag);
  static Call recv(void* data, int64_t count, DType dtype, int from, int tag);

  // The same call with this timeout, this record, this many times.
  Call within(Milliseconds time) const;
  Call recorded(CallRecord* by) const;
  Call repeated(int64_t (*number)(const int64_t*), const int64_t* about_what) const;
};
std::string to_string(const Call& call);  // all_reduce of 1000 f32 (sum)

// Where a rank runs, for error messages.
struct Member {
  int rank = 0;  // in the job
  std::string host;
  int64_t pid = 0;
};

class Communicator {
 public:
  virtual ~Communicator();
  Communicator(const Communicator&) = delete;
  Communicator& operator=(const Communicator&) = delete;

  int rank() const { return rank_; }  // in this group
  int size() const { return static_cast<int>(members_.size()); }
  const std::vector<Member>& members() const { return members_; }
  virtual std::string_view backend() const = 0;
  Milliseconds timeout() const { return timeout_; }

  void run(const Call& call);
  // Asynchronous, on a thread of the communicator. The call's memory must stay valid until it is
  // done.
  [[nodiscard]] Work start(const Call& call);
  // The same for a caller that can keep only a number. Every number is awaited once. A caller that
  // stops early calls settle() before it frees the memory of its calls: it waits for all calls in
  // flight and ignores their errors.
  int64_t post(const Call& call);
  void await(int64_t number);
  void settle() noexcept;

  void all_reduce(void* data, int64_t count, DType dtype, ReduceOp op = ReduceOp::kSum);
  void reduce_scatter(const void* in, void* out, int64_t count, DType dtype,
                      ReduceOp op = ReduceOp::kSum);
  void all_gather(const void* in, void* out, int64_t count, DType dtype);
  void broadcast(void* data, int64_t count, DType dtype, int root = 0);
  void reduce(const void* in, void* out, int64_t count, DType dtype, ReduceOp op = ReduceOp::kSum,
              int root = 0);
  void all_to_all(const void* in, void* out, int64_t count, DType dtype);
  void send(const void* data, int64_t count, DType dtype, int to, int tag = 0);
  void recv(void* data, int64_t count, DType dtype, int from, int tag = 0);
  void barrier();

  // A group of these ranks, in this order. Exactly these ranks call it.
  std::unique_ptr<Communicator> group(const std::vector<int>& ranks);
  // All ranks call it; those with the same color become a group. color < 0: in none (nullptr).
  std::unique_ptr<Communicator> split(int color);

  // Zeroed memory on a 64-byte boundary. Collectives on it need no copies where the backend
  // supports that.
  virtual std::shared_ptr<void> allocate(size_t bytes);

  // The traffic of all calls so far. Nothing where all ranks share memory. Not for other threads
  // while a call runs.
  virtual Traffic traffic() const { return {}; }

  // The training step, for error messages. Read when a call is made.
  void set_step(int64_t step) { step_ = step; }

 protected:
  // Thrown by a backend when another rank has failed. Ranks are those of the job.
  struct PeerFailure {
    Failure failure;
  };

  Communicator(int rank, std::vector<Member> members, std::shared_ptr<StoreClient> store,
               Milliseconds timeout);

  // Runs one call whose arguments have been checked. Called by one thread at a time.
  virtual void perform(const Call& call, Deadline deadline) = 0;
  // Whether perform() calls check_interrupt() while it waits.
  virtual bool can_be_interrupted() const { return false; }
  // A new group of some ranks of this one.
  struct Subgroup {
    std::vector<int> ranks;  // in this group
    std::vector<Member> members;
    int own = 0;       // this rank in the new group
    std::string name;  // unique among the groups made from this one
  };
  virtual std::unique_ptr<Communicator> make_group(const Subgroup& subgroup) = 0;
  // Ends the thread that calls perform(). Backends call it first in their destructor.
  void stop_queue() { queue_.stop(); }

  // For backends: throw the failure of a member, or the one that the store has published.
  [[noreturn]] void fail_gone(int member, const std::string& what) const;
  [[noreturn]] void fail_hangs(int member, const std::string& what) const;
  void throw_if_store_failed() const;
  Failure interrupted() const;  // of this rank, by its user
  const std::shared_ptr<StoreClient>& store() const { return store_; }

  friend class Hierarchical;

 private:
  void check(const Call& call) const;
  void execute(const Call& call, int64_t number, int64_t step);
  void wait_for(const Work& work);
  static void settle(const Work& work) noexcept;
  template <class Fn>
  void publish_interrupts(const Fn& fn);
  [[noreturn]] void fail_call(const PeerFailure& peer, const Call& call, int64_t number,
                              int64_t step, Clock::time_point begin);

  const int rank_;
  const std::vector<Member> members_;
  const std::shared_ptr<StoreClient> store_;
  const Milliseconds timeout_;
  std::atomic<int64_t> step_ = -1;
  std::atomic<int64_t> next_number_ = 0;
  std::vector<std::pair<std::string, int>> groups_made_;
  std::optional<std::string> broken_;  // why
  std::mutex posted_mutex_;
  std::vector<std::pair<int64_t, Work>> posted_;  // few in flight at a time
  int64_t next_posted_ = 0;
  CallQueue queue_;
};

// --- making one ---------------------------------------------------------------------------------

struct CommOptions {
  int rank = 0, size = 1;                // in the job
  std::shared_ptr<StoreClient> store{};  // needed by shm, tcp and hierarchical
  std::string backend = "hierarchical";  // or shm, tcp, mpi
  std::string interface {};  // address or interface between hosts; empty: the one towards the store
  std::string host_id{};     // ranks with the same id share memory; empty: detected
  Milliseconds timeout{0};   // 0: FLEETX_COMM_TIMEOUT, or 300 s
};
// All ranks of the job call it.
std::unique_ptr<Communicator> make_communicator(CommOptions options);

// Ranks that are threads of this process.
std::vector<std::unique_ptr<Communicator>> make_local(int size, Milliseconds timeout = {});

}  // namespace fleetx::comm
