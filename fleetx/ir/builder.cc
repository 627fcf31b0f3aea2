#include "fleetx/ir/builder.h"

#include <algorithm>

#include "fleetx/base/names.h"
#include "fleetx/ir/infer.h"

namespace fleetx::ir {
namespace {

std::string slot_names(const std::vector<SlotDef>& slots) {
  Names names;
  for (const SlotDef& slot : slots) names.push_back(slot.name);
  return join(names, ", ");
}

size_t slot_index(const std::vector<SlotDef>& slots, const std::string& slot,
                  const std::string& where, const char* what) {
  for (size_t i = 0; i < slots.size(); ++i)
    if (slots[i].name == slot) return i;
  fail(Error::Kind::kInvalidArgument,
       str(where, "no ", what, " '", slot, "'; it has: ", slot_names(slots)));
}

}  // namespace

Builder& Var::builder() const {
  FLEETX_CHECK(builder_ != nullptr, "an undefined Var was used");
  return *builder_;
}

const VarInfo& Var::info() const { return builder().main_.var(name_); }

Var& Var::stop_gradient(bool stop) {
  builder().main_.vars_.find(name_)->second.info.stop_gradient = stop;
  ++builder().main_.version_;
  return *this;
}

Results::operator Var() const {
  for (const Names& names : op_->outputs)
    if (!names.empty()) return {builder_, names.front()};
  FLEETX_CHECK(false, describe(*op_), "has no output");
}

Var Results::operator[](std::string_view slot) const {
  const Names& names = op_->out(slot);
  return names.empty() ? Var() : Var(builder_, names.front());
}

std::vector<Var> Results::all(std::string_view slot) const {
  std::vector<Var> out;
  for (const std::string& name : op_->out(slot)) out.emplace_back(builder_, name);
  return out;
}

Builder::Builder(Program& main, Program& startup) : main_(main), startup_(startup) {}

Var Builder::data(const std::string& name, DType dtype, Shape shape, std::source_location where) {
  VarInfo info;
  info.name = name;
  info.type = {dtype, std::move(shape), VarKind::kDense, -1};
  info.is_data = true;
  info.stop_gradient = true;
  check_arg(main_.find(name) == nullptr, Loc::of(where), ": data '", name,
            "': the program already has a variable '", name, "'");
  main_.add_var(std::move(info));
  return {this, name};
}

void Builder::append_startup(const VarInfo& info, const Initializer& init) {
  if (startup_.find(info.name) != nullptr) return;
  startup_.add_var(info);
  Op op = startup_.make_op(init.op, {}, {{info.name}}, init.attrs);
  op.loc = loc_;
  op.name = info.name;
  if (op.def->find_attr("shape") != nullptr)
    op.attrs.insert_or_assign("shape", Attr(info.type.shape));
  if (op.def->find_attr("dtype") != nullptr)
    op.attrs.insert_or_assign("dtype", Attr(info.type.dtype));
  normalize_attrs(*op.def, op.attrs, describe(op));
  const auto types = infer_types(
      op, [&](const std::string& name) -> const TensorType& { return startup_.var(name).type; });
  check_arg(types[0][0] == info.type, describe(op), "the initializer makes ", types[0][0], ", '",
            info.name, "' is ", info.type);
  startup_.ops_.push_back(std::move(op));
  ++startup_.version_;
}

Var Builder::parameter(const ParameterSpec& spec) {
  VarInfo info;
  info.name = spec.name;
  info.type = {spec.dtype, spec.shape, VarKind::kDense, -1};
  info.persistable = true;
  info.is_parameter = true;
  info.stop_gradient = !spec.trainable;
  info.attrs = spec.attrs;
  info.is_distributed = spec.is_distributed;
  check_arg(spec.shape.known(), loc_, ": parameter '", spec.name, "': shape ", spec.shape,
            " must be known");
  if (const VarInfo* old = main_.find(spec.name)) {
    check_arg(old->is_parameter && old->type == info.type, loc_, ": parameter '", spec.name,
              "' is wanted as ", info.type, ", but the program already has ",
              old->is_parameter ? "it" : "a variable of that name", " as ", old->type);
    return {this, spec.name};
  }
  main_.add_var(info);
  append_startup(info, spec.init);
  return {this, spec.name};
}

Var Builder::state(const std::string& name, DType dtype, Shape shape, double value,
                   Placement placement) {
  VarInfo info;
  info.name = name;
  info.type = {dtype, std::move(shape), VarKind::kDense, -1};
  info.persistable = true;
  info.stop_gradient = true;
  info.placement = std::move(placement);
  if (const VarInfo* old = main_.find(name)) {
    check_arg(old->type == info.type, "state '", name, "' is wanted as ", info.type,
              ", but exists as ", old->type);
    return {this, name};
  }
  main_.add_var(info);
  append_startup(info, {"fill", {{"value", value}}});
  return {this, name};
}

Var Builder::step() { return state(std::string(kStepVar), DType::kI64, {1}); }

Var Builder::var(const std::string& name) {
  (void)main_.var(name);
  return {this, name};
}

std::string Builder::unique_name(const std::string& prefix) {
  for (;;) {
    std::string name = str(prefix, "_", counters_[prefix]++);
    const auto taken = [&](const Program& p) {
      const auto it = p.vars_.lower_bound(name);
      return it != p.vars_.end() && (it->first == name || it->first.starts_with(name + "."));
    };
    if (!taken(main_) && !taken(startup_)) return name;
  }
}

Results Builder::op(std::string_view type, const std::vector<Arg>& args, Attrs attrs,
                    const std::vector<Dest>& dests) {
  Op op = main_.make_op(type, {}, {}, std::move(attrs));
  op.role = role_;
  op.loc = loc_;
  op.guard = guard_;
  op.stage = stage_;
  op.name = layer_.empty() ? unique_name(op.type()) : layer_;
  const std::string where = describe(op);

  for (const Arg& arg : args) {
    Names& names = op.inputs[slot_index(op.def->inputs, arg.slot, where, "input")];
    for (const Var& v : arg.vars) {
      check_arg(v.defined(), where, "input '", arg.slot, "' has an undefined variable");
      check_arg(&v.builder() == this, where, "input '", arg.slot, "': variable '", v.name(),
                "' is of another program");
      names.push_back(v.name());
    }
  }
  for (size_t s = 0; s < op.inputs.size(); ++s) {
    const SlotDef& slot = op.def->inputs[s];
    check_arg(slot.arity == Arity::kOptional || !op.inputs[s].empty(), where, "input '", slot.name,
              "' must be given");
    check_arg(slot.arity == Arity::kMany || op.inputs[s].size() <= 1, where, "input '", slot.name,
              "' takes one variable, got ", op.inputs[s].size());
  }
  for (const Dest& dest : dests)
    op.outputs[slot_index(op.def->outputs, dest.slot, where, "output")] = dest.names;
  // Temporaries are named after the layer: fc_0.tmp_0, fc_0.tmp_1.
  int temporary = 0;
  for (size_t s = 0; s < op.outputs.size(); ++s) {
    const SlotDef& slot = op.def->outputs[s];
    if (slot.arity != Arity::kOne || !op.outputs[s].empty()) continue;
    std::string name;
    do name = str(op.name, ".tmp_", temporary++);
    while (main_.find(name) != nullptr);
    op.outputs[s] = {std::move(name)};
  }
  normalize_attrs(*op.def, op.attrs, where);

  const auto types = infer_types(
      op, [&](const std::string& name) -> const TensorType& { return main_.var(name).type; });
  for (size_t s = 0; s < op.outputs.size(); ++s) {
    for (size_t i = 0; i < op.outputs[s].size(); ++i) {
      const std::string& name = op.outputs[s][i];
      const VarInfo* old = main_.find(name);
      if (old == nullptr) {
        VarInfo info;
        info.name = name;
        info.type = types[s][i];
        main_.add_var(std::move(info));
        continue;
      }
      check_arg(old->type.dtype == types[s][i].dtype &&
                    old->type.shape.rank() == types[s][i].shape.rank(),
                where, "writes ", types[s][i], " into '", name, "', which is ", old->type);
    }
  }
  main_.ops_.push_back(std::move(op));
  ++main_.version_;
  return {this, &main_.ops_.back()};
}

}  // namespace fleetx::ir
