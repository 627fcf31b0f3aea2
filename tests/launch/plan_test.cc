// The launch plan is a pure function: flags, environment and facts of a machine in, processes and
// their environment out.
#include "fleetx/launch/plan.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <sstream>

#include "fleetx/launch/report.h"
#include "tests/support/expect_error.h"

namespace fleetx::launch {
namespace {

using fleetx::testing::expect_error;

Host machine(const std::string& ip, int cores = 4) {
  Host host{"n1", {"127.0.0.1", ip}, {}, [](const std::string& name) -> std::optional<std::string> {
              if (name == "node1") return "10.0.0.1";
              return std::nullopt;
            }};
  for (int i = 0; i < cores; ++i) host.cores.push_back({i, {2 * i, 2 * i + 1}});
  return host;
}
const Host kFirst = machine("10.0.0.1"), kSecond = machine("10.0.0.2");

// What a process is told, as text; the job's own constants are left out.
std::string told(const JobPlan& plan, size_t process) {
  std::ostringstream out;
  for (const auto& [name, value] : environment_of(plan, plan.processes[process], {}))
    if (name != job_var::kJobId && name != job_var::kRestart) out << name << "=" << value << "\n";
  return out.str();
}

void expect_refused(const Options& options, std::initializer_list<std::string_view> parts,
                    const Environment& environment = {}, const Host& host = kFirst) {
  expect_error(Error::Kind::kInvalidArgument, parts,
               [&] { make_plan(options, environment, host); });
}

TEST(Plan, TwoWorkersOnOneMachine) {
  JobPlan plan = make_plan({.gpus = "0,1"}, {}, kFirst);
  ASSERT_EQ(plan.processes.size(), 2u);
  EXPECT_EQ(plan.store, (Endpoint{"127.0.0.1", 0}));
  EXPECT_EQ(plan.processes[0].endpoint.port, 0);  // to be bound
  plan.processes[0].endpoint.port = 17901;
  plan.processes[1].endpoint.port = 18846;
  EXPECT_EQ(told(plan, 1),
            "PADDLE_CURRENT_ENDPOINT=127.0.0.1:18846\n"
            "PADDLE_TRAINERS_NUM=2\n"
            "PADDLE_TRAINER_ENDPOINTS=127.0.0.1:17901,127.0.0.1:18846\n"
            "FLAGS_selected_gpus=1\n"
            "PADDLE_TRAINER_ID=1\n"
            "PADDLE_RANK_IN_NODE=1\n"
            "PADDLE_LOCAL_SIZE=2\n"
            "PADDLE_NNODES=1\n"
            "FLEETX_NODE=0\n"
            "PADDLE_LOCAL_RANK=1\n"
            "PADDLE_GLOBAL_RANK=1\n"
            "PADDLE_GLOBAL_SIZE=2\n");
  EXPECT_EQ(describe(plan.processes[1].share), "cores 2-3");
  EXPECT_EQ(plan.processes[1].share.threads, 2);
  EXPECT_EQ(plan.processes[1].log_name(), "workerlog.1");
}

TEST(Plan, StoreSecretAndSocketAreInTheEnvironment) {
  const JobPlan plan = make_plan({.gpus = "0", .job_id = "night"}, {}, kFirst);
  const Environment user{{"HOME", "/h"},
                         {"http_proxy", "p"},
                         {"PADDLE_TRAINER_ID", "9"},
                         {"TRAINING_ROLE", "PSERVER"}};
  const auto entries =
      merged_environment(user, plan, plan.processes[0], {"127.0.0.1:4000", "ab", 2, 7});
  const auto has = [&](const char* entry) { return std::ranges::count(entries, entry) == 1; };
  for (const char* entry :
       {"HOME=/h", "PADDLE_TRAINER_ID=0", "FLEETX_STORE=127.0.0.1:4000", "FLEETX_JOB_SECRET=ab",
        "FLEETX_RESTART=2", "FLEETX_LISTEN_FD=7", "FLEETX_JOB_ID=night", "OMP_NUM_THREADS=4"})
    EXPECT_TRUE(has(entry)) << entry;
  for (const std::string& entry : entries) {
    EXPECT_FALSE(entry.starts_with("http_proxy="));
    EXPECT_FALSE(entry.starts_with("TRAINING_ROLE="));
  }
}

TEST(Plan, ThreadsOfTheUserAreKept) {
  const JobPlan plan = make_plan({.gpus = "0,1"}, {}, kFirst);
  const auto entries = merged_environment({{"OMP_NUM_THREADS", "7"}}, plan, plan.processes[0], {});
  EXPECT_EQ(std::ranges::count(entries, "OMP_NUM_THREADS=7"), 1);
}

TEST(Plan, EnvironmentRoundTrips) {
  JobPlan plan = make_plan({.nproc_per_node = 2, .ips = "10.0.0.1,10.0.0.2"}, {}, kSecond);
  for (const Process& process : plan.processes) {
    if (!plan.is_local(process)) continue;
    Environment told;
    for (const auto& [name, value] : environment_of(plan, process, {"10.0.0.1:6072", "ab", 1, 5}))
      told[name] = value;
    const JobEnv job =
        JobEnv::from([&](std::string_view name) { return find(told, std::string(name)); });
    EXPECT_EQ(job.rank, process.rank);
    EXPECT_EQ(job.world, 4);
    EXPECT_EQ(job.local_rank, process.local_rank);
    EXPECT_EQ(job.local_world, 2);
    EXPECT_EQ(job.node, 1);
    EXPECT_EQ(job.nodes, 2);
    EXPECT_EQ(job.endpoint, to_string(process.endpoint));
    EXPECT_EQ(job.store, "10.0.0.1:6072");
    EXPECT_EQ(job.listen_fd, 5);
  }
}

TEST(Plan, SlotsFromFlagsAndEnvironment) {
  using Slots = std::vector<std::string>;
  EXPECT_EQ(slots_of({}, {}), Slots{"0"});
  EXPECT_EQ(slots_of({.nproc_per_node = 3}, {}), (Slots{"0", "1", "2"}));
  EXPECT_EQ(slots_of({.gpus = "2,5"}, {}), (Slots{"2", "5"}));
  EXPECT_EQ(slots_of({.gpus = "0,1,2,3", .nproc_per_node = 2}, {}), (Slots{"0,1", "2,3"}));
  EXPECT_EQ(slots_of({}, {{"CUDA_VISIBLE_DEVICES", "4,6"}}), (Slots{"0", "1"}));
  // Positions in the list of visible devices, as the process will see them.
  EXPECT_EQ(slots_of({.gpus = "6"}, {{"CUDA_VISIBLE_DEVICES", "4,6"}}), Slots{"1"});
  EXPECT_EQ(slots_of({}, {{"CUDA_VISIBLE_DEVICES", ""}}), Slots{"0"});
  EXPECT_EQ(slots_of({}, {{"CUDA_VISIBLE_DEVICES", "-1"}}), Slots{"0"});
  EXPECT_EQ(slots_of({}, {{"CUDA_VISIBLE_DEVICES", "NoDevFiles"}}), Slots{"0"});
  EXPECT_EQ(slots_of({}, {{"CUDA_VISIBLE_DEVICES", "4,-1,6"}}), Slots{"0"});
  EXPECT_EQ(slots_of({}, {{"CUDA_VISIBLE_DEVICES", "GPU-aa,GPU-bb"}}), (Slots{"0", "1"}));
  EXPECT_EQ(slots_of({.gpus = "1"}, {{"CUDA_VISIBLE_DEVICES", "GPU-aa,GPU-bb"}}), Slots{"1"});
  // Spaces after commas come from scripts.
  EXPECT_EQ(slots_of({}, {{"CUDA_VISIBLE_DEVICES", "4, 6"}}), (Slots{"0", "1"}));
  EXPECT_EQ(slots_of({.gpus = " 2, 5 "}, {}), (Slots{"2", "5"}));
}

TEST(Plan, TwoMachinesStartedWithTheSameCommand) {
  const Options options{.gpus = "0,1", .ips = "10.0.0.1,10.0.0.2"};
  const JobPlan first = make_plan(options, {}, kFirst), second = make_plan(options, {}, kSecond);
  EXPECT_EQ(first.node, 0);
  EXPECT_EQ(second.node, 1);
  const std::vector<Endpoint> expected{
      {"10.0.0.1", 6070}, {"10.0.0.1", 6071}, {"10.0.0.2", 6070}, {"10.0.0.2", 6071}};
  EXPECT_EQ(first.endpoints(JobRole::kWorker), expected);
  EXPECT_EQ(second.endpoints(JobRole::kWorker), expected);
  EXPECT_EQ(second.store, (Endpoint{"10.0.0.1", 6069}));
  EXPECT_EQ(second.processes[3].log_name(), "workerlog.1");
  const JobPlan other = make_plan(options, {{"FLAGS_START_PORT", "7000"}}, kFirst);
  EXPECT_EQ(other.processes[3].endpoint, (Endpoint{"10.0.0.2", 7001}));
}

TEST(Plan, HostNamesAreResolved) {
  const JobPlan plan = make_plan({.ips = "node1,10.0.0.2"}, {}, kFirst);
  EXPECT_EQ(plan.processes[0].endpoint.ip, "10.0.0.1");
}

TEST(Plan, ServersAndWorkersOnOneMachine) {
  JobPlan plan = make_plan({.server_num = 1, .worker_num = 2}, {}, kFirst);
  ASSERT_EQ(plan.processes.size(), 3u);
  for (size_t i = 0; i < 3; ++i) plan.processes[i].endpoint.port = 100 + static_cast<int>(i);
  EXPECT_EQ(told(plan, 0),
            "PADDLE_PSERVERS_IP_PORT_LIST=127.0.0.1:100\n"
            "PADDLE_TRAINER_ENDPOINTS=127.0.0.1:101,127.0.0.1:102\n"
            "PADDLE_HETER_TRAINER_IP_PORT_LIST=\n"
            "PADDLE_TRAINERS_NUM=2\n"
            "TRAINING_ROLE=PSERVER\n"
            "PADDLE_PORT=100\n"
            "POD_IP=127.0.0.1\n"
            "PADDLE_RANK_IN_NODE=0\n"
            "PADDLE_LOCAL_SIZE=1\n"
            "PADDLE_NNODES=1\n"
            "FLEETX_NODE=0\n");
  EXPECT_EQ(told(plan, 2),
            "PADDLE_PSERVERS_IP_PORT_LIST=127.0.0.1:100\n"
            "PADDLE_TRAINER_ENDPOINTS=127.0.0.1:101,127.0.0.1:102\n"
            "PADDLE_HETER_TRAINER_IP_PORT_LIST=\n"
            "PADDLE_TRAINERS_NUM=2\n"
            "TRAINING_ROLE=TRAINER\n"
            "PADDLE_TRAINER_ID=1\n"
            "PADDLE_PORT=102\n"
            "POD_IP=127.0.0.1\n"
            "FLAGS_selected_gpus=0\n"
            "PADDLE_RANK_IN_NODE=1\n"
            "PADDLE_LOCAL_SIZE=2\n"
            "PADDLE_NNODES=1\n"
            "FLEETX_NODE=0\n");
  EXPECT_EQ(plan.processes[0].log_name(), "serverlog.0");
}

TEST(Plan, ServersAndWorkersOfSeveralMachines) {
  const Options options{.servers = "10.0.0.1:6170,10.0.0.2:6171",
                        .workers = "10.0.0.1:6172,10.0.0.1:6173,10.0.0.2:6176"};
  const JobPlan plan = make_plan(options, {}, kSecond);
  EXPECT_EQ(plan.nodes, 2);
  EXPECT_EQ(plan.node, 1);
  EXPECT_EQ(plan.local_count(JobRole::kServer), 1);
  EXPECT_EQ(plan.local_count(JobRole::kWorker), 1);
  EXPECT_EQ(plan.processes[4].rank, 2);
  EXPECT_EQ(plan.processes[4].log_name(), "workerlog.0");
  EXPECT_EQ(plan.store, make_plan(options, {}, kFirst).store);
  EXPECT_EQ(plan.store, (Endpoint{"10.0.0.1", 6171}));  // the first port that is free there
}

TEST(Plan, WorkersWithoutPortsGetTheOnesAfterTheServers) {
  const JobPlan plan =
      make_plan({.servers = "10.0.0.1:6170,10.0.0.2:6170", .workers = "10.0.0.1,10.0.0.1,10.0.0.2"},
                {}, kFirst);
  const std::vector<Endpoint> expected{{"10.0.0.1", 6172}, {"10.0.0.1", 6173}, {"10.0.0.2", 6174}};
  EXPECT_EQ(plan.endpoints(JobRole::kWorker), expected);
}

TEST(Plan, HeterWorkersAreRefused) {
  expect_refused({.server_num = 1, .worker_num = 1, .heter_worker_num = 1},
                 {"--heter_worker_num", "not built"});
  expect_refused({.servers = "10.0.0.1:1", .workers = "10.0.0.1", .heter_workers = "10.0.0.1:2"},
                 {"--heter_workers", "not built"});
  expect_refused({.server_num = 1, .worker_num = 1, .run_mode = "ps-heter"},
                 {"--run_mode=ps-heter", "not built"});
}

const Environment kCloud{{"PADDLE_TRAINERS", "10.0.0.1,10.0.0.2"},
                         {"POD_IP", "10.0.0.2"},
                         {"PADDLE_TRAINER_ID", "1"},
                         {"PADDLE_TRAINERS_NUM", "2"},
                         {"TRAINER_PORTS_NUM", "2"},
                         {"PADDLE_PORT", "9000"},
                         {"CUDA_VISIBLE_DEVICES", "0,1"}};

TEST(Plan, PaddleCloudGivesTheMachines) {
  const JobPlan plan = make_plan({}, kCloud, kSecond);
  EXPECT_TRUE(plan.warnings.empty());
  EXPECT_EQ(plan.node, 1);
  ASSERT_EQ(plan.processes.size(), 4u);
  EXPECT_EQ(plan.processes[2].endpoint, (Endpoint{"10.0.0.2", 9000}));
  EXPECT_EQ(plan.processes[2].rank, 2);  // of the process, not of the machine
  Environment given = kCloud;
  given["DISTRIBUTED_TRAINER_ENDPOINTS"] = "10.0.0.1:1,10.0.0.1:2,10.0.0.2:3,10.0.0.2:4";
  EXPECT_EQ(make_plan({}, given, kSecond).processes[3].endpoint, (Endpoint{"10.0.0.2", 4}));
  given["DISTRIBUTED_TRAINER_ENDPOINTS"] = "10.0.0.1:1";
  expect_refused({}, {"DISTRIBUTED_TRAINER_ENDPOINTS has 1 entries"}, given, kSecond);
  EXPECT_EQ(make_plan({.ips = "10.0.0.7"}, kCloud, kSecond).warnings.size(), 1u);
  expect_refused({}, {"POD_IP", "not an address of this machine"}, kCloud, kFirst);
}

TEST(Plan, PodOfAParameterServerJobKeepsItsEnvironment) {
  const Environment pod{{"TRAINING_ROLE", "PSERVER"},
                        {"PADDLE_PSERVERS_IP_PORT_LIST", "10.0.0.9:6170,10.0.0.1:6170"},
                        {"POD_IP", "10.0.0.1"},
                        {"PADDLE_PORT", "6170"}};
  const JobPlan plan = make_plan({}, pod, kFirst);
  ASSERT_EQ(plan.processes.size(), 1u);
  EXPECT_EQ(plan.processes[0].name(), "server 1");
  EXPECT_EQ(plan.processes[0].log_name(), "serverlog.0");
  EXPECT_EQ(slots_line(plan, {}).find("no workers here"), 0u);
  const auto entries = merged_environment(pod, plan, plan.processes[0], {});
  EXPECT_EQ(std::ranges::count(entries, "TRAINING_ROLE=PSERVER"), 1);
  EXPECT_EQ(std::ranges::count(entries, "PADDLE_PORT=6170"), 1);
}

TEST(Plan, VariablesStandInForFlags) {
  Options options{.job_id = "mine"};
  take_defaults_from({{"PADDLE_JOB_ID", "other"},
                      {"PADDLE_NPROC_PER_NODE", "3"},
                      {"PADDLE_LOG_DIR", "/l"},
                      {"PADDLE_MAX_RESTART", "2"}},
                     options);
  EXPECT_EQ(options.job_id, "mine");
  EXPECT_EQ(options.nproc_per_node, 3);
  EXPECT_EQ(options.log_dir, "/l");
  EXPECT_EQ(options.max_restart, 2);
  Options slurm{.master = "10.0.0.1:1"};
  take_defaults_from({{"SLURM_STEP_ID", "0"}, {"SLURM_STEP_NUM_NODES", "4"}, {"SLURM_NODEID", "2"}},
                     slurm);
  EXPECT_EQ(slurm.nnodes, "4");
  EXPECT_EQ(slurm.rank, 2);
  Options pods{.master = "10.0.0.1:1", .nnodes = "3"};
  take_defaults_from({{"JOB_COMPLETION_INDEX", "1"}}, pods);
  EXPECT_EQ(pods.rank, 1);
  expect_error(Error::Kind::kInvalidArgument, {"PADDLE_MAX_RESTART='x'"}, [] {
    Options none;
    take_defaults_from({{"PADDLE_MAX_RESTART", "x"}}, none);
  });
}

TEST(Plan, WithoutFlagsOneWorkerAndAWarning) {
  const JobPlan plan = make_plan({}, {}, kFirst);
  EXPECT_EQ(plan.processes.size(), 1u);
  EXPECT_EQ(plan.processes[0].share.threads, 4);
  ASSERT_EQ(plan.warnings.size(), 1u);
  EXPECT_EQ(plan.warnings[0], "Not found distinct arguments. Default use collective mode");
}

TEST(Plan, FlagsThatExcludeEachOther) {
  expect_refused({.gpus = "0", .server_num = 1}, {"--gpus", "--server_num", "one kind only"});
  expect_refused({.ips = "10.0.0.1", .worker_num = 1}, {"--ips", "--worker_num"});
  expect_refused({.gpus = "0", .run_mode = "ps"}, {"--run_mode=ps", "--gpus"});
  expect_refused({.server_num = 1, .worker_num = 1, .run_mode = "collective"},
                 {"--run_mode=collective", "--server_num"});
  expect_refused({.run_mode = "pss"}, {"'pss'", "choose collective"});
  expect_refused({.server_num = 1}, {"needs workers", "--worker_num"});
  expect_refused({.worker_num = 1}, {"needs servers", "--server_num"});
  expect_refused({.run_mode = "ps"}, {"needs servers"});
  expect_refused({.servers = "10.0.0.1:1,10.0.0.1:2", .server_num = 3, .worker_num = 1},
                 {"--server_num=3", "--servers has 2"});
  expect_refused({.ips = "10.0.0.1", .master = "10.0.0.1:1"}, {"--ips", "--master"});
  expect_refused({.rank = 1}, {"--rank", "--master"});
}

TEST(Plan, NumbersOutOfRange) {
  expect_refused({.nproc_per_node = 0}, {"--nproc_per_node=0"});
  expect_refused({.nproc_per_node = 1000000}, {"--nproc_per_node=1000000"});
  expect_refused({.server_num = -1, .worker_num = 1}, {"--server_num=-1"});
  expect_refused({.server_num = 1, .worker_num = 1, .http_port = 70000}, {"--http_port=70000"});
  expect_refused({.master = "10.0.0.1:1", .nnodes = "2", .rank = -2}, {"--rank=-2"});
  expect_refused({.master = "10.0.0.1:1", .nnodes = "2", .rank = -1}, {"needs --rank"});
  expect_refused({.max_restart = -1}, {"--max_restart=-1"});
  expect_refused({.grace = -1.0}, {"--grace=-1"});
  expect_refused({.gpus = "0", .job_id = "a/b"}, {"--job_id='a/b'"});
  expect_refused({.gpus = "0"}, {"FLAGS_START_PORT='70000'"}, {{"FLAGS_START_PORT", "70000"}});
}

TEST(Plan, InvalidSlots) {
  expect_refused({.gpus = ""}, {"--gpus is empty"});
  expect_refused({.gpus = "0,,1"}, {"--gpus='0,,1'"});
  expect_refused({.gpus = "0,x"}, {"'x'"});
  expect_refused({.gpus = "0,-1"}, {"'-1'"});
  expect_refused({.gpus = "1,1"}, {"1 is there twice"});
  expect_refused({.gpus = "0,1,2", .nproc_per_node = 2}, {"does not divide"});
  expect_refused({.gpus = "3"}, {"3 is not in CUDA_VISIBLE_DEVICES=0,1"},
                 {{"CUDA_VISIBLE_DEVICES", "0,1"}});
  expect_refused({}, {"CUDA_VISIBLE_DEVICES='a,b'", "entry='a'"},
                 {{"CUDA_VISIBLE_DEVICES", "a,b"}});
}

TEST(Plan, InvalidAddresses) {
  expect_refused({.ips = "10.0.0.1,10.0.0.1"}, {"--ips", "there twice"});
  expect_refused({.ips = "10.0.0.1:80"}, {"has a port"});
  expect_refused({.ips = "::1"}, {"--ips: '::1' looks like IPv6"});
  expect_refused({.master = "etcd://10.0.0.1:80", .nnodes = "2", .rank = 0},
                 {"--master: 'etcd://10.0.0.1:80' is a URL"});
  expect_refused({.ips = "10.0.0.300"}, {"'10.0.0.300' is not an IPv4 address"});
  expect_refused({.ips = "xx.xx"}, {"there is no host 'xx.xx'"});
  expect_refused({.ips = "a b"}, {"'a b' is neither"});
  expect_refused({.ips = ""}, {"--ips is empty"});
  expect_refused({.ips = "10.0.0.1,"}, {"empty"});
  expect_refused({.ips = "10.0.0.2,10.0.0.3"}, {"none of 10.0.0.2, 10.0.0.3", "n1 has 127.0.0.1"});
  expect_refused({.ips = "10.0.0.9"}, {"10.0.0.9 is not an address of this machine"});
  expect_refused({.ips = "127.0.0.1,10.0.0.1"}, {"means another machine on each"});
  Host two = kFirst;
  two.addresses.push_back("10.0.0.2");
  expect_refused({.ips = "10.0.0.1,10.0.0.2"}, {"both of this machine"}, {}, two);
  EXPECT_EQ(make_plan({.ips = "10.0.0.1,10.0.0.2"}, {{"POD_IP", "10.0.0.2"}}, two).node, 1);
  expect_refused({.servers = "10.0.0.1", .worker_num = 1}, {"--servers", "no port"});
  expect_refused({.servers = "10.0.0.1:0", .worker_num = 1}, {"1 to 65535"});
  expect_refused({.servers = "10.0.0.1:99999", .worker_num = 1}, {"1 to 65535"});
  expect_refused({.servers = "10.0.0.1:70", .workers = "10.0.0.1:70"}, {"belongs to another"});
  expect_refused({.servers = "10.0.0.9:70,10.0.0.8:70", .workers = "10.0.0.8:71"},
                 {"is an address of this machine"});
}

TEST(Plan, CoresAreShared) {
  const std::vector<Core> cores = machine("10.0.0.1", 5).cores;
  const std::vector<Share> two = share_cores(cores, 2);
  EXPECT_EQ(describe(two[0]), "cores 0-2");
  EXPECT_EQ(describe(two[1]), "cores 3-4");
  EXPECT_EQ(two[1].threads, 2);
  const std::vector<Share> many = share_cores(cores, 6);
  EXPECT_EQ(describe(many[5]), "all cores");
  EXPECT_EQ(many[5].threads, 1);
  EXPECT_EQ(describe(share_cores(cores, 5)[4]), "core 4");
  EXPECT_EQ(describe(Share{{{0, {}}, {2, {}}, {3, {}}}, 3}), "cores 0,2-3");
}

TEST(Plan, AQuotaIsShared) {
  const std::vector<Core> cores = machine("10.0.0.1", 64).cores;
  const std::vector<Share> two = share_cores(cores, 2, 2);
  EXPECT_EQ(describe(two[1]), "cores 32-63");
  EXPECT_EQ(two[1].threads, 1);
  EXPECT_EQ(share_cores(cores, 1, 2)[0].threads, 2);
  EXPECT_EQ(share_cores(cores, 4, 2)[3].threads, 1);
  EXPECT_EQ(share_cores(cores, 4, 256)[3].threads, 16);

  Host container = machine("10.0.0.1", 64);
  container.cpu_quota = 8;
  const JobPlan collective = make_plan({.nproc_per_node = 2}, {}, container);
  EXPECT_EQ(collective.processes[1].share.threads, 4);
  const JobPlan servers = make_plan({.server_num = 1, .worker_num = 4}, {}, container);
  for (const Process& process : servers.processes) EXPECT_EQ(process.share.threads, 2);
}

TEST(Plan, CoresOfThisMachine) {
  const std::vector<Core> cores = usable_cores();
  ASSERT_FALSE(cores.empty());
  for (const Core& core : cores) EXPECT_FALSE(core.cpus.empty());
}

}  // namespace
}  // namespace fleetx::launch
