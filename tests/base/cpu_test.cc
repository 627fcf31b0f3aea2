#include "fleetx/base/cpu.h"

#include <gtest/gtest.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>

#include "fleetx/base/simd.h"

namespace fleetx::cpu {
namespace {

TEST(Cpu, UsesTheHighestLevelThatSurvives) {
  const auto all_work = [](Isa) { return true; };
  EXPECT_EQ(probe({Isa::kAvx2, Isa::kAvx512}, all_work).best, Isa::kAvx512);
  EXPECT_EQ(probe({}, all_work).best, Isa::kSse);
}

TEST(Cpu, AnAdvertisedLevelThatFaultsIsNotUsed) {
  const std::vector<Isa> advertised{Isa::kAvx2, Isa::kAvx512, Isa::kAvx512Bf16, Isa::kAmx};
  const Capabilities found = probe(advertised, [](Isa isa) { return isa != Isa::kAmx; });
  EXPECT_EQ(found.best, Isa::kAvx512Bf16);
  EXPECT_EQ(found.faulty, std::vector<Isa>{Isa::kAmx});
}

TEST(Cpu, ALevelAboveAFaultyOneIsNotUsedEither) {
  const Capabilities found =
      probe({Isa::kAvx2, Isa::kAvx512, Isa::kAmx}, [](Isa isa) { return isa != Isa::kAvx512; });
  EXPECT_EQ(found.best, Isa::kAvx2);
}

TEST(Cpu, ProbingAnInstructionThatIsNotThereKillsOnlyTheChild) {
  // Whatever this machine has, the call must come back.
  for (const Isa isa : {Isa::kSse, Isa::kAvx2, Isa::kAvx512, Isa::kAvx512Bf16, Isa::kAmx})
    (void)survives_in_child(isa);
  EXPECT_TRUE(survives_in_child(Isa::kSse));
}

// AMX in plain assembly, which no compiler can change: a product of two tiles of ones.
bool amx_works() {
  static const struct alignas(64) {
    uint8_t palette = 1, start_row = 0, reserved[14] = {};
    uint16_t column_bytes[16] = {64, 64, 64};
    uint8_t rows[16] = {16, 16, 16};
  } config;
  alignas(64) static uint16_t ones[512];
  alignas(64) static float out[256];
  const pid_t child = fork();
  if (child == 0) {
    if (syscall(SYS_arch_prctl, 0x1023, 18) != 0) _exit(1);
    std::fill(std::begin(ones), std::end(ones), uint16_t{0x3f80});
    asm volatile(
        "ldtilecfg (%0)\n tilezero %%tmm0\n"
        "tileloadd (%1,%3,1), %%tmm1\n tileloadd (%1,%3,1), %%tmm2\n"
        "tdpbf16ps %%tmm2, %%tmm1, %%tmm0\n tilestored %%tmm0, (%2,%3,1)\n tilerelease"
        :
        : "r"(&config), "r"(ones), "r"(out), "r"(int64_t{64})
        : "memory");
    _exit(std::all_of(std::begin(out), std::end(out), [](float v) { return v == 32; }) ? 0 : 1);
  }
  int status = -1;
  waitpid(child, &status, 0);
  return status == 0;
}

TEST(Cpu, TheProbeOfAmxTellsTheTruth) {
  EXPECT_EQ(survives_in_child(Isa::kAmx), amx_works());
  // A library that trusts best_isa() must not fault: this very process has its tiles.
  if (best_isa() != Isa::kAmx) return;
  uint64_t granted = 0;
  ASSERT_EQ(syscall(SYS_arch_prctl, 0x1022, &granted), 0);  // ARCH_GET_XCOMP_PERM
  EXPECT_TRUE(granted & (1 << 18)) << granted;
}

TEST(Cpu, VectorizedRunsTheBodyOnce) {
  int calls = 0;
  vectorized([&] { ++calls; });
  EXPECT_EQ(calls, 1);
}

}  // namespace
}  // namespace fleetx::cpu
