"""Saving a program whose state is divided among the workers."""
from paddle._native import native

__all__ = ["add_sync_comm", "save_persistables"]


def add_sync_comm(program, sharding_ring_id):
    """Copies for testing read parameters that every worker has whole when a step begins: nothing is to be added."""
    return program


def save_persistables(exe, dirname, main_program, filename=None):
    """fleet.save_persistables: all workers call it, worker 0 writes."""
    from paddle.distributed import fleet
    if filename is not None:
        raise native.UnsupportedError(f"save_persistables of a sharded program: filename={filename!r} is not here; one file for each "
                                      "variable is written")
    fleet.save_persistables(exe, dirname, main_program)
