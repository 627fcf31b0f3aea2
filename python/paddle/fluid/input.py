"""Ids as inputs of a network, as 1.6 has them: the shape of the result is that of the ids with the width behind."""
from paddle.static.nn import embedding  # noqa: F401
from paddle.tensor import manipulation

__all__ = ["embedding", "one_hot"]


def one_hot(input, depth, allow_out_of_range=False):
    """ids [...] -> [..., depth]. An id that is not below depth is an error; with allow_out_of_range it gives zeros."""
    if allow_out_of_range:
        from paddle.fluid import layers
        return layers.one_hot(manipulation.unsqueeze(input, -1), depth, True)
    return manipulation.one_hot(input, depth)
