#include "fleetx/strategies/divide_layers.h"

#include <algorithm>
#include <map>
#include <set>

#include "fleetx/ir/divided.h"
#include "fleetx/ir/infer.h"
#include "fleetx/ir/rewriter.h"

namespace fleetx::strategies {
namespace {

using ir::kModelAxis;
using ir::Names;
using Position = ir::Rewriter::Position;

// The axis along which the weight of an fc is to be divided; -1: it stays whole.
int axis_of(const ir::Program& main, const ir::Op& op) {
  if (op.type() != "fc") return -1;
  const ir::VarInfo& w = main.var(op.in("w").front());
  const auto it = w.attrs.find(ir::kDivideAttr);
  if (it == w.attrs.end() || !w.placement.is_replicated()) return -1;
  return static_cast<int>(it->second.as<int64_t>());
}

class Divide {
 public:
  Divide(Programs& programs, int ranks)
      : programs_(programs), rw_(programs.main), startup_(programs.startup), ranks_(ranks) {}

  void run() {
    for (Position op = rw_.begin(); op != rw_.end(); ++op) {
      const int axis = axis_of(rw_.program(), *op);
      if (axis == 1)
        by_columns(op);
      else if (axis == 0)
        op = by_rows(op);
      else if (reads_parts(*op))
        follow(op);
    }
  }

 private:
  ir::Attrs in_group() const { return {{"group", kModelAxis}, {"ranks", ranks_}}; }

  bool reads_parts(const ir::Op& op) const {
    for (const Names& names : op.inputs)
      for (const std::string& name : names)
        if (parts_.contains(name)) return true;
    return false;
  }

  // Layers that read the same x share one group_identity, so its gradient is one all_reduce.
  void by_columns(Position op) {
    const std::string x = op->in("x").front();
    check_arg(!parts_.contains(x), ir::describe(*op), "is to be divided by columns, but '", x,
              "', which it reads, is a part already: a layer by rows has to stand between them");
    auto [it, is_new] = borders_.try_emplace(x);
    if (is_new) {
      it->second = rw_.fresh_name(x + "@PARTS");
      rw_.insert(op, {.type = "group_identity",
                      .inputs = {{"x", {x}}},
                      .outputs = {{"out", {it->second}}},
                      .attrs = in_group(),
                      .name = op->name,
                      .loc = op->loc,
                      .stage = op->stage});
    }
    rw_.set_inputs(op, "x", {it->second});
    divide(*op, op->in("w").front(), 1);
    if (op->has_in("bias")) divide(*op, op->in("bias").front(), 0);
    infer_outputs(op);
  }

  // The bias is added once, behind the sum.
  Position by_rows(Position op) {
    const std::string x = op->in("x").front(), out = op->out("out").front();
    check_arg(parts_.contains(x), ir::describe(*op), "is to be divided by rows, but '", x,
              "', which it reads, is whole: a layer by columns has to stand before it");
    divide(*op, op->in("w").front(), 0);
    const Names bias = op->in("bias");
    ir::VarInfo own = rw_.program().var(out);
    own.name = rw_.fresh_name(out + "@OWN");
    rw_.add_var(own);
    rw_.set_inputs(op, "bias", {});
    rw_.set_outputs(op, "out", {own.name});
    const std::string sum = bias.empty() ? out : rw_.fresh_name(out + "@SUM");
    const Position behind = std::next(op);
    const auto insert = [&](ir::Rewriter::NewOp made) {
      made.name = op->name;
      made.loc = op->loc;
      made.stage = op->stage;
      return rw_.insert(behind, made);
    };
    Position last = insert({.type = "group_sum",
                            .inputs = {{"x", {own.name}}},
                            .outputs = {{"out", {sum}}},
                            .attrs = in_group()});
    if (!bias.empty())
      last = insert({.type = "elementwise_add",
                     .inputs = {{"x", {sum}}, {"y", bias}},
                     .outputs = {{"out", {out}}}});
    return last;
  }

  // Computes with parts: its sizes follow from those of its inputs, but for the number of heads.
  void follow(Position op) {
    if (op->def->find_attr("heads") != nullptr) {
      const auto heads = op->attr<int64_t>("heads");
      check_arg(heads % ranks_ == 0, ir::describe(*op), "the ", heads,
                " heads cannot be divided between ", ranks_,
                " ranks; choose an mp_degree that divides them");
      rw_.set_attr(op, "heads", heads / ranks_);
    }
    infer_outputs(op);
  }

  void infer_outputs(Position op) {
    const auto types = ir::infer_types(*op, [&](const std::string& name) -> const ir::TensorType& {
      return rw_.program().var(name).type;
    });
    for (size_t s = 0; s < op->outputs.size(); ++s)
      for (size_t i = 0; i < op->outputs[s].size(); ++i) {
        rw_.edit_var(op->outputs[s][i]).type = types[s][i];
        parts_.insert(op->outputs[s][i]);
      }
  }

  void divide(const ir::Op& op, const std::string& name, int dim) {
    if (rw_.program().var(name).placement.is_sharded()) return;  // another layer reads it, too
    const Shape whole = rw_.program().var(name).type.shape;
    check_arg(whole[dim] % ranks_ == 0, ir::describe(op), "dimension ", dim, " of '", name, "' is ",
              whole[dim], ", which cannot be divided between ", ranks_,
              " ranks; choose an mp_degree that divides it");
    const auto placement = ir::Placement::sharded(kModelAxis, dim);
    Shape part = whole;
    part[dim] /= ranks_;
    const auto change = [&](ir::VarInfo& info) {
      info.type.shape = part;
      info.placement = placement;
    };
    change(rw_.edit_var(name));
    if (programs_.startup.find(name) == nullptr) return;
    change(startup_.edit_var(name));
    keep_part(name, whole, part, dim);
  }

  // Startup draws the whole and keeps the part of this rank; every part of a constant is that
  // constant.
  void keep_part(const std::string& name, const Shape& whole, const Shape& part, int dim) {
    const Position op = startup_.last_writer(name);
    FLEETX_CHECK(op != startup_.end(), "startup does not make '", name, "'");
    if (op->type() == "fill") return startup_.set_attr(op, "shape", part);
    ir::VarInfo all;
    all.name = name + std::string(ir::kWholeSuffix);
    all.type = {programs_.startup.var(name).type.dtype, whole};
    startup_.add_var(all);
    for (size_t s = 0; s < op->outputs.size(); ++s) {
      Names outputs = op->outputs[s];
      std::replace(outputs.begin(), outputs.end(), name, all.name);
      startup_.set_outputs(op, op->def->outputs[s].name, outputs);
    }
    ir::Attrs attrs = in_group();
    attrs.emplace("axis", dim);
    startup_.insert(std::next(op), {.type = "group_part",
                                    .inputs = {{"x", {all.name}}},
                                    .outputs = {{"out", {name}}},
                                    .attrs = std::move(attrs),
                                    .name = op->name,
                                    .loc = op->loc});
  }

  Programs& programs_;
  ir::Rewriter rw_, startup_;
  int64_t ranks_;
  std::set<std::string, std::less<>> parts_;    // values of which each rank has its own
  std::map<std::string, std::string> borders_;  // what layers by columns read, behind its border
};

}  // namespace

bool has_divisible_layers(const ir::Program& main) {
  return std::any_of(main.ops().begin(), main.ops().end(),
                     [&](const ir::Op& op) { return axis_of(main, op) >= 0; });
}

void divide_layers(Programs& programs, int ranks) { Divide(programs, ranks).run(); }

}  // namespace fleetx::strategies
