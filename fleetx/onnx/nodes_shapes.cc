// Views, cuts and joins, and values that are known before anything runs.
#include "fleetx/onnx/graph.h"

namespace fleetx::onnx {
namespace {

void reshape(const Writing& w, const ir::Ints& shape) {
  w.graph.node("Reshape", {w.in("x"), w.graph.ints(shape)}, {}, w.out());
}

// Dimensions as far as they are known; one that is not takes what is left.
void reshape_to_out(const Writing& w) {
  ir::Ints shape;
  int unknown = 0;
  for (const int64_t d : w.out_shape()) {
    shape.push_back(d);
    unknown += d < 0;
  }
  w.require(unknown <= 1, "a shape with ", unknown, " unknown dimensions");
  reshape(w, shape);
}

void squeeze(const Writing& w) {
  auto axes = w.attr<ir::Ints>("axes");
  if (axes.empty())
    for (int d = 0; d < w.shape("x").rank(); ++d)
      if (w.shape("x")[d] == 1) axes.push_back(d);
  w.graph.node("Squeeze", {w.in("x"), w.graph.ints(axes)}, {}, w.out());
}

void slice(const Writing& w) {
  Graph& g = w.graph;
  const auto axes = w.attr<ir::Ints>("axes");
  auto steps = w.attr<ir::Ints>("steps");
  if (steps.empty()) steps.assign(axes.size(), 1);
  g.node("Slice",
         {w.in("x"), g.ints(w.attr<ir::Ints>("starts")), g.ints(w.attr<ir::Ints>("ends")),
          g.ints(axes), g.ints(steps)},
         {}, w.out());
}

void flip(const Writing& w) {
  Graph& g = w.graph;
  const auto axes = w.attr<ir::Ints>("axes");
  const ir::Ints last(axes.size(), -1), before_all(axes.size(), INT64_MIN);
  g.node("Slice", {w.in("x"), g.ints(last), g.ints(before_all), g.ints(axes), g.ints(last)}, {},
         w.out());
}

void split(const Writing& w) {
  Graph& g = w.graph;
  const int axis = normalize_axis(w.attr<int64_t>("axis"), w.shape("x").rank());
  ir::Ints lengths;
  for (const std::string& name : w.op.out("outs")) lengths.push_back(g.type(name).shape[axis]);
  for (const int64_t n : lengths) w.require(n >= 0, "parts of unknown length");
  g.node_many("Split", {w.in("x"), g.ints(lengths)}, w.op.out("outs"), {{"axis", axis}});
}

void stack(const Writing& w) {
  Graph& g = w.graph;
  const int axis = normalize_axis(w.attr<int64_t>("axis"), w.out_shape().rank());
  ir::Names parts;
  for (const std::string& x : w.op.in("xs"))
    parts.push_back(g.node("Unsqueeze", {x, g.ints({axis})}));
  g.node("Concat", parts, {{"axis", axis}}, w.out());
}

void expand(const Writing& w) {
  auto shape = w.attr<ir::Ints>("shape");
  for (int64_t& d : shape)
    if (d < 0) d = 1;  // keeps what x has
  w.graph.node("Expand", {w.in("x"), w.graph.ints(shape)}, {}, w.out());
}

void tile(const Writing& w) {
  auto repeats = w.attr<ir::Ints>("repeats");
  const int rank = w.shape("x").rank();
  w.require(static_cast<int>(repeats.size()) <= rank, "tiles of more dimensions than x");
  repeats.insert(repeats.begin(), static_cast<size_t>(rank) - repeats.size(), 1);
  w.graph.node("Tile", {w.in("x"), w.graph.ints(repeats)}, {}, w.out());
}

void pad(const Writing& w) {
  const auto pairs = w.attr<ir::Ints>("paddings");
  ir::Ints pads;
  for (size_t i = 0; i < pairs.size(); i += 2) pads.push_back(pairs[i]);
  for (size_t i = 1; i < pairs.size(); i += 2) pads.push_back(pairs[i]);
  Graph& g = w.graph;
  g.node("Pad",
         {w.in("x"), g.ints(pads), g.number(w.attr<double>("value"), g.type(w.in("x")).dtype)},
         {{"mode", w.attr<std::string>("mode")}}, w.out());
}

// A part of the file: every element by `at`.
template <class T, class At>
void constant(const Writing& w, const At& at) {
  const Tensor value(DTypeOf<T>::value, w.out_shape());
  for (int64_t i = 0; i < value.numel(); ++i)
    value.data<T>()[static_cast<size_t>(i)] = static_cast<T>(at(i));
  w.graph.node("Identity", {w.graph.tensor(value)}, {}, w.out());
}
template <class At>
void constant_of_out(const Writing& w, const At& at) {
  for (const int64_t d : w.out_shape()) w.require(d >= 0, "values of unknown number");
  switch (w.graph.type(w.out()).dtype) {
    case DType::kF32: return constant<float>(w, at);
    case DType::kF64: return constant<double>(w, at);
    case DType::kI32: return constant<int32_t>(w, at);
    case DType::kI64: return constant<int64_t>(w, at);
    default: w.require(false, "constants of type ", w.graph.type(w.out()).dtype);
  }
}

void arg_extreme(const Writing& w) {
  Graph& g = w.graph;
  const bool keep = w.attr<bool>("keepdim");
  std::string at = g.node(w.op.type() == "argmax" ? "ArgMax" : "ArgMin", {w.in("x")},
                          {{"axis", w.attr<int64_t>("axis")}, {"keepdims", keep}});
  if (w.shape("x").rank() == 1 && !keep) at = g.node("Reshape", {at, g.ints({1})});
  const auto type = static_cast<int64_t>(element_type(g.type(w.out()).dtype));
  g.node("Cast", {at}, {{"to", type}}, w.out());
}

void add_constants(Writers& to) {
  to["fill"] = [](const Writing& w) {
    const auto value = w.attr<double>("value");
    constant_of_out(w, [=](int64_t) { return value; });
  };
  to["assign_value"] = [](const Writing& w) {
    const auto values = w.attr<ir::Floats>("values");
    constant_of_out(w, [&](int64_t i) { return values[static_cast<size_t>(i)]; });
  };
  to["arange"] = [](const Writing& w) {
    const auto start = w.attr<double>("start"), step = w.attr<double>("step");
    constant_of_out(w, [=](int64_t i) { return start + static_cast<double>(i) * step; });
  };
  to["shape"] = [](const Writing& w) {
    const auto type = static_cast<int64_t>(element_type(w.graph.type(w.out()).dtype));
    w.graph.node("Cast", {w.graph.node("Shape", {w.in("x")})}, {{"to", type}}, w.out());
  };
}

}  // namespace

void add_shapes(Writers& to) {
  to["reshape"] = [](const Writing& w) { reshape(w, w.attr<ir::Ints>("shape")); };
  to["flatten_range"] = reshape_to_out;
  to["flatten"] = [](const Writing& w) {
    w.graph.node("Flatten", {w.in("x")}, {{"axis", w.attr<int64_t>("axis")}}, w.out());
  };
  to["squeeze"] = squeeze;
  to["unsqueeze"] = [](const Writing& w) {
    w.graph.node("Unsqueeze", {w.in("x"), w.graph.ints(w.attr<ir::Ints>("axes"))}, {}, w.out());
  };
  to["transpose"] = [](const Writing& w) {
    w.graph.node("Transpose", {w.in("x")}, {{"perm", w.attr<ir::Ints>("perm")}}, w.out());
  };
  to["concat"] = [](const Writing& w) {
    w.graph.node("Concat", w.op.in("xs"), {{"axis", w.attr<int64_t>("axis")}}, w.out());
  };
  to["gather"] = [](const Writing& w) {
    w.graph.node("Gather", {w.in("x"), w.in("index")}, {{"axis", w.attr<int64_t>("axis")}},
                 w.out());
  };
  to["top_k"] = [](const Writing& w) {
    w.graph.node_many("TopK", {w.in("x"), w.graph.ints({w.attr<int64_t>("k")})},
                      {w.out("out"), w.out("indices")},
                      {{"axis", w.attr<int64_t>("axis")}, {"largest", w.attr<bool>("largest")}});
  };
  to["slice"] = slice;
  to["flip"] = flip;
  to["split"] = split;
  to["stack"] = stack;
  to["expand"] = expand;
  to["tile"] = tile;
  to["pad"] = pad;
  to["argmax"] = arg_extreme;
  to["argmin"] = arg_extreme;
  add_constants(to);
}

}  // namespace fleetx::onnx
