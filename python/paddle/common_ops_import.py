"""Where old scripts find core.EOFException."""
from paddle.fluid import core  # noqa: F401
