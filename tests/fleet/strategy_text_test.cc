#include <gtest/gtest.h>

#include <random>

#include "fleetx/base/file.h"
#include "fleetx/fleet/distributed_strategy.h"
#include "tests/support/expect_error.h"
#include "tests/support/temp_dir.h"

namespace fleetx::fleet {
namespace {

using fleetx::testing::contains;
using fleetx::testing::error_of;
using fleetx::testing::TempDir;

DistributedStrategy sample() {
  DistributedStrategy s;
  s.amp = true;
  s.recompute = true;
  s.fuse_grad_size_in_MB = 16;
  s.last_comm_group_size_MB = 0.5;
  s.recompute_configs.checkpoints = {"a", "quote\" back\\ line\n tab\t \xe4\xb8\xad"};
  s.recompute_configs.checkpoint_shape = {-1, 512, 768};
  s.dgc_configs.sparsity = {0.75, 0.999};
  s.amp_configs.decr_ratio = 0.1;
  s.pipeline_configs.schedule_mode = "F-then-B";
  s.mode = DistributedStrategy::Mode::kPs;
  return s;
}

TEST(StrategyText, HoldsWhatDiffersFromTheDefaults) {
  DistributedStrategy s;
  s.amp = true;
  s.recompute_configs.checkpoints = {"a", "b"};
  EXPECT_EQ(s.to_text(),
            "amp: true\n"
            "recompute_configs {\n"
            "  checkpoints: \"a\"\n"
            "  checkpoints: \"b\"\n"
            "}\n");
}

TEST(StrategyText, RoundTripThroughAFile) {
  const TempDir folder;
  sample().save_text(folder / "s.prototxt");
  DistributedStrategy again;
  again.load_text(folder / "s.prototxt");
  EXPECT_EQ(again, sample()) << read_file(folder / "s.prototxt");
  EXPECT_TRUE(contains(error_of([&] { again.load_text(folder / "none"); }), "none"));
}

TEST(StrategyText, LoadMerges) {
  DistributedStrategy s;
  s.lars = true;
  s.lars_configs.epsilon = 1;
  s.lars_configs.exclude_from_weight_decay = {"old"};
  s.merge_text("lars_configs { exclude_from_weight_decay: 'x' exclude_from_weight_decay: 'y' }",
               "t");
  EXPECT_TRUE(s.lars);
  EXPECT_EQ(s.lars_configs.epsilon, 1.0);
  EXPECT_EQ(s.lars_configs.exclude_from_weight_decay, (ir::Strings{"x", "y"}));
}

TEST(StrategyText, ReadsAllFormsOfTheFormat) {
  DistributedStrategy s;
  s.merge_text(R"(# a comment
mode: 2
amp: True, dgc: 1; lamb: false  # another
nccl_comm_num: 0x10
conv_workspace_size_limit: 010
fuse_grad_size_in_TFLOPS: 2.5f
last_comm_group_size_MB: 1e+1
recompute_configs: <
  checkpoints: ['a', "b\x41\102\n" 'c']
  checkpoints: "d"
  checkpoint_shape: []
  checkpoint_shape: [-1, 2]
>
a_sync_configs { k_steps: -1 use_ps_gpu: 1 }
lars_configs{epsilon:inf})",
               "t");
  EXPECT_EQ(s.mode, DistributedStrategy::Mode::kPs);
  EXPECT_TRUE(s.amp && s.dgc && !s.lamb);
  EXPECT_EQ(s.nccl_comm_num, 16);
  EXPECT_EQ(s.conv_workspace_size_limit, 8);
  EXPECT_EQ(s.fuse_grad_size_in_TFLOPS, 2.5);
  EXPECT_EQ(s.last_comm_group_size_MB, 10.0);
  EXPECT_EQ(s.recompute_configs.checkpoints, (ir::Strings{"a", "bAB\nc", "d"}));
  EXPECT_EQ(s.recompute_configs.checkpoint_shape, (ir::Ints{-1, 2}));
  EXPECT_EQ(s.a_sync_configs.k_steps, -1);
  EXPECT_EQ(s.a_sync_configs.use_ps_gpu, 1);
  EXPECT_GT(s.lars_configs.epsilon, 1e300);
}

TEST(StrategyText, ErrorsNameFileAndLine) {
  const auto error = [](const std::string& text) {
    DistributedStrategy s;
    const std::string message = error_of([&] { s.merge_text("\n" + text, "my.prototxt"); });
    EXPECT_EQ(s, DistributedStrategy()) << text;
    return message;
  };
  EXPECT_TRUE(
      contains(error("ampp: true"), "my.prototxt:2: unknown field 'ampp'; did you mean 'amp'"));
  EXPECT_TRUE(contains(error("amp: true\nlars_configs {\n  coeff: 1 }"),
                       "my.prototxt:4: unknown field 'coeff' of lars_configs"));
  EXPECT_TRUE(contains(error("amp: yes"), "my.prototxt:2: expected true or false, got 'yes'"));
  EXPECT_TRUE(contains(error("amp true"), "expected ':' after 'amp'"));
  EXPECT_TRUE(contains(error("amp: true amp: true"), "'amp' is there already, in line 2"));
  EXPECT_TRUE(contains(error("lars_configs {}\nlars_configs {}"), "already, in line 2"));
  EXPECT_TRUE(contains(error("lars_configs {\n\n"), "'lars_configs' of line 2 has no end"));
  EXPECT_TRUE(contains(error("lars_configs: 3"), "expected '{' after 'lars_configs'"));
  EXPECT_TRUE(contains(error("recompute_configs { checkpoints: \"a\n\" }"), "has no end"));
  EXPECT_TRUE(contains(error("recompute_configs { checkpoints: a }"), "quoted text before 'a }'"));
  EXPECT_TRUE(contains(error("recompute_configs { checkpoints: ['a' 3] }"), "expected ']'"));
  EXPECT_TRUE(contains(error("recompute_configs { checkpoints: '\\q' }"), "unknown escape"));
  EXPECT_TRUE(contains(error("recompute_configs { checkpoints: '\\777' }"), "more than a byte"));
  EXPECT_TRUE(contains(error("nccl_comm_num: 99999999999"), "my.prototxt:2: nccl_comm_num"));
  EXPECT_TRUE(contains(error("nccl_comm_num: 99999999999999999999"), "expected a whole number"));
  EXPECT_TRUE(contains(error("nccl_comm_num: -1"), "nccl_comm_num: must be > 0"));
  EXPECT_TRUE(contains(error("last_comm_group_size_MB: --1"), "expected a number"));
  EXPECT_TRUE(contains(error("mode: 7"), "COLLECTIVE"));
  EXPECT_TRUE(contains(error("{"), "expected the name of a field before '{'"));
  EXPECT_TRUE(contains(error(std::string("amp: true \0 lamb: true", 22)), "zero byte"));
}

// Whatever the text: it is read, or refused with an Error.
TEST(StrategyText, DamagedTextNeverCrashes) {
  const std::string good = sample().to_text() +
                           "a_sync_configs: < k_steps: 0x7f > build_strategy { } # end\n"
                           "lamb_configs { exclude_from_weight_decay: ['a', \"\\x41\"] }";
  std::mt19937 random(7);
  size_t refused = 0, read = 0;
  const auto attempt = [&](const std::string& text) {
    DistributedStrategy s;
    try {
      s.merge_text(text, "damaged");
      ++read;
      DistributedStrategy again;
      again.merge_text(s.to_text(), "again");
      EXPECT_EQ(again.to_text(), s.to_text());
    } catch (const Error& e) {
      EXPECT_EQ(e.kind(), Error::Kind::kInvalidArgument);
      ++refused;
    }
  };
  for (size_t length = 0; length <= good.size(); ++length) attempt(good.substr(0, length));
  for (int round = 0; round < 5000; ++round) {
    std::string text = good;
    for (int change = 0; change < 1 + round % 4; ++change) {
      const size_t at = random() % text.size();
      switch (random() % 3) {
        case 0: text[at] = static_cast<char>(random() % 256); break;
        case 1: text.erase(at, 1 + random() % 5); break;
        default: text.insert(at, text.substr(random() % text.size(), random() % 20));
      }
      if (text.empty()) text = "x";
    }
    attempt(text);
  }
  EXPECT_GT(refused, 1000u);
  EXPECT_GT(read, 10u);
}

TEST(StrategyText, LongTextIsReadInLinearTime) {
  std::string text = "recompute_configs {\n";
  for (int i = 0; i < 200'000; ++i) text += "checkpoints: 'a'\n";
  DistributedStrategy s;
  s.merge_text(text + "}", "long");
  EXPECT_EQ(s.recompute_configs.checkpoints.size(), 200'000u);
}

}  // namespace
}  // namespace fleetx::fleet
