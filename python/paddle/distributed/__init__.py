"""Several workers: rank, size, and collectives on arrays and variables."""
import numpy

from paddle import _refuse
from paddle._graph import Variable, emit
from paddle._native import native
from paddle.distributed import fleet  # noqa: F401
from paddle.distributed.fleet import api as _api
from paddle.distributed.fleet.dataset import InMemoryDataset, QueueDataset  # noqa: F401


class ReduceOp:
    SUM, MAX, MIN, PROD, AVG = "sum", "max", "min", "prod", "average"


def get_rank(group=None):
    return native.job_env()["rank"]


def get_world_size(group=None):
    return native.job_env()["world"]


class ParallelEnv:
    """What the launcher told this process."""

    rank = local_rank = property(lambda self: get_rank())
    world_size = nranks = property(lambda self: get_world_size())
    dev_id = device_id = property(lambda self: int((native.env("FLAGS_selected_gpus") or "0").split(",")[0]))
    current_endpoint = property(lambda self: native.env("PADDLE_CURRENT_ENDPOINT"))
    trainer_endpoints = property(lambda self: [e for e in native.env("PADDLE_TRAINER_ENDPOINTS").split(",") if e])


def init_parallel_env():
    _join()
    return ParallelEnv()


def is_initialized():
    return native.fleet.is_initialized()


def _join():
    if not native.fleet.is_initialized():
        _api.init(is_collective=True)


def _in_place(array, function):
    if not isinstance(array, numpy.ndarray):
        raise TypeError(f"collectives take variables of a program or NumPy arrays, not {type(array).__name__}")
    _join()
    work = numpy.ascontiguousarray(array)
    function(work)
    if work is not array:
        array[...] = work


def all_reduce(tensor, op=ReduceOp.SUM, group=None, use_calc_stream=True, sync_op=True):
    """In place: an array of this process now, a variable whenever the program runs."""
    if not isinstance(tensor, Variable):
        return _in_place(tensor, lambda a: native.fleet.all_reduce(a, op))
    if op not in (ReduceOp.SUM, ReduceOp.AVG):
        raise native.UnsupportedError("all_reduce of a variable: op must be SUM or AVG")
    from paddle.tensor import creation, math
    work = _to_change(tensor)
    started = emit("all_reduce_start", {"xs": [work]}, {"group": "dp"}, {"out": [work]})
    emit("all_reduce_wait", {"xs": [work], "ticket": started["ticket"]}, {"group": "dp"}, {"out": [work]})
    if op == ReduceOp.SUM and get_world_size() > 1:
        creation.assign(math.scale(tensor, float(get_world_size())), tensor)
    return tensor


def _to_change(tensor):
    """What lives from step to step is changed itself, what a step computes or is fed is copied first."""
    from paddle.tensor import creation
    return tensor if tensor._info["persistable"] else tensor.become(creation.assign(tensor))


def broadcast(tensor, src=0, group=None, use_calc_stream=True, sync_op=True):
    if isinstance(tensor, Variable):
        work = _to_change(tensor)
        emit("broadcast_from", {"xs": [work]}, {"group": "dp", "root": int(src)}, {"out": [work]})
        return tensor
    return _in_place(tensor, lambda a: native.fleet.broadcast(a, int(src)))


def all_gather(tensor_list, tensor, group=None, use_calc_stream=True, sync_op=True):
    """Appends every worker's array, or variable (which has no gradient), to tensor_list."""
    if isinstance(tensor, Variable):
        from paddle.tensor import manipulation
        ranks = get_world_size()
        out = emit("all_gather", {"x": tensor}, {"group": "dp", "ranks": ranks})["out"][0]
        out.stop_gradient = True
        tensor_list.extend(manipulation.split(out, ranks, 0) if ranks > 1 else [out])
        return
    _join()
    tensor_list.extend(native.fleet.all_gather(numpy.ascontiguousarray(tensor)))


def reduce(tensor, dst, op=ReduceOp.SUM, group=None, use_calc_stream=True, sync_op=True):
    """Like all_reduce; the others get the result too."""
    return all_reduce(tensor, op)


def barrier(group=None):
    _join()
    native.fleet.barrier_worker()


def wait(tensor, group=None, use_calc_stream=True):
    """Collectives are done when they return."""


_SERVERS = "sparse_embedding without entry; admission belongs to parameter servers, which are not built yet"
__getattr__ = _refuse.getter(__name__, {
    "spawn": "fleetrun", "new_group": "all workers", "get_group": "all workers", "alltoall": "all_gather",
    "scatter": "broadcast", "send": "broadcast", "recv": "broadcast", "split": "paddle.split",
    "CountFilterEntry": _SERVERS, "ProbabilityEntry": _SERVERS, "entry_attr": _SERVERS,
    "gloo_init_parallel_env": "init_parallel_env", "gloo_barrier": "barrier", "gloo_release": "nothing",
    "parallel_with_gloo": "init_parallel_env", "cloud_utils": "fleetrun", "utils": "nothing",
    "elastic": "fleetrun --max_restart"}, lazy={"launch": "paddle.distributed.launch"})
