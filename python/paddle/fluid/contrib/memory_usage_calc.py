"""What a program would need."""
import numpy

from paddle._graph import Program

__all__ = ["memory_usage"]


def memory_usage(program, batch_size):
    """(least, most, unit) of the memory of a program: least, what lives from step to step and its largest other variable;
    most, all variables at once. What a run takes lies between them: Executor.plan says it."""
    if not isinstance(program, Program):
        raise TypeError(f"memory_usage: program must be a Program, not {type(program).__name__}")
    if int(batch_size) <= 0:
        raise ValueError(f"memory_usage: batch_size must be positive, got {batch_size}")
    kept, others = 0.0, [0.0]
    for v in program.list_vars():
        width = 2 if v.dtype == "bfloat16" else numpy.dtype(v.dtype).itemsize
        size = width * float(numpy.prod([batch_size if d < 0 else d for d in v.shape], dtype="float64"))
        if program.ir.var(v.name)["persistable"]:
            kept += size
        else:
            others.append(size)
    least, most, unit = kept + max(others), kept + sum(others), "B"
    for larger in ("KB", "MB", "GB"):
        if most < 1024:
            break
        least, most, unit = least / 1024, most / 1024, larger
    return least, most, unit
