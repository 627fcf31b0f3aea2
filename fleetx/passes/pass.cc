#include "fleetx/passes/pass.h"

#include <algorithm>
#include <chrono>
#include <filesystem>
#include <fstream>
#include <iomanip>

#include "fleetx/base/names.h"
#include "fleetx/ir/text.h"
#include "fleetx/ir/verifier.h"
#include "fleetx/passes/passes.h"

namespace fleetx::passes {
namespace {

struct Pass {
  const char* name;
  void (*run)(ir::Program&, const ir::Names& keep);
};

constexpr Pass kPasses[] = {
    // First, so that no other pass looks at ops that go away, or is held back by their reads.
    {"dce", dce},
};

void check_options(const ir::Program& program, const Options& options) {
  const auto known = local_pass_names();
  for (const std::string& name : options.skip)
    check_arg(std::find(known.begin(), known.end(), name) != known.end(), "there is no pass '",
              name, "' to skip; the passes are: ", join(known, ", "));
  for (const std::string& name : options.keep) (void)program.var(name);
}

void dump(const ir::Program& program, const std::string& dir, size_t number,
          std::string_view name) {
  std::ostringstream file;
  file << std::setw(2) << std::setfill('0') << number << '.' << name << ".txt";
  const auto path = std::filesystem::path(dir) / file.str();
  std::ofstream out(path);
  out << ir::to_text(program);
  out.flush();
  check_arg(out.good(), "cannot write the dump ", path);
}

}  // namespace

std::vector<std::string> local_pass_names() {
  std::vector<std::string> names;
  for (const Pass& pass : kPasses) names.emplace_back(pass.name);
  return names;
}

std::vector<Report> run_local_passes(ir::Program& program, const Options& options) {
  check_options(program, options);
  if (!options.dump_dir.empty()) {
    std::error_code error;
    std::filesystem::create_directories(options.dump_dir, error);
    check_arg(!error, "cannot make the folder '", options.dump_dir,
              "' for dumps: ", error.message());
    dump(program, options.dump_dir, 0, "program");
  }

  std::vector<Report> reports;
  for (const Pass& pass : kPasses) {
    Report& report = reports.emplace_back();
    report.name = pass.name;
    report.ops_before = report.ops_after = program.ops().size();
    report.skipped = options.skip.contains(report.name);
    if (report.skipped) continue;

    const auto start = std::chrono::steady_clock::now();
    pass.run(program, options.keep);
    report.seconds =
        std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
    report.ops_after = program.ops().size();
    ir::verify(program, str("after pass '", report.name, "'"));
    if (!options.dump_dir.empty()) dump(program, options.dump_dir, reports.size(), report.name);
  }
  return reports;
}

}  // namespace fleetx::passes
