import numpy as np
import pytest

import fleetx as X
import paddle
from paddle import static
from paddle._native import native

SMALL = {"class_dim": 7, "image_shape": [3, 32, 32]}


def feed_of(batch, size=32):
    random = np.random.RandomState(0)
    return {"feed_image": random.rand(batch, 3, size, size).astype("float32"),
            "feed_label": random.randint(0, 7, (batch, 1)).astype("int64")}


def test_resnet50_is_that_of_the_documents():
    model = X.applications.Resnet50()
    shapes = [p.shape for p in model.main_prog.all_parameters()]
    assert len(shapes) == len(model.parameter_list()) == 161
    assert sum(int(np.prod(s)) for s in shapes) == 25_557_032
    assert len(model.checkpoints) == 16
    assert all(model.main_prog.global_block().has_var(name) for name in model.checkpoints)
    assert [v.name for v in model.inputs] == ["feed_image", "feed_label"]
    assert list(model.inputs[0].shape) == [-1, 3, 224, 224]
    assert list(model.target) == ["acc1", "acc5"]


def test_vgg16_is_that_of_the_paper():
    model = X.applications.VGG16()
    shapes = [list(p.shape) for p in model.main_prog.all_parameters()]
    assert sum(int(np.prod(s)) for s in shapes) == 138_357_544
    assert sum(len(s) == 4 for s in shapes) == 13


def test_its_programs_are_the_default_ones():
    model = X.applications.Resnet50(**SMALL)
    assert static.default_main_program() is model.main_prog
    assert static.default_startup_program() is model.startup_prog
    other = X.applications.Resnet50(**SMALL)
    assert static.default_main_program() is other.main_prog is not model.main_prog


@pytest.mark.parametrize("kind", [X.applications.Resnet50, X.applications.VGG16])
def test_a_loss_that_falls(kind):
    model = kind(**SMALL)
    paddle.optimizer.Momentum(learning_rate=0.01, momentum=0.9).minimize(model.loss)
    exe = static.Executor(paddle.CPUPlace())
    exe.run(static.default_startup_program())
    feed = feed_of(4)
    losses = [float(exe.run(model.main_prog, feed=feed, fetch_list=[model.loss.name])[0]) for _ in range(8)]
    assert np.isfinite(losses).all()
    assert min(losses[4:]) < losses[0]


def test_parameters_survive_a_file(tmp_path):
    model = X.applications.Resnet50(**SMALL)
    exe = static.Executor()
    with pytest.raises(ValueError, match="no value yet"):
        model.save_params(tmp_path / "net.safetensors")
    exe.run(model.startup_prog)
    feed = feed_of(4)
    test = model.main_prog.clone(for_test=True)
    before, = exe.run(test, feed=feed, fetch_list=[model.logits])
    model.save_params(tmp_path / "net.safetensors")
    for name in model.parameter_list():
        tensor = static.global_scope().find_var(name).get_tensor()
        tensor.set(np.zeros_like(tensor.numpy()))
    assert not np.array_equal(exe.run(test, feed=feed, fetch_list=[model.logits])[0], before)
    model.load_params(tmp_path / "net.safetensors")
    assert np.array_equal(exe.run(test, feed=feed, fetch_list=[model.logits])[0], before)
    with pytest.raises(ValueError, match="has no '"):
        X.applications.VGG16(**SMALL).load_params(tmp_path / "net.safetensors")


def test_what_is_not_there_says_so():
    with pytest.raises(AttributeError, match="there are Resnet50, .*BertGiant"):
        X.applications.BertTiny()
    with pytest.raises(AttributeError, match="Resnet50"):
        X.applications.Resnet51()
    with pytest.raises(ValueError, match="data_layout is 'NHCW'; known: NCHW, NHWC"):
        X.applications.Resnet50(data_layout="NHCW")


def test_a_label_outside_the_classes_is_named(flowers):
    model = X.applications.Resnet50(class_dim=2, image_shape=[3, 32, 32])
    with pytest.raises(native.CorruptFileError, match="train.txt:3: label 2 is not below the number of classes, 2"):
        model.get_train_dataloader(str(flowers), batch_size=4)


@pytest.mark.parametrize("name", ["Resnet50", "VGG16"])
def test_pictures_are_fed_in_the_layout_of_the_model(flowers, name):
    """The same network, data and parameters: the same loss, whichever layout is fed."""
    losses = {}
    for layout in ("NCHW", "NHWC"):
        with paddle.utils.unique_name.guard(), static.scope_guard(static.Scope()):
            model = getattr(X.applications, name)(data_layout=layout, **SMALL)
            exe = static.Executor(paddle.CPUPlace())
            model.startup_prog.random_seed = 3
            exe.run(model.startup_prog)
            loader = model.load_imagenet_from_file(f"{flowers}/val.txt", 2, phase="val", use_dali=True)
            feed, = next(iter(loader))
            assert feed["feed_image"].shape == ((2, 3, 32, 32) if layout == "NCHW" else (2, 32, 32, 3))
            losses[layout] = exe.run(model.main_prog.clone(for_test=True), feed=feed, fetch_list=[model.loss])[0]
            with pytest.raises(ValueError, match=f"the model is fed {layout}"):
                model.load_imagenet_from_file(f"{flowers}/val.txt", data_layout="NHWC" if layout == "NCHW" else "NCHW")
    np.testing.assert_allclose(losses["NHWC"], losses["NCHW"], rtol=1e-5)


def test_mlperf_is_fed_colors_last_and_smooths_labels(flowers):
    plain = X.applications.Resnet50(**SMALL)
    exe = static.Executor(paddle.CPUPlace())
    loader = plain.get_val_dataloader(flowers, batch_size=2)
    feed, = next(iter(loader))
    model = X.applications.Resnet50Mlperf(**SMALL)
    exe.run(model.startup_prog)
    last, = next(iter(model.get_val_dataloader(flowers, batch_size=2)))
    np.testing.assert_array_equal(last["feed_image"], feed["feed_image"].transpose(0, 2, 3, 1))
    test = model.main_prog.clone(for_test=True)
    logits, loss = exe.run(test, feed=last, fetch_list=[model.logits, model.loss])
    log_p = logits - np.log(np.exp(logits).sum(1, keepdims=True))
    hard = -log_p[np.arange(2), last["feed_label"][:, 0]]
    np.testing.assert_allclose(loss, (0.9 * hard - 0.1 * log_p.mean(1)).mean(), rtol=1e-4)


def test_large_berts_are_as_large_as_they_say():
    def values(model):
        return sum(int(np.prod(p.shape)) for p in model.main_prog.all_parameters())
    assert values(X.applications.BertHuge()) == pytest.approx(670e6, rel=0.02)
    assert values(X.applications.BertGiant()) == pytest.approx(27.4e9, rel=0.01)
