"""Loops that end by a value, arrays of variables and beam search: steps between runs of a program's ops."""
import numpy as np
import paddle
import paddle.fluid as fluid
import pytest

layers = fluid.layers


def run(program, feed, fetch, **options):
    exe = fluid.Executor()
    return exe.run(program, feed=feed, fetch_list=fetch, **options)


def test_while_repeats_until_its_condition_ends_it():
    program = fluid.Program()
    with fluid.program_guard(program):
        n = fluid.data("n", [1], "int64")
        x = fluid.data("x", [None, 2], "float32")
        i = layers.fill_constant([1], "int64", 0)
        total, powers = layers.scale(x, 1.0), layers.create_array("float32")
        layers.array_write(x, i, powers)
        more = layers.less_than(i, n)
        with layers.While(more).block():
            twice = layers.scale(layers.array_read(powers, i), 2.0)
            layers.increment(i)
            layers.array_write(twice, i, powers)
            layers.assign(total + twice, total)
            layers.less_than(i, n, cond=more)
        last, count = layers.array_read(powers, i), layers.array_length(powers)
        joined, lengths = layers.tensor_array_to_tensor(powers, axis=0)
    value = np.array([[1, 2], [3, 4]], "float32")
    for times in (0, 1, 5):
        got = run(program, {"n": np.array([times]), "x": value}, [total, last, count, joined, lengths])
        np.testing.assert_allclose(got[0], value * (2 ** (times + 1) - 1))
        np.testing.assert_allclose(got[1], value * 2 ** times)
        assert got[2] == times + 1 and got[4].tolist() == [2] * (times + 1)
        np.testing.assert_allclose(got[3], np.concatenate([value * 2 ** k for k in range(times + 1)]))


def test_while_loop_takes_functions_and_swaps_at_once():
    program = fluid.Program()
    with fluid.program_guard(program):
        n = fluid.data("n", [1], "int64")
        start = [layers.zeros([1], "int64"), layers.zeros([1], "int64"), layers.ones([1], "int64")]
        i, a, b = layers.while_loop(lambda i, a, b: layers.less_than(i, n), lambda i, a, b: [i + 1, b, a + b], start)
        behind = layers.scale(a, 10.0)
    assert run(program, {"n": np.array([10])}, [a])[0] == 55  # Fibonacci
    assert run(program, {"n": np.array([0])}, [behind])[0] == 0
    assert run(program, {"n": np.array([7])}, [behind])[0] == 130


def test_loop_inside_of_a_loop():
    program = fluid.Program()
    with fluid.program_guard(program):
        n = fluid.data("n", [1], "int64")

        def row(i, total):
            _, total = layers.while_loop(lambda j, t: layers.less_equal(j, i), lambda j, t: [j + 1, t + j],
                                         [layers.zeros([1], "int64"), total])
            return [i + 1, total]
        _, total = layers.while_loop(lambda i, t: layers.less_than(i, n), row,
                                     [layers.zeros([1], "int64"), layers.zeros([1], "int64")])
    assert run(program, {"n": np.array([6])}, [total])[0] == sum(sum(range(i + 1)) for i in range(6))


def test_a_length_may_grow_in_a_loop():
    program = fluid.Program()
    with fluid.program_guard(program):
        x = fluid.data("x", [2, 3], "float32")
        n = fluid.data("n", [1], "int64")
        i, out = layers.while_loop(lambda i, v: layers.less_than(i, n), lambda i, v: [i + 1, layers.concat([v, x], 0)],
                                   [layers.zeros([1], "int64"), layers.scale(x, 1.0)])
        total = layers.reduce_sum(out)
    value = np.ones((2, 3), "float32")
    got = run(program, {"x": value, "n": np.array([3])}, [out, total])
    assert got[0].shape == (8, 3) and got[1] == 24


def test_parameters_in_a_loop_are_those_of_the_scope():
    program, startup = fluid.Program(), fluid.Program()
    with fluid.program_guard(program, startup):
        x = fluid.data("x", [None, 4], "float32")
        i, h = layers.while_loop(lambda i, h: layers.less_than(i, layers.fill_constant([1], "int64", 3)),
                                 lambda i, h: [i + 1, layers.fc(h, 4, act="tanh", param_attr="w", bias_attr="b")],
                                 [layers.zeros([1], "int64"), x])
    exe = fluid.Executor()
    exe.run(startup)
    w, b = [fluid.global_scope().find_var(name).get_tensor().numpy() for name in "wb"]
    value = want = np.random.RandomState(1).rand(5, 4).astype("float32")
    for _ in range(3):
        want = np.tanh(want @ w + b)
    np.testing.assert_allclose(exe.run(program, {"x": value}, [h])[0], want, rtol=1e-5, atol=1e-6)


def test_no_gradient_goes_through_a_loop():
    with fluid.program_guard(fluid.Program(), fluid.Program()):
        x = fluid.data("x", [None, 4], "float32")
        i, h = layers.while_loop(lambda i, h: layers.less_than(i, layers.fill_constant([1], "int64", 3)),
                                 lambda i, h: [i + 1, layers.fc(h, 4)], [layers.zeros([1], "int64"), x])
        with pytest.raises(NotImplementedError, match="no gradient goes through While.*nearest: StaticRNN"):
            fluid.optimizer.SGD(0.1).minimize(layers.mean(h))
        with pytest.raises(NotImplementedError, match="save_params"):
            fluid.io.save_inference_model("nowhere", ["x"], [h], fluid.Executor())


def test_mistakes_in_loops_are_named():
    with fluid.program_guard(fluid.Program()):
        holds = layers.less_than(layers.zeros([1], "int64"), layers.ones([1], "int64"))
        with pytest.raises(ValueError, match="does not change the condition"):
            with layers.While(holds).block():
                layers.ones([1], "int64")
        with pytest.raises(TypeError, match="variable of bool"):
            layers.While(layers.ones([1], "int64"))
        with pytest.raises(ValueError, match="nothing was written"):
            layers.array_read(layers.create_array("float32"), layers.zeros([1], "int64"))
        with pytest.raises(ValueError, match="gives 1 variables, loop_vars has 2"):
            layers.while_loop(lambda a, b: layers.less_than(a, b), lambda a, b: a,
                              [layers.zeros([1], "int64"), layers.ones([1], "int64")])
    program = fluid.Program()
    with fluid.program_guard(program):
        array = layers.array_write(layers.zeros([1], "int64"), layers.zeros([1], "int64"))
        missing = layers.array_read(array, fluid.data("i", [1], "int64"))
    with pytest.raises(ValueError, match="element 4 of an array of 1 was not written"):
        run(program, {"i": np.array([4])}, [missing])


# ---- beams ----
WORDS, END, BEAMS, STEPS = 12, 1, 3, 9


def decoder():
    """The next word depends on the one before and on the sentence: a bag of words, read as sequences."""
    source = layers.data("source", [1], dtype="int64", lod_level=1)
    context = layers.sequence_pool(layers.embedding(source, [WORDS, WORDS], param_attr="context"), "sum")
    counter, most = layers.zeros([1], "int64"), layers.fill_constant([1], "int64", STEPS)
    init_ids = layers.data("init_ids", [1], dtype="int64", lod_level=2)
    init_scores = layers.data("init_scores", [1], dtype="float32", lod_level=2)
    ids, scores = layers.array_write(init_ids, counter), layers.array_write(init_scores, counter)
    states = layers.array_write(context, counter)
    more = layers.less_than(counter, most)
    with layers.While(more).block():
        pre_ids, pre_scores = layers.array_read(ids, counter), layers.array_read(scores, counter)
        state = layers.array_read(states, counter)
        shares = layers.softmax(layers.embedding(pre_ids, [WORDS, WORDS], param_attr="next") + state)
        best, words = layers.topk(shares, k=BEAMS)
        total = layers.elementwise_add(layers.log(best), layers.reshape(pre_scores, [-1]), axis=0)
        total = layers.lod_reset(total, pre_ids)
        chosen, points = layers.beam_search(pre_ids, pre_scores, words, total, BEAMS, END)
        layers.increment(counter)
        layers.array_write(chosen, counter, ids)
        layers.array_write(points, counter, scores)
        layers.array_write(layers.sequence_expand(state, chosen), counter, states)
        going_on = layers.logical_not(layers.is_empty(chosen))
        layers.logical_and(layers.less_than(counter, most), going_on, out=more)
    return layers.beam_search_decode(ids, scores, BEAMS, END)


def plain_beams(next_words, context, first=0):
    """[(words, score)], the best first."""
    beams = [([first], 0.0)]
    for _ in range(STEPS):
        found = []
        for words, score in beams:
            if words[-1] == END:
                found.append((words, score))
                continue
            weights = next_words[words[-1]] + context
            shares = np.log(np.exp(weights - weights.max()) / np.exp(weights - weights.max()).sum())
            found += [(words + [w], score + shares[w]) for w in np.argsort(-shares)[:BEAMS]]
        found = sorted(found, key=lambda f: -f[1])[:BEAMS]
        if all(words[-1] == END for words, _ in beams) and all(words[-1] == END for words, _ in found):
            break
        beams = found
    return sorted(beams, key=lambda f: -f[1])


@pytest.mark.parametrize("end", [0.0, 2.0])
def test_beams_are_those_of_a_plain_search(end):
    program, startup = fluid.Program(), fluid.Program()
    with fluid.program_guard(program, startup):
        out = decoder()
    exe = fluid.Executor()
    exe.run(startup)
    random = np.random.RandomState(3)
    table = random.randn(WORDS, WORDS).astype("float32") * 2
    table[:, END] += end  # some sentences end early, and then all
    context = random.randn(WORDS, WORDS).astype("float32")
    for name, value in (("next", table), ("context", context)):
        fluid.global_scope().find_var(name).get_tensor().set(value)
    sources = [[2, 3], [4], [5, 6, 7, 8], [9, 2, 2]]
    place = fluid.CPUPlace()
    feed = {"source": fluid.create_lod_tensor(np.concatenate(sources).reshape(-1, 1), [[len(s) for s in sources]], place)}
    ones = [[1] * len(sources)] * 2
    feed["init_ids"] = fluid.create_lod_tensor(np.zeros((len(sources), 1), "int64"), ones, place)
    feed["init_scores"] = fluid.create_lod_tensor(np.zeros((len(sources), 1), "float32"), ones, place)
    ids, scores = exe.run(program, feed=feed, fetch_list=list(out), return_numpy=False)
    sentences, words = ids.lod()
    for i, source in enumerate(sources):
        want = plain_beams(table, context[source].sum(0))
        begin, end = sentences[i:i + 2]
        got = [np.array(ids)[words[k]:words[k + 1]].tolist() for k in range(begin, end)]
        assert got == [w for w, _ in want]
        last = [np.array(scores)[words[k + 1] - 1] for k in range(begin, end)]
        np.testing.assert_allclose(last, [s for _, s in want], rtol=1e-4, atol=1e-4)


def test_beam_search_needs_sentences():
    with fluid.program_guard(fluid.Program()):
        x = fluid.data("x", [None, 1], "int64")
        s = fluid.data("s", [None, 1], "float32")
        with pytest.raises(ValueError, match="which rows belong to a sentence"):
            layers.beam_search(x, s, x, s, 2, 1)


def test_sequence_expand_repeats_sequences():
    program = fluid.Program()
    with fluid.program_guard(program):
        x = layers.data("x", [1], dtype="float32", lod_level=1)
        y = layers.data("y", [1], dtype="float32", lod_level=1)
        out = layers.sequence_expand(x, y)
    place = fluid.CPUPlace()
    feed = {"x": fluid.create_lod_tensor(np.arange(5, dtype="float32").reshape(-1, 1), [[2, 3]], place),
            "y": fluid.create_lod_tensor(np.zeros((3, 1), "float32"), [[1, 2]], place)}
    got, = run(program, feed, [out], return_numpy=False)
    assert np.array(got).ravel().tolist() == [0, 1, 2, 3, 4, 2, 3, 4]
    assert got.recursive_sequence_lengths() == [[2, 3, 3]]


# ---- shapes that depend on values ----
def test_functions_whose_shape_depends_on_values():
    program = fluid.Program()
    with fluid.program_guard(program):
        x = paddle.static.data("x", [None, 3], "float32")
        big = paddle.masked_select(x, x > 1.0)
        total, places = paddle.sum(big), paddle.nonzero(x > 1.0)
        rows, columns = paddle.where(x > 1.0)
        different = paddle.unique(x, return_index=True, return_inverse=True, return_counts=True)
        in_order = layers.unique_with_counts(paddle.reshape(x, [-1]))
        old = layers.where(x > 1.0)
    value = np.array([[3, 1, 2], [0, 3, 1]], "float32")
    got = run(program, {"x": value}, [big, total, places, rows, columns, *different, *in_order, old])
    assert got[0].tolist() == [3, 2, 3] and got[1] == 8
    want = np.argwhere(value > 1)
    assert got[2].tolist() == got[-1].tolist() == want.tolist() == np.hstack([got[3], got[4]]).tolist()
    for mine, numpys in zip(got[5:9], np.unique(value, True, True, True)):
        assert mine.tolist() == numpys.reshape(-1).tolist()
    assert [v.tolist() for v in got[9:12]] == [[3, 1, 2, 0], [0, 1, 2, 3, 0, 1], [2, 2, 1, 1]]
    nothing = run(program, {"x": value - 9}, [big, places, total])
    assert nothing[0].shape == (0,) and nothing[1].shape == (0, 2) and nothing[2] == 0
    with fluid.program_guard(program), pytest.raises(NotImplementedError, match="shape depends on values"):
        fluid.optimizer.SGD(0.1).minimize(total)


def test_sequences_are_carried_with_their_lengths():
    program = fluid.Program()
    with fluid.program_guard(program):
        x = layers.data("x", [1], dtype="float32", lod_level=1)
        n = fluid.data("n", [1], "int64")
        rows, i = layers.scale(x, 1.0), layers.zeros([1], "int64")
        more = layers.less_than(i, n)
        with layers.While(more).block():
            layers.assign(layers.sequence_expand(rows, rows), rows)  # sequence i as often as it has rows
            layers.increment(i)
            layers.less_than(i, n, cond=more)
        sums = layers.sequence_pool(rows, "sum")
    feed = {"x": fluid.create_lod_tensor(np.array([[1], [2], [3]], "float32"), [[1, 2]], fluid.CPUPlace())}
    for times in (0, 1, 2):
        got = run(program, {**feed, "n": np.array([times])}, [rows, sums], return_numpy=False)
        lengths = {0: [1, 2], 1: [1, 2, 2], 2: [1, 2, 2, 2, 2]}[times]
        assert got[0].recursive_sequence_lengths() == [lengths]
        assert np.array(got[1]).ravel().tolist() == [1] + [5] * (len(lengths) - 1)
