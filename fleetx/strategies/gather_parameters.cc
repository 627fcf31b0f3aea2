#include "fleetx/strategies/gather_parameters.h"

#include <algorithm>
#include <map>
#include <set>

#include "fleetx/ir/infer.h"
#include "fleetx/ir/rewriter.h"

namespace fleetx::strategies {
namespace {

using ir::Names;
using ir::Role;
using Position = ir::Rewriter::Position;

class Gather {
 public:
  Gather(Programs& programs, const Owners& owners, const GatherOptions& options)
      : programs_(programs), rw_(programs.main), owners_(owners), options_(options) {
    for (const ir::Training::Parameter& p : programs.main.training().parameters)
      if (owners.is_here(p.name)) divided_.insert(p.name);
  }

  void run() {
    cut();
    // The next segment is on its way before this one is waited for.
    for (size_t i = 0; i < segments_.size(); ++i) {
      if (i == 0) start(segments_[i], segments_[i].first);
      if (i + 1 < segments_.size()) start(segments_[i + 1], segments_[i].first);
      for (const ir::Rewriter::NewOp& wait : segments_[i].waits)
        rw_.insert(segments_[i].first, wait);
    }
    for (const std::string& name : divided_) {
      place_with_owner(programs_, name, owners_.place(name));
      give_first_value(name);
    }
    for (const ir::Training::Parameter& p : rw_.program().training().parameters)
      if (!divided_.contains(p.name)) place_with_owner(programs_, p.name, owners_.place(p.name));
    forget_others();
  }

 private:
  struct Segment {
    Position first;  // op
    Role role;       // forward, if one of its copies is read there: programs for testing have it
    std::vector<std::pair<std::string, std::string>> copies = {};  // parameter, copy
    std::vector<ir::Rewriter::NewOp> waits = {};
  };
  struct Copy {
    std::string name;
    size_t made;  // by this segment
    size_t last;  // segment that uses it
  };

  Names parameters_of(const ir::Op& op) const {
    Names out;
    for (const Names& names : op.inputs)
      for (const std::string& name : names)
        if (divided_.contains(name) && std::find(out.begin(), out.end(), name) == out.end())
          out.push_back(name);
    return out;
  }

  // What is being sent to another stage is waited for under the name that it was sent with.
  bool waits_for_copies(Position op) {
    if (op->type() != "send_wait") return false;
    const std::string ticket = op->in("ticket").front();
    const Position start = rw_.last_writer(ticket);
    FLEETX_CHECK(start != rw_.end(), ir::describe(*op), "waits for what nothing sends");
    rw_.set_inputs(op, "xs", start->in("xs"));
    return true;
  }

  // From now on ops read copies. One of the segment before is kept.
  void cut() {
    std::map<std::string, Copy> copies;
    double bytes = 0;
    for (Position op = rw_.begin(); op != rw_.end(); ++op) {
      if (op->role == Role::kUpdate) continue;
      const Names used = parameters_of(*op);
      if (used.empty()) continue;
      if (waits_for_copies(op)) continue;
      const bool more = std::any_of(used.begin(), used.end(), [&](const std::string& name) {
        const auto it = copies.find(name);
        return it == copies.end() || it->second.last + 1 != segments_.size();
      });
      if (segments_.empty() || (more && bytes >= options_.segment_bytes)) {
        segments_.push_back({op, op->role});
        bytes = 0;
      }
      const size_t now = segments_.size() - 1;
      for (const std::string& name : used) {
        const auto it = copies.find(name);
        if (it == copies.end() || it->second.last + 1 < now) {
          const std::string copy = rw_.fresh_name(str(name, "@", now));
          copies.insert_or_assign(name, Copy{copy, now, now});
          segments_.back().copies.emplace_back(name, copy);
          bytes += ir::bytes_of(rw_.program().var(name).type);
        } else if (it->second.last < now) {
          it->second.last = now;
          bytes += ir::bytes_of(rw_.program().var(name).type);
        }
        const Copy& copy = copies.at(name);
        rw_.rename_inputs(op, name, copy.name);
        if (op->role == Role::kForward) segments_[copy.made].role = Role::kForward;
      }
    }
  }

  // A call for each owner and dtype.
  void start(Segment& segment, Position place) {
    struct Call {
      // Each is written once, so that the planner may give them the same memory.
      Names from, under_way, to;
    };
    std::map<std::pair<int, DType>, Call> calls;
    for (const auto& [name, copy] : segment.copies) {
      Call& call = calls[{owners_.of(name), rw_.program().var(name).type.dtype}];
      call.from.push_back(owners_.is_own(name) ? name : room_for(name, segment.role, place));
      call.under_way.push_back(rw_.fresh_name(copy + "@SENT"));
      call.to.push_back(copy);
    }
    for (const auto& [key, call] : calls) {
      const ir::Attrs attrs{{"group", owners_.group()}, {"root", key.first}};
      const std::string ticket = rw_.fresh_name("gather_ticket");
      rw_.insert(place, {.type = "broadcast_start",
                         .inputs = {{"xs", call.from}},
                         .outputs = {{"out", call.under_way}, {"ticket", {ticket}}},
                         .attrs = attrs,
                         .role = segment.role});
      segment.waits.push_back({.type = "broadcast_wait",
                               .inputs = {{"xs", call.under_way}, {"ticket", {ticket}}},
                               .outputs = {{"out", call.to}},
                               .attrs = attrs,
                               .role = segment.role});
    }
  }
  std::string room_for(const std::string& name, Role role, Position place) {
    const ir::TensorType type = rw_.program().var(name).type;
    const std::string room = rw_.fresh_name(name + "@EMPTY");
    rw_.insert(place, {.type = "empty",
                       .outputs = {{"out", {room}}},
                       .attrs = {{"shape", type.shape}, {"dtype", type.dtype}},
                       .role = role});
    return room;
  }

  // Startup makes the value in a temporary, one after the other, so that they never are in memory
  // together. The name is one with which random ops draw what they draw for the parameter itself.
  void give_first_value(const std::string& name) {
    ir::Rewriter rw(programs_.startup);
    if (rw.program().find(name) == nullptr) return;
    const std::string made = name + std::string(ir::kRecomputeSuffix);
    ir::VarInfo info;
    info.name = made;
    info.type = rw.program().var(name).type;
    rw.add_var(info);
    Position behind = rw.begin();
    for (Position op = rw.begin(); op != rw.end(); ++op) {
      if (!op->reads(name) && !op->writes(name)) continue;
      behind = std::next(op);
      rw.rename_inputs(op, name, made);
      for (size_t s = 0; s < op->outputs.size(); ++s) {
        Names outputs = op->outputs[s];
        std::replace(outputs.begin(), outputs.end(), name, made);
        rw.set_outputs(op, op->def->outputs[s].name, outputs);
      }
    }
    rw.insert(behind, {.type = "broadcast",
                       .inputs = {{"xs", {made}}},
                       .outputs = {{"out", {made}}},
                       .attrs = {{"group", options_.everybody}}});
    if (owners_.is_own(name))
      rw.insert(behind,
                {.type = "assign", .inputs = {{"x", {made}}}, .outputs = {{"out", {name}}}});
    else
      rw.erase_var(name);
  }

  // Of another owner's parameter no op knows.
  void forget_others() {
    const auto check = [&](const ir::Op& op, const std::string& name) {
      if (divided_.contains(name) && !owners_.is_own(name))
        fail(Error::Kind::kInvalidArgument,
             str(ir::describe(op), "uses the parameter '", name,
                 "' after its update, which sharding with stage 3 leaves with its owner; use stage "
                 "2"));
    };
    for (const ir::Op& op : rw_.program().ops())
      for (const auto* slots : {&op.inputs, &op.outputs})
        for (const Names& names : *slots)
          for (const std::string& name : names) check(op, name);
    for (ir::Training::Parameter& p : rw_.edit_training().parameters)
      if (divided_.contains(p.name) && !owners_.is_own(p.name)) p.learning_rate = "";
  }

  Programs& programs_;
  ir::Rewriter rw_;
  const Owners& owners_;
  const GatherOptions& options_;
  std::set<std::string> divided_;
  std::vector<Segment> segments_;
};

}  // namespace

void gather_parameters(Programs& programs, const Owners& owners, const GatherOptions& options) {
  Gather(programs, owners, options).run();
}

}  // namespace fleetx::strategies
