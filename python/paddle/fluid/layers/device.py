"""Places that a program of 1.x asked for."""
from paddle._executor import cpu_places


def get_places(device_count=None, device_type=None):
    """One process is one worker, on its cores, whatever device_type says."""
    return cpu_places(device_count)
