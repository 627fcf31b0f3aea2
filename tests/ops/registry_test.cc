// Every op has a test file and a case: adding an op without them fails here.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <sstream>

#include "fleetx/base/names.h"
#include "fleetx/ir/op_def.h"
#include "tests/support/op_registry.h"

namespace fleetx::testing {
namespace {

namespace fs = std::filesystem;

std::string text_of(const fs::path& path) {
  std::ostringstream out;
  out << std::ifstream(path).rdbuf();
  return out.str();
}

// Gradients are tested through the op that they belong to.
bool is_grad(const std::string& op) {
  return op.ends_with("_grad") && ir::find_op(op.substr(0, op.size() - 5)) != nullptr;
}

TEST(Registry, EveryFileHasATest) {
  const fs::path root(FLEETX_SOURCE_DIR);
  int files = 0;
  for (const auto& entry : fs::directory_iterator(root / "fleetx/ops")) {
    const std::string text = entry.path().extension() == ".cc" ? text_of(entry.path()) : "";
    if (text.find("FLEETX_OP(") == text.npos && text.find("RegisterOp") == text.npos) continue;
    const fs::path test = root / "tests/ops" / (entry.path().stem().string() + "_test.cc");
    EXPECT_TRUE(fs::exists(test)) << entry.path() << " registers ops, but there is no " << test;
    ++files;
  }
  EXPECT_GT(files, 0);
}

TEST(Registry, EveryOpHasACase) {
  std::vector<std::string> missing;
  size_t ops = 0, grads = 0;
  for (const ir::OpDef* def : ir::all_ops()) {
    EXPECT_NE(def->infer, nullptr) << def->type;
    EXPECT_NE(def->make_kernel, nullptr) << def->type;
    ++(is_grad(def->type) ? grads : ops);
    // Messages need another rank: send_test.cc.
    const bool is_message = def->collective && def->find_attr("peer") != nullptr;
    if (is_grad(def->type) || is_message) continue;
    // A random op has nothing to compare with; its file tests the distribution.
    const auto cases = op_cases().find(def->type);
    const bool tested =
        cases != op_cases().end() &&
        std::any_of(cases->second.begin(), cases->second.end(), [&](const OpCase& c) {
          return def->random || (!c.perf && c.reference != nullptr);
        });
    if (!tested) missing.push_back(def->type);
  }
  EXPECT_TRUE(missing.empty()) << "no case with a reference: " << join(missing, ", ");
  size_t tested = 0;
  for (const auto& [op, cases] : op_cases()) tested += cases.size();
  std::printf("%zu ops and %zu gradient ops; %zu cases tested\n", ops, grads, tested);
}

}  // namespace
}  // namespace fleetx::testing
