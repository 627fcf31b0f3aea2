"""Scopes, places and the executor."""
import contextlib
import time
import warnings

import numpy

from paddle import _graph, _loose
from paddle._lod_tensor import LoDTensor  # noqa: F401
from paddle._native import native
from paddle._places import (CPUPlace, CUDAPinnedPlace, CUDAPlace, XPUPlace, cpu_places, cuda_places,  # noqa: F401
                            is_compiled_with_cuda)


class EOFException(Exception):
    """A DataLoader that was started has no more data; call its reset()."""


# ---- scopes ----
class ScopeTensor(LoDTensor):
    """The value of a variable in a scope."""

    def __init__(self, scope, name):
        self._scope, self._name = scope, name
        self._lod = []

    def _is_initialized(self):
        return self._scope.native.has(self._name)

    def numpy(self):
        return self._scope.native.get(self._name)

    def __array__(self, dtype=None, copy=None):
        array = self.numpy()
        return array if dtype is None else array.astype(dtype)

    def set(self, value, place=None):
        array = numpy.ascontiguousarray(value)
        if self._scope.native.has(self._name):
            if self.shape() != list(array.shape):
                raise native.InvalidArgumentError(
                    f"variable '{self._name}' has shape {self.shape()}, the new value {list(array.shape)}")
            dtype = self._dtype()
            array = array.astype("float32" if dtype == "bfloat16" else dtype, copy=False)
        elif array.dtype == numpy.float64 and not isinstance(value, numpy.ndarray):
            array = array.astype("float32")
        self._scope.native.set(self._name, array)

    def shape(self):
        return list(self._scope.native.shape(self._name) or [])

    _get_dims = shape

    def _dtype(self):
        return self._scope.native.dtype(self._name)

    def __repr__(self):
        return repr(self.numpy()) if self._scope.native.has(self._name) else f"<{self._name} has no value yet>"


class ScopeVariable:
    def __init__(self, scope, name):
        self._tensor = ScopeTensor(scope, name)
        self.name = name

    def get_tensor(self):
        return self._tensor

    def get_value(self):
        return self._tensor


class Scope:
    """Variables that live from step to step, by name."""

    def __init__(self):
        self.native = native.Scope()

    def find_var(self, name):
        return ScopeVariable(self, name) if self.native.has(name) else None

    def var(self, name):
        return ScopeVariable(self, name)

    def local_var_names(self):
        return self.native.names()

    def erase(self, names):
        for name in _graph.as_list(names):
            self.native.erase(name)

    def new_scope(self):
        return Scope()

    def drop_kids(self):
        pass


_scope = Scope()


def global_scope():
    return _scope


@contextlib.contextmanager
def scope_guard(scope):
    """Inside, `scope` is the global one."""
    global _scope
    old, _scope = _scope, scope
    try:
        yield
    finally:
        _scope = old


# ---- what surrounds a program ----
class _Settings:
    """Accepts what the original accepts; these choices are made by the planner here."""

    def __setattr__(self, name, value):
        if not hasattr(type(self), name):
            raise AttributeError(f"{type(self).__name__} has no option '{name}'")
        super().__setattr__(name, value)

    def __repr__(self):
        names = [n for n in dir(type(self)) if not n.startswith("_") and not isinstance(getattr(type(self), n), type)]
        return "\n".join(f"{n}: {getattr(self, n)}" for n in names)


class BuildStrategy(_Settings):
    class ReduceStrategy:
        AllReduce, Reduce, _NoReduce = 0, 1, 2

    class GradientScaleStrategy:
        CoeffNumDevice, One, Customized = 0, 1, 2

    enable_sequential_execution = False
    fuse_elewise_add_act_ops = False
    fuse_bn_act_ops = False
    fuse_bn_add_act_ops = True
    fuse_relu_depthwise_conv = False
    fuse_broadcast_ops = False
    fuse_all_optimizer_ops = False
    fuse_all_reduce_ops = True
    sync_batch_norm = False
    enable_inplace = False
    enable_backward_optimizer_op_deps = True
    cache_runtime_context = False
    enable_auto_fusion = False
    enable_addto = False
    memory_optimize = None
    remove_unnecessary_lock = True
    debug_graphviz_path = ""
    num_trainers = 1
    trainer_id = 0
    trainers_endpoints = ()
    async_mode = False
    is_distribution = False
    hierarchical_allreduce_inter_nranks = 1
    use_hierarchical_allreduce = False
    nccl_comm_num = 1
    reduce_strategy = 0
    gradient_scale_strategy = 0


class ExecutionStrategy(_Settings):
    num_threads = 1
    num_iteration_per_drop_scope = 10
    num_iteration_per_run = 1
    use_thread_barrier = False
    use_experimental_executor = False
    allow_op_delay = False


class CompiledProgram:
    """A program and how it is to be run. All programs are compiled here; of the settings, sync_batch_norm counts, and the
    planner makes the other choices.

    sync_batch_norm -- batch norm takes its statistics over the batch of all workers. One worker, whatever its `places`,
    computes its whole batch at once and has nothing to change. In a job of several workers a copy of the program does it;
    its gradients must be averaged among them (fleet.distributed_optimizer)."""

    def __init__(self, program_or_graph, build_strategy=None):
        if isinstance(program_or_graph, CompiledProgram):
            program_or_graph = program_or_graph._program
        if not isinstance(program_or_graph, _graph.Program):
            raise TypeError(f"CompiledProgram takes a Program, not {type(program_or_graph).__name__}")
        self._program = program_or_graph
        self._follow(build_strategy)

    def with_data_parallel(self, loss_name=None, build_strategy=None, exec_strategy=None, share_vars_from=None,
                           places=None):
        """One process is one worker: start several with fleetrun. Inside a process the cores work together on every op,
        whatever `places` says; `loss_name` is known from minimize; variables are shared by their scope."""
        self._follow(build_strategy)
        return self

    def with_inference_optimize(self, config):
        """Programs for inference come from clone(for_test=True); all are optimized when they are planned."""
        return self

    def _follow(self, strategy):
        if strategy is None:
            return
        if not isinstance(strategy, BuildStrategy):
            raise TypeError(f"CompiledProgram: build_strategy must be a BuildStrategy, not {type(strategy).__name__}")
        if strategy.sync_batch_norm and native.fleet.is_initialized() and native.job_env()["world"] > 1:
            types = {op["type"] for op in self._program.ir.ops()}
            if "batch_norm_grad" in types and not any(t.startswith("all_reduce") for t in types):
                raise native.InvalidArgumentError(
                    "CompiledProgram: sync_batch_norm in a job of several workers needs gradients that are averaged among "
                    "them; make the optimizer with fleet.distributed_optimizer")
            self._program = self._program.clone()
            native.fleet.sync_batch_norm(self._program.ir)


class _OneNumber(numpy.ndarray):
    """A fetched value of one element. "%f" % loss works with it in every NumPy."""

    def __float__(self):
        return float(self.item()) if self.size == 1 else float(numpy.asarray(self))

    def __int__(self):
        return int(self.item()) if self.size == 1 else int(numpy.asarray(self))

    def __repr__(self):
        return repr(self.view(numpy.ndarray))

    def __format__(self, spec):
        return format(self.item(), spec) if spec and self.size == 1 else super().__format__(spec)


def _fetch_names(fetch_list):
    if fetch_list is None:
        return []
    if isinstance(fetch_list, (str, _graph.Variable)):
        fetch_list = [fetch_list]
    names = []
    for item in fetch_list:
        if type(item) is str:
            names.append(item)
        elif isinstance(item, _graph.Variable):
            names.append(item.name)
        elif isinstance(item, (list, tuple)):
            names.extend(_fetch_names(item))
        else:
            raise TypeError(f"fetch_list holds a {type(item).__name__}; give variables or their names")
    return names


def _resolved(program, names):
    """Names of gradients, w@GRAD, may stand for variables that are called otherwise."""
    if not any(name.endswith(_graph.GRAD_SUFFIX) for name in names):
        return names
    return [program.known_name(name) or name for name in names]


def _program_of(program):
    if program is None:
        return _graph.default_main_program()
    if isinstance(program, CompiledProgram):
        return program._program
    if not isinstance(program, _graph.Program):
        raise TypeError(f"Executor.run takes a Program, not {type(program).__name__}")
    return program


_ignored_feeds = set()


def _feed_of(program, feed):
    if feed is None:
        return {}
    if isinstance(feed, (list, tuple)):
        feed = feed[0] if len(feed) == 1 else _loose.joined(program, feed)
    if not isinstance(feed, dict):
        raise TypeError(f"feed must be a dict of arrays by name, not {type(feed).__name__}")
    ir = program.ir
    for key in feed:
        if type(key) is not str or not ir.has(key):
            return _known_feeds(ir, feed)
    return feed


def _next_of_loaders(program):
    """What the program's loaders give next: those that were started. Each has inputs of its own."""
    feed = {}
    for loader in [each for each in program.loaders if each.is_started] or program.loaders[:1]:
        feed.update(_next_of_loader(program, loader))
    return feed


def _next_of_loader(program, loader):
    """The next batch. Of a pipeline a loader may give the micro-batches, as in the original: all of a batch."""
    feed = loader.next_feed()
    rows, parts = program.micro_batches or (0, 1)
    if parts == 1 or any(len(v) != rows for v in feed.values()):
        return feed
    return _loose.joined(program, [feed] + [loader.next_feed() for _ in range(parts - 1)])


def _with_lengths(program, feed):
    """Adds the lengths of sequences: those of a LoDTensor; rows of an array are sequences of one. Of sequences of
    sequences, the lengths of the outer ones too."""
    out = dict(feed)
    for name in program.lengths_of.keys() & feed.keys():
        value = feed[name]
        known = value.recursive_sequence_lengths() if isinstance(value, LoDTensor) else []
        if known:
            out[name] = value = _rows(value.numpy(), program.ir.shape(name))
        rows = len(numpy.asarray(value))
        while name in program.lengths_of:
            name = program.lengths_of[name]
            if name not in feed and program.ir.has(name):
                out[name] = numpy.array(known.pop() if known else [1] * rows, "int64")
            rows = len(out[name]) if name in out else rows
            steps = name + _graph.STEPS_SUFFIX
            if name in out and program.ir.has(steps):
                out[steps] = numpy.arange(numpy.max(out[name], initial=0))
    return out


def _rows(array, declared):
    """Rows of sequences may be fed as [n, 1] where [n] is declared, and the other way round."""
    row = list(declared[1:])
    fits = array.ndim != len(declared) and -1 not in row and numpy.prod(array.shape[1:]) == numpy.prod(row)
    return array.reshape([len(array)] + row) if fits else array


def _dataset_inputs(program, variables):
    """How the slots of a data set are fed: (name, shape of a sample, input of the lengths); "" for what the program does
    not have."""
    known = _feed_of(program, {v.name: v for v in variables})
    inputs = []
    for v in variables:
        lengths = program.lengths_of.get(v.name, "")
        if lengths in known or not program.ir.has(lengths):
            lengths = ""
        inputs.append((v.name if v.name in known else "", [int(d) for d in v.shape[1:]], lengths))
    return inputs


def _known_feeds(ir, feed):
    out = {}
    for key, value in feed.items():
        name = key.name if isinstance(key, _graph.Variable) else key
        if ir.has(name):
            out[name] = value
        elif name not in _ignored_feeds:
            _ignored_feeds.add(name)
            warnings.warn(f"feed '{name}' is not used: the program has no such variable (or it was pruned)",
                          stacklevel=4)
    return out


def _has_sequences(value):
    return isinstance(value, LoDTensor) and bool(value.lod())


def _in_declared_shape(program, feed):
    """Feeds of fluid.layers.data may have another rank, as [n] for [-1, 1]: they take the declared shape where their
    elements fill it in one way only."""
    out = dict(feed)
    for name in program.loose_inputs.keys() & feed.keys():
        value, declared = feed[name], program.loose_inputs[name]
        rank = numpy.ndim(value)
        if rank == len(declared) or any(d < 0 for d in declared[1:]) or _has_sequences(value):
            continue
        array, sample = numpy.asarray(value), int(numpy.prod(declared[1:], dtype="int64"))
        if array.dtype != object and sample and array.size % sample == 0 and declared[0] in (-1, array.size // sample):
            out[name] = array.reshape([array.size // sample, *declared[1:]])
    return out


def _fed_where_it_is_computed(program, feed, scope):
    """A program may be fed what its ops compute: the value given counts, and what lives from step to step is set."""
    ir, data = program.ir, program.data_names()
    if feed.keys() <= data:
        return ir, feed
    feed, computed = dict(feed), []
    for name in sorted(feed.keys() - data):
        if ir.var(name)["persistable"]:
            scope.var(name).get_tensor().set(feed.pop(name))
        else:
            computed.append(name)
    if not computed:
        return ir, feed
    key = ir.version, tuple(computed)
    if key not in program._with_fed:
        program._with_fed = {key: ir.with_fed(computed)}
    return program._with_fed[key], feed


class Executor:
    """Runs programs. The first run of a program with new shapes makes a plan; later runs reuse it."""

    def __init__(self, place=None):
        self.place = place if place is not None else CPUPlace()
        self._exe = native.Executor()

    at_close = []  # functions, for workers of servers in 1.x

    def close(self):
        self._exe = None
        while Executor.at_close:
            Executor.at_close.pop()()

    def run(self, program=None, feed=None, fetch_list=None, feed_var_name="feed", fetch_var_name="fetch", scope=None,
            return_numpy=True, use_program_cache=False, return_merged=True, use_prune=False):
        """Runs a program once. Returns the values of `fetch_list` as NumPy arrays, in its order. Plans are always cached
        (use_program_cache); nothing is merged, as one process is one worker (return_merged=False is refused)."""
        if self._exe is None:
            raise native.InvalidArgumentError("this executor was closed")
        if use_prune or not return_merged:
            raise native.UnsupportedError(
                "Executor.run: use_prune=True is not here; what training needs always runs: for less, run "
                "program.clone(for_test=True)" if use_prune else
                "Executor.run: return_merged=False is not here; one process is one worker and has one value of each")
        program = _program_of(program)
        if program.serve is not None:
            program.serve()
            return []
        scope = _scope if scope is None else scope
        fetch = _resolved(program, _fetch_names(fetch_list))
        if program.loaders and not feed:
            feed = _next_of_loaders(program)
        feed = _feed_of(program, feed)
        if program.lengths_of:
            feed = _with_lengths(program, feed)
        if program.loose_inputs:
            feed = _in_declared_shape(program, feed)
            _loose.follow(program, feed)
        if program.family:
            return self._run_of_family(program, feed, fetch, scope, return_numpy)
        if program.between is not None:
            return self._run_between(program, feed, fetch, scope, return_numpy)
        if program.lr_schedules:
            self._set_learning_rates(program, scope)
        ir, feed = _fed_where_it_is_computed(program, feed, scope)
        if program.has_sequences or program.lengths_of and not return_numpy:
            return self._with_lengths(program, ir, fetch, return_numpy,
                                      lambda names: self._exe.run(ir, scope.native, feed, names))
        results = self._exe.run(ir, scope.native, feed, fetch)
        if not return_numpy:
            return [LoDTensor(r) for r in results]
        return [r.view(_OneNumber) if r.size == 1 else r for r in results]

    def _run_of_family(self, program, feed, fetch, scope, return_numpy):
        """The program that has the steps that this batch needs."""
        family, asked = program.family, program.family.questions()
        times = family.steps(program, lambda ir, fed, names: self._exe.run(ir, scope.native, fed, names), feed)
        while times is not None:
            values = self.run(family.member(program, times), feed, fetch + asked, scope=scope, return_numpy=return_numpy)
            times = family.more(times, [numpy.asarray(v) for v in values[len(fetch):]])
        return values[:len(fetch)]

    def _run_between(self, program, feed, fetch, scope, return_numpy):
        """A program with steps between its ops."""
        values = {name: value.numpy() if isinstance(value, LoDTensor) else numpy.asarray(value) for name, value in feed.items()}
        return self._with_lengths(program, program.ir, fetch, return_numpy, lambda names: program.between.run(
            values, names, lambda ir, fed, wanted: self._exe.run(ir, scope.native, fed, wanted)))

    @staticmethod
    def _with_lengths(program, ir, fetch, return_numpy, compute):
        """Rows of sequences with their lengths, and without rows of no sequence behind them."""
        levels = []
        for name in fetch:
            variable, found = program._variable(name), []
            while variable.lengths is not None and ir.has(variable.lengths.name):
                variable = variable.lengths
                found.append(variable)
            levels.append(found)
        names = sorted({v.name for found in levels for v in found})
        results = compute(fetch + names)
        known, out = dict(zip(names, results[len(fetch):])), []
        for value, found in zip(results, levels):
            tensor, lengths = LoDTensor(value), [known[v.name] for v in found]
            if found and numpy.ndim(value) and lengths[0].sum() <= len(value):
                tensor.set(value[:lengths[0].sum()] if found[0].loose_rows else value)
                if len(tensor.numpy()) == lengths[0].sum():
                    tensor.set_recursive_sequence_lengths([n.tolist() for n in reversed(lengths)])
            out.append(tensor)
        if not return_numpy:
            return out
        return [t.numpy().view(_OneNumber) if t.numpy().size == 1 else t.numpy() for t in out]

    def _set_learning_rates(self, program, scope):
        for schedule, name in program.lr_schedules:
            if scope.native.has(name):
                scope.native.set(name, numpy.array([schedule()], "float32"))

    def plan(self, program, feed, fetch_list, scope=None):
        """How a program runs with such feeds, as text: kernels, layouts, memory."""
        scope = _scope if scope is None else scope
        feed = {k: numpy.asarray(v) for k, v in _feed_of(program, feed).items()}
        return self._exe.plan_table(program.ir, scope.native, feed, _fetch_names(fetch_list))

    def train_from_dataset(self, program=None, dataset=None, scope=None, thread=0, debug=False, fetch_list=None,
                           fetch_info=None, print_period=100, fetch_handler=None):
        """Runs a program once per batch of a data set, in C++; prints fetch_list every print_period batches. Gives nothing
        back. `thread`: the cores work together on every batch, whatever it says; `debug` changes nothing. Learning rates
        of schedules are looked at when it begins, prints or calls the handler. Without a data set: once per batch of the
        program's loader (iterable=False), which was started."""
        program = _program_of(program)
        from_loader = dataset is None and bool(program.loaders)
        if not from_loader and not hasattr(dataset, "_open"):
            raise TypeError("train_from_dataset needs a dataset: paddle.distributed.QueueDataset or InMemoryDataset, or a "
                            "DataLoader of the program that was made with iterable=False")
        if self._exe is None:
            raise native.InvalidArgumentError("this executor was closed")
        scope = _scope if scope is None else scope
        fetch_list = _graph.as_list(fetch_list)
        labels = list(fetch_info) if fetch_info else _fetch_names(fetch_list)
        if len(labels) != len(fetch_list):
            raise ValueError(f"fetch_info has {len(labels)} texts for {len(fetch_list)} variables of fetch_list")

        def show(number, values):
            values = [v.view(_OneNumber) if v.size == 1 else v for v in values]
            print(f"batch {number}: " + ", ".join(f"{n}={v}" for n, v in zip(labels, values)), flush=True)
            self._set_learning_rates(program, scope)

        def handle():
            fetch_handler._offer(scope)
            self._set_learning_rates(program, scope)
            return fetch_handler._next

        if from_loader:
            return self._train_from_loader(program, scope, fetch_list, print_period, show, fetch_handler)
        if program.family or program.between is not None:
            raise native.UnsupportedError("train_from_dataset: a program with a loop is run batch by batch: Executor.run")
        if any(name.endswith(_graph.STEPS_SUFFIX) for name in program.data_names()):
            raise native.UnsupportedError("train_from_dataset: a program with sequence_pad needs its maxlen; batches of "
                                          "data sets are as long as they come")
        inputs = _dataset_inputs(program, dataset.use_var)
        batches = dataset._open()
        try:
            self._set_learning_rates(program, scope)
            due = 0.0 if fetch_handler is None else fetch_handler._next
            batches.run(self._exe, program.ir, scope.native, inputs, _fetch_names(fetch_list), print_period, show,
                        None if fetch_handler is None else handle, due)
            dataset._ended(batches)
        finally:
            batches.close()

    def _train_from_loader(self, program, scope, fetch_list, print_period, show, fetch_handler):
        number = 0
        while True:
            number += 1
            shown = fetch_list if number % print_period == 0 else []
            try:
                values = self.run(program, fetch_list=shown, scope=scope)
            except EOFException:
                return
            if shown:
                show(number, [numpy.asarray(v) for v in values])
            if fetch_handler is not None:
                fetch_handler._offer(scope)

    infer_from_dataset = train_from_dataset


class FetchHandler:
    """Define handler(res_dict): train_from_dataset calls it every period_secs with the values of var_dict, variables
    that live from step to step. For a list of names, as in 1.6, handler is given the list of their values."""

    def __init__(self, var_dict=None, period_secs=60, return_np=True):
        if not var_dict:
            raise ValueError("FetchHandler: var_dict must name at least one variable")
        self._takes_list = not isinstance(var_dict, dict)
        self.var_dict, self.period_secs = dict(enumerate(var_dict)) if self._takes_list else var_dict, period_secs
        self._next = time.monotonic() + period_secs

    def handler(self, res_dict):
        for name, value in enumerate(res_dict) if self._takes_list else res_dict.items():
            print(f"{name}: {value}", flush=True)

    def _offer(self, scope):
        if time.monotonic() < self._next:
            return
        self._next = time.monotonic() + self.period_secs
        found = {key: scope.find_var(v if isinstance(v, str) else v.name) for key, v in self.var_dict.items()}
        values = {key: None if v is None else v.get_tensor().numpy() for key, v in found.items()}
        self.handler(list(values.values()) if self._takes_list else values)
