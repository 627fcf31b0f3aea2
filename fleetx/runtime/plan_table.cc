// A plan as text.
#include <iomanip>
#include <sstream>

#include "fleetx/kernel/implementation.h"
#include "fleetx/runtime/planned_program.h"

namespace fleetx::runtime {
namespace {

std::string mib(size_t bytes) {
  std::ostringstream out;
  out << std::fixed << std::setprecision(1) << static_cast<double>(bytes) / (1 << 20) << " MiB";
  return out.str();
}

std::string wire_text(const Step& step) {
  if (step.cost.communication.kind == ir::CommKind::kNone) return "-";
  std::ostringstream out;
  out << std::fixed << std::setprecision(2) << step.wire_bytes / 1e6;
  return out.str();
}

void print_header(std::ostream& out) {
  out << std::left << std::setw(5) << "step" << std::setw(10) << "role" << std::setw(28) << "op"
      << std::setw(36) << "first output" << std::setw(24) << "shape" << std::setw(16) << "layout"
      << std::setw(8) << "region" << std::right << std::setw(12) << "offset" << std::setw(10)
      << "MFLOP" << std::setw(10) << "MB" << std::setw(10) << "wire MB"
      << "  "
      << "implementation\n";
}

void print_step(std::ostream& out, const PlannedProgram& plan, size_t i) {
  const Step& step = plan.steps[i];
  std::string name, shape, layout, region, offset;
  if (!step.outputs.empty()) {
    const Value& value = plan.value(step.outputs.front());
    const Storage& storage = plan.storage(value.storage);
    name = value.var;
    shape = str(value.desc.dtype, value.desc.shape);
    layout = str(value.desc.layout);
    region = name_of(storage.region);
    const bool planned = storage.region == Region::kArena || storage.region == Region::kBucket;
    offset = planned ? str(storage.block.offset) : "-";
  }
  out << std::left << std::setw(5) << i << std::setw(10) << ir::name_of(step.role) << std::setw(28)
      << step.label << std::setw(36) << name << std::setw(24) << shape << std::setw(16) << layout
      << std::setw(8) << region << std::right << std::setw(12) << offset << std::fixed
      << std::setprecision(2) << std::setw(10) << step.cost.flops / 1e6 << std::setw(10)
      << step.cost.bytes / 1e6 << std::setw(10) << wire_text(step) << "  "
      << step.kernel->implementation();
  if (kernel::is_reference(step.kernel->implementation())) out << "  <- slow";
  if (step.guard != kNoGuard) out << "  if '" << plan.value(step.guard).var << "'";
  out << '\n';
}

void print_memory(std::ostream& out, const PlannedProgram& plan) {
  const MemoryByKind m = plan.memory();
  out << "memory: peak " << mib(m.total()) << " = parameters " << mib(m.parameters)
      << " + optimizer and other state " << mib(m.state) << " + gradient buckets " << mib(m.buckets)
      << " + activations " << mib(m.activations) << " + gradients " << mib(m.gradients)
      << " + scratch " << mib(m.scratch) << " + gaps " << mib(m.unused) << " + fetched "
      << mib(m.fetched) << '\n'
      << "arena: " << mib(plan.arena_bytes) << ", of which " << mib(plan.live_bytes)
      << " are alive at once\n";
}

}  // namespace

std::string PlannedProgram::table() const {
  std::ostringstream out;
  print_header(out);
  for (size_t i = 0; i < steps.size(); ++i) print_step(out, *this, i);
  out << '\n'
      << steps.size() << " steps, " << reorders() << " reorders, " << std::setprecision(3)
      << flops() / 1e9 << " GFLOP\n";
  for (const auto& [group, t] : traffic())
    out << "wire: group " << group << " of " << t.ranks << " ranks: " << std::setprecision(3)
        << t.bytes / 1e6 << " MB sent in " << t.calls << " calls\n";
  print_memory(out, *this);
  out << "made in " << std::setprecision(3) << seconds_to_make() << " s:";
  for (const passes::Report& report : passes)
    out << ' ' << report.name
        << (report.skipped ? " skipped" : str(" ", report.seconds * 1e3, " ms")) << ',';
  for (const PhaseTime& phase : phases)
    out << ' ' << phase.name << ' ' << phase.seconds * 1e3 << " ms"
        << (&phase == &phases.back() ? "\n" : ",");
  return out.str();
}

}  // namespace fleetx::runtime
