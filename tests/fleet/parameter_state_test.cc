#include "fleetx/fleet/parameter_state.h"

#include <gtest/gtest.h>

#include "fleetx/fleet/own_tables.h"
#include "fleetx/nn/nn.h"
#include "fleetx/optim/optimizer.h"
#include "tests/support/expect_error.h"
#include "tests/support/temp_dir.h"

namespace fleetx::fleet {
namespace {

using testing::expect_error;

struct Network {
  ir::Program main, startup;
};

template <class Optimizer>
Network network(Optimizer optimizer, int64_t columns = 2) {
  Network n;
  ir::Builder b(n.main, n.startup);
  const ir::Var x = b.data("x", f32, {-1, 3});
  optimizer.minimize(
      nn::mean(nn::fc(x, {.size = columns, .bias = false, .weight_attr = {.name = "w"}})));
  return n;
}

// Every value is another one.
runtime::Scope& numbered(runtime::Scope& scope, const ir::Program& main) {
  float next = 1;
  for (const ParameterVars& vars : parameter_vars(main)) {
    ir::Names names{vars.name};
    names.insert(names.end(), vars.states.begin(), vars.states.end());
    names.insert(names.end(), vars.scalars.begin(), vars.scalars.end());
    for (const std::string& name : names) {
      Tensor value(f32, main.var(name).type.shape);
      for (float& v : value.data<float>()) v = next++;
      scope.set(name, value);
    }
  }
  return scope;
}

std::vector<float> floats(const Tensor& value) {
  return {value.data<float>().begin(), value.data<float>().end()};
}

TEST(ParameterState, IsReadAsItWasSaved) {
  const Network n = network(optim::Adam({.lr = 0.1}));
  ASSERT_EQ(parameter_vars(n.main).size(), 1U);
  const ParameterVars vars = parameter_vars(n.main).front();
  EXPECT_EQ(vars.states.size(), 2U);
  EXPECT_EQ(vars.scalars.size(), 2U);
  runtime::Scope scope;
  OwnTables tables(ps::JobSpec{}, ParameterState({vars}));
  const testing::TempDir folder;
  tables.save(numbered(scope, n.main), folder.path());

  std::set<std::string> names{"w", vars.states[0], vars.states[1], vars.scalars[1]};
  const auto found = read_variables(n.main, folder.path(), names);
  ASSERT_EQ(found.size(), names.size());
  for (const auto& [name, value] : found) EXPECT_EQ(floats(value), floats(scope.get(name))) << name;
  // A program that does not train wants the parameter alone.
  Network test = network(optim::Sgd({.lr = 0.1}));
  EXPECT_EQ(floats(read_variables(test.main, folder.path(), {"w", "x"}).at("w")),
            floats(scope.get("w")));
}

TEST(ParameterState, OfAnotherModelIsNamed) {
  const Network n = network(optim::Adam({.lr = 0.1}));
  runtime::Scope scope;
  OwnTables tables(ps::JobSpec{}, ParameterState(parameter_vars(n.main)));
  const testing::TempDir folder;
  tables.save(numbered(scope, n.main), folder.path());
  expect_error(Error::Kind::kInvalidArgument, {"'w'", "6 elements", "9", "another model"}, [&] {
    read_variables(network(optim::Adam({.lr = 0.1}), 3).main, folder.path(), {"w"});
  });
  const Network momentum = network(optim::Momentum({.lr = 0.1, .mu = 0.9}));
  expect_error(Error::Kind::kInvalidArgument, {"'w'", "another optimizer", "2 states"}, [&] {
    read_variables(momentum.main, folder.path(), {parameter_vars(momentum.main)[0].states[0]});
  });
}

TEST(ParameterState, RowsOfServersAreThoseOfAMatrix) {
  const Network n = network(optim::Adam({.lr = 0.1}));
  const ParameterVars vars = parameter_vars(n.main).front();
  // The rows 0 and 2 of w, and one beyond it, with two states each.
  ps::JobSpec job;
  class TwoStates final : public ps::UpdateRule {
    std::string text() const override { return "two"; }
    std::vector<float> states() const override { return {7, 8}; }
    std::vector<float> scalars() const override { return {0.9f, 0.99f}; }
    void update(const Batch& /*batch*/) const override {}
  };
  job.sparse.push_back({.name = "w",
                        .dim = 2,
                        .rule = std::make_shared<TwoStates>(),
                        .initializer = {.kind = ps::Initializer::Kind::kConstant, .a = 0.5f}});
  OwnTables tables(job);
  const std::vector<int64_t> ids{0, 2, int64_t{1} << 60};
  std::vector<float> rows(6);
  const kernel::Servers::Lookup lookup{0, ids.data(), 3, rows.data()};
  tables.pull_rows({&lookup, 1}, true);
  const testing::TempDir folder;
  tables.save(runtime::Scope(), folder.path());
  const auto found = read_variables(n.main, folder.path(), {"w", vars.states[1], vars.scalars[0]});
  EXPECT_EQ(floats(found.at("w")), (std::vector<float>{0.5f, 0.5f, 0, 0, 0.5f, 0.5f}));
  EXPECT_EQ(floats(found.at(vars.states[1])), (std::vector<float>{8, 8, 0, 0, 8, 8}));
  EXPECT_EQ(floats(found.at(vars.scalars[0])), std::vector<float>{0.9f});
}

}  // namespace
}  // namespace fleetx::fleet
