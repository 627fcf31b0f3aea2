#include "tools/fleetrun_flags.h"

#include <CLI/CLI.hpp>
#include <iostream>

#include "fleetx/base/error.h"
#include "fleetx/base/names.h"

namespace fleetx::tools {
namespace {

const char* const kExamples =
    "Everything after SCRIPT is passed to it unchanged.\n"
    "\n"
    "Collective training (workers average their gradients):\n"
    "  fleetrun --gpus=0,1 train                    two workers, each on a share of the cores\n"
    "  fleetrun --nproc_per_node=4 train.py --lr 1  four workers of a Python script\n"
    "  fleetrun --ips=10.0.0.1,10.0.0.2 --gpus=0,1 train\n"
    "                                               two machines; the same command on each\n"
    "Parameter servers:\n"
    "  fleetrun --server_num=1 --worker_num=4 train\n"
    "  fleetrun --servers=10.0.0.1:6170,10.0.0.2:6171 --workers=10.0.0.1,10.0.0.2 train\n"
    "Before anything starts:\n"
    "  fleetrun --plan --machines=cluster.yaml --nnodes=128 --nproc_per_node=8 train.py\n"
    "                                               memory, traffic and predicted time of a step\n"
    "\n"
    "Logs are in log/workerlog.N and log/serverlog.N; the output of the first worker is shown.\n"
    "Exit code: that of the first process that failed (128 + signal if it was killed), 2 for\n"
    "wrong use, 130 after Ctrl-C. docs/fleetrun.md says more.";

void add_flags(CLI::App& app, launch::Options& o) {
  app.add_option("--gpus,--devices,--selected_gpus", o.gpus,
                 "Slots, as in 0,1: a worker on each (default: CUDA_VISIBLE_DEVICES, else one)")
      ->group("Collective");
  app.add_option("--nproc_per_node", o.nproc_per_node,
                 "Workers on each machine; with --gpus, each gets an equal part of the slots")
      ->group("Collective");
  app.add_option("--ips", o.ips, "Addresses of the machines (default: 127.0.0.1)")
      ->group("Collective");
  app.add_option("--master", o.master, "ip:port where the machines meet, instead of --ips")
      ->group("Collective");
  app.add_option("--nnodes", o.nnodes, "Number of machines that meet at --master")
      ->group("Collective");
  app.add_option("--rank", o.rank, "Number of this machine, from 0, with --master")
      ->group("Collective");
  const char* ps = "Parameter servers";
  app.add_option("--server_num", o.server_num, "Servers to start on this machine")->group(ps);
  app.add_option("--worker_num", o.worker_num, "Workers to start on this machine")->group(ps);
  app.add_option("--servers", o.servers, "ip:port of all servers, on any machine")->group(ps);
  app.add_option("--workers", o.workers, "ip or ip:port of all workers")->group(ps);
  app.add_option("--heter_worker_num", o.heter_worker_num, "Not built: refused")->group(ps);
  app.add_option("--heter_workers", o.heter_workers, "Not built: refused")->group(ps);
  app.add_option("--http_port", o.http_port, "Port where the processes meet (default: any)")
      ->group(ps);
  app.add_option(
         "--snapshot_interval", o.snapshot_interval,
         "Seconds between snapshots of a server, from which it goes on if it dies (not sync)")
      ->group(ps);
  app.add_option("--snapshot_dir", o.snapshot_dir,
                 "Where servers keep them (default: snapshots in --log_dir)")
      ->group(ps);
  app.add_option("--replicas", o.replicas,
                 "2: each server keeps a copy of another, so that one may die and nothing is lost")
      ->group(ps);
  app.add_option("--server_memory", o.server_memory,
                 "Bytes (512M, 4G) that the tables of a server may take (default: any)")
      ->group(ps);
  app.add_option("--server_disk", o.server_disk,
                 "Folder where a server keeps rows beyond that; without it they are refused")
      ->group(ps);
  const char* any = "Any job";
  app.add_option("--run_mode", o.run_mode, "collective or ps (default: from the flags)")
      ->group(any);
  app.add_option("--log_dir", o.log_dir, "Folder of the logs (default: log)")->group(any);
  app.add_option("--job_id", o.job_id, "Name of the job (default: default)")->group(any);
  app.add_option("--max_restart", o.max_restart,
                 "How often to start the whole job again after a failure (default: 0)")
      ->group(any);
  app.add_option("--grace", o.grace, "Seconds between SIGTERM and SIGKILL (default: 5)")
      ->group(any);
  app.add_option("--python", o.python, "Interpreter of .py scripts (default: " FLEETX_PYTHON ")")
      ->group(any);
}

void add_plan_flags(CLI::App& app, PlanFlags& p) {
  const char* group = "Planning";
  app.add_flag("--plan", p.plan,
               "Start nothing: print memory, traffic and the predicted time of a step")
      ->group(group);
  app.add_option("--machines", p.machines,
                 "With --plan: description of the machines (default: a guess of this one)")
      ->group(group);
  app.add_option("--timeline", p.timeline,
                 "With --plan: file for the predicted step, for ui.perfetto.dev")
      ->group(group);
}

// Every flag of ours but one has a value, so the script is the first word that is neither.
int find_script(int argc, const char* const* argv) {
  int at = 1;
  while (at < argc && argv[at][0] == '-') {
    const std::string word = argv[at];
    if (word == "--") return at + 1;
    const bool alone = word == "-h" || word == "--help" || word == "--version" || word == "--plan";
    at += alone || word.find('=') != std::string::npos ? 1 : 2;
  }
  return std::min(at, argc);
}

void check_known(const CLI::App& app, const std::vector<std::string>& words) {
  std::vector<std::string> known;
  for (const CLI::Option* option : app.get_options())
    for (const std::string& name : option->get_lnames()) known.push_back("--" + name);
  for (size_t i = 0; i < words.size(); ++i) {
    if (words[i].empty() || words[i][0] != '-' || words[i] == "-h" || words[i] == "--") continue;
    const size_t equal = words[i].find('=');
    const std::string name = words[i].substr(0, equal);
    check_arg(std::ranges::count(known, name) > 0, "there is no flag '", name, "'",
              did_you_mean(name, known),
              " (see `fleetrun --help`; flags of the script come after it)");
    if (name == "--help" || name == "--version" || name == "--plan") continue;
    const bool apart = equal == std::string::npos;
    check_arg(apart ? i + 1 < words.size() : equal + 1 < words[i].size(), name,
              " has no value; write ", name, "=VALUE (see `fleetrun --help`)");
    if (apart) ++i;
  }
}

}  // namespace

std::optional<launch::Options> parse_fleetrun(int argc, const char* const* argv, PlanFlags& plan) {
  launch::Options options;
  CLI::App app("Starts the processes of a training job, watches them and stops them.", "fleetrun");
  app.set_version_flag("--version", FLEETX_VERSION);
  // Only for the help: they are taken off before the flags are parsed.
  app.add_option("SCRIPT", options.script, "A program, or a .py file");
  app.add_option("ARGUMENTS", options.args, "Its arguments");
  app.footer(kExamples);
  app.get_formatter()->column_width(30);
  add_flags(app, options);
  add_plan_flags(app, plan);

  const int script = find_script(argc, argv);
  std::vector<std::string> words(argv + 1, argv + script);
  check_known(app, words);
  try {
    std::erase(words, "--");
    std::ranges::reverse(words);  // CLI11 takes them from the end
    app.parse(std::move(words));
  } catch (const CLI::Success& e) {  // --help, --version
    app.exit(e);
    return std::nullopt;
  } catch (const CLI::ConversionError& e) {
    const std::string what = e.what();  // Could not convert: --rank = x
    fail(Error::Kind::kInvalidArgument,
         str(what.substr(what.find('-')), ": expected a number (see `fleetrun --help`)"));
  } catch (const CLI::ParseError& e) {
    fail(Error::Kind::kInvalidArgument, str(e.what(), " (see `fleetrun --help`)"));
  }
  check_arg(plan.plan || (plan.machines.empty() && plan.timeline.empty()),
            "--machines and --timeline are about --plan, which is not there");
  check_arg(script < argc,
            "there is no script to run; give a program or a .py file after the flags, as in "
            "`fleetrun --gpus=0,1 train.py`");
  options.script = argv[script];
  check_arg(!options.script.empty(), "the name of the script is empty");
  options.args.assign(argv + script + 1, argv + argc);
  return options;
}

}  // namespace fleetx::tools
