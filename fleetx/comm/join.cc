#include "fleetx/comm/join.h"

#include <unistd.h>

#include <exception>

#include "fleetx/base/error.h"
#include "fleetx/base/log.h"
#include "fleetx/base/rng.h"

namespace fleetx::comm {
namespace {

using StartedBy = JobEnv::StartedBy;

constexpr Milliseconds kTimeToStartByHand{300'000};  // for the user to start all workers

// All ranks must derive the same address without communicating.
Endpoint store_without_launcher(const JobEnv& job) {
  if (!job.store.empty()) return parse_endpoint(job.store);
  check_arg(job.started_by == StartedBy::kSlurm, "comm: ", job.world,
            " workers without a launcher have no rendezvous address; start them with fleetrun");
  constexpr int kFirst = 20'000, kPorts = 10'000;  // below the ephemeral ports
  const int port = kFirst + static_cast<int>(stable_hash(job.job_id) % kPorts);
  if (job.nodes == 1) return {"127.0.0.1", port};
  check_arg(!job.hosts.empty(),
            "srun: SLURM_STEP_NODELIST does not name the machines; set "
            "FLEETX_STORE=ip:port to an address of the first one");
  return {job.hosts[0], port};
}

std::string secret_of(const JobEnv& job) {
  if (!job.secret.empty()) return job.secret;
  if (job.rank == 0 && job.nodes > 1)
    log::warning("comm",
                 "the job's secret is derived from its id; on an untrusted network, "
                 "set FLEETX_JOB_SECRET to random hex digits");
  // Workers started by hand may run as different users on each machine.
  if (job.started_by != StartedBy::kSlurm) return secret_from(job.job_id);
  return secret_from(str(job.job_id, " ", getuid()));
}

}  // namespace

Membership::~Membership() {
  workers_.reset();
  if (!without_launcher_ || !store_ || std::uncaught_exceptions() > 0) return;
  try {
    store_->barrier("comm/end", store_->options().rank, members_);
  } catch (const Error&) {
    // A worker has failed, and the others have been told.
  }
}

Membership join_workers(const JobEnv& job) {
  check_arg(job.role == JobRole::kWorker, "only workers join the collective group; this is ",
            to_string(job.role), " ", job.rank);
  Membership joined;
  CommOptions options{.rank = job.rank, .size = job.world};
  if (job.world > 1 && job.started_by == StartedBy::kMpi) {
    options.backend = "mpi";
  } else if (job.world > 1) {
    StoreOptions store{.rank = job.rank};
    const bool by_hand =
        job.started_by == StartedBy::kByHand || job.started_by == StartedBy::kEndpoints;
    joined.without_launcher_ = by_hand || job.started_by == StartedBy::kSlurm;
    if (joined.without_launcher_) {
      if (by_hand) store.timeout = kTimeToStartByHand;
      store.server = store_without_launcher(job);
      store.secret = secret_of(job);
      store.job = job.job_id;
      if (job.rank == 0)
        joined.server_ = std::make_unique<StoreServer>(
            StoreServer::Options{.listen = store.server, .secret = store.secret, .job = store.job});
    } else {
      store = store_options_from_env(job.rank);
    }
    joined.store_ = std::make_shared<StoreClient>(store);
    joined.members_ = job.world;
    options.store = joined.store_;
  }
  joined.workers_ = make_communicator(std::move(options));
  return joined;
}

}  // namespace fleetx::comm
