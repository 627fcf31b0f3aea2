"""Every argument is used, or accepted with a reason that docs/python.md gives, or refused by its name."""
import ast
import importlib
import inspect
import pathlib
import pkgutil
import re
import types

import pytest

import fleetx
import paddle

ROOT = pathlib.Path(__file__).resolve().parents[3]
UNKNOWN = "no_such_argument_"
REFUSED_MODULES = {"paddle.fluid.incubate.fleet.parameter_server.pslib"}


def modules():
    yield from (paddle, fleetx)
    for package in (paddle, fleetx):
        for found in pkgutil.walk_packages(package.__path__, package.__name__ + ".", onerror=lambda name: None):
            if found.name not in REFUSED_MODULES and not any(part.startswith("_") for part in found.name.split(".")):
                yield importlib.import_module(found.name)


def is_ours(value):
    module = getattr(value, "__module__", None) or ""
    return module.split(".")[0] in ("paddle", "fleetx")


def public_functions():
    """(name, function) of all public functions and classes, and of the public methods of the classes."""
    seen = set()
    for module in modules():
        for name, value in sorted(vars(module).items()):
            if name.startswith("_") or not is_ours(value) or id(value) in seen:
                continue
            if inspect.isfunction(value) or inspect.isclass(value):
                seen.add(id(value))
                yield f"{module.__name__}.{name}", value
            if inspect.isclass(value):
                for method, function in sorted(vars(value).items()):
                    function = function.__func__ if isinstance(function, staticmethod) else function
                    if not method.startswith("_") and isinstance(function, types.FunctionType) and id(function) not in seen:
                        seen.add(id(function))
                        yield f"{module.__name__}.{name}.{method}", function


# Methods that hand further arguments on, and whom a call needs to find that out.
def loader_of_images():
    return fleetx.utils.ImageNetDownloader()


HANDS_ON = {
    "init": lambda: paddle.distributed.QueueDataset(), "update_settings": lambda: paddle.distributed.QueueDataset(),
    "download_from_bos": loader_of_images,
}
# Take what the user's own layer or cell takes.
OF_THE_USER = {"Layer.forward", "RNN.forward", "BiRNN.forward", "layer_helper.LayerHelper", "common_ops_import.LayerHelper",
               "RNNCell.call", "layers.rnn", "cells.rnn", "layers.dynamic_decode", "decoding.dynamic_decode"}


def test_an_unknown_keyword_is_refused_by_name():
    checked, wrong = 0, []
    for name, function in public_functions():
        short = ".".join(name.split(".")[-2:])
        if short in OF_THE_USER:
            continue
        if not inspect.isclass(function) and any(
                p.kind is p.VAR_KEYWORD for p in inspect.signature(function).parameters.values()):
            make = HANDS_ON.get(name.split(".")[-1])
            function = getattr(make(), name.split(".")[-1]) if make else function
        checked += 1
        try:
            function(**{UNKNOWN: None})
            wrong.append(f"{name} takes it")
        except NotImplementedError:
            pass  # the whole function is refused
        except (TypeError, ValueError) as error:
            # Python's own words for a class without arguments do not name one.
            if UNKNOWN not in str(error) and "takes no arguments" not in str(error) and \
                    "takes no keyword arguments" not in str(error):
                wrong.append(f"{name}: {error}")
        except Exception as error:
            wrong.append(f"{name}: {type(error).__name__}: {error}")
    assert not wrong, "\n".join(wrong)
    assert checked > 800, checked


def test_layers_pass_an_unknown_keyword_to_nobody():
    x = paddle.static.data("x", [None, 3, 4], "float32")
    for layer in (paddle.nn.LSTM(4, 5), paddle.nn.RNN(paddle.nn.GRUCell(4, 5)), paddle.nn.Linear(4, 5), paddle.nn.ReLU()):
        with pytest.raises(TypeError, match=UNKNOWN):
            layer(x, **{UNKNOWN: None})


# ---- accepted ----
def documented():
    """{argument, or function(argument)} of the table in docs/python.md."""
    text = (ROOT / "docs" / "python.md").read_text()
    table = text.split("## Arguments that change nothing")[1].split("\n## ")[0]
    rows = [line for line in table.splitlines() if line.startswith("| `")]
    return {name for row in rows for name in re.findall(r"`([^`]+)`", row.split("|")[1])}


def only_refuses(function):
    body = [s for s in function.body if not isinstance(s, (ast.Import, ast.ImportFrom)) and
            not (isinstance(s, ast.Expr) and isinstance(s.value, ast.Constant))]
    return len(body) == 1 and isinstance(body[0], ast.Raise)


def unused_arguments(node, path=()):
    """(class and function, argument) of public functions whose body does not look at an argument."""
    for child in ast.iter_child_nodes(node):
        if isinstance(child, ast.ClassDef):
            yield from unused_arguments(child, path + (child.name,))
        elif isinstance(child, ast.FunctionDef):
            own = child.name == "__init__" or not child.name.startswith("_")
            if own and not only_refuses(child) and not any(p.startswith("_") for p in path):
                a = child.args
                names = [x.arg for x in a.posonlyargs + a.args + a.kwonlyargs] + [x.arg for x in (a.vararg, a.kwarg) if x]
                used = {x.id for s in child.body for x in ast.walk(s) if isinstance(x, ast.Name)}
                function = path[-1] if child.name == "__init__" else child.name
                yield from ((function, name) for name in names if name not in used and name not in ("self", "cls"))


def test_an_argument_that_changes_nothing_is_documented():
    known, found, missing = documented(), set(), []
    for source in sorted((ROOT / "python").rglob("*.py")):
        for function, argument in unused_arguments(ast.parse(source.read_text())):
            keys = {argument, f"{function}({argument})"} & known
            found |= keys
            if not keys:
                missing.append(f"{source.relative_to(ROOT)}: {function}({argument})")
    assert not missing, "\n".join(missing)
    assert not known - found, f"documented, but used or gone: {known - found}"
