// fleetx ps: the state of a parameter server at a glance.
#include <iostream>

#include "fleetx/base/env.h"
#include "fleetx/base/error.h"
#include "fleetx/base/job_env.h"
#include "fleetx/ps/client.h"
#include "tools/commands.h"

namespace fleetx::tools {

void add_ps(CLI::App& app) {
  struct Options {
    std::string endpoint, secret, job = "default";
    double seconds = 5;
  };
  const auto options = std::make_shared<Options>();
  CLI::App* const command =
      app.add_subcommand("ps", "Tables, rates and workers of a parameter server; changes nothing");
  command->add_option("server", options->endpoint, "HOST:PORT of the server")->required();
  command->add_option("--secret", options->secret,
                      "of the job; default: the variable FLEETX_JOB_SECRET");
  command->add_option("--job", options->job,
                      "name of the job; default: the variable FLEETX_JOB_ID");
  command->add_option("--timeout", options->seconds, "seconds to wait for an answer");
  command->footer(
      "Examples:\n"
      "  fleetx ps 127.0.0.1:6170 --secret $FLEETX_JOB_SECRET\n");
  command->callback([options] {
    if (options->secret.empty()) options->secret = env::get(job_var::kSecret).value_or("");
    if (options->job == "default") options->job = env::get(job_var::kJobId).value_or("default");
    check_arg(options->seconds > 0, "--timeout is ", options->seconds,
              "; expected seconds above 0");
    std::cout << ps::to_text(
        ps::read_stats(options->endpoint, options->secret, options->job,
                       std::chrono::milliseconds(static_cast<int64_t>(options->seconds * 1000))));
  });
}

}  // namespace fleetx::tools
