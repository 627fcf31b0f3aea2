#include "fleetx/data/libsvm.h"

#include <gtest/gtest.h>

#include "tests/data/some_samples.h"
#include "tests/support/expect_error.h"

namespace fleetx::testing {
namespace {

using data::Slot;

std::vector<Slot> slots(DType label) {
  return {{"y", label, 1}, {"index", DType::kI64, -1}, {"value", DType::kF32, -1}};
}

std::vector<std::string> rows(const std::string& text, DType label = DType::kI64) {
  return lines_of(parse_lines(text, *data::libsvm_format(slots(label)), "a"));
}

TEST(Libsvm, ReadsLabelsAndFeatures) {
  EXPECT_EQ(rows("+1 3:0.5 17:1\n\n-1\t200:-2e2 # a comment 7:x\r\n0 1:1# other"),
            (std::vector<std::string>{"1 1 2 3 17 2 0.5 1", "1 -1 1 200 1 -200", "1 0 1 1 1 1"}));
  EXPECT_EQ(rows("0.25 1:2", DType::kF32), std::vector<std::string>{"1 0.25 1 1 1 2"});
}

TEST(Libsvm, DamagedLines) {
  const auto corrupt = [](const std::string& text, std::string_view part) {
    expect_error(Error::Kind::kCorrupt, {"a:2: sample '", part}, [&] { rows("1 1:1\n" + text); });
  };
  corrupt("1", "slot 'index': the line has no features");
  corrupt("1 # 1:1", "slot 'index': the line has no features");
  corrupt("a 1:1", "slot 'y': 'a' is not a label");
  corrupt("0.5 1:1", "slot 'y': '0.5' is not a label");
  corrupt("1 3 4", "slot 'index': '3' is not index:value");
  corrupt("1 3:x", "slot 'value': '3:x' is not index:value");
  corrupt("1 3:", "slot 'value': '3:' is not index:value");
  corrupt("1 99999999999999999999:1", "slot 'index'");
}

TEST(Libsvm, OtherSlotsAreRefused) {
  EXPECT_TRUE(contains(error_of([] { data::libsvm_format({{"y", DType::kI64, 1}}); }), "libsvm"));
}

}  // namespace
}  // namespace fleetx::testing
