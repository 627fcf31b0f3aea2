// A group of ranks that compute together: collectives, messages, and handles for calls that run
// beside the computation.
//
//   auto comm = make_communicator({.rank = r, .size = n, .store = store});
//   comm->all_reduce(gradients.data(), count, f32, ReduceOp::kAverage);
//   Work work = comm->start(Call::all_reduce(bucket, count, f32, ReduceOp::kSum));  // and go on
//   work.wait();
//
// All ranks of a group make the same calls in the same order. Reductions have a fixed order, rank 0
// + rank 1 + ..., in every backend and whatever the timing: the same inputs give the same bits.
// Halves are summed in f32 and rounded once; an average is the sum divided by the number of ranks.
//
// Every call has a deadline. When a rank dies, or the deadline passes, all others get an Error that
// names it (kComm: gone, kTimeout: it did not answer); the group is dead then and must be rebuilt.
//
// Thread-safe: calls of one communicator run one after the other, those started before first.
#pragma once

#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "fleetx/base/dtype.h"
#include "fleetx/comm/lane.h"
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

// What a call does. `count` is in elements; `in` and `out` are as the makers below say.
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

  static Call all_reduce(void* data, int64_t count, DType dtype, ReduceOp op);
  // in: size() parts of `count`; out: part rank() of their reduction.
  static Call reduce_scatter(const void* in, void* out, int64_t count, DType dtype, ReduceOp op);
  // in: `count`; out: those of all ranks. in may be its own part of out.
  static Call all_gather(const void* in, void* out, int64_t count, DType dtype);
  static Call broadcast(void* data, int64_t count, DType dtype, int root);
  // out matters at the root only, and may be in.
  static Call reduce(const void* in, void* out, int64_t count, DType dtype, ReduceOp op, int root);
  // in, out: size() parts of `count`; part i of rank j goes to part j of rank i. Must not overlap.
  static Call all_to_all(const void* in, void* out, int64_t count, DType dtype);
  static Call barrier();
  // A message is taken out of `data` at once: a sender does not wait for the receiver.
  static Call send(const void* data, int64_t count, DType dtype, int to, int tag);
  static Call recv(void* data, int64_t count, DType dtype, int from, int tag);

  Call within(Milliseconds time) const;  // the same with a deadline of its own
};
std::string to_string(const Call& call);  // all_reduce of 1000 f32 (sum)

// Where a rank runs, for errors.
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
  // Memory of the call must stay until it is done. Runs on a thread of the communicator.
  [[nodiscard]] Work start(const Call& call);
  // The same for a caller that can keep only a number. Every number is awaited once; who gives up
  // before, and wants to free memory of his calls, settles all of them (errors are not thrown).
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

  // A group of some ranks of this one, in this order. All of them, and nobody else, call it.
  std::unique_ptr<Communicator> group(const std::vector<int>& ranks);
  // All ranks call it; those with the same color become a group. color < 0: in none (nullptr).
  std::unique_ptr<Communicator> split(int color);

  // Zeroed memory on a 64-byte boundary that collectives work on without copies where the backend
  // can.
  virtual std::shared_ptr<void> allocate(size_t bytes);

  // Training step, for errors. Taken when a call is made or started.
  void set_step(int64_t step) { step_ = step; }

 protected:
  // What a backend throws when another rank is the reason. Ranks are those of the job.
  struct PeerFailure {
    Failure failure;
  };

  Communicator(int rank, std::vector<Member> members, std::shared_ptr<StoreClient> store,
               Milliseconds timeout);

  // Runs one call; sizes and peers are checked already. Called by one thread at a time.
  virtual void perform(const Call& call, Deadline deadline) = 0;
  // Whether perform() asks check_interrupt() while it waits.
  virtual bool can_be_interrupted() const { return false; }
  // Some ranks of this group, that are to be a group of their own.
  struct Some {
    std::vector<int> ranks;  // here
    std::vector<Member> members;
    int own = 0;       // this rank's place among them
    std::string name;  // no other group that this one makes has it
  };
  virtual std::unique_ptr<Communicator> make_group(const Some& some) = 0;
  // Ends the threads that call perform(); a backend does it first in its destructor.
  void stop_lane() { lane_.stop(); }

  // For backends: the failure of a member, and the one the store knows of.
  [[noreturn]] void fail_gone(int member, const std::string& what) const;
  [[noreturn]] void fail_hangs(int member, const std::string& what) const;
  void throw_if_store_failed() const;
  Failure interrupted() const;  // this rank, whose user ended a call
  const std::shared_ptr<StoreClient>& store() const { return store_; }

  friend class Hierarchical;

 private:
  void check(const Call& call) const;
  void execute(const Call& call, int64_t number, int64_t step);
  void wait_for(const Work& work);
  static void settle(const Work& work) noexcept;
  template <class Fn>
  void telling_the_others(const Fn& fn);
  [[noreturn]] void die(const PeerFailure& peer, const Call& call, int64_t number, int64_t step,
                        Clock::time_point begin);

  const int rank_;
  const std::vector<Member> members_;
  const std::shared_ptr<StoreClient> store_;
  const Milliseconds timeout_;
  std::atomic<int64_t> step_ = -1;
  std::atomic<int64_t> next_number_ = 0;
  std::vector<std::pair<std::string, int>> groups_made_;
  std::optional<std::string> dead_;  // what killed it
  std::mutex posted_mutex_;
  std::vector<std::pair<int64_t, Work>> posted_;  // a few at a time
  int64_t next_posted_ = 0;
  Lane lane_;
};

// --- making one ---------------------------------------------------------------------------------

struct CommOptions {
  int rank = 0, size = 1;                // in the job
  std::shared_ptr<StoreClient> store{};  // needed by shm, gloo and hierarchical
  std::string backend = "hierarchical";  // or shm, gloo, mpi
  std::string interface {};  // address or interface between hosts; empty: the way to the store
  std::string host_id{};     // ranks with the same one share memory; empty: found out
  Milliseconds timeout{0};   // 0: FLEETX_COMM_TIMEOUT, or 300 s
};
// All ranks of the job call it.
std::unique_ptr<Communicator> make_communicator(CommOptions options);

// Ranks that are threads of this process.
std::vector<std::unique_ptr<Communicator>> make_local(int size, Milliseconds timeout = {});

}  // namespace fleetx::comm
