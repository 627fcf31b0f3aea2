// A program can be started by mpirun instead of fleetrun: it finds its rank there.
#include <unistd.h>

#include <cstdio>

#include "tests/launch/fleetrun.h"

namespace fleetx::testing {
namespace {

std::string output_of(const std::string& command) {
  std::string text;
  FILE* pipe = popen(command.c_str(), "r");
  char buffer[4096];
  while (const size_t got = fread(buffer, 1, sizeof buffer, pipe)) text.append(buffer, got);
  EXPECT_EQ(pclose(pipe), 0) << text;
  return text;
}

TEST(Mpi, RealMpirunGivesTheRanks) {
  if (access("/usr/bin/mpirun", X_OK) != 0)
    GTEST_SKIP() << "SKIPPED: mpirun is not installed (Debian: openmpi-bin)";
  const std::string text = output_of("/usr/bin/mpirun --allow-run-as-root --oversubscribe -np 3 " +
                                     std::string(FLEETX_LAUNCH_ACTOR) + " all describe start 2>&1");
  for (int rank = 0; rank < 3; ++rank)
    EXPECT_TRUE(contains(text, "mpi rank " + std::to_string(rank) + " of 3, local " +
                                   std::to_string(rank) + " of 3, node 0 of 1"));
}

}  // namespace
}  // namespace fleetx::testing
