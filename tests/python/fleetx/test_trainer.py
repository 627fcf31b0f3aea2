import re

import pytest

import fleetx as X
import paddle
from event_files import scalars
from paddle._native import native

LINE = re.compile(r"worker_index: (\d+), step(\d+), train_loss: (\d+\.\d{6}), total time cost = (\d+\.\d{6}), "
                  r"step per second: (\d+\.\d{6}), speed: (\d+\.\d{6})")


class Tiny(X.applications.Model):
    """A network for which the loop around it is what counts."""

    def _network(self, builder, image, file, line):
        pixels = paddle.nn.functional.avg_pool2d(self.inputs[0], 8, 8)
        return paddle.static.nn.fc(pixels, self.class_dim).name, []


@pytest.fixture
def job(flowers):
    model = Tiny(4, [3, 32, 32])
    loader = model.get_train_dataloader(str(flowers), batch_size=4)
    paddle.optimizer.SGD(learning_rate=0.001).minimize(model.loss)
    return model, loader, X.MultiGPUTrainer()


def test_lines_are_those_of_the_documents(job, capsys):
    model, loader, trainer = job
    capsys.readouterr()
    trainer.fit(model, loader, epoch=2)
    lines = capsys.readouterr().out.splitlines()
    assert lines[:3] == ["('reader shuffle seed', 0)", "('trainerid, trainer_count', 0, 1)",
                         "read images from 0, length: 61, lines length: 61, total: 61"]
    # 15 steps of 4 pictures a pass, printed from step 11 on.
    steps = [LINE.fullmatch(line) for line in lines[3:7]]
    assert all(steps), lines
    assert [int(m[2]) for m in steps] == [11, 12, 13, 14]
    for done, m in enumerate(steps, 1):
        total, rate, speed = float(m[4]), float(m[5]), float(m[6])
        assert m[1] == "0" and rate == pytest.approx(done / total, rel=2e-2)
        if done == 1:
            assert speed == pytest.approx(rate, rel=1e-3)
        else:
            assert speed == pytest.approx(1 / (total - float(steps[done - 2][4])), rel=0.1)
    assert lines[7] == "('reader shuffle seed', 1)" and len(lines) == 14
    assert trainer.step == 30


def test_start_step(job, capsys):
    model, loader, trainer = job
    trainer.fit(model, loader, epoch=1, start_step=12)
    assert [LINE.fullmatch(line)[2] for line in capsys.readouterr().out.splitlines()[3:]] == ["13", "14"]


def test_validation_is_the_mean_over_samples(job, flowers, capsys):
    model, _, trainer = job
    ten = trainer.val(model, model.get_val_dataloader(str(flowers), batch_size=10))
    uneven = trainer.validate(model, model.get_val_dataloader(str(flowers), batch_size=4), ["acc1"])
    assert uneven["acc1"] == pytest.approx(ten["acc1"])
    assert uneven["loss"] == pytest.approx(ten["loss"], rel=1e-4)
    assert "validation of 10 samples: loss: " in capsys.readouterr().out
    with pytest.raises(native.InvalidArgumentError, match="unknown target 'acc7'; the model has acc1"):
        trainer.val(model, [], ["acc7"])


def test_benchmark_goes_round(job):
    model, loader, trainer = job
    assert trainer.benchmark(model, loader, start_step=2, steps=20) > 0
    assert trainer.quick_benchmark(model, loader, start_step=1, end_step=4) > 0


def test_curves(job, flowers, tmp_path):
    model, loader, trainer = job
    trainer.fit(model, loader, epoch=1)
    trainer.val(model, model.get_val_dataloader(str(flowers)))
    trainer.plot(tmp_path / "curves.png")
    assert (tmp_path / "curves.png").read_bytes()[:8] == b"\x89PNG\r\n\x1a\n"


def test_means_of_stretches():
    from fleetx.applications.training import _means
    assert _means([(1, 2.0), (2, 4.0), (3, 6.0)], 2) == [(2, 3.0), (3, 6.0)]
    assert _means([(1, 2.0), (2, 4.0)], 100) == [(1, 2.0), (2, 4.0)]
    assert _means([], 100) == []


def test_scalars_for_tensorboard(flowers, tmp_path):
    model = X.applications.Resnet50(class_dim=4, image_shape=(3, 32, 32), width=8)
    paddle.optimizer.SGD(learning_rate=0.01).minimize(model.loss, model.startup_prog)
    trainer = X.MultiGPUTrainer(log_dir=tmp_path / "runs")
    trainer.fit(model, model.get_train_dataloader(str(flowers), batch_size=16))
    result = trainer.val(model, model.get_val_dataloader(str(flowers), batch_size=5))
    found = scalars(tmp_path / "runs")
    losses = [(step, value) for tag, step, value in found if tag == "train/loss"]
    assert losses == [(step, pytest.approx(value)) for step, value in trainer.history["train loss"]] and len(losses) == 3
    assert ("val/acc1", 3, pytest.approx(result["acc1"])) in found
    assert sum(tag == "train/steps_per_second" for tag, _, _ in found) == 3
    assert b"parameters/" not in next((tmp_path / "runs").iterdir()).read_bytes(), "not asked for"


def test_histograms_for_tensorboard_on_request(flowers, tmp_path):
    model = X.applications.Resnet50(class_dim=4, image_shape=(3, 32, 32), width=8)
    paddle.optimizer.SGD(learning_rate=0.01).minimize(model.loss, model.startup_prog)
    trainer = X.MultiGPUTrainer(log_dir=tmp_path / "runs", histogram_every=2)
    trainer.fit(model, model.get_train_dataloader(str(flowers), batch_size=16))  # 3 steps
    data = next((tmp_path / "runs").iterdir()).read_bytes()
    for name in model.parameter_list():
        assert data.count(f"parameters/{name}*".encode()) == 1, name  # "*" begins the histogram
    with pytest.raises(native.InvalidArgumentError, match="histogram_every is 5; must not be negative, and needs a log_dir"):
        X.MultiGPUTrainer(histogram_every=5)
