"""Arrays with the lengths of the sequences in them."""
import numpy

from paddle._native import native


class _Shape(tuple):
    """shape[0] as of an array, shape() as of a LoDTensor."""

    def __call__(self):
        return list(self)


class FedArray(numpy.ndarray):
    """What a loader gives: an array that also answers as a LoDTensor without sequences does."""

    @property
    def shape(self):
        return _Shape(numpy.ndarray.shape.__get__(self))

    @shape.setter
    def shape(self, value):
        numpy.ndarray.shape.__set__(self, value)

    def _get_dims(self):
        return list(self.shape)

    def numpy(self):
        return self.view(numpy.ndarray)

    def lod(self):
        return []

    recursive_sequence_lengths = lod


class _AlsoFed(type):
    def __instancecheck__(cls, value):
        return super().__instancecheck__(value) or cls is LoDTensor and isinstance(value, FedArray)


class LoDTensor(metaclass=_AlsoFed):
    """An array with, possibly, lengths of the sequences in it."""

    def __init__(self, array=None):
        self._array = None if array is None else numpy.asarray(array)
        self._lod = []

    def set(self, array, place=None):
        self._array = numpy.asarray(array)

    def numpy(self):
        return self._array

    def __array__(self, dtype=None, copy=None):
        return self._array if dtype is None else self._array.astype(dtype)

    def shape(self):
        return list(self._array.shape)

    _get_dims = shape

    def _is_initialized(self):
        return self._array is not None

    def set_lod(self, lod):
        self._lod = lod

    def lod(self):
        return self._lod

    def set_recursive_sequence_lengths(self, lengths):
        self._lod = []
        for level in lengths:
            offsets = [0]
            for n in level:
                offsets.append(offsets[-1] + n)
            self._lod.append(offsets)

    def recursive_sequence_lengths(self):
        return [[b - a for a, b in zip(level, level[1:])] for level in self._lod]

    def has_valid_recursive_sequence_lengths(self):
        """Do the lengths of each level add up to what the next one, or the array, has?"""
        counts = [len(level) - 1 for level in self._lod[1:]] + [len(self._array)]
        return all(level[-1] == count for level, count in zip(self._lod, counts))

    def __repr__(self):
        return repr(self._array)


class LoDTensorArray(list):
    """A list of LoDTensors."""


def check_loose_rows(op, attrs):
    """An op must not mix rows of sequences with the rows behind them, which belong to none."""
    over_all = op in ("mean", "accuracy", "auc", "batch_norm") or op.startswith("reduce_") and 0 in (attrs.get("dim") or [0])
    if over_all:
        raise native.UnsupportedError(
            f"{op}: over the rows of sequence_unpad or sequence_slice, behind which stand rows of no sequence; take one row "
            "per sequence first (sequence_pool), or feed the input with lod_level=1")
