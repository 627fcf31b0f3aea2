// dgc: of each large gradient only the largest elements travel; what is not sent is kept and added
// to the next (Lin et al. 2018). For momentum, 1/100 and less of the bytes of data parallel.
//
//   before                                       after (2 workers)
//     backward:                                    backward:
//     dw = fc_grad(x, w, dy)                       dw = fc_grad(x, w, dy)
//                                                  [dw@DGC], [m], [v] = dgc([w], [dw], [m], [v],
//                                                                           @step@)
//     update:                                      update:
//     [w], [m] = momentum([w], [dw], [m], lr)      [w] = sgd([w], [dw@DGC], lr)
//
// u, which is w__dgc_u__ until there is an optimizer, is its velocity m: before rampup_begin_step
// the op computes momentum, so that compression begins with the velocity that training has by then.
// A worker alone trains without dgc and keeps the same velocity, so that either resumes the other;
// v begins with zeros then, and is dropped on the way back. See ops/dgc.cc for momentum correction,
// factor masking, warm-up and local clipping. Weight decay is part of the gradient that is
// compressed. Clipping is by the norm of single gradients or none.
//
// Small parameters (less than 16,384 elements), sparse gradients and what is not f32 are left to
// data_parallel and momentum. After amp and gradient_merge: compressed is what they leave, in the
// steps in which all workers apply it; in others u and v stay as they are.
//
// u and v are per rank. For another number of workers they are averaged: each stands for a gradient
// of one worker, of which the mean is applied.
#include <algorithm>
#include <map>

#include "fleetx/base/log.h"
#include "fleetx/ir/builder.h"
#include "fleetx/ir/rewriter.h"
#include "fleetx/ir/uniform.h"
#include "fleetx/strategies/averaging.h"
#include "fleetx/strategies/data_parallel.h"
#include "fleetx/strategies/state.h"
#include "fleetx/strategies/strategy.h"

namespace fleetx::strategies {
namespace {

using ir::Names;
using Position = ir::Rewriter::Position;

constexpr int64_t kLeastElements = 16384;
constexpr const char* kSuffix = "@DGC";

std::string u_of(const std::string& parameter) { return parameter + "__dgc_u__"; }
std::string v_of(const std::string& parameter) { return parameter + "__dgc_v__"; }

bool is_compressed(const ir::Program& main, const ir::Training::Parameter& p) {
  const ir::VarInfo& info = main.var(p.name);
  const ir::TensorType& gradient = main.var(p.gradient).type;
  return info.placement.is_replicated() && info.type.dtype == DType::kF32 &&
         gradient.dtype == DType::kF32 && gradient.kind == ir::VarKind::kDense &&
         info.type.shape.numel() >= kLeastElements;
}

void check_sparsity(const ir::Floats& sparsity) {
  for (const double s : sparsity)
    check_arg(s >= 0 && s < 1, "dgc_configs.sparsity has the value ", s,
              "; it is the share of elements that are not sent, so it must be in [0, 1)");
}

// What the optimizer has made of one parameter.
struct Update {
  std::string parameter;
  Position op;             // momentum
  double max_norm = 0;     // of clip_by_norm; 0: none
  Position clip;           // where it is clipped
  std::string compressed;  // output of dgc
};

class Dgc final : public Strategy {
 public:
  std::string_view name() const override { return "dgc"; }
  Traits traits() const override {
    return {.acts = {{Phase::kGradients, {"recompute", "amp", "gradient_merge"}},
                     {Phase::kUpdates, {"amp", "gradient_merge"}}},
            .groups = {kDataAxis},
            .conflicts = {{"lars",
                           "lars takes rates from the norms of whole gradients, of which dgc sends "
                           "a part; switch one of them off"},
                          {"lamb",
                           "dgc corrects the momentum of Momentum, not of Lamb; switch one "
                           "of them off"}},
            .needs = {{"data_parallel", "its workers are those that exchange gradients"}}};
  }
  ir::Attrs options() const override {
    ir::Attrs options = default_fuse_options();
    options.emplace("rampup_begin_step", 0);
    options.emplace("rampup_step", 1);
    options.emplace("sparsity", ir::Floats{});
    return options;
  }

  // One worker has nobody to send anything to.
  bool acts_in(const Mesh& mesh) const override { return mesh.size(kDataAxis) > 1; }

  std::optional<ir::Attrs> requested(const Settings& s, const Mesh&) const override {
    if (!s.on("dgc")) return std::nullopt;
    check_sparsity(s.get("dgc_configs.sparsity").as<ir::Floats>());
    ir::Attrs options = fuse_options(s);
    for (const char* option : {"rampup_begin_step", "rampup_step", "sparsity"})
      options.emplace(option, s.get(str("dgc_configs.", option)));
    return options;
  }

  void validate(const ir::Program&, const StrategyContext& context) const override {
    check_fuse_options(name(), context.options);
    check_sparsity(context.options.at("sparsity").as<ir::Floats>());
    check_arg(context.options.at("rampup_begin_step").as<int64_t>() >= 0,
              "dgc: the option 'rampup_begin_step' is ", context.options.at("rampup_begin_step"),
              "; it is a number of steps, so at least 0");
    check_arg(context.options.at("rampup_step").as<int64_t>() >= 1,
              "dgc: the option 'rampup_step' is ", context.options.at("rampup_step"),
              "; it is a number of steps, so at least 1");
  }

  // Also for parameters that are too small to be compressed.
  void check_optimizer(const ir::Program& main) const override {
    std::map<std::string, std::string> changed_by;  // gradients, before they are applied
    for (const ir::Op& op : main.ops()) {
      if (op.role != ir::Role::kUpdate) continue;
      if (!op.def->updates_parameters) {
        for (const Names& names : op.outputs)
          for (const std::string& name : names) changed_by[name] = op.type();
        continue;
      }
      check_arg(op.type() == "momentum", "dgc: '", op.in("param").front(), "' is updated by ",
                op.type(), "; dgc corrects the momentum of its gradients, so it needs ",
                "Momentum. Use paddle.optimizer.Momentum, or switch dgc off");
      check_arg(!op.has_in("scale"),
                "dgc: gradients are clipped by their global norm, but workers know only their own ",
                "gradients. Use ClipGradByNorm, or switch dgc off");
      for (size_t i = 0; i < op.in("grad").size(); ++i) {
        const auto change = changed_by.find(op.in("grad")[i]);
        check_arg(change == changed_by.end() || change->second == "clip_by_norm",
                  "dgc: the gradient of '", op.in("param")[i], "' goes through ",
                  change == changed_by.end() ? "" : change->second, "; only ClipGradByNorm can be ",
                  "done by each worker for itself. Use it, or switch dgc off");
      }
    }
  }

  void on_gradients(Programs& programs, const StrategyContext& context) const override {
    const ir::Training training = ir::training_of(programs.main, name());
    std::vector<Gradient> gradients;
    for (const ir::Training::Parameter& p : training.parameters)
      if (is_compressed(programs.main, p))
        gradients.push_back(gradient_of(programs.main, p, DType::kF32));
    if (context.mesh.rank() == 0) say(gradients.size(), training.parameters.size());
    if (gradients.empty()) return;
    ir::Rewriter rw(programs.main);
    agree_on_ready(rw);  // u and v must not change on some workers only
    if (programs.main.find(ir::kStepVar) == nullptr)
      add_state(programs, std::string(ir::kStepVar), {DType::kI64, {1}});
    for (const auto& bucket : buckets_of(gradients, context.options))
      compress(programs, bucket, context);
  }

  void on_updates(Programs& programs, const StrategyContext&) const override {
    std::map<std::string, Update> updates;  // by the output of dgc
    for (const ir::Op& op : programs.main.ops())
      if (op.type() == "dgc")
        for (size_t i = 0; i < op.in("param").size(); ++i)
          updates.emplace(op.out("out")[i],
                          update_of(programs, op.in("param")[i], op.out("out")[i]));
    ir::Rewriter rw(programs.main);
    for (Position op = rw.begin(); op != rw.end(); ++op)
      if (op->type() == "dgc") take_over(rw, op, updates);
    for (Position op = rw.begin(); op != rw.end(); ++op)
      if (op->type() == "dgc") use_velocities(programs, rw, op, updates);
    for (const auto& [compressed, update] : updates) descend(programs, update);
  }

  void check(Phase phase, const ir::Program& main, const StrategyContext&) const override {
    const ir::Uniform uniform(main, kDataAxis);
    for (const ir::Training::Parameter& p : main.training().parameters) {
      if (main.find(v_of(p.name)) == nullptr) continue;
      FLEETX_CHECK(uniform.holds(p.gradient), "'", p.gradient, "' differs between the workers");
      if (phase != Phase::kUpdates) continue;
      for (const ir::Op& op : main.ops())
        FLEETX_CHECK(!op.def->updates_parameters || !op.writes(p.name) || op.type() == "sgd",
                     ir::describe(op), "applies momentum to '", p.name, "' a second time");
    }
  }

 private:
  static void say(size_t compressed, size_t all) {
    if (compressed == 0)
      return log::warning("dgc", "nothing is compressed: none of the ", all, " parameters is f32, ",
                          "has a dense gradient and ", kLeastElements,
                          " elements or more, so all are averaged as without dgc; switch it off");
    log::info("dgc", compressed, " of ", all, " gradients are compressed; the others are small, ",
              "sparse or not f32");
  }

  static void compress(Programs& programs, const std::vector<Gradient>& bucket,
                       const StrategyContext& context) {
    ir::Rewriter rw(programs.main);
    const std::string ready = rw.program().training().ready;
    Names params, grads, us, vs, outs;
    for (const Gradient& g : bucket) {
      params.push_back(g.param);
      grads.push_back(g.name);
      us.push_back(u_of(g.param));
      vs.push_back(v_of(g.param));
      outs.push_back(rw.fresh_name(g.name + kSuffix));
      const ir::TensorType type = rw.program().var(g.param).type;
      const auto own = ir::Placement::per_rank(kDataAxis, ir::Placement::Resize::kAverage);
      add_state(programs, us.back(), type, 0.0, own);
      add_state(programs, vs.back(), type, 0.0, own);
      set_stand_in(programs, vs.back(), "");
    }
    auto sparsity = context.options.at("sparsity").as<ir::Floats>();
    if (sparsity.empty()) sparsity = {0.999};
    rw.insert(behind(rw, grads, ready),
              {.type = "dgc",
               .inputs = {{"param", params},
                          {"grad", grads},
                          {"u", us},
                          {"v", vs},
                          {"step", {std::string(ir::kStepVar)}}},
               .outputs = {{"out", outs}, {"u_out", us}, {"v_out", vs}},
               .attrs = {{"group", kDataAxis},
                         {"ranks", context.mesh.size(kDataAxis)},
                         {"rampup_begin_step", context.options.at("rampup_begin_step")},
                         {"rampup_step", context.options.at("rampup_step")},
                         {"sparsity", sparsity}},
               .role = ir::Role::kBackward,
               .guard = ready});
    for (size_t i = 0; i < bucket.size(); ++i) rw.set_gradient(params[i], outs[i]);
  }

  static Update update_of(Programs& programs, const std::string& parameter,
                          const std::string& compressed) {
    ir::Rewriter rw(programs.main);
    Update update{parameter, rw.update_of(parameter), 0, rw.end(), compressed};
    const std::string& gradient = update.op->in("grad").front();
    if (gradient == compressed) return update;
    update.clip = rw.last_writer(gradient);
    FLEETX_CHECK(update.clip->type() == "clip_by_norm", "'", parameter, "' is not clipped by norm");
    update.max_norm = update.clip->attr<double>("max_norm");
    return update;
  }

  // What momentum and clipping would do, the compressing op does.
  static void take_over(ir::Rewriter& rw, Position op,
                        const std::map<std::string, Update>& updates) {
    const auto first = [](const ir::Op& update, const char* list) {
      const auto values = update.attr<ir::Floats>(list);
      return values.empty() ? 0.0 : values.front();
    };
    ir::Floats l1, l2, max_norm;
    for (const std::string& compressed : op->out("out")) {
      const Update& update = updates.at(compressed);
      l1.push_back(first(*update.op, "l1"));
      l2.push_back(first(*update.op, "l2"));
      max_norm.push_back(update.max_norm);
      rw.set_attr(op, "mu", update.op->attrs.at("mu"));
      rw.set_attr(op, "nesterov", update.op->attrs.at("nesterov"));
    }
    rw.set_attr(op, "l1", l1);
    rw.set_attr(op, "l2", l2);
    rw.set_attr(op, "max_norm", max_norm);
  }

  // u is the velocity of the optimizer, and has its name: what one worker has saved, which does
  // without dgc, can be resumed by several, and the other way round.
  static void use_velocities(Programs& programs, ir::Rewriter& rw, Position op,
                             const std::map<std::string, Update>& updates) {
    Names velocities;
    for (const std::string& compressed : op->out("out"))
      velocities.push_back(updates.at(compressed).op->in("velocity").front());
    const Names us = op->in("u");
    rw.set_inputs(op, "u", velocities);
    rw.set_outputs(op, "u_out", velocities);
    for (size_t i = 0; i < us.size(); ++i) {
      place_state(programs, velocities[i], rw.program().var(us[i]).placement);
      rw.erase_var(us[i]);
      ir::Rewriter startup(programs.startup);
      startup.erase(startup.last_writer(us[i]));
      startup.erase_var(us[i]);
    }
  }

  // The update becomes gradient descent; the momentum is in the compressing op.
  static void descend(Programs& programs, const Update& update) {
    ir::Rewriter rw(programs.main);
    rw.insert(update.op, {.type = "sgd",
                          .inputs = {{"param", {update.parameter}},
                                     {"grad", {update.compressed}},
                                     {"lr", update.op->in("lr")}},
                          .outputs = {{"param_out", {update.parameter}}},
                          .attrs = {{"lr_factors", update.op->attrs.at("lr_factors")}},
                          .role = ir::Role::kUpdate,
                          .name = update.op->name,
                          .guard = update.op->guard,
                          .loc = update.op->loc});
    rw.erase(update.op);
    rw.set_gradient(update.parameter, update.compressed);
    if (update.clip != rw.end()) {
      const std::string clipped = update.clip->out("out").front();
      rw.erase(update.clip);
      rw.erase_var(clipped);
    }
  }
};

FLEETX_STRATEGY(dgc, Dgc);

}  // namespace
}  // namespace fleetx::strategies
