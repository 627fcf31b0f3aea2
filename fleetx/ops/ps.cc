// What a worker does with the parameter servers of its job (kernel/servers.h). Each op stands for
// all parameters or lookups of its kind, so that a step costs few messages.
//
//   ps_pull_rows   out[k][i] = row ids[k][i] of tables[k], zeros where it is padding[k] (-1: none);
//                  out[k].shape = ids[k].shape + [widths[k]]. is_test: rows that are not there yet
//                  are zeros and are not made.
//   ps_push        all gradients of a step, dense and sparse rows alike; names[k] is the parameter
//                  or table of grads[k]. The servers apply scale * grad where scaled[k] is 1, else
//                  grad, with the learning rate lrs[k].
//   ps_count       every id of an example b, but for padding and what is beyond lengths[b], was
//                  shown show[b] times and clicked click[b] times; the next push tells the
//                  servers
//   ps_pull        the values of the next step, written over the parameters
//   ps_init        of the startup program: the first worker's values reach the servers, then
//                  everybody has the servers'
//   ps_exchange    geo: what was learned since the last exchange (param - base) goes to the
//                  servers, what others have learned comes back; param and base are written in
//                  place
//
// None has a gradient: they are put into a program that has its backward part. Values travel
// row-major.
#include <algorithm>

#include "fleetx/kernel/op.h"
#include "fleetx/kernel/servers.h"
#include "fleetx/ops/lib/rows.h"

namespace fleetx::ops {
namespace {

// ---- types ----

void check_names(const ir::Infer& c, std::string_view slot, size_t given, std::string_view attr) {
  c.check(given == c.count(slot), "attribute '", attr, "' has ", given, " entries for ",
          c.count(slot), " of '", slot, "'");
}

void infer_pull_rows(ir::Infer& c) {
  const auto widths = c.attr<ir::Ints>("widths");
  check_names(c, "ids", c.attr<ir::Strings>("tables").size(), "tables");
  check_names(c, "ids", widths.size(), "widths");
  check_names(c, "ids", c.attr<ir::Ints>("padding").size(), "padding");
  c.check(c.out_count("out") == c.count("ids"), "has ", c.count("ids"), " inputs and ",
          c.out_count("out"), " outputs");
  for (size_t k = 0; k < c.count("ids"); ++k) {
    c.check(c.in("ids", k).dtype == i64 || c.in("ids", k).dtype == i32, c.show("ids", k),
            "; must be i64 or i32");
    c.check(widths[k] > 0, "widths must be positive, got ", widths[k]);
    Shape shape = c.in("ids", k).shape;
    shape.push_back(widths[k]);
    c.out("out", k) = {f32, shape};
  }
}

void infer_push(ir::Infer& c) {
  const size_t n = c.count("grads");
  check_names(c, "grads", c.attr<ir::Strings>("names").size(), "names");
  const size_t scaled = c.attr<ir::Ints>("scaled").size();
  c.check(scaled == (c.has("scale") ? n : 0), "attribute 'scaled' has ", scaled, " entries for ", n,
          " gradients; there must be one each where there is a scale, else none");
  c.check(c.count("lrs") == n, "got ", n, " gradients and ", c.count("lrs"), " learning rates");
  for (size_t k = 0; k < n; ++k) {
    c.check(c.in("grads", k).dtype == f32, c.show("grads", k), "; must be f32");
    c.check(c.in("lrs", k) == ir::TensorType{f32, {1}}, c.show("lrs", k), "; must be f32[1]");
  }
  if (c.has("scale"))
    c.check(c.in("scale") == ir::TensorType{f32, {1}}, c.show("scale"), "; must be f32[1]");
}

void infer_count(ir::Infer& c) {
  c.check(c.in("ids").dtype == i64 || c.in("ids").dtype == i32, c.show("ids"),
          "; must be i64 or i32");
  c.check(c.in("ids").shape.rank() >= 1, c.show("ids"), "; the first dimension are the examples");
  for (const char* slot : {"show", "click"}) {
    const DType type = c.in(slot).dtype;
    c.check(type == f32 || type == i64 || type == i32, c.show(slot), "; must be f32, i64 or i32");
  }
  if (c.has("lengths")) {
    c.check(c.in("lengths").dtype == i64, c.show("lengths"), "; must be i64");
    c.check(c.in("ids").shape.rank() >= 2, c.show("ids"), "; sequences have two dimensions");
  }
}

// Outputs are the variables of the inputs.
void infer_in_place(ir::Infer& c) {
  for (const ir::SlotDef& slot : c.op().def->outputs) {
    const std::string input = slot.name.substr(0, slot.name.rfind("_out"));
    c.check(c.op().out(slot.name) == c.op().in(input), "output '", slot.name,
            "' must be the same variables as input '", input, "': they are written in place");
    c.check(c.count(input) == c.count("params"), "got ", c.count("params"), " parameters and ",
            c.count(input), " of '", input, "'");
    for (size_t k = 0; k < c.count(input); ++k) {
      c.check(c.in(input, k).dtype == f32 && c.in(input, k).kind == ir::VarKind::kDense &&
                  c.in(input, k).shape == c.in("params", k).shape,
              c.show(input, k), "; must be f32 and dense, like ", c.show("params", k));
      c.out(slot.name, k) = c.in(input, k);
    }
  }
}

ir::Cost cost_pull_rows(const ir::Infer& c) {
  ir::Cost cost;
  for (size_t k = 0; k < c.count("ids"); ++k)
    cost.bytes += ir::bytes_of(c.in("ids", k)) + ir::bytes_of(c.out("out", k));
  return cost;
}

// ---- kernels ----

class ServersKernel : public kernel::Kernel {
 public:
  explicit ServersKernel(const kernel::Prepare& p) : op_(ir::describe(p.op())) {}
  void bind(const comm::Groups&) override {
    servers_ = kernel::servers_of(op_);
    find();
  }
  std::string_view implementation() const override { return "servers"; }

 protected:
  virtual void find() = 0;  // the handles of what the op names
  kernel::Servers& servers() const { return *servers_; }

 private:
  std::string op_;
  std::shared_ptr<kernel::Servers> servers_;
};

class PullRows final : public ServersKernel {
 public:
  explicit PullRows(kernel::Prepare& p)
      : ServersKernel(p),
        tables_(p.attr<ir::Strings>("tables")),
        padding_(p.attr<ir::Ints>("padding")),
        widths_(p.attr<ir::Ints>("widths")),
        make_(!p.attr<bool>("is_test")) {
    for (size_t k = 0; k < p.count("ids"); ++k) {
      const int64_t n = p.in("ids", k).numel();
      counts_.push_back(n);
      wide_.push_back(p.in("ids", k).dtype == i64);
      ids_.push_back(p.input("ids", k));
      out_.push_back(p.output("out", k));
      // Ids that are really asked for; and, where some are padding, their rows.
      const bool pads = padding_[k] >= 0;
      asked_.push_back(wide_[k] && !pads ? kernel::Slot() : p.scratch(static_cast<size_t>(n) * 8));
      rows_.push_back(pads ? p.scratch(static_cast<size_t>(n * widths_[k]) * 4) : kernel::Slot());
    }
    lookups_.resize(counts_.size());
  }

  void run(const kernel::Run& r) override {
    for (size_t k = 0; k < counts_.size(); ++k) lookups_[k] = lookup(r, k);
    servers().pull_rows(lookups_, make_);
    for (size_t k = 0; k < counts_.size(); ++k)
      if (rows_[k]) spread(r, k);
  }

 private:
  void find() override {
    handles_.clear();
    for (const std::string& table : tables_) handles_.push_back(servers().table(table));
  }

  kernel::Servers::Lookup lookup(const kernel::Run& r, size_t k) const {
    if (!asked_[k]) return {handles_[k], r.in<int64_t>(ids_[k]), counts_[k], r.out<float>(out_[k])};
    const Ids ids(r.raw(ids_[k]), wide_[k]);
    auto* asked = r.out<int64_t>(asked_[k]);
    int64_t n = 0;
    for (int64_t i = 0; i < counts_[k]; ++i) {
      asked[n] = ids(i);
      n += padding_[k] < 0 || asked[n] != padding_[k];
    }
    return {handles_[k], asked, n, rows_[k] ? r.out<float>(rows_[k]) : r.out<float>(out_[k])};
  }

  // The rows that were asked for, with zeros between them.
  void spread(const kernel::Run& r, size_t k) const {
    const Ids ids(r.raw(ids_[k]), wide_[k]);
    const int64_t width = widths_[k];
    const float* from = r.in<float>(rows_[k]);
    float* to = r.out<float>(out_[k]);
    for (int64_t i = 0; i < counts_[k]; ++i, to += width) {
      if (ids(i) == padding_[k]) {
        std::fill_n(to, width, 0.0f);
      } else {
        std::copy_n(from, width, to);
        from += width;
      }
    }
  }

  ir::Strings tables_;
  ir::Ints padding_, widths_;
  bool make_;
  std::vector<int64_t> counts_;
  std::vector<bool> wide_;
  std::vector<kernel::Slot> ids_, out_, asked_, rows_;
  std::vector<int> handles_;
  std::vector<kernel::Servers::Lookup> lookups_;
};

class Push final : public ServersKernel {
 public:
  explicit Push(kernel::Prepare& p)
      : ServersKernel(p),
        names_(p.attr<ir::Strings>("names")),
        scaled_(p.attr<ir::Ints>("scaled")),
        scale_(p.input("scale")) {
    for (size_t k = 0; k < names_.size(); ++k) {
      const kernel::Desc& grad = p.in("grads", k);
      sparse_.push_back(grad.kind == ir::VarKind::kSparseRows);
      capacities_.push_back(grad.rows);
      grads_.push_back(p.input("grads", k));
      lrs_.push_back(p.input("lrs", k));
    }
  }

  void run(const kernel::Run& r) override {
    dense_.clear();
    rows_.clear();
    const float scale = scale_ ? *r.in<float>(scale_) : 1.0f;
    for (size_t k = 0; k < names_.size(); ++k) {
      const float lr = *r.in<float>(lrs_[k]);
      const float own = scale_ && scaled_[k] != 0 ? scale : 1.0f;
      if (sparse_[k]) {
        const kernel::SparseRows rows = r.rows(grads_[k], capacities_[k]);
        rows_.push_back({handles_[k], rows.ids, *rows.count, rows.values, lr, own});
      } else {
        dense_.push_back({handles_[k], r.in<float>(grads_[k]), lr, own});
      }
    }
    servers().push(dense_, rows_);
  }

 private:
  void find() override {
    handles_.clear();
    for (size_t k = 0; k < names_.size(); ++k)
      handles_.push_back(sparse_[k] ? servers().table(names_[k]) : servers().parameter(names_[k]));
    dense_.reserve(names_.size());
    rows_.reserve(names_.size());
  }

  ir::Strings names_;
  ir::Ints scaled_;
  kernel::Slot scale_;
  std::vector<bool> sparse_;
  std::vector<int64_t> capacities_;
  std::vector<kernel::Slot> grads_, lrs_;
  std::vector<int> handles_;
  std::vector<kernel::Servers::Gradient> dense_;
  std::vector<kernel::Servers::RowGradient> rows_;
};

class Count final : public ServersKernel {
 public:
  explicit Count(kernel::Prepare& p)
      : ServersKernel(p),
        table_(p.attr<std::string>("table")),
        padding_(p.attr<int64_t>("padding")),
        wide_(p.in("ids").dtype == i64),
        ids_(p.input("ids")),
        show_(p.input("show")),
        click_(p.input("click")),
        lengths_(p.input("lengths")),
        show_type_(p.in("show").dtype),
        click_type_(p.in("click").dtype) {
    const Shape& shape = p.in("ids").shape;
    examples_ = shape[0];
    for (int d = 1; d < shape.rank(); ++d) each_ *= shape[d];
    of_item_ = shape.rank() > 1 && shape[1] > 0 ? each_ / shape[1] : 1;
    for (const char* slot : {"show", "click"})
      check_arg(p.in(slot).numel() == examples_, ir::describe(p.op()), "'", slot, "' has ",
                p.in(slot).numel(), " values for ", examples_, " examples; expected one each");
  }

  void run(const kernel::Run& r) override {
    asked_.clear();
    shows_.clear();
    clicks_.clear();
    const Ids ids(r.raw(ids_), wide_);
    for (int64_t b = 0; b < examples_; ++b) {
      const int64_t n = lengths_ ? std::min(each_, r.in<int64_t>(lengths_)[b] * of_item_) : each_;
      for (int64_t i = 0; i < n; ++i) {
        const int64_t id = ids(b * each_ + i);
        if (padding_ >= 0 && id == padding_) continue;
        asked_.push_back(id);
        shows_.push_back(number(r, show_, show_type_, b));
        clicks_.push_back(number(r, click_, click_type_, b));
      }
    }
    servers().count({handle_, asked_, shows_, clicks_});
  }

 private:
  void find() override { handle_ = servers().table(table_); }
  static float number(const kernel::Run& r, kernel::Slot slot, DType type, int64_t i) {
    if (type == f32) return r.in<float>(slot)[i];
    return static_cast<float>(Ids(r.raw(slot), type == i64)(i));
  }

  std::string table_;
  int64_t padding_;
  bool wide_;
  kernel::Slot ids_, show_, click_, lengths_;
  DType show_type_, click_type_;
  int64_t examples_ = 0, each_ = 1, of_item_ = 1;
  int handle_ = 0;
  std::vector<int64_t> asked_;
  std::vector<float> shows_, clicks_;
};

// A variable that is read and written; the plan may have put the two at different places.
struct InOut {
  InOut(kernel::Prepare& p, const std::string& slot, size_t k)
      : in(p.input(slot, k)), out(p.output(slot + "_out", k)), count(p.in(slot, k).numel()) {}
  float* updated(const kernel::Run& r) const {
    if (r.raw(in) != r.raw(out)) std::copy_n(r.in<float>(in), count, r.out<float>(out));
    return r.out<float>(out);
  }
  kernel::Slot in, out;
  int64_t count;
};

// ps_pull, ps_init and ps_exchange.
class Values final : public ServersKernel {
 public:
  explicit Values(kernel::Prepare& p)
      : ServersKernel(p), type_(p.op().type()), names_(p.op().in("params")) {
    for (size_t k = 0; k < p.count("params"); ++k) {
      params_.emplace_back(p, "params", k);
      if (type_ == "ps_exchange") bases_.emplace_back(p, "bases", k);
    }
  }

  void run(const kernel::Run& r) override {
    if (!bases_.empty()) {
      for (size_t k = 0; k < params_.size(); ++k)
        exchanges_[k] = {handles_[k], params_[k].updated(r), bases_[k].updated(r)};
      return servers().exchange(exchanges_);
    }
    const bool first = type_ == "ps_init";
    for (size_t k = 0; k < params_.size(); ++k)
      values_[k] = {handles_[k], first ? params_[k].updated(r) : r.out<float>(params_[k].out)};
    if (first)
      servers().start_with(values_);
    else
      servers().pull(values_);
  }

 private:
  void find() override {
    handles_.clear();
    for (const std::string& name : names_) handles_.push_back(servers().parameter(name));
    values_.resize(names_.size());
    exchanges_.resize(bases_.size());
  }

  std::string type_;
  ir::Names names_;
  std::vector<InOut> params_, bases_;
  std::vector<int> handles_;
  std::vector<kernel::Servers::Value> values_;
  std::vector<kernel::Servers::Exchange> exchanges_;
};

// ---- registration ----

FLEETX_OP(ps_pull_rows)
    .input("ids", ir::Arity::kMany)
    .output("out", ir::Arity::kMany)
    .required_attr("tables", ir::AttrType::kStrings)
    .required_attr("widths", ir::AttrType::kInts)
    .required_attr("padding", ir::AttrType::kInts)
    .attr("is_test", false)
    .infer(infer_pull_rows)
    .cost(cost_pull_rows)
    .kernel<PullRows>();

FLEETX_OP(ps_push)
    .input("grads", ir::Arity::kMany)
    .input("lrs", ir::Arity::kMany)
    .input("scale", ir::Arity::kOptional)
    .required_attr("names", ir::AttrType::kStrings)
    .attr("scaled", ir::Ints{})
    .infer(infer_push)
    .kernel<Push>()
    .side_effect();

FLEETX_OP(ps_count)
    .input("ids")
    .input("show")
    .input("click")
    .input("lengths", ir::Arity::kOptional)
    .required_attr("table", ir::AttrType::kString)
    .attr("padding", -1)
    .infer(infer_count)
    .kernel<Count>()
    .side_effect();

FLEETX_OP(ps_pull)
    .input("params", ir::Arity::kMany)
    .output("params_out", ir::Arity::kMany)
    .infer(infer_in_place)
    .kernel<Values>()
    .side_effect();

FLEETX_OP(ps_init)
    .input("params", ir::Arity::kMany)
    .output("params_out", ir::Arity::kMany)
    .infer(infer_in_place)
    .kernel<Values>()
    .side_effect();

FLEETX_OP(ps_exchange)
    .input("params", ir::Arity::kMany)
    .input("bases", ir::Arity::kMany)
    .output("params_out", ir::Arity::kMany)
    .output("bases_out", ir::Arity::kMany)
    .infer(infer_in_place)
    .kernel<Values>()
    .side_effect();

}  // namespace
}  // namespace fleetx::ops
