// The collectives of MPI itself, which may use what the network of a cluster offers. Their order of
// reduction is MPI's own: on by FLEETX_MPI_COLLECTIVES, for those who do not ask for the same bits
// on every backend and number of hosts.
#pragma once

#include <mpi.h>

#include "fleetx/comm/communicator.h"

namespace fleetx::comm {

// Whether MPI has the call: halves are no type of MPI, and its counts have 31 bits. The same on all
// ranks.
bool mpi_has(const Call& call, int ranks);

// Starts it, and returns MPI's code. An average is left as a sum.
int start_by_mpi(const Call& call, int rank, MPI_Comm comm, MPI_Request* request);

}  // namespace fleetx::comm
