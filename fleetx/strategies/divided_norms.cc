#include "fleetx/strategies/divided_norms.h"

namespace fleetx::strategies {

using ir::Role;

void add_up_norms(ir::Rewriter& rw, const ir::Training& training, const std::string& group,
                  const std::function<bool(const std::string& parameter)>& is_own) {
  for (auto op = rw.begin(); op != rw.end(); ++op) {
    if (op->type() != "squared_l2_norm" || op->role != Role::kUpdate) continue;
    ir::Names own;
    for (const std::string& gradient : op->in("xs")) {
      const ir::Training::Parameter* p = training.find_gradient(gradient);
      FLEETX_CHECK(p != nullptr, ir::describe(*op), "reads '", gradient,
                   "', which is applied to no parameter");
      if (is_own(p->name)) own.push_back(gradient);
    }
    const std::string norm = op->out("out").front();
    const std::string guard = op->guard;
    if (own.empty()) {
      const auto zero =
          rw.insert(op, {.type = "fill",
                         .outputs = {{"out", {norm}}},
                         .attrs = {{"shape", ir::Ints{1}}, {"dtype", DType::kF32}, {"value", 0.0}},
                         .role = Role::kUpdate,
                         .guard = guard});
      rw.erase(op);
      op = zero;
    } else {
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
