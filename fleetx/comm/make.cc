// Chooses and builds the communicator of a job.
#include <arpa/inet.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>

#include "fleetx/base/env.h"
#include "fleetx/base/error.h"
#include "fleetx/comm/communicator.h"
#include "fleetx/comm/gloo.h"
#include "fleetx/comm/hierarchical.h"
#include "fleetx/comm/mpi.h"
#include "fleetx/comm/shm.h"
#include "fleetx/comm/store_wire.h"
#include "fleetx/comm/timeouts.h"

namespace fleetx::comm {
namespace {

// What the ranks tell each other before they are connected.
struct Entry {
  std::string host_id;
  ShmPeer peer;
};

std::vector<Entry> introduce(const CommOptions& o, const ShmOffer& offer) {
  const std::string host_id = o.host_id.empty() ? this_host_id() : o.host_id;
  const std::string mine =
      wire::pack({host_id, o.store->options().host, std::to_string(getpid()),
                  std::to_string(offer.arena.get()), std::to_string(offer.control.get())});
  std::vector<Entry> entries;
  for (const std::string& text : o.store->gather("comm/ranks", o.rank, o.size, mine, o.timeout)) {
    const auto parts = wire::unpack(text);
    check_file(parts.size() == 5, "comm: a rank introduces itself with ", parts.size(), " parts");
    entries.push_back({parts[0],
                       {{static_cast<int>(entries.size()), parts[1], std::stoll(parts[2])},
                        std::stoi(parts[3]),
                        std::stoi(parts[4])}});
  }
  return entries;
}

// The address that this machine uses to reach the store: the others can reach it there.
std::string way_to(const Endpoint& store) {
  const Fd fd = connect_to(store, after(Milliseconds(5'000)));
  return local_endpoint(fd.get()).host;
}

}  // namespace

std::unique_ptr<Communicator> make_communicator(CommOptions o) {
  check_arg(o.size >= 1 && o.rank >= 0 && o.rank < o.size, "comm: rank ", o.rank, " of ", o.size);
  o.timeout = timeout_or_default(o.timeout);
  if (o.backend == "mpi") return make_mpi(o);
  check_arg(o.backend == "shm" || o.backend == "gloo" || o.backend == "hierarchical",
            "comm: unknown backend '", o.backend, "'; known: hierarchical, shm, gloo, mpi");
  if (o.size == 1) return std::move(make_local(1, o.timeout)[0]);
  check_arg(o.store != nullptr, "comm: backend ", o.backend,
            " needs the rendezvous store; start the program with fleetrun");
  if (o.interface.empty()) o.interface = env::get("FLEETX_COMM_INTERFACE").value_or("");
  const ShmOffer offer = offer_shared_memory();
  const std::vector<Entry> entries = introduce(o, offer);

  std::vector<Member> members;
  std::vector<ShmPeer> here;
  std::vector<std::string> hosts;
  std::vector<int> host_of;
  int place = 0;
  for (const Entry& e : entries) {
    members.push_back(e.peer.member);
    auto host = std::find(hosts.begin(), hosts.end(), e.host_id);
    if (host == hosts.end()) host = hosts.insert(hosts.end(), e.host_id);
    host_of.push_back(static_cast<int>(host - hosts.begin()));
    if (e.host_id != entries[static_cast<size_t>(o.rank)].host_id) continue;
    if (e.peer.member.rank == o.rank) place = static_cast<int>(here.size());
    here.push_back(e.peer);
  }
  const auto gloo = [&] {
    if (o.interface.empty()) o.interface = way_to(o.store->options().server);
    return make_gloo(o.rank, members, o.store, o.interface, o.timeout);
  };
  if (o.backend == "gloo") return gloo();
  check_arg(o.backend != "shm" || hosts.size() == 1, "comm: backend shm, but the ranks are on ",
            hosts.size(), " hosts; use hierarchical");
  auto host = make_shm(place, here, offer, o.store, o.timeout);
  if (hosts.size() == 1) return host;
  return make_hierarchical(o.rank, host_of, std::move(host), gloo(), o.store, o.timeout);
}

}  // namespace fleetx::comm
