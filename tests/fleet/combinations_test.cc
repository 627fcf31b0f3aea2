// Every pair of strategies, and the sets that the documents name: what works trains as its meaning
// says, with two workers; what does not is refused with its reason. A strategy that `meanings` does
// not have means what one worker computes with it.
#include <gtest/gtest.h>

#include <fstream>
#include <sstream>

#include "fleetx/fleet/distributed_optimizer.h"
#include "fleetx/nn/nn.h"
#include "fleetx/strategies/matrix.h"
#include "tests/strategies/worker.h"
#include "tests/support/expect_error.h"
#include "tests/support/temp_dir.h"

namespace fleetx::fleet {
namespace {

using Set = std::vector<std::string>;
using strategies::Request;

constexpr int kSteps = 13;
constexpr int kMerged = 2;

struct Meaning {
  ir::Attrs configs = {};
  double tolerance = 1e-5;
  // The reference has the strategy, too: one worker with it is what several are compared with.
  bool alone_too = false;
  int average_every = 0;  // steps: workers train on their own and average parameters
};

// To be compared with what one worker computes, or where workers have parameters of their own, with
// two that average them by hand.
const std::map<std::string, Meaning>& meanings() {
  static const std::map<std::string, Meaning> all = {
      // Rounding to 16 bits is that of each sample, so it is the same for one worker; sums are not.
      {"amp", {.tolerance = 4e-3, .alone_too = true}},
      {"recompute", {}},
      // Micro-batches of one stage: those of several are in tests/strategies/pipeline_test.cc.
      {"pipeline", {.configs = {{"accumulate_steps", kMerged}}}},
      {"gradient_merge", {.configs = {{"k_steps", kMerged}}}},
      {"lars", {.configs = {{"lars_coeff", 0.1}, {"lars_weight_decay", 0.01}}}},
      {"lamb", {.configs = {{"lamb_weight_decay", 0.02}}}},
      {"fp16_allreduce", {.tolerance = 4e-3}},
      {"sharding", {}},
      {"sync_batch_norm", {.tolerance = 1e-4}},
      // All elements are sent, and the momentum is 0.
      {"dgc", {.configs = {{"sparsity", ir::Floats{0.0}}}}},
      {"localsgd", {.configs = {{"k_steps", 2}}, .average_every = 2}},
      // Until begin_step they average in every step.
      {"adaptive_localsgd", {.configs = {{"begin_step", 1000}}, .average_every = 1}},
  };
  return all;
}

bool has_meaning(const std::string& name) { return meanings().contains(name); }

const Meaning& meaning_of(const std::string& name) {
  static const Meaning itself{.alone_too = true};
  return has_meaning(name) ? meanings().at(name) : itself;
}

bool contains(const Set& set, const std::string& name) {
  return std::find(set.begin(), set.end(), name) != set.end();
}

DistributedStrategy strategy_of(const Set& set) {
  DistributedStrategy s;
  for (const std::string& name : set) {
    s.set(name, true);
    if (const ir::Attrs& configs = meaning_of(name).configs; !configs.empty())
      s.set_configs(name + "_configs", configs);
  }
  // The micro-batches of two workers hold other samples than those of one.
  if (contains(set, "sync_batch_norm")) s.pipeline_configs = {};
  return s;
}

// A parameter that is large enough for dgc, a norm for sync_batch_norm.
ir::Var network(ir::Builder& b, const Set& set) {
  ir::Var h = b.data("x", f32, {-1, 12});
  h = nn::fc(h, {.size = contains(set, "dgc") ? 1400 : 40, .act = "tanh"});
  if (contains(set, "sync_batch_norm")) h = nn::batch_norm(h);
  h = nn::fc(h, {.size = 20, .act = "relu"});
  const ir::Var logits = nn::fc(h, {.size = 5});
  return nn::mean(nn::softmax_cross_entropy(logits, b.data("y", i64, {-1, 1})));
}

std::unique_ptr<optim::Optimizer> users_optimizer(const Set& set) {
  if (contains(set, "lamb")) return std::make_unique<optim::Adam>(optim::AdamOptions{.lr = 0.01});
  return std::make_unique<optim::Momentum>(optim::MomentumOptions{
      .lr = contains(set, "lars") ? 0.5 : 0.05, .mu = contains(set, "dgc") ? 0.0 : 0.8});
}

std::unique_ptr<optim::Optimizer> meant_optimizer(const Set& set) {
  if (contains(set, "lamb"))
    return std::make_unique<optim::Lamb>(
        optim::LambOptions{.lr = 0.01, .epsilon = 1e-8, .weight_decay = 0.02});
  if (contains(set, "lars"))
    return std::make_unique<optim::LarsMomentum>(optim::LarsMomentumOptions{
        .lr = 0.5, .mu = 0.8, .lars_coeff = 0.1, .lars_weight_decay = 0.01});
  return users_optimizer(set);
}

struct ByHand {
  int workers = 2;
  int steps = kSteps;
  int batches_per_step = 1;
  int average_every = 0;
};

using Parameters = std::map<std::string, Tensor>;

void average_by_hand(runtime::Scope& scope, const ir::Program& main,
                     const testing::SharedGroups& groups) {
  for (const ir::VarInfo* p : main.parameters()) {
    const Tensor mean = testing::map(scope.get(p->name), [](float x) { return x; });
    groups->at("dp").all_reduce(mean.raw(), mean.numel(), f32, comm::ReduceOp::kAverage);
    scope.set(p->name, mean);
  }
}

Parameters train(const Set& set, optim::Optimizer& optimizer, const std::vector<Request>& requests,
                 const ByHand& job) {
  std::vector<Parameters> all(static_cast<size_t>(job.workers));
  std::mutex building;  // the optimizer is shared
  testing::run_workers(job.workers, [&](int rank, const testing::SharedGroups& groups) {
    ir::Program main, startup;
    ir::Builder b(main, startup);
    std::string loss;
    {
      const std::scoped_lock lock(building);
      const ir::Var l = network(b, set);
      loss = l.name();
      startup.set_seed(7);
      testing::minimize_for_worker(l, optimizer, requests, rank, job.workers);
    }
    runtime::Scope scope;
    runtime::Executor exe({.plan = {.groups = groups}});
    exe.run(startup, scope);
    const testing::TrainOptions feeds{.workers = job.workers,
                                      .batches_per_step = job.batches_per_step};
    for (int step = 0; step < job.steps; ++step) {
      exe.run(main, scope, testing::batch_of(step, feeds, rank), {loss});
      if (job.average_every > 0 && step % job.average_every == 0)
        average_by_hand(scope, main, groups);
    }
    for (const ir::VarInfo* p : main.parameters())
      all[static_cast<size_t>(rank)].emplace(p->name, scope.get(p->name));
  });
  for (const auto& [name, value] : all[0])
    testing::expect_close(all.back().at(name), value, 0, name + " of the last worker");
  return all[0];
}

// What the set means, without the strategies in it but for those that mean themselves.
Parameters reference(const Set& set) {
  const std::unique_ptr<optim::Optimizer> optimizer = meant_optimizer(set);
  ByHand job{.workers = 1};
  for (const std::string& name : set)
    job.average_every = std::max(job.average_every, meaning_of(name).average_every);
  const bool local = job.average_every > 0;
  Set same;
  for (const std::string& name : set)
    if (meaning_of(name).alone_too) same.push_back(name);
  if (contains(set, "gradient_merge")) {
    // A batch norm sees the batches one by one, workers that average parameters count them, and so
    // may a strategy that means itself.
    if (local || contains(set, "sync_batch_norm") ||
        !std::all_of(set.begin(), set.end(), has_meaning)) {
      same.push_back("gradient_merge");
    } else {
      job.batches_per_step = kMerged;
      job.steps = kSteps / kMerged;
    }
  }
  if (local && contains(set, "sync_batch_norm")) same.push_back("sync_batch_norm");
  if (local) job.workers = 2;
  const DistributedStrategy s = strategy_of(same);
  std::vector<Request> requests = requests_of(s, mesh_of(s, job.workers, 0));
  for (Request& r : requests) {
    if (local && r.name == "data_parallel") r.options.insert_or_assign("average", false);
    if (local && r.name == "gradient_merge") r.options.insert_or_assign("local", true);
  }
  return train(set, *optimizer, requests, job);
}

void expect_trains(const Set& set) {
  const DistributedStrategy s = strategy_of(set);
  const std::unique_ptr<optim::Optimizer> optimizer = users_optimizer(set);
  const Parameters got = train(set, *optimizer, requests_of(s, mesh_of(s, 2, 0)), {});
  double tolerance = 0;
  for (const std::string& name : set) tolerance += meaning_of(name).tolerance;
  const Parameters want = reference(set);
  ASSERT_EQ(got.size(), want.size());
  for (const auto& [name, value] : want)
    testing::expect_close(got.at(name), value, tolerance, name);
}

void expect_refused(const Set& set, const std::string& reason) {
  for (const int workers : {1, 2})
    EXPECT_EQ(testing::error_of([&] {
                const DistributedStrategy s = strategy_of(set);
                ir::Program main, startup;
                ir::Builder b(main, startup);
                DistributedOptimizer(std::shared_ptr<optim::Optimizer>(users_optimizer(set)), s,
                                     mesh_of(s, workers, 0))
                    .minimize(network(b, set));
              }),
              reason)
        << workers << " workers";
}

TEST(Combinations, EveryPairTrainsOrIsRefused) {
  const std::vector<std::string> names = strategies::combinable_strategies();
  int works = 0;
  for (size_t i = 0; i < names.size(); ++i)
    for (size_t j = 0; j <= i; ++j) {
      const Set set = i == j ? Set{names[i]} : Set{names[i], names[j]};
      SCOPED_TRACE(names[i] + " with " + names[j]);
      const std::string reason = i == j ? "" : strategies::why_not_together(names[i], names[j]);
      if (!reason.empty()) {
        expect_refused(set, reason);
        continue;
      }
      ++works;
      expect_trains(set);
    }
  EXPECT_GT(works, static_cast<int>(names.size()));
}

// Those of the documents, and more.
const std::vector<Set>& larger_sets() {
  static const std::vector<Set> all{{"amp", "recompute", "lars"},
                                    {"amp", "recompute", "lamb"},
                                    {"gradient_merge", "amp", "recompute", "lars"},
                                    {"gradient_merge", "amp", "recompute", "lamb"},
                                    {"fp16_allreduce", "gradient_merge", "amp", "lars"},
                                    {"sync_batch_norm", "amp", "recompute", "lars"},
                                    {"sharding", "amp", "recompute", "lamb"},
                                    {"sharding", "gradient_merge", "amp", "lars"},
                                    {"amp", "recompute", "dgc"},
                                    {"amp", "gradient_merge", "dgc"},
                                    {"amp", "recompute", "localsgd"},
                                    {"amp", "recompute", "adaptive_localsgd"},
                                    {"amp", "gradient_merge", "localsgd"}};
  return all;
}

std::string text_of(const Set& set) {
  std::string text;
  for (const std::string& name : set) text += name + " ";
  return text;
}

TEST(Combinations, LargerSetsTrain) {
  for (const Set& set : larger_sets()) {
    SCOPED_TRACE(text_of(set));
    expect_trains(set);
  }
}

// What a worker sees: a change of its state changes them in the steps that follow.
struct Seen {
  std::vector<float> losses;
  Parameters parameters;
};

// Steps [first, last) of two workers, between checkpoints, where their folders are given.
std::vector<Seen> run_steps(const Set& set, const std::vector<Request>& requests, int first,
                            int last, const std::string& load, const std::string& save) {
  std::vector<Seen> all(2);
  testing::run_workers(2, [&](int rank, const testing::SharedGroups& groups) {
    testing::Worker worker([&](ir::Builder& b) { return network(b, set); },
                           [&] { return users_optimizer(set); }, requests, rank, 2, groups);
    if (!load.empty()) worker.load(load);
    Seen& seen = all[static_cast<size_t>(rank)];
    for (int step = first; step < last; ++step)
      seen.losses.push_back(worker.step(testing::batch_of(step, {.workers = 2}, rank)));
    if (!save.empty()) worker.save(save, rank);
    for (const std::string& name : worker.parameters())
      seen.parameters.emplace(name, worker.get(name).clone());
  });
  return all;
}

// Stopped in the middle of every period and resumed: the bits of a run that was not stopped.
void expect_same_bits_after_a_stop(const Set& set) {
  constexpr int kStop = 4, kLast = 9;
  DistributedStrategy s = strategy_of(set);
  if (s.amp) s.amp_configs.incr_every_n_steps = 3;
  if (s.gradient_merge) s.gradient_merge_configs.k_steps = 3;
  if (s.localsgd) s.localsgd_configs.k_steps = 4;
  if (s.adaptive_localsgd) s.adaptive_localsgd_configs = {.init_k_steps = 4, .begin_step = 1};
  if (s.dgc)
    s.dgc_configs = {.rampup_begin_step = 2, .rampup_step = 4, .sparsity = {0.5, 0.75, 0.9, 0.99}};
  const std::vector<Request> requests = requests_of(s, mesh_of(s, 2, 0));
  const testing::TempDir folder;
  const auto whole = run_steps(set, requests, 0, kLast, "", "");
  const auto begun = run_steps(set, requests, 0, kStop, "", folder.path());
  const auto resumed = run_steps(set, requests, kStop, kLast, folder.path(), "");
  for (size_t rank = 0; rank < whole.size(); ++rank) {
    std::vector<float> losses = begun[rank].losses;
    losses.insert(losses.end(), resumed[rank].losses.begin(), resumed[rank].losses.end());
    EXPECT_EQ(losses, whole[rank].losses) << "of worker " << rank;
    for (const auto& [name, value] : whole[rank].parameters)
      testing::expect_close(resumed[rank].parameters.at(name), value, 0, name);
  }
}

TEST(Combinations, ResumeWithTheSameBits) {
  const std::vector<std::string> names = strategies::combinable_strategies();
  std::vector<Set> sets = larger_sets();
  for (size_t i = 0; i < names.size(); ++i) {
    sets.push_back({names[i]});
    for (size_t j = 0; j < i; ++j)
      if (strategies::why_not_together(names[i], names[j]).empty())
        sets.push_back({names[i], names[j]});
  }
  for (const Set& set : sets) {
    SCOPED_TRACE(text_of(set));
    expect_same_bits_after_a_stop(set);
  }
}

// `fleetx strategies --markdown` between the marks.
TEST(Combinations, TheDocumentHasTheMatrix) {
  std::ifstream file(FLEETX_SOURCE_DIR "/docs/strategy.md");
  const std::string doc{std::istreambuf_iterator<char>(file), {}};
  std::ostringstream matrix;
  strategies::print_matrix(matrix, strategies::MatrixForm::kMarkdown);
  const std::string begin = "<!-- matrix: the output of `fleetx strategies --markdown` -->\n";
  EXPECT_NE(doc.find(begin + matrix.str() + "<!-- end of matrix -->"), std::string::npos)
      << "docs/strategy.md is not current; it should have:\n"
      << matrix.str();
}

TEST(Combinations, TheMatrixNamesReasons) {
  std::ostringstream text;
  strategies::print_matrix(text, strategies::MatrixForm::kText);
  EXPECT_TRUE(
      testing::contains(text.str(), "strategies 'lars' and 'lamb' cannot be used together"));
  EXPECT_EQ(strategies::why_not_together("lars", "recompute"), "");
  EXPECT_EQ(text.str().find("data_parallel"), std::string::npos);
}

}  // namespace
}  // namespace fleetx::fleet
