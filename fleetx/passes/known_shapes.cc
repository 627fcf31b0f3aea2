// known_shapes: carries the shapes of the feeds through the program, so that no dimension is
// unknown any more: the passes that follow can tell equal shapes from shapes that only look alike.
//
//   before (x is fed as f32[32,4])     after
//     data x : f32[-1,4]                 data x : f32[32,4]
//     var out : f32[-1,4]                var out : f32[32,4]
//     out = scale(x)                     out = scale(x)
//
// Where a feed is missing nothing is done: the planner says which.
#include <set>

#include "fleetx/ir/infer.h"
#include "fleetx/ir/rewriter.h"
#include "fleetx/passes/passes.h"

namespace fleetx::passes {
namespace {

bool all_fed(const ir::Program& program, const Options& options) {
  std::set<std::string_view> fed;
  for (const auto& [name, type] : options.feeds) fed.insert(name);
  for (const ir::Op& op : program.ops())
    for (const ir::Names& names : op.inputs)
      for (const std::string& name : names)
        if (program.var(name).is_data && !fed.contains(name)) return false;
  return true;
}

}  // namespace

void known_shapes(ir::Program& program, const Options& options) {
  if (options.feeds.empty() || !all_fed(program, options)) return;
  ir::Rewriter rw(program);
  for (const auto& [name, type] : options.feeds) rw.edit_var(name).type = type;
  const auto type_of = [&](const std::string& name) -> const ir::TensorType& {
    return program.var(name).type;
  };
  for (const ir::Op& op : program.ops()) {
    const auto types = ir::infer_types(op, type_of);
    for (size_t s = 0; s < op.outputs.size(); ++s)
      for (size_t i = 0; i < op.outputs[s].size(); ++i)
        if (!program.var(op.outputs[s][i]).persistable)
          rw.edit_var(op.outputs[s][i]).type = types[s][i];
  }
}

}  // namespace fleetx::passes
