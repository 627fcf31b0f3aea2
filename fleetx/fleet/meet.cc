#include "fleetx/fleet/meet.h"

#include <cstring>

#include "fleetx/base/error.h"
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

  std::vector<int> own;  // ranks of this role
  for (int rank = server ? 0 : 1; rank < all.world; rank += 2) own.push_back(rank);
  std::shared_ptr<comm::Communicator> group = met.workers->group(own);
  met.workers = server ? nullptr : std::move(group);
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

}  // namespace fleetx::fleet
