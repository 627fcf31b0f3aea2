#include "fleetx/comm/mpi_library/collectives.h"

#include "fleetx/base/error.h"

namespace fleetx::comm {
namespace {

// MPI_DATATYPE_NULL: MPI cannot reduce it, or would do so in less than our type of sums.
MPI_Datatype reduced_type(DType dtype) {
  switch (dtype) {
    case DType::kF32: return MPI_FLOAT;
    case DType::kF64: return MPI_DOUBLE;
    case DType::kI32: return MPI_INT32_T;
    case DType::kI64: return MPI_INT64_T;
    default: return MPI_DATATYPE_NULL;
  }
}

MPI_Op op_of(ReduceOp op) {
  switch (op) {
    case ReduceOp::kSum:
    case ReduceOp::kAverage: return MPI_SUM;
    case ReduceOp::kProd: return MPI_PROD;
    case ReduceOp::kMin: return MPI_MIN;
    case ReduceOp::kMax: return MPI_MAX;
  }
  return MPI_OP_NULL;
}

bool reduces(CallKind kind) {
  return kind == CallKind::kAllReduce || kind == CallKind::kReduceScatter ||
         kind == CallKind::kReduce;
}

}  // namespace

bool mpi_has(const Call& c, int ranks) {
  if (c.kind == CallKind::kSend || c.kind == CallKind::kRecv) return false;
  constexpr int64_t kMost = int64_t{1} << 30;  // elements, or bytes where nothing is reduced
  if (reduces(c.kind))
    return reduced_type(c.dtype) != MPI_DATATYPE_NULL && c.count <= kMost / ranks;
  return c.count <= kMost / (static_cast<int64_t>(size_of(c.dtype)) * ranks);
}

int start_by_mpi(const Call& c, int rank, MPI_Comm comm, MPI_Request* request) {
  const auto count = static_cast<int>(c.count);
  const int bytes = count * static_cast<int>(size_of(c.dtype));
  const MPI_Datatype type = reduced_type(c.dtype);
  const MPI_Op op = op_of(c.op);
  const void* const own_place = c.in == c.out ? MPI_IN_PLACE : c.in;
  switch (c.kind) {
    case CallKind::kAllReduce:
      return MPI_Iallreduce(own_place, c.out, count, type, op, comm, request);
    case CallKind::kReduceScatter:
      return MPI_Ireduce_scatter_block(own_place, c.out, count, type, op, comm, request);
    case CallKind::kReduce:
      return MPI_Ireduce(rank == c.peer ? own_place : c.in, c.out, count, type, op, c.peer, comm,
                         request);
    case CallKind::kAllGather: {
      const bool in_place = c.in == static_cast<char*>(c.out) + ptrdiff_t{rank} * bytes;
      return MPI_Iallgather(in_place ? MPI_IN_PLACE : c.in, bytes, MPI_BYTE, c.out, bytes, MPI_BYTE,
                            comm, request);
    }
    case CallKind::kBroadcast: return MPI_Ibcast(c.out, bytes, MPI_BYTE, c.peer, comm, request);
    case CallKind::kAllToAll:
      return MPI_Ialltoall(c.in, bytes, MPI_BYTE, c.out, bytes, MPI_BYTE, comm, request);
    case CallKind::kBarrier: return MPI_Ibarrier(comm, request);
    default: FLEETX_CHECK(false, "MPI has no ", name_of(c.kind));
  }
}

}  // namespace fleetx::comm
