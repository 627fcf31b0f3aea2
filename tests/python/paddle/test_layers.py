"""Layers: names, shapes, defaults and results."""
import numpy as np
import pytest

import paddle
import paddle.fluid as fluid
import paddle.nn.functional as F
from paddle import static


def value(name):
    return np.array(static.global_scope().find_var(name).get_tensor())


def parameters():
    return {p.name: p.shape for p in static.default_main_program().all_parameters()}


def conv(x, w, stride=1, padding=0):
    x = np.pad(x, ((0, 0), (0, 0), (padding, padding), (padding, padding)))
    n, c, h, wd = x.shape
    o, _, kh, kw = w.shape
    oh, ow = (h - kh) // stride + 1, (wd - kw) // stride + 1
    out = np.zeros((n, o, oh, ow), "float32")
    for i in range(oh):
        for j in range(ow):
            patch = x[:, :, i * stride:i * stride + kh, j * stride:j * stride + kw]
            out[:, :, i, j] = np.tensordot(patch, w, ([1, 2, 3], [1, 2, 3]))
    return out


def test_fc_flattens(run, rng):
    x = static.data("x", [None, 3, 4], "float32")
    y = static.nn.fc(x, 5, activation="relu")
    z = static.nn.fc(x, 2, num_flatten_dims=2, bias_attr=False)
    array = rng.randn(6, 3, 4).astype("float32")
    got_y, got_z = run({"x": array}, [y, z])
    assert parameters() == {"fc_0.w_0": (12, 5), "fc_0.b_0": (5,), "fc_1.w_0": (4, 2)}
    np.testing.assert_allclose(got_y, np.maximum(array.reshape(6, 12) @ value("fc_0.w_0"), 0), rtol=1e-4, atol=1e-5)
    np.testing.assert_allclose(got_z, array @ value("fc_1.w_0"), rtol=1e-4, atol=1e-5)
    limit = np.sqrt(6.0 / 17)
    assert np.abs(value("fc_0.w_0")).max() <= limit and not value("fc_0.b_0").any()


def test_fc_of_several_inputs(run, rng):
    a, b = static.data("a", [None, 3], "float32"), static.data("b", [None, 4], "float32")
    y = fluid.layers.fc(input=[a, b], size=2)
    x1, x2 = rng.randn(5, 3).astype("float32"), rng.randn(5, 4).astype("float32")
    got, = run({"a": x1, "b": x2}, [y])
    assert parameters() == {"fc_0.w_0": (3, 2), "fc_0.w_1": (4, 2), "fc_0.b_0": (2,)}
    np.testing.assert_allclose(got, x1 @ value("fc_0.w_0") + x2 @ value("fc_0.w_1"), rtol=1e-4, atol=1e-5)


def test_param_attr_names_share_and_initialize(run, rng):
    x = static.data("x", [None, 3], "float32")
    attr = paddle.ParamAttr(name="shared", initializer=paddle.nn.initializer.Constant(0.5), learning_rate=2.0,
                            regularizer=paddle.regularizer.L2Decay(0.1))
    y = static.nn.fc(x, 3, weight_attr=attr, bias_attr=False)
    z = static.nn.fc(y, 3, weight_attr=attr, bias_attr=False)
    array = rng.randn(2, 3).astype("float32")
    got, = run({"x": array}, [z])
    assert parameters() == {"shared": (3, 3)}
    np.testing.assert_allclose(got, array @ np.full((3, 3), 0.5) @ np.full((3, 3), 0.5), rtol=1e-5)
    assert static.default_main_program().global_block().var("shared").optimize_attr == {"learning_rate": 2.0}


def test_a_layer_name_used_twice_makes_two_parameters():
    x = static.data("x", [None, 3], "float32")
    static.nn.fc(x, 3, name="mine")
    static.nn.fc(x, 3, name="mine")
    assert list(parameters()) == ["mine.w_0", "mine.b_0", "mine.w_1", "mine.b_1"]


@pytest.mark.parametrize("data_format", ["NCHW", "NHWC"])
def test_conv2d(run, rng, data_format):
    array = rng.randn(2, 3, 8, 8).astype("float32")
    fed = array if data_format == "NCHW" else array.transpose(0, 2, 3, 1).copy()
    x = static.data("x", [None, *fed.shape[1:]], "float32")
    y = static.nn.conv2d(x, 4, 3, stride=2, padding=1, bias_attr=False, data_format=data_format)
    got, = run({"x": fed}, [y])
    got = got if data_format == "NCHW" else got.transpose(0, 3, 1, 2)
    np.testing.assert_allclose(got, conv(array, value("conv2d_0.w_0"), 2, 1), rtol=1e-3, atol=1e-4)
    assert parameters() == {"conv2d_0.w_0": (4, 3, 3, 3)}


def test_conv2d_default_weights_are_normal(run):
    x = static.data("x", [None, 64, 8, 8], "float32")
    y = static.nn.conv2d(x, 128, 3)
    run({"x": np.zeros((1, 64, 8, 8), "float32")}, [y])
    assert abs(value("conv2d_0.w_0").std() / np.sqrt(2.0 / (9 * 64)) - 1) < 0.02


def test_batch_norm_normalizes_and_keeps_running_statistics(run, rng):
    array = (rng.randn(4, 3, 5, 5) * 2 + 1).astype("float32")
    x = static.data("x", [None, 3, 5, 5], "float32")
    y = static.nn.batch_norm(x)
    test = static.default_main_program().clone(for_test=True)
    exe = static.Executor()
    exe.run(static.default_startup_program())
    got, = exe.run(feed={"x": array}, fetch_list=[y])
    mean, var = array.mean((0, 2, 3)), array.var((0, 2, 3))
    normal = (array - mean[:, None, None]) / np.sqrt(var + 1e-5)[:, None, None]
    np.testing.assert_allclose(got, normal, rtol=1e-3, atol=1e-4)
    np.testing.assert_allclose(value("batch_norm_0.w_1"), 0.1 * mean, rtol=1e-4)
    np.testing.assert_allclose(value("batch_norm_0.w_2"), 0.9 + 0.1 * var, rtol=1e-4)
    got, = exe.run(test, feed={"x": array}, fetch_list=[y])
    running = (array - 0.1 * mean[:, None, None]) / np.sqrt(0.9 + 0.1 * var + 1e-5)[:, None, None]
    np.testing.assert_allclose(got, running, rtol=1e-3, atol=1e-4)


def test_pool2d_of_fluid(run, rng):
    array = rng.randn(2, 3, 6, 6).astype("float32")
    x = static.data("x", [None, 3, 6, 6], "float32")
    out = [fluid.layers.pool2d(x, 2, "max", 2), fluid.layers.pool2d(x, 2, "avg", 2),
           fluid.layers.pool2d(x, pool_type="avg", global_pooling=True), F.adaptive_avg_pool2d(x, 2),
           F.max_pool2d(x, 3, stride=1, padding="SAME")]
    got = run({"x": array}, out)
    blocks = array.reshape(2, 3, 3, 2, 3, 2)
    np.testing.assert_allclose(got[0], blocks.max((3, 5)))
    np.testing.assert_allclose(got[1], blocks.mean((3, 5)), rtol=1e-5, atol=1e-6)
    np.testing.assert_allclose(got[2], array.mean((2, 3), keepdims=True), rtol=1e-5, atol=1e-6)
    np.testing.assert_allclose(got[3], array.reshape(2, 3, 2, 3, 2, 3).mean((3, 5)), rtol=1e-5, atol=1e-6)
    assert got[4].shape == (2, 3, 6, 6)


def test_embeddings(run, rng):
    ids = rng.randint(0, 7, (4, 1))
    x = static.data("ids", [None, 1], "int64")
    new = static.nn.embedding(x, (7, 3))
    old = fluid.layers.embedding(x, (7, 3), is_sparse=True)
    layer = paddle.nn.Embedding(7, 3, padding_idx=2)(x)
    got = run({"ids": ids}, [new, old, layer])
    assert [g.shape for g in got] == [(4, 1, 3), (4, 3), (4, 1, 3)]
    np.testing.assert_allclose(got[0], value("embedding_0.w_0")[ids], rtol=1e-6)
    np.testing.assert_allclose(got[1], value("embedding_1.w_0")[ids[:, 0]], rtol=1e-6)
    assert not got[2][ids == 2].any()


def test_layer_objects(run, rng):
    class Net(paddle.nn.Layer):
        def __init__(self):
            super().__init__()
            self.features = paddle.nn.Sequential(
                paddle.nn.Conv2D(3, 4, 3, padding=1), paddle.nn.BatchNorm2D(4), paddle.nn.ReLU(),
                paddle.nn.MaxPool2D(2, 2))
            self.drop = paddle.nn.Dropout(0.5)
            self.head = paddle.nn.Linear(4 * 4 * 4, 10)

        def forward(self, x):
            return self.head(self.drop(paddle.flatten(self.features(x), 1)))

    net = Net()
    net.eval()
    x = static.data("x", [None, 3, 8, 8], "float32")
    y = net(x)
    assert [n for n, _ in net.named_parameters()] == [
        "features.0.weight", "features.0.bias", "features.1.weight", "features.1.bias", "head.weight", "head.bias"]
    assert [p.name for p in net.parameters()] == ["conv2d_0.w_0", "conv2d_0.b_0", "batch_norm2d_0.w_0",
                                                  "batch_norm2d_0.b_0", "linear_0.w_0", "linear_0.b_0"]
    array = rng.randn(2, 3, 8, 8).astype("float32")
    first, = run({"x": array}, [y])
    exe = static.Executor()
    second, = exe.run(feed={"x": array}, fetch_list=[y])
    np.testing.assert_array_equal(first, second)  # eval: no dropout
    state = {k: np.array(v.get_value()) for k, v in net.state_dict().items()}
    assert "features.1._mean" in state
    net.set_state_dict({**state, "head.bias": np.ones(10, "float32")})
    third, = exe.run(feed={"x": array}, fetch_list=[y])
    np.testing.assert_allclose(third, first + 1, rtol=1e-5, atol=1e-5)


def test_transformer_encoder_runs(run, rng):
    layer = paddle.nn.TransformerEncoderLayer(8, 2, 16, dropout=0.0)
    encoder = paddle.nn.TransformerEncoder(layer, 2)
    x = static.data("x", [None, 5, 8], "float32")
    got, = run({"x": rng.randn(3, 5, 8).astype("float32")}, [encoder(x)])
    assert got.shape == (3, 5, 8)
    np.testing.assert_allclose(got.mean(-1), 0, atol=1e-5)  # ends in a layer norm


@pytest.mark.parametrize("make, x_shape, y_shape", [
    (lambda: paddle.nn.Conv2DTranspose(3, 4, 3, stride=2, padding=1, output_padding=1), (2, 3, 5, 5), (2, 4, 10, 10)),
    (lambda: paddle.nn.Conv1D(3, 4, 3, padding=1), (2, 3, 7), (2, 4, 7)),
    (lambda: paddle.nn.BatchNorm1D(3), (4, 3), (4, 3)), (lambda: paddle.nn.BatchNorm1D(3), (4, 3, 5), (4, 3, 5)),
    (lambda: paddle.nn.GroupNorm(2, 4), (2, 4, 3, 3), (2, 4, 3, 3)),
    (lambda: paddle.nn.InstanceNorm2D(4), (2, 4, 3, 3), (2, 4, 3, 3)),
    (lambda: paddle.nn.LayerNorm([3, 3]), (2, 4, 3, 3), (2, 4, 3, 3)),
    (lambda: paddle.nn.PReLU(4), (2, 4, 3, 3), (2, 4, 3, 3)), (lambda: paddle.nn.Flatten(), (2, 4, 3, 3), (2, 36)),
    (lambda: paddle.nn.AdaptiveAvgPool2D(1), (2, 4, 3, 3), (2, 4, 1, 1)),
    (lambda: paddle.nn.AvgPool2D(3, 2, 1), (2, 4, 7, 7), (2, 4, 4, 4)),
    (lambda: paddle.nn.Upsample(scale_factor=2), (2, 4, 3, 3), (2, 4, 6, 6)),
    (lambda: paddle.nn.LocalResponseNorm(5), (2, 8, 3, 3), (2, 8, 3, 3)),
    (lambda: paddle.nn.MultiHeadAttention(8, 2), (2, 5, 8), (2, 5, 8)),
    (lambda: paddle.nn.MaxPool1D(2, 2), (2, 3, 8), (2, 3, 4)), (lambda: paddle.nn.GELU(), (2, 3), (2, 3)),
    (lambda: paddle.nn.Pad2D([1, 2, 0, 1]), (2, 3, 4, 4), (2, 3, 5, 7)),
], ids=lambda v: v if isinstance(v, str) else "")
def test_shapes_of_layers(make, x_shape, y_shape, run, rng):
    x = static.data("x", [None, *x_shape[1:]], "float32")
    got, = run({"x": rng.randn(*x_shape).astype("float32")}, [make()(x)])
    assert got.shape == y_shape and np.isfinite(got).all()


def test_dropout_scales(run):
    x = static.data("x", [None, 1000], "float32")
    new, old = F.dropout(x, 0.25), fluid.layers.dropout(x, 0.25)
    test = static.default_main_program().clone(for_test=True)
    ones = np.ones((4, 1000), "float32")
    a, b = run({"x": ones}, [new, old])
    assert set(np.unique(a)) == {0, np.float32(1 / 0.75)} and set(np.unique(b)) == {0, 1}
    assert abs((a == 0).mean() - 0.25) < 0.03
    exe = static.Executor()
    a, b = exe.run(test, feed={"x": ones}, fetch_list=[new, old])
    assert (a == 1).all() and np.allclose(b, 0.75)


def test_channels_are_scaled_and_shuffled(run, rng):
    x = static.data("x", [None, 4, 2, 2], "float32")
    image, factors = rng.randn(3, 4, 2, 2).astype("float32"), np.arange(4, dtype="float32")
    scaled = fluid.layers.affine_channel(x, paddle.assign(factors), paddle.assign(factors + 1))
    got = run({"x": image}, [scaled, fluid.layers.shuffle_channel(x, 2)])
    column = factors.reshape(1, 4, 1, 1)
    np.testing.assert_allclose(got[0], image * column + column + 1, rtol=1e-5)
    np.testing.assert_array_equal(got[1], image[:, [0, 2, 1, 3]])


def test_a_last_dimension_of_one_goes_as_in_the_original():
    one, two = static.data("one", [None, 1], "int64", lod_level=1), static.data("two", [None, 2, 1], "int64")
    three = static.data("three", [None, 3], "int64")
    for layer in (static.nn.sparse_embedding, fluid.contrib.layers.sparse_embedding, fluid.layers.embedding):
        assert [tuple(layer(ids, [10, 4]).shape) for ids in (one, two, three)] == [(-1, 4), (-1, 2, 4), (-1, 3, 4)]
    for layer in (static.nn.embedding, fluid.embedding):
        assert [tuple(layer(ids, [10, 4]).shape) for ids in (one, two)] == [(-1, 1, 4), (-1, 2, 1, 4)]
    # Servers are asked ahead for ids that are fed.
    lookups = [op for op in static.default_main_program().ir.ops() if op["type"] == "embedding"]
    assert all(op["inputs"]["ids"][0] in ("one", "two", "three") for op in lookups)


def test_tables_for_servers_are_marked():
    ids, x = static.data("ids", [None], "int64"), static.data("x", [None, 4], "float32")
    distributed = paddle.ParamAttr(is_distributed=True)
    static.nn.embedding(ids, [10, 4], is_distributed=True)
    static.nn.sparse_embedding(ids, [10, 4])
    fluid.layers.embedding(ids, [10, 4], is_distributed=True)
    static.nn.embedding(ids, [10, 4], param_attr=distributed)
    paddle.create_parameter([4, 4], "float32", attr=paddle.ParamAttr(is_distributed=True))
    static.nn.fc(x, 4, weight_attr=paddle.ParamAttr(is_distributed=True), bias_attr=False)
    program = static.default_main_program()
    assert [p.is_distributed for p in program.all_parameters()] == [True] * 6
    static.nn.embedding(ids, [10, 4])
    marks = [p.is_distributed for p in program.all_parameters()]
    assert marks == [True] * 6 + [False] and str(program).count("is_distributed") == 6
    copy = static.Program.parse_from_string(program.desc.serialize_to_string())
    assert [p.is_distributed for p in copy.all_parameters()] == marks


def test_an_initializer_sets_first_values_of_a_parameter():
    initializer, main, startup = paddle.nn.initializer, static.Program(), static.Program()
    with static.program_guard(main, startup):
        layer = paddle.nn.Linear(64, 64)
        initializer.Constant(3.0)(layer.bias)
        initializer.TruncatedNormal(std=0.02)(layer.weight)
        other = paddle.nn.Linear(2, 2)
        initializer.Assign(np.array([[1.0, 2.0], [3.0, 4.0]]))(other.weight)
        initializer.Uniform(5.0, 6.0)(other.bias)
    with static.scope_guard(static.Scope()):
        static.Executor().run(startup)
        values = [static.global_scope().find_var(v.name).get_tensor().numpy()
                  for v in (layer.bias, layer.weight, other.weight, other.bias)]
    assert (values[0] == 3).all() and 0.015 < values[1].std() < 0.02 and abs(values[1]).max() <= 0.0401
    assert values[2].tolist() == [[1, 2], [3, 4]] and (values[3] >= 5).all() and (values[3] < 6).all()


def test_layers_tell_what_they_were_given():
    with static.program_guard(static.Program(), static.Program()):
        conv, pool = paddle.nn.Conv2D(3, 8, 5, groups=1), paddle.nn.AdaptiveAvgPool2D(1)
    assert conv._kernel_size == [5, 5] and (conv._in_channels, conv._out_channels) == (3, 8) and pool._output_size == 1


def test_transformer_is_its_encoder_and_decoder():
    with static.program_guard(static.Program(), static.Program()):
        src, tgt = static.data("src", [None, 5, 8]), static.data("tgt", [None, 4, 8])
        net = paddle.nn.Transformer(8, 2, 1, 2, 16, dropout=0.0, normalize_before=True)
        mask = net.generate_square_subsequent_mask(4)
        whole = net(src, tgt, tgt_mask=mask)
        parts = net.decoder(tgt, net.encoder(src), mask)
        exe = static.Executor()
        exe.run(static.default_startup_program())
        feed = {"src": np.random.rand(2, 5, 8).astype("float32"), "tgt": np.random.rand(2, 4, 8).astype("float32")}
        got = exe.run(feed=feed, fetch_list=[whole, parts, mask])
    np.testing.assert_allclose(got[0], got[1], rtol=1e-5, atol=1e-6)
    assert np.isneginf(got[2][0, 1]) and got[2][1, 0] == 0 == got[2][1, 1]


def test_a_parameter_begins_with_what_a_layer_sets():
    with static.program_guard(static.Program(), static.Program()), static.scope_guard(static.Scope()):
        layer = paddle.nn.Linear(50, 50)
        layer.weight.set_value(paddle.normal(2.0, 0.1, [50, 50]))
        layer.bias.set_value(paddle.full_like(layer.bias, 7.0))
        with pytest.raises(TypeError, match="of its shape"):
            layer.bias.set_value(paddle.normal(shape=[50]) * 2.0)
        static.Executor().run(static.default_startup_program())
        weight, bias = [p.get_value().numpy() for p in (layer.weight, layer.bias)]
        assert abs(weight.mean() - 2) < 0.02 and 0.08 < weight.std() < 0.12 and (bias == 7).all()
        layer.bias.set_value(np.zeros(50, "float32"))
        assert (layer.bias.get_value().numpy() == 0).all()


def test_prelu_with_a_slope_of_each_element(run):
    x = static.data("x", [None, 2, 3], "float32")
    y = static.nn.prelu(x, "element", paddle.ParamAttr("slopes", paddle.nn.initializer.Assign(np.arange(6.0).reshape(1, 2, 3))))
    assert static.default_main_program().global_block().var("slopes").shape == (1, 2, 3)
    got, = run({"x": -np.ones((1, 2, 3), "float32")}, [y])
    assert got[0].tolist() == [[0, -1, -2], [-3, -4, -5]]
