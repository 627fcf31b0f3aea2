from paddle import _refuse
from paddle.utils import unique_name

__all__ = ["unique_name", "run_check", "try_import"]


def run_check():
    """Trains a tiny network for one step and says whether that worked."""
    import numpy
    import paddle
    from paddle import static
    with static.program_guard(static.Program(), static.Program()), unique_name.guard(), static.scope_guard(static.Scope()):
        x = static.data("x", [None, 4], "float32")
        loss = paddle.mean(static.nn.fc(x, 2))
        paddle.optimizer.SGD(0.1).minimize(loss)
        exe = static.Executor(paddle.CPUPlace())
        exe.run(static.default_startup_program())
        exe.run(static.default_main_program(), feed={"x": numpy.ones((3, 4), "float32")}, fetch_list=[loss])
    print("FleetX works: a small network was trained for a step on the CPU.")


def deprecated(update_to="", since="", reason="", level=0):
    """A decorator that says, when the function is called, that it will go."""
    def decorate(function):
        import functools
        import warnings

        @functools.wraps(function)
        def wrapper(*args, **kwargs):
            if level < 2:
                warnings.warn(" ".join(filter(None, [
                    f"{function.__name__} is deprecated" + (f" since {since}" if since else "") + ".",
                    reason, f"Use {update_to} instead." if update_to else ""])), DeprecationWarning, stacklevel=2)
                return function(*args, **kwargs)
            raise RuntimeError(f"{function.__name__} is gone" + (f"; use {update_to}" if update_to else ""))
        return wrapper
    return decorate


def require_version(min_version, max_version=None):
    """FleetX serves the calls that it lists, whatever their version."""


def try_import(module_name, err_msg=None):
    import importlib
    try:
        return importlib.import_module(module_name)
    except ImportError as error:
        raise ImportError(err_msg or f"the package {module_name} is needed here and is not installed") from error


__getattr__ = _refuse.getter(__name__, {
}, lazy={"cpp_extension": "paddle.utils.cpp_extension", "download": "paddle.utils.download",
         "profiler": "paddle.utils.profiler"})
