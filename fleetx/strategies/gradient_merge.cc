// gradient_merge: the gradients of k batches are added up, and applied once: what one batch of k
// times the size would do, in the memory of a small one.
//
//   before                           after (k_steps=4, avg=true)
//     backward:                        backward:
//                                      last = fill() {value=3};  none = fill() {value=0}
//                                      due = equal(step, last)
//                                      first = equal(step, none)
//     dw = fc_grad(x, w, dy)           dw = fc_grad(x, w, dy)
//                                      sum = accumulate(sum, dw, first)
//                                      merged = scale(sum) {scale=0.25} if due
//                                      step = increment(step)
//                                      step = fill() {value=0} if due
//     update:                          update:
//     [w] = sgd([w], [dw], lr)         [w] = sgd([w], [merged], lr) if due
//
// The sum is state, `w@GRAD@GradientMerge`, one value per worker (as `step` is, named
// `w@GRAD@GradientMerge@STEP` after the first parameter): a job that is stopped goes on in
// the middle of k batches. Another number of workers gets the mean of the sums, because workers
// average what they merge. Workers communicate once in k batches, under the same guard. Of sparse
// gradients the touched rows are kept (see ops/accumulate.cc), and taken together.
//
// Where batches may be bad (amp: not all gradients are finite), they are left out, and the mean is
// that of the good ones of all workers:
//
//   sum = accumulate(sum, dw, first) if finite;   good = increment(good) if finite
//   all = all_reduce_average(good) if due
//   ready = due and all > 0
//   merged = sum * (1 / all) if ready           the average over workers follows: sum of all / good
//
// A worker without a good batch has the sum of an earlier window still, so it multiplies by 0:
//
//   some = greater_than(good, 0);   factor = cast(some) * (1 / all) if ready
//
// avg=false: k times the mean. Costs memory for one more gradient of everything, and reads and
// writes it once per batch.
#include "fleetx/ir/rewriter.h"
#include "fleetx/strategies/averaging.h"
#include "fleetx/strategies/choices.h"
#include "fleetx/strategies/data_parallel.h"
#include "fleetx/strategies/state.h"
#include "fleetx/strategies/strategy.h"

namespace fleetx::strategies {
namespace {

using ir::Names;
using ir::Role;
using Position = ir::Rewriter::Position;

// Ends of names of state, which begin with that of the first parameter: programs that are trained
// in turn in one scope count their batches each for itself.
constexpr const char* kStep = "@GRAD@GradientMerge@STEP";     // batches since the last update
constexpr const char* kGood = "@GRAD@GradientMerge@GOOD";     // those of them that were good
constexpr const char* kAll = "@GRAD@GradientMerge@ALL_GOOD";  // the mean of kGood over the workers

class Merge {
 public:
  Merge(Programs& programs, const StrategyContext& context)
      : programs_(programs),
        rw_(programs.main),
        k_(context.options.at("k_steps").as<int64_t>()),
        total_(context.options.at("avg").as<bool>() ? 1.0 : static_cast<double>(k_)),
        good_(programs.main.training().ready),
        workers_(context.mesh.has(kDataAxis) ? context.mesh.size(kDataAxis) : 1),
        asks_others_(workers_ > 1 && !context.options.at("local").as<bool>()) {
    if (workers_ > 1) own_ = ir::Placement::per_rank(kDataAxis, ir::Placement::Resize::kAverage);
  }

  void run() {
    const std::vector<ir::Training::Parameter> parameters = rw_.program().training().parameters;
    step_ = parameters.front().name + kStep;
    counted_ = parameters.front().name + kGood;
    all_ = parameters.front().name + kAll;
    begin_window();
    for (const ir::Training::Parameter& p : parameters) accumulate(p);
    if (!good_.empty()) count_good();
    for (const ir::Training::Parameter& p : parameters) take(p);
    end_window();
    rw_.edit_training().ready = ready_;
  }

 private:
  Position insert(Position place, const std::string& type,
                  std::vector<std::pair<std::string, Names>> inputs,
                  std::vector<std::pair<std::string, Names>> outputs, ir::Attrs attrs = {},
                  const std::string& guard = "") {
    return rw_.insert(place, {.type = type,
                              .inputs = std::move(inputs),
                              .outputs = std::move(outputs),
                              .attrs = std::move(attrs),
                              .role = Role::kBackward,
                              .guard = guard});
  }
  std::string constant(Position place, const std::string& name, DType dtype, double value) {
    const std::string var = rw_.fresh_name("gradient_merge_" + name);
    insert(place, "fill", {}, {{"out", {var}}},
           {{"shape", ir::Ints{1}}, {"dtype", dtype}, {"value", value}});
    return var;
  }

  // `before`: its name in older checkpoints.
  void add_count(const std::string& name, DType dtype, const char* before,
                 const ir::Placement& placement = {}) {
    add_state(programs_, name, {dtype, {1}}, 0.0, placement);
    set_stand_in(programs_, name, before);
  }

  // Before backward, so that the gradients of the last batch can be sent as they are made.
  void begin_window() {
    const Position place = rw_.first_of(Role::kBackward);
    add_count(step_, DType::kI64, "gradient_merge_step");
    due_ = ready_ = rw_.fresh_name("gradient_merge_due");
    first_ = rw_.fresh_name("gradient_merge_first");
    const std::string last = constant(place, "last", DType::kI64, static_cast<double>(k_ - 1));
    insert(place, "equal", {{"x", {step_}}, {"y", {last}}}, {{"out", {due_}}});
    if (good_.empty()) {
      const std::string none = constant(place, "none", DType::kI64, 0);
      insert(place, "equal", {{"x", {step_}}, {"y", {none}}}, {{"out", {first_}}});
      return;
    }
    add_count(counted_, DType::kF32, "gradient_merge_good", own_);
    add_count(all_, DType::kF32, "gradient_merge_all_good");
    const std::string none = constant(place, "none", DType::kF32, 0);
    insert(place, "equal", {{"x", {counted_}}, {"y", {none}}}, {{"out", {first_}}});
  }

  bool is_sparse(const ir::Training::Parameter& p) const {
    return rw_.program().var(p.gradient).type.kind == ir::VarKind::kSparseRows;
  }
  static std::string sum_of(const ir::Training::Parameter& p) {
    return p.name + "@GRAD@GradientMerge";
  }
  static std::string rows_of(const ir::Training::Parameter& p) { return sum_of(p) + "@ROWS"; }

  void accumulate(const ir::Training::Parameter& p) {
    const Shape shape = rw_.program().var(p.name).type.shape;
    const std::string sum = sum_of(p);
    add_state(programs_, sum, {DType::kF32, shape}, 0.0, own_);
    const Position place = behind(rw_, {p.gradient, good_});
    if (!is_sparse(p)) {
      insert(place, "accumulate", {{"acc", {sum}}, {"x", {p.gradient}}, {"start", {first_}}},
             {{"acc_out", {sum}}}, {}, good_);
      return;
    }
    const std::string rows = rows_of(p);
    add_state(programs_, rows, {DType::kF32, {shape[0]}}, 0.0, own_);
    insert(place, "accumulate_rows", {{"acc", {sum}}, {"touched", {rows}}, {"x", {p.gradient}}},
           {{"acc_out", {sum}}, {"touched_out", {rows}}}, {}, good_);
  }

  void count_good() {
    insert(rw_.end(), "increment", {{"x", {counted_}}}, {{"out", {counted_}}}, {}, good_);
    insert(rw_.end(), "assign", {{"x", {counted_}}}, {{"out", {all_}}}, {}, due_);
    if (asks_others_)
      insert(rw_.end(), "all_reduce", {{"xs", {all_}}}, {{"out", {all_}}},
             {{"group", kDataAxis}, {"op", "average"}}, due_);
    const std::string none = constant(rw_.end(), "none", DType::kF32, 0);
    const std::string some = rw_.fresh_name("gradient_merge_some");
    insert(rw_.end(), "greater_than", {{"x", {all_}}, {"y", {none}}}, {{"out", {some}}});
    ready_ = rw_.fresh_name("gradient_merge_ready");
    insert(rw_.end(), "logical_and", {{"x", {due_}}, {"y", {some}}}, {{"out", {ready_}}});
    const std::string total = constant(rw_.end(), "total", DType::kF32, total_);
    factor_ = rw_.fresh_name("gradient_merge_factor");
    insert(rw_.end(), "elementwise_div", {{"x", {total}}, {"y", {all_}}}, {{"out", {factor_}}}, {},
           ready_);
    if (asks_others_) leave_out_old_sums(none);
  }
  // Of a worker that had no good batch, while others had.
  void leave_out_old_sums(const std::string& none) {
    const std::string all = factor_, own = rw_.fresh_name("gradient_merge_own");
    const std::string weight = rw_.fresh_name("gradient_merge_weight");
    factor_ = rw_.fresh_name("gradient_merge_own_factor");
    insert(rw_.end(), "greater_than", {{"x", {counted_}}, {"y", {none}}}, {{"out", {own}}});
    insert(rw_.end(), "cast", {{"x", {own}}}, {{"out", {weight}}}, {{"dtype", DType::kF32}});
    insert(rw_.end(), "elementwise_mul", {{"x", {all}}, {"y", {weight}}}, {{"out", {factor_}}}, {},
           ready_);
  }

  void take(const ir::Training::Parameter& p) {
    const std::string sum = sum_of(p), merged = rw_.fresh_name(p.gradient + "@MERGED");
    const double factor = good_.empty() ? total_ / static_cast<double>(k_) : 1.0;
    const Names scale = factor_.empty() ? Names{} : Names{factor_};
    const Position place = behind(rw_, {sum, factor_});
    if (is_sparse(p)) {
      insert(place, "take_rows",
             {{"acc", {sum}}, {"touched", {rows_of(p)}}, {"like", {p.gradient}}, {"scale", scale}},
             {{"out", {merged}}, {"acc_out", {sum}}, {"touched_out", {rows_of(p)}}},
             {{"batches", k_}, {"factor", factor}}, ready_);
    } else if (scale.empty()) {
      insert(place, "scale", {{"x", {sum}}}, {{"out", {merged}}}, {{"scale", factor}}, ready_);
    } else {
      insert(place, "elementwise_mul", {{"x", {sum}}, {"y", scale}}, {{"out", {merged}}}, {},
             ready_);
    }
    rw_.set_gradient(p.name, merged);
  }

  void end_window() {
    insert(rw_.end(), "increment", {{"x", {step_}}}, {{"out", {step_}}});
    const auto zero = [&](const std::string& state, DType dtype) {
      insert(rw_.end(), "fill", {}, {{"out", {state}}},
             {{"shape", ir::Ints{1}}, {"dtype", dtype}, {"value", 0.0}}, due_);
    };
    zero(step_, DType::kI64);
    if (!good_.empty()) zero(counted_, DType::kF32);
  }

  Programs& programs_;
  ir::Rewriter rw_;
  int64_t k_;
  double total_;  // of the weights of all batches
  std::string step_, counted_, all_;
  std::string good_;  // whether the batch of this step counts; "": each does
  int workers_;
  bool asks_others_;
  ir::Placement own_;
  std::string due_, first_, ready_, factor_;
};

class GradientMerge final : public Strategy {
 public:
  std::string_view name() const override { return "gradient_merge"; }
  Traits traits() const override { return {.acts = {{Phase::kGradients, {"recompute", "amp"}}}}; }
  // local: each worker applies gradients of its own, so it counts its own good batches.
  ir::Attrs options() const override { return {{"k_steps", 1}, {"avg", true}, {"local", false}}; }

  std::optional<ir::Attrs> requested(const Settings& s, const Mesh&) const override {
    if (!s.on("gradient_merge")) return std::nullopt;
    return ir::Attrs{{"k_steps", s.get("gradient_merge_configs.k_steps")},
                     {"avg", s.get("gradient_merge_configs.avg")},
                     {"local", s.on("localsgd") || s.on("adaptive_localsgd")}};
  }

  void validate(const ir::Program&, const StrategyContext& context) const override {
    check_arg(k_of(context) >= 1, "gradient_merge: the option 'k_steps' is ", k_of(context),
              "; it is the number of batches per update, so at least 1");
  }

  void on_gradients(Programs& programs, const StrategyContext& context) const override {
    ir::training_of(programs.main, name());
    if (k_of(context) > 1) Merge(programs, context).run();  // one batch merged is that batch
  }

  // Gradients are there only where they are applied.
  void check(Phase, const ir::Program& main, const StrategyContext& context) const override {
    const ir::Training& training = main.training();
    for (const ir::Op& op : main.ops())
      for (const ir::Names& names : op.outputs)
        for (const std::string& var : names)
          FLEETX_CHECK(k_of(context) == 1 || training.find_gradient(var) == nullptr ||
                           op.guard == training.ready,
                       ir::describe(op), "makes '", var, "' in every step");
  }

 private:
  static int64_t k_of(const StrategyContext& context) {
    return context.options.at("k_steps").as<int64_t>();
  }
};

FLEETX_STRATEGY(gradient_merge, GradientMerge);

// Updates see the gradients of more samples, so that other numbers are learned.
std::vector<Choice> choices(const Mesh&) {
  std::vector<Choice> all;
  for (const int64_t k : {2, 4, 8})
    all.push_back({str("gradient_merge of ", k),
                   {{"gradient_merge", true}, {"gradient_merge_configs.k_steps", k}}});
  return all;
}
FLEETX_CHOICES(gradient_merge, Effect::kLearning, choices);

}  // namespace
}  // namespace fleetx::strategies
