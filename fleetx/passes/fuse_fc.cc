// fuse_fc: fully connected layers that read the same x, as q, k and v of attention do, become one
// op, and their gradients, too. What else is added to the gradient of x goes into it as well.
//
//   before
//     q = fc(x, wq, bq)
//     k = fc(x, wk, bk)
//     backward:
//     dx0, dwk, dbk = fc_grad(x, wk, _, _, dk)
//     dx1, dwq, dbq = fc_grad(x, wq, _, _, dq)
//     dx = sum([r, dx0, dx1])
//   after
//     [q, k] = fc_group(x, [wq, wk], [bq, bk])
//     backward:
//     dx, [dwk, dwq], [dbk, dbq] = fc_group_grad(x, [wk, wq], [dk, dq], r)
//
// A single gradient, too, takes over the sum of dx and one other. The new op stands where the first
// layer stood; a backward one, where that cannot be, at the place of the last. Layers have no
// activation and w of one shape, those of a forward group have a bias (a list of inputs cannot be
// empty). Layers that stand far apart stay single: their results would be kept for longer.
#include <algorithm>

#include "fleetx/passes/graph.h"
#include "fleetx/passes/passes.h"

namespace fleetx::passes {
namespace {

using Node = Graph::Node;

constexpr int64_t kNear = 32;  // ops

// Layers with the same answer may become one group.
std::string kind_of(Graph& g, Node fc) {
  std::ostringstream kind;
  kind << ir::name_of(fc->role) << ' ' << fc->attr<int>("num_flatten_dims") << ' '
       << g.program().var(fc->in("w").front()).type;
  for (const ir::Names& names : fc->outputs) kind << ' ' << names.size();
  return kind.str();
}

// Ops of the type that read x as their x, and have no activation; in program order.
std::vector<Node> layers_on(const Graph& g, std::string_view type, const std::string& x) {
  std::vector<Node> found;
  for (const Node op : g.readers(x))
    if (op->type() == type && op->guard.empty() && op->in("x").front() == x &&
        op->attr<std::string>("act").empty())
      found.push_back(op);
  return found;
}

// Of the layers, those that could stand where `place` stands.
std::vector<Node> movable(const Graph& g, const std::vector<Node>& layers, Node place) {
  std::vector<Node> found;
  for (const Node op : layers)
    if (op == place ||
        (std::abs(g.position(op) - g.position(place)) <= kNear && g.can_move(op, place)))
      found.push_back(op);
  return found;
}

void drop(std::vector<Node>& ops, const std::vector<Node>& gone) {
  std::erase_if(ops,
                [&](Node op) { return std::find(gone.begin(), gone.end(), op) != gone.end(); });
}

ir::Names all(const std::vector<Node>& layers, std::vector<ir::Names> ir::Op::*slots, int slot) {
  ir::Names names;
  for (const Node op : layers)
    for (const std::string& name : ((*op).*slots)[static_cast<size_t>(slot)]) names.push_back(name);
  return names;
}
ir::Names inputs(const std::vector<Node>& layers, std::string_view slot) {
  return all(layers, &ir::Op::inputs, layers.front()->def->input_index(slot));
}
ir::Names outputs(const std::vector<Node>& layers, std::string_view slot) {
  return all(layers, &ir::Op::outputs, layers.front()->def->output_index(slot));
}

void merge(Graph& g, const std::vector<Node>& layers, Node place, ir::Rewriter::NewOp group) {
  group.attrs = {{"num_flatten_dims", place->attrs.at("num_flatten_dims")}};
  group.role = place->role;
  group.name = layers.front()->name;
  group.loc = layers.front()->loc;
  for (const Node op : layers)
    if (op != place) g.erase(op);
  g.replace(place, group);
}

// Takes the ops that are like the first one.
template <class Key>
std::vector<Node> take_alike(std::vector<Node>& ops, const Key& key) {
  const auto wanted = key(ops.front());
  const auto others =
      std::stable_partition(ops.begin(), ops.end(), [&](Node op) { return key(op) == wanted; });
  std::vector<Node> alike(ops.begin(), others);
  ops.erase(ops.begin(), others);
  return alike;
}

void fuse_forward(Graph& g, const std::string& x) {
  std::vector<Node> layers = layers_on(g, "fc", x);
  std::erase_if(layers, [](Node op) { return !op->has_in("bias"); });
  while (!layers.empty()) {
    std::vector<Node> rest = take_alike(layers, [&](Node op) { return kind_of(g, op); });
    while (rest.size() > 1) {
      const std::vector<Node> group = movable(g, rest, rest.front());
      drop(rest, group);
      if (group.size() > 1)
        merge(g, group, group.front(),
              {.type = "fc_group",
               .inputs = {{"x", {x}}, {"w", inputs(group, "w")}, {"bias", inputs(group, "bias")}},
               .outputs = {{"out", outputs(group, "out")}}});
    }
  }
}

// The op that adds up the gradients of x; end() where dx is not asked for, or used otherwise.
Node sum_of(Graph& g, Node layer) {
  if (!layer->has_out("dx")) return g.end();
  const Node reader = g.only_reader(layer->out("dx").front());
  return reader == g.end() || reader->type() != "sum" ? g.end() : reader;
}

std::string kind_of_grad(Graph& g, Node layer) {
  const Node sum = sum_of(g, layer);
  return str(kind_of(g, layer), ' ', sum == g.end() ? "" : sum->out("out").front());
}

void fuse_group_grad(Graph& g, const std::vector<Node>& layers, Node place) {
  const Node sum = sum_of(g, place);
  const std::string x = place->in("x").front();
  ir::Rewriter::NewOp group{
      .type = "fc_group_grad",
      .inputs = {{"x", {x}}, {"w", inputs(layers, "w")}, {"dout", inputs(layers, "dout")}},
      .outputs = {{"dw", outputs(layers, "dw")}, {"dbias", outputs(layers, "dbias")}}};
  if (sum == g.end()) return merge(g, layers, place, group);

  const ir::Names parts = outputs(layers, "dx");
  ir::Names others;
  for (const std::string& name : sum->in("xs"))
    if (std::find(parts.begin(), parts.end(), name) == parts.end()) others.push_back(name);
  if (others.size() + parts.size() != sum->in("xs").size()) return;  // one is added twice
  const std::string out = sum->out("out").front();
  const bool takes_all =
      g.producer(out) == sum &&
      (others.empty() || (others.size() == 1 && g.unchanged(others.front(), place, sum) &&
                          g.program().var(others.front()).type == g.program().var(x).type));
  if (takes_all) {
    group.inputs.emplace_back("addend", others);
    group.outputs.emplace_back("dx", ir::Names{out});
    g.erase(sum);
  } else {
    if (layers.size() == 1) return;
    group.outputs.emplace_back("dx", ir::Names{parts.front()});
    others.push_back(parts.front());
    g.set_inputs(sum, "xs", others);
  }
  merge(g, layers, place, group);
}

void fuse_backward(Graph& g, const std::string& x) {
  std::vector<Node> layers = layers_on(g, "fc_grad", x);
  std::erase_if(layers, [](Node op) { return op->attr<int64_t>("dx_columns") != 0; });
  while (!layers.empty()) {
    std::vector<Node> rest = take_alike(layers, [&](Node op) { return kind_of_grad(g, op); });
    while (!rest.empty()) {
      Node place = rest.front();
      std::vector<Node> group = movable(g, rest, place);
      if (const auto late = movable(g, rest, rest.back()); late.size() > group.size()) {
        place = rest.back();
        group = late;
      }
      drop(rest, group);
      // Without their sum, each dx would have to be there for itself.
      const bool adds = sum_of(g, place) != g.end();
      if (adds || (group.size() > 1 && !place->has_out("dx"))) fuse_group_grad(g, group, place);
    }
  }
}

}  // namespace

void fuse_fc(ir::Program& program, const Options& options) {
  Graph g(program, options.keep);
  const auto inputs_of = [&](std::string_view type) {
    std::set<std::string> names;
    for (const Node op : g.ops(type)) names.insert(op->in("x").front());
    return names;
  };
  for (const std::string& x : inputs_of("fc")) fuse_forward(g, x);
  for (const std::string& x : inputs_of("fc_grad")) fuse_backward(g, x);
  g.drop_orphans();
}

}  // namespace fleetx::passes
