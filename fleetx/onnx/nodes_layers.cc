// Layers with weights, and attention.
#include "fleetx/onnx/graph.h"

namespace fleetx::onnx {
namespace {

void fc(const Writing& w) {
  Graph& g = w.graph;
  const auto rows = w.attr<int64_t>("num_flatten_dims");
  std::string x = w.in("x");
  if (w.shape("x").rank() > rows + 1) {
    ir::Ints shape(static_cast<size_t>(rows), 0);
    shape.push_back(-1);
    x = g.node("Reshape", {x, g.ints(shape)});
  }
  std::string z = g.node("MatMul", {x, w.in("w")});
  if (w.op.has_in("bias")) z = g.node("Add", {z, w.in("bias")});
  w.finish(z, w.out());
}

std::string transposed(Graph& g, const std::string& x, int rank) {
  ir::Ints perm;
  for (int d = 0; d < rank - 2; ++d) perm.push_back(d);
  perm.push_back(rank - 1);
  perm.push_back(rank - 2);
  return g.node("Transpose", {x}, {{"perm", perm}});
}

void matmul(const Writing& w) {
  Graph& g = w.graph;
  const int x_rank = w.shape("x").rank(), y_rank = w.shape("y").rank();
  w.require(x_rank > 1 || y_rank > 1, "the product of two vectors");
  std::string x = w.in("x"), y = w.in("y");
  if (w.attr<bool>("transpose_x") && x_rank > 1) x = transposed(g, x, x_rank);
  if (w.attr<bool>("transpose_y") && y_rank > 1) y = transposed(g, y, y_rank);
  const auto alpha = w.attr<double>("alpha");
  if (alpha == 1) {
    g.node("MatMul", {x, y}, {}, w.out());
  } else {
    g.node("Mul", {g.node("MatMul", {x, y}), g.number(alpha)}, {}, w.out());
  }
}

// [height, width] or [top, bottom, left, right] -> [top, left, bottom, right].
ir::Ints pads(const Writing& w) {
  const auto p = w.attr<ir::Ints>("padding");
  if (p.size() == 2) return {p[0], p[1], p[0], p[1]};
  return {p[0], p[2], p[1], p[3]};
}

void conv2d(const Writing& w) {
  Graph& g = w.graph;
  ir::Names inputs = {w.in("x"), w.in("w")};
  if (w.op.has_in("bias")) inputs.push_back(w.in("bias"));
  w.finish(g.node("Conv", inputs,
                  {{"strides", w.attr<ir::Ints>("stride")},
                   {"pads", pads(w)},
                   {"dilations", w.attr<ir::Ints>("dilation")},
                   {"group", w.attr<int64_t>("groups")}}),
           w.out());
}

void pool2d(const Writing& w) {
  Graph& g = w.graph;
  const bool max = w.attr<std::string>("type") == "max";
  const auto kernel = w.attr<ir::Ints>("kernel");
  const bool adaptive = w.attr<bool>("adaptive");
  if (w.attr<bool>("global") || (adaptive && kernel == ir::Ints{1, 1})) {
    g.node(max ? "GlobalMaxPool" : "GlobalAveragePool", {w.in("x")}, {}, w.out());
    return;
  }
  w.require(!adaptive, "adaptive pooling to more than one place");
  ir::Attrs attrs = {{"kernel_shape", kernel},
                     {"strides", w.attr<ir::Ints>("stride")},
                     {"pads", pads(w)},
                     {"ceil_mode", w.attr<bool>("ceil_mode")}};
  if (!max) attrs.emplace("count_include_pad", !w.attr<bool>("exclusive"));
  g.node(max ? "MaxPool" : "AveragePool", {w.in("x")}, attrs, w.out());
}

void batch_norm(const Writing& w) {
  w.require(w.attr<bool>("is_test") || w.attr<bool>("use_global_stats"),
            "statistics of the batch; clone the program for testing");
  w.finish(w.graph.node("BatchNormalization",
                        {w.in("x"), w.in("scale"), w.in("bias"), w.in("mean"), w.in("variance")},
                        {{"epsilon", w.attr<double>("epsilon")}}),
           w.out());
}

// Scale and bias are vectors of all that is normalized; with several dimensions they get those.
std::string per_column(const Writing& w, std::string_view slot, int begin) {
  const Shape& x = w.shape("x");
  if (begin + 1 == x.rank()) return w.in(slot);
  ir::Ints shape;
  for (int d = begin; d < x.rank(); ++d) {
    w.require(x[d] >= 0, "a norm over an unknown dimension");
    shape.push_back(x[d]);
  }
  return w.graph.node("Reshape", {w.in(slot), w.graph.ints(shape)});
}

void layer_norm(const Writing& w) {
  Graph& g = w.graph;
  const auto begin = static_cast<int>(w.attr<int64_t>("begin_norm_axis"));
  ir::Ints axes;
  for (int d = begin; d < w.shape("x").rank(); ++d) axes.push_back(d);
  const ir::Attrs over = {{"axes", axes}, {"keepdims", 1}};
  const std::string apart = g.node("Sub", {w.in("x"), g.node("ReduceMean", {w.in("x")}, over)});
  const std::string variance = g.node("ReduceMean", {g.node("Mul", {apart, apart})}, over);
  const std::string deviation =
      g.node("Sqrt", {g.node("Add", {variance, g.number(w.attr<double>("epsilon"))})});
  std::string y = g.node("Div", {apart, deviation});
  if (w.op.has_in("scale")) y = g.node("Mul", {y, per_column(w, "scale", begin)});
  if (w.op.has_in("bias")) y = g.node("Add", {y, per_column(w, "bias", begin)});
  g.node("Identity", {y}, {}, w.out());
}

void embedding(const Writing& w) {
  Graph& g = w.graph;
  const auto padding = w.attr<int64_t>("padding_idx");
  if (padding < 0) {
    g.node("Gather", {w.in("w"), w.in("ids")}, {{"axis", 0}}, w.out());
    return;
  }
  const std::string ids = g.node("Cast", {w.in("ids")}, {{"to", int64_t{element_type(i64)}}});
  const std::string is_padding =
      g.node("Unsqueeze",
             {g.node("Equal", {ids, g.number(static_cast<double>(padding), i64)}), g.ints({-1})});
  const std::string rows = g.node("Gather", {w.in("w"), ids}, {{"axis", 0}});
  g.node("Where", {is_padding, g.number(0), rows}, {}, w.out());
}

// Hides the keys that come after their query: scores [B, heads, Q, K].
std::string without_later_keys(Graph& g, const std::string& scores) {
  const std::string shape = g.node("Shape", {scores});
  const auto length = [&](int64_t axis) {
    return g.node("Gather", {shape, g.number(static_cast<double>(axis), i64)}, {{"axis", 0}});
  };
  const std::string queries = length(2), keys = length(3), zero = g.number(0, i64),
                    by_one = g.number(1, i64);
  const std::string key = g.node("Range", {zero, keys, by_one});
  // Query i sees the keys up to i + K - Q.
  const std::string last = g.node("Range", {g.node("Sub", {keys, queries}), keys, by_one});
  const std::string later = g.node("Greater", {key, g.node("Unsqueeze", {last, g.ints({-1})})});
  return g.node("Where", {later, g.number(-1e9), scores});
}

void attention(const Writing& w) {
  Graph& g = w.graph;
  w.require(!w.op.has_in("q_lengths"), "attention by lengths; build the model without packing");
  const auto heads = w.attr<int64_t>("heads");
  const auto split = [&](std::string_view slot, const ir::Ints& perm) {
    const ir::Ints shape = {0, 0, heads, w.shape(slot)[2] / heads};
    return g.node("Transpose", {g.node("Reshape", {w.in(slot), g.ints(shape)})}, {{"perm", perm}});
  };
  const std::string product =
      g.node("MatMul", {split("q", {0, 2, 1, 3}), split("k", {0, 2, 3, 1})});
  std::string scores = g.node("Mul", {product, g.number(w.attr<double>("scale"))});
  if (w.op.has_in("mask")) scores = g.node("Add", {scores, w.in("mask")});
  if (w.attr<bool>("causal")) scores = without_later_keys(g, scores);
  const std::string weights = g.node("Softmax", {scores}, {{"axis", -1}});
  const std::string heads_out =
      g.node("Transpose", {g.node("MatMul", {weights, split("v", {0, 2, 1, 3})})},
             {{"perm", ir::Ints{0, 2, 1, 3}}});
  g.node("Reshape", {heads_out, g.ints({0, 0, w.shape("v")[2]})}, {}, w.out());
}

void dropout(const Writing& w) {
  w.require(w.attr<bool>("is_test"), "dropout of a training; clone the program for testing");
  const bool as_it_is = w.attr<std::string>("mode") == "upscale_in_train";
  const double keep = as_it_is ? 1.0 : 1.0 - w.attr<double>("p");
  if (keep == 1.0)
    w.graph.node("Identity", {w.in("x")}, {}, w.out());
  else
    w.graph.node("Mul", {w.in("x"), w.graph.number(keep)}, {}, w.out());
}

}  // namespace

void add_layers(Writers& to) {
  to["fc"] = fc;
  to["matmul"] = matmul;
  to["conv2d"] = conv2d;
  to["pool2d"] = pool2d;
  to["batch_norm"] = batch_norm;
  to["layer_norm"] = layer_norm;
  to["embedding"] = embedding;
  to["attention"] = attention;
  to["dropout"] = dropout;
  to["one_hot"] = [](const Writing& w) {
    Graph& g = w.graph;
    const std::string pair = g.tensor(Tensor::of<float>({2}, {0.0f, 1.0f}));
    g.node("OneHot", {w.in("x"), g.ints({w.attr<int64_t>("depth")}), pair}, {{"axis", -1}},
           w.out());
  };
}

}  // namespace fleetx::onnx
