#include "fleetx/predict/machine.h"

#include <gtest/gtest.h>

#include "tests/support/expect_error.h"
#include "tests/support/temp_dir.h"

namespace fleetx::predict {
namespace {

using testing::contains;
using testing::expect_error;

constexpr const char* kText = R"(name: two cores
cores: 2
memory_GiB: 8
compute:
  f32_GFLOPS: 90
  memory_GBps: 12
links:
  host: {GBps: 4, latency_us: 10}
)";

std::string with(std::string text, const std::string& from, const std::string& to) {
  const size_t at = text.find(from);
  EXPECT_NE(at, std::string::npos) << from;
  return text.replace(at, from.size(), to);
}

TEST(Machine, IsReadFromTheLeastThatCanBeSaid) {
  const Machine m = Machine::parse(kText, "m.yaml");
  EXPECT_EQ(m.name, "two cores");
  EXPECT_EQ(m.cores, 2);
  EXPECT_DOUBLE_EQ(m.memory_bytes, 8.0 * (1 << 30));
  EXPECT_DOUBLE_EQ(m.f32_flops, 90e9);
  EXPECT_DOUBLE_EQ(m.half_flops, 90e9);
  EXPECT_DOUBLE_EQ(m.host.latency_s, 10e-6);
  EXPECT_EQ(m.network, m.host);
  EXPECT_EQ(m.overlap, 1);
  EXPECT_EQ(m.failures.mtbf_s, 0);
}

TEST(Machine, ReadsWhatItWrites) {
  Machine m = Machine::parse(kText, "m.yaml");
  m.ranks = 2;
  m.overlap = 0.5;
  m.network = {.bytes_per_second = 1.25e9,
               .latency_s = 50e-6,
               .tensor_s = 2e-6,
               .ring = true,
               .shared = false,
               .rates = {{1024, 1e8}, {1048576, 1e9}},
               .overlap = 0.75};
  m.ops = {{"conv2d", f32, 1e9, 2e6, 0.02}, {"cast", bf16, 0, 4096, 1e-5}};
  m.ops.push_back({"fc", f32, 1e6, 1e3, 0.5, "own:strassen, converted to f32", 1});
  m.failures = {.mtbf_s = 3600, .checkpoint_s = 5, .restart_s = 60};
  const Machine again = Machine::parse(m.to_text(), "again");
  EXPECT_EQ(again.to_text(), m.to_text());
  ASSERT_EQ(again.ops.size(), m.ops.size());
  EXPECT_EQ(again.ops.back().kernel, m.ops.back().kernel);
  EXPECT_EQ(again.ops.back().cores, 1);
  EXPECT_DOUBLE_EQ(again.network.rate(1e9), 1e9);
  EXPECT_FALSE(again.network.shared);
  EXPECT_TRUE(again.network.ring);
}

TEST(Machine, AGuessCanBeWrittenAndRead) {
  const Machine m = Machine::guess();
  EXPECT_GE(m.cores, 1);
  EXPECT_GT(m.f32_flops, 1e9);
  EXPECT_EQ(Machine::parse(m.to_text(), "guess").cores, m.cores);
}

TEST(Machine, RatesBetweenTwoSizesAreInterpolated) {
  const Link link{.bytes_per_second = 1, .rates = {{1e3, 1e6}, {1e5, 1e8}}};
  EXPECT_DOUBLE_EQ(link.rate(10), 1e6);
  EXPECT_NEAR(link.rate(1e4), 1e7, 1);
  EXPECT_DOUBLE_EQ(link.rate(1e9), 1e8);
}

// What is wrong, in which line.
TEST(Machine, MistakesAreNamedWithTheirPlace) {
  const auto wrong = [](const std::string& text, std::initializer_list<std::string_view> parts) {
    expect_error(Error::Kind::kCorrupt, parts, [&] { Machine::parse(text, "m.yaml"); });
  };
  wrong("", {"m.yaml: is empty", "fleetx calibrate"});
  wrong("- 1\n", {"m.yaml:1: the file must be a list of `key: value`"});
  wrong("a: [1\n", {"m.yaml:"});
  wrong(with(kText, "cores: 2", "core: 2"), {"'cores' is missing"});
  wrong(with(kText, "cores: 2", "cores: 0"), {"m.yaml:2: 'cores' is 0; must be from 1"});
  wrong(with(kText, "cores: 2", "cores: 1.5"), {"m.yaml:2: 'cores' is 1.5; must be a whole"});
  wrong(with(kText, "cores: 2", "cores: 2\nranks: 0"), {"m.yaml:3: 'ranks' is 0; must be from 1"});
  wrong(with(kText, "cores: 2", "cores: 2\ncores_per_rank: 0"), {"'cores_per_rank' is 0"});
  wrong(with(kText, "cores: 2", "cores: two"), {"m.yaml:2: 'cores' must be a number"});
  wrong(with(kText, "memory_GiB: 8\n", ""), {"'memory_GiB' is missing"});
  wrong(with(kText, "f32_GFLOPS: 90", "f32_GFLOPS: -1"),
        {"m.yaml:5: 'compute.f32_GFLOPS' is -1; must be from"});
  wrong(with(kText, "f32_GFLOPS: 90", "f32_GFLOPS: .nan"), {"'compute.f32_GFLOPS' is nan"});
  wrong(with(kText, "memory_GBps: 12", "memory_GBsp: 12"), {"'compute.memory_GBps' is missing"});
  wrong(with(kText, "memory_GBps: 12", "memory_GBps: 12\n  op_su: 1"),
        {"m.yaml:7: there is no field 'compute.op_su'", "did you mean 'op_us'"});
  wrong(with(kText, "latency_us: 10", "latency_us: -10"), {"m.yaml:8: 'links.host.latency_us' is"});
  wrong(with(kText, "latency_us: 10",
             "latency_us: 1, rates: [{bytes: 9, GBps: 1}, {bytes: 9, GBps: 1}]"),
        {"the sizes must ascend"});
  wrong(str(kText, "ops: [{op: fc, us: 3}]\n"), {"m.yaml:9: op 'fc' has neither flops nor bytes"});
  wrong(str(kText, "ops: [{op: fc, dtype: f8, flops: 1, us: 3}]\n"), {"'ops.dtype' is 'f8'"});
  wrong(str(kText, "failures: {host_mtbf_hours: 0, checkpoint_s: 1, restart_s: 1}\n"),
        {"'failures.host_mtbf_hours' is 0"});
  wrong(str(kText, "cores: 3\n"), {"m.yaml:9: 'cores' is there twice"});
  expect_error(Error::Kind::kInvalidArgument, {"no-such-file"},
               [] { Machine::load("no-such-file"); });
}

}  // namespace
}  // namespace fleetx::predict
