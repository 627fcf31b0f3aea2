"""paddle.save and paddle.load: dicts of arrays as safetensors files, programs (.pdmodel) as protobuf. Nothing is
pickled."""
import json
import os

import numpy

from paddle._graph import Program, Variable
from paddle._native import native


def _flatten(value, path, arrays):
    """Arrays go into `arrays` under their path; the rest is returned as JSON, with references to them."""
    if isinstance(value, Variable):
        value = value.get_value().numpy()
    if hasattr(value, "numpy") and callable(value.numpy):
        value = value.numpy()
    if isinstance(value, (numpy.ndarray, numpy.generic)):
        arrays[path] = numpy.ascontiguousarray(value).reshape(numpy.shape(value) or (1,))
        return {"@array": path}
    if isinstance(value, dict):
        return {"@dict": [[k, _flatten(v, f"{path}/{k}" if path else str(k), arrays)] for k, v in value.items()]}
    if isinstance(value, (list, tuple)):
        return [_flatten(v, f"{path}/{i}", arrays) for i, v in enumerate(value)]
    if value is None or isinstance(value, (bool, int, float, str)):
        return value
    raise TypeError(f"paddle.save: '{path}' is a {type(value).__name__}; arrays, numbers, texts, lists and dicts are saved")


def _restore(tree, arrays):
    if isinstance(tree, dict) and "@array" in tree:
        return arrays[tree["@array"]]
    if isinstance(tree, dict):
        return {key: _restore(value, arrays) for key, value in tree["@dict"]}
    return [_restore(v, arrays) for v in tree] if isinstance(tree, list) else tree


def save(obj, path, protocol=4, use_binary_format=False):
    """`protocol` is one of pickle; nothing is pickled here."""
    if use_binary_format:
        raise native.UnsupportedError("paddle.save: use_binary_format=True is a format of the original; safetensors files "
                                      "are written here")
    if os.path.dirname(path):
        os.makedirs(os.path.dirname(path), exist_ok=True)
    if isinstance(obj, Program):
        if not path.endswith(".pdmodel"):
            raise ValueError(f"paddle.save: the file of a program must end in .pdmodel, got {path}")
        with open(path, "wb") as file:
            file.write(obj.ir.to_proto())
        return
    arrays = {}
    tree = _flatten(obj, "", arrays)
    native.save_tensors(path, arrays, {"tree": json.dumps(tree)})


def load(path, return_numpy=True):
    """What save() wrote. Tensors are NumPy arrays, whatever return_numpy says: programs are static."""
    if not os.path.exists(path):
        for ending in (".pdparams", ".pdopt"):
            if os.path.exists(path + ending):
                return load(path + ending)
        raise ValueError(f"paddle.load: there is no file {path}")
    if path.endswith(".pdmodel"):
        with open(path, "rb") as file:
            return Program(native.Program.parse_proto(file.read(), path))
    arrays, metadata = native.load_tensors(path)
    return _restore(json.loads(metadata["tree"]), arrays) if "tree" in metadata else dict(arrays)
