// libfleetx_mpi: only the files of this folder include mpi.h.
#include "fleetx/comm/mpi.h"

#include <cstdlib>
#include <thread>

#include "fleetx/base/env.h"
#include "fleetx/base/error.h"
#include "fleetx/comm/exchange.h"
#include "fleetx/comm/mpi_library/collectives.h"
#include "fleetx/comm/reduce.h"

namespace fleetx::comm {
namespace {

// Serializes all MPI calls (MPI_THREAD_SERIALIZED); none of them blocks.
std::mutex mpi_mutex;
bool failed = false;  // MPI_Finalize would wait for dead ranks

void finalize() {
  int done = 0;
  MPI_Finalized(&done);
  if (!done && !failed) MPI_Finalize();
}

void start_mpi() {
  int running = 0;
  MPI_Initialized(&running);
  if (running) return;
  int level = 0;
  check_arg(MPI_Init_thread(nullptr, nullptr, MPI_THREAD_SERIALIZED, &level) == MPI_SUCCESS &&
                level >= MPI_THREAD_SERIALIZED,
            "mpi: MPI_Init_thread does not allow calls from several threads");
  std::atexit(finalize);
}

std::string reason(int code) {
  char text[MPI_MAX_ERROR_STRING] = {};
  int length = 0;
  MPI_Error_string(code, text, &length);
  return text;
}

class Mpi final : public Exchange {
 public:
  // `own_collectives`: those of MPI instead of ours (collectives.h).
  Mpi(int rank, std::vector<Member> members, std::shared_ptr<StoreClient> store,
      Milliseconds timeout, MPI_Comm comm, bool own_collectives)
      : Exchange(rank, std::move(members), std::move(store), timeout),
        comm_(comm),
        own_collectives_(own_collectives) {}
  ~Mpi() override {
    stop_queue();
    finish_pending_sends(after(Milliseconds(2'000)));
    std::scoped_lock lock(mpi_mutex);
    if (!failed) MPI_Comm_free(&comm_);
  }

  std::string_view backend() const override { return "mpi"; }

 private:
  class OneTransfer final : public Transfer {
   public:
    // `others` ends the subject of an error where it may not be this peer.
    OneTransfer(Mpi& owner, int peer, std::string others = "")
        : owner_(owner), peer_(peer), others_(std::move(others)) {}
    ~OneTransfer() override {
      std::scoped_lock lock(mpi_mutex);
      if (request != MPI_REQUEST_NULL && !failed) MPI_Cancel(&request);
    }

    void check(int code) {
      if (code == MPI_SUCCESS) return;
      failed = true;
      owner_.fail_gone(peer_, others_ + "is lost: " + reason(code));
    }

    bool done() override {
      std::scoped_lock lock(mpi_mutex);
      int done = 0;
      check(MPI_Test(&request, &done, MPI_STATUS_IGNORE));
      return done != 0;
    }

    void wait(Deadline deadline) override {
      for (int round = 0;; ++round) {
        if (done()) return;
        if (round % 64 != 63) continue;
        std::this_thread::yield();
        if (owner_.store() && owner_.store()->failed()) {
          failed = true;
          owner_.throw_if_store_failed();
        }
        if (Clock::now() < deadline) continue;
        failed = true;
        owner_.fail_hangs(peer_, others_ + "did not answer in time");
      }
    }

    MPI_Request request = MPI_REQUEST_NULL;

   private:
    Mpi& owner_;
    const int peer_;
    const std::string others_;
  };
  friend class OneTransfer;

  void perform(const Call& c, Deadline deadline) override {
    if (!own_collectives_ || !mpi_has(c, size())) return Exchange::perform(c, deadline);
    OneTransfer transfer(*this, (rank() + 1) % size(), "or another rank ");
    {
      std::scoped_lock lock(mpi_mutex);
      transfer.check(start_by_mpi(c, rank(), comm_, &transfer.request));
    }
    transfer.wait(deadline);
    if (c.op == ReduceOp::kAverage && (c.kind != CallKind::kReduce || c.peer == rank()))
      reduce_operands(c.dtype, c.op, {{{c.out, {0, size()}, true}}}, {{c.out}}, c.count, size());
  }

  // Labels of collectives have bit 47 set. The low 27 bits of their number suffice, since few are
  // in flight at once. Confirmations of messages have bit 46.
  static int tag_of(uint64_t label) {
    if (label >> 47 & 1) return static_cast<int>(1 << 30 | (label & ((1 << 27) - 1)));
    return label >> 46 & 1 ? 1 << 28 : static_cast<int>(label);
  }

  static int count_of(size_t bytes) {
    check_arg(bytes <= size_t{1} << 30, "mpi: a message of ", bytes, " bytes; at most 1 GB");
    return static_cast<int>(bytes);
  }

  std::unique_ptr<Transfer> start_send(int peer, uint64_t label, const void* data,
                                       size_t bytes) override {
    auto t = std::make_unique<OneTransfer>(*this, peer);
    std::scoped_lock lock(mpi_mutex);
    t->check(MPI_Isend(data, count_of(bytes), MPI_BYTE, peer, tag_of(label), comm_, &t->request));
    return t;
  }
  std::unique_ptr<Transfer> start_receive(int peer, uint64_t label, void* data,
                                          size_t bytes) override {
    auto t = std::make_unique<OneTransfer>(*this, peer);
    std::scoped_lock lock(mpi_mutex);
    t->check(MPI_Irecv(data, count_of(bytes), MPI_BYTE, peer, tag_of(label), comm_, &t->request));
    return t;
  }

  std::unique_ptr<Communicator> make_group(const Subgroup& subgroup) override {
    std::scoped_lock lock(mpi_mutex);
    MPI_Group all, part;
    MPI_Comm made = MPI_COMM_NULL;
    MPI_Comm_group(comm_, &all);
    MPI_Group_incl(all, static_cast<int>(subgroup.ranks.size()), subgroup.ranks.data(), &part);
    const int tag =
        static_cast<int>(std::hash<std::string>{}(subgroup.name) & ((1 << 27) - 1)) | 1 << 29;
    const int code = MPI_Comm_create_group(comm_, part, tag, &made);
    MPI_Group_free(&part);
    MPI_Group_free(&all);
    if (code != MPI_SUCCESS) fail(Error::Kind::kComm, "mpi: no group: " + reason(code));
    MPI_Comm_set_errhandler(made, MPI_ERRORS_RETURN);
    return std::make_unique<Mpi>(subgroup.own, subgroup.members, store(), timeout(), made,
                                 own_collectives_);
  }

  MPI_Comm comm_;
  const bool own_collectives_;
};

// What the user asks for by FLEETX_MPI_COLLECTIVES, on all ranks alike.
bool asks_for_own_collectives(MPI_Comm comm) {
  const int asked = env::flag("FLEETX_MPI_COLLECTIVES") ? 1 : 0;
  int all[2] = {asked, -asked};
  MPI_Allreduce(MPI_IN_PLACE, all, 2, MPI_INT, MPI_MAX, comm);
  check_arg(all[0] == -all[1],
            "mpi: FLEETX_MPI_COLLECTIVES is set on some ranks only; pass it on with mpirun -x");
  return asked == 1;
}

// Host names and process ids of all ranks.
std::vector<Member> exchange_rank_info(MPI_Comm comm, int size) {
  struct RankInfo {
    char host[MPI_MAX_PROCESSOR_NAME];
    int64_t pid;
  };
  RankInfo mine{};
  int length = 0;
  MPI_Get_processor_name(mine.host, &length);
  mine.pid = getpid();
  std::vector<RankInfo> infos(static_cast<size_t>(size));
  MPI_Allgather(&mine, sizeof mine, MPI_BYTE, infos.data(), sizeof mine, MPI_BYTE, comm);
  std::vector<Member> members;
  for (const RankInfo& c : infos)
    members.push_back({static_cast<int>(members.size()), c.host, c.pid});
  return members;
}

}  // namespace
}  // namespace fleetx::comm

fleetx::comm::Communicator* fleetx_make_mpi(const fleetx::comm::CommOptions* options) {
  using namespace fleetx::comm;
  std::scoped_lock lock(mpi_mutex);
  start_mpi();
  int rank = 0, size = 0;
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &size);
  fleetx::check_arg(rank == options->rank && size == options->size, "mpi: this is rank ", rank,
                    " of ", size, " for MPI, rank ", options->rank, " of ", options->size,
                    " for the program; start it with mpirun or srun");
  MPI_Comm comm = MPI_COMM_NULL;
  MPI_Comm_dup(MPI_COMM_WORLD, &comm);
  MPI_Comm_set_errhandler(comm, MPI_ERRORS_RETURN);
  return new Mpi(rank, exchange_rank_info(comm, size), options->store, options->timeout, comm,
                 asks_for_own_collectives(comm));
}
