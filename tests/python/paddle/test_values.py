"""Feeds, fetches and assignments as scripts of 1.8 and 2.0 write them."""
import numpy as np
import pytest

import paddle
import paddle.fluid as fluid
from paddle import static


def trained(rate=0.1):
    x, y = static.data("x", [None, 3]), static.data("y", [None, 1])
    hidden = static.nn.fc(x, 4, weight_attr="w0", bias_attr="b0", activation="tanh")
    out = static.nn.fc(hidden, 1, weight_attr="w1", bias_attr=False)
    loss = paddle.mean(paddle.square(out - y))
    return x, hidden, out, loss


FEED = {"x": np.array([[1., 2, 3], [-1, 0, 1]], "float32"), "y": np.array([[1.], [2]], "float32")}


# ---- gradients by their names ----
def test_gradients_are_fetched_by_name():
    x, hidden, out, loss = trained()
    x.stop_gradient = False
    _, pairs = paddle.optimizer.SGD(0.1).minimize(loss)
    exe = static.Executor()
    exe.run(static.default_startup_program())
    w0, b0, w1 = [static.global_scope().find_var(n).get_tensor().numpy() for n in ("w0", "b0", "w1")]
    h = np.tanh(FEED["x"] @ w0 + b0)
    dout = 2 * (h @ w1 - FEED["y"]) / 2
    dpre = dout @ w1.T * (1 - h * h)
    got = exe.run(feed=FEED, fetch_list=["w1@GRAD", "w0@GRAD", "x@GRAD", hidden.name + "@GRAD"])
    for value, want in zip(got, [h.T @ dout, FEED["x"].T @ dpre, dpre @ w0.T, dout @ w1.T]):
        np.testing.assert_allclose(value, want, rtol=1e-4, atol=1e-5)
    block = static.default_main_program().global_block()
    assert block.var("w1@GRAD").name == dict((p.name, g.name) for p, g in pairs)["w1"]
    with pytest.raises(paddle.FleetXError, match="nothing@GRAD"):
        exe.run(feed=FEED, fetch_list=["nothing@GRAD"])


def test_a_shared_parameter_has_one_gradient():
    x = static.data("x", [None, 2])
    for _ in range(2):
        out = static.nn.fc(x, 2, weight_attr="shared", bias_attr=False)
        x = out
    paddle.optimizer.SGD(0.1).minimize(paddle.sum(out))
    exe = static.Executor()
    exe.run(static.default_startup_program())
    w = static.global_scope().find_var("shared").get_tensor().numpy()
    a = np.ones((1, 2), "float32")
    got, = exe.run(feed={"x": a}, fetch_list=["shared@GRAD"])
    one = np.ones((1, 2))
    np.testing.assert_allclose(got, (a @ w).T @ one + a.T @ (one @ w.T), rtol=1e-5)


def test_two_losses_in_one_program():
    x = static.data("x", [None, 2])
    a = static.nn.fc(x, 1, weight_attr="wa", bias_attr=False)
    b = static.nn.fc(x, 1, weight_attr="wb", bias_attr=False)
    first, second = paddle.mean(a), paddle.mean(b * b)
    paddle.optimizer.SGD(0.1, parameters=["wa"]).minimize(first)
    paddle.optimizer.SGD(0.5, parameters=["wb"]).minimize(second)
    exe = static.Executor()
    exe.run(static.default_startup_program())
    scope, feed = static.global_scope(), {"x": np.array([[1., 2]], "float32")}
    value = {n: scope.find_var(n).get_tensor().numpy() for n in ("wa", "wb")}
    for _ in range(3):
        value["wa"] = value["wa"] - 0.1 * feed["x"].T
        value["wb"] = value["wb"] - 0.5 * 2 * (feed["x"] @ value["wb"]) * feed["x"].T
        exe.run(feed=feed, fetch_list=[first, second])
        for name, want in value.items():
            np.testing.assert_allclose(scope.find_var(name).get_tensor().numpy(), want, rtol=1e-4)


# ---- feeds ----
def test_feeds_of_another_rank_take_the_declared_shape():
    x = fluid.layers.data("x", shape=[1, 2, 2])
    y = fluid.layers.data("y", shape=[1], dtype="int64")
    exe = static.Executor()
    outs = [fluid.layers.scale(x, 2.0), fluid.layers.cast(y, "float32")]
    a = np.arange(12, dtype="float32")
    got = exe.run(feed={"x": a.reshape(3, 4), "y": [1, 2, 3]}, fetch_list=outs)
    np.testing.assert_array_equal(got[0], 2 * a.reshape(3, 1, 2, 2))
    assert got[1].shape == (3, 1)
    clone = static.default_main_program().clone(for_test=True)
    assert exe.run(clone, feed={"x": a.reshape(3, 2, 2), "y": np.array([1, 2, 3])}, fetch_list=outs)[0].shape == (3, 1, 2, 2)
    assert exe.run(feed={"y": 3}, fetch_list=[outs[1]])[0].shape == (1, 1)
    with pytest.raises(paddle.FleetXError, match="declares"):
        exe.run(feed={"x": np.zeros((3, 5), "float32"), "y": [1]}, fetch_list=[outs[0]])
    whole = fluid.layers.data("whole", [4, 1], append_batch_size=False)
    assert exe.run(feed={"whole": np.ones(4, "float32")}, fetch_list=[whole * 2.0])[0].shape == (4, 1)
    with pytest.raises(paddle.FleetXError, match="declares"):
        exe.run(feed={"whole": np.ones(8, "float32")}, fetch_list=[whole * 2.0])


def test_computed_variables_can_be_fed():
    x, hidden, out, loss = trained()
    exe = static.Executor()
    exe.run(static.default_startup_program())
    h = np.ones((2, 4), "float32")
    w1 = static.global_scope().find_var("w1").get_tensor().numpy()
    got, = exe.run(feed={hidden.name: h}, fetch_list=[out])
    np.testing.assert_allclose(got, h @ w1, rtol=1e-5)
    assert exe.run(feed=FEED, fetch_list=[out])[0].shape == (2, 1)
    new = np.zeros_like(w1)
    assert not exe.run(feed={**FEED, "w1": new}, fetch_list=[out])[0].any()
    assert not static.global_scope().find_var("w1").get_tensor().numpy().any()


def test_values_of_loaders_answer_like_lod_tensors():
    x = static.data("x", [None, 2])
    loader = paddle.io.DataLoader.from_generator(feed_list=[x], capacity=2)
    loader.set_batch_generator(lambda: iter([[np.ones((3, 2), "float32")]]))
    for feed in loader():
        value = feed[0]["x"]
        assert isinstance(value, fluid.LoDTensor)
        assert value.shape() == [3, 2] and value.shape[0] == 3 and value.lod() == [] and np.array(value).sum() == 6
        assert static.Executor().run(feed=feed, fetch_list=[x * 2])[0].sum() == 12
    value.shape = (6,)
    assert value.shape == (6,) and (value + 1).shape() == [6]


# ---- variables ----
def test_a_variable_is_no_tensor():
    x = static.data("x", [None, 2])
    assert not isinstance(x, paddle.Tensor) and isinstance(x, paddle.static.Variable) and paddle.is_tensor(x)
    with pytest.raises(NotImplementedError, match="to_tensor"):
        paddle.Tensor()


VALUE = np.arange(24, dtype="float32").reshape(2, 3, 4)
ROW = np.array([9., 8, 7, 6], "float32")


@pytest.mark.parametrize("key, value", [
    (0, 5.0), (-1, ROW), ((slice(None), 1), ROW), ((slice(None), slice(0, 2)), 1.5), ((0, 1, 2), 3.0), ((Ellipsis, 0), -1.0),
    ((slice(None), slice(None), 1), np.array([1., 2, 3], "float32")), ((1, slice(1, None), slice(1, 3)), 0.0),
    ((slice(None), 0, slice(-2, None)), np.array([[1., 2]], "float32")), (slice(1, 1), 4.0), (slice(None), 2.0)])
@pytest.mark.parametrize("known", [True, False])
def test_items_are_set(key, value, known, run):
    x = static.data("x", [2 if known else None, 3, 4])
    y = x * 1.0
    y[key] = paddle.assign(value) if isinstance(value, np.ndarray) else value
    want = VALUE.copy()
    want[key] = value
    np.testing.assert_array_equal(run({"x": VALUE}, [y])[0], want)


def test_items_are_set_by_a_mask_and_have_gradients():
    x = static.data("x", [2, 3])
    w = paddle.create_parameter([2, 3], "float32", "w", default_initializer=fluid.initializer.Constant(2.0))
    y = w * x
    y[paddle.greater_than(x, paddle.zeros_like(x))] = 0.0
    z = y * 1.0
    z[1] = 0.0
    grads = static.gradients(paddle.sum(z), [w])
    exe = static.Executor()
    exe.run(static.default_startup_program())
    a = np.array([[1., -2, 3], [-4, 5, -6]], "float32")
    got, grad = exe.run(feed={"x": a}, fetch_list=[y, grads[0]])
    np.testing.assert_array_equal(got, np.where(a > 0, 0, 2 * a))
    np.testing.assert_array_equal(grad, [[0, -2, 0], [0, 0, 0]])


def test_items_that_cannot_be_set():
    x = static.data("x", [2, 3]) * 1.0
    for key, error in ((5, IndexError), ((0, 0, 0), IndexError), (slice(0, 2, 2), NotImplementedError), ("a", NotImplementedError)):
        with pytest.raises(error):
            x[key] = 1.0


def test_scripts_that_ask_for_cuda_go_on(monkeypatch):
    import paddle.device
    assert paddle.is_compiled_with_cuda() and fluid.core.is_compiled_with_cuda() and fluid.core.get_cuda_device_count() == 1
    monkeypatch.setenv("FLAGS_selected_gpus", "2,3")
    assert paddle.device.cuda_device_count() == 2 and [p.get_device_id() for p in fluid.cuda_places()] == [2, 3]
    monkeypatch.setenv("FLEETX_CUDA", "0")
    assert not fluid.is_compiled_with_cuda() and paddle.device.cuda_device_count() == 0
