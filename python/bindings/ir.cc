// Programs and their Builder.

#include <pybind11/stl.h>

#include <algorithm>
#include <set>

#include "bindings/builder.h"
#include "bindings/convert.h"
#include "fleetx/autograd/backward.h"
#include "fleetx/ir/proto.h"
#include "fleetx/ir/rewriter.h"
#include "fleetx/ir/text.h"
#include "fleetx/ir/transform.h"
#include "fleetx/optim/schedule.h"

namespace fleetx::python {
namespace {

using ir::Names;
using ir::Program;
using Slots = std::vector<std::pair<std::string, Names>>;
using SharedProgram = std::shared_ptr<Program>;

py::dict describe_var(const ir::VarInfo& v) {
  py::dict out;
  out["name"] = v.name;
  out["dtype"] = dtype_name(v.type.dtype);
  out["shape"] = py::tuple(py::cast(v.type.shape.dims()));
  out["is_data"] = v.is_data;
  out["persistable"] = v.persistable;
  out["is_parameter"] = v.is_parameter;
  out["stop_gradient"] = v.stop_gradient;
  out["sparse"] = v.type.kind == ir::VarKind::kSparseRows;
  out["is_distributed"] = v.is_distributed;
  out["placement"] = str(v.placement);
  out["attrs"] = to_python(v.attrs);
  return out;
}

py::dict slots_of(const std::vector<ir::SlotDef>& defs, const std::vector<Names>& names) {
  py::dict out;
  for (size_t i = 0; i < defs.size(); ++i) out[py::str(defs[i].name)] = names[i];
  return out;
}

py::dict describe_op(const ir::Op& op) {
  py::dict out;
  out["type"] = op.type();
  out["name"] = op.name;
  out["inputs"] = slots_of(op.def->inputs, op.inputs);
  out["outputs"] = slots_of(op.def->outputs, op.outputs);
  out["attrs"] = to_python(op.attrs);
  out["role"] = std::string(ir::name_of(op.role));
  out["loc"] = py::make_tuple(op.loc.file, op.loc.line);
  return out;
}

Names names_of(const std::vector<const ir::VarInfo*>& vars) {
  Names out;
  for (const ir::VarInfo* v : vars) out.push_back(v->name);
  return out;
}

void bind_program(py::module_& m) {
  py::class_<Program, SharedProgram>(m, "Program")
      .def(py::init<>())
      .def("clone", [](const Program& p) { return std::make_shared<Program>(p); })
      .def("clone_for_test",
           [](const Program& p) { return std::make_shared<Program>(ir::clone_for_test(p)); })
      .def("prune",
           [](const Program& p, const Names& targets) {
             return std::make_shared<Program>(ir::prune(p, targets));
           })
      .def("with_fed",
           [](const Program& p, const Names& variables) {
             return std::make_shared<Program>(ir::with_fed(p, variables));
           })
      .def("with_inputs",
           [](const Program& p,
              const std::vector<std::pair<std::string, std::vector<int64_t>>>& shapes) {
             std::vector<std::pair<std::string, Shape>> all;
             for (const auto& [name, dims] : shapes) all.emplace_back(name, Shape(dims));
             return std::make_shared<Program>(ir::with_inputs(p, all));
           })
      .def("repeat",
           [](const Program& p, const Names& ops,
              const std::vector<std::pair<std::string, std::string>>& carried,
              const std::vector<std::pair<std::string, std::string>>& collected, int64_t times) {
             return std::make_shared<Program>(ir::repeat(p, {ops, carried, collected}, times));
           })
      .def("has_backward",
           [](const Program& p) {
             return std::any_of(p.ops().begin(), p.ops().end(),
                                [](const ir::Op& op) { return op.role == ir::Role::kBackward; });
           })
      .def("to_text", [](const Program& p) { return ir::to_text(p); })
      .def("to_proto", [](const Program& p) { return py::bytes(ir::to_proto(p)); })
      .def_static("parse_text",
                  [](const std::string& text, const std::string& source) {
                    return std::make_shared<Program>(ir::parse_text(text, source));
                  })
      .def_static("parse_proto",
                  [](const py::bytes& bytes, const std::string& source) {
                    return std::make_shared<Program>(ir::parse_proto(std::string(bytes), source));
                  })
      .def_property("seed", &Program::seed, &Program::set_seed)
      .def_property_readonly("id", &Program::id)
      .def_property_readonly("version", &Program::version)
      .def("has", [](const Program& p, const std::string& name) { return p.find(name) != nullptr; })
      .def("var",
           [](const Program& p, const std::string& name) { return describe_var(p.var(name)); })
      .def("shape",
           [](const Program& p, const std::string& name) {
             return py::tuple(py::cast(p.var(name).type.shape.dims()));
           })
      .def("dtype", [](const Program& p,
                       const std::string& name) { return dtype_name(p.var(name).type.dtype); })
      .def("vars", [](const Program& p) { return names_of(p.vars()); })
      .def("parameters", [](const Program& p) { return names_of(p.parameters()); })
      // What is saved and loaded; transient state is made anew by startup.
      // What the user says of a parameter beside its shape: lr, l1, l2, min_count, ...
      .def(
          "set_attr_of",
          [](Program& p, const std::string& var, const std::string& name, const py::object& value) {
            ir::Rewriter(p).edit_var(var).attrs.insert_or_assign(name, attr_from(value));
          })
      .def("persistables",
           [](const Program& p) {
             Names out;
             // A table on the servers is a parameter that no op has at hand.
             const auto elsewhere = [&](const ir::VarInfo& v) {
               return v.is_distributed && std::ranges::none_of(p.ops(), [&](const ir::Op& op) {
                        return op.reads(v.name) || op.writes(v.name);
                      });
             };
             for (const ir::VarInfo* v : p.vars())
               if (v->persistable && !v->placement.is_transient() && !elsewhere(*v))
                 out.push_back(v->name);
             return out;
           })
      // Of these, what no single worker has: parts of a sharded variable, and values per rank, but
      // for averages that forward keeps (statistics of batch norms).
      .def("spread_persistables",
           [](const Program& p) {
             std::set<std::string> trained;  // what backward and updates write
             for (const ir::Op& op : p.ops())
               for (const Names& names : op.outputs)
                 if (op.role != ir::Role::kForward) trained.insert(names.begin(), names.end());
             Names out;
             for (const ir::VarInfo* v : p.vars())
               if (v->placement.is_sharded() || v->placement.is_owned() ||
                   (v->placement.is_per_rank() &&
                    (v->placement.resize != ir::Placement::Resize::kAverage ||
                     trained.contains(v->name))))
                 out.push_back(v->name);
             return out;
           })
      .def("ops",
           [](const Program& p) {
             py::list out;
             for (const ir::Op& op : p.ops()) out.append(describe_op(op));
             return out;
           })
      .def("op_count", [](const Program& p) { return p.ops().size(); })
      .def(
          "set_var_attr",
          [](Program& p, const std::string& name, const std::string& key, const py::object& value) {
            ir::Rewriter(p).edit_var(name).attrs.insert_or_assign(key, attr_from(value));
          })
      .def("__eq__", [](const Program& a, const Program& b) { return a == b; });
}

py::dict emit(PyBuilder& b, const std::string& type, const Slots& inputs, const py::dict& attrs,
              const Slots& outputs, const std::string& layer, const std::string& file, int line) {
  const PyBuilder::At at(b, file, line, layer);
  const auto role = b.get().in_role(b.is_update ? ir::Role::kUpdate : ir::Role::kForward);
  std::vector<ir::Arg> args;
  for (const auto& [slot, names] : inputs) args.emplace_back(slot, b.vars(names));
  std::vector<ir::Dest> dests;
  for (const auto& [slot, names] : outputs) dests.emplace_back(slot, names);
  b.get().op(type, args, attrs_from(attrs), dests);
  const ir::Op& op = b.get().main().ops().back();
  return slots_of(op.def->outputs, op.outputs);
}

void add_data(PyBuilder& b, const std::string& name, const std::string& dtype,
              std::vector<int64_t> shape, const std::string& file, int line) {
  check_arg(b.get().main().find(name) == nullptr, ir::Loc{file, line}, ": data '", name,
            "': the program already has a variable '", name, "'");
  b.get().data(name, dtype_of(dtype), Shape(std::move(shape)));
}

void add_parameter(PyBuilder& b, std::vector<int64_t> shape, const std::string& dtype,
                   const py::dict& attr, const py::object& fallback, const std::string& file,
                   int line) {
  const PyBuilder::At at(b, file, line);
  const nn::ParamAttr options = param_attr_from(attr);
  const nn::Init init = options.init ? options.init : init_from(fallback);
  ir::ParameterSpec spec;
  spec.name = options.name;
  spec.shape = Shape(std::move(shape));
  spec.dtype = dtype_of(dtype);
  if (init) spec.init = init(spec.shape);
  spec.attrs = nn::attrs_of(options);
  spec.trainable = options.trainable;
  spec.is_distributed = options.is_distributed;
  b.get().parameter(spec);
}

Names gradients(PyBuilder& b, const Names& targets, const Names& inputs, const Names& seeds,
                const std::set<std::string>& no_grad, const std::string& file, int line) {
  const PyBuilder::At at(b, file, line);
  Names out;
  for (const ir::Var& v :
       autograd::gradients(b.vars(targets), b.vars(inputs), b.vars(seeds), no_grad))
    out.push_back(v.defined() ? v.name() : "");
  return out;
}

void bind_builder(py::module_& m) {
  py::class_<PyBuilder>(m, "Builder")
      .def(py::init<SharedProgram, SharedProgram>())
      .def("op", &emit)
      .def_readwrite("is_update", &PyBuilder::is_update)
      .def_readwrite("stage", &PyBuilder::stage)
      .def("data", &add_data)
      .def("parameter", &add_parameter)
      .def("state",
           [](PyBuilder& b, const std::string& name, const std::string& dtype,
              std::vector<int64_t> shape, double value) {
             b.get().state(name, dtype_of(dtype), Shape(std::move(shape)), value);
           })
      .def("step", [](PyBuilder& b) { return b.get().step().name(); })
      .def("count_step",
           [](PyBuilder& b) {
             const auto role = b.get().in_role(ir::Role::kUpdate);
             optim::count_step(b.get());
           })
      .def("set_stop_gradient", [](PyBuilder& b, const std::string& name,
                                   bool stop) { b.var(name).stop_gradient(stop); })
      .def("gradients", &gradients);
}

}  // namespace

void bind_ir(py::module_& m) {
  bind_program(m);
  bind_builder(m);
  m.def("op_types", [] {
    Names out;
    for (const ir::OpDef* def : ir::all_ops()) out.push_back(def->type);
    return out;
  });
}

}  // namespace fleetx::python
