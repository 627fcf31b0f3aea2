// Chooses and builds the communicator of a job.
#include <arpa/inet.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>

#include "fleetx/base/env.h"
#include "fleetx/base/error.h"
#include "fleetx/comm/communicator.h"
#include "fleetx/comm/hierarchical.h"
#include "fleetx/comm/mpi.h"
#include "fleetx/comm/shm.h"
#include "fleetx/comm/store_wire.h"
#include "fleetx/comm/tcp.h"
#include "fleetx/comm/timeouts.h"

namespace fleetx::comm {
namespace {

// What the ranks exchange before they are connected.
struct RankInfo {
  std::string host_id;
  ShmPeer peer;
};

std::vector<RankInfo> exchange_rank_info(const CommOptions& o, const ShmFiles& files) {
  const std::string host_id = o.host_id.empty() ? this_host_id() : o.host_id;
  const std::string mine =
      wire::pack({host_id, o.store->options().host, std::to_string(getpid()),
                  std::to_string(files.arena.get()), std::to_string(files.control.get())});
  std::vector<RankInfo> ranks;
  for (const std::string& text : o.store->gather("comm/ranks", o.rank, o.size, mine, o.timeout)) {
    const auto parts = wire::unpack(text);
    check_file(parts.size() == 5, "comm: the entry of a rank in the store has ", parts.size(),
               " parts");
    ranks.push_back({parts[0],
                     {{static_cast<int>(ranks.size()), parts[1], std::stoll(parts[2])},
                      std::stoi(parts[3]),
                      std::stoi(parts[4])}});
  }
  return ranks;
}

// The local address of the route to the store: peers can reach this machine there.
std::string local_address_towards(const Endpoint& store) {
  const Fd fd = connect_to(store, after(Milliseconds(5'000)));
  return local_endpoint(fd.get()).host;
}

}  // namespace

std::unique_ptr<Communicator> make_communicator(CommOptions o) {
  check_arg(o.size >= 1 && o.rank >= 0 && o.rank < o.size, "comm: rank ", o.rank, " of ", o.size);
  o.timeout = timeout_or_default(o.timeout);
  if (o.backend == "mpi") return make_mpi(o);
  check_arg(o.backend == "shm" || o.backend == "tcp" || o.backend == "hierarchical",
            "comm: unknown backend '", o.backend, "'; known: hierarchical, shm, tcp, mpi");
  if (o.size == 1) return std::move(make_local(1, o.timeout)[0]);
  check_arg(o.store != nullptr, "comm: backend ", o.backend,
            " needs the rendezvous store; start the program with fleetrun");
  if (o.interface.empty()) o.interface = env::get("FLEETX_COMM_INTERFACE").value_or("");
  const ShmFiles files = create_shared_files();
  const std::vector<RankInfo> ranks = exchange_rank_info(o, files);

  std::vector<Member> members;
  std::vector<ShmPeer> here;
  std::vector<std::string> hosts;
  std::vector<int> host_of;
  int place = 0;
  for (const RankInfo& e : ranks) {
    members.push_back(e.peer.member);
    auto host = std::find(hosts.begin(), hosts.end(), e.host_id);
    if (host == hosts.end()) host = hosts.insert(hosts.end(), e.host_id);
    host_of.push_back(static_cast<int>(host - hosts.begin()));
    if (e.host_id != ranks[static_cast<size_t>(o.rank)].host_id) continue;
    if (e.peer.member.rank == o.rank) place = static_cast<int>(here.size());
    here.push_back(e.peer);
  }
  const auto tcp = [&] {
    if (o.interface.empty()) o.interface = local_address_towards(o.store->options().server);
    return make_tcp(o.rank, members, o.store, o.interface, o.timeout);
  };
  if (o.backend == "tcp") return tcp();
  check_arg(o.backend != "shm" || hosts.size() == 1, "comm: backend shm, but the ranks are on ",
            hosts.size(), " hosts; use hierarchical");
  auto host = make_shm(place, here, files, o.store, o.timeout);
  if (hosts.size() == 1) return host;
  return make_hierarchical(o.rank, host_of, std::move(host), tcp(), o.store, o.timeout);
}

}  // namespace fleetx::comm
