"""Collectives inside a program, by the names that scripts of 1.x use. Every one is over all workers and is done when
the ops after it run."""
from paddle import distributed as _distributed
from paddle._native import native
from paddle.tensor import creation as _creation


def _copy(x, out):
    """The collectives change what they are given; 1.x leaves x as it is."""
    return _creation.assign(x) if out is None or out is not x else x


def _into(result, out):
    return result if out is None or out is result else _creation.assign(result, out)


def _allreduce(x, out=None, reduce_type="sum", sync_mode=False):
    if reduce_type not in ("sum", "prod", "max", "min"):
        raise TypeError(f"_allreduce: reduce_type must be sum, prod, max or min, got {reduce_type!r}")
    return _into(_distributed.all_reduce(_copy(x, out), reduce_type), out)


def _broadcast(x, root, sync_mode=False):
    return _distributed.broadcast(x, root)


def _ring(what, ring_id):
    if ring_id != 0:
        raise native.UnsupportedError(f"{what}: ring_id={ring_id}; groups of some workers are not here, 0 is all of them")


def _c_allreduce(x, out=None, reduce_type="sum", ring_id=0, use_calc_stream=False):
    _ring("_c_allreduce", ring_id)
    return _allreduce(x, out, reduce_type)


def _c_broadcast(x, root=0, ring_id=0, use_calc_stream=False):
    _ring("_c_broadcast", ring_id)
    return _distributed.broadcast(x, root)


def _c_allgather(x, nranks, ring_id=0, use_calc_stream=False):
    """The rows of all workers one after the other."""
    from paddle.tensor import manipulation
    _ring("_c_allgather", ring_id)
    if nranks != _distributed.get_world_size():
        raise native.InvalidArgumentError(f"_c_allgather: nranks={nranks}, the job has {_distributed.get_world_size()} workers")
    parts = []
    _distributed.all_gather(parts, x)
    return parts[0] if len(parts) == 1 else manipulation.concat(parts, 0)


def _c_sync_calc_stream(tensor):
    return tensor


def _c_sync_comm_stream(tensor, ring_id):
    _ring("_c_sync_comm_stream", ring_id)
    return tensor
