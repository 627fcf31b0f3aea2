"""Sequences one after the other, with their lengths."""
import numpy

from paddle._executor import LoDTensor

__all__ = ["create_lod_tensor", "create_random_int_lodtensor"]


def _rows(data, lengths):
    """A list of sequences as one array of ids [n, 1], as 1.x makes it."""
    if [len(sequence) for sequence in data] != list(lengths):
        raise ValueError(f"create_lod_tensor: the sequences have the lengths {[len(s) for s in data]}, "
                         f"recursive_seq_lens says {list(lengths)}")
    flat = numpy.concatenate([numpy.asarray(sequence) for sequence in data])
    if flat.dtype.kind in "iu":
        flat = flat.astype("int64")
    return flat.reshape(len(flat), -1)


def create_lod_tensor(data, recursive_seq_lens, place=None):
    """From an array or a LoDTensor of rows, or from a list of sequences (ids, or rows of them)."""
    if isinstance(data, LoDTensor):
        data = data.numpy()
    elif isinstance(data, (list, map)):
        data = _rows(list(data), recursive_seq_lens[-1])
    elif not isinstance(data, numpy.ndarray):
        raise TypeError(f"create_lod_tensor takes an array, a LoDTensor or a list of sequences, not {type(data).__name__}")
    tensor = LoDTensor(data)
    tensor.set_recursive_sequence_lengths(recursive_seq_lens)
    if not tensor.has_valid_recursive_sequence_lengths():
        raise ValueError(f"create_lod_tensor: recursive_seq_lens {recursive_seq_lens} do not add up to {len(data)} rows")
    return tensor


def create_random_int_lodtensor(recursive_seq_lens, base_shape, place=None, low=0, high=1):
    """Whole numbers in [low, high], drawn by NumPy: rows of base_shape."""
    rows = sum(recursive_seq_lens[-1])
    data = numpy.random.randint(low, high + 1, [rows] + list(base_shape)).astype("int64")
    return create_lod_tensor(data, recursive_seq_lens, place)
