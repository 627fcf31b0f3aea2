#include "fleetx/passes/passes.h"
#include "tests/passes/texts.h"

namespace fleetx::passes {
namespace {

// `size`: of the images; large ones are worth it.
std::string vars(const std::string& size, const std::string& more) {
  const std::string image = "f32[4,32," + size + "]\n";
  return "program\ndata x : " + image + "data dy : " + image +
         "param w : f32[32,32,3,3]\n"
         "param s : f32[32]\nparam b : f32[32]\nstate m : f32[32]\nstate v : f32[32]\n"
         "var sm : f32[32]\nvar si : f32[32]\nvar out : " +
         image + "var y : " + image + "var z : " + image + "var dout : " + image +
         "var dw : f32[32,32,3,3]\nvar dx : " + image + "var ds : f32[32]\nvar db : f32[32]\n" +
         more + "\n";
}

const std::string kForward = R"(forward:
z = scale(x)
out, m, v, sm, si = batch_norm(z, s, b, m, v) {name="bn", act="relu"}
y = conv2d(out, w, _) {padding=[1, 1]}
backward:
)";
const std::string kNormGrad =
    "dx, ds, db = batch_norm_grad(z, s, b, sm, si, dout) {name=\"bn\", act=\"relu\"}\n";

TEST(RecomputeCheap, BeforeTheFirstReaderInBackward) {
  const std::string image = "var out@AGAIN : f32[4,32,64,64]\n";
  expect_rewrite(recompute_cheap,
                 vars("64,64", "") + kForward +
                     "dout, dw, _ = conv2d_grad(out, w, _, dy) {padding=[1, 1]}\n" + kNormGrad,
                 vars("64,64", image) + kForward +
                     "out@AGAIN = batch_norm_again(z, s, b, sm, si) {name=\"bn\", act=\"relu\"}\n" +
                     "dout, dw, _ = conv2d_grad(out@AGAIN, w, _, dy) {padding=[1, 1]}\n" +
                     kNormGrad);
}

TEST(RecomputeCheap, GeluIsRepeated) {
  const auto program =
      [](const std::string& more, const std::string& again, const std::string& name) {
        return R"(program
data x : f32[512,1024]
data dy : f32[512,64]
param w : f32[1024,64]
var h : f32[512,1024]
var out : f32[512,1024]
var y : f32[512,64]
var dout : f32[512,1024]
var dw : f32[1024,64]
var dh : f32[512,1024]
)" + more + R"(
forward:
h = scale(x)
out = gelu(h) {name="act", approximate=true}
y = fc(out, w, _)
backward:
)" + again + "dout, dw, _ = fc_grad(" +
               name + ", w, _, _, dy)\n" + "dh = gelu_grad(h, dout) {approximate=true}\n";
      };
  expect_rewrite(recompute_cheap, program("", "", "out"),
                 program("var out@AGAIN : f32[512,1024]\n",
                         "out@AGAIN = gelu(h) {name=\"act\", approximate=true}\n", "out@AGAIN"));
}

// A parameter is there in any case; a cast of what is not is kept.
TEST(RecomputeCheap, CastsOfParametersAreRepeated) {
  const auto program = [](const std::string& kind, const std::string& more,
                          const std::string& again, const std::string& name) {
    return R"(program
data x : bf16[8,512]
data dy : bf16[8,1024]
)" + kind + R"( w : f32[1024,512]
var h : bf16[1024,512]
var y : bf16[8,1024]
var dx : bf16[8,512]
)" + more + R"(
forward:
h = cast(w) {dtype="bf16"}
y = matmul(x, h) {transpose_y=true}
backward:
)" + again +
           "dx = matmul(dy, " + name + ")\n";
  };
  expect_rewrite(recompute_cheap, program("param", "", "", "h"),
                 program("param", "var h@AGAIN : bf16[1024,512]\n",
                         "h@AGAIN = cast(w) {dtype=\"bf16\"}\n", "h@AGAIN"));
  expect_unchanged(recompute_cheap, program("data", "", "", "h"));
}

TEST(RecomputeCheap, NotWhereItIsSmall) {
  expect_unchanged(recompute_cheap,
                   vars("8,8", "") + kForward +
                       "dout, dw, _ = conv2d_grad(out, w, _, dy) {padding=[1, 1]}\n" + kNormGrad);
}

TEST(RecomputeCheap, NotWhereTheInputIsNotKept) {
  expect_unchanged(
      recompute_cheap,
      vars("64,64", "") + kForward + "dout, dw, _ = conv2d_grad(out, w, _, dy) {padding=[1, 1]}\n");
}

}  // namespace
}  // namespace fleetx::passes
