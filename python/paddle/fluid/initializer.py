"""Initializers with the arguments of 1.x."""
import contextlib

from paddle import _refuse
from paddle._native import native
from paddle.nn import initializer as _new
from paddle.nn.initializer import Bilinear, Initializer, set_global_initializer  # noqa: F401


class Constant(_new.Constant):
    def __init__(self, value=0.0, force_cpu=False):
        super().__init__(value)


class Uniform(_new.Uniform):
    def __init__(self, low=-1.0, high=1.0, seed=0, diag_num=0, diag_step=0, diag_val=1.0):
        if diag_num:
            raise native.UnsupportedError("Uniform: diag_num (a diagonal of its own) is not here; nearest: "
                                          "NumpyArrayInitializer")
        super().__init__(low, high, seed=seed)


class Normal(_new.Normal):
    def __init__(self, loc=0.0, scale=1.0, seed=0):
        super().__init__(loc, scale, seed=seed)


class TruncatedNormal(_new.TruncatedNormal):
    def __init__(self, loc=0.0, scale=1.0, seed=0):
        super().__init__(loc, scale, seed=seed)


class Xavier(_new._Xavier):
    def __init__(self, uniform=True, fan_in=None, fan_out=None, seed=0):
        super().__init__(uniform, fan_in, fan_out, seed)


class MSRA(_new._Kaiming):
    def __init__(self, uniform=True, fan_in=None, seed=0):
        super().__init__(uniform, fan_in, seed)


class NumpyArrayInitializer(_new.Assign):
    pass


ConstantInitializer, UniformInitializer, NormalInitializer = Constant, Uniform, Normal
TruncatedNormalInitializer, XavierInitializer, MSRAInitializer = TruncatedNormal, Xavier, MSRA
BilinearInitializer = Bilinear


def force_init_on_cpu():
    return False


@contextlib.contextmanager
def init_on_cpu():
    """All first values are made on the CPU."""
    yield


__getattr__ = _refuse.getter(__name__, {})
