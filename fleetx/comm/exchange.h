// Collectives made of messages between pairs of ranks, for the backends gloo and mpi. Every rank
// sends each other its share of the vector directly and reduces its own in the order of the ranks:
// as many bytes as a ring moves, but with a fixed order and without a chain of ranks that wait.
#pragma once

#include <deque>

#include "fleetx/comm/communicator.h"

namespace fleetx::comm {

class Exchange : public Communicator {
 protected:
  using Communicator::Communicator;
  ~Exchange() override = default;

  // A message that is under way. Its memory must stay until it is done.
  class Transfer {
   public:
    virtual ~Transfer() = default;
    // Throws PeerFailure. Once only.
    virtual void wait(Deadline deadline) = 0;
  };
  using Transfers = std::vector<std::unique_ptr<Transfer>>;

  // `label` tells messages between two ranks apart.
  virtual std::unique_ptr<Transfer> post_send(int peer, uint64_t label, const void* data,
                                              size_t bytes) = 0;
  virtual std::unique_ptr<Transfer> post_receive(int peer, uint64_t label, void* data,
                                                 size_t bytes) = 0;

  void perform(const Call& call, Deadline deadline) override;
  // Waits for the messages that receivers have not taken yet, as far as the time allows.
  void finish_letters(Deadline deadline) noexcept;

 private:
  // A message that its sender does not wait for.
  struct Letter {
    std::unique_ptr<std::string> bytes;
    std::unique_ptr<Transfer> transfer;
  };

  static void wait_all(Transfers& transfers, Deadline deadline);
  uint64_t next_label();
  // Sends from(r) to every other rank r; what they send is in scratch_, one after the other.
  template <class From>
  void swap_with_others(size_t bytes, const From& from, Deadline deadline);
  void all_reduce(const Call& call, Deadline deadline);
  void all_reduce_piece(const Call& call, char* data, int64_t count, Deadline deadline);
  void all_reduce_small(const Call& call, Deadline deadline);
  void reduce_scatter(const Call& call, Deadline deadline);
  void all_gather(const Call& call, Deadline deadline);
  void broadcast(const Call& call, Deadline deadline);
  void reduce_to_root(const Call& call, Deadline deadline);
  void all_to_all(const Call& call, Deadline deadline);
  void barrier(Deadline deadline);
  void send(const Call& call, Deadline deadline);
  // Reduces this rank's share: `own` here, the others' at `theirs`, one after the other.
  void reduce_share(const Call& call, const char* own, const char* theirs, void* out,
                    int64_t count) const;

  uint64_t label_ = 0;
  std::deque<Letter> letters_;
  size_t letter_bytes_ = 0;
  std::vector<char> scratch_;
};

}  // namespace fleetx::comm
