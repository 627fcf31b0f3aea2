// The request: which variables are fed and fetched, and what the local passes make of the program.
#include <algorithm>

#include "fleetx/base/names.h"
#include "fleetx/ir/owned.h"
#include "fleetx/runtime/phases.h"

namespace fleetx::runtime {
namespace {

// Can be skipped like passes. The second and third are algorithms that kernels do without then.
constexpr const char* kPhases[] = {"layout", "winograd", "strassen", "inplace", "memory"};

bool dims_fit(const Shape& declared, const Shape& got) {
  if (declared.rank() != got.rank()) return false;
  for (int d = 0; d < got.rank(); ++d)
    if (declared[d] >= 0 && declared[d] != got[d]) return false;
  return true;
}

ir::Names data_names(const ir::Program& program) {
  ir::Names names;
  for (const ir::VarInfo* v : program.vars())
    if (v->is_data) names.push_back(v->name);
  return names;
}

}  // namespace

const ir::VarInfo& fetched_var(const Planning& p, const std::string& name) {
  const ir::VarInfo* v = p.plan.program.find(name);
  if (v == nullptr) {
    ir::Names known;
    for (const ir::VarInfo* info : p.plan.program.vars()) known.push_back(info->name);
    check_arg(false, "fetch '", name, "': the program has no such variable",
              did_you_mean(name, known));
  }
  const auto stage = ir::stage_of_value(*v);
  const auto written = [&](const ir::Op& op) { return op.writes(name); };
  if (stage && std::none_of(p.plan.program.ops().begin(), p.plan.program.ops().end(), written)) {
    check_arg(false, "fetch '", name, "': stage ", std::max(*stage, 0),
              " of the pipeline computes it, for each micro-batch alone: fetch '", name, "@MB0', '",
              name, "@MB1', ... there");
  }
  return *v;
}

// Also of variables that no op reads: a checkpoint would not know what to do with them. A program
// that is planned without a mesh may be for any.
void check_placements(const Planning& p) {
  const Mesh& mesh = p.options.mesh;
  if (mesh.axes().empty()) return;
  for (const ir::VarInfo* v : p.plan.program.vars()) {
    if (v->placement.axis.empty()) continue;
    for (const std::string& axis : Mesh::axes_of(v->placement.axis)) {
      ir::Names known;
      for (const Mesh::Axis& a : mesh.axes()) known.push_back(a.name);
      check_arg(mesh.has(axis), "variable '", v->name, "' is ", v->placement,
                ", but the mesh has no axis '", axis, "'", did_you_mean(axis, known),
                " (its axes: ", join(known, ", "), ")");
    }
  }
}

void check_request(Planning& p) {
  const ir::Program& program = p.plan.program;
  check_placements(p);
  for (const auto& [name, type] : p.plan.feeds) {
    const ir::VarInfo* v = program.find(name);
    check_arg(v != nullptr && v->is_data, "feed '", name,
              "': the program has no data variable of that name",
              did_you_mean(name, data_names(program)),
              " (it has: ", join(data_names(program), ", "), ")");
    check_arg(type.dtype == v->type.dtype && dims_fit(v->type.shape, type.shape), "feed '", name,
              "': the program declares ", v->type, ", got ", type);
    check_arg(p.types.emplace(name, type).second, "feed '", name, "' is given twice");
    for (const int64_t d : type.shape)
      check_arg(d > 0, "feed '", name, "': the batch is empty (", type, ")");
  }
  for (const std::string& name : p.fetch) (void)fetched_var(p, name);
}

void run_passes(Planning& p) {
  passes::Options options;
  options.keep = p.fetch;
  options.feeds = p.plan.feeds;
  ir::Names known = passes::local_pass_names();
  known.insert(known.end(), std::begin(kPhases), std::end(kPhases));
  for (const std::string& name : p.options.skip)
    check_arg(std::find(known.begin(), known.end(), name) != known.end(), "there is no pass '",
              name, "' to skip", did_you_mean(name, known), " (known: ", join(known, ", "), ")");
  options.skip = p.options.skip;
  for (const char* phase : kPhases) options.skip.erase(phase);
  options.dump_dir = p.options.dump_dir;
  p.plan.passes = passes::run_local_passes(p.plan.program, options);
}

}  // namespace fleetx::runtime
