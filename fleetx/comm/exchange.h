// Collectives made of point-to-point messages, for the backends tcp and mpi, and for the part of
// hierarchical that goes between hosts.
#pragma once

#include <deque>
#include <optional>

#include "fleetx/comm/communicator.h"
#include "fleetx/comm/host_layout.h"
#include "fleetx/comm/messenger.h"
#include "fleetx/comm/slice_exchange.h"

namespace fleetx::comm {

class Exchange : public Communicator, protected Messenger {
 public:
  ~Exchange() override = default;

  // Runs a collective of this group whose ranks are on these hosts. All ranks of this host have
  // made the call, and none of them ends it before all have returned from here.
  void collective(const Call& call, const HostLayout& layout, const HostMemory& memory,
                  Deadline deadline);
  // Messages between two ranks.
  void message(const Call& call, Deadline deadline);
  Traffic traffic() const override { return {bytes_sent(), bytes_received(), seconds_}; }

 protected:
  Exchange(int rank, std::vector<Member> members, std::shared_ptr<StoreClient> store,
           Milliseconds timeout);

  void perform(const Call& call, Deadline deadline) override;
  // The deadline of the call that runs.
  Deadline deadline() const { return deadline_; }
  // Waits until the deadline for sends whose receivers have not taken them yet.
  void finish_pending_sends(Deadline deadline) noexcept;

 private:
  using Transfers = std::vector<std::unique_ptr<Transfer>>;
  // A buffered send.
  struct PendingSend {
    std::unique_ptr<std::string> bytes;
    std::unique_ptr<Transfer> transfer;
  };
  // Messages to and from a rank, which bound what a receiver has to keep.
  struct Credit {
    size_t unconfirmed = 0;  // bytes sent that the receiver has not confirmed
    size_t to_confirm = 0;   // bytes received that we have not confirmed
  };

  uint64_t next_label();
  const HostNodes& nodes_of(const HostLayout& layout, DType dtype);
  void exchange(const Call& call, const HostLayout& layout, const HostMemory& memory,
                Deadline deadline);
  void all_to_all(const Call& call, const HostLayout& layout, const HostMemory& memory,
                  Deadline deadline);
  void broadcast_whole(const Call& call, const HostLayout& layout, const HostMemory& memory,
                       Deadline deadline);
  void barrier(const HostLayout& layout, Deadline deadline);
  void send(const Call& call, Deadline deadline);
  void receive(const Call& call, Deadline deadline);

  const HostLayout flat_;
  uint64_t label_ = 0;
  Deadline deadline_{};
  double seconds_ = 0;
  std::deque<PendingSend> pending_sends_;
  std::vector<Credit> credits_;
  std::optional<HostNodes> nodes_;  // of the latest call
  const HostLayout* nodes_layout_ = nullptr;
  DType nodes_dtype_ = DType::kU8;
  ExchangeScratch scratch_;
};

}  // namespace fleetx::comm
