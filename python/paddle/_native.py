"""The C++ module, and the user's own line in a script."""
import os
import sys

try:
    import _fleetx as native
except ImportError as error:
    raise ImportError(
        f"the module _fleetx cannot be loaded ({error}). In a build tree: `source python/env.sh`; it must have been "
        f"built for this interpreter ({sys.executable}): cmake -DFLEETX_PYTHON={sys.executable}") from error

_HERE = os.path.dirname(os.path.abspath(__file__))
# Frames in these files are ours: an error shows the line of the first frame outside.
_OURS = (_HERE + os.sep, os.path.join(os.path.dirname(_HERE), "fleetx") + os.sep)


def user_line():
    """(file, line) of the innermost frame that is not in our packages."""
    frame = sys._getframe(1)
    last = frame
    while frame is not None and frame.f_code.co_filename.startswith(_OURS):
        last, frame = frame, frame.f_back
    frame = frame or last
    return frame.f_code.co_filename, frame.f_lineno
