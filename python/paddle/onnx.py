"""Models for other engines: the format of ONNX, operator sets 13 to 17. The work is done in C++ (fleetx/onnx)."""
import os

from paddle import _graph
from paddle._executor import global_scope
from paddle._graph import Program, as_list
from paddle._native import native

__all__ = ["export"]


def export(program, path, input_spec=None, opset_version=13, output_spec=None):
    """Writes `path`.onnx, and returns its name: the part of a static `program` that computes the variables
    `output_spec`, with the values of the global scope. `input_spec`: variables that are fed; default: those that are
    needed, in the order of the program."""
    if not isinstance(program, Program):
        raise native.UnsupportedError(f"onnx.export takes a static program, got {type(program).__name__}; layers of dynamic "
                                      "graphs are not there")
    if not isinstance(opset_version, int):
        raise native.InvalidArgumentError(f"onnx.export: opset_version must be a number, 13 to 17, got {opset_version!r}")
    targets = as_list(output_spec)
    if not targets or not all(isinstance(v, _graph.Variable) for v in targets):
        raise native.InvalidArgumentError(f"onnx.export: output_spec must be variables of the program, got {output_spec!r}")
    pruned = program.ir.clone_for_test().prune([v.name for v in targets])
    feeds = [getattr(v, "name", v) for v in as_list(input_spec)] if input_spec is not None else \
        [name for name in pruned.vars() if pruned.var(name)["is_data"]]
    path = os.fspath(path)
    path = path if path.endswith(".onnx") else path + ".onnx"
    content = native.export_onnx(pruned, global_scope().native, feeds=feeds, fetch=[v.name for v in targets],
                                 opset=opset_version)
    if os.path.dirname(path):
        os.makedirs(os.path.dirname(path), exist_ok=True)
    with open(path, "wb") as file:
        file.write(content)
    return path
