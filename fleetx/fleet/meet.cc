#include "fleetx/fleet/meet.h"

#include <cstring>

#include "fleetx/base/error.h"
#include "fleetx/comm/store_group.h"
#include "fleetx/launch/address.h"

namespace fleetx::fleet {
namespace {

using StartedBy = JobEnv::StartedBy;

Meeting among(const JobEnv& job) {
  Meeting met;
  met.membership = std::make_shared<comm::Membership>(comm::join_workers(job));
  met.workers = {met.membership, &met.membership->workers()};
  return met;
}

// An address of this machine that others can reach.
std::string own_host(int nodes) {
  if (nodes == 1) return "127.0.0.1";
  const auto resolved = launch::resolve_by_system(launch::own_host_name());
  check_arg(resolved.has_value() && !launch::is_loopback(*resolved),
            "MPI roles: the name of this machine, ", launch::own_host_name(),
            ", does not resolve to an address that others can reach");
  return *resolved;
}

// All processes form one group first, in which the servers tell their addresses and the first one a
// secret.
Meeting meet_by_mpi(RoleMaker& role) {
  JobEnv all = role.job();
  const bool server = role.is_server();
  all.role = JobRole::kWorker;
  all.rank = 2 * all.rank + (server ? 0 : 1);
  all.world *= 2;
  all.server_endpoints.clear();
  Meeting met = among(all);

  struct Card {
    char text[128] = {};
  };
  const auto gather = [&](const std::string& own) {
    Card card;
    FLEETX_CHECK(own.size() < sizeof card.text);
    std::memcpy(card.text, own.data(), own.size());
    std::vector<Card> cards(static_cast<size_t>(all.world));
    met.workers->all_gather(&card, cards.data(), sizeof card, u8);
    return cards;
  };
  Fd socket = server ? comm::listen_on({own_host(all.nodes), 0}) : Fd();
  std::vector<std::string> endpoints;
  for (const Card& card : gather(server ? comm::to_string(comm::local_endpoint(socket.get())) : ""))
    if (card.text[0] != '\0') endpoints.emplace_back(card.text);
  const std::string secret = gather(all.rank == 0 ? comm::make_secret() : "").front().text;
  role.set_server_endpoints(std::move(endpoints), secret,
                            server ? std::optional(socket.release()) : std::nullopt);

  std::vector<int> servers, everyone;  // ranks
  for (int rank = 0; rank < all.world; rank += 2) {
    servers.push_back(rank);
    everyone.push_back(rank + 1);
  }
  const std::vector<int> workers = everyone;
  everyone.insert(everyone.end(), servers.begin(), servers.end());
  const std::shared_ptr<comm::Communicator> any = met.workers;
  met.all = any->group(everyone);
  std::shared_ptr<comm::Communicator> own = any->group(server ? servers : workers);
  met.workers = server ? nullptr : own;
  met.servers = server ? own : nullptr;
  return met;
}

}  // namespace

Meeting meet(RoleMaker& role) {
  const JobEnv& job = role.job();
  if (role.server_num() == 0) return among(job);
  if (job.started_by == StartedBy::kMpi) return meet_by_mpi(role);
  if (role.is_server()) return {};
  // The group of the others was made without this worker: only the servers take it back.
  if (job.rejoin > 0) return {};
  if (job.world == 1 || (job.started_by == StartedBy::kFleetrun && !job.store.empty()))
    return among(job);
  if (job.worker_endpoints.empty()) return {};
  JobEnv by_endpoints = job;
  by_endpoints.started_by = StartedBy::kEndpoints;
  meet_at_first_worker(by_endpoints);
  return among(by_endpoints);
}

std::shared_ptr<comm::Communicator> meet_servers(const Meeting& met, const RoleMaker& role,
                                                 std::string_view world) {
  const bool all = world == "all";
  check_arg(role.server_num() > 0, "comm_world '", world, "': this job has no parameter servers");
  check_arg(all || role.is_server(), "comm_world 'server': this process is worker ",
            role.worker_index(), "; only servers call it");
  const JobEnv& job = role.job();
  check_arg(job.rejoin == 0, "comm_world '", world,
            "': this process was started again while the others went on, so it takes no part in "
            "what they compute together");
  if (job.started_by == StartedBy::kMpi) return all ? met.all : met.servers;
  if (job.started_by != StartedBy::kFleetrun || job.store.empty())
    fail(Error::Kind::kUnsupported,
         str("comm_world '", world,
             "': servers and workers that are started one by one have no way to each other; start "
             "the job with fleetrun or mpirun"));
  const int index = role.is_server() ? role.server_index() : role.worker_index();
  // Its end is no failure of a worker.
  auto store = std::make_shared<comm::StoreClient>(comm::store_options_from_env(-1));
  return comm::make_store_group(std::move(store), std::string(world),
                                all && role.is_server() ? role.worker_num() + index : index,
                                all ? role.worker_num() + role.server_num() : role.server_num());
}

}  // namespace fleetx::fleet
