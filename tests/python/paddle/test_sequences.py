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
    padded, lengths = L.sequence_pad(x, paddle.assign(np.array([9.0], "float32")), maxlen=4)
    got, known = run([padded, lengths])
    for row, part in zip(got, PARTS):
        np.testing.assert_array_equal(row, np.concatenate([part, np.full((4 - len(part), 2), 9)]))
    assert known.tolist() == LENGTHS
    with pytest.raises(NotImplementedError, match="give maxlen"):
        L.sequence_pad(x, paddle.assign(np.array([0.0], "float32")))


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
