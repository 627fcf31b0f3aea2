// The plan's table marks steps that reference code runs.
#include <gtest/gtest.h>

#include <sstream>

#include "fleetx/ir/builder.h"
#include "fleetx/kernel/op.h"
#include "fleetx/runtime/executor.h"

namespace fleetx::runtime {
namespace {

class ByReference final : public kernel::Kernel {
 public:
  explicit ByReference(kernel::Prepare& p) : x_(p.input("x")), out_(p.output("out")) {}
  void run(const kernel::Run& r) override { r.out<float>(out_)[0] = r.in<float>(x_)[0]; }
  std::string_view implementation() const override { return "ref:any"; }

 private:
  kernel::Slot x_, out_;
};

FLEETX_OP(by_reference)
    .input("x")
    .output("out")
    .infer([](ir::Infer& c) { c.out("out") = c.in("x"); })
    .kernel<ByReference>();

TEST(PlanTable, MarksReferenceCode) {
  ir::Program main, startup;
  ir::Builder b(main, startup);
  Scope scope;
  const ir::Var x = b.data("x", DType::kF32, {1});
  const ir::Var slow = b.op("by_reference", {{"x", x}}, {});
  const ir::Var fast = b.op("relu", {{"x", slow}}, {});
  Executor exe;
  const std::string table =
      exe.plan(main, scope, {{"x", Tensor(DType::kF32, {1})}}, {fast.name()}).table();
  std::istringstream lines(table);
  int marked = 0;
  for (std::string line; std::getline(lines, line);) {
    const bool is_slow = line.find("ref:any  <- slow") != std::string::npos;
    marked += is_slow;
    EXPECT_EQ(is_slow, line.find("by_reference") != std::string::npos) << line;
  }
  EXPECT_EQ(marked, 1) << table;
}

}  // namespace
}  // namespace fleetx::runtime
