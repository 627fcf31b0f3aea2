"""Loops that end by a value, arrays of variables, and decoding by beams of varying width, as 1.x writes it. All are steps
between runs of a program's ops (paddle._between): for inference, without gradients."""
import contextlib

import numpy

from paddle import _between, _graph
from paddle import tensor as T
from paddle._graph import Variable
from paddle._native import native
from paddle.tensor import creation

__all__ = ["While", "while_loop", "create_array", "array_write", "array_read", "array_length", "tensor_array_to_tensor",
           "beam_search", "beam_search_decode"]


class While:
    """The block is repeated as long as `cond` holds, which it must change. What it assigns to variables from before it
    (assign, increment, less_than(cond=...)) is theirs in its next turn and after it."""

    def __init__(self, cond, is_test=False, name=None):
        if not isinstance(cond, Variable) or cond.dtype != "bool":
            raise TypeError(f"While: the condition must be a variable of bool, got {cond!r}")
        self._cond = cond

    @contextlib.contextmanager
    def block(self):
        with _between.of(self._cond.program).loop(self._cond):
            yield


def _each(function, value, *others):
    """As _graph.nested; what is no variable stays."""
    return _graph.nested(lambda v, *o: function(v, *o) if isinstance(v, Variable) else v, value, *others)


def while_loop(cond, body, loop_vars, is_test=False, name=None):
    """loop_vars = body(*loop_vars) as long as cond(*loop_vars) holds; gives the last ones."""
    if not callable(cond) or not callable(body):
        raise TypeError("while_loop: cond and body must be functions")
    if not isinstance(loop_vars, (list, tuple)) or not loop_vars:
        raise ValueError("while_loop: loop_vars must be a list of variables, with one at least")
    own = _each(T.assign, list(loop_vars))
    holds = T.assign(cond(*own))
    with While(holds, is_test, name).block():
        new = body(*own)
        new = list(new) if isinstance(new, (list, tuple)) else [new]
        if len(new) != len(own):
            raise ValueError(f"while_loop: body gives {len(new)} variables, loop_vars has {len(own)}")
        copies = _each(T.assign, new)
        _each(lambda old, value: old.become(value), own, copies)
        T.assign(cond(*own), holds)
    return own


def create_array(dtype, initialized_list=None):
    array = _between.TensorArray(dtype)
    for i, x in enumerate(initialized_list or []):
        array.write(x, T.full([1], i, "int64"))
    return array


def array_write(x, i, array=None):
    """Element i of the array; without one, of a new array."""
    array = create_array(x.dtype) if array is None else array
    array.write(x, i, creation.assignment_condition())
    return array


def array_read(array, i):
    return array.read(i)


def _of_arrays(what, arrays, function, outputs):
    program = _graph.default_main_program()
    made = [_between.output(program, what, *spec) for spec in outputs]

    def does(values):
        for v, (value, lengths) in zip(made, function(*[array.elements(values) for array in arrays])):
            values[v.name] = numpy.ascontiguousarray(value, dtype=str(v.dtype))
            values.update(zip(_between._levels(v), lengths))

    _between.of(program).add(does, [])
    return made


def array_length(array):
    return _of_arrays("array_length", [array], lambda elements: [([len(elements)], [])], [("int64", [1])])[0]


def tensor_array_to_tensor(input, axis=1, name=None, use_stack=False):
    """(the elements side by side, or one behind the other along a new axis; their lengths along it)."""
    if isinstance(input, (list, tuple)):
        joined = (T.stack if use_stack else T.concat)(list(input), axis)
        return joined, T.assign(numpy.array([1 if use_stack else v.shape[axis] for v in input], "int32"))
    dtype, shape, _ = input.like

    def join(elements):
        arrays = [value for value, _ in elements]
        out = numpy.stack(arrays, axis) if use_stack else numpy.concatenate(arrays, axis)
        return [(out, []), ([1 if use_stack else a.shape[axis] for a in arrays], [])]
    place = axis % (len(shape) + bool(use_stack))
    joined = shape[:place] + [-1] + shape[place + (not use_stack):]
    return tuple(_of_arrays("tensor_array_to_tensor", [input], join, [(dtype, joined), ("int32", [-1])]))


# ---- beams ----
def beam_search(pre_ids, pre_scores, ids, scores, beam_size, end_id, level=0, is_accumulated=True, name=None,
                return_parent_idx=False):
    """(words, scores), and with return_parent_idx the rows that they continue: the best beam_size continuations of each
    sentence. Rows of `scores` are beams; its sequences say which belong to a sentence. A beam that has ended stays as it
    is; a sentence all of whose beams had ended before has no beam any more."""
    told = scores if scores.lengths is not None else pre_ids
    if told.lengths is None:
        raise native.InvalidArgumentError("beam_search: scores and pre_ids have no sequences: which rows belong to a sentence?")
    inputs = [told, pre_ids, pre_scores, scores] + ([ids] if ids is not None else [])

    def choose(told, pre_ids, pre_scores, scores, ids=None):
        rows = _rows_of_sentences(told[1], level)
        chosen = _best(rows, pre_ids[0].reshape(-1), pre_scores[0].reshape(-1), None if ids is None else ids[0], scores[0],
                       beam_size, end_id, is_accumulated)
        words = numpy.array([[word] for row in chosen for _, word in row], "int64").reshape(-1, 1)
        points = numpy.array([[score] for row in chosen for score, _ in row], "float32").reshape(-1, 1)
        lengths = [[len(row) for row in chosen], rows]
        parents = [i for i, row in enumerate(chosen) for _ in row]
        return [(words, lengths), (points, lengths), (numpy.array(parents, "int64"), [])]

    made = _between.value_step("beam_search", choose, inputs, [("int64", [-1, 1], 2), ("float32", [-1, 1], 2), ("int64", [-1])],
                               with_lengths=True)
    return tuple(made) if return_parent_idx else tuple(made[:2])


def _rows_of_sentences(levels, level):
    """levels: lengths, the innermost first. How many rows each sequence of the level `level`, from outside, has."""
    levels = [numpy.asarray(lengths) for lengths in reversed(levels)]
    rows = levels[level]
    for inner in levels[level + 1:]:
        ends = numpy.concatenate([[0], numpy.cumsum(inner)])
        places = numpy.concatenate([[0], numpy.cumsum(rows)])
        rows = numpy.diff(ends[places])
    return rows


def _best(rows, pre_ids, pre_scores, ids, scores, beam_size, end_id, is_accumulated):
    """Of each row the (score, word)s that go on."""
    out, first = [[] for _ in pre_ids], 0
    for count in rows:
        found = []
        for row in range(first, first + count):
            if pre_ids[row] == end_id:
                found.append((float(pre_scores[row]), row, int(end_id)))
                continue
            points = scores[row] if is_accumulated else pre_scores[row] + numpy.log(scores[row])
            words = numpy.arange(len(points)) if ids is None else ids[row]
            found += [(float(p), row, int(w)) for p, w in zip(points, words)]
        found = sorted(found, key=lambda f: -f[0])[:beam_size]
        if any(word != end_id or pre_ids[row] != end_id for _, row, word in found):
            for score, row, word in found:
                out[row].append((score, word))
        first += count
    return out


def beam_search_decode(ids, scores, beam_size, end_id, name=None):
    """(words, scores) of all sentences that beam_search found, the best first: sequences of sequences. ids, scores: arrays
    of what each step gave."""
    return tuple(_of_arrays("beam_search_decode", [ids, scores], lambda i, s: _sentences(i, s, end_id),
                            [("int64", [-1], 2), ("float32", [-1], 2)]))


def _sentences(ids, scores, end_id):
    steps = []
    for (words, (children, groups)), (points, _) in zip(ids, scores):
        steps.append((words.reshape(-1), points.reshape(-1), numpy.asarray(children), numpy.asarray(groups)))
    count = len(steps[0][3])
    found = [[] for _ in range(count)]  # of each sentence [place, words from behind, their scores]
    for words, points, children, groups in reversed(steps):
        parent = numpy.repeat(numpy.arange(len(children)), children)
        ends = numpy.concatenate([[0], numpy.cumsum(children)])
        first = numpy.concatenate([[0], numpy.cumsum(groups)])
        for sentence in range(count):
            begin, end = ends[first[sentence]], ends[first[sentence + 1]]
            if not found[sentence]:
                found[sentence] = [[place, [], []] for place in range(begin, end)]
            for beam in found[sentence]:
                place = beam[0]
                if words[place] != end_id or not beam[1]:
                    beam[1].append(words[place])
                    beam[2].append(points[place])
                beam[0] = parent[place]
    for beams in found:
        beams.sort(key=lambda beam: -beam[2][0])
    flat = [beam for beams in found for beam in beams]
    lengths = [numpy.array([len(beam[1]) for beam in flat], "int64"), numpy.array([len(beams) for beams in found], "int64")]
    return [(numpy.array([x for beam in flat for x in reversed(beam[part])]), lengths) for part in (1, 2)]
