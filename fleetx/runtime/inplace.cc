// Outputs reuse the memory of inputs. An op declares which output may overwrite which input; this
// phase allows it where no other op reads the input afterwards. An op under a guard may do so, too:
// where it is skipped, so are all readers of its output.
#include <algorithm>
#include <set>

#include "fleetx/runtime/phases.h"

namespace fleetx::runtime {
namespace {

size_t first_position(const std::vector<ir::Names>& slots, int slot) {
  size_t before = 0;
  for (int s = 0; s < slot; ++s) before += slots[static_cast<size_t>(s)].size();
  return before;
}

class Sharing {
 public:
  explicit Sharing(PlannedProgram& plan) : plan_(plan) {
    for (const ir::Op& op : plan.program.ops())
      for (const ir::Names& names : op.outputs)
        for (const std::string& name : names) ++writers_[name];
  }

  void share(int at, const ir::Op& op) {
    // An output shares memory with one input only: a second one would overlap the first.
    std::set<int> shared;
    const Step& step = plan_.steps[static_cast<size_t>(at)];
    for (const auto& [out_slot, in_slot] : op.def->in_place) {
      const int out_index = op.def->output_index(out_slot);
      const int in_index = op.def->input_index(in_slot);
      const size_t pairs = std::min(op.outputs[static_cast<size_t>(out_index)].size(),
                                    op.inputs[static_cast<size_t>(in_index)].size());
      for (size_t i = 0; i < pairs; ++i) {
        const int out = step.outputs[first_position(op.outputs, out_index) + i];
        const int in = step.inputs[first_position(op.inputs, in_index) + i];
        if (shared.contains(out) || !may_share(step, at, op, out, in)) continue;
        take_over(plan_.value(out).storage, plan_.value(in).storage, at);
        shared.insert(out);
      }
    }
  }

 private:
  // A variable with several writers changes during the step, so it must not share its memory.
  bool is_written_again(int value) const {
    const auto it = writers_.find(plan_.value(value).var);
    return it != writers_.end() && it->second > 1;
  }

  bool may_share(const Step& step, int at, const ir::Op& op, int out, int in) const {
    const int from = plan_.value(in).storage, to = plan_.value(out).storage;
    const Storage& source = plan_.storage(from);
    const Storage& target = plan_.storage(to);
    if (is_written_again(out) || is_written_again(in)) return false;
    // Steps that belong to the op (write-backs) read its guard after it.
    if (step.guard != kNoGuard && plan_.value(step.guard).storage == from) return false;
    if (from == to || target.region != Region::kArena || source.block.bytes != target.block.bytes ||
        plan_.value(in).desc.kind != plan_.value(out).desc.kind)
      return false;
    // The bytes are the same and nobody changes them: sharing is right even if the input lives on.
    if (op.def->view) return source.region != Region::kScope;
    const bool dies_here = source.block.last == at && source.region == Region::kArena;
    const auto reads_it = [&](int v) { return plan_.value(v).storage == from; };
    return dies_here && std::count_if(step.inputs.begin(), step.inputs.end(), reads_it) == 1;
  }

  void take_over(int to, int from, int at) {
    Block& source = plan_.storage(from).block;
    Block& target = plan_.storage(to).block;
    source.last = std::max(source.last, target.last);
    for (Value& value : plan_.values)
      if (value.storage == to) value.storage = from;
    target = {0, at, at, 0};
  }

  PlannedProgram& plan_;
  std::map<std::string, int> writers_;  // how many ops write a variable
};

}  // namespace

void share_storages(Planning& p) {
  if (p.skips("inplace")) return;
  Sharing sharing(p.plan);
  for (const auto& [at, op] : p.ops) sharing.share(at, *op);
}

}  // namespace fleetx::runtime
