// Every wrapper emits its op, once, at the user's line.
#include "fleetx/nn/functional.h"

#include "tests/nn/net.h"

namespace fleetx::testing {
namespace {

using Unary = Var (*)(const Var&, nn::Where);
using Binary = Var (*)(const Var&, const Var&, nn::BinaryOptions, nn::Where);
using Compare = Var (*)(const Var&, const Var&, nn::Where);
using Reduce = Var (*)(const Var&, nn::ReduceOptions, nn::Where);

TEST(Functional, Unary) {
  Net net;
  const Var x = net.b.data("x", f32, {-1, 4});
  const std::vector<std::pair<const char*, Unary>> table = {
      {"relu", nn::relu},     {"relu6", nn::relu6},
      {"tanh", nn::tanh},     {"sigmoid", nn::sigmoid},
      {"swish", nn::swish},   {"softplus", nn::softplus},
      {"exp", nn::exp},       {"hard_sigmoid", nn::hard_sigmoid},
      {"log", nn::log},       {"hard_swish", nn::hard_swish},
      {"sqrt", nn::sqrt},     {"rsqrt", nn::rsqrt},
      {"square", nn::square}, {"reciprocal", nn::reciprocal},
      {"abs", nn::abs},       {"sign", nn::sign},
      {"floor", nn::floor},   {"ceil", nn::ceil},
      {"round", nn::round},   {"sin", nn::sin},
      {"cos", nn::cos},       {"assign", nn::assign},
  };
  for (const auto& [op, fn] : table) {
    EXPECT_EQ(fn(x, nn::Where::current()).shape(), x.shape()) << op;
    EXPECT_EQ(net.last().type(), op);
    EXPECT_EQ(net.last().loc.line, __LINE__ - 2);
  }
  EXPECT_EQ(net.main.ops().size(), table.size());
}

TEST(Functional, UnaryWithArguments) {
  Net net;
  const Var x = net.b.data("x", f32, {-1, 4});
  nn::leaky_relu(x, 0.3);
  EXPECT_EQ(net.last().attr<double>("alpha"), 0.3);
  nn::elu(x, 0.5);
  EXPECT_EQ(net.last().attr<double>("alpha"), 0.5);
  nn::gelu(x, {.approximate = true});
  EXPECT_TRUE(net.last().attr<bool>("approximate"));
  nn::softmax(x, 1);
  EXPECT_EQ(net.last().attr<int>("axis"), 1);
  nn::log_softmax(x);
  EXPECT_EQ(net.last().type(), "log_softmax");
  nn::pow(x, 3.0);
  EXPECT_EQ(net.last().attr<double>("factor"), 3.0);
  nn::clip(x, -2, 2);
  EXPECT_EQ(net.last().attr<double>("min"), -2.0);
  nn::scale(x, 2, 1);
  EXPECT_EQ(net.last().attr<double>("bias"), 1.0);
  nn::cumsum(x, 0);
  EXPECT_EQ(net.last().attr<int>("axis"), 0);
  EXPECT_EQ(nn::activation(x, "").name(), "x");
}

TEST(Functional, Binary) {
  Net net;
  const Var x = net.b.data("x", f32, {-1, 4, 5});
  const Var y = net.b.data("y", f32, {4});
  const std::vector<std::pair<const char*, Binary>> table = {
      {"elementwise_add", nn::add},          {"elementwise_sub", nn::sub},
      {"elementwise_mul", nn::mul},          {"elementwise_div", nn::div},
      {"elementwise_max", nn::maximum},      {"elementwise_min", nn::minimum},
      {"elementwise_pow", nn::pow},          {"elementwise_mod", nn::mod},
      {"elementwise_floordiv", nn::floordiv}};
  for (const auto& [op, fn] : table) {
    EXPECT_EQ(fn(x, y, {.axis = 1}, nn::Where::current()).shape(), x.shape()) << op;
    EXPECT_EQ(net.last().type(), op);
    EXPECT_EQ(net.last().attr<int>("axis"), 1);
  }
}

TEST(Functional, CompareAndLogic) {
  Net net;
  const Var x = net.b.data("x", f32, {-1, 4});
  const Var y = net.b.data("y", f32, {-1, 4});
  const std::vector<std::pair<const char*, Compare>> compares = {
      {"equal", nn::equal},
      {"not_equal", nn::not_equal},
      {"less_than", nn::less_than},
      {"less_equal", nn::less_equal},
      {"greater_than", nn::greater_than},
      {"greater_equal", nn::greater_equal}};
  for (const auto& [op, fn] : compares) {
    EXPECT_EQ(fn(x, y, nn::Where::current()).dtype(), boolean) << op;
    EXPECT_EQ(net.last().type(), op);
  }
  const Var p = nn::equal(x, y), q = nn::less_than(x, y);
  const std::vector<std::pair<const char*, Compare>> logicals = {{"logical_and", nn::logical_and},
                                                                 {"logical_or", nn::logical_or},
                                                                 {"logical_xor", nn::logical_xor}};
  for (const auto& [op, fn] : logicals) {
    EXPECT_EQ(fn(p, q, nn::Where::current()).dtype(), boolean) << op;
    EXPECT_EQ(net.last().type(), op);
  }
  nn::logical_not(p);
  EXPECT_EQ(net.last().type(), "logical_not");
  EXPECT_EQ(nn::where(p, x, y).shape(), x.shape());
}

TEST(Functional, Reduce) {
  Net net;
  const Var x = net.b.data("x", f32, {-1, 4, 5});
  const std::vector<std::pair<const char*, Reduce>> table = {{"reduce_sum", nn::reduce_sum},
                                                             {"reduce_mean", nn::reduce_mean},
                                                             {"reduce_max", nn::reduce_max},
                                                             {"reduce_min", nn::reduce_min},
                                                             {"reduce_prod", nn::reduce_prod}};
  for (const auto& [op, fn] : table) {
    EXPECT_EQ(fn(x, {.dim = {-1}}, nn::Where::current()).shape(), (Shape{-1, 4})) << op;
    EXPECT_EQ(net.last().type(), op);
    EXPECT_EQ(fn(x, {.dim = {1}, .keep_dim = true}, nn::Where::current()).shape(),
              (Shape{-1, 1, 5}));
  }
  EXPECT_EQ(nn::mean(x).shape(), Shape{1});
}

TEST(Functional, Matmul) {
  Net net;
  const Var x = net.b.data("x", f32, {-1, 3, 4});
  const Var y = net.b.data("y", f32, {-1, 5, 4});
  EXPECT_EQ(nn::matmul(x, y, {.transpose_y = true, .alpha = 0.5}).shape(), (Shape{-1, 3, 5}));
  const std::string message = error_of([&] { nn::matmul(x, y); });
  EXPECT_TRUE(contains(message, line_of(__LINE__ - 1) + " matmul"));
}

TEST(Functional, Manipulation) {
  Net net;
  const Var x = net.b.data("x", f32, {-1, 4, 6});
  EXPECT_EQ(nn::reshape(x, {0, 2, -1}).shape(), (Shape{-1, 2, 12}));
  EXPECT_EQ(nn::flatten(x).shape(), (Shape{-1, 24}));
  EXPECT_EQ(nn::flatten_range(x, 1, 2).shape(), (Shape{-1, 24}));
  EXPECT_EQ(nn::flip(x, {1}).shape(), x.shape());
  EXPECT_EQ(nn::shape_of(x).shape(), Shape{3});
  EXPECT_EQ(nn::transpose(x, {0, 2, 1}).shape(), (Shape{-1, 6, 4}));
  EXPECT_EQ(nn::unsqueeze(x, {1}).shape(), (Shape{-1, 1, 4, 6}));
  EXPECT_EQ(nn::squeeze(nn::unsqueeze(x, {1}), {1}).shape(), x.shape());
  EXPECT_EQ(nn::expand(nn::unsqueeze(x, {1}), {-1, 3, -1, -1}).shape(), (Shape{-1, 3, 4, 6}));
  EXPECT_EQ(nn::tile(x, {1, 2, 1}).shape(), (Shape{-1, 8, 6}));
  EXPECT_EQ(nn::concat({x, x}, 2).shape(), (Shape{-1, 4, 12}));
  EXPECT_EQ(nn::stack({x, x}, 1).shape(), (Shape{-1, 2, 4, 6}));
  EXPECT_EQ(nn::slice(x, {.axes = {1}, .starts = {1}, .ends = {3}}).shape(), (Shape{-1, 2, 6}));
  EXPECT_EQ(nn::pad(x, {.paddings = {0, 0, 1, 1, 0, 2}}).shape(), (Shape{-1, 6, 8}));
  EXPECT_EQ(nn::cast(x, i64).dtype(), i64);
  EXPECT_EQ(nn::argmax(x).shape(), (Shape{-1, 4}));
  EXPECT_EQ(nn::argmin(x, 1).shape(), (Shape{-1, 6}));
  EXPECT_EQ(nn::top_k(x, 2).values.shape(), (Shape{-1, 4, 2}));
  EXPECT_EQ(nn::argsort(x).indices.dtype(), i64);
  EXPECT_TRUE(contains(error_of([&] { nn::concat({}); }), "concat of no variables"));
}

TEST(Functional, Split) {
  Net net;
  const Var x = net.b.data("x", f32, {-1, 4, 6});
  const std::vector<Var> halves = nn::split(x, 2, 1);
  ASSERT_EQ(halves.size(), 2u);
  EXPECT_EQ(halves[1].shape(), (Shape{-1, 2, 6}));
  const std::vector<Var> parts = nn::split(x, ir::Ints{1, 5}, 2);
  EXPECT_EQ(parts[0].shape(), (Shape{-1, 4, 1}));
  EXPECT_EQ(parts[1].shape(), (Shape{-1, 4, 5}));
}

TEST(Functional, Unstack) {
  Net net;
  const Var x = net.b.data("x", f32, {-1, 4, 6});
  const std::vector<Var> rows = nn::unstack(x, 1);
  ASSERT_EQ(rows.size(), 4u);
  EXPECT_EQ(rows[3].shape(), (Shape{-1, 6}));
  const std::string message = error_of([&] { nn::unstack(x, 0); });
  EXPECT_TRUE(contains(message, line_of(__LINE__ - 1) + " unstack: dimension 0 of 'x'"));
}

TEST(Functional, Indexing) {
  Net net;
  const Var x = net.b.data("x", f32, {10, 6});
  const Var index = net.b.data("index", i64, {3});
  const Var rows = nn::gather(x, index);
  EXPECT_EQ(rows.shape(), (Shape{3, 6}));
  EXPECT_EQ(nn::scatter(x, index, rows, {.overwrite = false}).shape(), x.shape());
  EXPECT_EQ(nn::one_hot(index, 5).shape(), (Shape{3, 5}));
  const Var places = net.b.data("places", i64, {7, 2});
  EXPECT_EQ(nn::gather_nd(x, places).shape(), Shape{7});
  EXPECT_EQ(nn::masked_fill(x, nn::less_than(x, x), 3).shape(), x.shape());
}

TEST(Functional, Pooling) {
  Net net;
  const Var x = net.b.data("x", f32, {-1, 3, 9, 9});
  EXPECT_EQ(nn::pool2d(x, {}).shape(), (Shape{-1, 3, 4, 4}));
  EXPECT_EQ(nn::pool2d(x, {.ceil_mode = true}).shape(), (Shape{-1, 3, 5, 5}));
  EXPECT_EQ(nn::pool2d(x, {.kernel = 3, .padding = "SAME"}).shape(), (Shape{-1, 3, 5, 5}));
  EXPECT_EQ(nn::pool2d(x, {.type = "avg", .global = true}).shape(), (Shape{-1, 3, 1, 1}));
  EXPECT_EQ(nn::adaptive_pool2d(x, {.size = {2, 3}}).shape(), (Shape{-1, 3, 2, 3}));
}

TEST(Functional, Losses) {
  Net net;
  const Var x = net.b.data("x", f32, {-1, 10});
  const Var label = net.b.data("label", i64, {-1, 1});
  const Var target = net.b.data("target", f32, {-1, 10});
  EXPECT_EQ(nn::cross_entropy(nn::softmax(x), label).shape(), (Shape{-1, 1}));
  EXPECT_EQ(nn::softmax_cross_entropy(x, label, {.ignore_index = 0}).shape(), (Shape{-1, 1}));
  EXPECT_EQ(net.last().attr<int64_t>("ignore_index"), 0);
  EXPECT_EQ(nn::softmax_cross_entropy(x, target, {.soft_label = true}).shape(), (Shape{-1, 1}));
  for (const Var& loss : {nn::sigmoid_cross_entropy(x, target), nn::mse_loss(x, target),
                          nn::l1_loss(x, target), nn::smooth_l1_loss(x, target)})
    EXPECT_EQ(loss.shape(), x.shape()) << loss.name();
  const Var p = net.b.data("p", f32, {-1, 1}), y = net.b.data("y", f32, {-1, 1});
  EXPECT_EQ(nn::log_loss(p, y).shape(), (Shape{-1, 1}));
}

TEST(Functional, Metrics) {
  Net net;
  const Var scores = net.b.data("scores", f32, {-1, 10});
  const Var label = net.b.data("label", i64, {-1, 1});
  EXPECT_EQ(nn::accuracy(scores, label, 5).shape(), Shape{1});
  const Var p = net.b.data("p", f32, {-1, 1});
  EXPECT_EQ(nn::auc(p, label).shape(), Shape{1});
  EXPECT_TRUE(net.main.var("auc_0.stat_pos").persistable);
  EXPECT_EQ(net.last().out("stat_neg_out"), ir::Names{"auc_0.stat_neg"});
}

TEST(Functional, Sources) {
  Net net;
  const Var x = net.b.data("x", f32, {-1, 10});
  EXPECT_EQ(nn::fill(net.b, {2, 3}, 1.5, f64).type().dtype, f64);
  EXPECT_EQ(nn::fill_like(x, 1).shape(), x.shape());
  EXPECT_EQ(nn::arange(net.b, 0, 5).shape(), Shape{5});
  EXPECT_EQ(nn::uniform(net.b, {2, 3}, 0, 1).shape(), (Shape{2, 3}));
  EXPECT_EQ(nn::gaussian(net.b, {2, 3}, 0, 1).dtype(), f32);
  EXPECT_EQ(nn::randint(net.b, {4}, 0, 10).dtype(), i64);
  EXPECT_TRUE(net.last().has_in("step"));
  EXPECT_EQ(nn::dropout(x, {.p = 0}).name(), "x");
  EXPECT_EQ(nn::dropout(x, {.p = 0.1}).shape(), x.shape());
  EXPECT_EQ(nn::print(x, {.message = "x is"}).shape(), x.shape());
  EXPECT_EQ(nn::sum({x, x, x}).shape(), x.shape());
}

}  // namespace
}  // namespace fleetx::testing
