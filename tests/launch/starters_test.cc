// A program can be started by mpirun or srun instead of fleetrun: it finds its rank there.
#include <unistd.h>

#include "fleetx/base/error.h"
#include "fleetx/launch/ports.h"
#include "tests/launch/fleetrun.h"

namespace fleetx::testing {
namespace {

constexpr const char* kMpirun = "/usr/bin/mpirun --allow-run-as-root --oversubscribe -np 3 ";

TEST(Mpi, RealMpirunGivesTheRanks) {
  if (access("/usr/bin/mpirun", X_OK) != 0)
    GTEST_SKIP() << "SKIPPED: mpirun is not installed (Debian: openmpi-bin)";
  const std::string text = output_of(str(kMpirun, FLEETX_LAUNCH_ACTOR, " all describe start 2>&1"));
  for (int rank = 0; rank < 3; ++rank)
    EXPECT_TRUE(contains(text, "mpi rank " + std::to_string(rank) + " of 3, local " +
                                   std::to_string(rank) + " of 3, node 0 of 1"));
  EXPECT_TRUE(contains(output_of(str(kMpirun, FLEETX_HELLO, " 2>&1")), "3 workers add up to 6\n"));
}

// With a Slurm of its own: munged, slurmctld and slurmd, all as processes of this test.
TEST(Slurm, RealSrunGivesTheRanks) {
  for (const char* program :
       {"/usr/sbin/slurmctld", "/usr/sbin/slurmd", "/usr/sbin/munged", "/usr/bin/srun"})
    if (access(program, X_OK) != 0)
      GTEST_SKIP() << "SKIPPED: " << program << " is not there (Debian: slurm-wlm munge)";
  if (geteuid() != 0) GTEST_SKIP() << "SKIPPED: a local Slurm needs root";
  const TempDir folder;
  const launch::BoundPort ctld = launch::bind_port("slurmctld", {"127.0.0.1", 0});
  const launch::BoundPort slurmd = launch::bind_port("slurmd", {"127.0.0.1", 0});
  int code = 0;
  const std::string text =
      output_of(str("PATH=/usr/sbin:/usr/bin:/sbin:/bin timeout 60 ", FLEETX_SOURCE_DIR,
                    "/tests/launch/with_local_slurm.sh ", folder.path(), " ", ctld.endpoint.port,
                    " ", slurmd.endpoint.port, " sh -c 'srun --ntasks=3 ", FLEETX_LAUNCH_ACTOR,
                    " all describe start; srun --ntasks=3 ", FLEETX_HELLO, "' 2>&1"),
                &code);
  if (code == 77) GTEST_SKIP() << "SKIPPED: Slurm does not start here: " << text;
  ASSERT_EQ(code, 0) << text;
  for (int rank = 0; rank < 3; ++rank)
    EXPECT_TRUE(contains(
        text, str("slurm rank ", rank, " of 3, local ", rank, " of 3, node 0 of 1, job slurm-")));
  EXPECT_TRUE(contains(text, "3 workers add up to 6\n"));
}

}  // namespace
}  // namespace fleetx::testing
