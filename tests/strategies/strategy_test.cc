#include "fleetx/strategies/strategy.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <fstream>

#include "fleetx/autograd/backward.h"
#include "fleetx/ir/rewriter.h"
#include "fleetx/ir/text.h"
#include "fleetx/nn/nn.h"
#include "fleetx/optim/optimizer.h"

namespace fleetx::strategies::strategy_test {
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

// Acts on gradients; `Marks` of other phases and relations derive from it.
class Marks : public Strategy {
 public:
  Traits traits() const override { return {.acts = {{Phase::kGradients}}}; }
  std::optional<ir::Attrs> requested(const Settings&, const Mesh&) const override {
    return std::nullopt;
  }
  void on_gradients(Programs& p, const StrategyContext&) const override { mark(p.main, name(), 3); }
};

class First final : public Marks {
  std::string_view name() const override { return "z_first"; }
  ir::Attrs options() const override { return {{"factor", 2.0}}; }
  void validate(const ir::Program&, const StrategyContext& c) const override {
    check_arg(c.options.at("factor").as<double>() > 0, "z_first: factor must be positive");
  }
  void on_gradients(Programs& p, const StrategyContext& c) const override {
    mark(p.main, name(), c.options.at("factor").as<double>());
  }
};
FLEETX_STRATEGY(z_first, First);

class Second final : public Marks {
  std::string_view name() const override { return "a_second"; }
  Traits traits() const override {
    return {.acts = {{Phase::kGradients, {"z_first", "not_asked_for"}}},
            .conflicts = {{"rival", "both want the last word"}}};
  }
  void on_gradients(Programs& p, const StrategyContext&) const override {
    mark(p.main, name(), 3);
    ir::VarInfo noted;
    noted.name = "noted";
    ir::Rewriter(p.startup).add_var(std::move(noted));
  }
};
FLEETX_STRATEGY(a_second, Second);

class Rival final : public Marks {
  std::string_view name() const override { return "rival"; }
};
FLEETX_STRATEGY(rival, Rival);

class Needy final : public Marks {
  std::string_view name() const override { return "needy"; }
  Traits traits() const override {
    return {.acts = {{Phase::kGradients}},
            .groups = {"dp"},
            .needs = {{"z_first", "it reads what z_first writes"}}};
  }
};
FLEETX_STRATEGY(needy, Needy);

class Breaker final : public Marks {  // leaves an op that reads what nobody writes
  std::string_view name() const override { return "breaker"; }
  void on_gradients(Programs& p, const StrategyContext&) const override {
    ir::Rewriter rw(p.main);
    rw.erase(rw.begin());
  }
};
FLEETX_STRATEGY(breaker, Breaker);

class Forgetful final : public Marks {  // does not keep its promise
  std::string_view name() const override { return "forgetful"; }
  void check(Phase, const ir::Program& main, const StrategyContext&) const override {
    FLEETX_CHECK(main.ops().size() > 100, "forgetful added no ops");
  }
};
FLEETX_STRATEGY(forgetful, Forgetful);

class Silent final : public Marks {  // says that it acts on updates and does nothing there
  std::string_view name() const override { return "silent"; }
  Traits traits() const override { return {.acts = {{Phase::kUpdates}}}; }
};
FLEETX_STRATEGY(silent, Silent);

class Chicken final : public Marks {
  std::string_view name() const override { return "chicken"; }
  Traits traits() const override { return {.acts = {{Phase::kGradients, {"egg"}}}}; }
};
FLEETX_STRATEGY(chicken, Chicken);

class Egg final : public Marks {
  std::string_view name() const override { return "egg"; }
  Traits traits() const override { return {.acts = {{Phase::kGradients, {"chicken"}}}}; }
};
FLEETX_STRATEGY(egg, Egg);

// Notes what it finds in each phase: one strategy, three functions. After `early` on forward,
// before it on updates.
class Everywhere final : public Marks {
 public:
  std::string_view name() const override { return "everywhere"; }
  Traits traits() const override {
    return {.acts = {{Phase::kForward, {"early"}}, {Phase::kGradients}, {Phase::kUpdates}}};
  }
  void on_forward(Programs& p, const StrategyContext&) const override { note(p.main, "forward"); }
  void on_gradients(Programs& p, const StrategyContext&) const override {
    note(p.main, "gradients");
  }
  void on_updates(Programs& p, const StrategyContext&) const override { note(p.main, "updates"); }
  static void note(const ir::Program& main, const char* phase) {
    const auto count = [&](ir::Role role) {
      return std::count_if(main.ops().begin(), main.ops().end(),
                           [&](const ir::Op& op) { return op.role == role; });
    };
    seen().push_back(str(phase, ": ", count(ir::Role::kBackward) > 0 ? "backward" : "-", " ",
                         count(ir::Role::kUpdate) > 0 ? "updates" : "-"));
  }
  static std::vector<std::string>& seen() {
    static std::vector<std::string> all;
    return all;
  }
};
FLEETX_STRATEGY(everywhere, Everywhere);

class Early final : public Marks {
  std::string_view name() const override { return "early"; }
  Traits traits() const override {
    return {.acts = {{Phase::kForward}, {Phase::kUpdates, {"everywhere"}}}};
  }
  void on_forward(Programs&, const StrategyContext&) const override {
    Everywhere::seen().push_back("early on forward");
  }
  void on_updates(Programs&, const StrategyContext&) const override {
    Everywhere::seen().push_back("early on updates");
  }
};
FLEETX_STRATEGY(early, Early);

constexpr const char* kText = R"(program
data x : f32[-1,4]
var out : f32[-1,4]

forward:
out = scale(x)
out = scale(out) {scale=7.0}
)";

class ResolvedStrategiesTest : public ::testing::Test {
 protected:
  std::vector<passes::Report> apply(const std::vector<Request>& requested,
                                    const StrategyContext& context = {}) {
    ResolvedStrategies resolved(requested, context);
    minimize(
        {main, startup}, resolved, [] {}, [] {});
    return resolved.applied();
  }

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
      apply(requested, context);
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

TEST_F(ResolvedStrategiesTest, OrderComesFromTraits) {
  const auto reports = apply({{"a_second"}, {"z_first"}});
  EXPECT_EQ(order(), (std::vector<std::string>{"z_first", "a_second"}));
  ASSERT_EQ(reports.size(), 2u);
  EXPECT_EQ(reports[0].name, "z_first.gradients");
  EXPECT_EQ(reports[1].ops_before, 3u);
  EXPECT_EQ(reports[1].ops_after, 4u);
  EXPECT_NE(startup.find("noted"), nullptr);
}

TEST_F(ResolvedStrategiesTest, OrderOfRequestsDoesNotMatter) {
  const ir::Program before = main;
  const StrategyContext context{.mesh = Mesh({{"dp", 2}}, 1)};
  apply({{"a_second"}, {"z_first"}, {"needy"}}, context);
  const std::string text = ir::to_text(main);
  main = before;
  startup = {};
  apply({{"needy"}, {"a_second"}, {"z_first"}}, context);
  EXPECT_EQ(ir::to_text(main), text);
}

TEST_F(ResolvedStrategiesTest, OptionsAreConvertedAndCompleted) {
  apply({{"z_first", {{"factor", 5}}}});
  EXPECT_EQ(main.ops().back().attr<double>("scale"), 5.0);
}

TEST_F(ResolvedStrategiesTest, ErrorsComeBeforeAnythingIsChanged) {
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
  expect_error({{"silent"}}, {}, {"'silent'", "acts on updates, but does not"});
}

// What has nothing to do is checked like the others, but for what only its work would need.
TEST_F(ResolvedStrategiesTest, AnIdleOneIsCheckedAndNotApplied) {
  expect_error({{"a_second"}, {"rival", {}, true}}, {}, {"'a_second' and 'rival'"});
  expect_error({{"z_first", {{"factor", -1.0}}, true}}, {}, {"must be positive"});
  EXPECT_TRUE(apply({{"needy", {}, true}}).empty());  // neither a mesh nor z_first
  EXPECT_EQ(main, ir::parse_text(kText));
  const ResolvedStrategies resolved({{"needy", {}, true}, {"z_first"}}, {});
  EXPECT_TRUE(resolved.groups().empty());
  EXPECT_NE(resolved.to_table().find("without effect in a job of this size: needy"),
            std::string::npos);
}

TEST_F(ResolvedStrategiesTest, RefusesToSkipOne) {
  expect_error({{"z_first"}}, {.skip = {"z_first"}}, {"'z_first' cannot be skipped"});
  apply({{"z_first"}}, {.skip = {"dce"}});
}

TEST_F(ResolvedStrategiesTest, VerifiesAfterEach) {
  expect_error({{"breaker"}, {"a_second"}}, {}, {"after strategy 'breaker' on gradients", "out"});
  expect_error({{"forgetful"}}, {}, {"forgetful added no ops"});
}

TEST_F(ResolvedStrategiesTest, DumpsAfterEach) {
  const auto dir = std::filesystem::path(::testing::TempDir()) / "strategies_dump";
  std::filesystem::remove_all(dir);
  apply({{"a_second"}, {"z_first"}}, {.dump_dir = dir.string()});
  std::vector<std::string> files;
  for (const auto& file : std::filesystem::directory_iterator(dir))
    files.push_back(file.path().filename().string());
  std::sort(files.begin(), files.end());
  EXPECT_EQ(files, (std::vector<std::string>{
                       "00.program.txt", "00.startup.txt", "01.z_first.gradients.txt",
                       "02.a_second.gradients.startup.txt", "02.a_second.gradients.txt"}));
  std::ostringstream text;
  text << std::ifstream(dir / "02.a_second.gradients.txt").rdbuf();
  EXPECT_EQ(text.str(), ir::to_text(main));
}

TEST_F(ResolvedStrategiesTest, EachPhaseSeesWhatIsThereByThen) {
  ir::Builder b(main, startup);
  const ir::Var loss = nn::mean(nn::fc(b.var("out"), {.size = 1}));
  optim::Sgd sgd;
  Everywhere::seen().clear();
  ResolvedStrategies resolved({{"everywhere"}, {"early"}}, {});
  minimize(
      {main, startup}, resolved, [&] { (void)sgd.backward(loss); },
      [&] { sgd.apply_gradients(autograd::trained(b)); });
  EXPECT_EQ(Everywhere::seen(),
            (std::vector<std::string>{"early on forward", "forward: - -", "gradients: backward -",
                                      "updates: backward updates", "early on updates"}));
}

}  // namespace
}  // namespace fleetx::strategies::strategy_test
