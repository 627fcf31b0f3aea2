"""Predictors of 2.0 and of 1.x give what the program gave."""
import numpy as np
import pytest

import paddle
import paddle.fluid as fluid
from paddle import static


@pytest.fixture
def model(tmp_path):
    """(folder, what is fed, what came out)"""
    x, words = static.data("x", [None, 3], "float32"), static.data("words", [None, 1], "int64", lod_level=1)
    pooled = fluid.layers.sequence_pool(fluid.embedding(words, [9, 4]), "sum")
    out = static.nn.fc([x, fluid.layers.reshape(pooled, [-1, 4])], 2, activation="softmax")
    exe = static.Executor()
    exe.run(static.default_startup_program())
    feed = {"x": np.random.RandomState(0).rand(2, 3).astype("float32"), "words": np.array([[1], [2], [8]])}
    lod = fluid.create_lod_tensor(feed["words"], [[2, 1]])
    wanted, = exe.run(feed={"x": feed["x"], "words": lod}, fetch_list=[out])
    static.save_inference_model(str(tmp_path / "inference"), [x, words], [out], exe)
    fluid.io.save_inference_model(str(tmp_path / "old"), ["x", "words"], [out], exe)
    return tmp_path, feed, wanted


def test_handles(model):
    from paddle.inference import Config, create_predictor
    folder, feed, wanted = model
    for config in (Config(str(folder / "inference.pdmodel"), str(folder / "inference.pdiparams")), Config(str(folder))):
        config.enable_use_gpu(100, 0)
        config.switch_ir_optim(True)
        config.enable_memory_optim()
        assert config.use_gpu()
        config.disable_gpu()
        predictor = create_predictor(config)
        assert predictor.get_input_names() == ["x", "words"]
        with pytest.raises(paddle.InvalidArgumentError, match="x, words was not given"):
            predictor.run()
        for name in predictor.get_input_names():
            handle = predictor.get_input_handle(name)
            handle.reshape(feed[name].shape)
            handle.copy_from_cpu(feed[name])
        predictor.get_input_handle("words").set_lod([[0, 2, 3]])
        assert predictor.run()
        out = predictor.get_output_handle(predictor.get_output_names()[0])
        np.testing.assert_allclose(out.copy_to_cpu(), wanted, rtol=1e-6)
        assert out.shape() == [2, 2]
        other = predictor.clone()
        with pytest.raises(paddle.InvalidArgumentError, match="x, words was not given"):
            other.run()
    with pytest.raises(paddle.InvalidArgumentError, match="there is no 'y'; it has x, words"):
        predictor.get_input_handle("y")


def test_tensors_of_1_x(model):
    folder, feed, wanted = model
    config = fluid.core.AnalysisConfig(str(folder / "old"))
    config.disable_gpu()
    config.switch_use_feed_fetch_ops(False)
    predictor = fluid.core.create_paddle_predictor(config)
    tensors = [fluid.core.PaddleTensor(feed["x"]), fluid.core.PaddleTensor(feed["words"])]
    tensors[1].lod = [[0, 2, 3]]
    got = predictor.run(tensors)
    np.testing.assert_allclose(got[0].as_ndarray(), wanted, rtol=1e-6)
    assert got[0].shape == [2, 2]


def test_what_is_not_here_is_named():
    config = paddle.inference.Config()
    with pytest.raises(NotImplementedError, match="paddle.inference.Config.enable_tensorrt_engine exists in PaddlePaddle"):
        config.enable_tensorrt_engine(max_batch_size=1)
    with pytest.raises(paddle.InvalidArgumentError, match="no model; call set_model"):
        paddle.inference.create_predictor(config)
