"""The functions of paddle.distributed.fleet. All but init need init before."""
import atexit
import contextlib
import os
import shutil
import sys
import time
import warnings

import numpy

from paddle import _graph
from paddle._native import native
from paddle._refuse import refuse
from paddle.distributed.fleet.base.role_maker import PaddleCloudRoleMaker
from paddle.distributed.fleet.optimizer import DistributedOptimizer
from paddle.distributed.fleet.strategy import DistributedStrategy
from paddle.distributed.fleet.topology import HybridCommunicateGroup

_roles = None
_strategy = None
_optimizer = None  # made last
_connected = False  # this worker, with its servers
_HETER = "heter workers are not built; start the job with servers and workers"


def init(role_maker=None, is_collective=False, strategy=None):
    """Workers find each other here; all call it."""
    global _roles, _strategy
    if strategy is not None and not isinstance(strategy, DistributedStrategy):
        raise TypeError(f"fleet.init: strategy must be a DistributedStrategy, not {type(strategy).__name__}")
    roles = role_maker if role_maker is not None else PaddleCloudRoleMaker(is_collective)
    is_collective = bool(is_collective or getattr(roles, "is_collective", False))
    if roles.native.is_heter_worker():
        raise refuse("a heter worker", None, _HETER)
    _roles, _strategy = roles, strategy
    atexit.register(_leave)
    if sys.excepthook is not _let_the_cause_end_first:
        global _excepthook
        _excepthook, sys.excepthook = sys.excepthook, _let_the_cause_end_first
    native.fleet.init(is_collective, _roles.native, None if strategy is None else strategy.native)


def _leave():
    """Connections end before the interpreter does. Threads are held first, so that this process ends soon after it has
    left the others, who then know the cause."""
    native.hold_threads()
    native.fleet.finalize()


_excepthook = None
_SECONDS_FOR_THE_CAUSE = 1.0


def _let_the_cause_end_first(kind, error, trace):
    """fleetrun shows the error of the worker that ends first. One that fails because another has left waits a moment,
    so that it is the other's."""
    _excepthook(kind, error, trace)
    if issubclass(kind, native.CommunicationError):
        sys.stderr.flush()
        time.sleep(_SECONDS_FOR_THE_CAUSE)


def roles():
    if _roles is None:
        raise native.InvalidArgumentError("call fleet.init() before other functions of fleet")
    return _roles.native


def is_worker():
    return roles().is_worker()


def is_server():
    return roles().is_server()


def is_first_worker():
    return roles().is_first_worker()


def worker_index():
    return roles().worker_index()


def worker_num():
    return roles().worker_num()


def local_rank():
    return roles().local_rank()


def node_num():
    return roles().node_num()


def server_num():
    return roles().server_num()


def server_index():
    return roles().server_index()


def worker_endpoints(to_string=False):
    out = roles().worker_endpoints()
    return ",".join(out) if to_string else out


def server_endpoints(to_string=False):
    out = roles().server_endpoints()
    return ",".join(out) if to_string else out


def get_hybrid_communicate_group():
    """Where this worker stands in the mesh of the strategy of fleet.init."""
    strategy = DistributedStrategy() if _strategy is None else _strategy.in_hybrid_configs()
    return HybridCommunicateGroup(worker_index(), worker_num(), strategy.hybrid_configs)


def barrier_worker():
    """All workers come here. Afterwards a worker has the servers' parameters of now, whatever its last step was; in geo it
    keeps its own, and the servers have what all have learned."""
    roles()
    from paddle._executor import global_scope
    scope = global_scope().native
    native.fleet.share_learned(scope)
    native.fleet.barrier_worker()
    if not _connected or not _has_servers():
        return
    if all(scope.has(name) for name in main_program().ir.persistables()):  # the startup program has run
        native.fleet.pull_parameters(scope)


def distributed_optimizer(optimizer, strategy=None):
    """Wraps an optimizer. Without a strategy the one of init counts. What 1.x has for servers
    (DistributeTranspilerConfig, StrategyFactory) is taken too."""
    roles()
    servers = strategy.for_servers() if hasattr(strategy, "for_servers") else None
    if servers is not None:
        strategy = None
    elif strategy is not None and not isinstance(strategy, DistributedStrategy):
        raise TypeError(f"distributed_optimizer: strategy must be a DistributedStrategy, not {type(strategy).__name__}")
    return made_last(DistributedOptimizer(optimizer, strategy if strategy is not None else _strategy, servers))


def made_last(optimizer):
    """The functions of fleet are about this one from now on."""
    global _optimizer, _connected
    _optimizer, _connected = optimizer, False  # its servers are others
    return optimizer


def _made():
    if _optimizer is None:
        raise native.InvalidArgumentError("call fleet.distributed_optimizer(optimizer) first")
    return _optimizer


def minimize(loss, startup_program=None, parameter_list=None, no_grad_set=None):
    """Of the optimizer that was made last."""
    return _made().minimize(loss, startup_program, parameter_list, no_grad_set)


def amp_init(place, scope=None, test_program=None, use_fp16_test=False):
    return _made().amp_init(place, scope, test_program, use_fp16_test)


def get_lr():
    return _made().get_lr()


def set_lr(value):
    return _made().set_lr(value)


def _final_strategy():
    """The strategy of the optimizer that was made last; after minimize(), with those switched off that had nothing to
    do in this job, as fp16_allreduce of one worker. Without an optimizer a warning, and {}."""
    if not _is_made("_final_strategy"):
        return {}
    made = _made()
    strategy = made.user_defined_strategy if made.user_defined_strategy is not None else _strategy
    final = DistributedStrategy() if strategy is None else strategy.__deepcopy__({})
    if made.main_program is not None:
        for name in native.strategy_names():
            if name in native.DistributedStrategy.field_names() and name not in made.applied:
                final.native.set(name, False)
    return final


def _get_applied_meta_list():
    """The strategies that minimize() applied. Without an optimizer a warning, and []."""
    return list(_made().applied) if _is_made("_get_applied_meta_list") else []


def _is_made(who):
    if _optimizer is None:
        warnings.warn(f"fleet.{who}: there is no strategy yet; call fleet.distributed_optimizer(optimizer, strategy) and "
                      "minimize(loss) first", stacklevel=3)
    return _optimizer is not None


def _get_applied_graph_list():
    """None: all strategies rewrite programs here."""
    return []


def main_program():
    """The program that minimize() of the distributed optimizer changed; before that, the default one."""
    changed = None if _optimizer is None else _optimizer.main_program
    return _graph.default_main_program() if changed is None else changed


def startup_program():
    """The one that goes with main_program()."""
    changed = None if _optimizer is None else _optimizer.startup_program
    return _graph.default_startup_program() if changed is None else changed


_SAVES = {0: "all", 1: "delta", 2: "base"}


def save_persistables(executor, dirname, main_program=None, mode=0, sparse_text=False):
    """Worker 0 writes; others may call it too. What the servers keep (parameters and tables, with the optimizer's state)
    they write themselves, into the same folder; init_server(dirname) reads it. Where a strategy keeps state that differs
    between workers (residuals, sums, shards, parameters under localsgd), all workers must call it, because worker 0 needs
    their parts; statistics of batch norms are then those of all, else (and beside shards) those of worker 0.

    mode -- of tables of rows by id. 0: all rows; 2, a base: the same, and from then on it is known which rows change; 1, a
            delta: those that have changed since the last base, into the base's folder. Loading takes base and delta.
    sparse_text -- write these rows also as PaddlePaddle 2.0 does, as text: dirname/TABLE_txt/TABLE.block0.txt"""
    if mode not in _SAVES:
        raise ValueError(f"save_persistables: mode is {mode!r}; known: 0 (all), 1 (delta) and 2 (base)")
    how = (_SAVES[mode], bool(sparse_text))
    from paddle._executor import global_scope
    from paddle.fluid import io
    program, scope = io._new._program(main_program), global_scope()
    io._save_tables(dirname, *how)
    if _has_servers():
        if not is_first_worker():
            return
        native.fleet.share_learned(scope.native)
        native.fleet.save_servers(scope.native, os.path.abspath(dirname), *how)
        native.fleet.pull_parameters(scope.native)
    names = program.ir.persistables()
    arrays, metadata = {}, {}
    for name in _saved_by_all(program, names):
        arrays[name], rule = native.whole_of(program.ir, scope.native, name)
        if rule:
            metadata[io._new.PER_RANK + name] = rule
    if is_first_worker():
        with _as_servers_have_them(program, scope.native, dirname):
            own = io._new._values([n for n in names if n not in arrays], scope, "save_persistables")
        io.write_values(dirname, None, {**own, **arrays}, metadata)


def _saved_by_all(program, names):
    """What differs between the workers. Averages that forward keeps count only where all workers are known to be here."""
    spread = program.ir.spread_persistables()
    placement = {n: program.ir.var(n)["placement"] for n in [*spread, *names]}
    if spread and all(placement[n].startswith("per_rank") for n in spread):
        spread += [n for n in names if n not in spread and placement[n].startswith("per_rank")]
    return spread


@contextlib.contextmanager
def _as_servers_have_them(program, scope, folder):
    """Geo: a worker trains parameters of its own. Meanwhile they have the values that the servers have saved in the
    folder, as the rows of tables that are saved with them."""
    trained = {name for name in program.ir.persistables() if scope.has(name + "@BASE")}
    own = {name: scope.get(name) for name in trained}
    if trained:
        for name, value in native.fleet.read_variables(program.ir, os.path.abspath(folder), trained).items():
            scope.set(name, value)
    try:
        yield
    finally:
        for name, value in own.items():
            scope.set(name, value)


def save_inference_model(executor, dirname, feeded_var_names, target_vars, main_program=None,
                         export_for_deployment=True, mode=0):
    """Worker 0 writes a model that one process serves without servers: rows of tables come from them."""
    _no_mode("save_inference_model", mode)
    from paddle.fluid import io
    if not is_first_worker():
        return
    if not _has_servers():
        io.save_inference_model(dirname, feeded_var_names, target_vars, executor, main_program,
                                export_for_deployment=export_for_deployment)
        return
    from paddle._executor import global_scope
    scope, made = global_scope().native, []
    native.fleet.share_learned(scope)
    native.fleet.pull_parameters(scope)
    program = (main_program or _graph.as_list(target_vars)[0].program).clone(for_test=True)
    tables = os.path.join(os.path.abspath(dirname), ".tables")
    try:
        os.makedirs(tables, exist_ok=True)
        native.fleet.save_servers(scope, tables)
        made = native.fleet.serve_alone(program.ir, scope, tables)
        with _as_servers_have_them(program, scope, tables):
            io.save_inference_model(dirname, feeded_var_names, target_vars, executor, program,
                                    export_for_deployment=export_for_deployment)
    finally:
        shutil.rmtree(tables, ignore_errors=True)
        for name in made:
            scope.erase(name)


def _no_mode(name, mode):
    if mode != 0:
        raise refuse(f"fleet.{name} with mode={mode!r}", "mode=0", "the servers write all that they keep")


def _has_servers():
    """This is a worker of a job with servers, and minimize() has been called."""
    return roles().is_worker() and roles().server_num() > 0 and _optimizer is not None


def _own_tables():
    """The tables of rows by id that this process keeps itself, in a job of one worker without servers."""
    return [] if _roles is None or roles().server_num() > 0 else native.fleet.server_tables()


def split_files(files):
    """This worker's share of a list of files."""
    return util.get_file_shard(files)


class UtilBase:
    """Small things that processes do together outside of the training step: comm_world "worker" are the workers, "server" the
    servers, "all" both."""

    def all_reduce(self, input, mode="sum", comm_world="worker"):
        _check_world(comm_world)
        array = numpy.array(input)
        if array.dtype not in ("float32", "float64", "int32", "int64"):
            array = array.astype("float64")
        flat = numpy.ascontiguousarray(array).reshape(-1)
        native.fleet.all_reduce(flat, mode, comm_world)
        return flat.reshape(array.shape) if array.ndim else flat[0]

    def all_gather(self, input, comm_world="worker"):
        """A list: the number of each that takes part; with comm_world="all" workers first."""
        _check_world(comm_world)
        array = numpy.array(input)
        gathered = native.fleet.all_gather(numpy.ascontiguousarray(array).reshape(-1), comm_world)
        return [row.reshape(array.shape) if array.ndim else row[0] for row in gathered]

    def barrier(self, comm_world="worker"):
        _check_world(comm_world)
        if comm_world == "worker":
            barrier_worker()
        else:
            native.fleet.barrier(comm_world)

    def get_file_shard(self, files):
        if not isinstance(files, list):
            raise TypeError("get_file_shard takes a list of files")
        return native.get_file_shard(files, worker_index(), worker_num())

    def print_on_rank(self, message, rank_id):
        if worker_index() == rank_id:
            print(message, flush=True)


def _check_world(comm_world):
    roles()
    if comm_world not in ("worker", "server", "all"):
        raise ValueError(f"comm_world is {comm_world!r}; known: worker, server, all")


util = UtilBase()


def _without_servers(name):
    """Of jobs with servers. One script serves both kinds: in a job without, it does nothing and says so."""
    if roles().server_num() > 0:
        return False
    warnings.warn(f"fleet.{name}: this job has no servers; nothing is done", stacklevel=3)
    return True


def init_server(dirname=None, var_names=None):
    """A server gets ready; with a folder (not "") it begins with what save_persistables has written there. In a job without
    servers it does nothing and says so."""
    if _without_servers("init_server"):
        return
    if var_names is not None:
        raise refuse("fleet.init_server with var_names", "init_server(dirname)", "a server loads all that it keeps")
    native.fleet.init_server(os.path.abspath(dirname) if dirname else "")


def run_server():
    """Serves until all workers have called stop_worker. In a job without servers it does nothing and says so."""
    if not _without_servers("run_server"):
        native.fleet.run_server()


def init_worker(scopes=None):
    """Connects this worker to the servers, before or after the startup program. In a job without servers it does
    nothing and says so."""
    if _without_servers("init_worker"):
        return
    from paddle._executor import global_scope
    scope = _graph.as_list(scopes)[0] if scopes else global_scope()
    native.fleet.init_worker(scope.native)
    global _connected
    _connected = True


def stop_worker():
    """The servers have all gradients of this worker (geo: what it has learned), and end when all workers have called it.
    In a job without servers it does nothing and says so; on a server it does nothing."""
    global _connected
    if not _without_servers("stop_worker") and not is_server():
        from paddle._executor import global_scope
        native.fleet.share_learned(global_scope().native)
        native.fleet.stop_worker()
        _connected = False


def shrink(threshold=None):
    """Drops rows of tables; returns how many. One worker calls it. Of a table with statistics (ShowClickEntry) it is the end
    of a day, and rows go by them; `threshold` takes the place of the entry's delete_threshold. Of others those rows go whose
    every value is at most `threshold` in size (None: 0)."""
    if not _own_tables() and _without_servers("shrink"):
        return 0
    return native.fleet.shrink(None if threshold is None else float(threshold))


def _not_built(name, nearest):
    def call(*args, **kwargs):
        raise refuse(f"fleet.{name}", nearest)
    call.__name__ = name
    return call


load_model = _not_built("load_model", "init_server(dirname)")
save_cache_model = _not_built("save_cache_model", "save_persistables")


def distributed_model(model):
    raise refuse("fleet.distributed_model", "fleet.distributed_optimizer in a static program",
                 "FleetX runs static programs")
