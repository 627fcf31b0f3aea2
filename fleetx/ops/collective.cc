// What ranks of a group compute together. Each op takes a list of dense variables xs and makes out,
// one for one; r is this rank, n the number of ranks, all ranks have xs of the same types.
//
//   op              out of rank r                                       gradient
//   all_reduce      op over all ranks of x                              all_reduce of the same op
//   reduce_scatter  part r of op over all ranks of x                    all_gather
//   all_gather      the x of all ranks, in their order                  reduce_scatter (sum)
//   broadcast       the x of rank root                                  reduce (sum)
//   reduce          rank root: op over all ranks of x; others: zeros    broadcast
//   all_to_all      part j is part r of the x of rank j                 all_to_all
//   send            link, a zero; rank peer gets xs                     recv
//   recv            what rank peer sends                                send
//
// op is sum, average, max, min or prod; the last three have no gradient. A part is the n-th part of
// dimension 0; a program that has parts says for how many `ranks` it is. Ranks are combined in
// their order, halves in f32: all ranks get the same bits. A gradient is that of the sum of the
// losses of all ranks.
//
// send and recv are differentiable only where backward gets to them: link must be part of the loss
// of the sender (it is zero), and the link that recv may read must need a gradient. Backward then
// sends the gradients of what was received, in the order of backward, back to where it came from.
// recv makes one variable: of the type of `like`, or of shape and dtype. With per_row, dimension d
// is shape[d] + per_row[d] * (rows of `like`) / parts: what a rank receives of a batch of any size.
//
// Every op has two more forms, for calls beside the computation:
//
//   out, ticket = <op>_start(xs)    the thread of the group makes the call; all ranks start the
//                                   same calls in the same order, and nobody reads out until
//   out = <op>_wait(out, ticket)    has waited for it
//
// send_wait takes xs instead of out, as send_start makes none. Where the call reads xs until it is
// done (reduce_scatter, all_to_all), wait names them again as `held`.
//
// all_reduce, reduce and broadcast may write the very variables they read. Started so, they are one
// call on one bucket (see kernel::Bucket) where the planner can put all of them there and, if they
// are to be reduced, they are f32, bf16 or f16; else each variable is a call. `step` is for errors.
#include "fleetx/ops/collective.h"

#include <array>

#include "fleetx/ops/lib/ranks.h"

namespace fleetx::ops {
namespace {

using comm::CallKind;

constexpr std::array<Collective, 8> kCollectives{{
    {.name = "all_reduce", .call = CallKind::kAllReduce, .reduces = true, .in_place = true},
    {.name = "reduce_scatter",
     .call = CallKind::kReduceScatter,
     .reduces = true,
     .resizes = true,
     .reads_late = true},
    {.name = "all_gather", .call = CallKind::kAllGather, .resizes = true},
    {.name = "broadcast", .call = CallKind::kBroadcast, .rooted = true, .in_place = true},
    {.name = "reduce",
     .call = CallKind::kReduce,
     .reduces = true,
     .rooted = true,
     .in_place = true},
    {.name = "all_to_all", .call = CallKind::kAllToAll, .resizes = true, .reads_late = true},
    {.name = "send", .call = CallKind::kSend, .is_message = true},
    {.name = "recv", .call = CallKind::kRecv, .is_message = true},
}};

// ---- types ----

bool can_be_reduced(DType dtype) { return dtype != u8 && dtype != boolean; }

void check_attrs(const ir::Infer& c, const Collective& of) {
  c.check(!c.attr<std::string>("group").empty(), "group is \"\"; must name a group of ranks");
  if (of.reduces)
    c.check(reduce_op_of(c.attr<std::string>("op")).has_value(), "op is \"",
            c.attr<std::string>("op"), "\"; must be sum, average, max, min or prod");
  if (of.rooted)
    c.check(c.attr<int64_t>("root") >= 0, "root is ", c.attr<int64_t>("root"),
            "; must not be negative");
  if (of.resizes) check_ranks(c);
  if (!of.is_message) return;
  c.check(c.attr<int64_t>("peer") >= 0, "peer is ", c.attr<int64_t>("peer"),
          "; must not be negative");
  const auto tag = c.attr<int64_t>("tag");
  c.check(tag >= 0 && tag < (1 << 28), "tag is ", tag, "; must be in [0, 2^28)");
}

void check_x(const ir::Infer& c, const Collective& of, size_t i) {
  const ir::TensorType& x = c.in("xs", i);
  c.check(x.kind == ir::VarKind::kDense, c.show("xs", i), "; must be dense");
  if (!of.reduces) return;
  c.check(can_be_reduced(x.dtype), c.show("xs", i), "; ", name_of(x.dtype),
          " cannot be combined, expected f32, f64, f16, bf16, i32 or i64");
  c.check(is_float(x.dtype) || c.attr<std::string>("op") != "average", c.show("xs", i),
          "; an average needs floating-point numbers");
  c.check(x.dtype == c.in("xs").dtype, c.show("xs", i), ", but ", c.show("xs"),
          "; all must have one dtype");
}

// What the other ranks make of x.
ir::TensorType result_of(const ir::Infer& c, const Collective& of, size_t i) {
  ir::TensorType out = c.in("xs", i);
  if (!of.resizes) return out;
  c.check(out.shape.rank() >= 1, c.show("xs", i), "; must have a dimension 0");
  const auto ranks = c.attr<int64_t>("ranks");
  if (of.call == CallKind::kAllGather) {
    out.shape[0] *= ranks;
    return out;
  }
  c.check(c.by_example() || out.shape[0] % ranks == 0, c.show("xs", i),
          "; dimension 0 must be a multiple of ranks, which is ", ranks);
  if (of.call == CallKind::kReduceScatter) out.shape[0] /= ranks;
  return out;
}

ir::TensorType received_by_row(const ir::Infer& c, const ir::Ints& per_row) {
  auto shape = c.attr<Shape>("shape");
  const auto parts = c.attr<int64_t>("parts");
  c.check(std::ssize(per_row) == shape.rank(), "per_row has ", per_row.size(),
          " numbers, shape is ", shape);
  c.check(parts >= 1, "parts is ", parts, "; must be positive");
  c.check(c.in("like").shape.rank() >= 1, c.show("like"), "; must have a dimension 0");
  const int64_t rows = c.in("like").shape[0];
  c.check(c.by_example() || rows % parts == 0, c.show("like"), "; its rows cannot be cut into ",
          parts, " equal parts");
  for (int d = 0; d < shape.rank(); ++d)
    shape[d] += per_row[static_cast<size_t>(d)] * (rows / parts);
  return {c.attr<DType>("dtype"), shape};
}

ir::TensorType received(const ir::Infer& c) {
  if (c.has("like")) {
    c.check(c.in("like").kind == ir::VarKind::kDense, c.show("like"), "; must be dense");
    const auto per_row = c.attr<ir::Ints>("per_row");
    return per_row.empty() ? c.in("like") : received_by_row(c, per_row);
  }
  const auto shape = c.attr<Shape>("shape");
  c.check(shape.known(), "shape is ", shape,
          "; must be known: give a variable `like` that has the same type");
  return {c.attr<DType>("dtype"), shape};
}

void infer(ir::Infer& c) {
  const auto [of, form] = collective_of(c.op().type());
  check_attrs(c, *of);
  if (form == Form::kStart) c.out("ticket") = {i64, {kTicketSize}};
  if (form == Form::kStart && c.has("step"))
    c.check(c.in("step").dtype == i64 && c.in("step").shape.numel() == 1, c.show("step"),
            "; expected i64[1]");
  if (of->call == CallKind::kRecv) {
    c.check(c.out_count("out") == 1, "makes ", c.out_count("out"), " variables; must be one");
    c.out("out") = received(c);
    return;
  }
  for (size_t i = 0; i < c.count("xs"); ++i) check_x(c, *of, i);
  if (of->call == CallKind::kSend) {
    if (form == Form::kBlocking) c.out("link") = {f32, {1}};
    return;
  }
  c.check(c.out_count("out") == c.count("xs"), "has ", c.count("xs"), " inputs and ",
          c.out_count("out"), " outputs");
  for (size_t i = 0; i < c.count("xs"); ++i) c.out("out", i) = result_of(c, *of, i);
}

void infer_wait(ir::Infer& c) {
  const auto [of, form] = collective_of(c.op().type());
  check_attrs(c, *of);
  c.check(c.in("ticket") == ir::TensorType{i64, {kTicketSize}}, c.show("ticket"),
          "; expected what ", of->name, "_start makes");
  c.check(c.out_count("out") == c.count("xs"), "has ", c.count("xs"), " inputs and ",
          c.out_count("out"), " outputs");
  for (size_t i = 0; i < c.count("xs"); ++i) c.out("out", i) = c.in("xs", i);
  if (!of->reads_late) return;
  c.check(c.count("held") == c.count("xs"), "has ", c.count("xs"), " inputs and holds ",
          c.count("held"), "; `held` must be what ", of->name, "_start has read");
}

// ---- cost ----

ir::CommKind comm_kind_of(CallKind call) {
  switch (call) {
    case CallKind::kAllReduce: return ir::CommKind::kAllReduce;
    case CallKind::kReduceScatter: return ir::CommKind::kReduceScatter;
    case CallKind::kAllGather: return ir::CommKind::kAllGather;
    case CallKind::kBroadcast: return ir::CommKind::kBroadcast;
    case CallKind::kReduce: return ir::CommKind::kReduce;
    case CallKind::kAllToAll: return ir::CommKind::kAllToAll;
    case CallKind::kSend: return ir::CommKind::kSend;
    case CallKind::kRecv: return ir::CommKind::kReceive;
    case CallKind::kBarrier: break;
  }
  return ir::CommKind::kNone;
}

// The start of a call has all of its cost; the wait has none.
ir::Cost cost(const ir::Infer& c) {
  const CallKind call = collective_of(c.op().type()).collective->call;
  if (call == CallKind::kRecv)
    return {.communication = {ir::CommKind::kReceive, c.attr<std::string>("group"),
                              ir::bytes_of(c.out("out"))}};
  return {.communication = ir::communication_of(c, comm_kind_of(call), "xs")};
}

// ---- gradients ----

// One op over the gradients of all outs whose xs need one.
void grad_by(ir::Grad& g, std::string_view type, ir::Attrs attrs) {
  std::vector<ir::Var> douts;
  ir::Names names;
  std::vector<size_t> places;
  for (size_t i = 0; i < g.count("xs"); ++i) {
    if (!g.needs("xs", i)) continue;
    douts.push_back(g.dout("out", i));
    names.push_back(g.dx("xs", i));
    places.push_back(i);
  }
  attrs.emplace("group", g.attr<std::string>("group"));
  const ir::Results made = g.op(type, {{"xs", douts}}, std::move(attrs), {{"out", names}});
  for (size_t i = 0; i < names.size(); ++i) g.set("xs", places[i], made.all("out")[i]);
}

// The op that ranks are combined by, where it has a gradient.
std::string differentiable_op(const ir::Grad& g, std::initializer_list<std::string_view> which) {
  auto op = g.attr<std::string>("op");
  for (const std::string_view known : which)
    if (op == known) return op;
  fail(Error::Kind::kInvalidArgument,
       str(ir::describe(g.op()), "op \"", op, "\" has no gradient in the group '",
           g.attr<std::string>("group"), "'; set stop_gradient on its inputs, or use \"sum\""));
}

void grad_all_reduce(ir::Grad& g) {
  grad_by(g, "all_reduce", {{"op", differentiable_op(g, {"sum", "average"})}});
}

void grad_reduce_scatter(ir::Grad& g) {
  const auto ranks = g.attr<int64_t>("ranks");
  if (differentiable_op(g, {"sum", "average"}) == "sum")
    return grad_by(g, "all_gather", {{"ranks", ranks}});
  // The same as of the sum, divided by the number of ranks.
  for (size_t i = 0; i < g.count("xs"); ++i) {
    if (!g.needs("xs", i)) continue;
    const ir::Var share =
        g.op("scale", {{"x", g.dout("out", i)}}, {{"scale", 1.0 / static_cast<double>(ranks)}});
    g.set("xs", i,
          g.op("all_gather", {{"xs", std::vector{share}}},
               {{"group", g.attr<std::string>("group")}, {"ranks", ranks}},
               {{"out", ir::Names{g.dx("xs", i)}}}));
  }
}

void grad_all_gather(ir::Grad& g) {
  grad_by(g, "reduce_scatter", {{"op", "sum"}, {"ranks", g.attr<int64_t>("ranks")}});
}

void grad_broadcast(ir::Grad& g) {
  grad_by(g, "reduce", {{"op", "sum"}, {"root", g.attr<int64_t>("root")}});
}

void grad_reduce(ir::Grad& g) {
  (void)differentiable_op(g, {"sum"});
  grad_by(g, "broadcast", {{"root", g.attr<int64_t>("root")}});
}

void grad_all_to_all(ir::Grad& g) {
  grad_by(g, "all_to_all", {{"ranks", g.attr<int64_t>("ranks")}});
}

ir::Attrs message_attrs(const ir::Grad& g) {
  return {{"group", g.attr<std::string>("group")},
          {"peer", g.attr<int64_t>("peer")},
          {"tag", g.attr<int64_t>("tag")}};
}

// The receiver sends a gradient of every float, whether it is needed here or not.
void grad_send(ir::Grad& g) {
  for (size_t i = 0; i < g.count("xs"); ++i) {
    const ir::Var x = g.in("xs", i);
    if (is_float(x.dtype()))
      g.set("xs", i,
            g.op("recv", {{"like", x}}, message_attrs(g), {{"out", ir::Names{g.dx("xs", i)}}}));
  }
}

void grad_recv(ir::Grad& g) {
  if (!g.has("link") || !g.needs("link")) return;
  g.set("link", g.op("send", {{"xs", std::vector{g.dout("out")}}}, message_attrs(g),
                     {{"link", g.dx("link")}}));
}

void (*grad_of(CallKind call))(ir::Grad&) {
  switch (call) {
    case CallKind::kAllReduce: return grad_all_reduce;
    case CallKind::kReduceScatter: return grad_reduce_scatter;
    case CallKind::kAllGather: return grad_all_gather;
    case CallKind::kBroadcast: return grad_broadcast;
    case CallKind::kReduce: return grad_reduce;
    case CallKind::kAllToAll: return grad_all_to_all;
    case CallKind::kSend: return grad_send;
    case CallKind::kRecv: return grad_recv;
    case CallKind::kBarrier: break;
  }
  return nullptr;
}

// ---- registration ----

std::string type_of(const Collective& of, Form form) {
  constexpr std::string_view kSuffix[] = {"", "_start", "_wait"};
  return str(of.name, kSuffix[static_cast<size_t>(form)]);
}

ir::OpRegistrar definition(const Collective& of, Form form) {
  const bool sends = of.call == CallKind::kSend, receives = of.call == CallKind::kRecv;
  ir::OpRegistrar op(type_of(of, form));
  if (form == Form::kWait) {
    op.input("xs", ir::Arity::kMany).input("ticket");
    if (of.reads_late) op.input("held", ir::Arity::kMany);
    op.output("out", ir::Arity::kMany).infer(infer_wait).view("out", "xs");
  } else {
    if (receives)
      op.input("like", ir::Arity::kOptional).shape_only("like");
    else
      op.input("xs", ir::Arity::kMany);
    if (form == Form::kStart) op.input("step", ir::Arity::kOptional);
    if (form == Form::kBlocking && receives) op.input("link", ir::Arity::kOptional);
    if (!sends) op.output("out", ir::Arity::kMany);
    if (form == Form::kBlocking && sends) op.output("link");
    if (form == Form::kStart) op.output("ticket");
    if (of.in_place) op.in_place("out", "xs");
    op.infer(infer).cost(cost);
  }
  if (form == Form::kBlocking) op.grad(grad_of(of.call));
  op.required_attr("group", ir::AttrType::kString);
  if (of.reduces) op.required_attr("op", ir::AttrType::kString);
  if (of.rooted) op.attr("root", 0);
  if (of.resizes) op.required_attr("ranks", ir::AttrType::kInt);
  if (of.is_message) op.required_attr("peer", ir::AttrType::kInt).attr("tag", 0);
  if (receives && form != Form::kWait)
    op.attr("shape", ir::Ints{}).attr("dtype", "f32").attr("per_row", ir::Ints{}).attr("parts", 1);
  op.kernel(make_collective_kernel).collective();
  const bool same_for_all = of.call == CallKind::kAllReduce || of.call == CallKind::kAllGather ||
                            of.call == CallKind::kBroadcast;
  if (same_for_all && form != Form::kStart) op.uniform("out");
  return op;
}

const bool kRegistered = [] {
  for (const Collective& of : kCollectives)
    for (const Form form : {Form::kBlocking, Form::kStart, Form::kWait})
      (void)ir::RegisterOp(definition(of, form));
  return true;
}();

}  // namespace

CollectiveOp collective_of(std::string_view type) {
  for (const Collective& of : kCollectives)
    for (const Form form : {Form::kBlocking, Form::kStart, Form::kWait})
      if (type == type_of(of, form)) return {&of, form};
  FLEETX_CHECK(false, "'", type, "' is not a collective op");
  return {};
}

std::optional<comm::ReduceOp> reduce_op_of(std::string_view name) {
  using comm::ReduceOp;
  for (const ReduceOp op :
       {ReduceOp::kSum, ReduceOp::kAverage, ReduceOp::kMax, ReduceOp::kMin, ReduceOp::kProd})
    if (name == comm::name_of(op)) return op;
  return std::nullopt;
}

}  // namespace fleetx::ops
