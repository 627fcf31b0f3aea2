// The plan knows its memory: what it says is what the process really used, within 5 %.
#include <nlohmann/json.hpp>

#include "tests/tools/tool.h"

namespace fleetx::testing {
namespace {

struct Memory {
  double process, plan;  // MiB
};

Memory measure(const std::string& model, int batch) {
  const ToolResult r = run_tool({"bench", model, "--batch", std::to_string(batch), "--steps", "1",
                                 "--warmup", "1", "--json"});
  EXPECT_EQ(r.code, 0) << r.err;
  const auto json = nlohmann::json::parse(r.out);
  return {json.at("peak_mib"), json.at("plan_mib")};
}

// What a process has that is no plan's business: the program and its libraries.
double process_alone() {
  static const Memory tiny = measure("tiny-mlp", 8);
  return tiny.process - tiny.plan;
}

class PeakMemory : public ::testing::TestWithParam<std::pair<const char*, int>> {};

TEST_P(PeakMemory, IsWhatThePlanSays) {
  const auto& [model, batch] = GetParam();
  const Memory memory = measure(model, batch);
  const double used = memory.process - process_alone();
  EXPECT_NEAR(used / memory.plan, 1.0, 0.05)
      << "the plan says " << memory.plan << " MiB, " << used << " MiB were used";
}

INSTANTIATE_TEST_SUITE_P(Models, PeakMemory,
                         ::testing::Values(std::pair{"resnet50", 4}, std::pair{"resnet50", 8},
                                           std::pair{"bert-base", 1}, std::pair{"bert-base", 4}),
                         [](const auto& info) {
                           std::string name = info.param.first;
                           std::erase(name, '-');
                           return name + "_batch_" + std::to_string(info.param.second);
                         });

}  // namespace
}  // namespace fleetx::testing
