"""fluid.Trainer and fluid.Inferencer, which were there before 1.0 and in fluid.contrib of 1.x."""
import numpy as np
import paddle
import paddle.fluid as fluid
import pytest

RANDOM = np.random.RandomState(0)
X = RANDOM.rand(64, 3).astype("float32")
Y = X @ np.array([[1.0], [-2.0], [0.5]], "float32") + 0.3


def inference():
    return fluid.layers.fc(fluid.layers.data("x", [3]), 1)


def train_func():
    label = fluid.layers.data("y", [1])
    loss = fluid.layers.mean(fluid.layers.square_error_cost(inference(), label))
    return [loss, fluid.layers.scale(loss, 2.0)]


def reader():
    for i in range(0, 64, 16):
        yield list(zip(X[i:i + 16], Y[i:i + 16]))


def test_trainer_and_inferencer(tmp_path):
    trainer = fluid.Trainer(train_func=train_func, optimizer_func=lambda: fluid.optimizer.SGD(0.2))
    seen, before = [], trainer.test(reader=reader, feed_order=["x", "y"])[0]

    def handler(event):
        seen.append(type(event).__name__)
        if isinstance(event, fluid.BeginStepEvent):
            event.fetch_metrics = event.step % 2 == 0
        if isinstance(event, fluid.EndStepEvent):
            assert len(event.metrics) == (2 if event.step % 2 == 0 else 0)
        if isinstance(event, fluid.EndEpochEvent) and event.epoch == 99:
            trainer.save_params(str(tmp_path / "parameters"))
            trainer.save_inference_model(str(tmp_path / "model"), ["x", "y"], [0])
    trainer.train(num_epochs=100, event_handler=handler, reader=reader, feed_order=["x", "y"])
    assert seen[:3] == ["BeginEpochEvent", "BeginStepEvent", "EndStepEvent"] and seen[-1] == "EndEpochEvent"
    loss, twice = trainer.test(reader=reader, feed_order=["x", "y"])
    assert loss < 0.01 * before and twice == pytest.approx(2 * loss, rel=1e-4)
    inferencer = fluid.Inferencer(inference, str(tmp_path / "parameters"))
    np.testing.assert_allclose(inferencer.infer({"x": X})[0], Y, atol=0.2)
    again = fluid.contrib.trainer.Trainer(train_func, lambda: fluid.optimizer.SGD(0.2), str(tmp_path / "parameters"))
    assert again.test(reader, ["x", "y"])[0] == pytest.approx(loss)


def test_stop_ends_training():
    trainer = fluid.Trainer(train_func, lambda: fluid.optimizer.SGD(0.1))
    steps = []

    def handler(event):
        if isinstance(event, fluid.EndStepEvent):
            steps.append(event.step)
            if len(steps) == 6:
                trainer.stop()
    trainer.train(50, handler, reader, ["x", "y"])
    assert steps == [0, 1, 2, 3, 0, 1]


def test_checkpoint_config_is_refused_with_what_to_use():
    with pytest.raises(NotImplementedError, match="save_params"):
        fluid.CheckpointConfig("somewhere")
