#include "fleetx/fleet/server_job.h"

#include "fleetx/base/log.h"
#include "fleetx/base/names.h"
#include "fleetx/base/threads.h"
#include "fleetx/comm/store.h"
#include "fleetx/fleet/server_tables.h"
#include "fleetx/launch/fault_policy.h"

namespace fleetx::fleet {
namespace {

std::string secret_of(const JobEnv& job) {
  return job.secret.empty() ? secret_of_servers(job.server_endpoints) : job.secret;
}

std::chrono::milliseconds milliseconds(double seconds) {
  return std::chrono::milliseconds(static_cast<int64_t>(seconds * 1000));
}

}  // namespace

std::string secret_of_servers(const std::vector<std::string>& endpoints) {
  return secret_from(str("servers ", join(endpoints, ",")));
}

ServerJob::ServerJob(const ir::Program& main, const ir::Program& startup,
                     const ServerConfig& config, const RoleMaker& role)
    : role_(role),
      listen_fd_(role.job().listen_fd),
      mode_(config.mode),
      tables_(fleet::server_tables(main, startup, config, role.worker_num(), role.server_num())),
      geo_(config.mode == "geo"),
      k_steps_(config.k_steps),
      step_(ir::training_of(main, "servers").step) {
  if (!role_.is_worker()) return;
  worker_ = std::make_shared<WorkerServers>(
      tables_, WorkerServers::Options{.gives_first_values = role_.is_first_worker(),
                                      .waits_for_pushes = config.mode == "half_async",
                                      .own_rules = own_rules(main, startup, config)});
  kernel::set_process_servers(worker_);
}

void ServerJob::listen(const std::string& model_dir) {
  check_arg(role_.is_server(), "init_server: this process is worker ", role_.worker_index());
  const JobEnv& job = role_.job();
  const bool copies = job.replicas == 2;
  check_arg(!copies || role_.server_num() > 1,
            "replicas=2 needs two servers or more; this job has ", role_.server_num());
  const int servers = role_.server_num(), index = role_.server_index();
  const auto neighbour = [&](int distance) {
    return copies ? job.server_endpoints[static_cast<size_t>((index + distance) % servers)] : "";
  };
  server_ = std::make_unique<ps::Server>(ps::ServerOptions{
      .job = tables_,
      .index = role_.server_index(),
      .endpoint = job.endpoint,
      .listen_fd = std::exchange(listen_fd_, std::nullopt),
      .secret = secret_of(job),
      .job_id = job.job_id,
      .threads = num_threads(),
      .memory = {.bytes = job.server_memory, .disk = job.server_disk},
      .worker_timeout = milliseconds(job.silence_seconds),
      .copied_by = neighbour(1),
      .keeps_copy_of = neighbour(servers - 1),
      .blank = copies && job.rejoin > 0,
      .on_complete = [this, &job] { tell_launcher(launch::copied_key(job.rank, job.rejoin), ""); },
      .snapshot = job.snapshot,
      .snapshot_interval = milliseconds(job.snapshot_seconds)});
  try {
    if (copies && job.rejoin > 0)
      log::info("fleet", "server ", index, " waits for what its copy has learned");
    else if (job.rejoin > 0)
      server_->restore();
    else if (!model_dir.empty())
      server_->load(model_dir);
  } catch (...) {
    server_.reset();  // and its port
    throw;
  }
  if (!job.snapshot.empty() && mode_ == "sync" && role_.server_index() == 0)
    log::warning("fleet",
                 "sync: servers make no snapshots of their own, since one that came back would be "
                 "at another step than the others; use save_persistables and init_server(folder)");
  // Who dies from now on is a matter of the mode, which fleetrun cannot see.
  if (job.rejoin == 0) tell_launcher(job_var::kModeKey, mode_);
}

void ServerJob::load(const std::string& model_dir) {
  check_arg(server_ != nullptr, "call init_server before values are loaded into a server");
  server_->load(model_dir);
}

// For fleetrun's policy (launch/fault_policy.h).
void ServerJob::tell_launcher(const std::string& key, const std::string& value) const {
  const JobEnv& job = role_.job();
  if (job.started_by != JobEnv::StartedBy::kFleetrun || job.store.empty()) return;
  try {
    comm::StoreClient store(comm::store_options_from_env(-1));
    store.set(key, value);
  } catch (const Error& e) {
    // A process has failed meanwhile: fleetrun stops the job.
    log::warning("fleet", "server ", job.rank, " cannot tell fleetrun ", key, ": ", e.what());
  }
}

void ServerJob::serve() {
  if (server_ == nullptr) listen("");
  server_->run();
  server_.reset();
}

WorkerServers& ServerJob::worker() const {
  check_arg(worker_ != nullptr, "this process is server ", role_.server_index(),
            "; only workers ask servers for something");
  return *worker_;
}

void ServerJob::connect(runtime::Scope& scope) {
  const JobEnv& job = role_.job();
  WorkerServers& servers = worker();
  if (servers.connected()) return;
  // A worker that comes back finds its servers running, if they have not ended.
  constexpr double kServersMayStartLater = 60;
  servers.connect(
      {.job = tables_,
       .worker = role_.worker_index(),
       .servers = job.server_endpoints,
       .secret = secret_of(job),
       .secret_source =
           job.secret.empty()
               ? str("it follows from the list of servers, here ", join(job.server_endpoints, ","),
                     ": it must be the same, in the same order, in all processes")
               : "it is that of FLEETX_JOB_SECRET",
       .job_id = job.job_id,
       .connect_timeout =
           milliseconds(job.rejoin > 0 ? job.reconnect_seconds : kServersMayStartLater),
       .reconnect_timeout = milliseconds(job.reconnect_seconds),
       .silence = milliseconds(job.silence_seconds)});
  if (is_in(scope)) with_values(scope, [&](const auto values) { servers.start_with(values); });
}

void ServerJob::pull(runtime::Scope& scope) {
  if (geo_) return;  // a worker trains what it has
  with_values(scope, [&](const auto values) { worker().pull(values); });
}

// After the startup program they have.
bool ServerJob::is_in(const runtime::Scope& scope) const {
  for (const ps::DenseSpec& table : tables_.dense)
    for (const ps::DenseParam& p : table.params)
      if (!scope.has(p.name)) return false;
  return true;
}

void ServerJob::share(runtime::Scope& scope) {
  if (!geo_ || !worker().connected() || !scope.has(step_) || !is_in(scope)) return;
  const int64_t done = scope.get(step_).data<int64_t>()[0];
  // Every k-th step ends with an exchange (strategies/parameter_server.cc).
  if (done % k_steps_ == 0 || done == shared_) return;
  std::vector<std::pair<std::string, Tensor>> own;  // each value, then its base
  std::vector<kernel::Servers::Exchange> values;
  for (const ps::DenseSpec& table : tables_.dense)
    for (const ps::DenseParam& p : table.params) {
      own.emplace_back(p.name, scope.get(p.name));
      own.emplace_back(p.name + "@BASE", scope.get(p.name + "@BASE"));
    }
  for (size_t i = 0; i < own.size(); i += 2)
    values.push_back({worker_->parameter(own[i].first), static_cast<float*>(own[i].second.raw()),
                      static_cast<float*>(own[i + 1].second.raw())});
  worker_->exchange(values);
  for (const auto& [name, value] : own) scope.set(name, value);
  shared_ = done;
}

void ServerJob::with_values(
    runtime::Scope& scope,
    const std::function<void(std::span<const kernel::Servers::Value>)>& call) {
  std::vector<std::pair<std::string, Tensor>> own;
  std::vector<kernel::Servers::Value> values;
  for (const ps::DenseSpec& table : tables_.dense)
    for (const ps::DenseParam& p : table.params) {
      own.emplace_back(p.name, scope.get(p.name));
      values.push_back({worker_->parameter(p.name), static_cast<float*>(own.back().second.raw())});
    }
  call(values);
  for (const auto& [name, value] : own) {
    scope.set(name, value);
    if (geo_) scope.set(name + "@BASE", value);
  }
}

}  // namespace fleetx::fleet
