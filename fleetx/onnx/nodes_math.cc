// Element by element, and reductions.
#include <cmath>
#include <numbers>

#include "fleetx/onnx/graph.h"

namespace fleetx::onnx {

std::string gelu(Graph& g, const std::string& x, bool approximate, const std::string& out) {
  std::string inner;
  if (approximate) {
    const std::string cube = g.node("Mul", {g.node("Mul", {x, x}), x});
    const std::string sum = g.node("Add", {x, g.node("Mul", {cube, g.number(0.044715)})});
    inner = g.node("Tanh", {g.node("Mul", {sum, g.number(std::sqrt(2 / std::numbers::pi))})});
  } else {
    inner = g.node("Erf", {g.node("Mul", {x, g.number(1 / std::numbers::sqrt2)})});
  }
  const std::string share = g.node("Add", {inner, g.number(1)});
  return g.node("Mul", {g.node("Mul", {x, g.number(0.5)}), share}, {}, out);
}

std::string activate(Graph& g, const std::string& x, const std::string& name,
                     const std::string& out) {
  if (name.empty()) return out.empty() ? x : g.node("Identity", {x}, {}, out);
  if (name == "relu") return g.node("Relu", {x}, {}, out);
  if (name == "tanh") return g.node("Tanh", {x}, {}, out);
  if (name == "sigmoid") return g.node("Sigmoid", {x}, {}, out);
  if (name == "gelu") return gelu(g, x, false, out);
  fail(Error::Kind::kUnsupported, str("as ONNX: the activation '", name, "'"));
}

namespace {

// y with ones behind it, so that it meets the dimensions of x from `axis` on.
std::string aligned(const Writing& w, std::string_view slot) {
  const auto axis = w.attr<int64_t>("axis");
  const int x = w.shape("x").rank(), y = w.shape("y").rank();
  if (slot != "y" || axis < 0 || axis + y >= x) return w.in(slot);
  ir::Ints axes;
  for (int64_t d = y; d < x - axis; ++d) axes.push_back(d);
  return w.graph.node("Unsqueeze", {w.in("y"), w.graph.ints(axes)});
}

std::string binary(const Writing& w, const std::string& op, const std::string& out = "") {
  return w.graph.node(op, {aligned(w, "x"), aligned(w, "y")}, {}, out);
}

void clip(const Writing& w, double low, double high) {
  const DType dtype = w.graph.type(w.in("x")).dtype;
  w.graph.node("Clip", {w.in("x"), w.graph.number(low, dtype), w.graph.number(high, dtype)}, {},
               w.out());
}

void scale(const Writing& w) {
  Graph& g = w.graph;
  const DType dtype = g.type(w.in("x")).dtype;
  const auto factor = w.attr<double>("scale"), bias = w.attr<double>("bias");
  const std::string by = g.number(factor, dtype), plus = g.number(bias, dtype);
  if (bias == 0) {
    g.node("Mul", {w.in("x"), by}, {}, w.out());
  } else if (w.attr<bool>("bias_after_scale")) {
    g.node("Add", {g.node("Mul", {w.in("x"), by}), plus}, {}, w.out());
  } else {
    g.node("Mul", {g.node("Add", {w.in("x"), plus}), by}, {}, w.out());
  }
}

// Ours gives [1] where nothing is left, ONNX [].
void reduce(const Writing& w, const std::string& op, ir::Ints axes, bool keep) {
  Graph& g = w.graph;
  const int rank = w.shape("x").rank();
  if (axes.empty())
    for (int d = 0; d < rank; ++d) axes.push_back(d);
  const bool to_one = !keep && static_cast<int>(axes.size()) == rank;
  const std::string out = to_one ? "" : w.out();
  const std::string value =
      op == "ReduceSum"
          ? g.node(op, {w.in("x"), g.ints(axes)}, {{"keepdims", keep ? 1 : 0}}, out)
          : g.node(op, {w.in("x")}, {{"axes", axes}, {"keepdims", keep ? 1 : 0}}, out);
  if (to_one) g.node("Reshape", {value, g.ints({1})}, {}, w.out());
}

void reduce_by_op(const Writing& w) {
  static const std::map<std::string, std::string> kinds = {{"reduce_sum", "ReduceSum"},
                                                           {"reduce_mean", "ReduceMean"},
                                                           {"reduce_max", "ReduceMax"},
                                                           {"reduce_min", "ReduceMin"},
                                                           {"reduce_prod", "ReduceProd"}};
  reduce(w, kinds.at(w.op.type()), w.attr<ir::Ints>("dim"), w.attr<bool>("keep_dim"));
}

// One node of the same meaning.
const std::map<std::string, std::string>& plain_nodes() {
  static const std::map<std::string, std::string> all = {
      {"relu", "Relu"},       {"sigmoid", "Sigmoid"},
      {"tanh", "Tanh"},       {"softplus", "Softplus"},
      {"exp", "Exp"},         {"log", "Log"},
      {"sqrt", "Sqrt"},       {"reciprocal", "Reciprocal"},
      {"abs", "Abs"},         {"sin", "Sin"},
      {"cos", "Cos"},         {"asin", "Asin"},
      {"acos", "Acos"},       {"atan", "Atan"},
      {"erf", "Erf"},         {"sign", "Sign"},
      {"floor", "Floor"},     {"ceil", "Ceil"},
      {"assign", "Identity"}, {"logical_not", "Not"},
  };
  return all;
}

const std::map<std::string, std::string>& binary_nodes() {
  static const std::map<std::string, std::string> all = {
      {"elementwise_sub", "Sub"},  {"elementwise_mul", "Mul"},
      {"elementwise_max", "Max"},  {"elementwise_min", "Min"},
      {"elementwise_pow", "Pow"},  {"equal", "Equal"},
      {"less_than", "Less"},       {"less_equal", "LessOrEqual"},
      {"greater_than", "Greater"}, {"greater_equal", "GreaterOrEqual"},
      {"logical_and", "And"},      {"logical_or", "Or"},
      {"logical_xor", "Xor"},      {"elementwise_div", "Div"},
  };
  return all;
}

void add_activations(Writers& to) {
  to["gelu"] = [](const Writing& w) {
    gelu(w.graph, w.in("x"), w.attr<bool>("approximate"), w.out());
  };
  to["relu6"] = [](const Writing& w) { clip(w, 0, 6); };
  to["clip"] = [](const Writing& w) { clip(w, w.attr<double>("min"), w.attr<double>("max")); };
  to["leaky_relu"] = [](const Writing& w) {
    w.graph.node("LeakyRelu", {w.in("x")}, {{"alpha", w.attr<double>("alpha")}}, w.out());
  };
  to["elu"] = [](const Writing& w) {
    w.graph.node("Elu", {w.in("x")}, {{"alpha", w.attr<double>("alpha")}}, w.out());
  };
  to["hard_sigmoid"] = [](const Writing& w) {
    w.graph.node("HardSigmoid", {w.in("x")},
                 {{"alpha", w.attr<double>("slope")}, {"beta", w.attr<double>("offset")}}, w.out());
  };
  to["swish"] = [](const Writing& w) {
    w.graph.node("Mul", {w.in("x"), w.graph.node("Sigmoid", {w.in("x")})}, {}, w.out());
  };
  to["hard_swish"] = [](const Writing& w) {
    Graph& g = w.graph;
    const std::string gate =
        g.node("HardSigmoid", {w.in("x")}, {{"alpha", 1.0 / 6}, {"beta", 0.5}});
    g.node("Mul", {w.in("x"), gate}, {}, w.out());
  };
}

void add_formulas(Writers& to) {
  to["scale"] = scale;
  to["square"] = [](const Writing& w) { w.graph.node("Mul", {w.in("x"), w.in("x")}, {}, w.out()); };
  to["rsqrt"] = [](const Writing& w) {
    w.graph.node("Reciprocal", {w.graph.node("Sqrt", {w.in("x")})}, {}, w.out());
  };
  to["pow"] = [](const Writing& w) {
    w.graph.node("Pow", {w.in("x"), w.graph.number(w.attr<double>("factor"))}, {}, w.out());
  };
  // Halves away from 0; ONNX has them to the even side.
  to["round"] = [](const Writing& w) {
    Graph& g = w.graph;
    const std::string up = g.node("Add", {g.node("Abs", {w.in("x")}), g.number(0.5)});
    g.node("Mul", {g.node("Sign", {w.in("x")}), g.node("Floor", {up})}, {}, w.out());
  };
  to["elementwise_add"] = [](const Writing& w) { w.finish(binary(w, "Add"), w.out()); };
  to["elementwise_floordiv"] = [](const Writing& w) {
    w.require(is_float(w.graph.type(w.in("x")).dtype), "a floor division of integers");
    w.graph.node("Floor", {binary(w, "Div")}, {}, w.out());
  };
  to["not_equal"] = [](const Writing& w) {
    w.graph.node("Not", {binary(w, "Equal")}, {}, w.out());
  };
  to["where"] = [](const Writing& w) {
    w.graph.node("Where", {w.in("cond"), w.in("x"), w.in("y")}, {}, w.out());
  };
  to["masked_fill"] = [](const Writing& w) {
    const DType dtype = w.graph.type(w.in("x")).dtype;
    w.graph.node("Where", {w.in("mask"), w.graph.number(w.attr<double>("value"), dtype), w.in("x")},
                 {}, w.out());
  };
  to["sum"] = [](const Writing& w) { w.graph.node("Sum", w.op.in("xs"), {}, w.out()); };
  to["cast"] = [](const Writing& w) {
    const auto type = element_type(w.graph.type(w.out()).dtype);
    w.graph.node("Cast", {w.in("x")}, {{"to", static_cast<int64_t>(type)}}, w.out());
  };
}

void add_reductions(Writers& to) {
  for (const char* name : {"reduce_sum", "reduce_mean", "reduce_max", "reduce_min", "reduce_prod"})
    to[name] = reduce_by_op;
  to["mean"] = [](const Writing& w) { reduce(w, "ReduceMean", {}, false); };
  for (const char* name : {"softmax", "log_softmax"})
    to[name] = [](const Writing& w) {
      w.graph.node(w.op.type() == "softmax" ? "Softmax" : "LogSoftmax", {w.in("x")},
                   {{"axis", w.attr<int64_t>("axis")}}, w.out());
    };
  to["cumsum"] = [](const Writing& w) {
    w.graph.node(
        "CumSum", {w.in("x"), w.graph.number(static_cast<double>(w.attr<int64_t>("axis")), i64)},
        {{"exclusive", w.attr<bool>("exclusive")}, {"reverse", w.attr<bool>("reverse")}}, w.out());
  };
}

}  // namespace

void add_math(Writers& to) {
  for (const auto& [name, unused] : plain_nodes())
    to[name] = [](const Writing& w) {
      w.graph.node(plain_nodes().at(w.op.type()), {w.in("x")}, {}, w.out());
    };
  for (const auto& [name, unused] : binary_nodes())
    to[name] = [](const Writing& w) { binary(w, binary_nodes().at(w.op.type()), w.out()); };
  add_activations(to);
  add_formulas(to);
  add_reductions(to);
}

}  // namespace fleetx::onnx
