"""What is not here says so."""
import importlib
import subprocess
import sys

import pytest

import paddle
import paddle.fluid as fluid


@pytest.mark.parametrize("path, words", [
    ("paddle.nn.Conv3DTranspose", "Conv2DTranspose"), ("paddle.static.nn.deform_conv2d", "conv2d"),
    ("paddle.fluid.AsyncExecutor", "train_from_dataset"), ("paddle.fluid.layers.open_files", "py_reader"), ("paddle.fluid.dygraph.to_variable", "static"), ("paddle.jit.save", "save_inference_model"),
    ("paddle.fluid.layers.gather_tree", "loop over steps and beams"), ("paddle.fluid.contrib.model_stat", "plan"),
    ("paddle.optimizer.LBFGS", "SGD"), ("paddle.vision.models", "fleetx.applications"), ("paddle.cholesky", "FleetX"),
    ("paddle.distributed.spawn", "fleetrun"),
    ("paddle.dataset.mq2007", "DataLoader"), ("paddle.nn.functional.ctc_loss", "cross_entropy")])
def test_refused_names_name_the_nearest_thing(path, words):
    module, name = path.rsplit(".", 1)
    __import__(module)
    with pytest.raises(AttributeError) as error:
        getattr(sys.modules[module], name)
    assert f"{path} exists in PaddlePaddle but not in FleetX" in str(error.value) and words in str(error.value)
    assert isinstance(error.value, NotImplementedError)


@pytest.mark.parametrize("statement, words", [
    ("from paddle.fluid.layers import gather_tree", "paddle.fluid.layers.gather_tree exists in PaddlePaddle but not in FleetX; nearest: "),
    ("from paddle.fluid.layers.control_flow import Assert", "control_flow.Assert exists in PaddlePaddle"),
    ("from paddle.static.nn import row_conv", "paddle.static.nn.row_conv exists in PaddlePaddle"),
    ("from paddle import Model", "paddle.Model exists in PaddlePaddle but not in FleetX; nearest: a loop"),
    ("from paddle.optimizer import LBFGS", "paddle.optimizer.LBFGS exists in PaddlePaddle"),
    ("import paddle.vision.transforms as T", "FleetX does not have it; nearest: functions on NumPy arrays"),
    ("from paddle.vision.transforms import Compose", "FleetX does not have it; nearest: functions on NumPy arrays"),
    ("import paddle.v2 as paddle", "FleetX does not have it; nearest: paddle.fluid, and a loop over Executor.run"),
    ("import paddle.fluid.nothing_like_this", "FleetX does not have it. docs/python.md")])
def test_imports_say_what_is_missing(statement, words):
    with pytest.raises(ImportError) as error:
        exec(statement)
    assert words in str(error.value)


def test_a_misspelt_import_stays_one():
    with pytest.raises(ImportError, match="cannot import name 'fcc'"):
        exec("from paddle.fluid.layers import fcc")
    exec("from paddle.fluid.layers import fc, dynamic_lstm")
    assert not hasattr(fluid.layers, "gather_tree")


def test_names_of_the_original_are_known():
    """Those of its modules that are nowhere else refused; a few are tried."""
    for path in ("paddle.bincount", "paddle.searchsorted", "paddle.nn.HuberLoss", "paddle.nn.functional.rrelu",
                 "paddle.fluid.layers.warpctc", "paddle.fluid.layers.grid_sampler", "paddle.distributed.reduce_scatter",
                 "paddle.io.ConcatDataset", "paddle.optimizer.lr.CyclicLR", "paddle.abs_", "paddle.vision.resnet50"):
        module, name = path.rsplit(".", 1)
        with pytest.raises(NotImplementedError, match=f"{path} exists in PaddlePaddle but not in FleetX.*; nearest: "):
            getattr(importlib.import_module(module), name)


def test_nothing_that_is_here_is_refused():
    from paddle._original import ORIGINAL
    for module, names in ORIGINAL.items():
        here = vars(importlib.import_module(module))
        assert not [n for n in names if n in here], module


def test_a_misspelt_name_gets_a_hint():
    with pytest.raises(AttributeError, match="did you mean .*matmul"):
        paddle.matmull
    assert not hasattr(fluid.layers, "nothing_like_this")


@pytest.mark.parametrize("call", [
    lambda: paddle.disable_static(),
    lambda: paddle.nn.functional.interpolate(paddle.static.data("x", [1, 1, 2, 2]), scale_factor=1.5, mode="bicubic")])
def test_refused_calls(call):
    with pytest.raises(NotImplementedError):
        call()


def test_another_paddle_is_not_hidden(tmp_path):
    import os
    (tmp_path / "paddle").mkdir()
    (tmp_path / "paddle" / "__init__.py").write_text("")
    environment = dict(os.environ, PYTHONPATH=os.environ["PYTHONPATH"] + os.pathsep + str(tmp_path))
    got = subprocess.run([sys.executable, "-c", "import paddle"], env=environment, capture_output=True, text=True)
    assert got.returncode != 0 and "FLEETX_SHADOW_PADDLE=1" in got.stderr and str(tmp_path) in got.stderr
    environment["FLEETX_SHADOW_PADDLE"] = "1"
    subprocess.run([sys.executable, "-c", "import paddle; paddle.nn"], env=environment, check=True)


def test_import_is_quick():
    """In time of the CPU: what else the machine does must not count."""
    import resource
    seconds = []
    for _ in range(3):
        before = resource.getrusage(resource.RUSAGE_CHILDREN)
        subprocess.run([sys.executable, "-c", "import paddle, fleetx"], check=True)
        after = resource.getrusage(resource.RUSAGE_CHILDREN)
        seconds.append(after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime)
    assert min(seconds) < 0.8  # 0.2 s where nothing disturbs, see bench/python


def test_type_stubs_are_up_to_date():
    import pathlib
    script = pathlib.Path(__file__).resolve().parents[3] / "scripts" / "make_stubs"
    got = subprocess.run([sys.executable, str(script), "--check"], capture_output=True, text=True)
    assert got.returncode == 0, got.stdout + got.stderr


def test_a_parameter_is_not_divided_by_a_mark():
    with pytest.raises(NotImplementedError, match="paddle.distributed.split"):
        paddle.static.create_parameter([4, 4], "float32").is_distributed = True


def test_ops_are_not_put_into_another_block():
    program = paddle.static.Program()
    program.current_block_idx = program.current_block().idx
    with pytest.raises(NotImplementedError, match="compute before the loop"):
        program.current_block_idx = program.current_block().parent_idx


@pytest.mark.parametrize("arguments", [{"num_microbatches": [["x"]]}, {"cut_list": [["x"]], "queue_size": 3}])
def test_a_pipeline_of_1_6_is_refused(arguments):
    with pytest.raises(NotImplementedError, match="cut_list of 1.6.*device_guard"):
        fluid.optimizer.PipelineOptimizer(fluid.optimizer.SGD(0.1), **arguments)


def test_what_scripts_did_for_gpus_is_refused_with_what_to_use():
    startup = fluid.default_startup_program().global_block()
    with pytest.raises(NotImplementedError, match="workers find each other by fleet.init"):
        startup.create_var(name="NCCLID", persistable=True, type=fluid.core.VarDesc.VarType.RAW)
    with pytest.raises(NotImplementedError, match="mixed_precision.decorate"):
        fluid.framework.Parameter(block=startup, shape=[3], dtype="float32", name="w.master")
    with pytest.raises(NotImplementedError, match="fluid.profiler"):
        fluid.core.nvprof_start()
    with pytest.raises(ImportError, match="paddle.distributed.split"):
        exec("from paddle.fluid.transpiler.collective import DistributedClassificationOptimizer")
    with pytest.raises(NotImplementedError, match="detection is not here"):
        fluid.layers.ssd_loss
    with pytest.raises(ImportError, match="fleet.save_persistables"):
        exec("from paddle.fluid.incubate.fleet.collective import TrainStatus")
