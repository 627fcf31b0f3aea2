#include "fleetx/strategies/averaging.h"

#include <algorithm>

#include "fleetx/ir/uniform.h"
#include "fleetx/strategies/data_parallel.h"

namespace fleetx::strategies {

using ir::Role;
using Position = ir::Rewriter::Position;

ir::Attrs default_fuse_options() {
  return {{"fuse", true}, {"fuse_size_in_MB", 32}, {"fuse_count", 50}};
}

ir::Attrs fuse_options(const Settings& s) {
  return {{"fuse", s.get("fuse_all_reduce_ops")},
          {"fuse_size_in_MB", s.get("fuse_grad_size_in_MB")},
          {"fuse_count", static_cast<int64_t>(s.get("fuse_grad_size_in_TFLOPS").as<double>())}};
}

void check_fuse_options(std::string_view strategy, const ir::Attrs& options) {
  for (const char* limit : {"fuse_size_in_MB", "fuse_count"})
    check_arg(options.at(limit).as<int64_t>() > 0, strategy, ": the option '", limit, "' is ",
              options.at(limit), "; must be positive");
}

Gradient gradient_of(const ir::Program& main, const ir::Training::Parameter& p, DType dtype) {
  const auto elements = static_cast<size_t>(main.var(p.gradient).type.shape.numel());
  return {p.gradient, p.name, elements * size_of(dtype), dtype};
}

std::vector<std::vector<Gradient>> buckets_of(const std::vector<Gradient>& gradients,
                                              const ir::Attrs& options) {
  if (gradients.empty()) return {};
  if (options.at("fuse").as<bool>())
    return make_buckets(
        gradients, {.bytes = static_cast<size_t>(options.at("fuse_size_in_MB").as<int64_t>()) << 20,
                    .count = static_cast<size_t>(options.at("fuse_count").as<int64_t>())});
  std::vector<std::vector<Gradient>> alone;
  for (const Gradient& g : gradients) alone.push_back({g});
  return alone;
}

Position behind(ir::Rewriter& rw, const ir::Names& vars, const std::string& guard) {
  for (Position op = rw.end(); op != rw.begin(); --op) {
    const ir::Op& last = *std::prev(op);
    if ((!guard.empty() && last.writes(guard)) ||
        std::any_of(vars.begin(), vars.end(),
                    [&](const auto& name) { return last.writes(name) || last.reads(name); }))
      return op;
  }
  return rw.begin();
}

ir::Names names_of(const std::vector<Gradient>& bucket) {
  ir::Names names;
  for (const Gradient& g : bucket) names.push_back(g.name);
  return names;
}

std::string agree_on_ready(ir::Rewriter& rw) {
  const std::string ready = rw.program().training().ready;
  if (ready.empty() || ir::Uniform(rw.program(), kDataAxis).holds(ready)) return ready;
  const std::string own = rw.fresh_name(ready + "@I32"), all = rw.fresh_name(ready + "@ALL");
  rw.append({.type = "cast",
             .inputs = {{"x", {ready}}},
             .outputs = {{"out", {own}}},
             .attrs = {{"dtype", DType::kI32}},
             .role = Role::kBackward});
  rw.append({.type = "all_reduce",
             .inputs = {{"xs", {own}}},
             .outputs = {{"out", {own}}},
             .attrs = {{"group", kDataAxis}, {"op", "min"}},
             .role = Role::kBackward});
  rw.append({.type = "cast",
             .inputs = {{"x", {own}}},
             .outputs = {{"out", {all}}},
             .attrs = {{"dtype", DType::kBool}},
             .role = Role::kBackward});
  rw.edit_training().ready = all;
  return "";
}

void average(ir::Rewriter& rw, const ir::Names& names, const std::string& guard) {
  const Position place = behind(rw, names, guard);
  const std::string ticket = rw.fresh_name("all_reduce_ticket");
  rw.insert(place, {.type = "all_reduce_start",
                    .inputs = {{"xs", names}},
                    .outputs = {{"out", names}, {"ticket", {ticket}}},
                    .attrs = {{"group", kDataAxis}, {"op", "average"}},
                    .role = Role::kBackward,
                    .guard = guard});
  rw.append({.type = "all_reduce_wait",
             .inputs = {{"xs", names}, {"ticket", {ticket}}},
             .outputs = {{"out", names}},
             .attrs = {{"group", kDataAxis}, {"op", "average"}},
             .role = Role::kBackward,
             .guard = guard});
}

}  // namespace fleetx::strategies
