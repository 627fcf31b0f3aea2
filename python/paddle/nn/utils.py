"""Parameters as one vector. Weights that are made from others (weight_norm) are not here."""
from paddle import _refuse
from paddle.tensor import manipulation as _manipulation

__all__ = ["parameters_to_vector"]


def parameters_to_vector(parameters, name=None):
    """All parameters, one after the other, in one variable of one dimension."""
    return _manipulation.concat([_manipulation.reshape(p, [-1]) for p in parameters], 0, name)


# Imported by many that never call them.
weight_norm = _refuse.refused("paddle.nn.utils.weight_norm", "paddle.nn.LayerNorm")
remove_weight_norm = _refuse.refused("paddle.nn.utils.remove_weight_norm", "paddle.nn.LayerNorm")
__getattr__ = _refuse.getter(__name__, {"spectral_norm": "nothing", "vector_to_parameters": "Variable.set_value"})
