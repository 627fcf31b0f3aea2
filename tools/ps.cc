// fleetx ps: the state of parameter servers at a glance.
#include <filesystem>
#include <fstream>
#include <iostream>

#include "fleetx/base/env.h"
#include "fleetx/base/error.h"
#include "fleetx/base/job_env.h"
#include "fleetx/fleet/server_job.h"
#include "fleetx/launch/job.h"
#include "fleetx/ps/client.h"
#include "tools/commands.h"

namespace fleetx::tools {
namespace {

struct PsOptions {
  std::string servers, secret, job = "default", log_dir = "log";
  double seconds = 5;
};

struct Secret {
  std::string value, source;
};

Secret secret_for(const PsOptions& options, const std::vector<std::string>& servers) {
  if (!options.secret.empty()) return {options.secret, "that of --secret"};
  if (const auto given = env::get(job_var::kSecret)) return {*given, "that of FLEETX_JOB_SECRET"};
  const auto path = std::filesystem::path(options.log_dir) / launch::kSecretFile;
  std::ifstream file(path);
  if (std::string value; std::getline(file, value)) return {value, "that of " + path.string()};
  return {fleet::secret_of_servers(servers),
          str("what follows from the list of servers ", options.servers,
              ", as in jobs that were started by hand; of a job that fleetrun has started it is in "
              "the folder of its logs (--log_dir)")};
}

void show(const PsOptions& options) {
  check_arg(options.seconds > 0, "--timeout is ", options.seconds, "; expected seconds above 0");
  const std::vector<std::string> servers = split_list(options.servers);
  check_arg(!servers.empty(), "no server; expected HOST:PORT");
  const Secret secret = secret_for(options, servers);
  for (const std::string& server : servers) {
    try {
      std::cout << ps::to_text(
          ps::read_stats(server, secret.value, options.job,
                         std::chrono::milliseconds(static_cast<int64_t>(options.seconds * 1000))));
    } catch (const Error& e) {
      if (std::string_view(e.what()).find("secret") == std::string_view::npos) throw;
      fail(e.kind(), str(e.what(), "; the secret is ", secret.source));
    }
  }
}

}  // namespace

void add_ps(CLI::App& app) {
  const auto options = std::make_shared<PsOptions>();
  CLI::App* const command =
      app.add_subcommand("ps", "Tables, rates and workers of parameter servers; changes nothing");
  command->add_option("servers", options->servers, "HOST:PORT of a server, or of several: a,b,...")
      ->required();
  command->add_option("--secret", options->secret,
                      "of the job; default: the variable FLEETX_JOB_SECRET, then what fleetrun has "
                      "written into --log_dir, then that of jobs started by hand");
  command->add_option("--log_dir", options->log_dir, "of the fleetrun that runs (default: log)");
  command->add_option("--job", options->job,
                      "name of the job; default: the variable FLEETX_JOB_ID");
  command->add_option("--timeout", options->seconds, "seconds to wait for an answer");
  command->footer(
      "Examples:\n"
      "  fleetx ps 127.0.0.1:6170                    a job of fleetrun, in the folder where it "
      "runs\n"
      "  fleetx ps 10.0.0.1:6170,10.0.0.2:6170       all servers; of a job started by hand: its "
      "list\n");
  command->callback([options] {
    if (options->job == "default") options->job = env::get(job_var::kJobId).value_or("default");
    show(*options);
  });
}

}  // namespace fleetx::tools
