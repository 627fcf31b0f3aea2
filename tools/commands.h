// The subcommands of `fleetx`. Each adds itself to the command line; what it is to do runs as its
// callback and reports mistakes as fleetx::Error.
#pragma once

#include <CLI/CLI.hpp>

namespace fleetx::tools {

void add_show(CLI::App& app);
void add_plan(CLI::App& app);
void add_calibrate(CLI::App& app);
void add_simulate(CLI::App& app);
void add_make_flowers(CLI::App& app);
void add_convert(CLI::App& app);
void add_export(CLI::App& app);
void add_vocab(CLI::App& app);
void add_tokenize(CLI::App& app);
void add_bench(CLI::App& app);
void add_doctor(CLI::App& app);
void add_ps(CLI::App& app);
void add_strategies(CLI::App& app);

}  // namespace fleetx::tools
