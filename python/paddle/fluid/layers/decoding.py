"""Decoding by beams of one width: the most likely sentences under a cell that is given its own words."""
from paddle import _graph
from paddle import tensor as T
from paddle._native import native
from paddle.fluid.layers.static_rnn import StaticRNN
from paddle.nn import functional as F

__all__ = ["BeamSearchDecoder", "dynamic_decode"]
_NEVER = -1e9  # the logarithm of a probability that is none


class BeamSearchDecoder:
    """cell(inputs, states) gives (outputs, states); output_fn(outputs) the weights of all words; embedding_fn(words) what
    the next step is given."""

    def __init__(self, cell, start_token, end_token, beam_size, embedding_fn=None, output_fn=None):
        self.cell, self.start_token, self.end_token, self.beam_size = cell, int(start_token), int(end_token), int(beam_size)
        self.embedding_fn, self.output_fn = embedding_fn, output_fn

    @staticmethod
    def tile_beam_merge_with_batch(x, beam_size):
        """[batch, ...] -> [batch * beam_size, ...]: each row so often."""
        tiled = T.tile(T.unsqueeze(x, 1), [1, int(beam_size)] + [1] * (len(x.shape) - 1))
        return _merged(tiled, len(x.shape) - 1)


def _merged(x, kept):
    """The first dimensions as one, the last `kept` ones as they are."""
    lengths = [x.shape[i] if x.shape[i] >= 0 else T.shape(x)[i] for i in range(len(x.shape) - kept, len(x.shape))]
    return T.reshape(x, [-1, *lengths])


def dynamic_decode(decoder, inits=None, max_step_num=None, output_time_major=False, impute_finished=False, is_test=False,
                   return_length=False, **kwargs):
    """(words [batch, max_step_num, beams], best first, and states of the last step). Behind its end a sentence has end
    tokens. The program is run with 16 steps, and with twice as many as long as a sentence has no end."""
    if not isinstance(decoder, BeamSearchDecoder):
        raise native.UnsupportedError(f"dynamic_decode: a {type(decoder).__name__} is not here; nearest: BeamSearchDecoder")
    if max_step_num is None:
        raise native.UnsupportedError("dynamic_decode: give max_step_num; it is a shape")
    if inits is None:
        raise native.InvalidArgumentError("dynamic_decode: give inits, the cell's states before the first step")
    beams, most, end = decoder.beam_size, int(max_step_num), decoder.end_token
    like = inits
    while not isinstance(like, _graph.Variable):
        like = next(iter(like.values() if isinstance(like, dict) else like))
    batch = T.shape(like)[0]
    states = _graph.nested(lambda s: decoder.tile_beam_merge_with_batch(s, beams), inits)
    one = T.full([batch, 1], 1, "int64")
    first = T.scale(T.subtract(T.cumsum(one, 0), one), float(beams))  # of a sentence among all beams, [batch, 1]
    places = T.reshape(T.arange(0, most), [1, 1, most])
    rnn = StaticRNN()
    with rnn.step():
        with rnn._outside():
            rnn._begin_loop(T.full([1], most, "int64"))
            starts = T.full([batch, beams], decoder.start_token, "int64")
            only = T.concat([T.zeros([1]), T.full([beams - 1], _NEVER)], 0) if beams > 1 else T.zeros([1])
            scores_before = T.add(T.full([batch, beams], 0.0), only)
            open_ones = T.full([batch, beams], 0, "int64")
            empty = T.full([batch, beams, most], end, "int64")
        words, ended = rnn.memory(init=starts), rnn.memory(init=open_ones)
        scores, history = rnn.memory(init=scores_before), rnn.memory(init=empty)
        old = _graph.nested(lambda s: rnn.memory(init=s), states)
        inputs = words if decoder.embedding_fn is None else decoder.embedding_fn(words)
        outputs, new = decoder.cell(T.reshape(inputs, [-1, *inputs.shape[2:]]), old, **kwargs)
        logits = T.reshape(outputs, [-1, beams, outputs.shape[-1]])
        logits = logits if decoder.output_fn is None else decoder.output_fn(logits)
        chosen = _Choice(F.log_softmax(logits), scores, ended, first, end)
        rnn.update_memory(words, chosen.words)
        rnn.update_memory(ended, chosen.ended)
        rnn.update_memory(scores, chosen.scores)
        written = T.where(T.equal(places, rnn._step), T.unsqueeze(chosen.words, 2), chosen.of_beams(history, [most]))
        rnn.update_memory(history, written)
        lasts = _graph.nested(lambda s: T.gather(s, chosen.rows), new)
        _graph.nested(rnn.update_memory, old, lasts)
        rnn.step_output(written)
        finished = T.min(chosen.ended)
        _graph.nested(rnn.step_output, [lasts, finished])
    results = rnn.loop_until(most)
    behind = dict(zip((v.name for v in rnn._outputs), results))
    sentences = behind[written.name]
    rnn.note_until(behind[finished.name], results)
    lengths = T.sum(T.cast(T.not_equal(sentences, T.full_like(sentences, end)), "int64"), -1)
    out = T.transpose(sentences, [2, 0, 1] if output_time_major else [0, 2, 1])
    states = _graph.nested(lambda v: behind[v.name], lasts)
    return (out, states, lengths) if return_length else (out, states)


class _Choice:
    """The best continuations of the beams of each sentence: words, scores, ended ones, and rows of the beams they go on."""

    def __init__(self, shares, scores, ended, first, end):
        beams, words = shares.shape[1:]
        # A beam that has ended goes on with the end alone, and at no cost.
        place = T.reshape(T.arange(0, words), [1, 1, words])
        stay = T.where(T.equal(place, T.full([1], end, "int64")), T.zeros_like(shares), T.full_like(shares, _NEVER))
        is_ended = T.equal(T.unsqueeze(ended, 2), T.full([1], 1, "int64"))
        total = T.add(T.where(is_ended, stay, shares), T.unsqueeze(scores, 2))
        self.scores, index = T.topk(T.reshape(total, [-1, beams * words]), beams)
        beam = T.floor_divide(index, T.full([1], words, "int64"))
        self.words = T.subtract(index, T.scale(beam, float(words)))
        self.rows = T.reshape(T.add(beam, first), [-1])
        self._beams = beams
        before = self.of_beams(ended, [])
        self.ended = T.maximum(before, T.cast(T.equal(self.words, T.full([1], end, "int64")), "int64"))

    def of_beams(self, x, row):
        """[batch, beams, ...] of the beams that were chosen."""
        flat = T.reshape(x, [-1, *row]) if row else T.reshape(x, [-1])
        return T.reshape(T.gather(flat, self.rows), [-1, self._beams, *row])
