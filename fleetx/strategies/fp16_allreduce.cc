// fp16_allreduce: gradients travel between the workers in 16 bits: half the bytes.
//
//   before                               after (2 workers)
//     backward:                            backward:
//     dw2, dh = fc_grad(h, w2, dout)       dw2, dh = fc_grad(h, w2, dout)
//                                          dw2@F16 = cast(dw2) {dtype="f16"}
//                                          [dw2@F16], t1 = all_reduce_start([dw2@F16], @step@)
//     dw1 = fc_grad(x, w1, dh)             dw1 = fc_grad(x, w1, dh)
//                                          ...
//                                          [dw2@F16] = all_reduce_wait([dw2@F16], t1)
//                                          dw2@MEAN = cast(dw2@F16) {dtype="f32"}
//                                          ...
//     update:                              update:
//     [w2] = sgd([w2], [dw2], lr)          [w2] = sgd([w2], [dw2@MEAN], lr)
//
// The workers' values are added in f32 and rounded once (comm/reduction_tree.h). A gradient is cast
// while it is in cache, into its bucket; buckets hold as many gradients as those of f32 of twice
// the size. f16 has 10 bits behind the point and ends at 65504; bf16 (dtype="bfloat16") has 7, and
// the range of f32. Sparse gradients and those of other types are left to data_parallel.
#include "fleetx/ir/owned.h"
#include "fleetx/ir/rewriter.h"
#include "fleetx/ir/uniform.h"
#include "fleetx/strategies/averaging.h"
#include "fleetx/strategies/choices.h"
#include "fleetx/strategies/data_parallel.h"
#include "fleetx/strategies/strategy.h"

namespace fleetx::strategies {
namespace {

using ir::Names;
using ir::Role;

DType type_of(const StrategyContext& context) {
  const auto name = context.options.at("dtype").as<std::string>();
  if (name == "float16") return DType::kF16;
  if (name == "bfloat16") return DType::kBF16;
  fail(Error::Kind::kInvalidArgument,
       str("fp16_allreduce: the option 'dtype' is '", name, "'; must be float16 or bfloat16"));
}

class Fp16AllReduce final : public Strategy {
 public:
  std::string_view name() const override { return "fp16_allreduce"; }
  Traits traits() const override {
    return {
        .acts = {{Phase::kGradients, {"recompute", "amp", "gradient_merge", "dgc", "pipeline"}}},
        .groups = {kDataAxis},
        .needs = {{"data_parallel", "gradients travel between its workers"}}};
  }
  ir::Attrs options() const override {
    ir::Attrs all = default_fuse_options();
    all.emplace("dtype", "float16");
    return all;
  }

  // One worker sends nothing.
  bool acts_in(const Mesh& mesh) const override { return mesh.size(kDataAxis) > 1; }

  std::optional<ir::Attrs> requested(const Settings& s, const Mesh&) const override {
    if (!s.on("fp16_allreduce")) return std::nullopt;
    ir::Attrs given = fuse_options(s);
    given.emplace("dtype", s.get("fp16_allreduce_configs.dtype"));
    return given;
  }

  void validate(const ir::Program&, const StrategyContext& context) const override {
    (void)type_of(context);
    check_fuse_options(name(), context.options);
  }

  void on_gradients(Programs& programs, const StrategyContext& context) const override {
    const ir::Training training = ir::training_of(programs.main, name());
    ir::Rewriter rw(programs.main);
    const DType dtype = type_of(context);
    const ir::Uniform averaged(programs.main, kDataAxis);
    std::vector<Gradient> gradients;
    for (const ir::Training::Parameter& p : training.parameters)
      if (is_f32(programs.main, p) && !averaged.holds(p.gradient))
        gradients.push_back(gradient_of(programs.main, p, dtype));
    const std::string guard = agree_on_ready(rw);
    for (const auto& bucket : buckets_of(gradients, context.options))
      average_in(rw, bucket, dtype, guard);
  }

  // No dense gradient of f32 is left for others to average.
  void check(Phase, const ir::Program& main, const StrategyContext&) const override {
    const ir::Uniform averaged(main, kDataAxis);
    for (const ir::Training::Parameter& p : main.training().parameters)
      FLEETX_CHECK(!is_f32(main, p) || averaged.holds(p.gradient), "the gradient '", p.gradient,
                   "' of '", p.name, "' would travel in 32 bits");
  }

 private:
  static bool is_f32(const ir::Program& main, const ir::Training::Parameter& p) {
    const ir::TensorType& type = main.var(p.gradient).type;
    return type.dtype == DType::kF32 && type.kind == ir::VarKind::kDense &&
           !ir::differs_along(main.var(p.name), kDataAxis);
  }

  static void average_in(ir::Rewriter& rw, const std::vector<Gradient>& bucket, DType dtype,
                         const std::string& guard) {
    const auto cast = [&](const std::string& from, const std::string& to, DType type,
                          ir::Rewriter::Position place) {
      rw.insert(place, {.type = "cast",
                        .inputs = {{"x", {from}}},
                        .outputs = {{"out", {to}}},
                        .attrs = {{"dtype", type}},
                        .role = Role::kBackward,
                        .guard = guard});
    };
    Names halves;
    for (const Gradient& g : bucket) {
      halves.push_back(rw.fresh_name(g.name + (dtype == DType::kF16 ? "@F16" : "@BF16")));
      cast(g.name, halves.back(), dtype, behind(rw, {g.name}, guard));
    }
    average(rw, halves, guard);
    for (size_t i = 0; i < bucket.size(); ++i) {
      const std::string mean = rw.fresh_name(bucket[i].name + "@MEAN");
      cast(halves[i], mean, DType::kF32, rw.end());
      rw.set_gradient(bucket[i].param, mean);
    }
  }
};

FLEETX_STRATEGY(fp16_allreduce, Fp16AllReduce);

std::vector<Choice> choices(const Mesh& mesh) {
  if (mesh.size(kDataAxis) == 1) return {};
  return {{"fp16_allreduce", {{"fp16_allreduce", true}}}};
}
FLEETX_CHOICES(fp16_allreduce, Effect::kRounding, choices);

}  // namespace
}  // namespace fleetx::strategies
