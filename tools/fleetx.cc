// fleetx: look into programs, models and checkpoints, and measure.
#include <algorithm>
#include <iostream>

#include "fleetx/base/error.h"
#include "fleetx/base/names.h"
#include "tools/commands.h"

namespace fleetx::tools {
namespace {

enum ExitCode { kDone = 0, kFailed = 1, kWrongUse = 2 };

int complain(const std::string& message, ExitCode code) {
  std::cerr << "fleetx: error: " << message << "\n";
  return code;
}

// CLI11 calls an unknown command a missing one; the user should see what was not understood.
void check_command(const CLI::App& app, int argc, char** argv) {
  if (argc < 2 || argv[1][0] == '-') return;
  std::vector<std::string> known;
  for (const CLI::App* command : app.get_subcommands({})) known.push_back(command->get_name());
  check_arg(std::ranges::count(known, argv[1]) > 0, "no command '", argv[1],
            "'; known: ", join(known, ", "), did_you_mean(argv[1], known));
}

int run(int argc, char** argv) {
  CLI::App app("Look into FleetX programs, models and checkpoints, and measure.", "fleetx");
  app.set_version_flag("--version", FLEETX_VERSION);
  app.require_subcommand(1);
  app.get_formatter()->column_width(28);
  app.footer("`fleetx COMMAND --help` explains a command and shows examples.");
  add_show(app);
  add_plan(app);
  add_simulate(app);
  add_calibrate(app);
  add_bench(app);
  add_doctor(app);
  add_ps(app);
  add_strategies(app);
  add_convert(app);
  add_export(app);
  add_vocab(app);
  add_tokenize(app);
  add_make_flowers(app);
  try {
    check_command(app, argc, argv);
    app.parse(argc, argv);
  } catch (const CLI::Success& e) {  // --help, --version
    return app.exit(e);
  } catch (const CLI::ParseError& e) {
    return complain(str(e.what(), " (see `fleetx --help`)"), kWrongUse);
  } catch (const Error& e) {
    const bool input =
        e.kind() == Error::Kind::kInvalidArgument || e.kind() == Error::Kind::kCorrupt;
    return complain(e.what(), input ? kWrongUse : kFailed);
  } catch (const std::bad_alloc&) {
    return complain("out of memory", kFailed);
  } catch (const std::exception& e) {
    return complain(e.what(), kFailed);
  }
  std::cout.flush();
  return std::cout ? kDone : complain("cannot write the output", kFailed);
}

}  // namespace
}  // namespace fleetx::tools

int main(int argc, char** argv) { return fleetx::tools::run(argc, argv); }
