"""Export to ONNX: what is refused, and that onnxruntime computes the same."""
import os
import pathlib
import subprocess
import sys

import numpy
import pytest

import fleetx as X
import paddle
from paddle import static
from paddle._native import native

sys.path.insert(0, str(pathlib.Path(__file__).parent))
from peers import python_with, run_script  # noqa: E402

RUN = """
import sys
import numpy, onnxruntime
options = onnxruntime.SessionOptions()
options.intra_op_num_threads = 1
session = onnxruntime.InferenceSession(sys.argv[1], options, providers=["CPUExecutionProvider"])
feeds = numpy.load(sys.argv[2])
numpy.savez(sys.argv[3], *session.run(None, {i.name: feeds[i.name] for i in session.get_inputs()}))
"""


def compare(folder, outputs, feed, tolerance=1e-4, opset=13, program=None):
    """onnxruntime's outputs equal ours."""
    python = python_with("onnxruntime", "numpy")
    program = program or outputs[0].program
    path = paddle.onnx.export(program, folder / "model", opset_version=opset, output_spec=outputs)
    numpy.savez(folder / "feed.npz", **feed)
    run_script(python, RUN, path, folder / "feed.npz", folder / "out.npz")
    got = numpy.load(folder / "out.npz")
    exe = static.Executor(paddle.CPUPlace())
    want = exe.run(program.clone(for_test=True)._prune(outputs), feed=feed, fetch_list=outputs)
    assert len(got.files) == len(want)
    for name, expected in zip(got.files, want):
        assert got[name].shape == expected.shape and got[name].dtype == expected.dtype
        numpy.testing.assert_allclose(got[name], expected, atol=tolerance, rtol=tolerance)


def started(model):
    static.Executor(paddle.CPUPlace()).run(model.startup_prog)
    return model


def shaken(model, rng):
    """Statistics of norms as a training leaves them."""
    for name in model.main_prog.ir.persistables():
        if name.endswith("_bn.w_1"):
            tensor = static.global_scope().find_var(name).get_tensor()
            tensor.set(rng.uniform(-0.3, 0.3, tensor.numpy().shape).astype("float32"))
    return model


def test_resnet50(tmp_path, rng):
    model = shaken(started(X.applications.Resnet50(class_dim=10, image_shape=(3, 64, 64))), rng)
    compare(tmp_path, [model.logits], {"feed_image": rng.randn(2, 3, 64, 64).astype("float32")})


def test_vgg16(tmp_path, rng):
    model = started(X.applications.VGG16(class_dim=10, image_shape=(3, 32, 32)))
    compare(tmp_path, [model.logits], {"feed_image": rng.randn(2, 3, 32, 32).astype("float32")}, opset=17)


def test_bert(tmp_path, rng):
    model = started(X.applications.Bert(vocab_size=100, hidden=64, layers=2, heads=4, max_seq_len=16))
    block = model.main_prog.global_block()
    outputs = [block.var(model.checkpoints[-1]), block.var("pooler.tmp_1")]
    mask = numpy.zeros([3, 1, 1, 16], "float32")
    mask[1, ..., 10:] = -1e9
    compare(tmp_path, outputs, {"src_ids": rng.randint(0, 100, [3, 16]), "sent_ids": rng.randint(0, 2, [3, 16]),
                                "input_mask": mask})


def test_transformer(tmp_path, rng):
    model = started(X.applications.Transformer("small", vocab_size=50))
    places = numpy.tile(numpy.arange(7), [2, 1])
    compare(tmp_path, [model.logits], {
        "src_word": rng.randint(0, 50, [2, 7]), "src_pos": places, "src_mask": numpy.zeros([2, 1, 1, 7], "float32"),
        "trg_word": rng.randint(0, 50, [2, 5]), "trg_pos": places[:, :5]}, tolerance=1e-3)


@pytest.mark.parametrize("kind", ["WideDeep", "DeepFM", "MultiSlotCTR"])
def test_click_models(tmp_path, rng, kind):
    model = started(getattr(X.applications, kind)(sparse_feature_dim=100, slot_num=3, dense_feature_dim=4, hidden=(16, 8)))
    feed = {"dense_input": rng.randn(5, 4).astype("float32"), **{f"C{i}": rng.randint(0, 100, [5, 1]) for i in (1, 2, 3)}}
    compare(tmp_path, [model.predict], feed)


def test_many_functions(tmp_path, rng):
    """Every kind of op that has a writer of its own, in one program."""
    F = paddle.nn.functional
    x = static.data("x", [None, 3, 8, 8], "float32")
    ids = static.data("ids", [None, 2], "int64")
    flat = paddle.reshape(x, [0, 192])
    pooled = F.avg_pool2d(x, 3, stride=2, padding=1)
    outs = [F.max_pool2d(x, 2), pooled, F.adaptive_avg_pool2d(x, 1), F.gelu(flat), F.gelu(flat, approximate=True),
            F.leaky_relu(flat), F.elu(flat), F.hardswish(flat), F.hardsigmoid(flat), F.softplus(flat), F.swish(flat),
            F.relu6(flat), F.log_softmax(flat), paddle.clip(flat, -0.5, 0.7), paddle.round(flat * 3.0),
            paddle.rsqrt(paddle.abs(flat) + 1.0), paddle.square(flat), paddle.pow(paddle.abs(flat), 1.5),
            paddle.mean(x), paddle.sum(x, axis=[2, 3]), paddle.max(x, axis=1, keepdim=True), paddle.min(flat, axis=-1),
            paddle.concat([flat, flat], axis=1), paddle.split(flat, 3, axis=1)[1], paddle.stack([flat, flat], axis=1),
            paddle.transpose(x, [0, 2, 3, 1]), x[:, 1:3, ::2, -3:], paddle.flip(x, [2]), paddle.tile(flat, [1, 2]),
            paddle.cumsum(flat, axis=1), paddle.argmax(flat, axis=1), paddle.topk(flat, 3)[0], paddle.topk(flat, 3)[1],
            paddle.where(flat > 0.0, flat, flat * 2.0), paddle.cast(ids, "float32"), F.one_hot(ids, 5),
            paddle.unsqueeze(paddle.squeeze(F.adaptive_avg_pool2d(x, 1), [2, 3]), [1]),
            F.embedding(ids, paddle.static.create_parameter([5, 4], "float32"), padding_idx=2),
            paddle.matmul(flat, flat, transpose_y=True), F.pad(x, [1, 2, 0, 1], value=0.5)]
    exe = static.Executor(paddle.CPUPlace())
    exe.run(static.default_startup_program())
    compare(tmp_path, outs, {"x": rng.randn(2, 3, 8, 8).astype("float32"), "ids": rng.randint(0, 5, [2, 2])})


def test_the_command_exports_a_saved_model(tmp_path, rng):
    model = started(X.applications.WideDeep(sparse_feature_dim=100, slot_num=2, dense_feature_dim=4, hidden=(8,)))
    feeds = model.inputs[:-1]
    static.save_inference_model(str(tmp_path / "saved"), feeds, [model.predict], static.Executor(paddle.CPUPlace()))
    got = subprocess.run(["fleetx", "export", str(tmp_path / "saved"), "-o", str(tmp_path / "net.onnx")], capture_output=True,
                         text=True)
    assert got.returncode == 0 and "operator set 13" in got.stdout, got.stdout + got.stderr
    same = paddle.onnx.export(model.main_prog, tmp_path / "again.onnx", input_spec=feeds, output_spec=[model.predict])
    assert os.path.getsize(same) == os.path.getsize(tmp_path / "net.onnx")
    got = subprocess.run(["fleetx", "export", str(tmp_path / "none"), "-o", "x"], capture_output=True, text=True)
    assert got.returncode == 2 and "none.pdmodel" in got.stderr


def test_what_cannot_be_exported_is_named(tmp_path):
    x = static.data("x", [None, 4], "float32")
    label = static.data("label", [None, 1], "int64")
    logits = static.nn.fc(x, 3)
    loss = paddle.mean(paddle.nn.functional.cross_entropy(logits, label))
    static.Executor(paddle.CPUPlace()).run(static.default_startup_program())
    program = static.default_main_program()
    with pytest.raises(native.UnsupportedError, match=r"test_onnx.py:\d+: softmax_cross_entropy.*Losses and metrics"):
        paddle.onnx.export(program, tmp_path / "m", output_spec=[loss])
    with pytest.raises(native.InvalidArgumentError, match="operator set 12; from 13 to 17"):
        paddle.onnx.export(program, tmp_path / "m", output_spec=[logits], opset_version=12)
    with pytest.raises(native.InvalidArgumentError, match="opset_version must be a number, 13 to 17, got '13'"):
        paddle.onnx.export(program, tmp_path / "m", output_spec=[logits], opset_version="13")
    with pytest.raises(native.InvalidArgumentError, match="input 'x' is needed"):
        paddle.onnx.export(program, tmp_path / "m", input_spec=[], output_spec=[logits])
    with pytest.raises(native.InvalidArgumentError, match="output_spec must be variables"):
        paddle.onnx.export(program, tmp_path / "m")
    with pytest.raises(native.UnsupportedError, match="takes a static program"):
        paddle.onnx.export(None, tmp_path / "m", output_spec=[logits])
    with pytest.raises(TypeError, match="enable_onnx_checker"):
        paddle.onnx.export(program, tmp_path / "m", output_spec=[logits], enable_onnx_checker=True)
