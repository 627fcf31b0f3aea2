"""Modules and names of scripts of 1.8 and 2.0."""
import importlib
import sys
import tarfile

import numpy as np
import pytest

import paddle
import paddle.fluid as fluid
from paddle import static


@pytest.mark.parametrize("name, members", [
    ("paddle.fluid.layers.ops", "exp sqrt sigmoid"), ("paddle.fluid.layers.nn", "fc reduce_mean"),
    ("paddle.fluid.layers.tensor", "fill_constant cast"), ("paddle.fluid.layers.io", "data py_reader read_file"),
    ("paddle.fluid.layers.device", "get_places"), ("paddle.fluid.layers.collective", "_c_allreduce _c_broadcast _c_allgather"),
    ("paddle.fluid.layers.loss", "cross_entropy"), ("paddle.fluid.layers.metric_op", "accuracy auc"),
    ("paddle.fluid.layers.sequence_lod", "sequence_pool"), ("paddle.fluid.layers.utils", "map_structure"),
    ("paddle.fluid.contrib.layers", "sparse_embedding ctr_metric_bundle"), ("paddle.fluid.contrib.utils", "HDFSClient"),
    ("paddle.fluid.contrib.mixed_precision.fp16_lists", "AutoMixedPrecisionLists"),
    ("paddle.fluid.contrib.mixed_precision.decorator", "decorate"), ("paddle.compat", "to_text to_bytes round"),
    ("paddle.framework", "ParamAttr seed"), ("paddle.fluid.profiler", "profiler start_profiler"),
    ("paddle.utils.profiler", "get_profiler"), ("paddle.profiler", "Profiler RecordEvent"),
    ("paddle.nn.layer.loss", "CrossEntropyLoss"), ("paddle.nn.layer.norm", "BatchNorm2D"), ("paddle.nn.layer.conv", "Conv2D"),
    ("paddle.nn.utils", "parameters_to_vector"), ("paddle.utils.download", "get_weights_path_from_url"),
    ("paddle.utils.cpp_extension", "setup load CppExtension"), ("paddle.fluid.dygraph", "ParallelEnv Layer guard"),
    ("paddle.fluid.dygraph.parallel", "ParallelEnv Env"), ("paddle.fluid.layer_helper", "LayerHelper"),
    ("paddle.reader.decorator", "shuffle xmap_readers"), ("paddle.onnx", "export"),
    ("paddle.version", "full_version major commit show"), ("paddle.fluid.log_helper", "get_logger"),
    ("paddle.fluid.install_check", "run_check"), ("paddle.fluid.input", "embedding one_hot"),
    ("paddle.distributed.fleet.meta_optimizers.sharding.utils", "add_sync_comm save_persistables"),
    ("paddle.fluid.transpiler.details", "program_to_code"), ("paddle.fluid.transpiler.ps_dispatcher", "HashName RoundRobin"),
    ("paddle.fluid.transpiler.details.program_utils", "op_to_code"),
    ("paddle.fluid.incubate.fleet.utils.hdfs", "HDFSClient"), ("paddle.common_ops_import", "LayerHelper core"),
    ("paddle.distributed.fleet.base.distributed_strategy", "DistributedStrategy"), ("paddle.distributed.fleet", "fleet"),
    ("paddle.fluid.initializer", "init_on_cpu"), ("paddle.static.nn", "data_norm bilinear_tensor_product"),
    ("paddle.fluid.framework", "core convert_np_dtype_to_dtype_"), ("paddle.fluid.io", "multiprocess_reader"),
    ("paddle.static.nn.control_flow", "While cond"), ("paddle.static.nn.common", "fc"), ("paddle.static.nn.sequence_lod", "sequence_pool"),
    ("paddle.distributed.transpiler", "DistributeTranspiler"), ("paddle.common_ops_import", "check_type check_variable_and_dtype"),
    ("paddle.tensor", "create_tensor fill_constant array_write array_length"), ("paddle.optimizer.lr", "noam_decay piecewise_decay"),
    ("paddle.nn.initializer", "NumpyArrayInitializer ConstantInitializer XavierInitializer MSRAInitializer"),
    ("paddle.incubate.optimizer", "PipelineOptimizer RecomputeOptimizer GradientMergeOptimizer"),
    ("paddle.framework", "default_main_program program_guard"), ("paddle.static", "ctr_metric_bundle"),
    ("paddle.fluid.lod_tensor", "create_lod_tensor"), ("paddle.fluid.data_feeder", "convert_dtype check_variable_and_dtype")])
def test_modules_are_there_by_their_paths(name, members):
    module = importlib.import_module(name)
    for member in members.split():
        assert hasattr(module, member), member


def test_modules_are_attributes_too():
    assert paddle.nn.loss.MSELoss is paddle.nn.MSELoss
    assert fluid.layers.ops.sqrt is fluid.layers.sqrt
    assert fluid.contrib.utils.HDFSClient and fluid.profiler.profiler and fluid.dygraph.ParallelEnv().nranks == 1


def test_what_moved_from_1x_into_modules_of_2x_is_the_same():
    import paddle.distributed.transpiler as transpiler
    assert paddle.nn.initializer.NumpyArrayInitializer is fluid.initializer.NumpyArrayInitializer
    assert paddle.tensor.create_tensor is fluid.layers.create_tensor and paddle.distributed.transpiler is transpiler
    assert transpiler.DistributeTranspiler is fluid.DistributeTranspiler
    rate = paddle.optimizer.lr.noam_decay(4, 10)
    assert isinstance(rate, paddle.static.Variable)
    with pytest.raises(AttributeError, match="paddle.tensor.*no_such_name"):
        paddle.tensor.no_such_name


def test_programs_as_text(tmp_path, capsys):
    from paddle.fluid.transpiler.details import op_to_code, program_to_code, variable_to_code
    out = fluid.layers.fc(fluid.layers.data("x", [4]), 3)
    program_to_code(static.default_main_program())
    assert "data x" in capsys.readouterr().out
    with open(tmp_path / "main.program", "w") as file:
        program_to_code(static.default_main_program(), file, True)
    assert str(static.default_main_program()) in (tmp_path / "main.program").read_text()
    assert out.name in op_to_code(out.block.ops[-1]) and out.name in variable_to_code(out)


def test_fleet_by_its_name_in_2_0_beta():
    import paddle.fleet
    import paddle.fleet.base.role_maker as role_maker
    from paddle.distributed.fleet.base import role_maker as real
    assert paddle.fleet is paddle.distributed.fleet and role_maker is real
    assert role_maker.__spec__.name == "paddle.distributed.fleet.base.role_maker"
    with pytest.raises(ModuleNotFoundError, match="paddle.distributed.fleet.nothing"):
        import paddle.fleet.nothing  # noqa: F401


def test_one_hot_of_1_6():
    ids = fluid.data("ids", [None, 1], "int64")
    exe = static.Executor()
    got = exe.run(feed={"ids": np.array([[2], [0]])}, fetch_list=[
        fluid.one_hot(input=ids, depth=3), fluid.one_hot(ids, 2, allow_out_of_range=True), fluid.layers.one_hot(ids, 3)])
    np.testing.assert_array_equal(got[0], [[[0, 0, 1]], [[1, 0, 0]]])
    np.testing.assert_array_equal(got[1], [[[0, 0]], [[1, 0]]])
    np.testing.assert_array_equal(got[2], [[0, 0, 1], [1, 0, 0]])


def test_bfloat16_in_uint16():
    from paddle.fluid.tests.unittests.op_test import convert_float_to_uint16, convert_uint16_to_float
    values = np.array([0, 1, -2.5, 3.3895314e38, np.inf, np.nan, 1 + 2**-8, 1 + 3 * 2**-8], "float32")
    there = convert_float_to_uint16(values)
    assert there.dtype == np.uint16
    np.testing.assert_array_equal(convert_uint16_to_float(there)[:6], values[:6])
    np.testing.assert_array_equal(convert_uint16_to_float(there)[6:], [1, 1 + 2**-6])  # ties go to the even one
    fetched = np.ones(3, "float32")
    assert convert_uint16_to_float(fetched) is fetched
    assert convert_float_to_uint16(np.zeros((2, 3, 4, 5)), "NHWC").shape == (2, 4, 5, 3)


def test_extensions_are_refused_when_they_are_used():
    from paddle.utils.cpp_extension import load
    with pytest.raises(NotImplementedError, match="add-an-op"):
        load(name="x", sources=["x.cc"])
    with pytest.raises(NotImplementedError, match="static programs"):
        fluid.dygraph.guard()


def test_convert_dtype():
    from paddle.fluid.data_feeder import check_dtype, check_type, convert_dtype
    assert convert_dtype(fluid.core.VarDesc.VarType.FP32) == "float32" and convert_dtype(np.int64) == "int64"
    with pytest.raises(TypeError, match="my_op: 'x' must be"):
        check_type(1, "x", str, "my_op")
    with pytest.raises(TypeError, match="my_op: 'x' must be one of"):
        check_dtype("int64", "x", ["float32"], "my_op")


def test_small_things(capfd):
    import paddle.version
    from paddle.fluid.executor import _fetch_var
    paddle.version.show()
    assert paddle.version.full_version in capfd.readouterr().out
    log = fluid.log_helper.get_logger("a_test", "INFO", "%(message)s")
    assert log is fluid.log_helper.get_logger("a_test", "INFO") and len(log.handlers) == 1
    static.create_global_var([1], 3.0, "float32", True, name="kept")
    static.Executor().run(static.default_startup_program())
    assert _fetch_var("kept") == 3
    with pytest.raises(ValueError, match="no variable 'gone'"):
        _fetch_var("gone")
    with fluid.initializer.init_on_cpu():
        assert not fluid.initializer.force_init_on_cpu()


def test_compat():
    from paddle import compat
    assert compat.to_text([b"a", "b"]) == ["a", "b"] and compat.to_bytes({"a"}) == {b"a"}
    given = [b"a"]
    assert compat.to_text(given, inplace=True) is given == ["a"]
    assert (compat.round(2.5), compat.round(-2.5), compat.round(1.25, 1), compat.round(0.0)) == (3.0, -3.0, 1.3, 0.0)
    assert compat.floor_division(7, 2) == 3 and compat.get_exception_message(ValueError("x")) == "x"


def test_nests():
    from paddle.fluid.layers import utils
    nest = {"b": [1, (2, 3)], "a": 0}
    assert utils.flatten(nest) == [0, 1, 2, 3]
    assert utils.map_structure(lambda x, y: x + y, nest, nest) == {"b": [2, (4, 6)], "a": 0}
    assert utils.convert_to_list(3, 2, "size") == [3, 3]
    with pytest.raises(ValueError, match="leaves"):
        utils.pack_sequence_as(nest, [1])
    with pytest.raises((TypeError, ValueError), match="differ"):
        utils.map_structure(lambda x, y: x, [1], [1, 2])


def test_files_by_their_address(tmp_path):
    from paddle.utils.download import get_path_from_url
    (tmp_path / "model").mkdir()
    (tmp_path / "model" / "w").write_text("1")
    with tarfile.open(tmp_path / "pack.tar.gz", "w:gz") as archive:
        archive.add(tmp_path / "model", "model")
    assert get_path_from_url("http://host/model/w", str(tmp_path / "model")) == str(tmp_path / "model" / "w")
    folder = get_path_from_url("http://host/pack.tar.gz", str(tmp_path))
    assert open(folder + "/w").read() == "1"
    assert get_path_from_url("http://host/pack.tar.gz", str(tmp_path)) == folder
    with pytest.raises(FileNotFoundError, match="downloads nothing"):
        get_path_from_url("http://host/other", str(tmp_path))
    with pytest.raises(paddle.FleetXError, match="md5"):
        get_path_from_url("http://host/w", str(tmp_path / "model"), "0" * 32)


# ---- readers of 1.x ----
def batches():
    for i in range(3):
        yield [(np.full(4, i, "float32"), np.array([i], "int64")) for _ in range(2)]


@pytest.mark.parametrize("by_data", [False, True])
def test_py_reader(by_data):
    if by_data:
        x, y = fluid.layers.data("x", [4]), fluid.layers.data("y", [1], dtype="int64")
        reader = fluid.layers.create_py_reader_by_data(capacity=4, feed_list=[x, y])
    else:
        reader = fluid.layers.py_reader(capacity=4, shapes=[(-1, 4), (-1, 1)], dtypes=["float32", "int64"], name="train")
    reader = fluid.layers.double_buffer(reader)
    x, y = fluid.layers.read_file(reader)
    total = fluid.layers.reduce_sum(x)
    reader.decorate_paddle_reader(batches)
    exe = fluid.Executor()
    for _ in range(2):
        reader.start()
        seen = []
        try:
            while True:
                seen.append(float(exe.run(fetch_list=[total])[0]))
        except fluid.core.EOFException:
            reader.reset()
        assert seen == [0.0, 8.0, 16.0]


def test_py_reader_refuses():
    with pytest.raises(ValueError, match="2 shapes for 1 dtypes"):
        fluid.layers.py_reader(4, [(-1, 1), (-1, 1)], ["float32"])
    with pytest.raises(TypeError, match="py_reader"):
        fluid.layers.read_file("reader")


def test_lod_tensors_from_lists():
    t = fluid.create_lod_tensor([[1, 2], [3]], [[2, 1]], fluid.CPUPlace())
    assert t.shape() == [3, 1] and t.lod() == [[0, 2, 3]] and t.numpy().dtype == np.int64
    with pytest.raises(ValueError, match="lengths"):
        fluid.create_lod_tensor([[1, 2], [3]], [[2, 2]], fluid.CPUPlace())
    with pytest.raises(ValueError, match="add up"):
        fluid.create_lod_tensor(np.zeros((4, 1)), [[2, 1]], fluid.CPUPlace())
    words = fluid.data("words", [None], "int64", lod_level=1)
    got, = static.Executor().run(feed={"words": t}, fetch_list=[fluid.layers.sequence_pool(fluid.layers.cast(words, "float32"), "sum")])
    assert got.ravel().tolist() == [3, 3]
    drawn = fluid.create_random_int_lodtensor([[2, 3]], [1], fluid.CPUPlace(), 2, 4)
    assert drawn.shape() == [5, 1] and drawn.numpy().min() >= 2 and drawn.numpy().max() <= 4


def test_parallel_executor():
    x = fluid.layers.data("x", [2])
    loss = fluid.layers.mean(fluid.layers.fc(x, 1))
    fluid.optimizer.SGD(0.1).minimize(loss)
    fluid.Executor().run(fluid.default_startup_program())
    train = fluid.ParallelExecutor(use_cuda=False, loss_name=loss.name)
    other = fluid.ParallelExecutor(False, share_vars_from=train, main_program=fluid.default_main_program().clone(for_test=True))
    feed = {"x": np.ones((2, 2), "float32")}
    first, = train.run([loss.name], feed=feed)
    assert other.run(fetch_list=[loss.name], feed_dict=feed)[0] < first and train.device_count == 1


def test_layers_of_contrib(run, rng):
    x, y = static.data("x", [None, 4]), static.data("y", [None, 4])
    c = fluid.contrib.layers
    outs = [c.fused_elemwise_activation(x, y, ["elementwise_add", "relu"]), c.fused_elemwise_activation(x, y, "relu,elementwise_add"),
            c.partial_concat([x, y], 1, 2), c.partial_sum([x, y], start_index=-2)]
    a, b = rng.randn(3, 4).astype("float32"), rng.randn(3, 4).astype("float32")
    got = run({"x": a, "y": b}, outs)
    np.testing.assert_allclose(got[0], a + np.maximum(b, 0), rtol=1e-6)
    np.testing.assert_allclose(got[1], np.maximum(a + b, 0), rtol=1e-6)
    np.testing.assert_allclose(got[2], np.concatenate([a[:, 1:3], b[:, 1:3]], 1))
    np.testing.assert_allclose(got[3], a[:, 2:] + b[:, 2:], rtol=1e-6)


def test_batch_fc(run, rng):
    x = static.data("x", [2, None, 3])
    out = fluid.contrib.layers.batch_fc(x, [2, 3, 4], paddle.ParamAttr("w"), [2, 4], paddle.ParamAttr("b"), act="relu")
    a = rng.randn(2, 5, 3).astype("float32")
    got, w, b = run({"x": a}, [out, "w", "b"])
    np.testing.assert_allclose(got, np.maximum(a @ w + b[:, None], 0), rtol=1e-5, atol=1e-6)


def test_ctr_metric_bundle():
    p, y = static.data("p", [None, 1]), static.data("y", [None, 1], "int64")
    sums = fluid.contrib.layers.ctr_metric_bundle(p, y)
    exe = static.Executor()
    exe.run(static.default_startup_program())
    feed = {"p": np.array([[.5], [.25]], "float32"), "y": np.array([[1], [0]])}
    exe.run(feed=feed)
    got = exe.run(feed=feed, fetch_list=list(sums))
    np.testing.assert_allclose(np.ravel(got), [2 * .3125, 2 * .75, 1.5, 1.0, 2, 4], rtol=1e-6)


def test_decoupled_decay():
    AdamW = fluid.contrib.extend_with_decoupled_weight_decay(fluid.optimizer.Adam)
    x = static.data("x", [None, 2])
    AdamW(weight_decay=0.1, learning_rate=0.01).minimize(paddle.mean(static.nn.fc(x, 1)))
    assert "adamw" in {op.type for op in static.default_main_program().global_block().ops}
    with pytest.raises(NotImplementedError, match="Adam"):
        fluid.contrib.extend_with_decoupled_weight_decay(fluid.optimizer.SGD)


# ---- starting jobs ----
def test_options_of_launchers_of_1x(monkeypatch):
    from paddle.distributed import launch, launch_ps
    import paddle.distributed.fleet.launch as third
    assert launch.translated("--cluster_node_ips=1.1.1.1,2.2.2.2 --node_ip 1.1.1.1 --started_port=6170 --use_paddlecloud "
                             "--selected_gpus 0,1 train.py --node_ip 3".split()) == \
        "--ips=1.1.1.1,2.2.2.2 --selected_gpus 0,1 train.py --node_ip 3".split()
    started = []
    monkeypatch.setattr(launch_ps, "_launch", started.append)
    launch_ps.launch(["--worker_num", "3", "train.py"])
    launch_ps.launch(["--servers=a:1", "--workers=a:2", "train.py"])
    assert started == [["--server_num=2", "--worker_num", "3", "train.py"], ["--servers=a:1", "--workers=a:2", "train.py"]]
    assert third.launch is launch.launch


def test_collectives_of_one_worker(run):
    import paddle.distributed.fleet as fleet
    fleet.init(is_collective=True)
    x = static.data("x", [None, 2])
    c = fluid.layers.collective
    outs = [c._c_allreduce(x, reduce_type="max"), c._c_allgather(x, nranks=1), c._c_sync_calc_stream(x)]
    a = np.arange(4, dtype="float32").reshape(2, 2)
    for got in run({"x": a}, outs):
        np.testing.assert_array_equal(got, a)
    with pytest.raises(NotImplementedError, match="ring_id=1"):
        c._c_allreduce(x, ring_id=1)
    with pytest.raises(ValueError, match="nranks=3"):
        c._c_allgather(x, 3)
    assert "paddle.fluid.layers.collective" in sys.modules


def test_programs_drawn_and_made_ready_for_inference(tmp_path, capsys):
    from paddle.fluid import debugger
    x = fluid.layers.data("x", [3])
    y = fluid.layers.fc(x, 2)
    program = fluid.default_main_program()
    debugger.draw_block_graphviz(program.global_block(), highlights=[y.name], path=str(tmp_path / "a.dot"))
    text = (tmp_path / "a.dot").read_text()
    assert text.startswith("digraph") and '"x" -> op_0;' in text and f'"{y.name}" [shape=ellipse, style=filled];' in text
    debugger.pprint_program_codes(program)
    debugger.pprint_block_codes(program.global_block())
    assert capsys.readouterr().out.count("fc_0") >= 2
    assert fluid.InferenceTranspiler().transpile(program, fluid.CPUPlace()) is None
    assert len(fluid.cuda_pinned_places(2)) == 2


def test_values_of_parameters_by_name():
    x = fluid.layers.data("x", [3])
    fluid.layers.fc(x, 2, param_attr=fluid.ParamAttr("w", fluid.initializer.Constant(0.5)))
    exe = fluid.Executor(fluid.CPUPlace())
    exe.run(fluid.default_startup_program())
    assert (fluid.io.get_parameter_value_by_name("w", exe) == 0.5).all()
    with pytest.raises(TypeError, match="parameter"):
        fluid.io.get_parameter_value(x, exe)


def test_several_readers_feed_one_program():
    readers = [fluid.layers.py_reader(4, [[-1, n]], ["float32"], name=f"reader_{n}") for n in (1, 2)]
    a, b = [fluid.layers.read_file(r) for r in readers]
    out, exe = a + b, fluid.Executor(fluid.CPUPlace())
    for n, reader in enumerate(readers, 1):
        reader.decorate_tensor_provider(lambda n=n: iter([[np.full((2, n), float(n), "float32")]] * 2))
        reader.start()
    for _ in range(2):
        assert exe.run(fluid.default_main_program(), fetch_list=[out])[0].tolist() == [[3.0, 3.0]] * 2
    with pytest.raises(fluid.core.EOFException):
        exe.run(fluid.default_main_program(), fetch_list=[out])
