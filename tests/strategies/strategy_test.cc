#include "fleetx/strategies/strategy.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <fstream>

#include "fleetx/ir/rewriter.h"
#include "fleetx/ir/text.h"

namespace fleetx::strategies {
namespace {

// Appends out = scale(out) {scale=factor, name=<strategy>}: the text shows who came in which order.
void mark(ir::Program& program, std::string_view who, double factor) {
  ir::Rewriter rw(program);
  rw.append({.type = "scale",
             .inputs = {{"x", {"out"}}},
             .outputs = {{"out", {"out"}}},
             .attrs = {{"scale", factor}},
             .name = std::string(who),
             .loc = {}});
}

class First final : public Strategy {
  std::string_view name() const override { return "z_first"; }
  ir::Attrs options() const override { return {{"factor", 2.0}}; }
  void validate(const ir::Program&, const StrategyContext& c) const override {
    check_arg(c.options.at("factor").as<double>() > 0, "z_first: factor must be positive");
  }
  void apply(ir::Program& main, ir::Program&, const StrategyContext& c) const override {
    mark(main, name(), c.options.at("factor").as<double>());
  }
};
FLEETX_STRATEGY(z_first, First);

class Second final : public Strategy {
  std::string_view name() const override { return "a_second"; }
  Traits traits() const override {
    return {.after = {"z_first", "not_asked_for"},
            .conflicts = {{"rival", "both want the last word"}}};
  }
  void apply(ir::Program& main, ir::Program& startup, const StrategyContext&) const override {
    mark(main, name(), 3);
    ir::VarInfo noted;
    noted.name = "noted";
    ir::Rewriter(startup).add_var(std::move(noted));
  }
};
FLEETX_STRATEGY(a_second, Second);

class Rival final : public Strategy {
  std::string_view name() const override { return "rival"; }
  void apply(ir::Program&, ir::Program&, const StrategyContext&) const override {}
};
FLEETX_STRATEGY(rival, Rival);

class Needy final : public Strategy {
  std::string_view name() const override { return "needy"; }
  Traits traits() const override {
    return {.axes = {"dp"}, .needs = {{"z_first", "it reads what z_first writes"}}};
  }
  void apply(ir::Program& main, ir::Program&, const StrategyContext& c) const override {
    mark(main, name(), c.mesh.size("dp"));
  }
};
FLEETX_STRATEGY(needy, Needy);

class Breaker final : public Strategy {  // leaves an op that reads what nobody writes
  std::string_view name() const override { return "breaker"; }
  void apply(ir::Program& main, ir::Program&, const StrategyContext&) const override {
    ir::Rewriter rw(main);
    rw.erase(rw.begin());
  }
};
FLEETX_STRATEGY(breaker, Breaker);

class Forgetful final : public Strategy {  // does not keep its promise
  std::string_view name() const override { return "forgetful"; }
  void apply(ir::Program&, ir::Program&, const StrategyContext&) const override {}
  void check(const ir::Program& main, const StrategyContext&) const override {
    FLEETX_CHECK(main.ops().size() > 100, "forgetful added no ops");
  }
};
FLEETX_STRATEGY(forgetful, Forgetful);

class Chicken final : public Strategy {
  std::string_view name() const override { return "chicken"; }
  Traits traits() const override { return {.after = {"egg"}}; }
  void apply(ir::Program&, ir::Program&, const StrategyContext&) const override {}
};
FLEETX_STRATEGY(chicken, Chicken);

class Egg final : public Strategy {
  std::string_view name() const override { return "egg"; }
  Traits traits() const override { return {.after = {"chicken"}}; }
  void apply(ir::Program&, ir::Program&, const StrategyContext&) const override {}
};
FLEETX_STRATEGY(egg, Egg);

constexpr const char* kText = R"(program
data x : f32[-1,4]
var out : f32[-1,4]

forward:
out = scale(x)
out = scale(out) {scale=7.0}
)";

class ApplyStrategies : public ::testing::Test {
 protected:
  std::vector<std::string> order() const {
    std::vector<std::string> names;
    for (const ir::Op& op : main.ops())
      if (!op.name.empty()) names.push_back(op.name);
    return names;
  }

  // Expects an error whose message has all the words, and unchanged programs.
  void expect_error(const std::vector<Request>& requested, const StrategyContext& context,
                    const std::vector<std::string>& words) {
    try {
      apply_strategies(main, startup, requested, context);
      ADD_FAILURE() << "no error";
    } catch (const Error& e) {
      for (const std::string& word : words)
        EXPECT_NE(std::string(e.what()).find(word), std::string::npos) << e.what();
    }
    EXPECT_EQ(main, ir::parse_text(kText));
    EXPECT_EQ(startup, ir::Program());
  }

  ir::Program main = ir::parse_text(kText);
  ir::Program startup;
};

TEST_F(ApplyStrategies, OrderComesFromTraits) {
  const auto reports = apply_strategies(main, startup, {{"a_second"}, {"z_first"}}, {});
  EXPECT_EQ(order(), (std::vector<std::string>{"z_first", "a_second"}));
  ASSERT_EQ(reports.size(), 2u);
  EXPECT_EQ(reports[0].name, "z_first");
  EXPECT_EQ(reports[1].ops_before, 3u);
  EXPECT_EQ(reports[1].ops_after, 4u);
  EXPECT_NE(startup.find("noted"), nullptr);
}

TEST_F(ApplyStrategies, OrderOfRequestsDoesNotMatter) {
  ir::Program other = main;
  const StrategyContext context{.mesh = Mesh({{"dp", 2}}, 1)};
  apply_strategies(main, startup, {{"a_second"}, {"z_first"}, {"needy"}}, context);
  ir::Program other_startup;
  apply_strategies(other, other_startup, {{"needy"}, {"a_second"}, {"z_first"}}, context);
  EXPECT_EQ(main, other);
}

TEST_F(ApplyStrategies, OptionsAreConvertedAndCompleted) {
  apply_strategies(main, startup, {{"z_first", {{"factor", 5}}}}, {});
  EXPECT_EQ(main.ops().back().attr<double>("scale"), 5.0);
}

TEST_F(ApplyStrategies, ErrorsComeBeforeAnythingIsChanged) {
  expect_error({{"z_first"}, {"data_paralel"}}, {}, {"no strategy 'data_paralel'", "rival"});
  expect_error({{"z_first"}, {"z_first"}}, {}, {"'z_first' is asked for twice"});
  expect_error({{"a_second"}, {"rival"}}, {},
               {"'a_second' and 'rival'", "both want the last word"});
  expect_error({{"needy"}}, {.mesh = Mesh({{"dp", 2}}, 0)},
               {"needs strategy 'z_first'", "it reads"});
  expect_error({{"needy"}, {"z_first"}}, {}, {"'needy'", "mesh axis 'dp'"});
  expect_error({{"z_first", {{"faktor", 2.0}}}}, {}, {"no option 'faktor'", "factor"});
  expect_error({{"z_first", {{"factor", "two"}}}}, {}, {"option 'factor'", "two"});
  expect_error({{"z_first", {{"factor", -1.0}}}}, {}, {"must be positive"});
  expect_error({{"chicken"}, {"egg"}}, {}, {"chicken, egg"});
}

TEST_F(ApplyStrategies, RefusesToSkipOne) {
  expect_error({{"z_first"}}, {.skip = {"z_first"}}, {"'z_first' cannot be skipped"});
  apply_strategies(main, startup, {{"z_first"}}, {.skip = {"dce"}});
}

TEST_F(ApplyStrategies, VerifiesAfterEach) {
  expect_error({{"breaker"}, {"a_second"}}, {}, {"after strategy 'breaker'", "out"});
  expect_error({{"forgetful"}}, {}, {"forgetful added no ops"});
}

TEST_F(ApplyStrategies, DumpsAfterEach) {
  const auto dir = std::filesystem::path(::testing::TempDir()) / "strategies_dump";
  std::filesystem::remove_all(dir);
  apply_strategies(main, startup, {{"a_second"}, {"z_first"}}, {.dump_dir = dir.string()});
  std::vector<std::string> files;
  for (const auto& file : std::filesystem::directory_iterator(dir))
    files.push_back(file.path().filename().string());
  std::sort(files.begin(), files.end());
  EXPECT_EQ(files, (std::vector<std::string>{"00.program.txt", "00.startup.txt", "01.z_first.txt",
                                             "02.a_second.startup.txt", "02.a_second.txt"}));
  std::ostringstream text;
  text << std::ifstream(dir / "02.a_second.txt").rdbuf();
  EXPECT_EQ(text.str(), ir::to_text(main));
}

}  // namespace
}  // namespace fleetx::strategies
