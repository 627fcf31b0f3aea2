// narrow_fc_grad: where a layer reads a concatenation of which only the first part has a gradient,
// as embeddings beside numbers of the data, the gradient is computed for that part only.
//
//   before
//     dx, dw, db = fc_grad(x, w, _, _, dout)
//     [d0, d1] = split(dx) {axis=1, sections=[260,13]}        nobody reads d1
//   after
//     d0, dw, db = fc_grad(x, w, _, _, dout) {dx_columns=260}
#include <algorithm>

#include "fleetx/passes/graph.h"
#include "fleetx/passes/passes.h"

namespace fleetx::passes {
namespace {

using Node = Graph::Node;

// How many columns at the beginning of a row are read; 0 where it is not as above.
int64_t columns_read(Graph& g, Node split, Node layer) {
  const int rank = g.program().var(split->in("x").front()).type.shape.rank();
  const auto axis = split->attr<int64_t>("axis");
  const auto sections = split->attr<ir::Ints>("sections");
  const ir::Names& outs = split->out("outs");
  const bool rows_are_cut = axis == -1 || axis == rank - 1;
  if (!rows_are_cut || sections.empty() || sections.front() <= 0 ||
      layer->attr<int>("num_flatten_dims") != rank - 1 || layer->attr<int64_t>("dx_columns") != 0)
    return 0;
  const auto has_one_value = [&](const std::string& name) { return g.producer(name) == split; };
  const auto unread = [&](const std::string& name) {
    return g.readers(name).empty() && !g.fetched(name);
  };
  return std::all_of(outs.begin(), outs.end(), has_one_value) &&
                 std::all_of(outs.begin() + 1, outs.end(), unread)
             ? sections.front()
             : 0;
}

}  // namespace

void narrow_fc_grad(ir::Program& program, const Options& options) {
  Graph g(program, options.keep);
  for (const Node layer : g.ops("fc_grad")) {
    if (!layer->has_out("dx")) continue;
    const Node split = g.only_reader(layer->out("dx").front());
    if (split == g.end() || split->type() != "split") continue;
    const int64_t columns = columns_read(g, split, layer);
    if (columns == 0) continue;
    const std::string first = split->out("outs").front();
    g.erase(split);
    g.set_outputs(layer, "dx", {first});
    g.set_attr(layer, "dx_columns", columns);
  }
  g.drop_orphans();
}

}  // namespace fleetx::passes
