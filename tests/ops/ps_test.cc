#include <gtest/gtest.h>

#include <map>

#include "fleetx/ir/builder.h"
#include "fleetx/kernel/servers.h"
#include "fleetx/runtime/executor.h"
#include "tests/support/expect_error.h"
#include "tests/support/op_case.h"
#include "tests/support/tabulate.h"

namespace fleetx::testing {
namespace {

// Servers whose answers can be computed by hand: row `id` of table t is {id, id + t, ...}, the
// values of parameters are 100. What is pushed is kept. The last letter of a name is its number.
class Known final : public kernel::Servers {
 public:
  int parameter(std::string_view name) override { return number(name); }
  int table(std::string_view name) override { return number(name); }
  static float row(int table, int64_t id, int64_t column) {
    return static_cast<float>(id + table * column);
  }
  void pull_rows(std::span<const Lookup> lookups, bool make) override {
    for (const Lookup& l : lookups)
      for (int64_t i = 0; i < l.count; ++i)
        for (int64_t c = 0; c < kWidth; ++c)
          l.rows[i * kWidth + c] = make ? row(l.table, l.ids[i], c) : 0.0f;
  }
  void push(std::span<const Gradient> dense, std::span<const RowGradient> rows) override {
    pushed.clear();
    for (const Gradient& g : dense)
      pushed.push_back({'p', g.parameter, g.values[0], g.lr, g.scale, 1});
    for (const RowGradient& g : rows)
      pushed.push_back({'t', g.table, g.values[0], g.lr, g.scale, g.count});
  }
  void count(const Uses& uses) override {
    for (size_t i = 0; i < uses.ids.size(); ++i)
      counted.push_back({uses.table, uses.ids[i], uses.shows[i], uses.clicks[i]});
  }
  void pull(std::span<const Value> values) override {
    for (const Value& v : values) v.values[0] = 100;
  }
  void start_with(std::span<const Value> values) override {
    for (const Value& v : values) v.values[0] *= 2;
  }
  void exchange(std::span<const Exchange> values) override {
    for (const Exchange& e : values) std::swap(*e.value, *e.base);
  }

  struct Pushed {
    char kind;
    int number;
    float first, lr, scale;
    int64_t count;
    bool operator==(const Pushed&) const = default;
  };
  std::vector<Pushed> pushed;
  struct Counted {
    int table;
    int64_t id;
    float show, click;
    bool operator==(const Counted&) const = default;
  };
  std::vector<Counted> counted;
  static constexpr int64_t kWidth = 3;

 private:
  static int number(std::string_view name) {
    check_arg(name != "nobody", "the servers do not keep '", name, "'");
    return name.back() - '0';
  }
};

std::shared_ptr<Known> known() {
  static const auto servers = [] {
    auto made = std::make_shared<Known>();
    kernel::set_process_servers(made);
    return made;
  }();
  return servers;
}
const bool kAreThere = known() != nullptr;

Tensors rows_of(const std::vector<Tensor>& ids, const std::vector<int>& tables,
                const std::vector<int64_t>& padding, bool zero) {
  Tensors out;
  for (size_t k = 0; k < ids.size(); ++k) {
    Shape shape = ids[k].shape();
    shape.push_back(Known::kWidth);
    out.push_back(tabulate(shape, [&](const Index& i) {
      const int64_t id = at<int64_t>(ids[k], Index(i.begin(), i.end() - 1));
      return zero || id == padding[k] ? 0.0f : Known::row(tables[k], id, i.back());
    }));
  }
  return out;
}

const AddCases pull_rows("ps_pull_rows", [](Cases& c) {
  const auto add = [&](const std::string& label, ir::Ints padding, bool is_test) {
    c.add({.label = label,
           .inputs = {{"ids", Tensors{Tensor::of<int64_t>({2, 3}, {0, 4, 4, 2, 1ll << 40, 0}),
                                      Tensor::of<int64_t>({4}, {7, 0, 7, 1})}}},
           .attrs = {{"tables", ir::Strings{"t1", "t2"}},
                     {"widths", ir::Ints{3, 3}},
                     {"padding", padding},
                     {"is_test", is_test}},
           .outputs = {{"out", 2}},
           .unknown = {{"ids", 0}},
           .reference = [=](const Tensors& in) {
             return rows_of(in, {1, 2}, padding, is_test);
           }});
  };
  add("rows", {-1, -1}, false);
  add("padding", {4, 7}, false);
  add("padding_of_one", {-1, 0}, false);
  add("unknown_rows_of_a_test", {-1, -1}, true);
});

const AddCases push("ps_push", [](Cases& c) {
  c.add({.label = "makes_nothing",
         .inputs = {{"grads", random({2})}, {"lrs", filled({1}, 0.1f)}},
         .attrs = {{"names", ir::Strings{"p1"}}},
         .reference = [](const Tensors&) -> Tensors { return {}; }});
});

const AddCases count("ps_count", [](Cases& c) {
  c.add({.label = "makes_nothing",
         .inputs = {{"ids", Tensor::of<int64_t>({2, 1}, {3, 4})},
                    {"show", filled({2}, 1)},
                    {"click", filled({2, 1}, 0)}},
         .attrs = {{"table", "t1"}},
         .reference = [](const Tensors&) -> Tensors { return {}; }});
});

const AddCases pull("ps_pull", [](Cases& c) {
  c.add({.label = "overwrites",
         .inputs = {OpInput("params", filled({1}, 3)).state()},
         .updates = {{"params_out", "params"}},
         .reference = [](const Tensors&) -> Tensors { return {filled({1}, 100)}; }});
});

const AddCases init("ps_init", [](Cases& c) {
  c.add({.label = "gives_and_takes",
         .inputs = {OpInput("params", filled({1}, 3)).state()},
         .updates = {{"params_out", "params"}},
         .reference = [](const Tensors&) -> Tensors { return {filled({1}, 6)}; }});
});

const AddCases exchange("ps_exchange", [](Cases& c) {
  c.add({.label = "both_change",
         .inputs = {OpInput("params", filled({1}, 3)).state(),
                    OpInput("bases", filled({1}, 5)).state()},
         .updates = {{"params_out", "params"}, {"bases_out", "bases"}},
         .reference = [](const Tensors&) -> Tensors {
           return {filled({1}, 5), filled({1}, 3)};
         }});
});

TEST(PsOps, PushSaysWhatKindAndWithWhichRate) {
  ir::Program main, startup;
  ir::Builder b(main, startup);
  const auto servers = known();
  const ir::Var g = b.data("g", f32, {2}), ids = b.data("ids", i64, {-1}),
                d = b.data("d", f32, {-1, 3});
  const ir::Var rows = b.op("embedding_grad", {{"ids", ids}, {"dout", d}},
                            {{"sparse", true}, {"any_id", true}, {"shape", Shape{5, 3}}});
  const ir::Var lr = b.data("lr", f32, {1}), slow = b.data("slow", f32, {1}),
                scale = b.data("scale", f32, {1});
  b.op("ps_push",
       {{"grads", std::vector{g, rows}}, {"lrs", std::vector{lr, slow}}, {"scale", scale}},
       {{"names", ir::Strings{"p4", "t5"}}, {"scaled", ir::Ints{0, 1}}});
  runtime::Scope scope;
  runtime::Executor exe;
  exe.run(main, scope,
          {{"g", filled({2}, 7)},
           {"ids", Tensor::of<int64_t>({3}, {1, 1ll << 50, 1})},  // far beyond the declared rows
           {"d", filled({3, 3}, 8)},
           {"lr", filled({1}, 0.5f)},
           {"slow", filled({1}, 0.25f)},
           {"scale", filled({1}, 2)}});
  EXPECT_EQ(servers->pushed,
            (std::vector<Known::Pushed>{{'p', 4, 7, 0.5f, 1, 1}, {'t', 5, 8, 0.25f, 2, 3}}));
}

TEST(PsOps, CountSaysTheUsesOfEveryId) {
  const auto servers = known();
  const auto counted = [&](const OpCase& c) {
    servers->counted.clear();
    run_op("ps_count", c);
    return servers->counted;
  };
  using Counted = std::vector<Known::Counted>;
  const Tensor ids = Tensor::of<int64_t>({2, 3}, {5, 6, 0, 1ll << 50, 5, 0});
  const Tensor show = Tensor::of<int64_t>({2, 1}, {2, 3}),
               click = Tensor::of<float>({2}, {0, 1.5f});
  EXPECT_EQ(counted({.inputs = {{"ids", ids}, {"show", show}, {"click", click}},
                     .attrs = {{"table", "t4"}, {"padding", 0}}}),
            (Counted{{4, 5, 2, 0}, {4, 6, 2, 0}, {4, 1ll << 50, 3, 1.5f}, {4, 5, 3, 1.5f}}));
  const Tensor lengths = Tensor::of<int64_t>({2}, {1, 2});
  EXPECT_EQ(
      counted({.inputs = {{"ids", ids}, {"show", show}, {"click", click}, {"lengths", lengths}},
               .attrs = {{"table", "t4"}}}),
      (Counted{{4, 5, 2, 0}, {4, 1ll << 50, 3, 1.5f}, {4, 5, 3, 1.5f}}));
  expect_error(Error::Kind::kInvalidArgument, {"'click' has 3 values for 2 examples"}, [&] {
    counted({.inputs = {{"ids", ids}, {"show", show}, {"click", filled({3}, 0)}},
             .attrs = {{"table", "t4"}}});
  });
}

TEST(PsOps, ErrorsNameWhatIsMissing) {
  expect_error(Error::Kind::kInvalidArgument, {"ps_pull_rows", "'tables' has 1", "2 of 'ids'"}, [] {
    run_op("ps_pull_rows",
           {.inputs = {{"ids", Tensors{random_ints({2}, 0, 3), random_ints({2}, 0, 3)}}},
            .attrs = {{"tables", ir::Strings{"t1"}},
                      {"widths", ir::Ints{3, 3}},
                      {"padding", ir::Ints{-1, -1}}},
            .outputs = {{"out", 2}}});
  });
  expect_error(Error::Kind::kInvalidArgument, {"do not keep 'nobody'"}, [] {
    run_op("ps_push", {.inputs = {{"grads", random({2})}, {"lrs", filled({1}, 0.1f)}},
                       .attrs = {{"names", ir::Strings{"nobody"}}}});
  });
  kernel::set_process_servers(nullptr);
  expect_error(Error::Kind::kInvalidArgument, {"ps_push", "connected to none", "fleet.init"}, [] {
    run_op("ps_push", {.inputs = {{"grads", random({2})}, {"lrs", filled({1}, 0.1f)}},
                       .attrs = {{"names", ir::Strings{"p1"}}}});
  });
  kernel::set_process_servers(known());
}

}  // namespace
}  // namespace fleetx::testing
