#include "fleetx/strategies/pipeline_unroll.h"

#include <algorithm>
#include <optional>

#include "fleetx/ir/rewriter.h"
#include "fleetx/strategies/owners.h"
#include "fleetx/strategies/pipeline_sizes.h"
#include "fleetx/strategies/pipeline_stages.h"
#include "fleetx/strategies/state.h"

namespace fleetx::strategies {

std::string group_of_values(int stages) { return str(kStageAxis, "/", stages); }

namespace {

using ir::Names;
using ir::Op;
using ir::Role;
using NewOp = ir::Rewriter::NewOp;

template <class Fn>
void each(const std::vector<Names>& slots, const Fn& fn) {
  for (const Names& names : slots)
    for (const std::string& name : names) fn(name);
}

constexpr const char* kReceive = "recv_start";

// A value that one stage makes and another reads.
struct Message {
  std::string var;
  int from = 0, to = 0;
  int tag = 0;
};

// Started sends, which are waited for when the next ones of the lane are ready.
struct Lane {
  std::string group;
  std::vector<NewOp> waits;
};

class Unroll {
 public:
  Unroll(Programs& programs, const UnrollOptions& options)
      : programs_(programs),
        rw_(programs.main),
        shared_(stage_backward(programs.main)),
        before_(programs.main),
        map_(before_, options.of.stages, shared_),
        options_(options),
        stage_(options.of.stage),
        stages_(options.of.stages),
        count_(options.of.micro_batches),
        values_{group_of_values(options.of.stages), {}},
        gradients_{kStageAxis, {}} {
    check_batch();
    find_owned_elsewhere();
    find_parts();
    find_messages();
  }

  void run() {
    while (rw_.begin() != rw_.end()) rw_.erase(rw_.begin());
    begin();
    const std::vector<Slot> slots = slots_of(options_.schedule, options_.of);
    const Slot first{false, 0};
    for (size_t i = 0; i < slots.size(); ++i) {
      // The first gradients come while the forward before is computed.
      if (i + 1 < slots.size() && slots[i + 1] == first) receive_gradients(0);
      if (i + 1 == slots.size()) receive_shared();
      add_slot(slots[i]);
    }
    finish(values_);
    share_gradients();
    finish(gradients_);
    for (const ir::Training::Parameter& p : before_.training().parameters) set_gradient(p);
    share_results();
    for (const Op& op : before_.ops())  // a schedule of the learning rate, which counts steps
      if (op.role == Role::kUpdate && map_.is_once(op) && map_.has(op, stage_)) copy(op, 0);
    place();
    note_others();
    rw_.drop_unused_vars(kept());
  }

 private:
  // What a stage has added up of the gradient of another's parameter.
  struct SharedSum {
    const SharedGradient* of;
    Message message;
    std::string name() const { return sum_name(*of, message.from); }
  };

  // ---- analysis ----

  // A program that is built for one size of the batch must be one for that of a micro-batch, too.
  void check_batch() {
    if (map_.batch() < 0 || count_ == 1) return;
    check_parts(map_.batch(), count_, options_.micro_batch_size);
    (void)sizes();
  }

  // Trained parameters whose gradient is made elsewhere than on the first stage that uses them.
  void find_owned_elsewhere() {
    std::set<std::string> known;
    for (const SharedGradient& g : shared_) known.insert(g.parameter);
    for (const ir::Training::Parameter& p : before_.training().parameters) {
      const int made = map_.home(p.gradient), owner = map_.owner(p.name);
      if (!known.contains(p.name) && made != kAnyStage && made != owner)
        shared_.push_back({p.name, p.gradient, {{made, p.gradient}}});
    }
  }

  // The gradients that this stage adds up over its micro-batches, and what the sums are called.
  void find_parts() {
    std::set<std::string> shared;
    for (const SharedGradient& g : shared_) {
      shared.insert(g.gradient);
      for (const auto& [stage, part] : g.parts) {
        check_arg(stage == owner_of(g) || is_dense(part), "pipeline: '", g.parameter,
                  "' is used on the stages ", owner_of(g), " and ", stage,
                  ", and its gradient on stage ", stage,
                  " consists of rows, which do not travel between stages; use sparse=False there");
        if (stage == stage_) sums_[part] = sum_name(g, stage);
      }
    }
    for (const ir::Training::Parameter& p : before_.training().parameters)
      if (!shared.contains(p.gradient) && map_.owner(p.name) == stage_)
        sums_[p.gradient] = p.gradient;
  }
  static std::string sum_name(const SharedGradient& g, int stage) {
    return str(g.gradient, "@SUM", stage);
  }
  int owner_of(const SharedGradient& g) const { return map_.owner(g.parameter); }
  bool is_dense(const std::string& var) const {
    return before_.var(var).type.kind == ir::VarKind::kDense;
  }

  void find_messages() {
    int tag = 0;
    for (const Op& op : before_.ops()) {
      each(op.outputs, [&](const std::string& var) {
        if (before_.var(var).persistable || map_.home(var) == kAnyStage) return;
        for (const int to : map_.readers(var)) {
          if (to == op.stage) continue;
          const bool down = op.role == Role::kForward;
          check_arg(down == (to > op.stage), "pipeline: ", ir::describe(op), "makes '", var,
                    "' on stage ", op.stage, " in ", name_of(op.role), ", but stage ", to,
                    " reads it: values of forward go to later stages, those of backward to "
                    "earlier ones");
          check_arg(is_dense(var), "pipeline: '", var, "' goes from stage ", op.stage, " to stage ",
                    to, " but consists of rows, which do not travel");
          const Message m{var, op.stage, to, tag++};
          if (op.stage != stage_ && to != stage_) continue;
          auto& list = op.stage == stage_ ? (down ? send_values_ : send_gradients_)
                                          : (down ? get_values_ : get_gradients_);
          list.push_back(m);
        }
      });
    }
    // Parameters that are read by stages other than their owner.
    for (const ir::VarInfo* v : before_.parameters()) {
      const std::set<int> readers = map_.readers(v->name);
      for (const int to : readers) {
        if (to == *readers.begin()) continue;
        const Message m{v->name, *readers.begin(), to, tag++};
        if (m.from == stage_) send_parameters_.push_back(m);
        if (m.to != stage_) continue;
        get_parameters_.push_back(m);
        borrowed_.insert(m.var);
      }
    }
    for (const SharedGradient& g : shared_)
      for (const auto& [from, part] : g.parts)
        if (from != owner_of(g)) shared_sums_.push_back({&g, {part, from, owner_of(g), tag++}});
  }

  // ---- names ----

  std::string name(const std::string& var, int micro_batch) const {
    const ir::VarInfo& info = before_.var(var);
    if (borrowed_.contains(var)) return var + "@TIED";
    if (info.persistable || !map_.varies(var)) return var;
    // Random numbers depend on the name up to the suffix of recomputed values only.
    const size_t again = std::min(var.size(), var.find(ir::kRecomputeSuffix));
    return str(var.substr(0, again), "@MB", micro_batch, var.substr(again));
  }
  Names names(const std::string& var) const {
    Names all;
    for (int i = 0; i < count_; ++i) all.push_back(name(var, i));
    return all;
  }

  void copy(const Op& op, int micro_batch) {
    NewOp n{.type = op.type(),
            .attrs = op.attrs,
            .role = op.role,
            .name = op.name,
            .guard = op.guard.empty() ? "" : name(op.guard, micro_batch),
            .loc = op.loc};
    const auto renamed = [&](const std::vector<Names>& slots, const auto& defs, auto& to) {
      for (size_t s = 0; s < slots.size(); ++s) {
        Names list;
        for (const std::string& var : slots[s]) list.push_back(name(var, micro_batch));
        to.emplace_back(defs[s].name, std::move(list));
      }
    };
    renamed(op.inputs, op.def->inputs, n.inputs);
    renamed(op.outputs, op.def->outputs, n.outputs);
    rw_.append(n);
  }

  // ---- the parts of the program ----

  void begin() {
    for (const ir::VarInfo* v : before_.vars())
      if (map_.is_cut(*v) && map_.readers(v->name).contains(stage_)) cut(*v);
    for (const Message& m : send_parameters_) send(values_, m, m.var, Role::kForward);
    for (const Message& m : get_parameters_)
      start_receive(values_, m, name(m.var, 0),
                    {.type = kReceive,
                     .attrs = {{"shape", before_.var(m.var).type.shape},
                               {"dtype", before_.var(m.var).type.dtype}},
                     .role = Role::kForward});
    receive_values(0);
    for (const Message& m : get_parameters_)
      wait_receive(values_, m, name(m.var, 0), Role::kForward);
    const std::string& seed = before_.training().seed;
    for (const Op& op : before_.ops()) {
      if (op.role == Role::kUpdate || !map_.is_once(op) || !map_.has(op, stage_)) continue;
      copy(op, 0);
      use_seed_part();
      // The seed is divided by the number of micro-batches, so that gradients add up to the mean.
      if (op.writes(seed)) divide_seed(seed);
      add_up(op, 0);
    }
  }

  void cut(const ir::VarInfo& data) {
    ir::Attrs attrs{{"axis", 0}, {"micro_batches", true}};
    // The sizes of values that other stages send are not known before there is a batch: those of
    // data must not be either.
    if (options_.micro_batch_size > 0)
      attrs.emplace("part", options_.micro_batch_size * rows_of_a_sample(data));
    rw_.append({.type = "split",
                .inputs = {{"x", {data.name}}},
                .outputs = {{"outs", names(data.name)}},
                .attrs = std::move(attrs),
                .name = kStageAxis});
  }

  void divide_seed(const std::string& seed) {
    if (count_ == 1) return;
    const std::string part = rw_.fresh_name(seed + "@MB");
    rw_.append({.type = "scale",
                .inputs = {{"x", {seed}}},
                .outputs = {{"out", {part}}},
                .attrs = {{"scale", 1.0 / count_}},
                .role = Role::kBackward,
                .name = kStageAxis});
    seed_part_ = part;
  }

  void add_slot(const Slot& slot) {
    const int i = slot.micro_batch;
    const Role role = slot.forward ? Role::kForward : Role::kBackward;
    Lane& lane = slot.forward ? values_ : gradients_;
    for (const Message& m : slot.forward ? get_values_ : get_gradients_)
      wait_receive(lane, m, name(m.var, i), role);
    for (const Op& op : before_.ops()) {
      if (op.role != role || map_.is_once(op) || !map_.has(op, stage_)) continue;
      copy(op, i);
      use_seed_part();
      add_up(op, i);
    }
    const auto& sent = slot.forward ? send_values_ : send_gradients_;
    if (!sent.empty()) finish(lane);
    for (const Message& m : sent) send(lane, m, name(m.var, i), role);
    if (i + 1 == count_) return;
    slot.forward ? receive_values(i + 1) : receive_gradients(i + 1);
  }

  void use_seed_part() {
    const auto op = std::prev(rw_.end());
    if (!seed_part_.empty() && op->reads(before_.training().seed))
      rw_.rename_inputs(op, before_.training().seed, seed_part_);
  }

  // What the op has made of gradients is added to those of the micro-batches before.
  void add_up(const Op& op, int i) {
    each(op.outputs, [&](const std::string& var) {
      const auto it = sums_.find(var);
      if (it == sums_.end()) return;
      const std::string& sum = it->second;
      const std::string own = name(var, i);
      if (!map_.varies(var)) {
        // Computed once for all micro-batches, from the divided seed: times their number.
        return add({.type = "scale",
                    .inputs = {{"x", {own}}},
                    .outputs = {{"out", {once_name(sum, own)}}},
                    .attrs = {{"scale", static_cast<double>(count_)}}});
      }
      Names& so_far = so_far_[var];
      so_far.push_back(own);
      if (i + 1 == count_) {
        add({.type = "sum", .inputs = {{"xs", so_far}}, .outputs = {{"out", {sum}}}});
      } else if (i > 0 && is_dense(var)) {
        const std::string partial = str(sum, "@UPTO", i);
        add({.type = "sum", .inputs = {{"xs", so_far}}, .outputs = {{"out", {partial}}}});
        so_far = {partial};
      }
    });
  }
  void add(NewOp op, Role role = Role::kBackward) {
    op.role = role;
    op.name = kStageAxis;
    rw_.append(op);
  }
  // A sum must not have the name of its only term.
  std::string once_name(const std::string& sum, const std::string& own) {
    if (sum != own) return sum;
    renamed_sums_[sum] = sum + "@ALL";
    return sum + "@ALL";
  }

  // ---- messages ----

  static int peer_of(const Message& m, int stage) { return m.from == stage ? m.to : m.from; }

  void send(Lane& lane, const Message& m, const std::string& var, Role role) {
    const std::string ticket = rw_.fresh_name("send_ticket");
    const ir::Attrs attrs{{"group", lane.group}, {"peer", peer_of(m, stage_)}, {"tag", m.tag}};
    rw_.append({.type = "send_start",
                .inputs = {{"xs", {var}}},
                .outputs = {{"ticket", {ticket}}},
                .attrs = attrs,
                .role = role,
                .name = kStageAxis});
    lane.waits.push_back({.type = "send_wait",
                          .inputs = {{"xs", {var}}, {"ticket", {ticket}}},
                          .outputs = {{"out", {str(var, "@SENT", peer_of(m, stage_))}}},
                          .attrs = attrs,
                          .role = role,
                          .name = kStageAxis});
  }
  void finish(Lane& lane) {
    for (const NewOp& wait : lane.waits) rw_.append(wait);
    lane.waits.clear();
  }

  void start_receive(Lane& lane, const Message& m, const std::string& var, NewOp op) {
    const std::string ticket = rw_.fresh_name("recv_ticket");
    op.outputs = {{"out", {var}}, {"ticket", {ticket}}};
    op.attrs.insert_or_assign("group", lane.group);
    op.attrs.insert_or_assign("peer", peer_of(m, stage_));
    op.attrs.insert_or_assign("tag", m.tag);
    op.name = kStageAxis;
    rw_.append(op);
    tickets_[var] = ticket;
  }
  void wait_receive(const Lane& lane, const Message& m, const std::string& var, Role role) {
    rw_.append({.type = "recv_wait",
                .inputs = {{"xs", {var}}, {"ticket", {tickets_.at(var)}}},
                .outputs = {{"out", {var}}},
                .attrs = {{"group", lane.group}, {"peer", peer_of(m, stage_)}, {"tag", m.tag}},
                .role = role,
                .name = kStageAxis});
  }

  void receive_values(int i) {
    for (const Message& m : get_values_)
      start_receive(values_, m, name(m.var, i), with_sizes(m.var, Role::kForward));
  }
  // The gradient of a value has its sizes.
  void receive_gradients(int i) {
    for (const Message& m : get_gradients_) {
      const std::string of = m.var.substr(0, m.var.find("@GRAD"));
      const ir::VarInfo* value = before_.find(of);
      check_arg(value != nullptr && !value->persistable && !value->is_data &&
                    value->type.dtype == before_.var(m.var).type.dtype &&
                    value->type.shape.rank() == before_.var(m.var).type.shape.rank(),
                "pipeline: stage ", stage_, " needs '", m.var, "' of stage ", m.from,
                ", which is not the gradient of a value of forward, so that its sizes are not "
                "known there; put the layers around it on one stage");
      start_receive(gradients_, m, name(m.var, i), with_sizes(of, Role::kBackward));
    }
  }
  const BatchSizes& sizes() {
    if (!sizes_)
      sizes_.emplace(
          before_, [this](const ir::VarInfo& v) { return map_.is_cut(v); }, count_);
    return *sizes_;
  }
  NewOp with_sizes(const std::string& var, Role role) {
    const RowSizes s = sizes().of(var);
    NewOp op{.type = kReceive, .attrs = {{"shape", s.fixed}, {"dtype", s.dtype}}, .role = role};
    if (s.like.empty()) return op;
    op.inputs = {{"like", {s.like}}};
    op.attrs.emplace("per_row", s.per_row);
    op.attrs.emplace("parts", count_);
    return op;
  }

  // ---- gradients ----

  // Those of parameters of several stages are added up on the first of them. They are received
  // while it computes its last backward.
  void receive_shared() {
    for (const SharedSum& part : shared_sums_) {
      if (part.message.to != stage_) continue;
      const ir::TensorType& type = before_.var(part.of->parameter).type;
      // `like` is data, so that the result counts as different between workers (ir/uniform.h).
      start_receive(gradients_, part.message, part.name(),
                    {.type = kReceive,
                     .inputs = {{"like", {first_data()}}},
                     .attrs = {{"shape", type.shape},
                               {"dtype", before_.var(part.message.var).type.dtype},
                               {"per_row", ir::Ints(static_cast<size_t>(type.shape.rank()))},
                               {"parts", count_}},
                     .role = Role::kBackward});
    }
  }
  void share_gradients() {
    for (const SharedSum& part : shared_sums_) {
      if (part.message.from == stage_) send(gradients_, part.message, part.name(), Role::kBackward);
      if (part.message.to == stage_)
        wait_receive(gradients_, part.message, part.name(), Role::kBackward);
    }
    for (const SharedGradient& g : shared_) {
      if (owner_of(g) != stage_) continue;
      Names all;
      if (g.parts.contains(stage_)) all.push_back(sum_name(g, stage_));
      for (const SharedSum& part : shared_sums_)
        if (part.of == &g) all.push_back(part.name());
      add({.type = "sum", .inputs = {{"xs", all}}, .outputs = {{"out", {g.gradient}}}});
    }
  }
  const std::string& first_data() const {
    for (const ir::VarInfo* v : before_.vars())
      if (map_.is_cut(*v)) return v->name;
    fail(Error::Kind::kInvalidArgument,
         "pipeline: the program has no data, so there are no micro-batches");
  }

  void set_gradient(const ir::Training::Parameter& p) {
    if (map_.owner(p.name) == stage_ || map_.owner(p.name) == kAnyStage) {
      const auto renamed = renamed_sums_.find(p.gradient);
      rw_.set_gradient(p.name, renamed == renamed_sums_.end() ? p.gradient : renamed->second);
      return;
    }
    // Zeros with the owner's stage, until there are updates and pipeline.cc drops those of others.
    const std::string none = rw_.fresh_name(p.name + "@GRAD@ELSEWHERE");
    add({.type = "fill",
         .outputs = {{"out", {none}}},
         .attrs = {{"shape", before_.var(p.name).type.shape},
                   {"dtype", before_.var(p.gradient).type.dtype},
                   {"value", 0.0}}});
    ir::set_gradient_owner(rw_.edit_var(none), {kStageAxis, map_.owner(p.name)});
    rw_.set_gradient(p.name, none);
  }

  // ---- results ----

  // The loss and other numbers that nobody reads are there on all stages, as means over the
  // micro-batches (whole numbers count something: as sums). What has a row for each sample is put
  // together where it is made. Part of forward, so that a program for tests has them, too.
  void share_results() {
    std::set<std::string> read;
    for (const Op& op : before_.ops())
      each(op.inputs, [&](const std::string& var) { read.insert(var); });
    for (const Op& op : before_.ops()) {
      if (op.role != Role::kForward) continue;
      each(op.outputs, [&](const std::string& var) {
        if (map_.home(var) == kAnyStage) return;
        const ir::VarInfo& info = before_.var(var);
        const bool is_loss = var == before_.training().loss;
        if (info.persistable || !map_.varies(var) || !is_dense(var)) return;
        if (read.contains(var) && !is_loss) return;
        const bool is_number = info.type.shape.known() && info.type.shape.numel() == 1;
        if (is_number && info.type.dtype != DType::kBool && info.type.dtype != DType::kU8)
          share_number(info, op.stage);
        else if (op.stage == stage_ && info.type.shape.rank() > 0)
          join(info);
      });
    }
  }
  void share_number(const ir::VarInfo& info, int stage) {
    const std::string own = stages_ > 1 ? rw_.fresh_name(info.name + "@OWN") : info.name;
    if (stage == stage_) {
      const bool mean = is_float(info.type.dtype) && count_ > 1;
      const std::string sum = mean ? rw_.fresh_name(info.name + "@SUM") : own;
      add({.type = "sum", .inputs = {{"xs", names(info.name)}}, .outputs = {{"out", {sum}}}},
          Role::kForward);
      if (mean)
        add({.type = "scale",
             .inputs = {{"x", {sum}}},
             .outputs = {{"out", {own}}},
             .attrs = {{"scale", 1.0 / count_}}},
            Role::kForward);
    } else {
      add({.type = "fill",
           .outputs = {{"out", {own}}},
           .attrs = {{"shape", info.type.shape}, {"dtype", info.type.dtype}, {"value", 0.0}}},
          Role::kForward);
    }
    results_.insert(info.name);
    if (stages_ == 1) return;
    add({.type = "broadcast",
         .inputs = {{"xs", {own}}},
         .outputs = {{"out", {info.name}}},
         .attrs = {{"group", kStageAxis}, {"root", stage}}},
        Role::kForward);
  }
  void join(const ir::VarInfo& info) {
    rw_.edit_var(info.name).type.shape[0] = -1;
    add({.type = "concat",
         .inputs = {{"xs", names(info.name)}},
         .outputs = {{"out", {info.name}}},
         .attrs = {{"axis", 0}}},
        Role::kForward);
    results_.insert(info.name);
  }

  // Other values cannot be fetched under their own name; runtime/request.cc says why.
  void note_others() {
    for (const Op& op : before_.ops()) {
      if (op.role != Role::kForward) continue;
      each(op.outputs, [&](const std::string& var) {
        if (before_.var(var).persistable || !map_.varies(var) || results_.contains(var)) return;
        ir::set_stage_of_value(rw_.edit_var(var), map_.home(var));
        noted_.push_back(var);
      });
    }
  }

  // ---- places ----

  void place() {
    if (stages_ == 1) return;
    std::map<std::string, int> writers;
    for (const Op& op : before_.ops())
      if (op.stage != kAnyStage && !map_.is_once(op))
        each(op.outputs, [&](const std::string& var) {
          if (before_.var(var).persistable) writers[var] = op.stage;
        });
    for (const ir::VarInfo* v : before_.vars()) {
      if (!v->persistable) continue;
      const auto writer = writers.find(v->name);
      const int owner = writer != writers.end() ? writer->second
                        : v->is_parameter       ? map_.owner(v->name)
                                                : kAnyStage;
      if (owner == kAnyStage) continue;
      check_arg(v->placement.is_replicated() || v->placement.is_sharded(), "pipeline: '", v->name,
                "' is ", v->placement,
                " already; what another strategy has given away cannot belong to a stage, too: "
                "switch one of them off");
      place_on_stage(programs_, v->name, owner, stage_);
    }
  }

  Names kept() const {
    Names all = noted_;
    for (const ir::VarInfo* v : before_.vars())
      if (v->persistable) all.push_back(v->name);
    return all;
  }

  Programs& programs_;
  ir::Rewriter rw_;
  std::vector<SharedGradient> shared_;
  const ir::Program before_;
  StageMap map_;
  const UnrollOptions& options_;
  int stage_, stages_, count_;
  Lane values_, gradients_;
  std::vector<Message> send_values_, get_values_, send_gradients_, get_gradients_;
  std::vector<Message> send_parameters_, get_parameters_;
  std::set<std::string> borrowed_;  // parameters of another stage that this one reads
  std::vector<SharedSum> shared_sums_;
  std::map<std::string, std::string> tickets_;       // by what is received
  std::map<std::string, std::string> sums_;          // by a gradient: that of all micro-batches
  std::map<std::string, Names> so_far_;              // terms of the sum
  std::map<std::string, std::string> renamed_sums_;  // those that have another name
  std::string seed_part_;
  std::optional<BatchSizes> sizes_;
  std::set<std::string> results_;
  Names noted_;
};

}  // namespace

void unroll(Programs& programs, const UnrollOptions& options) { Unroll(programs, options).run(); }

void place_on_stage(Programs& programs, const std::string& state, int owner, int stage) {
  place_with_owner(programs, state, {kStageAxis, owner});
  if (owner != stage) forget_first_value(programs.startup, state);
}

}  // namespace fleetx::strategies
