"""Saving and loading with the calls of 1.x: a folder with one safetensors file per variable, or one file for all."""
import os

import numpy

from paddle import _graph
from paddle._batch import batch  # noqa: F401
from paddle._executor import global_scope
from paddle._native import native
from paddle.io import DataLoader, PyReader  # noqa: F401
from paddle.reader import (ComposeNotAligned, buffered, cache, chain, compose, firstn, map_readers,  # noqa: F401
                           multiprocess_reader, shuffle, xmap_readers)
from paddle.static import io as _new
from paddle.static.io import load, load_program_state, save, set_program_state  # noqa: F401


def is_persistable(var):
    return var.persistable and not var.is_data


def get_parameter_value(para, executor):
    """The values of a parameter, as an array."""
    if not is_parameter(para):
        raise TypeError(f"get_parameter_value takes a parameter, not {para!r}")
    return global_scope().find_var(para.name).get_tensor().numpy()


def get_parameter_value_by_name(name, executor, program=None):
    return get_parameter_value(_new._program(program).global_block().var(name), executor)


def is_parameter(var):
    return isinstance(var, _graph.Parameter)


def _chosen(main_program, vars, predicate):
    if vars is not None:
        return [v if isinstance(v, str) else v.name for v in vars]
    program = _new._program(main_program)
    kept = program.ir.persistables()
    return [n for n in kept if predicate is None or predicate(program._variable(n))]


def save_vars(executor, dirname, main_program=None, vars=None, predicate=None, filename=None):
    names = _chosen(main_program, vars, predicate)
    write_values(dirname, filename, _new._values_of_one(_new._program(main_program), names, "save_vars"), {})


def write_values(dirname, filename, arrays, metadata):
    os.makedirs(dirname or ".", exist_ok=True)
    if filename is not None:
        native.save_tensors(os.path.join(dirname or "", filename), arrays, metadata)
        return
    for name, array in arrays.items():
        about = {k: v for k, v in metadata.items() if k == _new.PER_RANK + name}
        native.save_tensors(os.path.join(dirname, name.replace("/", "%")), {name: array}, about)


def load_vars(executor, dirname, main_program=None, vars=None, predicate=None, filename=None):
    names = _chosen(main_program, vars, predicate)
    if names and _new._is_server():
        return _load_server(dirname, names)
    if filename is not None:
        arrays, metadata = native.load_tensors(os.path.join(dirname or "", filename))
    else:
        arrays, metadata = {}, {}
        for name in names:
            path = os.path.join(dirname, name.replace("/", "%"))
            if not os.path.exists(path):
                continue
            more, about = native.load_tensors(path)
            arrays.update(more)
            metadata.update(about)
    without_file = _new._add_stand_ins(main_program, names, arrays, metadata)
    if without_file and filename is not None:
        raise native.InvalidArgumentError(f"load: {filename} lacks the variable '{without_file[0]}'")
    if without_file:
        arrays.update(_saved_by_servers(dirname, without_file, main_program))
    _new.set_program_state(main_program, {n: numpy.asarray(arrays[n]) for n in names if n in arrays}, metadata)


def _load_server(dirname, names):
    """A parameter server has its values in tables, not in a scope. In 1.x a server loaded variables between init_server and
    run_server; here it takes all that servers have saved in the folder."""
    if not os.path.exists(os.path.join(dirname or ".", "snapshot")):
        raise native.InvalidArgumentError(
            f"load: this process is a parameter server, and {dirname} has no snapshot of servers, so it would not serve "
            f"'{names[0]}'; load what fleet.save_persistables has written, or let the first worker load before init_worker")
    native.fleet.load_server(os.path.abspath(dirname or "."))


def _saved_by_servers(dirname, names, main_program):
    """Variables that servers have saved in their snapshot: tables, which may be parameters here, and optimizers' state."""
    found = {}
    if os.path.exists(os.path.join(dirname, "snapshot")):
        found = native.fleet.read_variables(_new._program(main_program).ir, os.path.abspath(dirname), set(names))
    for name in names:
        if name not in found:
            raise native.InvalidArgumentError(f"load: {dirname} has no file for variable '{name}'")
    return found


def save_params(executor, dirname, main_program=None, filename=None):
    save_vars(executor, dirname, main_program, None, is_parameter, filename)
    _save_tables(dirname)


def load_params(executor, dirname, main_program=None, filename=None):
    load_vars(executor, dirname, main_program, None, is_parameter, filename)
    _load_tables(dirname)


def save_persistables(executor, dirname, main_program=None, filename=None):
    save_vars(executor, dirname, main_program, None, is_persistable, filename)
    _save_tables(dirname)


def load_persistables(executor, dirname, main_program=None, filename=None):
    load_vars(executor, dirname, main_program, None, is_persistable, filename)
    _load_tables(dirname)


def _save_tables(dirname, mode="all", text=False):
    """Those that this process keeps by id, in a job without servers."""
    if _new.own_tables():
        native.fleet.save_servers(global_scope().native, os.path.abspath(dirname or "."), mode, text)


def _load_tables(dirname):
    if _new.own_tables():
        native.fleet.load_own_tables(os.path.abspath(dirname or "."))


def save_inference_model(dirname, feeded_var_names, target_vars, executor, main_program=None, model_filename=None,
                         params_filename=None, export_for_deployment=True, program_only=False):
    """Writes <dirname>/__model__ and <dirname>/__params__; with program_only the first alone. The program is always
    pruned to what target_vars need: export_for_deployment=False, which keeps all of it, is refused."""
    if not export_for_deployment:
        raise native.UnsupportedError("save_inference_model: export_for_deployment=False is not here; to keep the whole "
                                      "program, use fluid.save")
    targets = _graph.as_list(target_vars)
    if not targets or not all(isinstance(t, _graph.Variable) for t in targets):
        raise native.InvalidArgumentError(
            f"save_inference_model: target_vars must be a list of at least one variable of a program, got {target_vars!r}")
    feeds = _graph.as_list(feeded_var_names)
    if not all(isinstance(name, str) for name in feeds):
        raise native.InvalidArgumentError(
            f"save_inference_model: feeded_var_names must be a list of names, got {feeded_var_names!r}")
    params_path = None if program_only else os.path.join(dirname, params_filename or "__params__")
    _new.write_inference_model(os.path.join(dirname, model_filename or "__model__"), params_path, feeds, targets,
                               main_program if main_program is not None else targets[0].program)
    return [t.name for t in targets]


def load_inference_model(dirname, executor, model_filename=None, params_filename=None, pserver_endpoints=None):
    if pserver_endpoints:
        raise native.UnsupportedError("load_inference_model: pserver_endpoints belongs to parameter servers, which are "
                                      "not built yet")
    return _new.read_inference_model(os.path.join(dirname, model_filename or "__model__"),
                                     os.path.join(dirname, params_filename or "__params__"))


def get_program_parameter(program):
    return program.all_parameters()


def get_program_persistable_vars(program):
    return [v for v in program.list_vars() if is_persistable(v)]
