"""Several workers: rank, size, and collectives on arrays and variables."""
import numpy

from paddle import _refuse
from paddle._graph import Variable, emit
from paddle._native import native
from paddle.distributed import fleet  # noqa: F401
from paddle.distributed.fleet import api as _api
from paddle.distributed.entry_attr import CountFilterEntry, ProbabilityEntry, ShowClickEntry  # noqa: F401
from paddle.distributed.parallel_layers import split  # noqa: F401
from paddle.distributed.fleet.dataset import InMemoryDataset, QueueDataset  # noqa: F401
from paddle.utils import unique_name


class ReduceOp:
    SUM, MAX, MIN, PROD, AVG = "sum", "max", "min", "prod", "average"


def _all_workers(what, group):
    if group is not None:
        raise _refuse.refuse(f"paddle.distributed.{what} with a group", "group=None, all workers",
                             "groups of some workers are not here")


def get_rank(group=None):
    _all_workers("get_rank", group)
    return native.job_env()["rank"]


def get_world_size(group=None):
    _all_workers("get_world_size", group)
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
    _all_workers("all_reduce", group)
    if not isinstance(tensor, Variable):
        return _in_place(tensor, lambda a: native.fleet.all_reduce(a, op))
    return _change("all_reduce", tensor, {"op": op})


def _change(op, tensor, attrs):
    """What lives from step to step is changed itself; what a step computes or is fed stands for the result then."""
    if tensor._info["persistable"]:
        _collective(op, tensor, attrs, tensor)
        return tensor
    return tensor.become(_collective(op, tensor, attrs, unique_name.generate(op + ".tmp")))


def _collective(op, tensor, attrs, out):
    return emit(op, {"xs": [tensor]}, {"group": "dp", **attrs}, {"out": [out]})["out"][0]


def broadcast(tensor, src=0, group=None, use_calc_stream=True, sync_op=True):
    _all_workers("broadcast", group)
    if isinstance(tensor, Variable):
        return _change("broadcast", tensor, {"root": int(src)})
    return _in_place(tensor, lambda a: native.fleet.broadcast(a, int(src)))


def all_gather(tensor_list, tensor, group=None, use_calc_stream=True, sync_op=True):
    """Appends every worker's array, or variable, to tensor_list."""
    _all_workers("all_gather", group)
    if isinstance(tensor, Variable):
        from paddle.tensor import manipulation
        ranks = get_world_size()
        out = _collective("all_gather", tensor, {"ranks": ranks}, unique_name.generate("all_gather.tmp"))
        tensor_list.extend(manipulation.split(out, ranks, 0) if ranks > 1 else [out])
        return
    _join()
    tensor_list.extend(native.fleet.all_gather(numpy.ascontiguousarray(tensor)))


def reduce(tensor, dst, op=ReduceOp.SUM, group=None, use_calc_stream=True, sync_op=True):
    """Like all_reduce; the others get the result too."""
    _all_workers("reduce", group)
    return all_reduce(tensor, op)


def barrier(group=None):
    _all_workers("barrier", group)
    _join()
    native.fleet.barrier_worker()


def wait(tensor, group=None, use_calc_stream=True):
    """Collectives are done when they return."""


__getattr__ = _refuse.getter(__name__, {
    "spawn": "fleetrun", "new_group": "all workers", "get_group": "all workers", "alltoall": "all_gather",
    "scatter": "broadcast", "send": "broadcast", "recv": "broadcast",
    "gloo_init_parallel_env": "init_parallel_env", "gloo_barrier": "barrier", "gloo_release": "nothing",
    "parallel_with_gloo": "init_parallel_env", "cloud_utils": "fleetrun", "utils": "nothing",
    "elastic": "fleetrun --max_restart"}, 
    lazy={"launch": "paddle.distributed.launch", "transpiler": "paddle.fluid.transpiler"})
