"""`import paddle` must not hide a real PaddlePaddle that is installed beside it."""
import os
import sys

from paddle._native import native

_HERE = os.path.dirname(os.path.abspath(__file__))


def other_paddle():
    """The folder of another package `paddle` that this interpreter would find, or None."""
    for entry in sys.path:
        folder = os.path.join(entry or os.getcwd(), "paddle")
        if os.path.isfile(os.path.join(folder, "__init__.py")) and not os.path.samefile(folder, _HERE):
            return folder
    return None


def check():
    other = other_paddle()
    if other is not None and not native.env_flag("FLEETX_SHADOW_PADDLE"):
        raise ImportError(
            f"two packages are called paddle: FleetX's ({_HERE}) and another ({other}). FleetX's does not hide the "
            "other one unless it is told to: set FLEETX_SHADOW_PADDLE=1, or take one of them out of PYTHONPATH")
