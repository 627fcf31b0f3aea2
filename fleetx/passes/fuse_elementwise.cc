// fuse_elementwise: element-wise ops whose results go only into the next one become one
// fused_elementwise, which works block by block: what lies between them stays in cache and needs no
// memory of its own. Forward and backward alike.
//
//   before
//     t = elementwise_mul(a, b)
//     u = scale(t) {scale=0.5}
//     out = elementwise_add(u, c)
//   after
//     out = fused_elementwise([a, b, c]) {ops=["elementwise_mul", "scale", "elementwise_add"],
//         args=["x0 x1", "t0", "t1 x2"], attrs=["", "scale=0.5", ""], results=[2]}
//
// All values have one type, with no unknown dimension. The fused op stands at the place of the last
// one, so the earlier ones read their inputs later: where that would keep more alive than the value
// between them it is not done.
#include <algorithm>
#include <optional>
#include <set>
#include <unordered_map>

#include "fleetx/passes/graph.h"
#include "fleetx/passes/passes.h"

namespace fleetx::passes {
namespace {

using Node = Graph::Node;

// Intermediate blocks of all steps share the cache, so a longer chain would work on shorter blocks.
constexpr size_t kMaxSteps = 16;

bool can_be_step(Graph& g, Node op) {
  if (!op->def->element_wise || op->outputs.size() != 1 || op->outputs[0].size() != 1) return false;
  const std::string& out = op->outputs[0].front();
  const ir::TensorType& type = g.program().var(out).type;
  if (g.producer(out) != op || type.kind != ir::VarKind::kDense || !type.shape.known() ||
      !is_float(type.dtype))
    return false;
  for (const ir::Names& names : op->inputs)
    for (const std::string& name : names)
      if (g.program().var(name).type != type) return false;
  return true;
}

// Attributes that differ from their defaults, as fused_elementwise wants them; nothing where they
// cannot be written so.
std::optional<std::string> encode_attrs(const ir::Op& op) {
  std::string text;
  for (const ir::AttrDef& def : op.def->attrs) {
    const ir::Attr& attr = op.attrs.at(def.name);
    if (def.fallback && attr == *def.fallback) continue;
    std::ostringstream value;
    if (attr.type() == ir::AttrType::kString)
      value << attr.as<std::string>();
    else
      value << attr;
    if (attr.type() > ir::AttrType::kString || value.str().empty() ||
        value.str().find_first_of(" \t\n") != std::string::npos)
      return std::nullopt;
    text += str(text.empty() ? "" : " ", def.name, "=", value.str());
  }
  return text;
}

using Steps = std::vector<Node>;  // in program order; the last one gives the result

// May the steps be done later, where `last` stands?
bool can_move(const Graph& g, const Steps& steps, Node last) {
  std::set<std::string> made, kept_longer;
  for (const Node step : steps) {
    for (const ir::Names& names : step->inputs) {
      for (const std::string& name : names) {
        if (made.contains(name)) continue;
        if (!g.unchanged(name, step, last)) return false;
        const ir::VarInfo& info = g.program().var(name);
        const bool dies = !info.persistable && !info.is_data && !g.fetched(name) &&
                          g.position(g.readers(name).back()) < g.position(last);
        if (dies) kept_longer.insert(name);
      }
    }
    made.insert(step->outputs[0].front());
  }
  // Between neighbours no memory is asked for; further away one input may wait instead of the value
  // that is made of it.
  return kept_longer.size() <= 1 || std::next(steps.back()) == last;
}

class Fusion {
 public:
  explicit Fusion(Graph& g) : g_(g) {}

  void run() {
    for (Node op = g_.begin(); op != g_.end(); ++op)
      if (can_be_step(g_, op) && encode_attrs(*op)) extend(op);
    std::vector<Steps> chains;
    for (const Node last : ends_)
      if (const auto it = chains_.find(&*last); it != chains_.end() && it->second.size() > 1)
        chains.push_back(std::move(it->second));
    for (const Steps& steps : chains) rewrite(steps);
  }

 private:
  // Takes the chains that end in an input of `op`, as far as possible.
  void extend(Node op) {
    Steps steps;
    for (const ir::Names& names : op->inputs) {
      for (const std::string& name : names) {
        const Node before = g_.producer(name);
        if (before == g_.end() || !g_.only_read_by(name, op)) continue;
        const auto it = chains_.find(&*before);
        if (it == chains_.end() || before->role != op->role || before->guard != op->guard ||
            steps.size() + it->second.size() >= kMaxSteps || !can_move(g_, it->second, op))
          continue;
        steps.insert(steps.end(), it->second.begin(), it->second.end());
        chains_.erase(it);
      }
    }
    std::sort(steps.begin(), steps.end(),
              [&](Node a, Node b) { return g_.position(a) < g_.position(b); });
    steps.push_back(op);
    chains_.emplace(&*op, std::move(steps));
    ends_.push_back(op);
  }

  void rewrite(const Steps& steps) {
    ir::Names xs;
    ir::Strings ops, args, attrs;
    std::unordered_map<std::string, std::string> operand;  // of each variable: x<k> or t<k>
    for (const Node step : steps) {
      std::string list;
      for (const ir::Names& names : step->inputs) {
        for (const std::string& name : names) {
          const auto [it, is_new] = operand.try_emplace(name, str("x", xs.size()));
          if (is_new) xs.push_back(name);
          list += (list.empty() ? "" : " ") + it->second;
        }
      }
      operand[step->outputs[0].front()] = str("t", ops.size());
      ops.push_back(step->type());
      args.push_back(std::move(list));
      attrs.push_back(*encode_attrs(*step));
    }
    if (std::all_of(attrs.begin(), attrs.end(), [](const std::string& a) { return a.empty(); }))
      attrs.clear();
    const Node last = steps.back();
    const ir::Rewriter::NewOp fused{.type = "fused_elementwise",
                                    .inputs = {{"xs", xs}},
                                    .outputs = {{"outs", last->outputs[0]}},
                                    .attrs = {{"ops", ops},
                                              {"args", args},
                                              {"attrs", attrs},
                                              {"results", ir::Ints{int64_t(ops.size()) - 1}}},
                                    .role = last->role,
                                    .name = last->name,
                                    .loc = last->loc};
    g_.replace(last, fused);
    for (size_t i = 0; i + 1 < steps.size(); ++i) g_.erase(steps[i]);
  }

  Graph& g_;
  std::unordered_map<const ir::Op*, Steps> chains_;  // by the op they end in
  std::vector<Node> ends_;
};

}  // namespace

void fuse_elementwise(ir::Program& program, const Options& options) {
  Graph g(program, options.keep);
  Fusion(g).run();
  g.drop_orphans();
}

}  // namespace fleetx::passes
