#include <cmath>

#include <nlohmann/json.hpp>

#include "tests/tools/tool.h"

namespace fleetx::testing {
namespace {

using Json = nlohmann::ordered_json;

TEST(Bench, JsonHasTheAgreedFields) {
  const ToolResult r = run_tool({"bench", "tiny-mlp", "--batch", "4", "--threads", "1", "--steps",
                                 "5", "--warmup", "1", "--json"});
  ASSERT_EQ(r.code, 0) << r.err;
  const Json line = Json::parse(r.out);
  std::vector<std::string> keys;
  for (const auto& [key, value] : line.items()) keys.push_back(key);
  EXPECT_EQ(keys, (std::vector<std::string>{
                      "model", "batch", "threads", "workers", "best_s", "median_s", "total_s",
                      "steps_per_s", "items_per_s", "gflops", "peak_mib", "plan_mib", "process_mib",
                      "peaks_mib", "plans_mib", "first_loss", "loss", "isa"}));
  EXPECT_EQ(line["model"], "tiny-mlp");
  EXPECT_EQ(line["batch"], 4);
  EXPECT_EQ(line["threads"], 1);
  EXPECT_EQ(line["workers"], 1);
  EXPECT_GT(line["best_s"].get<double>(), 0);
  EXPECT_LE(line["best_s"], line["median_s"]);
  EXPECT_LE(line["median_s"], line["total_s"]);
  EXPECT_NEAR(line["items_per_s"].get<double>() / line["steps_per_s"].get<double>(), 4, 1e-9);
  EXPECT_GT(line["gflops"].get<double>(), 0);
  EXPECT_GT(line["peak_mib"], line["plan_mib"]);
  EXPECT_EQ(line["peaks_mib"], Json::array({line["peak_mib"]}));
  EXPECT_NEAR(line["plans_mib"][0].get<double>(),
              line["plan_mib"].get<double>() + line["process_mib"].get<double>(), 1e-6);
  EXPECT_TRUE(std::isfinite(line["loss"].get<double>()));
}

TEST(Bench, InferenceIsTheForwardPartOnly) {
  for (const char* model : {"tiny-mlp", "wide-deep"}) {
    const std::vector<std::string> args = {"bench",   model, "--batch", "4",
                                           "--steps", "2",   "--json"};
    std::vector<std::string> test_args = args;
    test_args.push_back("--test");
    const ToolResult train = run_tool(args), test = run_tool(test_args);
    ASSERT_EQ(train.code, 0) << train.err;
    ASSERT_EQ(test.code, 0) << test.err;
    const Json trained = Json::parse(train.out), tested = Json::parse(test.out);
    EXPECT_TRUE(tested["loss"].is_null()) << model;
    EXPECT_EQ(tested.size(), trained.size());
    const auto work = [](const Json& line) {
      return line["gflops"].get<double>() * line["best_s"].get<double>();
    };
    EXPECT_GT(work(tested), 0) << model;
    EXPECT_LT(work(tested), 0.5 * work(trained)) << model;
  }
}

TEST(Bench, InferenceProfileHasNoBackwardOps) {
  const ToolResult r = run_tool({"bench", "tiny-mlp", "--test", "--steps", "2", "--profile"});
  ASSERT_EQ(r.code, 0) << r.err;
  EXPECT_TRUE(contains(r.out, "tiny-mlp inference, batch 8"));
  EXPECT_FALSE(contains(r.out, "loss"));
  EXPECT_TRUE(contains(r.err, "fc"));
  EXPECT_FALSE(contains(r.err, "_grad"));
  EXPECT_FALSE(contains(r.err, "momentum"));
}

double loss_after(const std::string& model, int steps) {
  const ToolResult r = run_tool({"bench", model, "--batch", "4", "--steps", std::to_string(steps),
                                 "--warmup", "0", "--json"});
  EXPECT_EQ(r.code, 0) << r.err;
  return r.code == 0 ? Json::parse(r.out)["loss"].get<double>() : NAN;
}

TEST(Bench, ItReallyTrains) {
  for (const char* model : {"tiny-mlp", "mlp", "wide-deep"})
    EXPECT_LT(loss_after(model, 60), 0.9 * loss_after(model, 1)) << model;
}

TEST(Bench, TheSameRunGivesTheSameBits) { EXPECT_EQ(loss_after("mlp", 10), loss_after("mlp", 10)); }

TEST(Bench, ProfileListsOps) {
  const ToolResult r = run_tool({"bench", "tiny-mlp", "--steps", "2", "--profile"});
  ASSERT_EQ(r.code, 0) << r.err;
  EXPECT_TRUE(contains(r.err, "GFLOP/s"));
  EXPECT_TRUE(contains(r.err, "fc_grad"));
  EXPECT_TRUE(contains(r.out, "examples/s"));
}

TEST(Bench, StrategyComesFromAFile) {
  const TempDir folder;
  const auto run = [&](const std::string& model, const std::string& text, bool momentum) {
    std::vector<std::string> args{"bench",    model, "--steps", "4",
                                  "--warmup", "0",   "--json",  "--profile"};
    args.insert(args.end(), {"--strategy", folder.write("strategy.prototxt", text)});
    if (momentum) args.emplace_back("--momentum");
    return run_tool(args);
  };
  const auto loss = [&](const std::string& text, bool momentum) {
    const ToolResult r = run("tiny-mlp", text, momentum);
    EXPECT_EQ(r.code, 0) << r.err;
    const Json line = Json::parse(r.out);
    for (const char* field : {"calls_s", "waited_s", "sent_mb"})
      EXPECT_EQ(line[field], 0) << "one worker calls nobody: " << field;
    return line["loss"].get<double>();
  };
  const double plain = loss("", false);
  // In the fourth batch the parameters are still the first ones.
  EXPECT_GT(loss("gradient_merge: true gradient_merge_configs { k_steps: 8 }", false), plain);
  EXPECT_EQ(loss("", true), plain) << "momentum is the network's own";
  expect_error(run("wide-deep", "lars: true", false), 2, "Momentum");
  expect_error(run("wide-deep", "lars: true", true), 2, "sparse");
  expect_error(run("tiny-mlp", "dgcc: true", false), 2, "strategy.prototxt:1: unknown field");
}

TEST(Bench, MistakesAreExplained) {
  expect_error(run_tool({"bench", "resnet5"}), 2,
               "no model 'resnet5'; known: resnet50, vgg16, bert-base, bert-short, bert-large, "
               "bert-0.7b, mlp");
  expect_error(run_tool({"bench", "mlp", "--steps", "0"}), 2, "--steps");
  expect_error(run_tool({"bench", "mlp", "--batch", "-1"}), 2, "--batch");
  expect_error(run_tool({"bench"}), 2, "MODEL is required");
}

TEST(Bench, PlanKnowsTheSameModels) {
  const ToolResult r = run_tool({"plan", "tiny-mlp", "--batch", "32"});
  ASSERT_EQ(r.code, 0) << r.err;
  EXPECT_TRUE(contains(r.out, "x f32[32,64]"));
  EXPECT_TRUE(contains(r.out, "momentum"));
}

}  // namespace
}  // namespace fleetx::testing
