#include "fleetx/comm/gloo.h"

#include <gloo/rendezvous/context.h>
#include <gloo/rendezvous/store.h>
#include <gloo/transport/tcp/device.h>
#include <net/if.h>
#include <signal.h>

#include <map>
#include <set>

#include "fleetx/base/error.h"
#include "fleetx/comm/exchange.h"

namespace fleetx::comm {
namespace {

// Gloo sets keys that end in the rank (host name, socket addresses) and reads those of all ranks:
// one gather does both.
class GatheringStore final : public gloo::rendezvous::Store {
 public:
  GatheringStore(StoreClient& store, std::string name, int rank, int size, Milliseconds timeout)
      : store_(store), name_(std::move(name)), rank_(rank), size_(size), timeout_(timeout) {}

  void set(const std::string& key, const std::vector<char>& data) override {
    const std::string subject = key.substr(0, rank_in(key));
    all_[subject] =
        store_.gather(name_ + subject, rank_, size_, {data.begin(), data.end()}, timeout_);
  }
  std::vector<char> get(const std::string& key) override {
    const size_t at = rank_in(key);
    const auto rank = static_cast<size_t>(std::stoi(key.substr(at)));
    const std::string& value = all_.at(key.substr(0, at)).at(rank);
    return {value.begin(), value.end()};
  }
  void wait(const std::vector<std::string>&) override {}
  void wait(const std::vector<std::string>&, const Milliseconds&) override {}

 private:
  static size_t rank_in(const std::string& key) { return key.find_last_not_of("0123456789") + 1; }

  StoreClient& store_;
  std::string name_;
  int rank_, size_;
  Milliseconds timeout_;
  std::map<std::string, std::vector<std::string>> all_;
};

// Gloo writes to its sockets without MSG_NOSIGNAL: a lost peer would end the program by SIGPIPE. A
// handler of the program is kept.
void ignore_sigpipe() {
  struct sigaction now {};
  sigaction(SIGPIPE, nullptr, &now);
  if (now.sa_handler == SIG_DFL) signal(SIGPIPE, SIG_IGN);
}

using GlooBuffer = gloo::transport::UnboundBuffer;

// The connections of a process to all peers; shared by its groups.
class Mesh {
 public:
  Mesh(int rank, int size, StoreClient& store, const std::string& interface, Milliseconds timeout)
      : context_(rank, size) {
    ignore_sigpipe();
    gloo::transport::tcp::attr attr;
    (if_nametoindex(interface.c_str()) != 0 ? attr.iface : attr.hostname) = interface;
    auto device = gloo::transport::tcp::CreateDevice(attr);
    context_.setTimeout(timeout);
    GatheringStore gathering(store, "gloo/", rank, size, timeout);
    context_.connectFullMesh(gathering, device);
    // Gloo does not end a wait for a live rank when another rank fails: abort all waits.
    watch_ = store.on_failure([this](const Failure&) { abort(); });
  }
  ~Mesh() { watch_.reset(); }

  std::unique_ptr<GlooBuffer> buffer(void* memory, size_t bytes) {
    auto made = context_.createUnboundBuffer(memory, bytes);
    std::scoped_lock lock(mutex_);
    waiting_.insert(made.get());
    if (failed_) stop(*made);
    return made;
  }
  void release(GlooBuffer* buffer) {
    std::scoped_lock lock(mutex_);
    waiting_.erase(buffer);
  }

 private:
  static void stop(GlooBuffer& buffer) {
    buffer.abortWaitRecv();
    buffer.abortWaitSend();
  }
  void abort() {
    std::scoped_lock lock(mutex_);
    failed_ = true;
    for (GlooBuffer* b : waiting_) stop(*b);
  }

  gloo::rendezvous::Context context_;
  std::mutex mutex_;
  bool failed_ = false;
  std::set<GlooBuffer*> waiting_;
  StoreClient::Watch watch_;
};

class Gloo final : public Exchange {
 public:
  Gloo(int rank, std::vector<Member> members, std::shared_ptr<StoreClient> store,
       Milliseconds timeout, std::shared_ptr<Mesh> mesh, std::vector<int> places, uint64_t id)
      : Exchange(rank, std::move(members), std::move(store), timeout),
        mesh_(std::move(mesh)),
        places_(std::move(places)),
        id_(id) {}
  ~Gloo() override {
    stop_queue();
    finish_pending_sends(after(Milliseconds(2'000)));
  }

  std::string_view backend() const override { return "gloo"; }

 private:
  class OneTransfer final : public Transfer {
   public:
    OneTransfer(Gloo& owner, int peer, bool sends, void* data, size_t bytes)
        : owner_(owner), peer_(peer), sends_(sends), buffer_(owner.mesh_->buffer(data, bytes)) {}
    ~OneTransfer() override { owner_.mesh_->release(buffer_.get()); }

    void post(uint64_t slot) {
      const int place = owner_.places_[static_cast<size_t>(peer_)];
      guarded([&] {
        if (sends_)
          buffer_->send(place, slot);
        else
          buffer_->recv(place, slot);
        return true;
      });
    }

    void wait(Deadline deadline) override {
      const Milliseconds left(std::max(1, left_ms(deadline)));
      guarded([&] { return sends_ ? buffer_->waitSend(left) : buffer_->waitRecv(left); }, deadline);
    }

   private:
    template <class Fn>
    void guarded(const Fn& fn, Deadline deadline = Deadline::max()) {
      owner_.throw_if_store_failed();
      try {
        if (fn()) return;
      } catch (const std::exception& e) {
        owner_.throw_if_store_failed();
        if (Clock::now() >= deadline) owner_.fail_hangs(peer_, "did not answer in time");
        owner_.lost(peer_, e.what());
      }
      owner_.throw_if_store_failed();
      owner_.lost(peer_, "wait was ended");
    }

    Gloo& owner_;
    int peer_;
    bool sends_;
    std::unique_ptr<GlooBuffer> buffer_;
  };
  friend class OneTransfer;

  // A connection ends when its process dies, but also when that process stopped because of a third
  // one. The store learns of a death at the same time as we do: give it a moment.
  [[noreturn]] void lost(int peer, const std::string& why) const {
    const Deadline deadline = after(Milliseconds(500));
    while (!store()->failed() && Clock::now() < deadline)
      std::this_thread::sleep_for(Milliseconds(5));
    throw_if_store_failed();
    fail_gone(peer, "closed its connection (" + why + ")");
  }

  uint64_t slot(uint64_t label) const { return id_ << 48 | label; }

  std::unique_ptr<Transfer> post_send(int peer, uint64_t label, const void* data,
                                      size_t bytes) override {
    auto t = std::make_unique<OneTransfer>(*this, peer, true, const_cast<void*>(data), bytes);
    t->post(slot(label));
    return t;
  }
  std::unique_ptr<Transfer> post_receive(int peer, uint64_t label, void* data,
                                         size_t bytes) override {
    auto t = std::make_unique<OneTransfer>(*this, peer, false, data, bytes);
    t->post(slot(label));
    return t;
  }

  std::unique_ptr<Communicator> make_group(const Subgroup& subgroup) override {
    std::vector<int> places;
    for (const int r : subgroup.ranks) places.push_back(places_[static_cast<size_t>(r)]);
    // A number that is unique in the job separates the messages of the groups.
    const std::string key = str("gloo/", id_, "/", subgroup.name);
    if (subgroup.own == 0) store()->set(key, std::to_string(store()->add("gloo/groups", 1)));
    const uint64_t id = std::stoull(store()->get(key, timeout()));
    check_arg(id < kMaxGroups, "gloo: more than ", kMaxGroups, " groups in one job");
    return std::make_unique<Gloo>(subgroup.own, subgroup.members, store(), timeout(), mesh_, places,
                                  id);
  }

  static constexpr uint64_t kMaxGroups = 1 << 15;
  std::shared_ptr<Mesh> mesh_;
  std::vector<int> places_;
  uint64_t id_;
};

}  // namespace

std::unique_ptr<Communicator> make_gloo(int rank, const std::vector<Member>& members,
                                        std::shared_ptr<StoreClient> store,
                                        const std::string& interface, Milliseconds timeout) {
  const auto n = static_cast<int>(members.size());
  std::vector<int> places;
  for (int r = 0; r < n; ++r) places.push_back(r);
  std::shared_ptr<Mesh> mesh;
  if (n > 1) {
    try {
      mesh = std::make_shared<Mesh>(rank, n, *store, interface, timeout);
    } catch (const Error&) {
      throw;
    } catch (const std::exception& e) {
      fail(Error::Kind::kComm,
           str("gloo: rank ", rank, " on host ", members[static_cast<size_t>(rank)].host,
               " cannot connect to its peers over '", interface, "': ", e.what()));
    }
  }
  return std::make_unique<Gloo>(rank, members, std::move(store), timeout, std::move(mesh), places,
                                0);
}

}  // namespace fleetx::comm
