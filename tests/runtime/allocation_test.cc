// A step allocates nothing and touches no new page. This binary counts every malloc and operator
// new while a plan runs, with the library that asked for it. oneDNN 2.6 builds a small argument map
// inside each execute call, which its interface gives no way to avoid: those are told apart by the
// caller's address.
#include <dlfcn.h>
#include <gtest/gtest.h>
#include <sys/resource.h>

#include <algorithm>
#include <atomic>
#include <cstdlib>
#include <cstring>
#include <limits>
#include <new>

#include "fleetx/models/lenet.h"
#include "fleetx/optim/optimizer.h"
#include "fleetx/runtime/executor.h"
#include "tests/strategies/parallel_training.h"
#include "tests/support/op_case.h"
#include "tests/support/sample_program.h"
#include "tests/support/workers.h"

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define FLEETX_COUNTS_ALLOCATIONS 0
#elif defined(__has_feature)
#if __has_feature(address_sanitizer) || __has_feature(thread_sanitizer)
#define FLEETX_COUNTS_ALLOCATIONS 0
#endif
#endif
#ifndef FLEETX_COUNTS_ALLOCATIONS
#define FLEETX_COUNTS_ALLOCATIONS 1
#endif

namespace {

std::atomic<bool> counting{false};
std::atomic<int> by_fleetx{0}, by_onednn{0};

[[maybe_unused]] void note(const void* caller) {
  if (!counting.load(std::memory_order_relaxed)) return;
  Dl_info info{};
  const bool found = dladdr(caller, &info) != 0 && info.dli_fname != nullptr;
  if (found && std::strstr(info.dli_fname, "libdnnl") != nullptr)
    ++by_onednn;
  else
    ++by_fleetx;
}

}  // namespace

#if FLEETX_COUNTS_ALLOCATIONS
extern "C" {
void* __libc_malloc(size_t size);                      // NOLINT
void* __libc_calloc(size_t n, size_t size);            // NOLINT
void* __libc_memalign(size_t alignment, size_t size);  // NOLINT

void* malloc(size_t size) {
  note(__builtin_return_address(0));
  return __libc_malloc(size);
}
void* calloc(size_t n, size_t size) {
  note(__builtin_return_address(0));
  return __libc_calloc(n, size);
}
void* aligned_alloc(size_t alignment, size_t size) {
  note(__builtin_return_address(0));
  return __libc_memalign(alignment, size);
}
int posix_memalign(void** out, size_t alignment, size_t size) {
  note(__builtin_return_address(0));
  *out = __libc_memalign(alignment, size);
  return *out == nullptr ? 12 : 0;
}
}

void* operator new(size_t size) {
  note(__builtin_return_address(0));
  if (void* p = __libc_malloc(size)) return p;
  throw std::bad_alloc();
}
// GCC takes these for a mismatch, because it does not know that operator new above is malloc.
#pragma GCC diagnostic ignored "-Wmismatched-new-delete"
void operator delete(void* p) noexcept { std::free(p); }
void operator delete(void* p, size_t) noexcept { std::free(p); }
#endif

namespace fleetx::runtime {
namespace {

// Of a few runs: the kernel moves pages now and then, which is no fault of the program.
template <class Body>
long least_page_faults(const Body& body) {
  const auto faults = [] {
    rusage usage{};
    getrusage(RUSAGE_SELF, &usage);
    return usage.ru_minflt;
  };
  long least = std::numeric_limits<long>::max();
  // Many: on a busy machine a helper may run its first part, and touch its stack, only now.
  for (int i = 0; i < 30 && least > 0; ++i) {
    const long before = faults();
    body();
    least = std::min(least, faults() - before);
  }
  return least;
}

void expect_no_allocation(const ir::Program& main, const ir::Program& startup, const Feeds& feeds,
                          const ir::Names& fetch) {
  if (!FLEETX_COUNTS_ALLOCATIONS) GTEST_SKIP() << "the sanitizer has its own allocator";
  Scope scope;
  Executor exe{ExecutorOptions{}};
  exe.run(startup, scope);
  Plan& plan = exe.plan(main, scope, feeds, fetch);
  exe.run(plan);  // the first run may still set up thread-local things
  by_fleetx = by_onednn = 0;
  counting = true;
  for (int i = 0; i < 5; ++i) exe.run(plan);
  counting = false;
  EXPECT_EQ(by_fleetx, 0);
  EXPECT_LE(by_onednn, 5 * 8 * static_cast<int>(plan.steps().size()));
  EXPECT_EQ(least_page_faults([&] { exe.run(plan); }), 0);
}

TEST(Allocation, PageFaultsAreCounted) {
  EXPECT_GT(least_page_faults([] { Tensor(DType::kF32, Shape{1 << 20}).data<float>()[0] = 1; }), 0);
}

TEST(Allocation, TheCounterCounts) {
  if (!FLEETX_COUNTS_ALLOCATIONS) GTEST_SKIP() << "the sanitizer has its own allocator";
  by_fleetx = 0;
  counting = true;
  auto tensor = std::make_unique<Tensor>(DType::kF32, Shape{16});
  counting = false;
  EXPECT_GT(by_fleetx, 1);
}

TEST(Allocation, ATrainingStepOfAnMlpAllocatesNothing) {
  testing::SampleProgram s;
  optim::Momentum({.lr = 0.1, .mu = 0.9}).minimize(s.loss);
  expect_no_allocation(
      s.main, s.startup,
      {{"x", testing::random({6, 4})}, {"label", testing::random_ints({6, 1}, 0, 3)}}, {"loss"});
}

TEST(Allocation, ATrainingStepOfAConvolutionNetworkAllocatesNothing) {
  ir::Program main, startup;
  ir::Builder b(main, startup);
  const ir::Var x = b.data("x", DType::kF32, {-1, 1, 28, 28});
  const ir::Var label = b.data("label", DType::kI64, {-1, 1});
  const auto network = models::lenet(x);
  const ir::Var each =
      b.op("softmax_cross_entropy", {{"x", network.logits}, {"label", label}})["out"];
  const ir::Var loss = b.op("mean", {{"x", each}}, {}, {{"out", "loss"}});
  optim::Adam({.lr = 0.001}).minimize(loss);
  expect_no_allocation(
      main, startup,
      {{"x", testing::random({8, 1, 28, 28})}, {"label", testing::random_ints({8, 1}, 0, 10)}},
      {"loss"});
}

TEST(Allocation, ADataParallelStepAllocatesNothing) {
  if (!FLEETX_COUNTS_ALLOCATIONS) GTEST_SKIP() << "the sanitizer has its own allocator";
  const int workers = 2;
  testing::run_workers(workers, [&](int rank, const testing::SharedGroups& groups) {
    testing::SampleProgram s;
    optim::Momentum momentum({.lr = 0.1, .mu = 0.9});
    // A bucket for each layer, so that several calls are in flight at once.
    testing::minimize_for_worker(s.loss, momentum, {{"data_parallel", {{"fuse", false}}}}, rank,
                                 workers);
    Scope scope;
    Executor exe({.plan = {.groups = groups}});
    exe.run(s.startup, scope);
    const Feeds feeds{{"x", testing::random({6, 4})},
                      {"label", testing::random_ints({6, 1}, 0, 3)}};
    Plan& plan = exe.plan(s.main, scope, feeds, {"loss"});
    EXPECT_GE(plan.buckets().size(), 2u);
    exe.run(plan);
    comm::Communicator& group = groups->at("dp");
    group.barrier();
    if (rank == 0) by_fleetx = by_onednn = 0, counting = true;
    group.barrier();
    for (int i = 0; i < 50; ++i) exe.run(plan);
    group.barrier();
    if (rank == 0) counting = false;
    group.barrier();
  });
  EXPECT_EQ(by_fleetx, 0);
}

}  // namespace
}  // namespace fleetx::runtime
