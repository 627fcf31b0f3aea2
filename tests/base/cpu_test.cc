#include "fleetx/base/cpu.h"

#include <gtest/gtest.h>

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

TEST(Cpu, VectorizedRunsTheBodyOnce) {
  int calls = 0;
  vectorized([&] { ++calls; });
  EXPECT_EQ(calls, 1);
}

}  // namespace
}  // namespace fleetx::cpu
