// split: x cut along an axis into `outs`: lengths `sections` (one may be -1: the rest), or `num`
// equal parts, each of the length `part` if that is given. `micro_batches` says that a pipeline
// cuts a batch so; errors then say what to feed. Any dtype. dx = concat(douts).
#include "fleetx/ops/lib/copy_kernel.h"
#include "fleetx/ops/lib/pieces.h"

namespace fleetx::ops {
namespace {

// What to do about a batch that is not `count` parts.
std::string remedy(const ir::Infer& c, int64_t rows, int64_t count) {
  if (!c.attr<bool>("micro_batches")) return "";
  const int64_t less = rows / count * count;
  return str(", the micro-batches of a pipeline; feed a number of rows that ", count, " divides (",
             less > 0 ? str(less, " or ") : "", less + count,
             "), leave out a last batch that is smaller, or choose accumulate_steps in "
             "pipeline_configs so that it divides ",
             rows);
}

void infer(ir::Infer& c) {
  const ir::TensorType& x = c.in("x");
  const int axis = checked_axis(c, "x");
  const auto count = static_cast<int64_t>(c.out_count("outs"));
  const auto num = c.attr<int64_t>("num");
  auto sections = c.attr<ir::Ints>("sections");
  const int64_t length = x.shape[axis];
  c.check(count > 0, "outs must be named");
  if (sections.empty()) {
    c.check(num == 0 || num == count, "num is ", num, ", but there are ", count, " outs");
    c.check(c.by_example() || length % count == 0, c.show("x"), "; axis ", axis,
            " cannot be cut into ", count, " equal parts", remedy(c, length, count));
    const auto part = c.attr<int64_t>("part");
    c.check(part == 0 || c.by_example() || length == part * count, c.show("x"), "; axis ", axis,
            " has the length ", length, ", but ", count, " parts of ", part, " make ", part * count,
            c.attr<bool>("micro_batches") ? ", which is accumulate_steps times micro_batch_size of "
                                            "pipeline_configs; feed so many rows, or choose a "
                                            "micro_batch_size of 1, which stands for any"
                                          : "");
    sections.assign(static_cast<size_t>(count), length / count);
  }
  c.check(static_cast<int64_t>(sections.size()) == count, sections.size(), " sections ",
          Shape(sections), ", but ", count, " outs");
  int64_t sum = 0;
  int64_t* rest = nullptr;
  for (int64_t& section : sections) {
    c.check(section >= 0 || (section == -1 && rest == nullptr), "sections ", Shape(sections),
            ": lengths, and at most one -1");
    if (section == -1)
      rest = &section;
    else
      sum += section;
  }
  c.check(c.by_example() || (rest ? sum <= length : sum == length), c.show("x"), "; sections ",
          Shape(sections), " do not make up ", length, " on axis ", axis);
  if (rest) *rest = length - sum;
  for (size_t i = 0; i < sections.size(); ++i) {
    ir::TensorType out = x;
    out.shape[axis] = sections[i];
    c.out("outs", i) = out;
  }
}

void grad(ir::Grad& g) {
  std::vector<ir::Var> douts;
  for (size_t i = 0; i < g.op().out("outs").size(); ++i) douts.push_back(g.dout("outs", i));
  g.set("x",
        g.op("concat", {{"xs", douts}}, {{"axis", g.attr<int64_t>("axis")}}, {{"out", g.dx("x")}}));
}

FLEETX_OP(split)
    .input("x")
    .output("outs", ir::Arity::kMany)
    .attr("sections", ir::Ints{})
    .attr("num", 0)
    .attr("part", 0)
    .attr("micro_batches", false)
    .attr("axis", 0)
    .infer(infer)
    .grad(grad)
    .kernel(+[](kernel::Prepare& p) {
      return make_cut(p, "x", normalize_axis(p.attr<int64_t>("axis"), p.in("x").shape.rank()),
                      "outs");
    });

}  // namespace
}  // namespace fleetx::ops
