// Blocked layouts: what element-wise kernels ask for, and that padding stays zero. The kernels are
// prepared by hand, as the planner would.
#include "fleetx/ops/lib/element_loop.h"

#include <gtest/gtest.h>

#include "fleetx/ir/builder.h"
#include "tests/support/op_case.h"

namespace fleetx::testing {
namespace {

using namespace ops;

const Layout kBlocked{{0, 1, 2, 3}, {{1, 16}}};  // nChw16c
const Layout kPlain;

class Blocked : public ::testing::Test {
 protected:
  // Runs the op with inputs in the given layouts (converted where the kernel wants others) and
  // compares with a run on row-major inputs. `made` gets the layout of the output.
  void check(const std::string& type, const Tensors& inputs, const std::vector<Layout>& layouts,
             const Layout& expected, const ir::Attrs& attrs = {}) {
    const Tensor plain = run(type, inputs, std::vector<Layout>(inputs.size()), attrs);
    const Tensor got = run(type, inputs, layouts, attrs);
    EXPECT_EQ(got.layout(), expected) << type << ": got " << str(got.layout());
    expect_close(got.plain(), plain, 0, type);
    // Converting to row-major and back gives zeros in the padding.
    const Tensor clean = got.plain().to(got.layout());
    EXPECT_TRUE(std::equal(clean.data<float>().begin(), clean.data<float>().end(),
                           got.data<float>().begin()))
        << type << ": padding is not zero";
  }

 private:
  static Tensor run(const std::string& type, const Tensors& inputs,
                    const std::vector<Layout>& layouts, const ir::Attrs& attrs) {
    ir::Program main, startup;
    ir::Builder b(main, startup);
    const ir::OpDef& def = ir::op_def(type);
    const bool list = def.inputs[0].arity == ir::Arity::kMany;
    std::vector<ir::Var> vars;
    std::vector<kernel::Desc> in;
    for (size_t i = 0; i < inputs.size(); ++i) {
      vars.push_back(b.data(str("x", i), f32, inputs[i].shape()));
      in.push_back({f32, inputs[i].shape(), layouts[i], ir::VarKind::kDense, 0});
    }
    std::vector<ir::Arg> args;
    if (list)
      args.emplace_back(def.inputs[0].name, vars);
    else
      for (size_t i = 0; i < vars.size(); ++i) args.emplace_back(def.inputs[i].name, vars[i]);
    const std::string out_slot = def.outputs[0].name;
    const ir::Var out = b.op(type, args, attrs, {{out_slot, "out"}});
    const ir::Op& op = main.ops().back();
    const kernel::Setting setting;
    kernel::Prepare prepare(op, in, {{f32, out.shape(), {}, ir::VarKind::kDense, 0}}, setting);
    const auto kernel = def.make_kernel(prepare);
    std::vector<void*> pointers;
    Tensors memory;
    for (size_t i = 0; i < inputs.size(); ++i) {
      memory.push_back(inputs[i].to(prepare.wanted_layouts()[i]));
      pointers.push_back(memory.back().raw());
    }
    const Tensor result(f32, out.shape(), prepare.made_layouts()[0]);
    // Not zero before: the kernel must write the padding too.
    for (float& v : result.data<float>()) v = 99;
    pointers.push_back(result.raw());
    for (const size_t bytes : prepare.scratch_bytes()) {
      memory.emplace_back(u8, Shape{static_cast<int64_t>(bytes)});
      pointers.push_back(memory.back().raw());
    }
    kernel->run(kernel::Run(pointers.data()));
    return result;
  }
};

TEST_F(Blocked, FunctionsThatKeepZeroPassTheLayoutOn) {
  const Tensor x = random({2, 5, 3, 3});
  for (const char* op : {"relu", "tanh", "gelu", "square", "swish", "assign"})
    check(op, {x}, {kBlocked}, kBlocked);
  check("scale", {x}, {kBlocked}, kBlocked, {{"scale", 3.0}});
  check("clip", {x}, {kBlocked}, kBlocked, {{"min", -0.5}, {"max", 0.5}});
}

TEST_F(Blocked, OthersDoSoOnlyWithoutPadding) {
  for (const char* op : {"sigmoid", "exp", "cos"}) {
    check(op, {random({2, 5, 3, 3})}, {kBlocked}, kPlain);
    check(op, {random({2, 32, 3, 3})}, {kBlocked}, kBlocked);
  }
  check("scale", {random({2, 5, 3, 3})}, {kBlocked}, kPlain, {{"bias", 3.0}});
}

TEST_F(Blocked, GradientsWantBothInputsInOneLayout) {
  const Tensor x = random({2, 5, 3, 3}), dout = random({2, 5, 3, 3}, 1);
  check("relu_grad", {x, dout}, {kBlocked, kPlain}, kBlocked);
  check("tanh_grad", {x, dout}, {kPlain, kBlocked}, kBlocked);
  check("log_grad", {x, dout}, {kBlocked, kBlocked}, kPlain);  // 0 / 0
}

TEST_F(Blocked, BinaryOpsOfEqualShapes) {
  const Tensor x = random({2, 5, 3, 3}), y = random({2, 5, 3, 3}, 1);
  check("elementwise_add", {x, y}, {kBlocked, kPlain}, kBlocked);
  check("elementwise_add", {x, y}, {kBlocked, kBlocked}, kBlocked, {{"act", "relu"}});
  check("elementwise_mul", {x, y}, {kPlain, kBlocked}, kBlocked);
  check("elementwise_div", {x, y}, {kBlocked, kBlocked}, kPlain);  // 0 / 0
  check("sum", {x, y, x}, {kPlain, kBlocked, kPlain}, kBlocked);
}

TEST_F(Blocked, SmallerInputsAreReadRowMajor) {
  const Tensor x = random({2, 32, 3, 4});
  check("elementwise_add", {x, random({32}, 1)}, {kBlocked, kPlain}, kBlocked, {{"axis", 1}});
  check("elementwise_mul", {x, random({2, 32, 1, 1}, 1)}, {kBlocked, kPlain}, kBlocked);
  check("elementwise_mul", {x, random({1}, 1)}, {kBlocked, kPlain}, kBlocked);
  // Its neighbours in the channel are far apart in memory.
  check("elementwise_mul", {x, random({32, 3, 4}, 1)}, {kBlocked, kPlain}, kPlain);
  check("elementwise_sub", {random({32, 1, 1}, 1), x}, {kPlain, kBlocked}, kBlocked);
  // With padding a row-major input would be read beyond its end.
  check("elementwise_add", {random({2, 5, 3, 4}), random({5}, 1)}, {kBlocked, kPlain}, kPlain,
        {{"axis", 1}});
}

TEST_F(Blocked, FusedChains) {
  const Tensor x = random({2, 5, 3, 3}), y = random({2, 5, 3, 3}, 1);
  const ir::Attrs keeps{{"ops", ir::Strings{"elementwise_mul", "relu"}},
                        {"args", ir::Strings{"x0 x1", "t0"}},
                        {"results", ir::Ints{1}}};
  const ir::Attrs does_not{{"ops", ir::Strings{"elementwise_mul", "exp"}},
                           {"args", ir::Strings{"x0 x1", "t0"}},
                           {"results", ir::Ints{1}}};
  check("fused_elementwise", {x, y}, {kPlain, kBlocked}, kBlocked, keeps);
  check("fused_elementwise", {x, y}, {kBlocked, kBlocked}, kPlain, does_not);
}

TEST_F(Blocked, SumOfEverythingTakesAnyLayout) {
  ir::Attrs none;
  check("reduce_sum", {random({2, 5, 3, 3})}, {kBlocked}, kPlain, none);
  check("mean", {random({2, 5, 3, 3})}, {kBlocked}, kPlain, none);
}

TEST(ElementLoop, EveryElementWiseOpHasALoop) {
  for (const ir::OpDef* def : ir::all_ops()) {
    if (!def->element_wise || def->type == "sum") continue;
    ir::Attrs attrs;
    normalize_attrs(*def, attrs, def->type);
    EXPECT_NE(make_element_loop(def->type, attrs, f32), nullptr) << def->type;
    EXPECT_NE(make_element_loop(def->type, attrs, f64), nullptr) << def->type;
  }
}

}  // namespace
}  // namespace fleetx::testing
