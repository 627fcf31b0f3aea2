// The environment variables by which a launcher passes rank and addresses to the processes of a
// job. `fleetrun` sets them (launch/), every process of a job reads them:
//
//   const JobEnv job = JobEnv::from_environment();
//   job.rank, job.world, job.endpoint, job.store
//
// A process started by mpirun (Open MPI, MPICH) or srun (Slurm) reads their variables; a process
// without a launcher is rank 0 of 1.
#pragma once

#include <functional>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace fleetx {

enum class JobRole { kWorker, kServer, kHeterWorker };
std::string_view to_string(JobRole role);  // worker, server, heter worker

struct JobEnv {
  // kEndpoints: by a launcher that sets the PADDLE_* variables and keeps no store; the workers meet
  // at the endpoint of the first one.
  enum class StartedBy { kByHand, kFleetrun, kEndpoints, kMpi, kSlurm };
  // Returns nullopt for a variable that is unset or empty.
  using Lookup = std::function<std::optional<std::string>(std::string_view name)>;

  StartedBy started_by = StartedBy::kByHand;
  JobRole role = JobRole::kWorker;
  int rank = 0;                         // among the processes of its role
  int world = 1;                        // workers of the job
  int local_rank = 0, local_world = 1;  // the same, on this machine
  int node = 0, nodes = 1;
  std::string endpoint;  // ip:port of this process; empty under MPI and Slurm
  std::vector<std::string> worker_endpoints, server_endpoints, heter_endpoints;
  std::vector<std::string> hosts;  // Slurm: the machines of the job, node by node
  std::string devices;             // slots of this process, "0" or "0,1"
  std::string job_id = "default";  // the same in all processes; unique per start under MPI, Slurm
  std::string store;               // ip:port of the rendezvous store; empty: there is none
  std::string secret;              // hex; authenticates connections between processes of the job
  std::optional<int> listen_fd;    // a socket already bound to `endpoint`: call listen() on it
  int restart = 0;                 // how often the job was restarted before
  int rejoin = 0;               // how often this process was started again while the others went on
  std::string snapshot;         // server: the file of its own snapshots; empty: none
  double snapshot_seconds = 0;  // between two of them
  int replicas = 1;             // of each server: 2: the next one keeps a copy
  int64_t server_memory = 0;    // bytes that the tables of a server may take; 0: any
  std::string server_disk;      // folder for rows beyond that; empty: none
  // Job with servers: who is silent for so long is named; how long a lost server is tried.
  double silence_seconds = 4, reconnect_seconds = 10;

  // Inconsistent or incomplete variables are kInvalidArgument; the error names them.
  static JobEnv from(const Lookup& lookup);
  static JobEnv from_environment();
  static double silence_from(const Lookup& lookup);  // silence_seconds alone
};

// A suffix for paths that each worker writes to: `before` and this worker's rank if the job has
// several workers, else "".
std::string suffix_of_worker(std::string_view before);

// "n[01-03,7],login" (as in SLURM_JOB_NODELIST) to n01 n02 n03 n7 login.
std::vector<std::string> expand_host_list(std::string_view text);

std::vector<std::string> split_list(std::string_view text);  // "a, b" to a b; "" to nothing

// "1048576", "512M", "1.5G" (K, M, G, T: powers of 1024); else kInvalidArgument that begins with
// `what`.
int64_t parse_bytes(std::string_view what, std::string_view text);

// 64 hex digits derived from a text, for jobs without a shared secret. Protects from connections of
// other jobs by mistake, but not from anyone who knows the text.
std::string secret_from(std::string_view text);

// For workers that know nothing but their endpoints: they meet at the first one, and what tells
// their job from others follows from all of them. A store or name that the job has is kept.
void meet_at_first_worker(JobEnv& job);

// All environment variables of this process, to pass them on.
std::map<std::string, std::string> whole_environment();

// The names of the variables, shared by writer and reader.
namespace job_var {
inline constexpr const char* kTrainerId = "PADDLE_TRAINER_ID";
inline constexpr const char* kCurrentEndpoint = "PADDLE_CURRENT_ENDPOINT";
inline constexpr const char* kTrainersNum = "PADDLE_TRAINERS_NUM";
inline constexpr const char* kTrainerEndpoints = "PADDLE_TRAINER_ENDPOINTS";
inline constexpr const char* kSelectedGpus = "FLAGS_selected_gpus";
inline constexpr const char* kTrainingRole = "TRAINING_ROLE";
inline constexpr const char* kServerEndpoints = "PADDLE_PSERVERS_IP_PORT_LIST";
inline constexpr const char* kHeterEndpoints = "PADDLE_HETER_TRAINER_IP_PORT_LIST";
inline constexpr const char* kPodIp = "POD_IP";
inline constexpr const char* kPort = "PADDLE_PORT";
inline constexpr const char* kLocalRank = "PADDLE_RANK_IN_NODE";
inline constexpr const char* kLocalSize = "PADDLE_LOCAL_SIZE";
inline constexpr const char* kNodes = "PADDLE_NNODES";
inline constexpr const char* kNode = "FLEETX_NODE";
inline constexpr const char* kJobId = "FLEETX_JOB_ID";
inline constexpr const char* kStore = "FLEETX_STORE";
inline constexpr const char* kSecret = "FLEETX_JOB_SECRET";
inline constexpr const char* kListenFd = "FLEETX_LISTEN_FD";
inline constexpr const char* kRestart = "FLEETX_RESTART";
inline constexpr const char* kRejoin = "FLEETX_REJOIN";
inline constexpr const char* kSnapshot = "FLEETX_SNAPSHOT";
inline constexpr const char* kSnapshotSeconds = "FLEETX_SNAPSHOT_SECONDS";
inline constexpr const char* kReplicas = "FLEETX_PS_REPLICAS";
inline constexpr const char* kServerMemory = "FLEETX_PS_MEMORY";
inline constexpr const char* kServerDisk = "FLEETX_PS_DISK";
inline constexpr const char* kSilence = "FLEETX_PS_SILENCE";
inline constexpr const char* kReconnect = "FLEETX_PS_RECONNECT";
// Not a variable: the key of the store where servers tell fleetrun how their job trains.
inline constexpr const char* kModeKey = "fleetrun/mode";
}  // namespace job_var

}  // namespace fleetx
