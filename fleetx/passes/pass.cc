#include "fleetx/passes/pass.h"

#include <algorithm>
#include <chrono>

#include "fleetx/base/names.h"
#include "fleetx/ir/rewriter.h"
#include "fleetx/ir/verifier.h"
#include "fleetx/passes/dump.h"
#include "fleetx/passes/passes.h"

namespace fleetx::passes {
namespace {

struct Pass {
  const char* name;
  void (*run)(ir::Program&, const Options&);
};

constexpr Pass kPasses[] = {
    // First, so that no other pass looks at ops that go away, or is held back by their reads.
    {"dce", dce},
    // Before the fusions, so that they know which shapes are equal; after dce, because what is dead
    // need not be fed.
    {"known_shapes", known_shapes},
    {"fuse_softmax_cross_entropy", fuse_softmax_cross_entropy},
    {"fuse_bn_relu", fuse_bn_relu},
    {"fuse_add_relu", fuse_add_relu},
    // With the relus that the two before it have put there.
    {"fuse_conv_norm", fuse_conv_norm},
    {"fuse_bias_act", fuse_bias_act},
    // After activations were taken over, which groups of layers cannot do.
    {"fuse_fc", fuse_fc},
    // After groups were made, which compute all of dx.
    {"narrow_fc_grad", narrow_fc_grad},
    // After the fusions that know more about an op than that it is element-wise.
    {"fuse_elementwise", fuse_elementwise},
    {"recompute_cheap", recompute_cheap},
    {"fuse_optimizer", fuse_optimizer},
    {"update_early", update_early},
};

void check_options(const ir::Program& program, const Options& options) {
  const auto known = local_pass_names();
  for (const std::string& name : options.skip)
    check_arg(std::find(known.begin(), known.end(), name) != known.end(), "there is no pass '",
              name, "' to skip; the passes are: ", join(known, ", "));
  for (const std::string& name : options.keep) (void)program.var(name);
}

}  // namespace

std::vector<std::string> local_pass_names() {
  std::vector<std::string> names;
  for (const Pass& pass : kPasses) names.emplace_back(pass.name);
  return names;
}

std::vector<Report> run_local_passes(ir::Program& program, const Options& options) {
  check_options(program, options);
  // What the program trains has done its work: passes rename and remove what it names.
  ir::Rewriter(program).edit_training() = {};
  dump(program, options.dump_dir, 0, "program");

  std::vector<Report> reports;
  for (const Pass& pass : kPasses) {
    Report& report = reports.emplace_back();
    report.name = pass.name;
    report.ops_before = report.ops_after = program.ops().size();
    report.skipped = options.skip.contains(report.name);
    if (report.skipped) continue;

    const auto start = std::chrono::steady_clock::now();
    pass.run(program, options);
    report.seconds =
        std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
    report.ops_after = program.ops().size();
    dump(program, options.dump_dir, reports.size(), report.name);
    ir::verify(program, str("after pass '", report.name, "'"));
  }
  return reports;
}

}  // namespace fleetx::passes
