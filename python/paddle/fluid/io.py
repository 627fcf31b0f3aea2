"""Saving and loading with the calls of 1.x: a folder with one safetensors file per variable, or one file for all."""
import os

import numpy

from paddle import _graph
from paddle._batch import batch  # noqa: F401
from paddle._executor import global_scope
from paddle._native import native
from paddle.io import DataLoader, PyReader  # noqa: F401
from paddle.reader import buffered, cache, chain, compose, firstn, map_readers, shuffle, xmap_readers  # noqa: F401
from paddle.static import io as _new
from paddle.static.io import load, load_program_state, save, set_program_state  # noqa: F401


def is_persistable(var):
    return var.persistable and not var.is_data


def is_parameter(var):
    return isinstance(var, _graph.Parameter)


def _chosen(main_program, vars, predicate):
    if vars is not None:
        return [v if isinstance(v, str) else v.name for v in vars]
    program = _new._program(main_program)
    kept = program.ir.persistables()
    return [n for n in kept if predicate is None or predicate(program._variable(n))]


def save_vars(executor, dirname, main_program=None, vars=None, predicate=None, filename=None):
    arrays = _new._values(_chosen(main_program, vars, predicate), global_scope(), "save_vars")
    os.makedirs(dirname or ".", exist_ok=True)
    if filename is not None:
        native.save_tensors(os.path.join(dirname or "", filename), arrays, {})
        return
    for name, array in arrays.items():
        native.save_tensors(os.path.join(dirname, name.replace("/", "%")), {name: array}, {})


def load_vars(executor, dirname, main_program=None, vars=None, predicate=None, filename=None):
    names = _chosen(main_program, vars, predicate)
    if filename is not None:
        arrays = native.load_tensors(os.path.join(dirname or "", filename))[0]
    else:
        arrays = {}
        for name in names:
            path = os.path.join(dirname, name.replace("/", "%"))
            if not os.path.exists(path):
                raise native.InvalidArgumentError(f"load: {dirname} has no file for variable '{name}'")
            arrays.update(native.load_tensors(path)[0])
    missing = [n for n in names if n not in arrays]
    if missing:
        raise native.InvalidArgumentError(f"load: the file lacks {', '.join(missing[:5])}")
    _new.set_program_state(main_program, {n: numpy.asarray(arrays[n]) for n in names})


def save_params(executor, dirname, main_program=None, filename=None):
    save_vars(executor, dirname, main_program, None, is_parameter, filename)


def load_params(executor, dirname, main_program=None, filename=None):
    load_vars(executor, dirname, main_program, None, is_parameter, filename)


def save_persistables(executor, dirname, main_program=None, filename=None):
    save_vars(executor, dirname, main_program, None, is_persistable, filename)


def load_persistables(executor, dirname, main_program=None, filename=None):
    load_vars(executor, dirname, main_program, None, is_persistable, filename)


def save_inference_model(dirname, feeded_var_names, target_vars, executor, main_program=None, model_filename=None,
                         params_filename=None, export_for_deployment=True, program_only=False):
    """Writes <dirname>/__model__ and <dirname>/__params__."""
    targets = _graph.as_list(target_vars)
    _new.write_inference_model(os.path.join(dirname, model_filename or "__model__"),
                               os.path.join(dirname, params_filename or "__params__"),
                               _graph.as_list(feeded_var_names), targets, main_program or targets[0].program)
    return [t.name for t in targets]


def load_inference_model(dirname, executor, model_filename=None, params_filename=None, pserver_endpoints=None):
    return _new.read_inference_model(os.path.join(dirname, model_filename or "__model__"),
                                     os.path.join(dirname, params_filename or "__params__"))


def get_program_parameter(program):
    return program.all_parameters()


def get_program_persistable_vars(program):
    return [v for v in program.list_vars() if is_persistable(v)]
