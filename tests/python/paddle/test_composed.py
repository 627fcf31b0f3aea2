"""Layers of 1.x that are made of others, float64, and the arguments of 1.x."""
import inspect

import numpy as np
import pytest

import paddle
import paddle.fluid as fluid
from paddle import static

L = fluid.layers
# Leading arguments of 1.8 that scripts give by name or place.
SIGNATURES = """zeros_like(x out) ones_like(x out) gather_nd(input index name) strided_slice(input axes starts ends strides)
    expand_as(x target_tensor name) scatter_nd_add(ref index updates name) relu6(x threshold name) maxout(x groups name axis)
    softplus(x name) softshrink(x alpha) triu(input diagonal name) tril(input diagonal name) size(input)
    less_than(x y force_cpu cond) equal(x y cond) increment(x value in_place) eye(num_rows num_columns batch_shape dtype)
    assign(input output) transpose(x perm name) stack(x axis) slice(input axes starts ends) shape(input) scatter(input index
    updates name overwrite) elu(x alpha name) cumsum(x axis exclusive reverse) embedding(input size is_sparse is_distributed
    padding_idx param_attr dtype) fc(input size num_flatten_dims param_attr bias_attr act name) conv2d(input num_filters
    filter_size stride padding dilation groups param_attr bias_attr use_cudnn act name data_format) pool2d(input pool_size
    pool_type pool_stride pool_padding global_pooling use_cudnn ceil_mode name exclusive) batch_norm(input act is_test momentum
    epsilon param_attr bias_attr data_layout in_place name moving_mean_name moving_variance_name) layer_norm(input scale shift
    begin_norm_axis epsilon param_attr bias_attr act name) dropout(x dropout_prob is_test seed name dropout_implementation)
    softmax(input use_cudnn name axis) softmax_with_cross_entropy(logits label soft_label ignore_index numeric_stable_mode
    return_softmax axis) matmul(x y transpose_x transpose_y alpha name) reshape(x shape actual_shape act inplace name)
    split(input num_or_sections dim name) pad2d(input paddings mode pad_value) topk(input k name) concat(input axis name)
    fill_constant(shape dtype value force_cpu out) create_global_var(shape value dtype persistable force_cpu name) data(name
    shape append_batch_size dtype lod_level type stop_gradient) accuracy(input label k correct total) auc(input label curve
    num_thresholds topk slide_steps) sequence_pool(input pool_type is_test pad_value) hsigmoid(input label num_classes
    param_attr bias_attr name) lstm_unit(x_t hidden_t_prev cell_t_prev forget_bias param_attr bias_attr name) lrn(input n k alpha
    beta name) bilinear_tensor_product(x y size act name param_attr bias_attr) crop(x shape offsets name)"""


def test_arguments_of_1x():
    for text in SIGNATURES.split(")"):
        if text.strip():
            name, arguments = text.split("(")
            wanted = arguments.split()
            have = list(inspect.signature(getattr(L, name.strip())).parameters)
            assert have[:len(wanted)] == wanted, name


def test_comparisons_write_cond(run):
    x, y = static.data("x", [2]), static.data("y", [2])
    cond = L.fill_constant([2], "bool", 0)
    L.less_than(x, y, cond=cond)
    assert run({"x": np.array([1, 2], "float32"), "y": np.array([2, 1], "float32")}, [cond])[0].tolist() == [True, False]


A = np.random.RandomState(3).randn(4, 5).astype("float32")
IDS = np.array([[1], [0], [4], [2]])


def test_bpr_loss(run):
    got, = run({"x": A, "y": IDS}, [L.bpr_loss(static.data("x", [None, 5]), static.data("y", [None, 1], "int64"))])
    want = [-np.mean([-np.log1p(np.exp(-(row[i] - v))) for j, v in enumerate(row) if j != i]) for row, (i,) in zip(A, IDS)]
    np.testing.assert_allclose(got.ravel(), want, rtol=1e-5)


def test_npair_loss(run):
    a, p, y = static.data("a", [None, 5]), static.data("p", [None, 5]), static.data("y", [None])
    labels = np.array([0, 1, 0, 2], "float32")
    got, = run({"a": A, "p": A[::-1].copy(), "y": labels}, [L.npair_loss(a, p, y, 0.01)])
    share = (labels[:, None] == labels).astype("float64")
    share /= share.sum(1, keepdims=True)
    scores = A @ A[::-1].T
    losses = -(share * (scores - np.log(np.exp(scores).sum(1, keepdims=True)))).sum(1, keepdims=True)
    want = 0.25 * 0.01 * 2 * (A * A).sum(1).mean() + (share * losses).sum(0).mean()
    np.testing.assert_allclose(got, [want], rtol=1e-4)


def test_hsigmoid_is_a_distribution_over_the_classes_and_learns():
    x, y = static.data("x", [None, 5]), static.data("y", [None, 1], "int64")
    loss = L.hsigmoid(x, y, 6, param_attr=paddle.ParamAttr("w", fluid.initializer.Normal(0.0, 0.5)), bias_attr="b")
    mean = L.mean(loss)
    test = static.default_main_program().clone(for_test=True)
    fluid.optimizer.Adam(0.1).minimize(mean)
    exe = static.Executor()
    exe.run(static.default_startup_program())
    every = exe.run(test, feed={"x": np.repeat(A[:1], 6, 0), "y": np.arange(6)[:, None]}, fetch_list=[loss])[0]
    np.testing.assert_allclose(np.exp(-every).sum(), 1.0, rtol=1e-5)
    losses = [float(exe.run(feed={"x": A, "y": IDS}, fetch_list=[mean])[0]) for _ in range(30)]
    assert losses[-1] < 0.2 * losses[0]
    with pytest.raises(NotImplementedError, match="trees"):
        L.hsigmoid(x, y, 6, is_custom=True)


def test_mean_iou(run):
    p, y = static.data("p", [None], "int64"), static.data("y", [None], "int64")
    got = run({"p": np.array([0, 1, 1, 2]), "y": np.array([0, 1, 2, 2])}, list(L.mean_iou(p, y, 4)))
    np.testing.assert_allclose(got[0], [(1 + 0.5 + 0.5) / 3], rtol=1e-6)
    assert got[1].tolist() == [0, 1, 1, 0] and got[2].tolist() == [1, 1, 1, 0]


def test_layers(run):
    x, y = static.data("x", [None, 4, 6]), static.data("y", [2, 3])
    outs = [L.add_position_encoding(x, 2.0, 3.0), L.pad_constant_like(static.data("z", [3, 5]), y, 7.0),
            L.crop(y, [1, 2], [1, 1])]
    a, b = np.ones((2, 4, 6), "float32"), np.arange(6, dtype="float32").reshape(2, 3)
    got = run({"x": a, "y": b}, outs)
    place = np.arange(4)[:, None] / 10000 ** (np.arange(3) / 2)
    np.testing.assert_allclose(got[0][1], 2 + 3 * np.concatenate([np.sin(place), np.cos(place)], 1), rtol=1e-5)
    np.testing.assert_array_equal(got[1], np.pad(b, ((0, 1), (0, 2)), constant_values=7))
    np.testing.assert_array_equal(got[2], b[1:, 1:])


def test_lstm_unit(run):
    x, h, c = (static.data(n, [None, 3]) for n in "xhc")
    outs = L.lstm_unit(x, h, c, forget_bias=1.0, param_attr="w", bias_attr="b")
    v = [np.random.RandomState(i).randn(2, 3).astype("float32") for i in range(3)]
    got_h, got_c, w, b = run(dict(zip("xhc", v)), [*outs, "w", "b"])
    sigmoid = lambda z: 1 / (1 + np.exp(-z))  # noqa: E731
    i, f, o, g = np.split(np.concatenate(v[:2], 1) @ w + b, 4, 1)
    cell = sigmoid(f + 1) * v[2] + sigmoid(i) * np.tanh(g)
    np.testing.assert_allclose(got_c, cell, rtol=1e-4, atol=1e-6)
    np.testing.assert_allclose(got_h, sigmoid(o) * np.tanh(cell), rtol=1e-4, atol=1e-6)


def test_pictures(run):
    x, y = static.data("x", [None, 3, 4, 4]), static.data("y", [None, 2, 4, 4])
    a, b = np.random.RandomState(0).randn(2, 3, 4, 4).astype("float32"), np.ones((2, 2, 4, 4), "float32")
    fsp, norm = run({"x": a, "y": b}, [L.fsp_matrix(x, y), L.lrn(x, n=3, k=2.0, alpha=0.1, beta=0.5)])
    np.testing.assert_allclose(fsp, np.einsum("nchw,ndhw->ncd", a, b) / 16, rtol=1e-4, atol=1e-5)
    square = np.pad(a * a, ((0, 0), (1, 1), (0, 0), (0, 0)))
    np.testing.assert_allclose(norm, a / np.sqrt(2 + 0.1 * (square[:, :-2] + square[:, 1:-1] + square[:, 2:])), rtol=1e-4)


def test_bilinear_tensor_product(run):
    x, y = static.data("x", [None, 4]), static.data("y", [None, 5])
    out = L.bilinear_tensor_product(x, y, size=3, param_attr="w", bias_attr="b")
    a, b = A[:, :4].copy(), A
    got, w, bias = run({"x": a, "y": b}, [out, "w", "b"])
    np.testing.assert_allclose(got, np.einsum("ni,kij,nj->nk", a, w, b) + bias, rtol=1e-4, atol=1e-5)


def test_data_norm():
    x = static.data("x", [None, 2])
    out = L.data_norm(x, name="dn", param_attr={"batch_size": 2.0, "batch_sum": 2.0, "batch_square": 8.0})
    test = static.default_main_program().clone(for_test=True)
    exe = static.Executor()
    exe.run(static.default_startup_program())
    a = np.array([[3., 1], [5, 1]], "float32")
    for program in (test, static.default_main_program()):
        np.testing.assert_allclose(exe.run(program, feed={"x": a}, fetch_list=[out])[0], (a - 1) * 0.5, rtol=1e-5)
    value = lambda n: static.global_scope().find_var("dn." + n).get_tensor().numpy()  # noqa: E731
    np.testing.assert_allclose(value("batch_size"), [4, 4], rtol=1e-5)
    np.testing.assert_allclose(value("batch_sum"), [10, 4], rtol=1e-5)
    np.testing.assert_allclose(value("batch_square"), [28, 8], rtol=1e-3)


def test_float64_layers():
    x, y = static.data("x", [None, 4], "float64"), static.data("y", [None, 1], "float64")
    ids = static.data("ids", [None, 1], "int64")
    hidden = L.concat([L.fc(x, 8, act="relu"), L.embedding(ids, [10, 3], dtype="float64")], 1)
    out = L.fc(hidden, 1)
    loss = L.mean(L.square_error_cost(out, y))
    assert out.dtype == loss.dtype == "float64"
    fluid.optimizer.SGD(0.01).minimize(loss)
    exe = static.Executor()
    exe.run(static.default_startup_program())
    feed = {"x": np.ones((2, 4)), "y": np.ones((2, 1)), "ids": np.array([[1], [2]])}
    losses = [exe.run(feed=feed, fetch_list=[loss])[0] for _ in range(20)]
    assert losses[0].dtype == np.float64 and losses[-1] < losses[0]
    with pytest.raises(paddle.FleetXError, match="matmul"):
        L.matmul(x, y)


def test_pictures_are_rearranged(run):
    x = static.data("x", [None, 4, 2, 4], "float32")
    values = np.arange(4 * 4 * 8, dtype="float32").reshape(4, 4, 2, 4)
    deep, moved, small = L.space_to_depth(x, 2), L.temporal_shift(x, 2, 0.25), L.image_resize_short(x, 1)
    got = run({"x": values}, [deep, moved, small])
    wanted = np.stack([values[:, :, i::2, j::2] for i in range(2) for j in range(2)], 1).reshape(4, 16, 1, 2)
    np.testing.assert_array_equal(got[0], wanted)
    for clip in (0, 2):
        np.testing.assert_array_equal(got[1][clip:clip + 2, 0], np.stack([np.zeros((2, 4)), values[clip, 0]]))
        np.testing.assert_array_equal(got[1][clip:clip + 2, 1], np.stack([values[clip + 1, 1], np.zeros((2, 4))]))
        np.testing.assert_array_equal(got[1][clip:clip + 2, 2:], values[clip:clip + 2, 2:])
    assert got[2].shape == (4, 4, 1, 2)


def test_attention_of_nets(run):
    q, k = static.data("q", [None, 3, 4], "float32"), static.data("k", [None, 5, 4], "float32")
    rng = np.random.RandomState(0)
    feed = {"q": rng.randn(2, 3, 4).astype("float32"), "k": rng.randn(2, 5, 4).astype("float32")}
    plain, heads = fluid.nets.scaled_dot_product_attention(q, k, k), fluid.nets.scaled_dot_product_attention(q, k, k, 2, 0.1)
    got = run(feed, [plain, heads])
    scores = np.exp(feed["q"] @ feed["k"].swapaxes(1, 2) / 2)
    np.testing.assert_allclose(got[0], scores / scores.sum(-1, keepdims=True) @ feed["k"], rtol=1e-4, atol=1e-5)
    assert got[1].shape == (2, 3, 4)


def test_a_bilinear_kernel_enlarges_a_slope(run):
    x = static.data("x", [None, 1, 4, 4], "float32")
    attr = fluid.ParamAttr(initializer=fluid.initializer.Bilinear())
    large = L.conv2d_transpose(x, 1, filter_size=4, stride=2, padding=1, param_attr=attr, bias_attr=False)
    got, = run({"x": np.tile(np.arange(4, dtype="float32"), (1, 1, 4, 1))}, [large])
    np.testing.assert_allclose(got[0, 0, 3, 1:-1], np.arange(0.25, 3, 0.5), rtol=1e-5)


def test_batches_of_one_worker():
    assert list(fluid.contrib.reader.distributed_batch_reader(lambda: iter([1, 2, 3]))()) == [1, 2, 3]


def test_mul_names_matrices_that_do_not_fit(run):
    """Twelve columns and six rows would make two rows of each, without a word."""
    x = static.data("x", [None, 3, 4], "float32")
    with pytest.raises(ValueError, match=r"x \[-1, 3, 4\] cut after 1 dimensions has 12 columns, but y \[6, 5\] cut after 1 has 6 rows"):
        fluid.layers.mul(x, static.data("y", [6, 5], "float32"))
    z = static.data("z", [3, 4, 5], "float32")
    assert list(fluid.layers.mul(x, z, x_num_col_dims=1, y_num_col_dims=2).shape) == [-1, 5]
