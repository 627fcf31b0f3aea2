// amp: most of forward and backward computes in 16 bits. Parameters, their gradients when they are
// applied, and the optimizer stay f32. The loss is multiplied by a scale, so that small gradients
// do not become 0 in 16 bits; a step whose gradients are not finite is left out, and the scale
// follows.
//
//   before                                after
//     h = fc(x, w, b)                       x@BF16 = cast(x) {dtype="bf16"}
//                                           h = fc(x@BF16, w, b)                   h is bf16
//                                           h@F32 = cast(h) {dtype="f32"}
//     loss = mean(h)                        loss = mean(h@F32)
//     backward:                             backward:
//     dloss = fill() {value=1.0}            dloss = fill() {value=1.0}
//                                           dloss@SCALED = elementwise_mul(dloss, loss_scaling_0)
//     ...                                   ...
//     _, dw, db = fc_grad(x, w, ..., dh)    _, dw@SCALED, db@SCALED = fc_grad(x@BF16, w, ..., dh)
//                                           dw@BF16, f = round_checked(dw@SCALED)
//                                           g = check_finite([db@SCALED])
//                                           dw = unscale(dw@BF16, loss_scaling_0)
//                                           db = unscale(db@SCALED, loss_scaling_0)
//                                           amp_finite_0, first = all_true([f, g, ...])
//     update:                               update:
//     [w] = sgd([w], [dw], lr)              [w] = sgd([w], [dw], lr) if amp_finite_0
//                                           loss_scaling_0, ... = update_loss_scaling(...)
//
// Which ops: amp_lists.h; an op whose kernels have no 16-bit form computes in f32, and the log says
// so. Several workers average gradients as soon as they are made, so there each is unscaled and
// checked in one sweep where it is made, which also takes a 16-bit gradient to f32. With one worker
// the updates themselves divide by the scale, unless something else reads the gradients (clipping,
// merging); then no sweep over them is added but the check, where they are made. No gradient can be
// applied before all are checked, so all are in memory at once: those of large weights that come
// from 16-bit numbers wait as bf16, which has the range of f32 and the precision of what they are
// made of. (Without amp each is applied, and gone, as soon as it is made.) Workers apply a step or
// leave it out together (data_parallel agrees on it); so do the ranks that divide layers
// (tensor_parallel), who are one worker: they agree on amp_finite_0 at once, before anybody reads
// it. Communicates one number per step.
#include <algorithm>
#include <cmath>
#include <map>
#include <set>

#include "fleetx/base/cpu.h"
#include "fleetx/base/log.h"
#include "fleetx/base/names.h"
#include "fleetx/ir/builder.h"
#include "fleetx/ir/divided.h"
#include "fleetx/ir/rewriter.h"
#include "fleetx/strategies/amp_casts.h"
#include "fleetx/strategies/choices.h"
#include "fleetx/strategies/data_parallel.h"
#include "fleetx/strategies/named_var.h"
#include "fleetx/strategies/owners.h"
#include "fleetx/strategies/pipeline_unroll.h"
#include "fleetx/strategies/state.h"
#include "fleetx/strategies/strategy.h"

namespace fleetx::strategies {
namespace {

using ir::Role;
using Position = ir::Rewriter::Position;

constexpr const char* kLayer = "amp";  // what its ops are called
// State, with the names of the original.
constexpr const char* kScaling = "loss_scaling_0";
constexpr const char* kGoodSteps = "num_good_steps_0";
constexpr const char* kBadSteps = "num_bad_steps_0";
// Whether all gradients of this rank are finite; the place of the first that is not.
constexpr const char* kFinite = "amp_finite_0";
constexpr const char* kFirstBad = "amp_first_bad_0";
constexpr const char* kInverse = "amp_inverse_0";  // of kScaling

std::string text_of(const OpCounts& counts) {
  std::vector<std::string> parts;
  for (const auto& [op, count] : counts) parts.push_back(str(op, " x", count));
  return join(parts, ", ");
}

// What this CPU does with 16-bit numbers.
std::string_view hardware_for(DType half) {
  const cpu::Isa isa = cpu::best_isa();
  if (half == bf16 && isa >= cpu::Isa::kAmx) return "this CPU multiplies it in tiles (AMX)";
  if (half == bf16 && isa >= cpu::Isa::kAvx512Bf16) return "this CPU multiplies it (AVX512_BF16)";
  return "this CPU has no instructions for it: it is stored so and computed in f32";
}

int data_workers(const Mesh& mesh) { return mesh.has(kDataAxis) ? mesh.size(kDataAxis) : 1; }

class Amp final : public Strategy {
 public:
  std::string_view name() const override { return "amp"; }
  Traits traits() const override {
    return {.acts = {{Phase::kForward, {"tensor_parallel"}},
                     {Phase::kGradients, {"recompute", "pipeline"}},
                     {Phase::kUpdates}}};
  }
  ir::Attrs options() const override {
    return {{"dtype", "bfloat16"},
            {"init_loss_scaling", 32768.0},
            {"incr_every_n_steps", 1000},
            {"decr_every_n_nan_or_inf", 2},
            {"incr_ratio", 2.0},
            {"decr_ratio", 0.8},
            {"use_dynamic_loss_scaling", true},
            {"custom_white_list", ir::Strings{}},
            {"custom_black_list", ir::Strings{}},
            {"custom_black_varnames", ir::Strings{}},
            {"use_pure_fp16", false},
            {"use_fp16_guard", true},
            {"fp16_guard_varnames", ir::Strings{}},
            {"multi_precision", false},
            {"use_optimizer_fp16", false}};
  }

  std::optional<ir::Attrs> requested(const Settings& s, const Mesh&) const override {
    if (!s.on("amp")) return std::nullopt;
    ir::Attrs out;
    for (const auto& [option, fallback] : options())
      out.emplace(option, s.get(str("amp_configs.", option)));
    return out;
  }

  void validate(const ir::Program& main, const StrategyContext& context) const override {
    const ir::Attrs& o = context.options;
    (void)half_of(o);
    (void)lists_of(o);
    const auto number = [&](const char* option) { return o.at(option).as<double>(); };
    check_arg(std::isfinite(number("init_loss_scaling")) && number("init_loss_scaling") > 0,
              "amp: init_loss_scaling is ", number("init_loss_scaling"),
              "; must be positive and finite");
    check_arg(std::isfinite(number("incr_ratio")) && number("incr_ratio") > 1,
              "amp: incr_ratio is ", number("incr_ratio"),
              "; must be greater than 1, as the scale grows by it");
    check_arg(number("decr_ratio") > 0 && number("decr_ratio") < 1, "amp: decr_ratio is ",
              number("decr_ratio"), "; must be between 0 and 1, as the scale shrinks by it");
    for (const char* option : {"incr_every_n_steps", "decr_every_n_nan_or_inf"})
      check_arg(o.at(option).as<int64_t>() > 0, "amp: ", option, " is ", o.at(option),
                "; must be positive");
    for (const char* option : {"custom_black_varnames", "fp16_guard_varnames"})
      for (const std::string& var : o.at(option).as<ir::Strings>())
        (void)named_var(main, var, str("amp_configs.", option),
                        "name variables of the network, as print(program) shows them");
    const bool pure = o.at("use_pure_fp16").as<bool>();
    check_arg(!o.at("use_optimizer_fp16").as<bool>() || half_of(o) == bf16,
              "amp: use_optimizer_fp16 with the dtype float16: the squares of gradients that "
              "optimizers keep are too small for it; use the dtype bfloat16, or leave it off");
    check_arg(!pure || !o.at("use_fp16_guard").as<bool>() ||
                  !o.at("fp16_guard_varnames").as<ir::Strings>().empty(),
              "amp: use_fp16_guard is on, but no op stands inside a guard: write them under "
              "paddle.static.amp.fp16_guard(), or set use_fp16_guard to false for all ops");
    for (const ir::Op& op : main.ops())
      check_arg(op.role != Role::kBackward, "amp: this program already has a backward part (op ",
                op.type(),
                "): minimize one loss, or add the losses up first; losses that are trained one "
                "after the other need a program each");
    for (const char* taken : {kScaling, kGoodSteps, kBadSteps, kFinite, kFirstBad, kInverse})
      check_arg(main.find(taken) == nullptr, "amp: the program has a variable '", taken,
                "', which is the name of one of amp's; call it otherwise");
    for (const ir::VarInfo* p : main.parameters())
      check_arg(p->type.dtype == f32 || p->stop_gradient, "amp: the parameter '", p->name, "' is ",
                p->type, "; amp trains f32 parameters");
  }

  void on_forward(Programs& programs, const StrategyContext& context) const override {
    const AmpLists lists = lists_of(context.options);
    const auto black = context.options.at("custom_black_varnames").as<ir::Strings>();
    const DType half = half_of(context.options);
    const bool pure = context.options.at("use_pure_fp16").as<bool>();
    const bool masters = context.options.at("multi_precision").as<bool>();
    const bool guard = pure && context.options.at("use_fp16_guard").as<bool>();
    const auto inside =
        guard ? context.options.at("fp16_guard_varnames").as<ir::Strings>() : ir::Strings{};
    const AmpCastReport report =
        insert_casts(programs.main, {.half = half,
                                     .lists = lists,
                                     .black_vars = {black.begin(), black.end()},
                                     .pure = pure,
                                     .guarded = {inside.begin(), inside.end()},
                                     .half_parameters = pure && !masters});
    round_first_values(programs.startup, report.parameters, half);
    if (context.mesh.rank() != 0) return;
    log::info(kLayer, "the 16-bit type is ", half, "; ", hardware_for(half),
              ". Compute in it: ", report.half.empty() ? "none" : text_of(report.half), "; ",
              report.casts, " casts",
              report.no_kernel.empty() ? ""
                                       : str(". In f32, because they have no 16-bit kernel: ",
                                             text_of(report.no_kernel)));
  }

  void on_gradients(Programs& programs, const StrategyContext& context) const override {
    const ir::Training training = ir::training_of(programs.main, name());
    FLEETX_CHECK(training.ready.empty(), "a strategy before amp leaves steps out");
    check_arg(programs.main.var(training.loss).type.dtype == f32, "amp: the loss '", training.loss,
              "' is ", programs.main.var(training.loss).type, "; it must be f32");
    ir::Rewriter rw(programs.main);
    add_state(programs, kScaling, {f32, {1}}, context.options.at("init_loss_scaling").as<double>());
    add_state(programs, kGoodSteps, {i32, {1}});
    add_state(programs, kBadSteps, {i32, {1}});
    scale_seed(rw, training.seed);
    const bool at_once = data_workers(context.mesh) > 1;
    ir::Names flags;
    for (const ir::Training::Parameter& p : training.parameters)
      if (is_here(programs.main, p)) flags.push_back(unscale(rw, p, at_once));
    sort_by_time(rw, flags);
    std::vector<const char*> together;  // stages, and ranks that divide layers, are one worker
    for (const char* axis : {kStageAxis, ir::kModelAxis})
      if (context.mesh.has(axis) && context.mesh.size(axis) > 1) together.push_back(axis);
    std::string own = together.empty() ? kFinite : rw.fresh_name(str(kFinite, "@STAGE"));
    rw.append({.type = "all_true",
               .inputs = {{"xs", flags}},
               .outputs = {{"out", {own}}, {"first", {kFirstBad}}},
               .role = Role::kBackward,
               .name = kLayer});
    for (const char* axis : together) {
      const std::string all =
          axis == together.back() ? kFinite : rw.fresh_name(str(kFinite, "@STAGES"));
      agree(rw, own, all, axis, Role::kBackward);
      own = all;
    }
    rw.edit_training().ready = kFinite;
  }

  void on_updates(Programs& programs, const StrategyContext& context) const override {
    const ir::Attrs& o = context.options;
    ir::Rewriter rw(programs.main);
    if (o.at("use_optimizer_fp16").as<bool>()) halve_optimizer_state(programs, half_of(o));
    unscale_in_updates(rw);
    const std::string flag = flag_of_step(rw, context.mesh);
    rw.append({.type = "update_loss_scaling",
               .inputs = {{"finite", {flag}},
                          {"scale", {kScaling}},
                          {"good", {kGoodSteps}},
                          {"bad", {kBadSteps}},
                          {"first", {kFirstBad}},
                          {"loss", {programs.main.training().loss}}},
               .outputs = {{"scale_out", {kScaling}},
                           {"good_out", {kGoodSteps}},
                           {"bad_out", {kBadSteps}}},
               .attrs = {{"dynamic", o.at("use_dynamic_loss_scaling")},
                         {"incr_every_n_steps", o.at("incr_every_n_steps")},
                         {"decr_every_n_nan_or_inf", o.at("decr_every_n_nan_or_inf")},
                         {"incr_ratio", o.at("incr_ratio")},
                         {"decr_ratio", o.at("decr_ratio")},
                         {"makers", makers_of_gradients(rw)}},
               .role = Role::kUpdate,
               .name = kLayer});
  }

  // Gradients are unscaled once, and steps are left out.
  void check(Phase phase, const ir::Program& main, const StrategyContext&) const override {
    if (phase != Phase::kGradients) return;
    FLEETX_CHECK(main.training().ready == kFinite, "no flag says which gradients are finite");
    for (const ir::Training::Parameter& p : main.training().parameters) {
      if (!is_here(main, p)) continue;
      int times = 0;
      for (const ir::Op& op : main.ops()) times += op.type() == "unscale" && op.writes(p.gradient);
      FLEETX_CHECK(times == 1 && main.var(p.gradient).type.dtype == f32, "the gradient '",
                   p.gradient, "' of '", p.name, "' is unscaled ", times, " times");
    }
  }

 private:
  // Not a parameter of another stage of a pipeline.
  static bool is_here(const ir::Program& main, const ir::Training::Parameter& p) {
    return !other_stage_of(main, p);
  }

  static DType half_of(const ir::Attrs& options) {
    const auto name = options.at("dtype").as<std::string>();
    const auto dtype = dtype_from_name(name);
    check_arg(dtype == bf16 || dtype == f16, "amp: dtype is '", name,
              "'; must be 'bfloat16' or 'float16'");
    return *dtype;
  }

  static AmpLists lists_of(const ir::Attrs& options) {
    return {options.at("custom_white_list").as<ir::Strings>(),
            options.at("custom_black_list").as<ir::Strings>()};
  }

  // Multiplies the seed after the op that writes it; other strategies may still replace that op.
  static void scale_seed(ir::Rewriter& rw, const std::string& seed) {
    const std::string scaled = rw.fresh_name(seed + "@SCALED");
    const Position op =
        rw.insert(std::next(rw.last_writer(seed)), {.type = "elementwise_mul",
                                                    .inputs = {{"x", {seed}}, {"y", {kScaling}}},
                                                    .outputs = {{"out", {scaled}}},
                                                    .role = Role::kBackward,
                                                    .name = kLayer});
    rw.replace_later_uses(std::next(op), seed, scaled);
  }

  // The gradient keeps its name; that of a 16-bit parameter, which is as wide, gets an f32 beside
  // it. Returns the flag that says whether it is finite.
  static std::string unscale(ir::Rewriter& rw, const ir::Training::Parameter& parameter,
                             bool at_once) {
    std::string gradient = parameter.gradient, scaled = gradient;
    Position behind = last_use(rw, gradient);
    bool waits_in_half = false;
    if (rw.program().var(gradient).type.dtype != f32) {
      gradient = rw.fresh_name(gradient + "@F32");
    } else if (is_cast_from_half(rw.program(), *behind, gradient)) {
      // What autograd has made of a 16-bit gradient; the same sweep does it.
      scaled = behind->in("x").front();
      rw.erase(behind);
      behind = last_use(rw, scaled);
    } else if (const std::string sum = add_rows_in_half(rw, behind, gradient); !sum.empty()) {
      scaled = sum;
    } else if (!at_once) {
      waits_in_half = is_weight_from_half(rw, gradient);
      scaled = rename(rw, gradient, rw.fresh_name(gradient + "@SCALED"));
    }
    const std::string flag = rw.fresh_name(gradient + "@FINITE");
    const auto beside = [&](ir::Rewriter::NewOp op) {
      op.role = Role::kBackward;
      op.name = behind->name;
      op.loc = behind->loc;
      return op;
    };
    if (waits_in_half) {
      const std::string half = rw.fresh_name(gradient + "@BF16");
      rw.insert(std::next(behind), beside({.type = "round_checked",
                                           .inputs = {{"x", {scaled}}},
                                           .outputs = {{"out", {half}}, {"finite", {flag}}},
                                           .attrs = {{"dtype", bf16}}}));
      scaled = half;
    } else if (!at_once) {
      rw.insert(std::next(behind), beside({.type = "check_finite",
                                           .inputs = {{"xs", {scaled}}},
                                           .outputs = {{"out", {flag}}}}));
    }
    rw.insert(at_once ? std::next(behind) : rw.end(),
              beside({.type = "unscale",
                      .inputs = {{"x", {scaled}}, {"scale", {kScaling}}},
                      .outputs = {{"out", {gradient}},
                                  {"finite", at_once ? ir::Names{flag} : ir::Names{}}}}));
    rw.set_gradient(parameter.name, gradient);
    return flag;
  }

  // In the order of backward: what is not finite makes all that comes after it so.
  static void sort_by_time(ir::Rewriter& rw, ir::Names& flags) {
    std::map<std::string, int64_t> made;
    int64_t position = 0;
    for (Position op = rw.begin(); op != rw.end(); ++op, ++position)
      for (const ir::Names& names : op->outputs)
        for (const std::string& name : names) made[name] = position;
    std::stable_sort(flags.begin(), flags.end(),
                     [&](const auto& a, const auto& b) { return made.at(a) < made.at(b); });
  }

  // The ops whose results the flags are about, and those of backward that lead there and to no
  // gradient before: where a flag is the first that is false, one of them has overflowed.
  static ir::Strings makers_of_gradients(ir::Rewriter& rw) {
    std::map<std::string, const ir::Op*> writers;
    for (const ir::Op& op : rw.program().ops())
      if (op.role == Role::kBackward && op.name != kLayer)
        for (const ir::Names& names : op.outputs)
          for (const std::string& name : names) writers.emplace(name, &op);
    ir::Strings makers;
    std::set<const ir::Op*> seen;
    for (const std::string& flag : first_writer(rw, kFirstBad)->in("xs")) {
      const std::string& gradient = first_writer(rw, flag)->inputs.front().front();
      const ir::Op& op = *first_writer(rw, gradient);
      std::vector<std::string> before;
      std::vector<const ir::Op*> next = {&op};
      while (!next.empty()) {
        const ir::Op& one = *next.back();
        next.pop_back();
        if (!seen.insert(&one).second) continue;
        if (&one != &op && one.type() != "cast") before.push_back(called(one));
        for (const ir::Names& names : one.inputs)
          for (const std::string& name : names)
            if (const auto it = writers.find(name); it != writers.end()) next.push_back(it->second);
      }
      makers.push_back(
          str(called(op), ", which makes '", gradient, "'",
              before.empty() ? "" : ", or one that leads there: ", join(before, ", ")));
    }
    return makers;
  }

  static std::string called(const ir::Op& op) {
    return str("'", op.type(), "'", op.name.empty() ? "" : str(" of '", op.name, "'"));
  }

  static bool is_cast_from_half(const ir::Program& main, const ir::Op& op, const std::string& to) {
    return op.type() == "cast" && op.writes(to) && is_half(main, op.in("x").front());
  }
  static bool is_half(const ir::Program& main, const std::string& var) {
    return size_of(main.var(var).type.dtype) == 2;
  }

  // A table that is looked up and also multiplied with has rows to add to a gradient of 16 bits,
  // which autograd has cast to f32 long before:
  //   c = cast(h), g = sum([c, rows])  ->  g@BF16 = sum([h, rows])
  // Returns the name of that sum, "" where `op` is not one.
  static std::string add_rows_in_half(ir::Rewriter& rw, Position op, const std::string& gradient) {
    const ir::Program& main = rw.program();
    if (op->type() != "sum" || !op->writes(gradient)) return "";
    ir::Names dense, rows;
    for (const std::string& x : op->in("xs"))
      (main.var(x).type.kind == ir::VarKind::kDense ? dense : rows).push_back(x);
    if (dense.size() != 1 || rows.empty()) return "";
    const Position cast = rw.last_writer(dense[0]);
    if (cast == rw.end() || !is_cast_from_half(main, *cast, dense[0]) ||
        last_use(rw, dense[0]) != op)
      return "";
    ir::Names terms = {cast->in("x").front()};
    const bool alone = std::none_of(std::next(cast), op, [&](const ir::Op& other) {
      return other.reads(dense[0]) || other.writes(terms[0]);
    });
    if (!alone) return "";
    terms.insert(terms.end(), rows.begin(), rows.end());
    rw.erase(cast);
    rw.set_inputs(op, "xs", terms);
    const std::string half = main.var(terms[0]).type.dtype == bf16 ? "@BF16" : "@F16";
    const std::string sum = rename(rw, gradient, rw.fresh_name(gradient + half));
    rw.edit_var(sum).type.dtype = main.var(terms[0]).type.dtype;
    return sum;
  }

  // Matrices and filters that are large enough for their memory to be worth a rounding.
  static bool is_weight_from_half(ir::Rewriter& rw, const std::string& gradient) {
    constexpr int64_t kLarge = 1 << 16;  // elements
    const ir::TensorType& type = rw.program().var(gradient).type;
    return type.kind == ir::VarKind::kDense && type.shape.rank() >= 2 &&
           type.shape.numel() >= kLarge && is_from_half(rw, gradient);
  }
  static bool is_from_half(ir::Rewriter& rw, const std::string& var) {
    const Position op = rw.last_writer(var);
    if (op == rw.end()) return false;
    const bool adds_up = op->type() == "sum";
    for (const ir::Names& names : op->inputs)
      for (const std::string& name : names)
        if (is_half(rw.program(), name) || (adds_up && is_from_half(rw, name))) return true;
    return false;
  }

  // Renames a variable in all ops so far, so that a new op can write the old name.
  static std::string rename(ir::Rewriter& rw, const std::string& from, const std::string& to) {
    ir::VarInfo info = rw.program().var(from);
    info.name = to;
    rw.add_var(info);
    for (Position op = rw.begin(); op != rw.end(); ++op) {
      if (op->reads(from)) rw.rename_inputs(op, from, to);
      if (!op->writes(from)) continue;
      for (size_t s = 0; s < op->outputs.size(); ++s) {
        ir::Names names = op->outputs[s];
        std::replace(names.begin(), names.end(), from, to);
        rw.set_outputs(op, op->def->outputs[s].name, names);
      }
    }
    return to;
  }

  // An update multiplies gradients by a factor, where it has one: where nobody else reads an
  // unscaled gradient, its update does the division, and the sweep is dead code.
  static void unscale_in_updates(ir::Rewriter& rw) {
    std::map<std::string, std::string> scaled;  // by unscaled gradient, where it has one reader
    for (Position op = rw.begin(); op != rw.end(); ++op)
      if (op->type() == "unscale" && !op->has_out("finite"))
        scaled.emplace(op->out("out").front(), op->in("x").front());
    std::map<std::string, int> readers;
    for (Position op = rw.begin(); op != rw.end(); ++op)
      for (const ir::Names& names : op->inputs)
        for (const std::string& name : names) ++readers[name];
    std::string inverse;
    for (Position op = rw.first_of(Role::kUpdate); op != rw.end(); ++op) {
      if (!op->def->updates_parameters || op->has_in("scale")) continue;
      ir::Names gradients = op->in("grad");
      const bool alone = std::all_of(gradients.begin(), gradients.end(), [&](const auto& g) {
        return scaled.contains(g) && readers[g] == 1;
      });
      if (!alone) continue;
      if (inverse.empty()) {
        inverse = kInverse;
        rw.insert(rw.first_of(Role::kUpdate), {.type = "reciprocal",
                                               .inputs = {{"x", {kScaling}}},
                                               .outputs = {{"out", {inverse}}},
                                               .role = Role::kUpdate,
                                               .name = kLayer});
      }
      for (std::string& g : gradients) g = scaled.at(g);
      for (size_t i = 0; i < gradients.size(); ++i)
        rw.set_gradient(op->in("param")[i], gradients[i]);
      rw.set_inputs(op, "grad", gradients);
      rw.set_inputs(op, "scale", {inverse});
    }
  }

  // What the updates keep beside the parameters; counters of one number stay.
  static void halve_optimizer_state(Programs& programs, DType half) {
    std::set<std::string> states;
    for (const ir::Op& op : programs.main.ops())
      if (op.def->updates_parameters)
        for (const ir::Names& names : op.outputs) states.insert(names.begin(), names.end());
    ir::Rewriter main(programs.main), startup(programs.startup);
    for (const std::string& name : states) {
      const ir::VarInfo& v = programs.main.var(name);
      if (v.is_parameter || v.type.dtype != f32 || v.type.shape.numel() == 1) continue;
      main.edit_var(name).type.dtype = half;
      if (programs.startup.find(name) == nullptr) continue;
      startup.edit_var(name).type.dtype = half;
      startup.set_attr(startup.last_writer(name), "dtype", half);
    }
  }

  static Position last_use(ir::Rewriter& rw, const std::string& var) {
    Position op = rw.end();
    do --op;
    while (!op->writes(var) && !op->reads(var));
    return op;
  }

  // Whether the gradients of this step, of this batch, were finite: what the workers agreed on,
  // where they did. Where updates come every few batches, the workers agree on each batch here, so
  // that they keep one scale. Workers that skip by themselves have scales of their own, which
  // localsgd brings together.
  static std::string flag_of_step(ir::Rewriter& rw, const Mesh& mesh) {
    const std::string ready = rw.program().training().ready;
    if (ready != kFinite && follows(rw, ready)) return ready;
    if (ready == kFinite || data_workers(mesh) == 1) return kFinite;
    const std::string all = rw.fresh_name(str(kFinite, "@ALL"));
    agree(rw, kFinite, all, kDataAxis, Role::kUpdate);
    return all;
  }

  // `all` is whether `flag` is true on all ranks of the group.
  static void agree(ir::Rewriter& rw, const std::string& flag, const std::string& all,
                    const char* group, Role role) {
    const std::string own = rw.fresh_name(flag + "@I32");
    rw.append({.type = "cast",
               .inputs = {{"x", {flag}}},
               .outputs = {{"out", {own}}},
               .attrs = {{"dtype", i32}},
               .role = role,
               .name = kLayer});
    rw.append({.type = "all_reduce",
               .inputs = {{"xs", {own}}},
               .outputs = {{"out", {own}}},
               .attrs = {{"group", group}, {"op", "min"}},
               .role = role,
               .name = kLayer});
    rw.append({.type = "cast",
               .inputs = {{"x", {own}}},
               .outputs = {{"out", {all}}},
               .attrs = {{"dtype", boolean}},
               .role = role,
               .name = kLayer});
  }

  // Whether `flag` is kFinite of all workers: only casts and reductions stand between them.
  static bool follows(ir::Rewriter& rw, std::string flag) {
    while (flag != kFinite) {
      const Position op = first_writer(rw, flag);
      if (op == rw.end() || (op->type() != "cast" && op->type() != "all_reduce")) return false;
      flag = op->inputs.front().front();
    }
    return true;
  }

  static Position first_writer(ir::Rewriter& rw, const std::string& var) {
    return std::find_if(rw.begin(), rw.end(), [&](const ir::Op& op) { return op.writes(var); });
  }
};

FLEETX_STRATEGY(amp, Amp);

std::vector<Choice> choices(const Mesh&) { return {{"amp (bfloat16)", {{"amp", true}}}}; }
FLEETX_CHOICES(amp, Effect::kRounding, choices);

}  // namespace
}  // namespace fleetx::strategies
