#include "fleetx/ir/program.h"

#include <algorithm>
#include <array>
#include <atomic>
#include <ostream>

#include "fleetx/base/names.h"
#include "fleetx/ir/text.h"

namespace fleetx::ir {
namespace {

uint64_t next_id() {
  static std::atomic<uint64_t> id{0};
  return ++id;
}

bool contains(const std::vector<Names>& slots, std::string_view var) {
  return std::any_of(slots.begin(), slots.end(), [&](const Names& names) {
    return std::find(names.begin(), names.end(), var) != names.end();
  });
}

}  // namespace

std::ostream& operator<<(std::ostream& out, const Loc& loc) {
  const size_t slash = loc.file.rfind('/');
  return out << (slash == std::string::npos ? loc.file : loc.file.substr(slash + 1)) << ':'
             << loc.line;
}

std::ostream& operator<<(std::ostream& out, const TensorType& type) {
  if (type.kind == VarKind::kSparseRows) out << "sparse ";
  return out << type.dtype << type.shape;
}

std::string_view name_of(Role role) {
  constexpr std::array<std::string_view, 3> kNames{"forward", "backward", "update"};
  return kNames[static_cast<size_t>(role)];
}

bool Op::reads(std::string_view var) const {
  return contains(inputs, var) || (!guard.empty() && guard == var);
}
bool Op::writes(std::string_view var) const { return contains(outputs, var); }

bool is_collective(const Op& op) {
  return op.def->collective && !op.attr<std::string>("group").empty();
}

std::string describe(const Op& op) {
  return str(op.loc.known() ? str(op.loc, ": ") : "", op.type(),
             op.name.empty() ? "" : str(" '", op.name, "'"), ": ");
}

Program::Program() : id_(next_id()) {}

Program::Program(const Program& other)
    : id_(next_id()),
      version_(other.version_),
      seed_(other.seed_),
      next_order_(other.next_order_),
      ops_(other.ops_),
      vars_(other.vars_),
      training_(other.training_) {}

Program& Program::operator=(const Program& other) {
  if (this != &other) *this = Program(other);
  return *this;
}

const VarInfo* Program::find(std::string_view name) const {
  const auto it = vars_.find(name);
  return it == vars_.end() ? nullptr : &it->second.info;
}

const VarInfo& Program::var(std::string_view name) const {
  if (const VarInfo* info = find(name)) return *info;
  Names known;
  for (const auto& [n, entry] : vars_) known.push_back(n);
  fail(Error::Kind::kInvalidArgument,
       str("the program has no variable '", name, "'", did_you_mean(name, known)));
}

std::vector<const VarInfo*> Program::vars() const {
  std::vector<const Entry*> entries;
  for (const auto& [name, entry] : vars_) entries.push_back(&entry);
  std::sort(entries.begin(), entries.end(),
            [](const Entry* a, const Entry* b) { return a->order < b->order; });
  std::vector<const VarInfo*> out;
  for (const Entry* entry : entries) out.push_back(&entry->info);
  return out;
}

std::vector<const VarInfo*> Program::parameters() const {
  std::vector<const VarInfo*> out = vars();
  std::erase_if(out, [](const VarInfo* v) { return !v->is_parameter; });
  return out;
}

void Program::set_seed(uint64_t seed) {
  seed_ = seed;
  ++version_;
}

bool Program::operator==(const Program& other) const { return to_text(*this) == to_text(other); }

VarInfo& Program::add_var(VarInfo info) {
  check_arg(!info.name.empty(), "a variable needs a name");
  const std::string name = info.name;
  const auto [it, added] = vars_.emplace(name, Entry{next_order_, std::move(info)});
  check_arg(added, "the program already has a variable '", name, "'");
  ++next_order_;
  ++version_;
  return it->second.info;
}

Op Program::make_op(std::string_view type, std::vector<Names> inputs, std::vector<Names> outputs,
                    Attrs attrs) const {
  Op op;
  op.def = &op_def(type);
  op.inputs = std::move(inputs);
  op.outputs = std::move(outputs);
  op.inputs.resize(op.def->inputs.size());
  op.outputs.resize(op.def->outputs.size());
  op.attrs = std::move(attrs);
  return op;
}

}  // namespace fleetx::ir
