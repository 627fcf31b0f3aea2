#include "fleetx/kernel/kernel.h"

#include "fleetx/base/names.h"
#include "fleetx/ir/divided.h"
#include "fleetx/kernel/group.h"

namespace fleetx::kernel {
namespace {

int position(const std::vector<ir::Names>& slots, int slot, size_t i) {
  size_t before = 0;
  for (int s = 0; s < slot; ++s) before += slots[static_cast<size_t>(s)].size();
  return static_cast<int>(before + i);
}

}  // namespace

size_t Desc::bytes() const {
  const size_t unit = size_of(dtype);
  if (kind == ir::VarKind::kDense) return static_cast<size_t>(stored()) * unit;
  return SparseRows::values_offset(rows) +
         static_cast<size_t>(rows * shape.numel(1, shape.rank())) * unit;
}

Prepare::Prepare(const ir::Op& op, std::vector<Desc> inputs, std::vector<Desc> outputs,
                 const Setting& setting)
    : op_(op),
      in_(std::move(inputs)),
      out_(std::move(outputs)),
      wanted_(in_.size()),
      made_(out_.size()),
      setting_(setting) {}

int Prepare::input_position(std::string_view slot, size_t i) const {
  const int s = op_.def->input_index(slot);
  FLEETX_CHECK(i < op_.inputs[static_cast<size_t>(s)].size(), ir::describe(op_), "input '", slot,
               "' is not given");
  return position(op_.inputs, s, i);
}

int Prepare::output_position(std::string_view slot, size_t i) const {
  const int s = op_.def->output_index(slot);
  FLEETX_CHECK(i < op_.outputs[static_cast<size_t>(s)].size(), ir::describe(op_), "output '", slot,
               "' is not asked for");
  return position(op_.outputs, s, i);
}

const Desc& Prepare::in(std::string_view slot, size_t i) const {
  return in_[static_cast<size_t>(input_position(slot, i))];
}

const Desc& Prepare::out(std::string_view slot, size_t i) const {
  return out_[static_cast<size_t>(output_position(slot, i))];
}

Slot Prepare::input(std::string_view slot, size_t i, const Layout& wanted) {
  if (i >= count(slot)) return {};  // an optional input that was left out
  const int at = input_position(slot, i);
  wanted_[static_cast<size_t>(at)] = wanted;
  return {at};
}

Slot Prepare::output(std::string_view slot, size_t i, const Layout& made) {
  if (i >= out_count(slot)) return {};
  const int at = output_position(slot, i);
  made_[static_cast<size_t>(at)] = made;
  return {static_cast<int>(in_.size()) + at};
}

std::vector<Slot> Prepare::inputs(std::string_view slot) {
  std::vector<Slot> out;
  for (size_t i = 0; i < count(slot); ++i) out.push_back(input(slot, i));
  return out;
}

std::vector<Slot> Prepare::outputs(std::string_view slot) {
  std::vector<Slot> out;
  for (size_t i = 0; i < out_count(slot); ++i) out.push_back(output(slot, i));
  return out;
}

Slot Prepare::scratch(size_t bytes) {
  scratch_.push_back(bytes);
  return {static_cast<int>(in_.size() + out_.size() + scratch_.size()) - 1};
}

Group Prepare::group(std::string_view name) const {
  const Mesh& mesh = setting_.mesh;
  const std::string op = ir::describe(op_);
  if (mesh.has(name)) return {op, std::string(name), mesh.coordinate(name), mesh.size(name)};
  const comm::Communicator* found = setting_.groups ? setting_.groups->find(name) : nullptr;
  if (found == nullptr) {
    std::vector<std::string> axes;
    for (const Mesh::Axis& axis : mesh.axes()) axes.push_back(axis.name);
    check_arg(axes.empty(), op, "computes with the group '", name,
              "', which is neither an axis of the mesh (", join(axes, ", "),
              ") nor a group of this process");
    (void)(setting_.groups ? *setting_.groups : comm::Groups()).at(name, op);  // throws
  }
  return {op, std::string(name), found->rank(), found->size()};
}

int64_t Prepare::place_along(const ir::Strings& axes) const {
  int64_t place = 0;
  for (const std::string& axis : axes) {
    const Group along = group(axis);
    place = place * along.size() + along.rank();
  }
  return place;
}

Slot Prepare::bucket(std::string_view slot, const Group& group, size_t tail) {
  Bucket bucket{.group = group.name(), .tail = tail, .place = scratch_.size()};
  for (size_t i = 0; i < count(slot); ++i) {
    bucket.inputs.push_back(input_as_is(slot, i).index);
    bucket.bytes += align_up(in(slot, i).bytes());
  }
  buckets_.push_back(bucket);
  return scratch(0);
}

RandomStream Prepare::random_stream() const {
  const auto own = op_.attrs.find("seed");
  const int64_t given = own == op_.attrs.end() ? 0 : own->second.as<int64_t>();
  // A recomputed op draws what the original drew, and the whole of a divided parameter is what one
  // rank alone would draw for it.
  const std::string& output = op_.outputs.front().front();
  const std::string_view name =
      std::string_view(output).substr(0, output.find(ir::kRecomputeSuffix));
  return {given != 0 ? static_cast<uint64_t>(given) : setting_.seed,
          stable_hash(name.substr(0, name.find(ir::kWholeSuffix)))};
}

}  // namespace fleetx::kernel
