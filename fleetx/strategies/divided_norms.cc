#include "fleetx/strategies/divided_norms.h"

namespace fleetx::strategies {

using ir::Role;

namespace {

// The name of the op that makes the norm of a rank that has nothing: norms of several groups are
// added up one after the other, and all ranks must come to each sum.
constexpr const char* kNothing = "norm_of_nothing";

}  // namespace

void add_up_norms(ir::Rewriter& rw, const ir::Training& training, const std::string& group,
                  const std::function<bool(const std::string& parameter)>& is_own) {
  for (auto op = rw.begin(); op != rw.end(); ++op) {
    const bool is_norm = op->type() == "squared_l2_norm";
    if ((!is_norm && op->name != kNothing) || op->role != Role::kUpdate) continue;
    const ir::Names all = is_norm ? op->in("xs") : ir::Names{};
    ir::Names own;
    for (const std::string& gradient : all) {
      const ir::Training::Parameter* p = training.find_gradient(gradient);
      FLEETX_CHECK(p != nullptr, ir::describe(*op), "reads '", gradient,
                   "', which is applied to no parameter");
      if (is_own(p->name)) own.push_back(gradient);
    }
    const std::string norm = op->out("out").front();
    const std::string guard = op->guard;
    if (is_norm && own.empty()) {
      const auto zero =
          rw.insert(op, {.type = "fill",
                         .outputs = {{"out", {norm}}},
                         .attrs = {{"shape", ir::Ints{1}}, {"dtype", DType::kF32}, {"value", 0.0}},
                         .role = Role::kUpdate,
                         .name = kNothing,
                         .guard = guard});
      rw.erase(op);
      op = zero;
    } else if (is_norm) {
      rw.set_inputs(op, "xs", own);
    }
    op = rw.insert(std::next(op), {.type = "all_reduce",
                                   .inputs = {{"xs", {norm}}},
                                   .outputs = {{"out", {norm}}},
                                   .attrs = {{"group", group}, {"op", "sum"}},
                                   .role = Role::kUpdate,
                                   .guard = guard});
  }
}

}  // namespace fleetx::strategies
