#include "fleetx/predict/predict.h"

#include <algorithm>
#include <cmath>

#include "fleetx/predict/op_time.h"

namespace fleetx::predict {
namespace {

using runtime::PlannedProgram;
using runtime::Step;

// Of all ranks of a host together, in a group of which `local` are on this host.
struct Way {
  int ranks, local, hosts;
};

Way way_of(const PlannedProgram& plan, const std::string& group, int per_host) {
  const int ranks = plan.groups.at(group);
  const auto axes = Mesh::axes_of(group);
  if (!std::ranges::all_of(axes, [&](const std::string& a) { return plan.mesh.has(a); }))
    return {ranks, std::min(ranks, per_host), (ranks + per_host - 1) / per_host};
  const int own = plan.mesh.rank() / per_host;
  const std::vector<int> members = plan.mesh.group(group);
  const auto local = std::ranges::count_if(members, [&](int r) { return r / per_host == own; });
  std::vector<int> hosts;
  for (const int r : members) hosts.push_back(r / per_host);
  hosts.erase(std::unique(hosts.begin(), hosts.end()), hosts.end());
  return {ranks, static_cast<int>(local), static_cast<int>(hosts.size())};
}

// What a call sends: its rank to others of the host, and its host to other hosts. First the ranks
// of a host do their part, then hosts talk to each other, each as one.
LinkUse use_of(const ir::Communication& c, const Way& way, bool ring) {
  ir::Communication between = c;
  if (c.kind == ir::CommKind::kAllGather) between.bytes *= way.local;
  LinkUse use{ir::wire_bytes(c, way.local), ir::wire_bytes(between, way.hosts)};
  if (c.kind == ir::CommKind::kAllToAll) use.network_bytes *= way.local;
  if (ring && way.hosts > 1) use.host_bytes = use.network_bytes = ir::wire_bytes(c, way.ranks);
  if (c.kind == ir::CommKind::kSend || c.kind == ir::CommKind::kReceive) {
    use.host_bytes = way.hosts == 1 ? c.bytes : 0;
    use.network_bytes = way.hosts == 1 ? 0 : c.bytes;
  }
  return use;
}

double rounds_of(ir::CommKind kind, int ranks) {
  if (ranks <= 1) return 0;
  const double tree = std::ceil(std::log2(ranks));
  return kind == ir::CommKind::kAllReduce ? 2 * tree : tree;
}

bool is_message(const std::string& type) {
  return type == "send" || type == "recv" || type == "send_start" || type == "recv_start";
}

// The two ends of a message have the same name for the way it goes.
std::string channel_of(const ir::Op& op, const Mesh& mesh) {
  const auto group = op.attr<std::string>("group");
  const int own = mesh.coordinate(group);
  const auto peer = op.attr<int64_t>("peer");
  const bool sends = op.type().starts_with("send");
  return str(group, " ", sends ? own : peer, ">", sends ? peer : own);
}

class Tasks {
 public:
  // `alone`: the other ends of its messages are not simulated.
  Tasks(const PlannedProgram& plan, const Machine& machine, int per_host, bool alone)
      : plan_(plan), machine_(machine), per_host_(per_host) {
    if (alone) return;
    for (const ir::Op& op : plan.program.ops())
      if (is_message(op.type())) channels_.push_back(channel_of(op, plan.mesh));
  }

  std::vector<Task> make(bool with_guarded) {
    std::vector<Task> tasks;
    next_message_ = 0;
    for (const Step& step : plan_.steps)
      if (with_guarded || step.guard == runtime::kNoGuard) add(step, tasks);
    return tasks;
  }

  LinkUse sent() const {
    LinkUse sum;
    for (const Step& step : plan_.steps) {
      const ir::Communication& c = step.cost.communication;
      if (c.kind == ir::CommKind::kNone) continue;
      const LinkUse use = use_of(c, way_of(plan_, c.group, per_host_), machine_.network.ring);
      sum.host_bytes += use.host_bytes;
      sum.network_bytes += use.network_bytes;
    }
    return sum;
  }

 private:
  void add(const Step& step, std::vector<Task>& tasks) {
    const ir::Communication& c = step.cost.communication;
    if (c.kind == ir::CommKind::kNone) {
      if (step.ticket != runtime::kNoTicket) {
        const auto call = by_ticket_.find(step.ticket);
        if (call != by_ticket_.end())
          tasks.push_back({.kind = Task::Kind::kWait, .name = step.label, .call = call->second});
        if (step.cost.flops > 0) compute(step, tasks);
        return;
      }
      compute(step, tasks);
      return;
    }
    // What it computes itself: dgc chooses what it sends.
    if (step.cost.flops > 0) compute(step, tasks);
    const Link& link =
        way_of(plan_, c.group, per_host_).hosts > 1 ? machine_.network : machine_.host;
    if (link.tensor_s > 0 && plan_.groups.at(c.group) > 1)
      tasks.push_back({.name = "tensors of a call",
                       .seconds = link.tensor_s * static_cast<double>(step.inputs.size())});
    const int number = next_++;
    tasks.push_back(call_of(step, number));
    if (is_message(step.label) && !channels_.empty())
      tasks.back().channel = channels_.at(next_message_++);
    if (step.label.ends_with("_start"))
      for (const int v : step.outputs) by_ticket_[v] = number;
    else
      tasks.push_back({.kind = Task::Kind::kWait, .name = step.label, .call = number});
  }

  void compute(const Step& step, std::vector<Task>& tasks) const {
    tasks.push_back({.name = step.label, .seconds = op_seconds(plan_, step, machine_, per_host_)});
  }

  double overlap_of(const Link& link) const {
    return link.overlap > 0 ? link.overlap : machine_.overlap;
  }

  Task call_of(const Step& step, int number) const {
    const ir::Communication& c = step.cost.communication;
    const Way way = way_of(plan_, c.group, per_host_);
    const LinkUse use = use_of(c, way, machine_.network.ring);
    const Link &host = machine_.host, &network = machine_.network;
    // All groups of a host that do the same share what is shared.
    const double groups = static_cast<double>(per_host_) / way.local;
    Task task{.kind = Task::Kind::kCall,
              .name = str(step.label, ", ", step.inputs.size(), " tensors"),
              .group = c.group,
              .call = number};
    const double kept = overlap_of(use.network_bytes > 0 ? network : host);
    task.overlap = 1 - (1 - kept) / std::max(1.0, cores_of_rank(machine_, per_host_));
    task.latency_s = rounds_of(c.kind, way.local) * host.latency_s +
                     rounds_of(c.kind, way.hosts) * network.latency_s;
    if (use.host_bytes > 0)
      task.host_s = use.host_bytes * (host.shared ? per_host_ : 1) / host.rate(c.bytes);
    if (use.network_bytes > 0)
      task.network_s =
          use.network_bytes * (network.shared ? groups : 1.0 / way.local) / network.rate(c.bytes);
    return task;
  }

  const PlannedProgram& plan_;
  const Machine& machine_;
  int per_host_;
  int next_ = 0;
  std::vector<std::string> channels_;  // of its messages, in their order
  size_t next_message_ = 0;
  std::map<int, int> by_ticket_;  // value to the number of its call
};

}  // namespace

int ranks_per_host(const Setting& setting, const Mesh& mesh) {
  int most = setting.ranks_per_host;
  if (most == 0) most = setting.machine.ranks;
  if (most == 0) most = setting.machine.cores / std::max(1, setting.machine.cores_per_rank);
  return std::clamp(most, 1, mesh.world());
}

Prediction predict(const PlannedProgram& plan, const Setting& setting) {
  return predict_stages({&plan}, setting).front();
}

std::vector<Prediction> predict_stages(const std::vector<const PlannedProgram*>& stages,
                                       const Setting& setting) {
  const int per_host = ranks_per_host(setting, stages.front()->mesh);
  std::vector<Tasks> tasks;
  for (const PlannedProgram* plan : stages)
    tasks.emplace_back(*plan, setting.machine, per_host, stages.size() == 1);
  const auto run = [&](bool with_guarded) {
    std::vector<SimulatedRank> ranks;
    for (size_t i = 0; i < stages.size(); ++i)
      ranks.push_back({.name = str("rank ", stages[i]->mesh.rank()),
                       .tasks = tasks[i].make(with_guarded),
                       .host = stages[i]->mesh.rank() / per_host});
    return simulate(ranks);
  };
  const Timeline all = run(true);
  const double share = setting.guarded_share;
  const Timeline others = share < 1 ? run(false) : all;
  const auto mean = [&](double every, double rest) { return share * every + (1 - share) * rest; };
  std::vector<Prediction> out;
  for (size_t i = 0; i < stages.size(); ++i) {
    Prediction& p = out.emplace_back();
    const RankTime &time = all.ranks[i], &rest = others.ranks[i];
    p.timeline = all;
    p.seconds = mean(all.seconds, others.seconds);
    p.time = {mean(time.compute_s, rest.compute_s), mean(time.exposed_s, rest.exposed_s),
              mean(time.bubble_s, rest.bubble_s)};
    p.links = tasks[i].sent();
    p.flops = stages[i]->flops();
    p.memory = stages[i]->memory();
    if (setting.process_bytes > 0) p.process_bytes = setting.process_bytes + stages[i]->own_bytes();
  }
  return out;
}

}  // namespace fleetx::predict
