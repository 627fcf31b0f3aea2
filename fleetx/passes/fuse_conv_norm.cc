// fuse_conv_norm: in a test program the batch norm behind a convolution is a factor and a shift per
// channel, which the convolution applies itself, and so it does the addition of a residual block.
//
//   before                                               after
//     y = conv2d(x, w)                                     out = conv2d_norm(x, w, s, b, m, v, r)
//     z, m, v, _, _ = batch_norm(y, s, b, m, v)                {act="relu"}
//     out = elementwise_add(z, r) {act="relu"}
//
// After the fusions of relu. Not where y or z has another reader, and not for a convolution with a
// bias of its own or a gradient.
#include "fleetx/passes/graph.h"
#include "fleetx/passes/passes.h"

namespace fleetx::passes {
namespace {

using Node = Graph::Node;

// The addition that follows, where it adds two values of one type.
Node addition_behind(Graph& g, Node norm) {
  const Node add = g.only_reader(norm->out("out").front());
  if (add == g.end() || add->type() != "elementwise_add" || add->role != norm->role ||
      !norm->attr<std::string>("act").empty() || add->in("x") == add->in("y"))
    return g.end();
  const auto act = add->attr<std::string>("act");
  const ir::Program& p = g.program();
  const bool same = p.var(add->in("x").front()).type == p.var(add->in("y").front()).type;
  return same && (act.empty() || act == "relu") ? add : g.end();
}

void fuse(Graph& g, Node conv) {
  if (conv->has_in("bias") || !conv->attr<std::string>("act").empty()) return;
  const Node norm = g.only_reader(conv->out("out").front());
  if (norm == g.end() || norm->type() != "batch_norm" || norm->role != conv->role) return;
  if (!norm->attr<bool>("is_test") && !norm->attr<bool>("use_global_stats")) return;
  for (const auto* slot : {"saved_mean", "saved_inv_std"})
    if (!g.readers(norm->out(slot).front()).empty() || g.fetched(norm->out(slot).front())) return;
  // Running statistics stay as they are in their own variables only.
  if (norm->in("mean") != norm->out("mean_out") ||
      norm->in("variance") != norm->out("variance_out"))
    return;

  const Node add = addition_behind(g, norm);
  const Node last = add == g.end() ? norm : add;
  ir::Names residual;
  if (add != g.end()) residual = add->in("x") == norm->out("out") ? add->in("y") : add->in("x");
  for (const auto* slot : {"x", "w"})
    if (!g.unchanged(conv->in(slot).front(), conv, last)) return;
  ir::Attrs attrs{{"epsilon", norm->attrs.at("epsilon")}, {"act", last->attrs.at("act")}};
  for (const auto* name : {"stride", "padding", "dilation", "groups"})
    attrs.emplace(name, conv->attrs.at(name));
  g.replace(last, {.type = "conv2d_norm",
                   .inputs = {{"x", conv->in("x")},
                              {"w", conv->in("w")},
                              {"scale", norm->in("scale")},
                              {"bias", norm->in("bias")},
                              {"mean", norm->in("mean")},
                              {"variance", norm->in("variance")},
                              {"residual", residual}},
                   .outputs = {{"out", last->out("out")}},
                   .attrs = attrs,
                   .role = conv->role,
                   .name = conv->name,
                   .loc = conv->loc});
  if (add != g.end()) g.erase(norm);
  g.erase(conv);
}

}  // namespace

void fuse_conv_norm(ir::Program& program, const Options& options) {
  Graph g(program, options.keep);
  for (const Node conv : g.ops("conv2d")) fuse(g, conv);
  g.drop_orphans();
}

}  // namespace fleetx::passes
