// fuse_optimizer: one sweep over many parameters. Updates of one type that have the same scalar
// attributes and share their single inputs (lr, scale) become one op; what is given per parameter
// (variables, lr_factors, l1, l2, ...) is put one after the other. The merged op stands at the
// place of the last one. Large networks get several sweeps, each over parameters that are ready to
// be updated at about the same time, so that update_early finds a place for it.
//
//   before
//     [w], [vw] = momentum([w], [dw], [vw], lr, _) {mu=0.9, l2=[0.0001]}
//     [b], [vb] = momentum([b], [db], [vb], lr, _) {mu=0.9}
//   after
//     [w, b], [vw, vb] = momentum([w, b], [dw, db], [vw, vb], lr, _) {mu=0.9, l2=[0.0001, 0.0]}
//
// Updates under different guards stay apart. Updates with sparse gradients stay single: each has
// its own rows to merge. So does an update whose variables another op uses before or at the last
// one.
#include <algorithm>
#include <map>

#include "fleetx/ir/infer.h"
#include "fleetx/passes/graph.h"
#include "fleetx/passes/passes.h"

namespace fleetx::passes {
namespace {

using Node = Graph::Node;

// The value that an empty list stands for; other lists must be empty in all updates or in none.
const std::map<std::string, double, std::less<>> kFallbacks = {
    {"l1", 0.0}, {"l2", 0.0}, {"lr_factors", 1.0}, {"with_decay", 1.0}};

bool is_list(const ir::Attr& attr) { return attr.type() >= ir::AttrType::kInts; }

bool is_empty(const ir::Attr& list) {
  return list == ir::Attr(ir::Ints{}) || list == ir::Attr(ir::Floats{}) ||
         list == ir::Attr(ir::Strings{});
}

bool is_dense_update(const ir::Program& p, const ir::Op& op) {
  if (!op.def->updates_parameters || op.role != ir::Role::kUpdate) return false;
  const ir::Names& grads = op.in("grad");
  return std::all_of(grads.begin(), grads.end(), [&](const std::string& grad) {
    return p.var(grad).type.kind == ir::VarKind::kDense;
  });
}

// Updates with the same key may be merged.
std::string key_of(const ir::Program& p, const ir::Op& op) {
  std::ostringstream key;
  key << op.type() << ' ' << op.guard << ' ' << p.var(op.in("param").front()).type.dtype;
  for (size_t s = 0; s < op.inputs.size(); ++s)
    if (op.def->inputs[s].arity != ir::Arity::kMany)
      key << ' ' << (op.inputs[s].empty() ? "_" : op.inputs[s].front());
  for (const auto& [name, attr] : op.attrs) {
    key << ' ' << name << '=';
    if (!is_list(attr))
      key << attr;
    else if (!kFallbacks.contains(name))
      key << (is_empty(attr) ? "none" : "given");
  }
  return key.str();
}

template <class List>
List concatenated(const std::string& name, const std::vector<Node>& updates) {
  List all;
  for (const Node op : updates) {
    const auto& list = std::get<List>(op->attrs.at(name).value());
    all.insert(all.end(), list.begin(), list.end());
  }
  return all;
}

ir::Attr merged_list(const std::string& name, const std::vector<Node>& updates) {
  const ir::AttrType type = updates.front()->attrs.at(name).type();
  if (type == ir::AttrType::kInts) return concatenated<ir::Ints>(name, updates);
  if (type == ir::AttrType::kStrings) return concatenated<ir::Strings>(name, updates);
  const bool none = std::all_of(updates.begin(), updates.end(),
                                [&](Node op) { return is_empty(op->attrs.at(name)); });
  if (none || !kFallbacks.contains(name)) return concatenated<ir::Floats>(name, updates);
  ir::Floats all;
  for (const Node op : updates) {
    auto list = op->attr<ir::Floats>(name);
    if (list.empty()) list.assign(op->in("param").size(), kFallbacks.at(name));
    all.insert(all.end(), list.begin(), list.end());
  }
  return all;
}

void merge(Graph& g, const std::vector<Node>& updates) {
  const Node last = updates.back();
  ir::Rewriter::NewOp merged{.type = last->type(),
                             .inputs = {},
                             .outputs = {},
                             .attrs = last->attrs,
                             .role = last->role,
                             .name = last->name,
                             .loc = last->loc};
  const auto gather = [&](const std::vector<ir::SlotDef>& defs,
                          std::vector<ir::Names> ir::Op::*slots, auto& into) {
    for (size_t s = 0; s < defs.size(); ++s) {
      const bool shared = defs[s].arity != ir::Arity::kMany;
      ir::Names names;
      for (const Node op : shared ? std::vector<Node>{last} : updates) {
        const ir::Names& more = ((*op).*slots)[s];
        names.insert(names.end(), more.begin(), more.end());
      }
      into.emplace_back(defs[s].name, std::move(names));
    }
  };
  gather(last->def->inputs, &ir::Op::inputs, merged.inputs);
  gather(last->def->outputs, &ir::Op::outputs, merged.outputs);
  for (auto& [name, attr] : merged.attrs)
    if (is_list(attr)) attr = merged_list(name, updates);

  g.replace(last, merged);
  for (size_t i = 0; i + 1 < updates.size(); ++i) g.erase(updates[i]);
}

// Enough for a sweep to be worth its call.
constexpr double kSweepBytes = 4 << 20;

double parameter_bytes(const Graph& g, Node op) {
  double bytes = 0;
  for (const std::string& name : op->in("param")) bytes += ir::bytes_of(g.program().var(name).type);
  return bytes;
}

// The place of the last op before the update that makes what it reads or uses what it changes.
int64_t ready_at(const Graph& g, Node update) {
  int64_t ready = -1;
  const auto look = [&](const std::vector<Node>& ops) {
    for (const Node op : ops)
      if (g.position(op) < g.position(update)) ready = std::max(ready, g.position(op));
  };
  for (const ir::Names& names : update->inputs)
    for (const std::string& name : names) look(g.writers(name));
  for (const ir::Names& names : update->outputs)
    for (const std::string& name : names) look(g.readers(name));
  if (!update->guard.empty()) look(g.writers(update->guard));
  return ready;
}

std::vector<std::vector<Node>> sweeps(const Graph& g, const std::vector<Node>& updates) {
  std::vector<std::pair<int64_t, Node>> by_time;
  for (const Node op : updates) by_time.emplace_back(ready_at(g, op), op);
  std::stable_sort(by_time.begin(), by_time.end(),
                   [](const auto& a, const auto& b) { return a.first < b.first; });
  std::vector<std::vector<Node>> all(1);
  double bytes = 0;
  for (const auto& [ready, op] : by_time) {
    if (bytes >= kSweepBytes) {
      all.emplace_back();
      bytes = 0;
    }
    all.back().push_back(op);
    bytes += parameter_bytes(g, op);
  }
  for (std::vector<Node>& sweep : all)
    std::sort(sweep.begin(), sweep.end(),
              [&](Node a, Node b) { return g.position(a) < g.position(b); });
  return all;
}

}  // namespace

void fuse_optimizer(ir::Program& program, const Options& options) {
  Graph g(program, options.keep);
  std::map<std::string, std::vector<Node>> groups;
  for (Node op = g.begin(); op != g.end(); ++op)
    if (is_dense_update(program, *op)) groups[key_of(program, *op)].push_back(op);
  for (auto& [key, updates] : groups) {
    const Node last = updates.back();
    std::erase_if(updates, [&](Node op) { return op != last && !g.can_move(op, last); });
    for (const std::vector<Node>& sweep : sweeps(g, updates))
      if (sweep.size() > 1) merge(g, sweep);
  }
  g.drop_orphans();
}

}  // namespace fleetx::passes
