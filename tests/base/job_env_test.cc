#include "fleetx/base/job_env.h"

#include <gtest/gtest.h>

#include "tests/support/expect_error.h"

namespace fleetx::testing {
namespace {

using StartedBy = JobEnv::StartedBy;
using Variables = std::map<std::string, std::string>;

JobEnv read(const Variables& variables) {
  return JobEnv::from([&](std::string_view name) -> std::optional<std::string> {
    const auto found = variables.find(std::string(name));
    if (found == variables.end() || found->second.empty()) return std::nullopt;
    return found->second;
  });
}

void expect_refused(const Variables& variables, std::initializer_list<std::string_view> parts) {
  expect_error(Error::Kind::kInvalidArgument, parts, [&] { read(variables); });
}

const Variables kCollective{
    {"PADDLE_TRAINER_ID", "2"},
    {"PADDLE_TRAINERS_NUM", "4"},
    {"PADDLE_CURRENT_ENDPOINT", "10.0.0.2:6070"},
    {"PADDLE_TRAINER_ENDPOINTS", "10.0.0.1:6070,10.0.0.1:6071,10.0.0.2:6070,10.0.0.2:6071"},
    {"FLAGS_selected_gpus", "0"},
};

Variables with(Variables variables, const Variables& changes) {
  for (const auto& [name, value] : changes) variables[name] = value;
  return variables;
}

TEST(JobEnv, BytesHaveUnits) {
  EXPECT_EQ(parse_bytes("--memory", "1048576"), 1 << 20);
  EXPECT_EQ(parse_bytes("--memory", "512M"), int64_t{512} << 20);
  EXPECT_EQ(parse_bytes("--memory", "1.5G"), int64_t{3} << 29);
  for (const char* text : {"", "M", "4X", "4 G", "4GB", "-1", "0", "nan", "inf", "1e30"})
    expect_error(Error::Kind::kInvalidArgument, {"--memory='", text, "512M"},
                 [&] { parse_bytes("--memory", text); });
}

TEST(JobEnv, NobodyStartedIt) {
  const JobEnv job = read({});
  EXPECT_EQ(job.started_by, StartedBy::kByHand);
  EXPECT_EQ(job.rank, 0);
  EXPECT_EQ(job.world, 1);
  EXPECT_EQ(job.worker_endpoints, std::vector<std::string>{"127.0.0.1:6170"});
  EXPECT_TRUE(job.store.empty());
  EXPECT_FALSE(job.listen_fd.has_value());
}

TEST(JobEnv, CollectiveWorker) {
  const JobEnv job = read(with(kCollective, {{"FLEETX_STORE", "10.0.0.1:6072"},
                                             {"FLEETX_JOB_SECRET", "ab12"},
                                             {"FLEETX_JOB_ID", "night"},
                                             {"FLEETX_LISTEN_FD", "7"},
                                             {"FLEETX_RESTART", "1"}}));
  EXPECT_EQ(job.started_by, StartedBy::kFleetrun);
  EXPECT_EQ(job.rank, 2);
  EXPECT_EQ(job.world, 4);
  EXPECT_EQ(job.local_rank, 0);
  EXPECT_EQ(job.local_world, 2);
  EXPECT_EQ(job.node, 1);
  EXPECT_EQ(job.nodes, 2);
  EXPECT_EQ(job.endpoint, "10.0.0.2:6070");
  EXPECT_EQ(job.store, "10.0.0.1:6072");
  EXPECT_EQ(job.secret, "ab12");
  EXPECT_EQ(job.job_id, "night");
  EXPECT_EQ(job.listen_fd, 7);
  EXPECT_EQ(job.restart, 1);
}

TEST(JobEnv, WithoutAStoreTheWorkersMeetAtTheFirstEndpoint) {
  const JobEnv job = read(kCollective);
  EXPECT_EQ(job.started_by, StartedBy::kEndpoints);
  EXPECT_EQ(job.store, "10.0.0.1:6070");
  // The same on all workers, another one for other endpoints; a given name is kept.
  const JobEnv first = read(with(
      kCollective, {{"PADDLE_TRAINER_ID", "0"}, {"PADDLE_CURRENT_ENDPOINT", "10.0.0.1:6070"}}));
  EXPECT_EQ(job.job_id, first.job_id);
  EXPECT_NE(job.job_id, read({{"PADDLE_TRAINER_ID", "0"},
                              {"PADDLE_TRAINER_ENDPOINTS", "10.0.0.1:6070,10.0.0.2:6070"}})
                            .job_id);
  EXPECT_EQ(read(with(kCollective, {{"FLEETX_JOB_ID", "night"}})).job_id, "night");
}

TEST(JobEnv, ServerFindsItsNumberByItsAddress) {
  const Variables server{{"TRAINING_ROLE", "PSERVER"},
                         {"PADDLE_PSERVERS_IP_PORT_LIST", "10.0.0.1:6170,10.0.0.2:6171"},
                         {"PADDLE_TRAINERS_NUM", "8"},
                         {"POD_IP", "10.0.0.2"},
                         {"PADDLE_PORT", "6171"}};
  const JobEnv job = read(server);
  EXPECT_EQ(job.role, JobRole::kServer);
  EXPECT_EQ(job.rank, 1);
  EXPECT_EQ(job.world, 8);
  EXPECT_EQ(job.endpoint, "10.0.0.2:6171");
  expect_refused(with(server, {{"PADDLE_PORT", "6170"}}),
                 {"10.0.0.2:6170", "not in PADDLE_PSERVERS_IP_PORT_LIST"});
  expect_refused(with(server, {{"POD_IP", ""}}), {"POD_IP is missing"});
  expect_refused(with(server, {{"TRAINING_ROLE", ""}}), {"TRAINING_ROLE is missing"});
  expect_refused(with(server, {{"TRAINING_ROLE", "BOSS"}}), {"'BOSS'", "PSERVER"});
}

TEST(JobEnv, WhatContradictsItselfIsRefused) {
  expect_refused(with(kCollective, {{"PADDLE_TRAINER_ENDPOINTS",
                                     "10.0.0.1:6070,10.0.0.1:6071,10.0.0.1:6070,10.0.0.2:6071"}}),
                 {"PADDLE_TRAINER_ENDPOINTS has 10.0.0.1:6070 twice"});
  expect_refused(with(kCollective, {{"PADDLE_TRAINERS_NUM", "3"}}),
                 {"PADDLE_TRAINERS_NUM=3", "has 4 entries"});
  expect_refused(with(kCollective, {{"PADDLE_TRAINER_ID", "4"}}),
                 {"PADDLE_TRAINER_ID=4", "less than"});
  expect_refused(with(kCollective, {{"PADDLE_TRAINER_ID", "-1"}}), {"'-1'"});
  expect_refused(with(kCollective, {{"PADDLE_TRAINER_ID", "one"}}), {"'one'"});
  expect_refused(with(kCollective, {{"PADDLE_TRAINER_ID", ""}}), {"PADDLE_TRAINER_ID is missing"});
  expect_refused(with(kCollective, {{"PADDLE_CURRENT_ENDPOINT", "10.0.0.1:6070"}}),
                 {"is not number 2"});
}

TEST(JobEnv, OpenMpi) {
  const JobEnv job = read({{"OMPI_COMM_WORLD_RANK", "3"},
                           {"OMPI_COMM_WORLD_SIZE", "4"},
                           {"OMPI_COMM_WORLD_LOCAL_RANK", "1"},
                           {"OMPI_COMM_WORLD_LOCAL_SIZE", "2"},
                           {"PMIX_NAMESPACE", "77"},
                           {"SLURM_PROCID", "0"},
                           {"SLURM_STEP_ID", "0"}});
  EXPECT_EQ(job.started_by, StartedBy::kMpi);
  EXPECT_EQ(job.rank, 3);
  EXPECT_EQ(job.world, 4);
  EXPECT_EQ(job.local_rank, 1);
  EXPECT_EQ(job.nodes, 2);
  EXPECT_EQ(job.node, 1);
  EXPECT_EQ(job.job_id, "mpi-77");
  EXPECT_TRUE(job.endpoint.empty());
  expect_refused({{"OMPI_COMM_WORLD_RANK", "3"}}, {"OMPI_COMM_WORLD_SIZE is missing"});
  expect_refused({{"OMPI_COMM_WORLD_RANK", "3"}, {"OMPI_COMM_WORLD_SIZE", "3"}}, {"less than"});
}

TEST(JobEnv, Mpich) {
  const JobEnv job = read(
      {{"PMI_RANK", "1"}, {"PMI_SIZE", "2"}, {"MPI_LOCALRANKID", "1"}, {"MPI_LOCALNRANKS", "2"}});
  EXPECT_EQ(job.started_by, StartedBy::kMpi);
  EXPECT_EQ(job.rank, 1);
  EXPECT_EQ(job.local_world, 2);
}

const Variables kSlurm{{"SLURM_PROCID", "5"},
                       {"SLURM_STEP_NUM_TASKS", "7"},
                       {"SLURM_LOCALID", "1"},
                       {"SLURM_NODEID", "2"},
                       {"SLURM_STEP_NUM_NODES", "4"},
                       {"SLURM_STEP_TASKS_PER_NODE", "2(x3),1"},
                       {"SLURM_STEP_NODELIST", "n[01-03,7]"},
                       {"SLURM_JOB_ID", "99"},
                       {"SLURM_STEP_ID", "0"},
                       {"SLURM_NTASKS", "100"}};

TEST(JobEnv, Slurm) {
  const JobEnv job = read(kSlurm);
  EXPECT_EQ(job.started_by, StartedBy::kSlurm);
  EXPECT_EQ(job.rank, 5);
  EXPECT_EQ(job.world, 7);
  EXPECT_EQ(job.local_rank, 1);
  EXPECT_EQ(job.local_world, 2);
  EXPECT_EQ(job.node, 2);
  EXPECT_EQ(job.hosts, (std::vector<std::string>{"n01", "n02", "n03", "n7"}));
  EXPECT_EQ(job.job_id, "slurm-99.0");
  EXPECT_EQ(read(with(kSlurm, {{"SLURM_NODEID", "3"}})).local_world, 1);
  expect_refused(with(kSlurm, {{"SLURM_STEP_TASKS_PER_NODE", "two"}}), {"'two'"});
}

TEST(JobEnv, BatchScriptOfSlurmIsAlone) {
  EXPECT_EQ(read(with(kSlurm, {{"SLURM_STEP_ID", ""}})).started_by, StartedBy::kByHand);
}

TEST(JobEnv, HostLists) {
  using List = std::vector<std::string>;
  EXPECT_EQ(expand_host_list(""), List{});
  EXPECT_EQ(expand_host_list("a,b"), (List{"a", "b"}));
  EXPECT_EQ(expand_host_list("n[08-10]"), (List{"n08", "n09", "n10"}));
  EXPECT_EQ(expand_host_list("r[1-2]n[1-2]x,m"), (List{"r1n1x", "r1n2x", "r2n1x", "r2n2x", "m"}));
  for (const char* bad : {"n[1", "n[a-b]", "n[3-1]", "n[1-99999999]", "n[-]", "n[0-9999]m[0-9999]",
                          "n[0-60000,0-60000]"})
    expect_error(Error::Kind::kInvalidArgument, {"host list"}, [&] { expand_host_list(bad); });
}

}  // namespace
}  // namespace fleetx::testing
