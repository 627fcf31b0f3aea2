"""Layers over sequences against NumPy, one sequence at a time."""
import numpy as np
import pytest

import paddle
import paddle.fluid as fluid
from paddle import static

L = fluid.layers
LENGTHS = [3, 1, 4]
ROWS = np.random.RandomState(0).randn(8, 2).astype("float32")
PARTS = np.split(ROWS, [3, 4])
IDS = np.arange(10, 18).reshape(8, 1)


@pytest.fixture
def x():
    return static.data("x", [None, 2], "float32", lod_level=1)


def run(fetch, **more):
    exe = static.Executor()
    exe.run(static.default_startup_program())
    feed = {"x": fluid.create_lod_tensor(ROWS, [LENGTHS]), **more}
    return exe.run(feed=feed, fetch_list=fetch)


def test_softmax():
    one = static.data("x", [None, 1], "float32", lod_level=1)
    out = L.sequence_softmax(one)
    got, pooled = run([out, L.sequence_pool(out, "sum")], x=fluid.create_lod_tensor(ROWS[:, :1], [LENGTHS]))
    wanted = [np.exp(p[:, :1]) / np.exp(p[:, :1]).sum() for p in PARTS]
    np.testing.assert_allclose(got, np.concatenate(wanted), rtol=1e-5)
    np.testing.assert_allclose(pooled, np.ones((3, 1)), rtol=1e-5)


def test_expand_and_reverse(x):
    row = static.data("row", [None, 5], "float32")
    values = np.arange(15, dtype="float32").reshape(3, 5)
    spread, turned = L.sequence_expand_as(row, x), L.sequence_reverse(x)
    again = static.nn.sequence_expand(row, x)
    got = run([spread, turned, again, L.sequence_first_step(turned)], row=values)
    np.testing.assert_array_equal(got[0], values.repeat(LENGTHS, 0))
    np.testing.assert_array_equal(got[1], np.concatenate([p[::-1] for p in PARTS]))
    np.testing.assert_array_equal(got[2], got[0])
    np.testing.assert_array_equal(got[3], [p[-1] for p in PARTS])


@pytest.mark.parametrize("size, start", [(3, None), (4, None), (2, 0)])
def test_conv(x, size, start):
    weight = np.random.RandomState(1).randn(size * 2, 5).astype("float32")
    attr = paddle.ParamAttr(initializer=paddle.nn.initializer.Assign(weight))
    out = L.sequence_conv(x, 5, size, padding_start=start, param_attr=attr, bias_attr=False, act="tanh")
    first = -(size // 2) if start is None else start
    wanted = []
    for part in PARTS:
        for i in range(len(part)):
            near = [part[i + first + k] if 0 <= i + first + k < len(part) else np.zeros(2) for k in range(size)]
            wanted.append(np.tanh(np.concatenate(near) @ weight))
    np.testing.assert_allclose(run([out])[0], wanted, rtol=1e-4, atol=1e-6)


def test_conv_and_pool_learn(x):
    label = static.data("label", [None, 1], "int64")
    hidden = fluid.nets.sequence_conv_pool(x, 8, 3, act="tanh", pool_type="max")
    loss = paddle.mean(L.cross_entropy(L.fc(hidden, 3, act="softmax"), label))
    paddle.optimizer.Adam(0.1).minimize(loss)
    exe = static.Executor()
    exe.run(static.default_startup_program())
    feed = {"x": fluid.create_lod_tensor(ROWS, [LENGTHS]), "label": np.array([[0], [1], [2]])}
    losses = [float(exe.run(feed=feed, fetch_list=[loss])[0]) for _ in range(40)]
    assert losses[-1] < 0.1 * losses[0]


def test_pad(x):
    nine = paddle.assign(np.array([9.0], "float32"))
    padded, lengths = L.sequence_pad(x, nine, maxlen=5)
    longest, _ = static.nn.sequence_pad(x, nine)
    got, again, known = run([padded, longest, lengths])
    for row, part in zip(got, PARTS):
        np.testing.assert_array_equal(row, np.concatenate([part, np.full((5 - len(part), 2), 9)]))
    np.testing.assert_array_equal(again, got[:, :4])
    assert known.tolist() == LENGTHS
    joined = L.sequence_concat([x, x])
    with pytest.raises(NotImplementedError, match="give maxlen; the longest of sequences whose lengths are computed"):
        L.sequence_pad(joined, nine)


def test_unpad_and_slice():
    """Rows of no sequence are behind those of the sequences; what is fetched has none."""
    padded = static.data("p", [None, None, 2], "float32")
    n, begin = static.data("n", [None, 1], "int64"), static.data("begin", [None, 1], "int64")
    cut = L.sequence_unpad(padded, n)
    part = L.sequence_slice(cut, begin, static.data("count", [None, 1], "int64"))
    pools = [L.sequence_pool(cut, kind) for kind in ("sum", "max", "last")]
    others = [L.sequence_reverse(cut), L.sequence_concat([cut, part]), L.sequence_softmax(L.fc(cut, 1, bias_attr=False))]
    values = np.full((3, 5, 2), 7, "float32")
    for row, rows in zip(values, PARTS):
        row[:len(rows)] = rows
    exe = static.Executor()
    exe.run(static.default_startup_program())
    feed = {"p": values, "n": np.array(LENGTHS)[:, None], "begin": np.array([[1], [0], [2]]), "count": np.array([[2], [0], [1]])}
    got = exe.run(feed=feed, fetch_list=[cut, part, *pools, *others], return_numpy=False)
    assert got[0].lod() == [[0, 3, 4, 8]] and got[1].lod() == [[0, 2, 2, 3]]
    got = [g.numpy() for g in got]
    np.testing.assert_array_equal(got[0], ROWS)
    np.testing.assert_array_equal(got[1], ROWS[[1, 2, 6]])
    np.testing.assert_allclose(got[2], [p.sum(0) for p in PARTS], rtol=1e-5)
    np.testing.assert_array_equal(got[3], [p.max(0) for p in PARTS])
    np.testing.assert_array_equal(got[4], [p[-1] for p in PARTS])
    np.testing.assert_array_equal(got[5], np.concatenate([p[::-1] for p in PARTS]))
    np.testing.assert_array_equal(got[6], ROWS[[0, 1, 2, 1, 2, 3, 4, 5, 6, 7, 6]])
    np.testing.assert_allclose([p.sum() for p in np.split(got[7], [3, 4])], 1, rtol=1e-5)
    assert len(exe.run(feed=feed, fetch_list=[cut])[0]) == 8
    for over_rows in (lambda: L.mean(cut), lambda: L.reduce_sum(cut, dim=[0]), lambda: L.batch_norm(cut)):
        with pytest.raises(NotImplementedError, match="behind which stand rows of no sequence"):
            over_rows()
    L.reduce_sum(cut, dim=1)


def test_unpadded_text_learns():
    """The convolution over unpadded words that networks for sentences of 1.8 begin with."""
    words, n = static.data("words", [None, 6], "int64"), static.data("n", [None], "int64")
    label = static.data("label", [None, 1], "int64")
    cut = L.sequence_unpad(fluid.embedding(words, [10, 8]), n)
    loss = L.mean(L.cross_entropy(L.fc(fluid.nets.sequence_conv_pool(cut, 8, 3, act="tanh", pool_type="max"), 2, act="softmax"),
                                  label))
    fluid.optimizer.Adam(0.05).minimize(loss)
    exe, random, losses = static.Executor(), np.random.RandomState(0), []
    exe.run(static.default_startup_program())
    for _ in range(60):
        ids, count = random.randint(0, 10, (32, 6)), random.randint(1, 7, 32)
        there = [int(3 in row[:k]) for row, k in zip(ids, count)]  # behind the end it does not count
        feed = {"words": ids, "n": count, "label": np.array(there)[:, None]}
        losses.append(float(exe.run(feed=feed, fetch_list=[loss])[0]))
    assert np.mean(losses[-5:]) < 0.3 * losses[0]


def test_scatter():
    base = static.data("base", [None, 4], "float32")
    index = static.data("index", [None, 1], "int64", lod_level=1)
    values = static.data("values", [None, 1], "float32", lod_level=1)
    out = L.sequence_scatter(base, index, values)
    feed = {"base": np.ones((3, 4), "float32"), "index": fluid.create_lod_tensor(np.array([[0], [1], [1], [3]]), [[2, 0, 2]]),
            "values": fluid.create_lod_tensor(np.array([[1.], [2], [3], [4]], "float32"), [[2, 0, 2]])}
    got, = static.Executor().run(feed=feed, fetch_list=[out])
    assert got.tolist() == [[2, 3, 1, 1], [1, 1, 1, 1], [1, 4, 1, 5]]


def test_an_empty_sequence_at_the_end(x):
    row = static.data("row", [None, 1], "float32")
    spread = L.sequence_expand_as(row, x)
    exe = static.Executor()
    got, = exe.run(feed={"x": fluid.create_lod_tensor(ROWS[:3], [[0, 3, 0]]), "row": np.array([[1.], [2], [3]], "float32")},
                   fetch_list=[spread])
    assert got.ravel().tolist() == [2, 2, 2]


def test_sequences_of_sequences():
    """Words of sentences of texts: pooled once they are sentences of texts, twice texts."""
    words = static.data("words", [None, 1], "int64", lod_level=2)
    assert words.lod_level == 2
    sentences = L.sequence_pool(L.cast(words, "float32"), "sum")
    texts = L.sequence_pool(sentences, "max")
    feeder = fluid.DataFeeder([words], fluid.CPUPlace())
    feed = feeder.feed([([[1, 2], [3]],), ([[4], [5, 6], [7, 8, 9]],)])
    assert feed["words"].recursive_sequence_lengths() == [[2, 3], [2, 1, 1, 2, 3]]
    got = static.Executor().run(feed=feed, fetch_list=[sentences, texts], return_numpy=False)
    assert got[0].lod() == [[0, 2, 5]] and got[1].lod() == []
    assert np.array(got[0]).ravel().tolist() == [3, 3, 4, 11, 24] and np.array(got[1]).ravel().tolist() == [3, 24]


def test_an_inference_model_keeps_the_lengths_of_what_it_gives(tmp_path, x):
    out = L.sequence_reverse(L.fc(x, 3))
    exe = static.Executor()
    exe.run(static.default_startup_program())
    fluid.io.save_inference_model(str(tmp_path), ["x"], [out], exe)
    program, feeds, fetch = fluid.io.load_inference_model(str(tmp_path), exe)
    got, = exe.run(program, feed={"x": fluid.create_lod_tensor(ROWS, [LENGTHS])}, fetch_list=fetch, return_numpy=False)
    assert feeds == ["x"] and got.lod() == [[0, 3, 4, 8]] and got.shape() == [8, 3]


def test_enumerate():
    ids = static.data("x", [None, 1], "int64", lod_level=1)
    got, = run([L.sequence_enumerate(ids, 2, pad_value=-1)], x=fluid.create_lod_tensor(IDS, [LENGTHS]))
    assert got.tolist() == [[10, 11], [11, 12], [12, -1], [13, -1], [14, 15], [15, 16], [16, 17], [17, -1]]


def test_concat(x):
    y = static.data("y", [None, 2], "float32", lod_level=1)
    other = np.arange(10, dtype="float32").reshape(5, 2)
    out = L.sequence_concat([x, y])
    got, last = run([out, L.sequence_last_step(out)], y=fluid.create_lod_tensor(other, [[1, 2, 2]]))
    wanted = [row for a, b in zip(PARTS, np.split(other, [1, 3])) for row in (*a, *b)]
    np.testing.assert_array_equal(got, wanted)
    np.testing.assert_array_equal(last, other[[0, 2, 4]])


def test_other_sequences_of_the_same_rows(x):
    wide, cut = L.sequence_reshape(x, 1), L.lod_reset(x, target_lod=[0, 4, 8])
    got = run([L.sequence_pool(wide, "sum"), L.sequence_pool(cut, "sum")])
    np.testing.assert_allclose(got[0][:, 0], [p.sum() for p in PARTS], rtol=1e-5)
    np.testing.assert_allclose(got[1], [ROWS[:4].sum(0), ROWS[4:].sum(0)], rtol=1e-5)


def test_rows_without_sequences_are_refused():
    plain = static.data("plain", [None, 2], "float32")
    for layer in (L.sequence_softmax, L.sequence_reverse, lambda v: L.sequence_conv(v, 3), lambda v: L.sequence_pool(v, "sum")):
        with pytest.raises(paddle.InvalidArgumentError, match="'plain' has no sequences; declare the input with lod_level=1"):
            layer(plain)
