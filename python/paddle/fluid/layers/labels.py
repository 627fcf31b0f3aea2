"""Tags of the rows of sequences: conditional random fields, and chunks."""
from paddle import _param
from paddle import tensor as T
from paddle._graph import emit
from paddle.fluid.layers.sequence import _lengths, _starts, _with
from paddle.utils import unique_name

__all__ = ["linear_chain_crf", "crf_decoding", "chunk_eval"]


class _Rows:
    """Rows of sequences, as `input` has them; with `length`, those of [sequences, steps, ...]."""

    def __init__(self, what, input, length, width=None):
        self._input, self._padded = input, length is not None
        shape = [-1] if width is None else [-1, width]
        self.rows = T.reshape(input, shape)
        if not self._padded:
            self.lengths = _lengths(what, input)
            self.starts = _starts(self.lengths)
            return
        from paddle.nn.functional._recurrent import Padded
        at = Padded(T.reshape(input, [0, 0, -1]) if len(input.shape) != 3 else input, length)
        self.starts, self.lengths = at.starts, at.lengths

    def places(self):
        return {"starts": self.starts, "lengths": self.lengths}

    def column(self, values):
        """What was computed for the rows, in the form of the input."""
        if self._padded:
            steps = self._input.shape[1]
            return _with(T.reshape(values, [-1, steps if steps >= 0 else T.shape(self._input)[1]]), None)
        return _with(T.reshape(values, [-1, 1]), self.lengths)


def _transitions(tags, attr):
    return _param.make([tags + 2, tags], attr, unique_name.generate("linear_chain_crf"))


def linear_chain_crf(input, label, param_attr=None, length=None):
    """What the labels of each sequence cost, [sequences, 1]. `input`: weights of the tags of each row."""
    tags = input.shape[-1]
    at = _Rows("linear_chain_crf", input, length, tags)
    cost = emit("linear_chain_crf", {"x": at.rows, "transition": _transitions(tags, param_attr),
                                     "label": T.cast(T.reshape(label, [-1]), "int64"), **at.places()})["cost"][0]
    return _with(cost, None)


def crf_decoding(input, param_attr, label=None, length=None):
    """The most likely tags of each row; with `label`, 1 where they are right and 0 elsewhere."""
    tags = input.shape[-1]
    at = _Rows("crf_decoding", input, length, tags)
    known = None if label is None else T.cast(T.reshape(label, [-1]), "int64")
    path = emit("crf_decoding", {"x": at.rows, "transition": _transitions(tags, param_attr), "label": known,
                                 **at.places()})["path"][0]
    return at.column(path)


def chunk_eval(input, label, chunk_scheme, num_chunk_types, excluded_chunk_types=None, seq_length=None):
    """(precision, recall, f1, chunks found, chunks labelled, chunks right) of the tags `input`."""
    at = _Rows("chunk_eval", input, seq_length)
    out = emit("chunk_eval", {"inference": at.rows, "label": T.cast(T.reshape(label, [-1]), "int64"), **at.places()},
               {"chunk_scheme": chunk_scheme, "num_chunk_types": int(num_chunk_types),
                "excluded_chunk_types": [int(t) for t in excluded_chunk_types or ()]})
    return tuple(_with(out[slot][0], None) for slot in ("precision", "recall", "f1", "found", "labelled", "right"))
