#include "fleetx/comm/tcp.h"

#include <thread>

#include "fleetx/base/error.h"
#include "fleetx/base/interrupt.h"
#include "fleetx/comm/tcp_mesh.h"

namespace fleetx::comm {
namespace {

class Tcp final : public Exchange {
 public:
  // `places`: the rank in the mesh of each rank of this group. `id`: unique in the job.
  Tcp(int rank, std::vector<Member> members, std::shared_ptr<StoreClient> store,
      Milliseconds timeout, std::shared_ptr<TcpMesh> mesh, std::vector<int> places, uint64_t id)
      : Exchange(rank, std::move(members), std::move(store), timeout),
        mesh_(std::move(mesh)),
        places_(std::move(places)),
        id_(id) {}
  ~Tcp() override {
    stop_queue();
    finish_pending_sends(after(Milliseconds(2'000)));
  }

  std::string_view backend() const override { return "tcp"; }
  bool can_be_interrupted() const override { return true; }

 private:
  class OneTransfer final : public Transfer {
   public:
    OneTransfer(Tcp& owner, int peer, TcpRequestPtr request)
        : owner_(owner), peer_(peer), request_(std::move(request)) {}
    ~OneTransfer() override { owner_.mesh_->abandon(request_); }

    bool done() override {
      return request_->done && request_->failure == TcpRequest::Failure::kNone;
    }
    void wait(Deadline deadline) override {
      if (!owner_.mesh_->wait(*request_, deadline, [&] { owner_.check_group(); }))
        owner_.fail_hangs(peer_, "did not answer in time");
      using enum TcpRequest::Failure;
      switch (request_->failure) {
        case kNone: return;
        case kMismatch:
          fail(
              Error::Kind::kInvalidArgument,
              str("ranks of a group must make the same calls: rank ", peer_, " ", request_->error));
        case kClosed: owner_.lost(peer_, ConnectionLost(request_->error));
        case kUnreachable: owner_.lost(peer_, ConnectionLost(request_->error, true));
      }
    }

   private:
    Tcp& owner_;
    const int peer_;
    const TcpRequestPtr request_;
  };
  friend class OneTransfer;

  void check_group() const {
    throw_if_store_failed();
    check_interrupt();
  }

  // A connection ends when its process dies, but also when that process stopped because of a third
  // one. The store learns of a death at the same time as we do: give it a moment.
  [[noreturn]] void lost(int peer, const ConnectionLost& why) const {
    const Deadline deadline = after(Milliseconds(500));
    while (!store()->failed() && !why.unreachable && Clock::now() < deadline)
      std::this_thread::sleep_for(Milliseconds(5));
    throw_if_store_failed();
    // Where hosts cannot reach each other, the store finds out which of them is cut off.
    if (why.unreachable) fail_hangs(peer, why.what());
    fail_gone(peer, why.what());
  }

  std::unique_ptr<Transfer> start_send(int peer, uint64_t label, const void* data,
                                       size_t bytes) override {
    try {
      return std::make_unique<OneTransfer>(
          *this, peer,
          mesh_->post_send(places_[static_cast<size_t>(peer)], id_, label, data, bytes, deadline(),
                           [this] { check_group(); }));
    } catch (const ConnectionLost& e) {
      lost(peer, e);
    } catch (const Error& e) {
      if (e.kind() == Error::Kind::kTimeout) fail_hangs(peer, "cannot be connected to");
      throw;
    }
  }
  std::unique_ptr<Transfer> start_receive(int peer, uint64_t label, void* data,
                                          size_t bytes) override {
    return std::make_unique<OneTransfer>(
        *this, peer,
        mesh_->post_receive(places_[static_cast<size_t>(peer)], id_, label, data, bytes));
  }
  void send_in_background() override { mesh_->send_in_background(); }

  std::unique_ptr<Communicator> make_group(const Subgroup& subgroup) override {
    std::vector<int> places;
    for (const int r : subgroup.ranks) places.push_back(places_[static_cast<size_t>(r)]);
    // A number that is unique in the job separates the messages of the groups.
    const std::string key = str("tcp/", id_, "/", subgroup.name);
    if (subgroup.own == 0) store()->set(key, std::to_string(store()->add("tcp/groups", 1)));
    const uint64_t id = std::stoull(store()->get(key, timeout()));
    return std::make_unique<Tcp>(subgroup.own, subgroup.members, store(), timeout(), mesh_, places,
                                 id);
  }

  const std::shared_ptr<TcpMesh> mesh_;
  const std::vector<int> places_;
  const uint64_t id_;
};

}  // namespace

std::unique_ptr<Exchange> make_tcp(int rank, const std::vector<Member>& members,
                                   std::shared_ptr<StoreClient> store, const std::string& interface,
                                   Milliseconds timeout) {
  const auto n = static_cast<int>(members.size());
  Fd listener = listen_on({address_of(interface), 0});
  std::vector<Endpoint> addresses;
  for (const std::string& text :
       store->gather("tcp/addresses", rank, n, to_string(local_endpoint(listener.get())), timeout))
    addresses.push_back(parse_endpoint(text));
  auto mesh = std::make_shared<TcpMesh>(
      rank, std::move(listener), std::move(addresses),
      TcpIdentity{store->options().secret, store->options().job, TlsContext::from_environment()});
  std::vector<int> places;
  for (int r = 0; r < n; ++r) places.push_back(r);
  return std::make_unique<Tcp>(rank, members, std::move(store), timeout, std::move(mesh), places,
                               0);
}

}  // namespace fleetx::comm
