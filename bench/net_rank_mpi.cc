// One rank of MPI's; bench/run net starts it by mpirun (see net_rank.h).
// usage: bench_net_rank_mpi FOLDER COLLECTIVE:BYTES:CALLS...
#include <mpi.h>

#include <cstdlib>
#include <iostream>

#include "bench/net_rank.h"

namespace fleetx::bench {
namespace {

void call(const std::string& collective, float* in, float* out, int count, int ranks) {
  const int part = count / ranks;
  if (collective == "all_reduce")
    MPI_Allreduce(MPI_IN_PLACE, in, count, MPI_FLOAT, MPI_SUM, MPI_COMM_WORLD);
  else if (collective == "reduce_scatter")
    MPI_Reduce_scatter_block(in, out, part, MPI_FLOAT, MPI_SUM, MPI_COMM_WORLD);
  else if (collective == "all_gather")
    MPI_Allgather(in, part, MPI_FLOAT, out, part, MPI_FLOAT, MPI_COMM_WORLD);
  else if (collective == "broadcast")
    MPI_Bcast(in, count, MPI_FLOAT, 0, MPI_COMM_WORLD);
  else if (collective == "all_to_all")
    MPI_Alltoall(in, part, MPI_FLOAT, out, part, MPI_FLOAT, MPI_COMM_WORLD);
  else
    throw std::runtime_error("no collective '" + collective + "'");
}

}  // namespace
}  // namespace fleetx::bench

int main(int argc, char** argv) {
  using namespace fleetx::bench;
  MPI_Init(&argc, &argv);
  const std::vector<std::string> args(argv + 1, argv + argc);
  if (args.size() < 2) {
    std::cerr << "usage: bench_net_rank_mpi FOLDER COLLECTIVE:BYTES:CALLS...\n";
    return 2;
  }
  Rank r;
  MPI_Comm_rank(MPI_COMM_WORLD, &r.rank);
  MPI_Comm_size(MPI_COMM_WORLD, &r.ranks);
  r.take = [](size_t bytes) { return static_cast<float*>(std::aligned_alloc(4096, bytes)); };
  r.call = [&](const std::string& collective, float* in, float* out, size_t bytes) {
    call(collective, in, out, static_cast<int>(bytes / sizeof(float)), r.ranks);
  };
  r.progress = [] {
    int any = 0;
    MPI_Iprobe(MPI_ANY_SOURCE, MPI_ANY_TAG, MPI_COMM_WORLD, &any, MPI_STATUS_IGNORE);
  };
  try {
    play(r, args[0], {args.begin() + 1, args.end()});
  } catch (const std::exception& e) {
    std::cerr << "bench_net_rank_mpi: " << e.what() << '\n';
    MPI_Abort(MPI_COMM_WORLD, 1);
  }
  MPI_Finalize();
}
