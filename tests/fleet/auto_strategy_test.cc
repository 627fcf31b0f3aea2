#include "fleetx/fleet/auto_strategy.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "fleetx/base/file.h"
#include "fleetx/fleet/distributed_optimizer.h"
#include "fleetx/ir/text.h"
#include "fleetx/nn/nn.h"
#include "fleetx/optim/schedule.h"
#include "tests/support/expect_error.h"
#include "tests/support/temp_dir.h"

namespace fleetx::fleet {
namespace {

using testing::contains;
using testing::error_of;

DistributedStrategy automatic(ir::Strings allow = {}) {
  DistributedStrategy s;
  s.auto_ = true;
  s.auto_configs.allow = std::move(allow);
  return s;
}

Mesh workers(int count) { return fleetx::mesh_of({}, count, 0); }

// Recompute halves the memory and costs a third; smaller buckets help; halves help more.
Candidate made_up(const DistributedStrategy& s, const Mesh& mesh, double limit) {
  Candidate c{.seconds = 1, .bytes = 100, .limit = limit};
  if (s.recompute) c = {1.33, 50, limit};
  if (mesh.world() > 1) c.seconds += s.fp16_allreduce ? 0.1 : 0.2;
  if (mesh.world() > 1) c.seconds += s.fuse_grad_size_in_MB == 16 ? 0 : 0.05;
  if (s.amp) c.seconds *= 0.6, c.bytes *= 0.6;
  if (s.gradient_merge) c.seconds *= 0.9;
  // Sharding costs a little, and divides the state: half of the memory, then more of it.
  if (s.sharding) {
    const int stage = s.sharding_configs.stage;
    const int workers =
        s.hybrid_configs.sharding_degree > 1 ? s.hybrid_configs.sharding_degree : mesh.size("dp");
    c.seconds += 0.02 * stage;
    c.bytes -= c.bytes * (0.3 + 0.2 * stage) * (1 - 1.0 / workers);
  }
  return c;
}

Evaluate with_limit(double limit) {
  return
      [limit](const DistributedStrategy& s, const Mesh& mesh) { return made_up(s, mesh, limit); };
}

TEST(Auto, TakesNothingThatOnlyCosts) {
  const AutoChoice choice = choose_strategy(automatic(), workers(1), with_limit(1000));
  EXPECT_EQ(choice.strategy, DistributedStrategy());
  EXPECT_TRUE(contains(choice.report, "chose plain"));
  EXPECT_TRUE(contains(choice.report, "recompute: 1330.0 ms, 0 MiB; 33.0 % slower"));
}

TEST(Auto, TakesWhatFits) {
  const AutoChoice choice = choose_strategy(automatic(), workers(1), with_limit(60));
  EXPECT_TRUE(choice.strategy.recompute);
  EXPECT_TRUE(contains(choice.report, "more than there are"));
}

TEST(Auto, ChoosesSizesOfBuckets) {
  const AutoChoice choice = choose_strategy(automatic(), workers(4), with_limit(1000));
  EXPECT_EQ(choice.strategy.changed(), std::vector<std::string>{"fuse_grad_size_in_MB"});
  EXPECT_EQ(choice.strategy.fuse_grad_size_in_MB, 16);
}

TEST(Auto, ShardsWhatDoesNotFit) {
  const auto chosen = [](double limit, int count) {
    return choose_strategy(automatic(), workers(count), with_limit(limit)).strategy;
  };
  EXPECT_FALSE(chosen(100, 4).sharding);
  EXPECT_EQ(chosen(65, 4).sharding_configs.stage, 1);
  EXPECT_EQ(chosen(50, 4).sharding_configs.stage, 2);
  EXPECT_EQ(chosen(35, 4).sharding_configs.stage, 3);
  const DistributedStrategy both = chosen(20, 4);
  EXPECT_TRUE(both.sharding && both.recompute);
  // Many workers: neighbours divide.
  EXPECT_EQ(chosen(35, 4).hybrid_configs.sharding_degree, 1);
  EXPECT_EQ(chosen(22, 1024).hybrid_configs.sharding_degree, 8);
  EXPECT_EQ(chosen(14, 1024).hybrid_configs.sharding_degree, 64);
}

TEST(Auto, DividesLayersOnlyWhereThatIsAllowed) {
  const auto evaluate = [](const DistributedStrategy& s, const Mesh& mesh) {
    return Candidate{1, 100.0 / mesh.size("mp"), s.sharding ? 0.0 : 60.0};
  };
  EXPECT_TRUE(contains(error_of([&] { choose_strategy(automatic(), workers(4), evaluate); }),
                       "tensor_parallel"));
  const AutoChoice choice = choose_strategy(automatic({"tensor_parallel"}), workers(4), evaluate);
  EXPECT_EQ(choice.strategy.hybrid_configs.mp_degree, 2);
  // What the program has split is split.
  const AutoChoice split = choose_strategy(automatic(), workers(4), evaluate, 4);
  EXPECT_EQ(split.strategy.hybrid_configs.mp_degree, 4);
}

TEST(Auto, DividesATransformer) {
  const auto chosen = [](int64_t limit, ir::Strings allow) {
    ir::Program main, startup;
    ir::Builder b(main, startup);
    const ir::Var x = b.data("x", f32, {-1, 16, 512});
    const ir::Var loss = nn::mean(nn::encoder_layer(x, {.heads = 8, .intermediate = 2048}));
    DistributedStrategy s = automatic(std::move(allow));
    s.auto_configs.memory_limit_MB = limit;
    s.auto_configs.batch_size = 2;
    DistributedOptimizer optimizer{std::make_shared<optim::Adam>(), s, workers(2)};
    optimizer.minimize(loss);
    return std::pair(optimizer.strategy(), main.var("encoder_layer_0_ffn_0.w_0").type.shape);
  };
  const auto process = static_cast<int64_t>(resident_bytes() >> 20);
  const auto [strategy, shape] = chosen(process + 1000, {"tensor_parallel"});
  EXPECT_EQ(shape[1], 2048 / strategy.hybrid_configs.mp_degree);
}

// ---- stages ----

TEST(Auto, CutsIntoStagesOnlyWhereThatIsAllowed) {
  // A stage has its part of everything; half of the time of few micro-batches is lost.
  const auto evaluate = [](const DistributedStrategy& s, const Mesh& mesh) {
    const double waiting = s.pipeline ? 2.0 / s.pipeline_configs.accumulate_steps : 0;
    return Candidate{1 + waiting, 100.0 / mesh.size("pp"), 60.0};
  };
  EXPECT_TRUE(contains(error_of([&] { choose_strategy(automatic(), workers(4), evaluate); }),
                       "pipeline (changes what is learned)"));
  const AutoChoice choice = choose_strategy(automatic({"pipeline"}), workers(4), evaluate);
  EXPECT_EQ(choice.strategy.hybrid_configs.pp_degree, 4);
  EXPECT_EQ(choice.strategy.pipeline_configs.accumulate_steps, 16);
  for (const char* line : {"chose pipeline of 4 stages, 16 micro-batches: 1125.0 ms",
                           "pipeline of 2 stages, 8 micro-batches: 11.1 % slower",
                           "plain: needs 0 MiB more than there are"})
    EXPECT_TRUE(contains(choice.report, line)) << choice.report;
}

// Wide layers and a small batch: gradients are larger than what crosses the cut.
TEST(Auto, ASlowLinkIsForStages) {
  const testing::TempDir folder;
  const auto chosen = [&](double rate) {
    write_file(folder / "machine.yaml",
               str("name: two hosts\ncores: 1\nranks: 1\nmemory_GiB: 16\ncompute: {f32_GFLOPS: 20, "
                   "memory_GBps: 10}\nlinks: {host: {GBps: 5, latency_us: 1}, network: "
                   "{latency_us: 20, GBps: ",
                   rate, "}}\n"));
    ir::Program main, startup;
    ir::Builder b(main, startup);
    ir::Var h = b.data("x", f32, {-1, 256});
    for (int i = 0; i < 8; ++i) h = nn::fc(h, {.size = 256, .act = "relu"});
    const ir::Var loss = nn::mean(h);
    DistributedStrategy s = automatic({"pipeline"});
    s.auto_configs.machine = folder / "machine.yaml";
    DistributedOptimizer optimizer{std::make_shared<optim::Sgd>(), s, workers(2)};
    optimizer.minimize(loss);
    // The program is that of the choice.
    const bool cut =
        std::ranges::any_of(main.ops(), [](const ir::Op& op) { return op.type() == "send_start"; });
    EXPECT_EQ(cut, optimizer.strategy().pipeline);
    return optimizer.strategy();
  };
  EXPECT_FALSE(chosen(5).pipeline);
  const DistributedStrategy slow = chosen(0.01);
  EXPECT_TRUE(slow.pipeline);
  EXPECT_EQ(slow.hybrid_configs.pp_degree, 2);
}

TEST(Auto, TakesWhatSetsLessOfWhatIsAsFast) {
  const AutoChoice choice =
      choose_strategy(automatic(), workers(4), [](const DistributedStrategy& s, const Mesh&) {
        return Candidate{s.fuse_grad_size_in_MB == 4 ? 0.9995 : 1, 1, 10};
      });
  EXPECT_EQ(choice.strategy, DistributedStrategy());
  EXPECT_TRUE(contains(choice.report, "chose plain"));
  EXPECT_TRUE(contains(choice.report, "as fast, with more to set"));
}

TEST(Auto, TakesWhatChangesNumbersOnlyWhereThatIsAllowed) {
  const AutoChoice plain = choose_strategy(automatic(), workers(4), with_limit(1000));
  EXPECT_FALSE(plain.strategy.amp || plain.strategy.fp16_allreduce ||
               plain.strategy.gradient_merge);
  EXPECT_TRUE(contains(plain.report,
                       "not tried, as auto_configs.allow does not name them: amp "
                       "(rounds more), fp16_allreduce (rounds more), gradient_merge "
                       "(changes what is learned)"));
  const AutoChoice all = choose_strategy(automatic({"amp", "fp16_allreduce", "gradient_merge"}),
                                         workers(4), with_limit(1000));
  EXPECT_TRUE(all.strategy.amp && all.strategy.fp16_allreduce && all.strategy.gradient_merge);
  EXPECT_FALSE(all.strategy.recompute);
  EXPECT_EQ(all.strategy.fuse_grad_size_in_MB, 16);
}

// Of 2 x 2 x 2 x 4 x 4 x 4 combinations, the search sees a part and still finds the best.
TEST(Auto, FindsTheBestOfAllCombinations) {
  const DistributedStrategy asked = automatic({"amp", "fp16_allreduce", "gradient_merge"});
  for (const double limit : {1000.0, 70.0, 40.0}) {
    const AutoChoice choice = choose_strategy(asked, workers(4), with_limit(limit));
    double best = 1e9;
    for (int bits = 0; bits < 128; ++bits) {
      DistributedStrategy s;
      s.recompute = bits & 1, s.amp = bits & 2, s.fp16_allreduce = bits & 4;
      s.gradient_merge = bits & 8;
      if (bits & 16) s.fuse_grad_size_in_MB = 16;
      s.sharding = bits >= 32;
      if (s.sharding) s.sharding_configs.stage = bits / 32;
      const Candidate c = made_up(s, workers(4), limit);
      if (c.bytes <= c.limit) best = std::min(best, c.seconds);
    }
    EXPECT_DOUBLE_EQ(choice.predicted.seconds, best) << limit;
    EXPECT_LT(choice.tried, 128);
  }
}

TEST(Auto, WhatIsRefusedIsLeftOut) {
  const AutoChoice choice =
      choose_strategy(automatic(), workers(1), [](const DistributedStrategy& s, const Mesh&) {
        check_arg(!s.recompute, "recompute: not with this network");
        return Candidate{1, 1, 10};
      });
  EXPECT_TRUE(contains(choice.report, "refused: recompute: not with this network"));
}

TEST(Auto, MistakesAreExplained) {
  const auto error = [](const DistributedStrategy& s, double limit) {
    return error_of([&] { choose_strategy(s, workers(2), with_limit(limit)); });
  };
  DistributedStrategy s = automatic();
  s.recompute = true;
  EXPECT_TRUE(contains(error(s, 1000), "but recompute is set beside it"));
  s = automatic();
  s.fuse_grad_size_in_MB = 16;
  s.lars_configs.epsilon = 1;
  EXPECT_TRUE(
      contains(error(s, 1000), "fuse_grad_size_in_MB, lars_configs.epsilon are set beside"));
  EXPECT_TRUE(contains(error(automatic({"dgc"}), 1000), "auto does not choose 'dgc'"));
  EXPECT_TRUE(contains(error(automatic({"apm"}), 1000), "did you mean 'amp'"));
  const std::string small = error(automatic(), 10);
  for (const char* part : {"fits in no way", "recompute", "more than the", "smaller batch", "amp"})
    EXPECT_TRUE(contains(small, part));
}

// ---- the whole way ----

struct Mlp {
  ir::Program main, startup;
  ir::Builder b{main, startup};
  ir::Var x = b.data("x", f32, {-1, 16});
  ir::Var loss = nn::mean(nn::square(nn::fc(nn::fc(x, {.size = 64}), {.size = 4})));
};

DistributedOptimizer optimizer_for(const DistributedStrategy& s, int count) {
  return {std::make_shared<optim::Sgd>(), s, workers(count)};
}

TEST(Auto, MinimizeMakesTheProgramOfItsChoice) {
  const testing::TempDir folder;
  Mlp net;
  DistributedStrategy s = automatic();
  s.auto_configs.save_to = folder / "choice.prototxt";
  DistributedOptimizer optimizer = optimizer_for(s, 4);
  const auto where = std::source_location::current();
  optimizer.minimize(net.loss, {}, where);
  EXPECT_FALSE(optimizer.strategy().auto_);

  DistributedStrategy loaded;
  loaded.load_text(folder / "choice.prototxt");
  EXPECT_EQ(loaded, optimizer.strategy());
  Mlp again;
  optimizer_for(loaded, 4).minimize(again.loss, {}, where);
  // To the last name: other workers, which do not search, must have the same program.
  EXPECT_EQ(ir::to_text(net.main), ir::to_text(again.main));
  EXPECT_EQ(ir::to_text(net.startup), ir::to_text(again.startup));
}

// The learning rate is a variable of the program itself; what is tried has a copy of it.
TEST(Auto, WorksWithASchedule) {
  Mlp net;
  const ir::Var rate = optim::exponential(net.b, 0.1, {.steps = 10});
  DistributedOptimizer optimizer{std::make_shared<optim::Sgd>(optim::SgdOptions{.lr = rate}),
                                 automatic(), workers(2)};
  optimizer.minimize(net.loss);
  EXPECT_EQ(optimizer.inner().learning_rate().name(), rate.name());
}

TEST(Auto, MinimizeLeavesTheProgramAloneWhereNothingFits) {
  Mlp net;
  const std::string before = ir::to_text(net.main);
  DistributedStrategy s = automatic();
  s.auto_configs.memory_limit_MB = 1;
  s.auto_configs.batch_size = 1 << 20;
  EXPECT_TRUE(
      contains(error_of([&] { optimizer_for(s, 1).minimize(net.loss); }), "fits in no way"));
  EXPECT_EQ(ir::to_text(net.main), before);
}

// A real network of four workers, with memory for less and less of it.
TEST(Auto, ShardsARealNetwork) {
  const auto chosen = [](int64_t megabytes) {
    ir::Program main, startup;
    ir::Builder b(main, startup);
    ir::Var h = b.data("x", f32, {-1, 1024});
    for (int i = 0; i < 8; ++i) h = nn::fc(h, {.size = 1024, .act = "relu"});
    const ir::Var loss = nn::mean(h);
    DistributedStrategy s = automatic();
    s.auto_configs.memory_limit_MB = megabytes;
    DistributedOptimizer optimizer{std::make_shared<optim::Adam>(), s, workers(4)};
    optimizer.minimize(loss);
    return optimizer.strategy();
  };
  const auto resident = [] { return static_cast<int64_t>(resident_bytes() >> 20); };
  chosen(resident() + 1000);
  const int64_t process = resident();  // with what planning has left behind, under sanitizers most
  // 32 MiB each of parameters, gradients and two moments.
  EXPECT_TRUE(chosen(process + 85).sharding);
  const std::string none = error_of([&] { chosen(process / 2); });
  for (const char* part : {"fits in no way", "sharding stage 3", "more than the"})
    EXPECT_TRUE(contains(none, part)) << none;
}

TEST(Auto, UnknownSizesAreAskedFor) {
  ir::Program main, startup;
  ir::Builder b(main, startup);
  const ir::Var loss = nn::mean(nn::square(b.data("x", f32, {-1, -1})));
  const ir::Var w = nn::mean(nn::fc(b.data("z", f32, {-1, 4}), {.size = 1}));
  const ir::Var sum = nn::mean(loss + w);
  DistributedStrategy s = automatic();
  EXPECT_TRUE(contains(error_of([&] { optimizer_for(s, 1).minimize(sum); }), "the data 'x' are"));
  s.auto_configs.shapes = {"x:8"};
  EXPECT_TRUE(contains(error_of([&] { optimizer_for(s, 1).minimize(sum); }), "write NAME=8,128"));
  s.auto_configs.shapes = {"x=8,128", "y=8"};
  EXPECT_TRUE(
      contains(error_of([&] { optimizer_for(s, 1).minimize(sum); }), "no data of that name"));
  s.auto_configs.shapes = {"x=8,128"};
  optimizer_for(s, 1).minimize(sum);
}

}  // namespace
}  // namespace fleetx::fleet
