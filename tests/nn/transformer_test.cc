#include "fleetx/nn/transformer.h"

#include "tests/nn/net.h"

namespace fleetx::testing {
namespace {

TEST(MultiHeadAttention, KeepsTheShapeOfTheQuery) {
  Net net;
  const Var query = net.b.data("query", f32, {-1, 5, 12});
  const Var key = net.b.data("key", f32, {-1, 7, 12});
  const Var mask = net.b.data("mask", f32, {-1, 1, 1, 7});
  const Var out =
      nn::multi_head_attention(query, key, key, {.heads = 3, .mask = mask, .name = "att"});
  EXPECT_EQ(out.shape(), (Shape{-1, 5, 12}));
  EXPECT_EQ(net.parameter_names(),
            (ir::Names{"att_query.w_0", "att_query.b_0", "att_key.w_0", "att_key.b_0",
                       "att_value.w_0", "att_value.b_0", "att_output.w_0", "att_output.b_0"}));
}

TEST(MultiHeadAttention, HeadsMustDivideTheWidth) {
  Net net;
  const Var x = net.b.data("x", f32, {-1, 5, 12});
  const std::string message = error_of([&] { nn::multi_head_attention(x, x, x, {.heads = 5}); });
  EXPECT_TRUE(contains(message, line_of(__LINE__ - 1)));
  EXPECT_TRUE(contains(message, "heads=5 must divide"));
}

TEST(EncoderLayer, PostNormEndsInALayerNormAndPreNormInASum) {
  Net net;
  const Var x = net.b.data("x", f32, {-1, 5, 12});
  const Var post = nn::encoder_layer(x, {.heads = 2, .intermediate = 48, .act = "gelu"});
  EXPECT_EQ(post.shape(), x.shape());
  EXPECT_EQ(net.last().type(), "layer_norm");
  nn::encoder_layer(x, {.heads = 2, .intermediate = 48, .pre_norm = true});
  EXPECT_EQ(net.last().type(), "elementwise_add");
}

TEST(EncoderLayer, HasSixteenParameters) {
  Net net;
  nn::encoder_layer(net.b.data("x", f32, {-1, 5, 12}), {.heads = 2, .intermediate = 48});
  EXPECT_EQ(net.parameter_names().size(), 16u);
}

TEST(EncoderLayer, DropoutReadsTheStep) {
  Net net;
  nn::encoder_layer(net.b.data("x", f32, {-1, 5, 12}),
                    {.heads = 2, .intermediate = 48, .dropout = 0.1, .attention_dropout = 0.1});
  int dropouts = 0;
  for (const ir::Op& op : net.main.ops()) {
    if (op.type() != "dropout") continue;
    ++dropouts;
    EXPECT_EQ(op.in("step"), ir::Names{std::string(ir::kStepVar)});
  }
  EXPECT_EQ(dropouts, 3);
}

TEST(EncoderLayer, OpsCarryTheUsersLine) {
  Net net;
  nn::encoder_layer(net.b.data("x", f32, {-1, 5, 12}), {.heads = 2, .intermediate = 48});
  for (const ir::Op& op : net.main.ops()) EXPECT_EQ(op.loc.line, __LINE__ - 1) << op.type();
}

}  // namespace
}  // namespace fleetx::testing
