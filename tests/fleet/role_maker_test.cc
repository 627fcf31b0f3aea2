#include "fleetx/fleet/role_maker.h"

#include <gtest/gtest.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <functional>
#include <iostream>
#include <map>

#include "fleetx/comm/join.h"
#include "tests/support/expect_error.h"

namespace fleetx::fleet {
namespace {

using fleetx::testing::contains;
using fleetx::testing::error_of;
using Endpoints = std::vector<std::string>;
using Variables = std::map<std::string, std::string>;

JobEnv::Lookup lookup(Variables variables) {
  return [variables = std::move(variables)](std::string_view name) -> std::optional<std::string> {
    const auto found = variables.find(std::string(name));
    return found == variables.end() ? std::nullopt : std::optional(found->second);
  };
}

RoleMaker collective(const Variables& variables) {
  return RoleMaker::from_environment(JobKind::kCollective, lookup(variables));
}
RoleMaker with_servers(const Variables& variables) {
  return RoleMaker::from_environment(JobKind::kServers, lookup(variables));
}

TEST(RoleMaker, AloneItIsTheOnlyWorker) {
  for (const RoleMaker& roles : {collective({}), with_servers({})}) {
    EXPECT_TRUE(roles.is_non_distributed());
    EXPECT_TRUE(roles.is_worker() && roles.is_first_worker() && !roles.is_server());
    EXPECT_EQ(roles.worker_num(), 1);
    EXPECT_EQ(roles.server_num(), 0);
    EXPECT_EQ(roles.worker_endpoints(), Endpoints{"127.0.0.1:6170"});
  }
}

const Variables kCollective{
    {"PADDLE_TRAINER_ID", "3"},
    {"PADDLE_TRAINERS_NUM", "4"},
    {"PADDLE_TRAINER_ENDPOINTS", "10.0.0.1:6070,10.0.0.1:6071,10.0.0.2:6070,10.0.0.2:6071"},
};

TEST(RoleMaker, CollectiveFromTheEnvironment) {
  const RoleMaker roles = collective(kCollective);
  EXPECT_FALSE(roles.is_non_distributed());
  EXPECT_EQ(roles.role(), Role::kWorker);
  EXPECT_EQ(roles.worker_index(), 3);
  EXPECT_EQ(roles.worker_num(), 4);
  EXPECT_EQ(roles.node_num(), 2);
  EXPECT_EQ(roles.local_rank(), 1);
  EXPECT_FALSE(roles.is_first_worker());
  EXPECT_EQ(roles.worker_endpoints().size(), 4u);
  EXPECT_EQ(roles.job().started_by, JobEnv::StartedBy::kEndpoints);
  EXPECT_TRUE(contains(error_of([] { with_servers(kCollective); }), "ask for is_collective"));
}

const Variables kServer{
    {"TRAINING_ROLE", "PSERVER"},
    {"PADDLE_PSERVERS_IP_PORT_LIST", "10.0.0.1:7000,10.0.0.2:7001"},
    {"PADDLE_TRAINERS_NUM", "3"},
    {"POD_IP", "10.0.0.2"},
    {"PADDLE_PORT", "7001"},
    {"PADDLE_TRAINER_ID", "2"},  // for the tests that make a worker of it
};

TEST(RoleMaker, ServersAndWorkersFromTheEnvironment) {
  const RoleMaker server = with_servers(kServer);
  EXPECT_TRUE(server.is_server() && !server.is_worker() && !server.is_first_worker());
  EXPECT_EQ(server.server_index(), 1);
  EXPECT_EQ(server.server_num(), 2);
  EXPECT_EQ(server.worker_num(), 3);
  EXPECT_EQ(server.server_endpoints().at(1), "10.0.0.2:7001");
  Variables variables = kServer;
  variables["TRAINING_ROLE"] = "TRAINER";
  const RoleMaker worker = with_servers(variables);
  EXPECT_TRUE(worker.is_worker());
  EXPECT_EQ(worker.worker_index(), 2);
  variables["TRAINING_ROLE"] = "HETER_TRAINER";
  variables["PADDLE_HETER_TRAINER_IP_PORT_LIST"] = "10.0.0.2:7001";
  EXPECT_EQ(with_servers(variables).role(), Role::kHeterWorker);
  EXPECT_TRUE(with_servers(variables).is_server());
  EXPECT_TRUE(contains(error_of([] { collective(kServer); }), "PADDLE_PSERVERS_IP_PORT_LIST"));
}

TEST(RoleMaker, EveryMissingVariableIsNamed) {
  for (const char* name : {"TRAINING_ROLE", "PADDLE_TRAINERS_NUM", "POD_IP", "PADDLE_PORT"}) {
    Variables variables = kServer;
    variables.erase(name);
    EXPECT_TRUE(contains(error_of([&] { with_servers(variables); }), name));
  }
  Variables worker = kServer;
  worker["TRAINING_ROLE"] = "TRAINER";
  worker.erase("PADDLE_TRAINER_ID");
  EXPECT_TRUE(contains(error_of([&] { with_servers(worker); }), "PADDLE_TRAINER_ID"));
  worker["PADDLE_TRAINER_ENDPOINTS"] = "a:1,b:1,c:1";  // the number is needed all the same
  worker["PADDLE_TRAINER_ID"] = "0";
  worker.erase("PADDLE_TRAINERS_NUM");
  EXPECT_TRUE(contains(error_of([&] { with_servers(worker); }), "PADDLE_TRAINERS_NUM"));
}

TEST(RoleMaker, UserDefined) {
  const auto make = [](RoleMaker::UserDefined roles) {
    return RoleMaker::user_defined(roles, lookup({}));
  };
  const Endpoints servers{"127.0.0.1:36001", "127.0.0.1:36002"};
  const RoleMaker server =
      make({.current_id = 1, .role = Role::kServer, .worker_num = 2, .server_endpoints = servers});
  EXPECT_EQ(server.role(), Role::kServer);
  EXPECT_EQ(server.server_index(), 1);
  EXPECT_EQ(server.server_endpoints(), servers);
  EXPECT_EQ(server.worker_num(), 2);
  EXPECT_FALSE(server.is_non_distributed());
  const RoleMaker worker = make({.server_endpoints = servers, .worker_endpoints = {"a:1", "b:2"}});
  EXPECT_TRUE(worker.is_first_worker());
  EXPECT_EQ(worker.worker_num(), 2);
  EXPECT_EQ(worker.node_num(), 2);

  const auto refused = [&](RoleMaker::UserDefined roles, const std::string& part) {
    EXPECT_TRUE(contains(error_of([&] { make(roles); }), part));
  };
  refused({.worker_num = 1}, "server_endpoints is empty");
  refused({.worker_num = 1, .server_endpoints = {"a:1", ""}}, "empty entry");
  refused({.worker_num = 1, .server_endpoints = {"a:1", "a:1"}}, "'a:1' twice");
  refused({.worker_num = 1, .server_endpoints = {"a"}}, "HOST:PORT");
  refused({.worker_num = 1, .server_endpoints = {"a:0"}}, "port");
  refused({.server_endpoints = servers}, "worker_num must be > 0");
  refused({.worker_num = -1, .server_endpoints = servers}, "worker_num must be > 0, got -1");
  refused({.current_id = 2, .worker_num = 2, .server_endpoints = servers}, "from 0 to 1");
  refused({.current_id = -1, .worker_num = 2, .server_endpoints = servers}, "current_id -1");
  refused({.current_id = 2, .role = Role::kServer, .worker_num = 9, .server_endpoints = servers},
          "2 servers");
  refused({.role = Role::kAll, .worker_num = 1, .server_endpoints = servers}, "not all");
  refused({.worker_num = 3, .server_endpoints = servers, .worker_endpoints = {"a:1"}},
          "worker_num is 3");
}

TEST(RoleMaker, UserDefinedCollective) {
  const Endpoints workers{"127.0.0.1:36001", "127.0.0.1:36002"};
  const RoleMaker roles = RoleMaker::user_defined_collective(1, workers, lookup({}));
  EXPECT_TRUE(roles.is_worker());
  EXPECT_EQ(roles.worker_index(), 1);
  EXPECT_EQ(roles.worker_num(), 2);
  EXPECT_EQ(roles.node_num(), 1);
  EXPECT_EQ(roles.local_rank(), 1);
  EXPECT_EQ(roles.job().store, workers[0]);
  EXPECT_TRUE(contains(error_of([] { RoleMaker::user_defined_collective(0, {}); }), "is empty"));
  EXPECT_TRUE(
      contains(error_of([&] { RoleMaker::user_defined_collective(2, workers); }), "from 0 to 1"));
  // Scripts that give on what fleetrun told them meet where fleetrun says.
  const Variables told{{"PADDLE_TRAINER_ID", "1"},
                       {"PADDLE_TRAINER_ENDPOINTS", "127.0.0.1:36001,127.0.0.1:36002"},
                       {"FLEETX_STORE", "127.0.0.1:5000"}};
  const JobEnv job = RoleMaker::user_defined_collective(1, workers, lookup(told)).job();
  EXPECT_EQ(job.started_by, JobEnv::StartedBy::kFleetrun);
  EXPECT_EQ(job.store, "127.0.0.1:5000");
  EXPECT_TRUE(
      contains(error_of([&] { RoleMaker::user_defined_collective(0, workers, lookup(told)); }),
               "its launcher started it as 1"));
}

TEST(RoleMaker, MpiSymmetric) {
  const auto make = [](const std::string& rank, const std::string& size) {
    return RoleMaker::mpi_symmetric(
        lookup({{"OMPI_COMM_WORLD_RANK", rank}, {"OMPI_COMM_WORLD_SIZE", size}}));
  };
  EXPECT_TRUE(make("0", "4").is_server());
  EXPECT_TRUE(make("1", "4").is_first_worker());
  EXPECT_EQ(make("2", "4").server_index(), 1);
  EXPECT_EQ(make("3", "4").worker_index(), 1);
  EXPECT_TRUE(make("3", "4").is_worker());
  EXPECT_EQ(make("3", "4").worker_num(), 2);
  EXPECT_EQ(make("3", "4").server_num(), 2);
  EXPECT_TRUE(contains(error_of([&] { make("0", "3"); }), "even"));
  EXPECT_TRUE(contains(error_of([] { RoleMaker::mpi_symmetric(lookup({})); }), "mpirun"));
}

// --- workers started by hand, as processes -------------------------------------------------------

Endpoints free_endpoints(int count) {
  std::vector<Fd> held;  // all at once, so that none comes twice
  Endpoints endpoints;
  for (int i = 0; i < count; ++i) {
    held.push_back(comm::listen_on({"127.0.0.1", 0}));
    endpoints.push_back(to_string(comm::local_endpoint(held.back().get())));
  }
  return endpoints;
}

using Worker = std::function<void(const comm::Membership&, int rank)>;

// Exit codes by rank; a process that a signal ended has 128 + signal.
std::vector<int> run_workers(int count, const Worker& fn) {
  const Endpoints endpoints = free_endpoints(count);
  std::vector<pid_t> pids;
  for (int rank = 0; rank < count; ++rank) {
    const pid_t parent = getpid(), child = fork();
    if (child != 0) {
      pids.push_back(child);
      continue;
    }
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (getppid() != parent) _exit(3);
    alarm(60);
    try {
      const RoleMaker roles = RoleMaker::user_defined_collective(rank, endpoints, lookup({}));
      const comm::Membership joined = comm::join_workers(roles.job());
      fn(joined, rank);
    } catch (const std::exception& e) {
      std::cerr << "rank " << rank << ": " << e.what() << std::endl;
      _exit(1);
    }
    _exit(::testing::Test::HasFailure() ? 2 : 0);
  }
  std::vector<int> codes;
  for (const pid_t pid : pids) {
    int status = 0;
    waitpid(pid, &status, 0);
    codes.push_back(WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status));
  }
  return codes;
}

TEST(ByHand, WorkersMeetAtTheFirstEndpoint) {
  const std::vector<int> codes = run_workers(3, [](const comm::Membership& joined, int rank) {
    double sum = rank + 1;
    joined.workers().all_reduce(&sum, 1, f64);
    EXPECT_EQ(sum, 6.0);
    EXPECT_EQ(joined.workers().rank(), rank);
  });
  EXPECT_EQ(codes, (std::vector<int>{0, 0, 0}));
}

TEST(ByHand, WhoDiesIsNamed) {
  const std::vector<int> codes = run_workers(3, [](const comm::Membership& joined, int rank) {
    joined.workers().barrier();
    if (rank == 1) kill(getpid(), SIGKILL);
    testing::expect_error(Error::Kind::kComm, {"rank 1"}, [&] { joined.workers().barrier(); });
  });
  EXPECT_EQ(codes, (std::vector<int>{0, 128 + SIGKILL, 0}));
}

TEST(ByHand, SeveralWorkersNeedAPlaceToMeet) {
  JobEnv job;
  job.world = 2;
  EXPECT_TRUE(contains(error_of([&] { comm::join_workers(job); }), "have no rendezvous address"));
}

}  // namespace
}  // namespace fleetx::fleet
