#include "fleetx/base/mesh.h"

#include <gtest/gtest.h>

#include "tests/support/expect_error.h"

#include "fleetx/base/error.h"

namespace fleetx {
namespace {

using Ranks = std::vector<int>;

TEST(Mesh, OneRankHasNoAxes) {
  const Mesh mesh;
  EXPECT_EQ(mesh.world(), 1);
  EXPECT_EQ(mesh.rank(), 0);
  EXPECT_FALSE(mesh.has("dp"));
  EXPECT_THROW(mesh.size("dp"), Error);
}

TEST(Mesh, LastAxisVariesFastest) {
  const Mesh mesh({{"pp", 2}, {"dp", 4}}, 5);
  EXPECT_EQ(mesh.world(), 8);
  EXPECT_EQ(mesh.coordinate("pp"), 1);
  EXPECT_EQ(mesh.coordinate("dp"), 1);
  EXPECT_EQ(mesh.group("dp"), (Ranks{4, 5, 6, 7}));
  EXPECT_EQ(mesh.group("pp"), (Ranks{1, 5}));
}

TEST(Mesh, GroupsOfAnAxisPartitionTheRanks) {
  for (const char* axis : {"a", "b", "c"}) {
    std::vector<int> seen(24, 0);
    for (int rank = 0; rank < 24; ++rank) {
      const Mesh mesh({{"a", 2}, {"b", 3}, {"c", 4}}, rank);
      const Ranks group = mesh.group(axis);
      EXPECT_EQ(group[static_cast<size_t>(mesh.coordinate(axis))], rank);
      if (mesh.coordinate(axis) == 0)
        for (const int r : group) ++seen[static_cast<size_t>(r)];
    }
    EXPECT_EQ(seen, std::vector<int>(24, 1)) << axis;
  }
}

TEST(Mesh, AxesTogetherAreNamedWithPlus) {
  const Mesh mesh({{"pp", 2}, {"dp", 2}, {"mp", 2}}, 5);  // pp=1, dp=0, mp=1
  EXPECT_EQ(mesh.size("dp+mp"), 4);
  EXPECT_EQ(mesh.coordinate("dp+mp"), 1);
  EXPECT_EQ(mesh.coordinate("mp+dp"), 2);
  EXPECT_EQ(mesh.group("dp+mp"), (Ranks{4, 5, 6, 7}));
  EXPECT_EQ(mesh.group("pp+mp"), (Ranks{0, 1, 4, 5}));
  EXPECT_EQ(mesh.group("pp+mp")[static_cast<size_t>(mesh.coordinate("pp+mp"))], 5);
  EXPECT_THROW(mesh.group("dp+sp"), Error);
}

TEST(Mesh, PartsOfAnAxisAreNeighboursOrThoseAtTheSamePlace) {
  const Mesh mesh({{"pp", 2}, {"dp", 4}, {"mp", 2}}, 13);  // pp=1, dp=2, mp=1
  EXPECT_EQ(mesh.group("dp"), (Ranks{9, 11, 13, 15}));
  EXPECT_EQ(mesh.group("dp/2"), (Ranks{13, 15}));
  EXPECT_EQ(mesh.coordinate("dp/2"), 0);
  EXPECT_EQ(mesh.size("dp%2"), 2);
  EXPECT_EQ(mesh.group("dp%2"), (Ranks{9, 13}));
  EXPECT_EQ(mesh.coordinate("dp%2"), 1);
  EXPECT_EQ(mesh.group("dp/4"), mesh.group("dp"));
  EXPECT_EQ(mesh.group("dp%4"), Ranks{13});
  EXPECT_TRUE(mesh.has("dp/2"));
  EXPECT_FALSE(mesh.has("sp/2"));
  for (const char* wrong : {"dp/3", "dp/0", "dp/", "dp%x", "dp/2/2", "sp/2"})
    EXPECT_THROW(mesh.size(wrong), Error) << wrong;
}

TEST(Mesh, ThoseWhoDivideTheStateAreNeighboursAlongTheBatch) {
  const Mesh mesh = mesh_of({.dp = 2, .sharding = 4}, 8, 5);
  EXPECT_EQ(mesh.size("dp"), 8);
  EXPECT_EQ(mesh.group("dp/4"), (Ranks{4, 5, 6, 7}));
  EXPECT_EQ(mesh.group("dp%4"), (Ranks{1, 5}));
  EXPECT_THROW(mesh_of({.dp = 2, .sharding = 3}, 8, 0), Error);
}

TEST(Mesh, DegreesThatDoNotFitSayWhatWould) {
  using testing::contains;
  const auto error = [](const Degrees& degrees, int workers) {
    return testing::error_of([&] { mesh_of(degrees, workers, 0); });
  };
  EXPECT_TRUE(contains(error({.dp = 2, .sharding = 3}, 8),
                       "do not multiply to the 8 workers of the job, but to 6, 2 fewer: start 6 "
                       "workers"));
  EXPECT_TRUE(contains(error({.dp = 3, .pp = 2}, 4),
                       "to 6, 2 more: start 6 workers, or set dp to 2 or to -1"));
  EXPECT_TRUE(contains(error({.pp = 3}, 8), "pp x sharding x mp is 3, so start 6 or 9 workers"));
  EXPECT_TRUE(contains(error({.dp = 0}, 2), "the degree of 'dp' is 0"));
  EXPECT_TRUE(contains(error({.mp = 4}, 2), "pp x sharding x mp is 4, so start 4 workers"));
}

TEST(Mesh, DegreesMakeTheMeshOfAJob) {
  const Mesh mesh = mesh_of({.pp = 2, .mp = 2}, 8, 7);
  EXPECT_EQ(mesh.size("dp"), 2);
  EXPECT_EQ(mesh.world(), 8);
  EXPECT_EQ(mesh.group("mp"), (Ranks{6, 7}));
  EXPECT_EQ(mesh.group("dp"), (Ranks{5, 7}));
  EXPECT_EQ(mesh.group("pp"), (Ranks{3, 7}));
  for (const Degrees& wrong :
       {Degrees{.dp = 3}, Degrees{.mp = 3}, Degrees{.pp = 0}, Degrees{.dp = 0}, Degrees{.mp = 16}})
    EXPECT_THROW(mesh_of(wrong, 8, 0), Error);
  try {
    mesh_of({.dp = 3, .mp = 2}, 8, 0);
  } catch (const Error& e) {
    for (const char* part : {"dp 3", "mp 2", "pp 1", "sharding 1", "8 workers"})
      EXPECT_NE(std::string(e.what()).find(part), std::string::npos) << e.what();
  }
}

TEST(Mesh, RefusesNonsense) {
  EXPECT_THROW(Mesh({{"dp", 0}}, 0), Error);
  EXPECT_THROW(Mesh({{"dp", 2}}, 2), Error);
  EXPECT_THROW(Mesh({{"dp", 2}}, -1), Error);
  EXPECT_THROW(Mesh({{"dp", 2}, {"dp", 2}}, 0), Error);
}

}  // namespace
}  // namespace fleetx
