"""Convolution, pooling and batch norm on volumes [N, C, D, H, W], against plain loops."""
import itertools

import numpy as np
import pytest

import paddle
import paddle.fluid as fluid
import paddle.nn.functional as F
from paddle import static


def padded(x, around, value=0.0):
    return np.pad(x, [(0, 0), (0, 0)] + [(around[2 * i], around[2 * i + 1]) for i in range(3)], constant_values=value)


def convolved(x, w, stride, around, dilation, groups):
    x = padded(x, around)
    sizes = [(n - (k - 1) * d - 1) // s + 1 for n, k, s, d in zip(x.shape[2:], w.shape[2:], stride, dilation)]
    out = np.zeros([len(x), len(w), *sizes])
    inner, outer = w.shape[1], len(w) // groups
    for o, at in itertools.product(range(len(w)), itertools.product(*map(range, sizes))):
        group = o // outer
        window = x[(slice(None), slice(group * inner, (group + 1) * inner), *(
            slice(p * s, p * s + (k - 1) * d + 1, d) for p, s, k, d in zip(at, stride, w.shape[2:], dilation)))]
        out[(slice(None), o, *at)] = (window * w[o]).sum((1, 2, 3, 4))
    return out


@pytest.mark.parametrize("stride, padding, around, dilation, groups", [
    (1, 0, [0] * 6, 1, 1), (2, 1, [1] * 6, 1, 2), ([1, 2, 1], [1, 0, 2], [1, 1, 0, 0, 2, 2], [2, 1, 1], 1),
    (1, [1, 0, 0, 2, 1, 1], [1, 0, 0, 2, 1, 1], 1, 1), (1, "SAME", [1, 1, 0, 1, 1, 1], 1, 1),
    (1, [[0, 0], [0, 0], [1, 1], [0, 1], [2, 0]], [1, 1, 0, 1, 2, 0], 1, 1)])
def test_conv3d(stride, padding, around, dilation, groups, run, rng):
    x, w = rng.randn(2, 4, 5, 6, 7).astype("float32"), rng.randn(6, 4 // groups, 3, 2, 3).astype("float32")
    b = rng.randn(6).astype("float32")
    vx, vw, vb = static.data("x", [None, 4, 5, 6, 7]), static.data("w", list(w.shape)), static.data("b", [6])
    last = static.data("last", [None, 5, 6, 7, 4])
    pairs = isinstance(padding, list) and isinstance(padding[0], list)
    behind = [padding[0], *padding[2:], padding[1]] if pairs else padding
    got, got_last = run({"x": x, "w": w, "b": b, "last": x.transpose(0, 2, 3, 4, 1)}, [
        F.conv3d(vx, vw, vb, stride, padding, dilation, groups),
        F.conv3d(last, vw, vb, stride, behind, dilation, groups, "NDHWC")])
    three = lambda v: [v] * 3 if isinstance(v, int) else v  # noqa: E731
    want = convolved(x, w, three(stride), around, three(dilation), groups) + b.reshape(6, 1, 1, 1)
    np.testing.assert_allclose(got, want, rtol=1e-4, atol=1e-4)
    np.testing.assert_allclose(got_last, want.transpose(0, 2, 3, 4, 1), rtol=1e-4, atol=1e-4)


def test_gradients_of_conv3d(run, rng):
    x, w = rng.randn(1, 2, 3, 4, 3), rng.randn(3, 2, 2, 3, 2)
    vx, vw = static.data("x", [None, 2, 3, 4, 3]), static.data("w", [3, 2, 2, 3, 2])
    vx.stop_gradient = vw.stop_gradient = False
    dx, dw = static.gradients([paddle.sum(F.conv3d(vx, vw, None, [1, 2, 1], 1) ** 2)], [vx, vw])
    got = run({"x": x.astype("float32"), "w": w.astype("float32")}, [dx, dw])

    def loss():
        return (convolved(x, w, [1, 2, 1], [1] * 6, [1] * 3, 1) ** 2).sum()

    for array, gradient in ((x, got[0]), (w, got[1])):
        for at in zip(*(rng.randint(0, n, 6) for n in array.shape)):
            old, values = array[at], []
            for step in (1e-5, -1e-5):
                array[at] = old + step
                values.append(loss())
            array[at] = old
            assert gradient[at] == pytest.approx((values[0] - values[1]) / 2e-5, rel=1e-3, abs=1e-3)


@pytest.mark.parametrize("kind, exclusive, padding", [("max", True, 0), ("max", True, 1), ("avg", True, 1), ("avg", False, 1)])
def test_pooling(kind, exclusive, padding, run, rng):
    x = rng.randn(2, 3, 5, 6, 7).astype("float32")
    got, = run({"x": x}, [fluid.layers.pool3d(static.data("x", [None, 3, 5, 6, 7]), 3, kind, 2, padding, exclusive=exclusive)])
    around, valid = padded(x, [padding] * 6, -np.inf if kind == "max" else 0.0), padded(np.ones_like(x), [padding] * 6)
    sizes = [(n - 3) // 2 + 1 for n in around.shape[2:]]
    want = np.zeros([2, 3, *sizes])
    for at in itertools.product(*map(range, sizes)):
        window = (slice(None), slice(None), *(slice(2 * p, 2 * p + 3) for p in at))
        values = around[window].reshape(2, 3, -1)
        want[(slice(None), slice(None), *at)] = values.max(2) if kind == "max" else \
            values.sum(2) / (valid[window].reshape(2, 3, -1).sum(2) if exclusive else 27)
    np.testing.assert_allclose(got, want, rtol=1e-5, atol=1e-5)


def test_layers_of_volumes(run, rng):
    x = rng.randn(2, 3, 4, 6, 6).astype("float32")
    v = static.data("x", [None, 3, 4, 6, 6])
    h = paddle.nn.BatchNorm3D(5)(paddle.nn.Conv3D(3, 5, 3, padding=1)(v))
    h = paddle.nn.AvgPool3D(2)(paddle.nn.MaxPool3D([1, 2, 2])(h))
    one = paddle.nn.AdaptiveAvgPool3D([1, 1, None])(v)
    most = paddle.nn.AdaptiveMaxPool3D(2)(v)
    whole = fluid.layers.pool3d(v, pool_type="avg", global_pooling=True)
    normed = fluid.layers.batch_norm(fluid.layers.conv3d(v, 4, [3, 3, 3], act="elu"))
    got = run({"x": x}, [h, one, most, whole, normed])
    assert got[0].shape == (2, 5, 2, 1, 1)
    np.testing.assert_allclose(got[1], x.mean((2, 3), keepdims=True), rtol=1e-4, atol=1e-5)
    np.testing.assert_allclose(got[2], x.reshape(2, 3, 2, 2, 2, 3, 2, 3).max((3, 5, 7)))
    np.testing.assert_allclose(got[3], x.mean((2, 3, 4), keepdims=True), rtol=1e-4, atol=1e-5)
    np.testing.assert_allclose(got[4].mean((0, 2, 3, 4)), 0, atol=1e-5)


def test_bad_volumes():
    v = static.data("x", [None, 3, None, 6, 6])
    with pytest.raises(ValueError, match="'x' of shape .* only N unknown"):
        F.max_pool3d(v, 2)
    small = static.data("small", [None, 3, 2, 6, 6])
    with pytest.raises(ValueError, match="depth 3 does not fit in 'small'"):
        fluid.layers.conv3d(small, 4, 3)
    with pytest.raises(ValueError, match="NCDHW.*NCHW"):
        F.conv3d(small, static.data("w", [4, 3, 1, 1, 1]), data_format="NCHW")
