"""Functions on variables against NumPy."""
import numpy as np
import pytest

import paddle
import paddle.fluid as fluid
import paddle.nn.functional as F
from paddle import static

A = np.random.RandomState(0).uniform(0.1, 2.0, (3, 4)).astype("float32")
B = np.random.RandomState(1).uniform(0.1, 2.0, (3, 4)).astype("float32")
S = np.random.RandomState(2).randn(3, 4).astype("float32")  # both signs
I = np.random.RandomState(3).randint(-5, 9, (3, 4)).astype("int64")
CUBE = np.random.RandomState(4).randn(2, 3, 4).astype("float32")


def sigmoid(x):
    return 1 / (1 + np.exp(-x))


def softmax(x, axis=-1):
    e = np.exp(x - x.max(axis, keepdims=True))
    return e / e.sum(axis, keepdims=True)


CASES = {
    # arithmetic
    "add": (lambda x, y: paddle.add(x, y), lambda x, y: x + y, A, B),
    "subtract": (lambda x, y: paddle.subtract(x, y), lambda x, y: x - y, A, B),
    "multiply": (lambda x, y: paddle.multiply(x, y), lambda x, y: x * y, A, B),
    "divide": (lambda x, y: paddle.divide(x, y), lambda x, y: x / y, A, B),
    "divide whole numbers": (lambda x: x / 2, lambda x: (x / 2).astype("float32"), I),
    "floor_divide": (lambda x: x // 3, lambda x: x // 3, np.abs(I)),
    "mod": (lambda x: x % 3, lambda x: x % 3, np.abs(I)),
    "pow": (lambda x: x ** 2, lambda x: x ** 2, A),
    "pow of variables": (lambda x, y: paddle.pow(x, y), lambda x, y: x ** y, A, B),
    "number minus": (lambda x: 1 - x, lambda x: 1 - x, A),
    "number over": (lambda x: 2 / x, lambda x: 2 / x, A),
    "number plus whole": (lambda x: 3 + x, lambda x: 3 + x, I),
    "whole times half": (lambda x: x * 0.5, lambda x: (x * 0.5).astype("float32"), I),
    "neg": (lambda x: -x, lambda x: -x, A),
    "mixed types": (lambda x, y: x + y, lambda x, y: x + y.astype("float32"), A, I),
    "broadcast": (lambda x, y: x + y, lambda x, y: x + y, A, B[0]),
    "maximum": (lambda x, y: paddle.maximum(x, y), np.maximum, S, A),
    "minimum": (lambda x, y: paddle.minimum(x, y), np.minimum, S, A),
    "matmul": (lambda x, y: paddle.matmul(x, y, transpose_y=True), lambda x, y: x @ y.T, A, B),
    "operator @": (lambda x, y: x @ paddle.t(y), lambda x, y: x @ y.T, A, B),
    "dot": (lambda x, y: paddle.dot(x, y), lambda x, y: (x * y).sum(-1, keepdims=True), A, B),
    "bmm": (lambda x: paddle.bmm(x, paddle.transpose(x, [0, 2, 1])), lambda x: x @ x.transpose(0, 2, 1), CUBE),
    "addmm": (lambda x, y: paddle.addmm(x, paddle.matmul(x, y, transpose_y=True), y, 0.5, 2.0),
              lambda x, y: 0.5 * x + 2 * (x @ y.T) @ y, A, B),
    "scale": (lambda x: paddle.scale(x, 2.0, 1.0, bias_after_scale=False), lambda x: 2 * (x + 1), A),
    "clip": (lambda x: paddle.clip(x, -0.5, 0.5), lambda x: x.clip(-0.5, 0.5), S),
    "cumsum": (lambda x: paddle.cumsum(x, 1), lambda x: x.cumsum(1), A),
    "cumsum of all": (lambda x: paddle.cumsum(x), lambda x: x.cumsum(), A),
    "add_n": (lambda x, y: paddle.add_n([x, y, x]), lambda x, y: 2 * x + y, A, B),
    # element by element
    "exp": (paddle.exp, np.exp, S), "log": (paddle.log, np.log, A), "sqrt": (paddle.sqrt, np.sqrt, A),
    "rsqrt": (paddle.rsqrt, lambda x: x ** -0.5, A), "square": (paddle.square, np.square, S),
    "abs": (paddle.abs, np.abs, S), "sign": (paddle.sign, np.sign, S), "floor": (paddle.floor, np.floor, S),
    "ceil": (paddle.ceil, np.ceil, S), "sin": (paddle.sin, np.sin, S), "cos": (paddle.cos, np.cos, S),
    "tanh": (paddle.tanh, np.tanh, S), "reciprocal": (paddle.reciprocal, np.reciprocal, A),
    "log2": (paddle.log2, np.log2, A), "log1p": (paddle.log1p, np.log1p, A), "tan": (paddle.tan, np.tan, S),
    # reductions
    "sum": (lambda x: paddle.sum(x), lambda x: x.sum().reshape(1), A),
    "sum of an axis": (lambda x: paddle.sum(x, 1, keepdim=True), lambda x: x.sum(1, keepdims=True), A),
    "sum of two axes": (lambda x: paddle.sum(x, [0, 2]), lambda x: x.sum((0, 2)), CUBE),
    "mean": (lambda x: paddle.mean(x), lambda x: x.mean().reshape(1), A),
    "mean of an axis": (lambda x: paddle.mean(x, -1), lambda x: x.mean(-1), A),
    "max": (lambda x: paddle.max(x, 0), lambda x: x.max(0), S),
    "min": (lambda x: paddle.min(x), lambda x: x.min().reshape(1), S),
    "prod": (lambda x: paddle.prod(x, 1), lambda x: x.prod(1), A),
    "var": (lambda x: paddle.var(x, 1), lambda x: x.var(1, ddof=1), A),
    "std of all": (lambda x: paddle.std(x), lambda x: x.std(ddof=1).reshape(1), A),
    "logsumexp": (lambda x: paddle.logsumexp(x, 1), lambda x: np.log(np.exp(x).sum(1)), S),
    "norm": (lambda x: paddle.norm(x, axis=1), lambda x: np.linalg.norm(x, axis=1), S),
    "norm 1": (lambda x: paddle.norm(x, 1), lambda x: np.abs(x).sum().reshape(1), S),
    "any": (lambda x: paddle.any(x > 0, 1), lambda x: (x > 0).any(1), S),
    "all": (lambda x: paddle.all(x > -9), lambda x: np.array([True]), S),
    # shapes
    "reshape": (lambda x: paddle.reshape(x, [0, 2, -1]), lambda x: x.reshape(3, 2, 2), A),
    "method reshape": (lambda x: x.reshape([-1]), lambda x: x.reshape(-1), A),
    "flatten": (lambda x: paddle.flatten(x, 1), lambda x: x.reshape(2, 12), CUBE),
    "transpose": (lambda x: paddle.transpose(x, [2, 0, 1]), lambda x: x.transpose(2, 0, 1), CUBE),
    "concat": (lambda x, y: paddle.concat([x, y], axis=1), lambda x, y: np.concatenate([x, y], 1), A, B),
    "stack": (lambda x, y: paddle.stack([x, y], 1), lambda x, y: np.stack([x, y], 1), A, B),
    "split": (lambda x: paddle.split(x, 2, axis=1)[1], lambda x: x[:, 2:], A),
    "split in parts": (lambda x: paddle.split(x, [1, -1], axis=1)[1], lambda x: x[:, 1:], A),
    "unstack": (lambda x: paddle.unstack(x, 0)[2], lambda x: x[2], A),
    "squeeze": (lambda x: paddle.squeeze(paddle.unsqueeze(x, [0, 2])), lambda x: x, A),
    "squeeze of an axis": (lambda x: paddle.squeeze(paddle.unsqueeze(x, 1), 1), lambda x: x, A),
    "expand": (lambda x: paddle.expand(x, [2, 3, 4]), lambda x: np.broadcast_to(x, (2, 3, 4)), A),
    "tile": (lambda x: paddle.tile(x, [2, 1]), lambda x: np.tile(x, (2, 1)), A),
    "flip": (lambda x: paddle.flip(x, [0]), lambda x: x[::-1], A),
    "roll": (lambda x: paddle.roll(x, 1, 1), lambda x: np.roll(x, 1, 1), A),
    "tril": (paddle.tril, np.tril, A),
    "slice": (lambda x: x[1:, :2], lambda x: x[1:, :2], A),
    "index": (lambda x: x[1], lambda x: x[1], A),
    "last": (lambda x: x[:, -1], lambda x: x[:, -1], A),
    "ellipsis": (lambda x: x[..., 0], lambda x: x[..., 0], CUBE),
    "new axis": (lambda x: x[:, None], lambda x: x[:, None], A),
    "step": (lambda x: x[:, ::2], lambda x: x[:, ::2], A),
    "list": (lambda x: x[[2, 0]], lambda x: x[[2, 0]], A),
    "gather": (lambda x: paddle.gather(x, paddle.assign(np.array([2, 1]))), lambda x: x[[2, 1]], A),
    "gather_nd": (lambda x: paddle.gather_nd(x, paddle.assign(np.array([[2, 1], [0, 3]]))), lambda x: x[[2, 0], [1, 3]], A),
    "where": (lambda x, y: paddle.where(x > 0, x, y), lambda x, y: np.where(x > 0, x, y), S, B),
    "cast": (lambda x: paddle.cast(x, "int32"), lambda x: x.astype("int32"), A),
    "astype": (lambda x: x.astype("float64"), lambda x: x.astype("float64"), A),
    # comparisons
    "less": (lambda x, y: x < y, lambda x, y: x < y, A, B),
    "equal to a number": (lambda x: x == 3, lambda x: x == 3, I),
    "logical": (lambda x: paddle.logical_and(x > 0, paddle.logical_not(x > 1)), lambda x: (x > 0) & ~(x > 1), S),
    "isfinite": (lambda x: paddle.isfinite(paddle.log(x)), lambda x: x > 0, np.array([[0.0, 1.0]], "float32")),
    # order
    "argmax": (lambda x: paddle.argmax(x, 1), lambda x: x.argmax(1), S),
    "argmax of all": (lambda x: paddle.argmax(x), lambda x: x.argmax().reshape(1), S),
    "topk values": (lambda x: paddle.topk(x, 2)[0], lambda x: -np.sort(-x, 1)[:, :2], S),
    "topk places": (lambda x: paddle.topk(x, 2)[1], lambda x: np.argsort(-x, 1)[:, :2], S),
    "sort": (lambda x: paddle.sort(x, 1), lambda x: np.sort(x, 1), S),
    "argsort": (lambda x: paddle.argsort(x, 1, descending=True), lambda x: np.argsort(-x, 1), S),
    # creation
    "full": (lambda x: x + paddle.full([1], 2.5), lambda x: x + 2.5, A),
    "full of the batch": (lambda x: paddle.full([paddle.shape(x)[0], 2], 1.0), lambda x: np.ones((3, 2), "float32"), A),
    "shape": (lambda x: paddle.shape(x), lambda x: np.array([3, 4], "int32"), A),
    "ones_like": (lambda x: paddle.ones_like(x), np.ones_like, A),
    "arange": (lambda x: x * paddle.arange(4, dtype="float32"), lambda x: x * np.arange(4, dtype="float32"), A),
    "eye": (lambda x: paddle.matmul(x, paddle.eye(4)), lambda x: x, A),
    "assign an array": (lambda x: x + paddle.assign(B), lambda x: x + B, A),
    "numel": (lambda x: paddle.numel(x), lambda x: np.array([12]), A),
    # activations
    "relu": (F.relu, lambda x: np.maximum(x, 0), S), "sigmoid": (F.sigmoid, sigmoid, S),
    "relu6": (lambda x: F.relu6(x * 5), lambda x: (x * 5).clip(0, 6), S),
    "leaky_relu": (F.leaky_relu, lambda x: np.where(x > 0, x, 0.01 * x), S),
    "elu": (F.elu, lambda x: np.where(x > 0, x, np.exp(x) - 1), S),
    "selu": (F.selu, lambda x: 1.0507009873554805 * np.where(x > 0, x, 1.6732632423543772 * (np.exp(x) - 1)), S),
    "softplus": (F.softplus, lambda x: np.log1p(np.exp(x)), S), "swish": (F.swish, lambda x: x * sigmoid(x), S),
    "softsign": (F.softsign, lambda x: x / (1 + np.abs(x)), S), "softmax": (F.softmax, softmax, S),
    "softmax of an axis": (lambda x: F.softmax(x, 0), lambda x: softmax(x, 0), S),
    "log_softmax": (F.log_softmax, lambda x: np.log(softmax(x)), S),
    "log_sigmoid": (F.log_sigmoid, lambda x: np.log(sigmoid(x)), S),
    "hardsigmoid": (F.hardsigmoid, lambda x: (x / 6 + 0.5).clip(0, 1), S),
    "hardswish": (F.hardswish, lambda x: x * (x + 3).clip(0, 6) / 6, S),
    "mish": (F.mish, lambda x: x * np.tanh(np.log1p(np.exp(x))), S),
    "hardshrink": (F.hardshrink, lambda x: np.where(np.abs(x) > 0.5, x, 0), S),
    "softshrink": (F.softshrink, lambda x: np.sign(x) * np.maximum(np.abs(x) - 0.5, 0), S),
    "maxout": (lambda x: F.maxout(x, 2, 1), lambda x: x.reshape(3, 2, 2).max(2), S),
    "pad": (lambda x: F.pad(x, [1, 2], data_format="NCL"), lambda x: np.pad(x, ((0, 0), (0, 0), (1, 2))), CUBE),
    "one_hot": (lambda x: F.one_hot(x, 9), lambda x: np.eye(9, dtype="float32")[x], np.abs(I)),
    "label_smooth": (lambda x: F.label_smooth(x, epsilon=0.1), lambda x: 0.9 * x + 0.1 / 4, A),
    "normalize": (lambda x: F.normalize(x), lambda x: x / np.linalg.norm(x, axis=1, keepdims=True), S),
    "cosine_similarity": (lambda x, y: F.cosine_similarity(x, y),
                          lambda x, y: (x * y).sum(1) / np.linalg.norm(x, axis=1) / np.linalg.norm(y, axis=1), S, B),
    "layer_norm": (lambda x: F.layer_norm(x, [4]),
                   lambda x: (x - x.mean(1, keepdims=True)) / np.sqrt(x.var(1, keepdims=True) + 1e-5), S),
    "sequence_mask": (lambda x: F.sequence_mask(x, 3), lambda x: (np.arange(3) < x[:, None]).astype("int64"),
                      np.array([1, 3, 0])),
}


@pytest.mark.parametrize("name", CASES)
@pytest.mark.parametrize("unknown_batch", [False, True], ids=["known", "batch"])
def test_against_numpy(name, unknown_batch, run):
    function, reference, *arrays = CASES[name]
    if unknown_batch and name in ("eye", "roll", "unstack", "expand", "broadcast", "tril", "assign an array"):
        pytest.skip("needs known lengths")
    variables = [static.data(f"in{i}", [None if unknown_batch else a.shape[0], *a.shape[1:]], a.dtype)
                 for i, a in enumerate(arrays)]
    out = function(*variables)
    got, = run({f"in{i}": a for i, a in enumerate(arrays)}, [out])
    want = np.asarray(reference(*arrays))
    assert got.shape == want.shape
    if want.dtype != np.float64 or str(out.dtype) == "float64":
        assert got.dtype == want.dtype, (got.dtype, want.dtype)
    np.testing.assert_allclose(got, want, rtol=2e-5, atol=2e-6)
    assert len(out.shape) == got.ndim and all(d in (-1, g) for d, g in zip(out.shape, got.shape))


def test_gradients_of_a_composition(run):
    x = static.data("x", [3, 4], "float32")
    x.stop_gradient = False
    y = paddle.sum(paddle.exp(x) * x)
    g, = static.gradients(y, x)
    got, = run({"x": S}, [g])
    np.testing.assert_allclose(got, np.exp(S) * (1 + S), rtol=1e-5)


def test_random_values_differ_from_step_to_step_and_not_from_run_to_run():
    x = paddle.uniform([1000], min=-2.0, max=3.0)
    y = paddle.randn([1000])
    exe = static.Executor()
    exe.run(static.default_startup_program())
    first = exe.run(fetch_list=[x, y])
    assert -2 <= first[0].min() < -1.9 and 2.9 < first[0].max() <= 3
    assert abs(first[1].mean()) < 0.15 and abs(first[1].std() - 1) < 0.1


def test_triangles_of_infinite_values(run):
    mask = paddle.triu(paddle.full([2, 3, 3], float("-inf")), 1)
    np.testing.assert_array_equal(run({}, [mask])[0], np.triu(np.full((3, 3), -np.inf), 1)[None].repeat(2, 0))


def test_where_broadcasts_all_three(run, rng):
    x = static.data("x", [None, 3], "float32")
    row = static.data("row", [3], "float32")
    array, limits = rng.randn(4, 3).astype("float32"), np.array([-1, 0, 1], "float32")
    for condition, wanted in ((row > 0, limits > 0), (paddle.mean(x) > 100, np.array(False)), (x > row, array > limits)):
        got, = run({"x": array, "row": limits}, [paddle.where(condition, x, row)])
        np.testing.assert_array_equal(got, np.where(wanted, array, limits))


def test_multiplex_of_any_batch(run, rng):
    a, b = [static.data(n, [None, 2], "float32") for n in "ab"]
    out = paddle.multiplex([a, b], static.data("i", [None, 1], "int32"))
    values = rng.randn(2, 3, 2).astype("float32")
    got, = run({"a": values[0], "b": values[1], "i": np.array([[1], [0], [1]], "int32")}, [out])
    np.testing.assert_array_equal(got, [values[1, 0], values[0, 1], values[1, 2]])


def test_transposed_and_absolute_values(run):
    x = static.data("x", [2, 3], "float32")
    array = np.array([[1, -2, 3], [-4, 5, -6]], "float32")
    for got, wanted in zip(run({"x": array}, [x.T, abs(x)]), (array.T, abs(array))):
        np.testing.assert_array_equal(got, wanted)


LEFT, RIGHT = np.random.RandomState(3).randn(2, 4, 3).astype("float32")
T = np.random.RandomState(4).randn(2, 3, 4, 5).astype("float32")
PICKED = np.array([[0, 2], [1, 1], [2, 0], [0, 0]])


@pytest.mark.parametrize("ours, wanted", [
    (lambda a, b: paddle.diag(a[0]), lambda a, b: np.diag(a[0])),
    (lambda a, b: paddle.diag(a[0], 2), lambda a, b: np.diag(a[0], 2)),
    (lambda a, b: paddle.diag(a[0], -1, 7.0), lambda a, b: np.where(np.eye(4, k=-1) > 0, np.diag(a[0], -1), 7)),
    (lambda a, b: paddle.diag(a, -1), lambda a, b: np.diag(a, -1)),
    (lambda a, b: paddle.trace(a, 1), lambda a, b: np.trace(a, 1).reshape(1)),
    (lambda a, b: paddle.kron(a, b), lambda a, b: np.kron(a, b)),
    (lambda a, b: paddle.cross(a, b, 1), lambda a, b: np.cross(a, b)),
    (lambda a, b: paddle.meshgrid(a[0], b[:, 0])[1], lambda a, b: np.meshgrid(a[0], b[:, 0], indexing="ij")[1]),
    (lambda a, b: paddle.tensordot(a, b, [[0], [0]]), lambda a, b: np.tensordot(a, b, [[0], [0]])),
    (lambda a, b: paddle.tensordot(a, b, 2), lambda a, b: np.tensordot(a, b, 2).reshape(1)),
    (lambda a, b: paddle.einsum("ij,kj->ki", a, b), lambda a, b: np.einsum("ij,kj->ki", a, b)),
    (lambda a, b: paddle.einsum("ij,ij", a, b), lambda a, b: np.einsum("ij,ij", a, b).reshape(1)),
    (lambda a, b: paddle.einsum("ij,kj,i->k", a, b, a[:, 0]), lambda a, b: np.einsum("ij,kj,i->k", a, b, a[:, 0])),
    (lambda a, b: paddle.moveaxis(a, 0, 1), lambda a, b: np.moveaxis(a, 0, 1)),
    (lambda a, b: paddle.index_sample(a, paddle.assign(PICKED)), lambda a, b: np.take_along_axis(a, PICKED, 1)),
    (lambda a, b: paddle.repeat_interleave(a, 2, 0), lambda a, b: np.repeat(a, 2, 0)),
    (lambda a, b: paddle.repeat_interleave(a, 3), lambda a, b: np.repeat(a, 3)),
    (lambda a, b: paddle.crop(a, [2, -1], [1, 1]), lambda a, b: a[1:3, 1:]),
    (lambda a, b: paddle.lerp(a, b, 0.25), lambda a, b: a + 0.25 * (b - a)),
    (lambda a, b: paddle.scatter_nd_add(a, paddle.assign(np.array([[1], [1]])), b[:2]),
     lambda a, b: a + np.array([[0] * 3, b[0] + b[1], [0] * 3, [0] * 3])),
    (lambda a, b: paddle.atan(a) + paddle.trunc(b), lambda a, b: np.arctan(a) + np.trunc(b)),
    (lambda a, b: paddle.nn.PairwiseDistance(1.0)(a, b), lambda a, b: np.abs(a - b + 1e-6).sum(1)),
])
def test_rearranged_and_multiplied(run, ours, wanted):
    out = ours(static.data("a", [4, 3], "float32"), static.data("b", [4, 3], "float32"))
    np.testing.assert_allclose(run({"a": LEFT, "b": RIGHT}, [out])[0], wanted(LEFT, RIGHT), rtol=1e-5, atol=1e-6)


def test_einsum_with_an_unknown_batch(run):
    x, w = static.data("x", [None, 3, 4, 5], "float32"), static.data("w", [3, 6], "float32")
    weights = np.ones((3, 6), "float32")
    for equation in ("nchw,cd->nhwd", "nchw,cd->ndhw"):
        got, = run({"x": T, "w": weights}, [paddle.einsum(equation, x, w)])
        np.testing.assert_allclose(got, np.einsum(equation, T, weights), rtol=1e-5)
    for wrong, error in (("ij,jk->ik", ValueError), ("nnhw,cd->d", NotImplementedError)):
        with pytest.raises(error, match="einsum"):
            paddle.einsum(wrong, x, w)


def test_bilinear_interpolation(run):
    x = static.data("x", [None, 1, 2, 2], "float32")
    image = np.array([[[[0, 1], [2, 3]]]], "float32")
    corners = F.interpolate(x, size=[3, 3], mode="bilinear", align_corners=True)
    halves = fluid.layers.resize_bilinear(x, [2, 4], align_corners=False, align_mode=0)
    got = run({"x": image}, [corners, halves])
    np.testing.assert_allclose(got[0][0, 0], [[0, .5, 1], [1, 1.5, 2], [2, 2.5, 3]])
    np.testing.assert_allclose(got[1][0, 0], [[0, .25, .75, 1], [2, 2.25, 2.75, 3]])


def test_values_are_assigned_to_what_was_computed(run):
    x = static.data("x", [None, 2], "float32")
    total = paddle.zeros_like(x)
    before = total + 0
    for factor in (1, 10):
        paddle.assign(total + x * factor, total)
    fluid.layers.assign(np.array([4.0], "float32"), limit := paddle.full([1], 1.0))
    got = run({"x": np.ones((1, 2), "float32")}, [before, total, limit])
    assert [v.ravel()[0] for v in got] == [0, 11, 4]


def test_triangles_of_unknown_size():
    x = static.data("x", [None, None, None])
    outs = [paddle.tril(x, -1), paddle.triu(x, 1), paddle.triu(x)]
    value = np.arange(24, dtype="float32").reshape(2, 3, 4)
    got = static.Executor().run(feed={"x": value}, fetch_list=outs)
    for mine, want in zip(got, (np.tril(value, -1), np.triu(value, 1), np.triu(value))):
        np.testing.assert_array_equal(mine, want)


@pytest.mark.parametrize("options", [(3, 1, 0, 1), ([2, 3], 2, [1, 2], 1), (2, 1, [1, 0, 2, 1], 2)])
def test_unfold_gives_what_a_convolution_sees(options):
    kernel, stride, padding, dilation = options
    x = static.data("x", [None, 2, 7, 8])
    value = np.random.RandomState(0).rand(3, 2, 7, 8).astype("float32")
    got, = static.Executor().run(feed={"x": value}, fetch_list=[paddle.nn.functional.unfold(x, kernel, stride, padding, dilation)])
    kh, kw = (kernel, kernel) if isinstance(kernel, int) else kernel
    top, left, bottom, right = padding if isinstance(padding, list) and len(padding) == 4 else \
        (padding * 2 if isinstance(padding, list) else [padding] * 4)
    padded = np.pad(value, ((0, 0), (0, 0), (top, bottom), (left, right)))
    rows = range(0, padded.shape[2] - dilation * (kh - 1), stride)
    columns = range(0, padded.shape[3] - dilation * (kw - 1), stride)
    want = np.stack([padded[:, :, r:r + dilation * kh:dilation, c:c + dilation * kw:dilation].reshape(3, -1)
                     for r in rows for c in columns], 2)
    np.testing.assert_array_equal(got, want)


def test_a_length_plus_nothing_is_that_length():
    x = static.data("x", [None, None])
    out = paddle.arange(0, paddle.shape(x)[-1] + 0)
    assert static.Executor().run(feed={"x": np.ones((2, 5), "float32")}, fetch_list=[out])[0].tolist() == [0, 1, 2, 3, 4]
