// Times MPI_Allreduce; started by bench_allreduce through mpirun. Prints "BYTES MICROSECONDS"
// lines.
#include <mpi.h>

#include <cstdio>
#include <cstdlib>

#include "bench/allreduce.h"

int main(int argc, char** argv) {
  using namespace fleetx::bench;
  MPI_Init(&argc, &argv);
  int rank = 0;
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  for (const size_t bytes : kSizes) {
    auto* data = static_cast<float*>(std::aligned_alloc(4096, bytes));
    std::vector<double> times;
    for (int round = -2; round < rounds_for(bytes); ++round) {
      write_all(data, bytes);
      MPI_Barrier(MPI_COMM_WORLD);
      const double begin = microseconds_now();
      MPI_Allreduce(MPI_IN_PLACE, data, static_cast<int>(bytes / sizeof(float)), MPI_FLOAT, MPI_SUM,
                    MPI_COMM_WORLD);
      double time = microseconds_now() - begin, slowest = 0;
      MPI_Allreduce(&time, &slowest, 1, MPI_DOUBLE, MPI_MAX, MPI_COMM_WORLD);
      if (round >= 0) times.push_back(slowest);
    }
    if (rank == 0) std::printf("%zu %.3f\n", bytes, median(times));
    std::free(data);
  }
  MPI_Finalize();
}
