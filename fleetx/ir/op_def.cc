#include "fleetx/ir/op_def.h"

#include <array>
#include <map>

#include "fleetx/base/names.h"

namespace fleetx::ir {
namespace {

std::map<std::string, OpDef, std::less<>>& registry() {
  static std::map<std::string, OpDef, std::less<>> ops;
  return ops;
}

int index_of(const std::vector<SlotDef>& slots, std::string_view slot) {
  for (size_t i = 0; i < slots.size(); ++i)
    if (slots[i].name == slot) return static_cast<int>(i);
  return -1;
}

}  // namespace

int OpDef::input_index(std::string_view slot) const {
  const int i = index_of(inputs, slot);
  FLEETX_CHECK(i >= 0, "op ", type, " has no input '", slot, "'");
  return i;
}

int OpDef::output_index(std::string_view slot) const {
  const int i = index_of(outputs, slot);
  FLEETX_CHECK(i >= 0, "op ", type, " has no output '", slot, "'");
  return i;
}

const AttrDef* OpDef::find_attr(std::string_view name) const {
  for (const AttrDef& def : attrs)
    if (def.name == name) return &def;
  return nullptr;
}

const OpDef* find_op(std::string_view type) {
  const auto it = registry().find(type);
  return it == registry().end() ? nullptr : &it->second;
}

const OpDef& op_def(std::string_view type) {
  if (const OpDef* def = find_op(type)) return *def;
  std::vector<std::string> known;
  for (const auto& [name, def] : registry()) known.push_back(name);
  fail(Error::Kind::kInvalidArgument,
       str("there is no op '", type, "'", did_you_mean(type, known)));
}

std::vector<const OpDef*> all_ops() {
  std::vector<const OpDef*> out;
  for (const auto& [name, def] : registry()) out.push_back(&def);
  return out;
}

void normalize_attrs(const OpDef& def, Attrs& attrs, std::string_view where) {
  for (auto& [name, attr] : attrs) {
    const AttrDef* known = def.find_attr(name);
    if (known == nullptr) {
      std::vector<std::string> names;
      for (const AttrDef& a : def.attrs) names.push_back(a.name);
      check_arg(false, where, "unknown attribute '", name, "'", did_you_mean(name, names),
                names.empty() ? " (it has none)" : " (known: " + join(names, ", ") + ")");
    }
    check_arg(coerce(attr, known->type), where, "attribute '", name, "' must be a ",
              name_of(known->type), ", got ", attr, " (", name_of(attr.type()), ")");
  }
  for (const AttrDef& a : def.attrs) {
    if (attrs.contains(a.name)) continue;
    check_arg(a.fallback.has_value(), where, "attribute '", a.name, "' (", name_of(a.type),
              ") must be given");
    attrs.emplace(a.name, *a.fallback);
  }
}

std::string_view name_of(CommKind kind) {
  constexpr std::array<std::string_view, 9> kNames{"none",       "all_reduce", "reduce_scatter",
                                                   "all_gather", "broadcast",  "reduce",
                                                   "all_to_all", "send",       "receive"};
  return kNames[static_cast<size_t>(kind)];
}

double wire_bytes(const Communication& communication, int ranks) {
  const double n = ranks, bytes = communication.bytes;
  if (ranks <= 1) return 0;
  switch (communication.kind) {
    case CommKind::kNone:
    case CommKind::kReceive: return 0;
    case CommKind::kAllReduce: return bytes * 2 * (n - 1) / n;
    case CommKind::kAllGather: return bytes * (n - 1);
    case CommKind::kReduceScatter:
    case CommKind::kAllToAll: return bytes * (n - 1) / n;
    case CommKind::kBroadcast:
    case CommKind::kReduce:
    case CommKind::kSend: return bytes;
  }
  return 0;
}

RegisterOp::RegisterOp(OpRegistrar& registrar) {
  OpDef def = registrar.take();
  FLEETX_CHECK(def.infer != nullptr, "op ", def.type, " has no infer function");
  const std::string type = def.type;
  if (def.collective) {
    const AttrDef* group = def.find_attr("group");
    FLEETX_CHECK(group != nullptr && group->type == AttrType::kString, "op ", type,
                 " is collective and has no attribute 'group' that is a string");
    if (!group->fallback) def.side_effect = true;
  }
  FLEETX_CHECK(registry().emplace(type, std::move(def)).second, "op ", type,
               " is registered twice");
}

RegisterOp::RegisterOp(OpRegistrar&& registrar) : RegisterOp(registrar) {}

}  // namespace fleetx::ir
