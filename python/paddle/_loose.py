"""Feeds that are not as the program declares its inputs.

Other lengths than those of fluid.layers.data and py_reader: the original does not look at them and computes with what is
fed; scripts declare [-1, max_len, 1] and feed batches that are as long as their longest sentence.

A list of dicts, one for each device: a process is one worker here, and its batch is all of them."""
import numpy

from paddle._lod_tensor import LoDTensor
from paddle._native import native

_IDS = ("int32", "int64")


def loosen(program):
    """Before a program has a backward part: lengths of sequences become unknown, where its ops take any. Those are the
    lengths of inputs of ids, and of other inputs where they are the same numbers."""
    names = sorted(name for name in program.loose_inputs if program.ir.has(name) and name not in program.lengths_of)
    if not names or program.family or program.ir.has_backward():
        return
    shapes = {name: list(program.ir.shape(name)) for name in names}
    ids = [shapes[name] for name in names if program.ir.dtype(name) in _IDS]
    for length in sorted({d for shape in ids for d in shape[1:] if d > 1}):
        tried = {name: shape[:1] + [-1 if d == length else d for d in shape[1:]] for name, shape in shapes.items()}
        try:
            taken = program.ir.with_inputs(sorted(tried.items()))
        except native.FleetXError:
            continue
        program.replace(taken)
        shapes = tried


def follow(program, feed):
    """A program without a backward part takes feeds of other lengths where its ops do."""
    changed = {}
    for name in program.loose_inputs.keys() & feed.keys():
        value, declared = feed[name], program.ir.shape(name)
        if isinstance(value, LoDTensor) and value.lod() or numpy.ndim(value) != len(declared):
            continue
        fed = numpy.asarray(value).shape
        if any(d >= 0 and d != n for d, n in zip(declared, fed)):
            changed[name] = [d if d == n else -1 for d, n in zip(declared, fed)]
    if not changed or program.ir.has_backward():
        return
    try:
        program.replace(program.ir.with_inputs(sorted(changed.items())))
    except native.FleetXError as error:
        name = min(changed)
        raise native.InvalidArgumentError(
            f"feed '{name}': the program declares {list(program.ir.shape(name))}, got {list(numpy.shape(feed[name]))}, which "
            f"its ops do not take: {error}") from None


def joined(program, feeds):
    """One feed of several: the rows of all, one after the other. What lives from step to step they have in common."""
    if not feeds or not all(isinstance(feed, dict) and feed.keys() == feeds[0].keys() for feed in feeds):
        raise native.InvalidArgumentError("feed is a list: it must hold dicts of arrays, all with the same names")
    out = {}
    for name, first in feeds[0].items():
        values = [feed[name] for feed in feeds]
        if program.ir.has(name) and program.ir.var(name)["persistable"]:
            out[name] = first
            continue
        rows = [v.numpy() if isinstance(v, LoDTensor) else numpy.asarray(v) for v in values]
        if len({row.shape[1:] for row in rows}) > 1:
            raise native.InvalidArgumentError(
                f"feed '{name}': {len(feeds)} dicts are one batch, as a process is one worker, and their rows have shapes "
                f"{' and '.join(sorted({str(list(row.shape[1:])) for row in rows}))}; pad them, or feed one dict at a time")
        out[name] = numpy.concatenate(rows)
        if isinstance(first, LoDTensor) and first.recursive_sequence_lengths():
            levels = zip(*(v.recursive_sequence_lengths() for v in values))
            out[name] = LoDTensor(out[name])
            out[name].set_recursive_sequence_lengths([sum(parts, []) for parts in levels])
    return out
