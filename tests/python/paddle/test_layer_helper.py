"""Layers that users write with LayerHelper, and ops by the original's names."""
import numpy as np
import pytest

import paddle
import paddle.fluid as fluid
from paddle import _original_ops, static
from paddle.fluid.layer_helper import LayerHelper


def my_fc(input, size, param_attr=None, bias_attr=None, act=None, name=None):
    helper = LayerHelper("my_fc", **locals())
    dtype = helper.input_dtype()
    w = helper.create_parameter(helper.param_attr, [input.shape[1], size], dtype)
    product = helper.create_variable_for_type_inference(dtype)
    helper.append_op(type="mul", inputs={"X": input, "Y": w}, outputs={"Out": product},
                     attrs={"x_num_col_dims": 1, "y_num_col_dims": 1, "op_role": 0})
    return helper.append_activation(helper.append_bias_op(product))


def test_a_layer_of_the_user_trains_like_fc():
    values = []
    for layer in (my_fc, fluid.layers.fc):
        with static.program_guard(static.Program(), static.Program()), static.scope_guard(static.Scope()):
            static.default_startup_program().random_seed = 5
            x = static.data("x", [None, 3])
            constant = fluid.initializer.Constant(0.5)
            out = layer(x, 2, param_attr=paddle.ParamAttr("w", constant), bias_attr=paddle.ParamAttr("b"), act="tanh")
            loss = paddle.mean(out)
            fluid.optimizer.SGD(0.1).minimize(loss)
            exe = static.Executor()
            exe.run(static.default_startup_program())
            for _ in range(3):
                got = exe.run(feed={"x": np.ones((2, 3), "float32")}, fetch_list=[loss, "w", "b"])
            values.append(np.concatenate([np.ravel(v) for v in got]))
    np.testing.assert_allclose(values[0], values[1], rtol=1e-6)


def test_bias_attr_false_and_arguments():
    x, y = static.data("x", [None, 3]), static.data("y", [None, 3], "float64")
    helper = LayerHelper("layer", input=x, bias_attr=False)
    assert helper.append_bias_op(x) is x and helper.input() is x and helper.param_attr.name is None
    with pytest.raises(ValueError, match="different types"):
        LayerHelper("layer", input=[x, y]).input_dtype()
    with pytest.raises(ValueError, match="one input, got 2"):
        LayerHelper("layer", input=[x, y]).input()
    with pytest.raises(ValueError, match="no parameter"):
        helper.get_parameter("x")


def test_variables_keep_their_names_and_state_lives_on():
    block = static.default_main_program().global_block()
    x = static.data("x", [None, 2])
    out = block.create_var(name="twice", dtype="float32", shape=x.shape)
    assert "not written" in str(out) and out.shape == (-1, 2)
    with pytest.raises(paddle.FleetXError, match="'twice' has no value"):
        out.persistable
    block.append_op(type="scale", inputs={"X": ["x"]}, outputs={"Out": "twice"}, attrs={"scale": 2.0})
    count = block.create_var(name="count", shape=[1], dtype="float32", persistable=True)
    block.append_op(type="increment", inputs={"X": count}, outputs={"Out": count}, attrs={"step": 3.0})
    startup = static.default_startup_program().global_block()
    startup.append_op(type="fill_constant", outputs={"Out": startup.var("count")},
                      attrs={"shape": [1], "dtype": count.dtype, "value": 7.0})
    exe = static.Executor()
    exe.run(static.default_startup_program())
    feed = {"x": np.ones((1, 2), "float32")}
    assert exe.run(feed=feed, fetch_list=["twice"])[0].tolist() == [[2, 2]]
    assert exe.run(feed=feed, fetch_list=[count])[0] == 13
    helper = LayerHelper("auc")
    made = helper.create_or_get_global_variable("stat", persistable=True, shape=[2], dtype="float32")
    assert helper.create_or_get_global_variable("stat") is made
    helper.set_variable_initializer(made, fluid.initializer.Constant(4.0))
    exe.run(static.default_startup_program())
    assert static.global_scope().find_var("stat").get_tensor().numpy().tolist() == [4, 4]


def test_create_parameter_of_a_block():
    block = static.default_main_program().global_block()
    w = block.create_parameter(name="w", shape=[2, 3], dtype="float32", initializer=fluid.initializer.Constant(2.0),
                               optimize_attr={"learning_rate": 0.5}, trainable=False)
    assert w.stop_gradient and w.optimize_attr == {"learning_rate": 0.5} and block.all_parameters() == [w]
    static.Executor().run(static.default_startup_program())
    assert w.get_value().numpy().tolist() == [[2, 2, 2]] * 2


A, B = np.array([[1., -2], [3, 4]], "float32"), np.array([[2., 2], [-1, 5]], "float32")
IDS = np.array([[1], [0]])
EXPECTED = {
    "relu": (np.maximum(A, 0), {"X": "a"}, {}), "elementwise_add": (A + B, {"X": "a", "Y": "b"}, {"axis": -1}),
    "reduce_sum": (A.sum(1), {"X": "a"}, {"dim": [1], "keep_dim": False, "reduce_all": False}),
    "reduce_mean": (np.array([1.5]), {"X": "a"}, {"dim": [0], "reduce_all": True}), "sum": (A + B, {"X": ["a", "b"]}, {}),
    "matmul": (2 * A.T @ B, {"X": "a", "Y": "b"}, {"transpose_X": True, "transpose_Y": False, "alpha": 2.0}),
    "transpose2": (A.T, {"X": "a"}, {"axis": [1, 0]}), "reshape2": (A.reshape(4), {"X": "a"}, {"shape": [4]}),
    "concat": (np.concatenate([A, B], 1), {"X": ["a", "b"]}, {"axis": 1}),
    "cast": (A.astype("int64"), {"X": "a"}, {"in_dtype": "float32", "out_dtype": "int64"}),
    "slice": (A[:, 1], {"Input": "a"}, {"axes": [1], "starts": [1], "ends": [2], "decrease_axis": [1]}),
    "clip": (np.clip(A, -1, 2), {"X": "a"}, {"min": -1.0, "max": 2.0}), "less_than": (A < B, {"X": "a", "Y": "b"}, {}),
    "gather": (A[[1, 0]], {"X": "a", "Index": "flat"}, {}), "lookup_table": (A[[1, 0]], {"W": "a", "Ids": "ids"}, {"padding_idx": -1}),
    "fill_constant": (np.full(2, 3.), {}, {"shape": [2], "dtype": "float32", "value": 3.0}),
    "squeeze2": (np.array([1, 0]), {"X": "ids"}, {"axes": [1]}), "unsqueeze2": (A[:, None], {"X": "a"}, {"axes": [1]}),
    "c_allreduce_sum": (A, {"X": "a"}, {"ring_id": 0, "use_calc_stream": True}),
    "softmax": (np.exp(A) / np.exp(A).sum(1, keepdims=True), {"X": "a"}, {"axis": -1}),
    "expand": (np.tile(A, (1, 2)), {"X": "a"}, {"expand_times": [1, 2]}), "mean": (np.array([1.5]), {"X": "a"}, {}),
}


def inputs_of(block):
    static.data("a", [2, 2]), static.data("b", [2, 2]), static.data("ids", [2, 1], "int64")
    static.data("flat", [2], "int64")
    return {"a": A, "b": B, "ids": IDS, "flat": IDS[:, 0]}


@pytest.mark.parametrize("type", sorted(EXPECTED))
def test_ops_by_their_names(type, run):
    if type.startswith("c_"):
        paddle.distributed.fleet.init(is_collective=True)
    block = static.default_main_program().global_block()
    feed = inputs_of(block)
    want, inputs, attrs = EXPECTED[type]
    out = block.create_var(name="result", dtype="float32")
    slot = {"lookup_table": "Out"}.get(type, "Out")
    block.append_op(type=type, inputs=inputs, outputs={slot: [out], "XShape": [block.create_var(name="unused")]}, attrs=attrs)
    got, = run(feed, ["result"])
    np.testing.assert_allclose(got, want, rtol=1e-6)


def test_ops_with_several_outputs(run):
    block = static.default_main_program().global_block()
    feed = inputs_of(block)
    names = "left right best place loss softmax".split()
    v = {n: block.create_var(name=n) for n in names}
    block.append_op("split", {"X": "a"}, {"Out": [v["left"], v["right"]]}, {"num": 2, "axis": 1})
    block.append_op("top_k", {"X": "a"}, {"Out": v["best"], "Indices": v["place"]}, {"k": 1})
    block.append_op("softmax_with_cross_entropy", {"Logits": "a", "Label": "ids"}, {"Loss": v["loss"], "Softmax": v["softmax"]})
    left, right, best, place, loss, softmax = run(feed, names)
    np.testing.assert_array_equal(np.concatenate([left, right], 1), A)
    assert best.ravel().tolist() == [1, 4] and place.ravel().tolist() == [0, 1]
    p = np.exp(A) / np.exp(A).sum(1, keepdims=True)
    np.testing.assert_allclose(loss.ravel(), -np.log(p[[0, 1], [1, 0]]), rtol=1e-5)
    np.testing.assert_allclose(softmax, p, rtol=1e-5)


def test_what_is_not_known_is_named():
    block = static.default_main_program().global_block()
    x = static.data("x", [2, 2])
    out = block.create_var()
    with pytest.raises(NotImplementedError, match="'relu7'.*relu6"):
        block.append_op("relu7", {"X": x}, {"Out": out})
    with pytest.raises(NotImplementedError, match="no attribute 'slope'"):
        block.append_op("relu", {"X": x}, {"Out": out}, {"slope": 1})
    with pytest.raises(NotImplementedError, match="no input 'Y'"):
        block.append_op("relu", {"X": x, "Y": x}, {"Out": out})
    with pytest.raises(ValueError, match="needs the input 'Y'"):
        block.append_op("elementwise_add", {"X": x}, {"Out": out})
    assert len(_original_ops.names()) > 110


def test_gradients_go_through_variables_of_create_var(run):
    block = static.default_main_program().global_block()
    w = fluid.layers.create_parameter([2, 2], "float32", attr=fluid.ParamAttr(initializer=fluid.initializer.Constant(3.0)))
    made = [block.create_var(name="a"), LayerHelper("layer").create_variable(name="b"),
            block.create_var(name="c", stop_gradient=True)]
    for out in made:
        block.append_op("square", {"X": w}, {"Out": out})
    assert [v.stop_gradient for v in made] == [False, False, True]
    gradient, = static.gradients([fluid.layers.reduce_sum(made[0] + 10 * made[1] + 100 * made[2])], [w])
    assert run({}, [gradient])[0].tolist() == [[66.0, 66.0]] * 2
    count = block.create_var(name="count", shape=[1], persistable=True)
    assert count.stop_gradient


def test_variables_of_another_program():
    x = static.data("x", [None, 4], "float32")
    w = fluid.layers.create_parameter([4, 3], "float32", name="w")
    computed = paddle.matmul(x, w)
    other, startup = static.Program(), static.Program()
    with static.program_guard(other, startup):
        block = other.global_block()
        copies = [block._clone_variable(v) for v in (x, w, computed)]
        assert [c.name for c in copies] == ["x", "w", computed.name] and all(c.program is other for c in copies)
        assert copies[0].is_data and copies[1].shape == (4, 3) and copies[1].persistable and not copies[1].is_parameter
        assert copies[2].shape == (-1, 3) and not copies[2].is_written and block._clone_variable(w) is copies[1]


def test_a_variable_of_the_startup_program_is_the_main_one_s_of_its_name(run):
    main, startup = static.default_main_program(), static.default_startup_program()
    settings = {"name": "count", "shape": [1], "dtype": fluid.core.VarDesc.VarType.FP32, "persistable": True}
    count = startup.global_block().create_var(initializer=fluid.initializer.Constant(5.0, force_cpu=True), **settings)
    main.global_block().create_var(**settings)
    x = static.data("x", [None, 2], "float32")
    main.global_block().append_op(type="elementwise_add", inputs={"X": [count], "Y": [fluid.layers.reduce_sum(x)]},
                                  outputs={"Out": [count]})
    half = fluid.layers.elementwise_div(count, fluid.layers.fill_constant([1], "float32", 2.0))
    assert half.program is main
    got = run({"x": np.ones((3, 2), "float32")}, [count, half])
    assert [float(v) for v in got] == [11.0, 5.5]


def test_a_state_begins_as_its_initializer_says(run):
    v = static.default_main_program().global_block().create_var(name="v", shape=[3], persistable=True,
                                                                initializer=fluid.initializer.Constant(2.0))
    got, = run({}, [v * 1.0])
    assert got.tolist() == [2.0, 2.0, 2.0]
