#include "fleetx/ir/proto.h"

#include <google/protobuf/stubs/logging.h>

#include "fleetx/ir/program.pb.h"
#include "fleetx/ir/rewriter.h"
#include "fleetx/ir/verifier.h"

namespace fleetx::ir {
namespace {

constexpr uint32_t kFormat = 1;

struct AttrWriter {
  pb::Attr& out;
  void operator()(bool v) const { out.set_b(v); }
  void operator()(int64_t v) const { out.set_i(v); }
  void operator()(double v) const { out.set_f(v); }
  void operator()(const std::string& v) const { out.set_s(v); }
  void operator()(const Ints& v) const { out.mutable_ints()->mutable_v()->Add(v.begin(), v.end()); }
  void operator()(const Floats& v) const {
    out.mutable_floats()->mutable_v()->Add(v.begin(), v.end());
  }
  void operator()(const Strings& v) const {
    auto* strings = out.mutable_strings();
    for (const std::string& s : v) strings->add_v(s);
  }
};

template <class Map>
void write_attrs(const Attrs& attrs, Map& out) {
  for (const auto& [name, attr] : attrs) std::visit(AttrWriter{out[name]}, attr.value());
}

Attr read_attr(const pb::Attr& in, const std::string& name, std::string_view source) {
  switch (in.value_case()) {
    case pb::Attr::kB: return in.b();
    case pb::Attr::kI: return int64_t{in.i()};
    case pb::Attr::kF: return in.f();
    case pb::Attr::kS: return in.s();
    case pb::Attr::kInts: return Ints(in.ints().v().begin(), in.ints().v().end());
    case pb::Attr::kFloats: return Floats(in.floats().v().begin(), in.floats().v().end());
    case pb::Attr::kStrings: return Strings(in.strings().v().begin(), in.strings().v().end());
    case pb::Attr::VALUE_NOT_SET: break;
  }
  fail(Error::Kind::kCorrupt, str(source, ": attribute '", name, "' has no value"));
}

template <class Map>
Attrs read_attrs(const Map& in, std::string_view source) {
  Attrs out;
  for (const auto& [name, attr] : in) out.emplace(name, read_attr(attr, name, source));
  return out;
}

void write_var(const VarInfo& info, pb::Var& out) {
  out.set_name(info.name);
  out.set_dtype(std::string(name_of(info.type.dtype)));
  out.mutable_shape()->Add(info.type.shape.begin(), info.type.shape.end());
  out.set_sparse(info.type.kind == VarKind::kSparseRows);
  out.set_rows(info.type.rows);
  out.set_is_data(info.is_data);
  out.set_persistable(info.persistable);
  out.set_is_parameter(info.is_parameter);
  out.set_stop_gradient(info.stop_gradient);
  out.set_is_distributed(info.is_distributed);
  if (!info.placement.is_replicated()) {
    pb::Var::Placement& placement = *out.mutable_placement();
    placement.set_kind(static_cast<uint32_t>(info.placement.kind));
    placement.set_axis(info.placement.axis);
    placement.set_dim(static_cast<uint32_t>(info.placement.dim));
    placement.set_resize(static_cast<uint32_t>(info.placement.resize));
    placement.set_owner(static_cast<uint32_t>(info.placement.owner));
  }
  write_attrs(info.attrs, *out.mutable_attrs());
}

Placement read_placement(const pb::Var& in, std::string_view source) {
  const pb::Var::Placement& p = in.placement();
  check_file(p.kind() <= static_cast<uint32_t>(Placement::Kind::kOwned) &&
                 p.resize() <= static_cast<uint32_t>(Placement::Resize::kReset) && p.dim() < 1000 &&
                 p.owner() < (1U << 24),
             source, ": variable '", in.name(), "' has an unknown placement");
  return {.kind = static_cast<Placement::Kind>(p.kind()),
          .axis = p.axis(),
          .dim = static_cast<int>(p.dim()),
          .resize = static_cast<Placement::Resize>(p.resize()),
          .owner = static_cast<int>(p.owner())};
}

VarInfo read_var(const pb::Var& in, std::string_view source) {
  VarInfo info;
  info.name = in.name();
  const auto dtype = dtype_from_name(in.dtype());
  check_file(dtype.has_value(), source, ": variable '", in.name(), "' has the unknown dtype '",
             in.dtype(), "'");
  info.type.dtype = *dtype;
  info.type.shape = Shape(std::vector<int64_t>(in.shape().begin(), in.shape().end()));
  info.type.kind = in.sparse() ? VarKind::kSparseRows : VarKind::kDense;
  info.type.rows = in.rows();
  info.is_data = in.is_data();
  info.persistable = in.persistable();
  info.is_parameter = in.is_parameter();
  info.stop_gradient = in.stop_gradient();
  info.is_distributed = in.is_distributed();
  info.placement = read_placement(in, source);
  info.attrs = read_attrs(in.attrs(), source);
  return info;
}

void write_slots(const std::vector<Names>& slots, const std::vector<SlotDef>& defs,
                 google::protobuf::RepeatedPtrField<pb::Op::Slot>& out) {
  for (size_t s = 0; s < slots.size(); ++s) {
    if (slots[s].empty()) continue;
    pb::Op::Slot& slot = *out.Add();
    slot.set_name(defs[s].name);
    for (const std::string& var : slots[s]) slot.add_vars(var);
  }
}

std::vector<std::pair<std::string, Names>> read_slots(
    const google::protobuf::RepeatedPtrField<pb::Op::Slot>& in, const std::vector<SlotDef>& defs,
    const std::string& op, std::string_view source) {
  std::vector<std::pair<std::string, Names>> out;
  for (const pb::Op::Slot& slot : in) {
    bool found = false;
    for (const SlotDef& def : defs) found = found || def.name == slot.name();
    check_file(found, source, ": op '", op, "' has no slot '", slot.name(), "'");
    out.emplace_back(slot.name(), Names(slot.vars().begin(), slot.vars().end()));
  }
  return out;
}

void write_op(const Op& op, pb::Op& out) {
  out.set_type(op.type());
  out.set_name(op.name);
  write_slots(op.inputs, op.def->inputs, *out.mutable_inputs());
  write_slots(op.outputs, op.def->outputs, *out.mutable_outputs());
  write_attrs(op.attrs, *out.mutable_attrs());
  out.set_role(static_cast<uint32_t>(op.role));
  out.set_file(op.loc.file);
  out.set_line(op.loc.line);
  out.set_guard(op.guard);
  if (op.stage >= 0) out.set_stage(op.stage);
}

void read_op(const pb::Op& in, Rewriter& rw, std::string_view source) {
  const OpDef& def = op_def(in.type());
  check_file(in.role() <= static_cast<uint32_t>(Role::kUpdate), source, ": op '", in.type(),
             "' has the unknown role ", in.role());
  Rewriter::NewOp op;
  op.type = in.type();
  op.name = in.name();
  op.inputs = read_slots(in.inputs(), def.inputs, in.type(), source);
  op.outputs = read_slots(in.outputs(), def.outputs, in.type(), source);
  op.attrs = read_attrs(in.attrs(), source);
  op.role = static_cast<Role>(in.role());
  op.loc = {in.file(), in.line()};
  op.guard = in.guard();
  check_file(!in.has_stage() || in.stage() >= 0, source, ": op '", in.type(), "' is in stage ",
             in.stage());
  if (in.has_stage()) op.stage = in.stage();
  rw.append_unchecked(op);
}

void write_training(const Training& training, pb::Training& out) {
  out.set_loss(training.loss);
  out.set_seed(training.seed);
  out.set_step(training.step);
  out.set_ready(training.ready);
  for (const Training::Parameter& p : training.parameters) {
    pb::Training::Parameter& parameter = *out.add_parameters();
    parameter.set_name(p.name);
    parameter.set_gradient(p.gradient);
    parameter.set_learning_rate(p.learning_rate);
  }
}

Training read_training(const pb::Training& in) {
  Training training{.loss = in.loss(), .seed = in.seed(), .step = in.step(), .ready = in.ready()};
  for (const pb::Training::Parameter& p : in.parameters())
    training.parameters.push_back({p.name(), p.gradient(), p.learning_rate()});
  return training;
}

}  // namespace

std::string to_proto(const Program& program) {
  pb::Program out;
  out.set_format(kFormat);
  out.set_seed(program.seed());
  for (const VarInfo* info : program.vars()) write_var(*info, *out.add_vars());
  for (const Op& op : program.ops()) write_op(op, *out.add_ops());
  if (!program.training().empty()) write_training(program.training(), *out.mutable_training());
  return out.SerializeAsString();
}

Program parse_proto(std::string_view bytes, std::string_view source) {
  const google::protobuf::LogSilencer quiet;  // our own message says it, once
  pb::Program in;
  check_file(in.ParseFromArray(bytes.data(), static_cast<int>(bytes.size())), source,
             ": not a FleetX program (the bytes are damaged or of another kind)");
  check_file(in.format() == kFormat, source, ": program format ", in.format(),
             ", this FleetX reads format ", kFormat);
  try {
    Program program;
    program.set_seed(in.seed());
    Rewriter rw(program);
    for (const pb::Var& var : in.vars()) rw.add_var(read_var(var, source));
    for (const pb::Op& op : in.ops()) read_op(op, rw, source);
    rw.edit_training() = read_training(in.training());
    verify(program, source);
    return program;
  } catch (const Error& e) {
    if (e.kind() == Error::Kind::kCorrupt) throw;
    fail(Error::Kind::kCorrupt, str(source, ": ", e.what()));
  }
}

}  // namespace fleetx::ir
