#include "fleetx/runtime/planned_program.h"

#include <algorithm>
#include <array>

namespace fleetx::runtime {

std::string_view name_of(Region region) {
  constexpr std::array<std::string_view, 4> kNames{"arena", "bucket", "scope", "feed"};
  return kNames[static_cast<size_t>(region)];
}

std::vector<bool> PlannedProgram::storages_in_use() const {
  std::vector<bool> in_use(storages.size(), false);
  const auto use = [&](int storage) { in_use[static_cast<size_t>(storage)] = true; };
  for (const Step& step : steps) {
    for (const int v : step.inputs) use(value(v).storage);
    for (const int v : step.outputs) use(value(v).storage);
    for (const int s : step.scratch)
      if (s != kNoStorage) use(s);
    if (step.guard != kNoGuard) use(value(step.guard).storage);
  }
  for (const Fetch& fetch : fetches) use(value(fetch.value).storage);
  return in_use;
}

size_t PlannedProgram::bucket_bytes() const {
  size_t sum = 0;
  for (const PlannedBucket& bucket : buckets) sum += bucket.bytes;
  return sum;
}

// Fetched values are dense and row-major, whatever they are in the plan.
size_t PlannedProgram::fetch_bytes() const {
  size_t sum = 0;
  for (const Fetch& fetch : fetches) {
    const kernel::Desc& desc = value(fetch.value).desc;
    sum += static_cast<size_t>(desc.numel()) * size_of(desc.dtype);
  }
  return sum;
}

// The step at which most bytes of the arena are alive decides what counts.
MemoryByKind PlannedProgram::memory() const {
  const std::vector<bool> in_use = storages_in_use();
  std::vector<bool> is_value(storages.size(), false);
  for (const Value& v : values) is_value[static_cast<size_t>(v.storage)] = true;
  std::vector<int64_t> change(steps.size() + 2, 0);
  for (size_t i = 0; i < storages.size(); ++i) {
    const Block& block = storages[i].block;
    if (!in_use[i] || storages[i].region != Region::kArena) continue;
    change[static_cast<size_t>(block.first)] += static_cast<int64_t>(align_up(block.bytes));
    change[static_cast<size_t>(block.last) + 1] -= static_cast<int64_t>(align_up(block.bytes));
  }
  int peak = 0;
  int64_t alive = 0, most = -1;
  for (size_t i = 0; i <= steps.size(); ++i) {
    alive += change[i];
    if (alive > most) {
      most = alive;
      peak = static_cast<int>(i);
    }
  }
  MemoryByKind m;
  m.buckets = bucket_bytes();
  m.fetched = fetch_bytes();
  size_t used = 0;
  for (size_t i = 0; i < storages.size(); ++i) {
    const Block& block = storages[i].block;
    if (!in_use[i]) continue;
    if (storages[i].region == Region::kScope)
      (program.var(storages[i].var).is_parameter ? m.parameters : m.state) += block.bytes;
    if (storages[i].region != Region::kArena || block.first > peak || block.last < peak) continue;
    const size_t bytes = align_up(block.bytes);
    used += bytes;
    const bool forward =
        steps.empty() || steps[static_cast<size_t>(block.first)].role == ir::Role::kForward;
    (!is_value[i] ? m.scratch : forward ? m.activations : m.gradients) += bytes;
  }
  m.unused = arena_bytes - std::min(used, arena_bytes);
  return m;
}

std::map<std::string, Traffic> PlannedProgram::traffic() const {
  std::map<std::string, Traffic> out;
  for (const Step& step : steps) {
    const ir::Communication& c = step.cost.communication;
    if (c.kind == ir::CommKind::kNone) continue;
    Traffic& t = out[c.group];
    t.ranks = groups.at(c.group);
    t.calls += 1;
    t.bytes += step.wire_bytes;
  }
  return out;
}

double PlannedProgram::flops() const {
  double sum = 0;
  for (const Step& step : steps) sum += step.cost.flops;
  return sum;
}

int PlannedProgram::reorders() const {
  return static_cast<int>(std::count_if(steps.begin(), steps.end(),
                                        [](const Step& step) { return step.label == "reorder"; }));
}

size_t PlannedProgram::own_bytes() const {
  // Measured over the models of `fleetx bench`: a kernel with its primitive and code, an op of the
  // program with its names and attributes, a variable.
  constexpr size_t kKernel = 24 << 10, kOp = 2 << 10, kVariable = 512;
  return steps.size() * (sizeof(Step) + kKernel) + program.ops().size() * kOp +
         values.size() * (sizeof(Value) + sizeof(Storage) + kVariable);
}

double PlannedProgram::seconds_to_make() const {
  double sum = 0;
  for (const passes::Report& report : passes) sum += report.seconds;
  for (const PhaseTime& phase : phases) sum += phase.seconds;
  return sum;
}

}  // namespace fleetx::runtime
