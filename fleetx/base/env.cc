#include "fleetx/base/env.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <cstdlib>

#include "fleetx/base/error.h"

namespace fleetx::env {
namespace {

constexpr std::array kKnown{
    Known{
        "FLEETX_THREADS",
        "compute threads of this process (default: physical cores it may use, within the CPU quota "
        "of its cgroup)"},
    Known{"OMP_NUM_THREADS", "the same, where FLEETX_THREADS is not set"},
    Known{"FLEETX_LOG", "least level that is logged: debug, info (default), warning, error"},
    Known{"FLEETX_MAX_ISA", "highest instruction set to use: sse, avx2, avx512, avx512_bf16, amx"},
    Known{"FLEETX_SIMULATE_FAULT",
          "instruction set that is to look advertised but faulting (tests)"},
    Known{"FLEETX_DUMP",
          "folder for the program text after every pass, and the plan (of several workers: "
          "worker_N in it)"},
    Known{"FLEETX_SKIP", "comma-separated optional passes to skip, to bisect a problem"},
    Known{"FLEETX_TRACE",
          "file for a Chrome/Perfetto trace of every run (of several workers: NAME.worker_N.json)"},
    Known{"FLEETX_PROFILE",
          "1: print a table of time, GFLOP/s and GB/s per op kind when an executor ends"},
    Known{"FLEETX_CHECK_FINITE", "1: stop at the first op that produces NaN or Inf, and name it"},
    Known{"FLEETX_MACHINE", "description of the machines of the job, for auto and --plan"},
    Known{"FLEETX_PLAN",
          "1: nothing is run; the first training step is planned and predicted (fleetrun --plan)"},
    Known{"FLEETX_PLAN_TIMELINE", "with FLEETX_PLAN: file for the predicted step (Perfetto)"},
    Known{"FLEETX_PLAN_CACHE_MB",
          "MiB that the plans of an executor may take (default: a tenth of the memory)"},
    Known{"FLEETX_COMM_TIMEOUT", "seconds a collective may take before it fails (default: 300)"},
    Known{"FLEETX_COMM_INTERFACE", "address or interface for traffic between hosts"},
    Known{"FLEETX_MPI_COLLECTIVES",
          "1: under mpirun, MPI's own collectives, which reduce in an order of their own"},
    Known{"FLEETX_TLS_CERT",
          "certificate (PEM) of this host: encrypts the traffic between hosts, with the two below"},
    Known{"FLEETX_TLS_KEY", "private key (PEM) of that certificate"},
    Known{"FLEETX_TLS_CA", "certificates (PEM) that sign those of all hosts"},
    Known{"FLEETX_CUDA",
          "0: paddle.is_compiled_with_cuda() is False, for scripts that choose by it"},
    Known{"FLEETX_DATA", "folder of data sets (default: where the Debian packages put them)"},
    Known{"FLEETX_MIRROR", "address that takes the place of scheme and host of every download"},
    Known{"FLEETX_SHADOW_PADDLE",
          "1: `import paddle` gives FleetX's package although PaddlePaddle is installed too"},
    Known{"XDG_CACHE_HOME", "where generated data sets are cached (default: ~/.cache)"},
    Known{"HOME", "the same, where XDG_CACHE_HOME is not set"},
    // Set by fleetrun for the processes of a job (base/job_env.h).
    Known{"PADDLE_TRAINER_ID", "fleetrun: rank of this worker"},
    Known{"PADDLE_TRAINERS_NUM", "fleetrun: workers of the job"},
    Known{"PADDLE_TRAINER_ENDPOINTS", "fleetrun: ip:port of all workers, by rank"},
    Known{"PADDLE_CURRENT_ENDPOINT", "fleetrun: ip:port of this worker"},
    Known{"PADDLE_RANK_IN_NODE", "fleetrun: rank among the processes of this machine"},
    Known{"PADDLE_LOCAL_SIZE", "fleetrun: processes of this role on this machine"},
    Known{"PADDLE_NNODES", "fleetrun: machines of the job"},
    Known{"FLAGS_selected_gpus", "fleetrun: slots (devices) of this process"},
    Known{"TRAINING_ROLE", "fleetrun: TRAINER, PSERVER or HETER_TRAINER"},
    Known{"PADDLE_PSERVERS_IP_PORT_LIST", "fleetrun: ip:port of all parameter servers"},
    Known{"PADDLE_HETER_TRAINER_IP_PORT_LIST", "fleetrun: ip:port of all heter workers"},
    Known{"POD_IP", "fleetrun: address of this server; PaddleCloud: of this machine"},
    Known{"PADDLE_PORT", "fleetrun: port of this server"},
    Known{"FLEETX_NODE", "fleetrun: number of this machine in the job"},
    Known{"FLEETX_JOB_ID", "fleetrun: name of the job"},
    Known{"FLEETX_STORE", "fleetrun: ip:port where the processes of the job meet"},
    Known{"FLEETX_JOB_SECRET", "fleetrun: hex; what connections inside the job must prove"},
    Known{"FLEETX_LISTEN_FD", "fleetrun: open socket bound to this process's ip:port"},
    Known{"FLEETX_RESTART", "fleetrun: how often the job was restarted"},
    Known{"FLEETX_REJOIN",
          "fleetrun: how often this process was started again while the others went on"},
    Known{"FLEETX_SNAPSHOT", "fleetrun: file of this server's own snapshots"},
    Known{"FLEETX_SNAPSHOT_SECONDS", "fleetrun: seconds between two of them"},
    Known{"FLEETX_PS_REPLICAS", "2: each parameter server keeps a copy of the one before it"},
    Known{"FLEETX_PS_MEMORY",
          "bytes (512M, 4G) that the tables of a parameter server may take (default: any)"},
    Known{"FLEETX_PS_DISK", "folder where a parameter server keeps rows beyond that"},
    Known{"FLEETX_PS_SILENCE",
          "seconds of silence after which a worker or server is named as lost (default: 4)"},
    Known{"FLEETX_PS_RECONNECT",
          "seconds that a worker tries to reach a server that it has lost (default: 10; "
          "fleetrun --snapshot_interval: 120)"},
    // Set by mpirun and srun.
    Known{"OMPI_COMM_WORLD_RANK", "Open MPI: rank"},
    Known{"OMPI_COMM_WORLD_SIZE", "Open MPI: number of ranks"},
    Known{"OMPI_COMM_WORLD_LOCAL_RANK", "Open MPI: rank on this machine"},
    Known{"OMPI_COMM_WORLD_LOCAL_SIZE", "Open MPI: ranks on this machine"},
    Known{"PMIX_NAMESPACE", "Open MPI: name of the job"},
    Known{"PMI_RANK", "MPICH: rank"},
    Known{"PMI_SIZE", "MPICH: number of ranks"},
    Known{"PMI_JOBID", "MPICH: name of the job"},
    Known{"MPI_LOCALRANKID", "MPICH: rank on this machine"},
    Known{"MPI_LOCALNRANKS", "MPICH: ranks on this machine"},
    Known{"SLURM_PROCID", "Slurm: rank"},
    Known{"SLURM_NTASKS", "Slurm: number of ranks of the job"},
    Known{"SLURM_STEP_NUM_TASKS", "Slurm: number of ranks of the step"},
    Known{"SLURM_LOCALID", "Slurm: rank on this machine"},
    Known{"SLURM_NODEID", "Slurm: number of this machine"},
    Known{"SLURM_NNODES", "Slurm: machines of the job"},
    Known{"SLURM_STEP_NUM_NODES", "Slurm: machines of the step"},
    Known{"SLURM_STEP_TASKS_PER_NODE", "Slurm: ranks per machine"},
    Known{"SLURM_STEP_NODELIST", "Slurm: machines of the step"},
    Known{"SLURM_JOB_NODELIST", "Slurm: machines of the job"},
    Known{"SLURM_NODELIST", "Slurm: the same, older name"},
    Known{"SLURM_JOB_ID", "Slurm: number of the job"},
    Known{"SLURM_STEP_ID", "Slurm: number of the step"},
};

}  // namespace

std::span<const Known> known_variables() { return kKnown; }

std::optional<std::string> get(std::string_view name) {
  FLEETX_CHECK(
      std::any_of(kKnown.begin(), kKnown.end(), [&](const Known& k) { return k.name == name; }),
      "environment variable ", name, " is not listed in base/env.cc");
  const char* value = std::getenv(std::string(name).c_str());
  if (value == nullptr || *value == '\0') return std::nullopt;
  return std::string(value);
}

bool flag(std::string_view name) {
  const auto value = get(name);
  return value && (*value == "1" || *value == "true" || *value == "yes" || *value == "on");
}

std::optional<int> integer(std::string_view name) {
  const auto value = get(name);
  if (!value) return std::nullopt;
  int number = 0;
  const auto [end, error] = std::from_chars(value->data(), value->data() + value->size(), number);
  check_arg(error == std::errc{} && end == value->data() + value->size(), "environment variable ",
            name, "='", *value, "' is not a whole number");
  return number;
}

}  // namespace fleetx::env
