// Collectives made of point-to-point messages, for the backends gloo and mpi. Every rank sends each
// peer its share of the vector directly and reduces its own share in the order of the ranks. That
// moves as many bytes as a ring, but has a fixed order of summation and fewer dependent steps.
#pragma once

#include <deque>

#include "fleetx/comm/communicator.h"

namespace fleetx::comm {

class Exchange : public Communicator {
 protected:
  using Communicator::Communicator;
  ~Exchange() override = default;

  // A message in flight. Its memory must stay valid until it is done.
  class Transfer {
   public:
    virtual ~Transfer() = default;
    // Throws PeerFailure. Called once.
    virtual void wait(Deadline deadline) = 0;
  };
  using Transfers = std::vector<std::unique_ptr<Transfer>>;

  // `label` identifies a message between two ranks.
  virtual std::unique_ptr<Transfer> post_send(int peer, uint64_t label, const void* data,
                                              size_t bytes) = 0;
  virtual std::unique_ptr<Transfer> post_receive(int peer, uint64_t label, void* data,
                                                 size_t bytes) = 0;

  void perform(const Call& call, Deadline deadline) override;
  // Waits until the deadline for sends whose receivers have not taken them yet.
  void finish_pending_sends(Deadline deadline) noexcept;

 private:
  // A buffered send.
  struct PendingSend {
    std::unique_ptr<std::string> bytes;
    std::unique_ptr<Transfer> transfer;
  };

  static void wait_all(Transfers& transfers, Deadline deadline);
  uint64_t next_label();
  // Sends from(r) to every peer r; scratch_ gets what they send, in the order of the ranks.
  template <class From>
  void exchange_with_peers(size_t bytes, const From& from, Deadline deadline);
  void all_reduce(const Call& call, Deadline deadline);
  void all_reduce_chunk(const Call& call, char* data, int64_t count, Deadline deadline);
  void all_reduce_small(const Call& call, Deadline deadline);
  void reduce_scatter(const Call& call, Deadline deadline);
  void all_gather(const Call& call, Deadline deadline);
  void broadcast(const Call& call, Deadline deadline);
  void reduce_to_root(const Call& call, Deadline deadline);
  void all_to_all(const Call& call, Deadline deadline);
  void barrier(Deadline deadline);
  void send(const Call& call, Deadline deadline);
  // Reduces this rank's share: its own vector with those of the peers, consecutive at `theirs`.
  void reduce_share(const Call& call, const char* own, const char* theirs, void* out,
                    int64_t count) const;

  uint64_t label_ = 0;
  std::deque<PendingSend> pending_sends_;
  size_t pending_bytes_ = 0;
  std::vector<char> scratch_;
};

}  // namespace fleetx::comm
