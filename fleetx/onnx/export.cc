#include "fleetx/onnx/export.h"

#include <algorithm>
#include <set>

#include "fleetx/base/names.h"
#include "fleetx/ir/builder.h"
#include "fleetx/onnx/graph.h"
#include "fleetx/onnx/model.pb.h"

namespace fleetx::onnx {
namespace {

constexpr int64_t kFirstOpset = 13, kLastOpset = 17;
constexpr int64_t kFormat = 8;  // what engines of operator set 17 read

const Writers& writers() {
  static const Writers all = [] {
    Writers w;
    add_math(w);
    add_shapes(w);
    add_layers(w);
    return w;
  }();
  return all;
}

void declare(const ir::VarInfo& var, pb::Value& to) {
  to.set_name(var.name);
  auto& type = *to.mutable_type()->mutable_tensor_type();
  type.set_elem_type(element_type(var.type.dtype));
  for (int d = 0; d < var.type.shape.rank(); ++d) {
    auto& dim = *type.mutable_shape()->add_dim();
    if (var.type.shape[d] >= 0)
      dim.set_dim_value(var.type.shape[d]);
    else
      dim.set_dim_param(d == 0 ? "batch" : str(var.name, "_", d));
  }
}

// Each value of a graph is made once. What inference leaves as it is (running statistics that are
// written onto themselves) is no second time.
void check_single_assignment(const ir::Program& program) {
  std::set<std::string> made;
  for (const ir::Op& op : program.ops())
    for (const ir::Names& slot : op.outputs)
      for (const std::string& name : slot) {
        if (op.reads(name) && op.type() == "batch_norm") continue;
        const ir::VarInfo& var = program.var(name);
        if (!made.insert(name).second || var.persistable || var.is_data)
          fail(Error::Kind::kUnsupported,
               str(ir::describe(op), "as ONNX: it overwrites '", name,
                   "'; export a program for inference (clone(for_test=True))"));
      }
}

void write_op(Graph& graph, const ir::Op& op) {
  const auto writer = writers().find(op.type());
  if (writer == writers().end()) {
    ir::Names known;
    for (const auto& [name, unused] : writers()) known.push_back(name);
    fail(Error::Kind::kUnsupported,
         str(ir::describe(op), "cannot be exported to ONNX; known: ", join(known, ", "),
             ". Losses and metrics are left out by fetching what they are computed from"));
  }
  writer->second({graph, op});
}

}  // namespace

std::string export_model(const ir::Program& program, const ir::Names& feeds, const ir::Names& fetch,
                         const Values& values, const ExportOptions& o) {
  check_arg(o.opset >= kFirstOpset && o.opset <= kLastOpset, "export_model: operator set ", o.opset,
            "; from ", kFirstOpset, " to ", kLastOpset);
  check_arg(!fetch.empty(), "export_model: nothing to compute: fetch is empty");
  check_single_assignment(program);
  pb::Model model;
  model.set_ir_version(kFormat);
  model.set_producer_name("fleetx");
  model.add_opset_import()->set_version(o.opset);
  pb::Graph& out = *model.mutable_graph();
  out.set_name(o.name);
  for (const std::string& name : feeds) {
    check_arg(program.var(name).is_data, "export_model: '", name, "' is not fed");
    declare(program.var(name), *out.add_input());
  }

  Graph graph(program, out);
  std::set<std::string> wanted;
  for (const ir::Op& op : program.ops())
    for (const ir::Names& slot : op.inputs) wanted.insert(slot.begin(), slot.end());
  size_t bytes = 0;
  for (const ir::VarInfo* var : program.vars()) {
    if (!wanted.contains(var->name)) continue;
    if (var->is_data)
      check_arg(std::ranges::count(feeds, var->name) > 0, "export_model: the input '", var->name,
                "' is needed, but not in feeds");
    if (!var->persistable || var->name == ir::kStepVar) continue;
    const Tensor value = values(var->name);
    bytes += value.bytes();
    if (bytes >= size_t{1} << 31)
      fail(Error::Kind::kUnsupported,
           "export_model: the parameters take more than 2 GB, which a file of ONNX cannot hold");
    graph.stored(var->name, value);
  }
  for (const ir::Op& op : program.ops()) write_op(graph, op);
  for (const std::string& name : fetch) declare(program.var(name), *out.add_output());
  return model.SerializeAsString();
}

}  // namespace fleetx::onnx
