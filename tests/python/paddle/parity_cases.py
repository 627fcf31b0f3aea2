"""Calls whose results are compared with those of a real PaddlePaddle. Run by both interpreters:

usage: parity_cases.py OUT.npz
"""
import sys
import warnings

import numpy as np

warnings.filterwarnings("ignore")
import paddle  # noqa: E402
import paddle.nn as nn  # noqa: E402
import paddle.nn.functional as F  # noqa: E402
from paddle import static  # noqa: E402
from paddle.optimizer import lr  # noqa: E402

R = np.random.RandomState(0)
X = R.randn(4, 6).astype("float32")
IMAGE = R.randn(2, 4, 7, 7).astype("float32")
W = R.randn(6, 4, 3, 3).astype("float32")
B = R.randn(6).astype("float32")
WT = R.randn(4, 6, 3, 3).astype("float32")
LABEL = R.randint(0, 6, (4, 1))
SEQUENCE = R.randn(2, 4, 9).astype("float32")
LINEAR = R.randn(6, 3).astype("float32")
SHARES = np.abs(X) / np.abs(X).sum(1, keepdims=True)
BITS = (X > 0).astype("float32")

STEPS = R.randn(2, 4, 3).astype("float32")


def recurrent(kind, gates, **options):
    """A layer from 3 to 5 with these weights."""
    def attr(*shape):
        values = np.random.RandomState(len(shape)).randn(*shape).astype("float32")
        return paddle.ParamAttr(initializer=nn.initializer.Assign(values))
    rows = 5 * gates
    return kind(3, 5, weight_ih_attr=attr(rows, 3), weight_hh_attr=attr(rows, 5), bias_ih_attr=attr(rows),
                bias_hh_attr=attr(rows), **options)


SCHEDULES = {
    "noam": lambda: lr.NoamDecay(64, 4), "piecewise": lambda: lr.PiecewiseDecay([3, 6, 9], [0.1, 0.2, 0.3, 0.4]),
    "natural exp": lambda: lr.NaturalExpDecay(0.5, 0.1), "inverse time": lambda: lr.InverseTimeDecay(0.5, 0.1),
    "polynomial": lambda: lr.PolynomialDecay(0.5, 5), "cycle": lambda: lr.PolynomialDecay(0.5, 5, 0.01, 2.0, True),
    "warm up": lambda: lr.LinearWarmup(0.5, 4, 0.0, 0.5), "exponential": lambda: lr.ExponentialDecay(0.5, 0.9),
    "warm up, exponential": lambda: lr.LinearWarmup(lr.ExponentialDecay(0.5, 0.9), 4, 0.1, 0.5),
    "multi step": lambda: lr.MultiStepDecay(0.5, [2, 4, 6], 0.8), "step": lambda: lr.StepDecay(0.5, 3, 0.8),
    "lambda": lambda: lr.LambdaDecay(0.5, lambda e: 0.95 ** e),
    "multiplicative": lambda: lr.MultiplicativeDecay(0.5, lambda e: 0.95),
    "cosine": lambda: lr.CosineAnnealingDecay(0.5, 5), "cosine from": lambda: lr.CosineAnnealingDecay(0.5, 5, eta_min=0.1),
    "one cycle": lambda: lr.OneCycleLR(1.0, 30),
    "one cycle, lines": lambda: lr.OneCycleLR(1.0, 30, phase_pct=0.5, anneal_strategy="linear"),
}

ELEMENTWISE = """relu relu6 leaky_relu elu celu selu gelu sigmoid log_sigmoid tanh swish silu mish softplus softsign
    hardsigmoid hardswish hardtanh hardshrink softshrink tanhshrink thresholded_relu softmax log_softmax""".split()
ARITHMETIC = "atan erf trunc exp log sqrt rsqrt square abs sign floor ceil round sin cos tan sinh cosh log2 log10 log1p expm1".split()

FUNCTIONS = {
    "gelu tanh": (lambda x: F.gelu(x, approximate=True), X), "glu": (lambda x: F.glu(x), X),
    "maxout": (lambda x: F.maxout(x, 2), IMAGE), "prelu": (F.prelu, IMAGE, np.array([.1, .2, .3, .4], "float32")),
    "conv2d": (lambda x, w, b: F.conv2d(x, w, b, stride=2, padding=1), IMAGE, W, B),
    "conv2d SAME": (lambda x, w: F.conv2d(x, w, padding="SAME", stride=2), IMAGE, W),
    "conv2d four sides": (lambda x, w: F.conv2d(x, w, padding=[1, 2, 0, 1]), IMAGE, W),
    "conv2d dilated": (lambda x, w: F.conv2d(x, w, dilation=2, padding=2), IMAGE, W),
    "conv2d_transpose": (lambda x, w: F.conv2d_transpose(x, w, stride=2, padding=1, output_padding=1), IMAGE, WT),
    "conv2d_transpose to": (lambda x, w: F.conv2d_transpose(x, w, stride=2, padding=1, output_size=[14, 14]), IMAGE, WT),
    "conv1d": (lambda x, w: F.conv1d(x, w, padding=1), SEQUENCE, W[:, :, 0].copy()),
    "max_pool2d": (lambda x: F.max_pool2d(x, 3, 2, 1), IMAGE),
    "max_pool2d ceil": (lambda x: F.max_pool2d(x, 2, 2, ceil_mode=True), IMAGE),
    "avg_pool2d": (lambda x: F.avg_pool2d(x, 3, 2, 1), IMAGE),
    "avg_pool2d inclusive": (lambda x: F.avg_pool2d(x, 3, 2, 1, exclusive=False), IMAGE),
    "avg_pool2d ceil": (lambda x: F.avg_pool2d(x, 2, 2, ceil_mode=True), IMAGE),
    "adaptive_avg": (lambda x: F.adaptive_avg_pool2d(x, 3), IMAGE),
    "adaptive_max": (lambda x: F.adaptive_max_pool2d(x, 3), IMAGE),
    "max_pool1d": (lambda x: F.max_pool1d(x, 3, 2, 1), SEQUENCE), "avg_pool1d": (lambda x: F.avg_pool1d(x, 3, 2, 1), SEQUENCE),
    "pad": (lambda x: F.pad(x, [1, 2, 3, 4]), IMAGE), "pad all": (lambda x: F.pad(x, [0, 0, 0, 0, 1, 2, 3, 4]), IMAGE),
    "pad reflect": (lambda x: F.pad(x, [1, 2, 1, 2], mode="reflect"), IMAGE),
    "pad replicate": (lambda x: F.pad(x, [1, 2, 1, 2], mode="replicate"), IMAGE),
    "interpolate": (lambda x: F.interpolate(x, scale_factor=2), IMAGE), "pixel_shuffle": (lambda x: F.pixel_shuffle(x, 2), IMAGE),
    "local_response_norm": (lambda x: F.local_response_norm(x, 3), IMAGE), "instance_norm": (lambda x: F.instance_norm(x), IMAGE),
    "layer_norm": (lambda x: F.layer_norm(x, [7, 7]), IMAGE), "group norm": (lambda x: nn.GroupNorm(2, 4)(x), IMAGE),
    "normalize": (lambda x: F.normalize(x, axis=-1), X), "cosine": (F.cosine_similarity, X, X * X + 1),
    "cross_entropy": (F.cross_entropy, X, LABEL),
    "cross_entropy ignores": (lambda x, y: F.cross_entropy(x, y, ignore_index=int(LABEL[0, 0])), X, LABEL),
    "cross_entropy weighs": (lambda x, y, w: F.cross_entropy(x, y, weight=w), X, LABEL, np.abs(B)),
    "cross_entropy soft": (lambda x, y: F.cross_entropy(x, y, soft_label=True), X, SHARES),
    "softmax_with_cross_entropy": (F.softmax_with_cross_entropy, X, LABEL),
    "nll_loss": (lambda x, y: F.nll_loss(F.log_softmax(x), paddle.squeeze(y, -1)), X, LABEL),
    "bce": (lambda x, y: F.binary_cross_entropy(F.sigmoid(x), y), X, BITS),
    "bce with logits": (F.binary_cross_entropy_with_logits, X, BITS),
    "bce weighs": (lambda x, y, w: F.binary_cross_entropy_with_logits(x, y, pos_weight=w), X, BITS, np.array([2.0], "float32")),
    "kl_div": (lambda x, y: F.kl_div(F.log_softmax(x), y), X, SHARES),
    "kl_div batchmean": (lambda x, y: F.kl_div(F.log_softmax(x), y, reduction="batchmean"), X, SHARES),
    "smooth_l1": (lambda x, y: F.smooth_l1_loss(x * 3, y, delta=1.5), X, X * X),
    "margin_ranking": (lambda x, y, z: F.margin_ranking_loss(x, y, z, 0.3), X, X * X, np.sign(X)),
    "asin": (lambda x: paddle.asin(x / 4), X), "acos": (lambda x: paddle.acos(x / 4), X), "focal": (F.sigmoid_focal_loss, X, BITS), "dice": (lambda x, y: F.dice_loss(F.softmax(x), y), X, LABEL),
    "log_loss": (lambda x, y: F.log_loss(F.sigmoid(x), y), X[:, :1].copy(), BITS[:, :1].copy()),
    "hinge": (F.hinge_embedding_loss, X, np.sign(X)), "label_smooth": (F.label_smooth, np.eye(6, dtype="float32")[:4]),
    "std": (lambda x: paddle.std(x, 1), X), "var": (lambda x: paddle.var(x), X),
    "norm 3": (lambda x: paddle.norm(x, p=3, axis=1), X), "logsumexp": (lambda x: paddle.logsumexp(x, [0, 1]), X),
    "cumsum": (lambda x: paddle.cumsum(x), X), "stanh": (paddle.stanh, X), "dot": (paddle.dot, X, X + 1),
    "multiplex": (lambda x, y: paddle.multiplex([x, y], paddle.assign(np.array([[1], [0], [1], [0]], "int32"))), X, X * 2),
    "sequence_mask": (lambda x: F.sequence_mask(x, 5), np.array([1, 4, 2])),
    "scatter": (lambda x, u: paddle.scatter(x, paddle.assign(np.array([1, 3])), u), X, np.ones((2, 6), "float32")),
    "scatter adds": (lambda x, u: paddle.scatter(x, paddle.assign(np.array([1, 1])), u, overwrite=False), X,
                     np.ones((2, 6), "float32")),
    "strided_slice": (lambda x: paddle.strided_slice(x, [0, 1], [3, 0], [0, 5], [-1, 2]), X),
    "roll": (lambda x: paddle.roll(x, [1, 2], [0, 1]), X), "mod": (lambda x: x % 0.7, X), "floordiv": (lambda x: x // 3, LABEL),
    "lstm": (lambda x: recurrent(nn.LSTM, 4)(x)[0], STEPS), "gru": (lambda x: recurrent(nn.GRU, 3)(x)[0], STEPS),
    "rnn": (lambda x: recurrent(nn.SimpleRNN, 1, activation="relu")(x)[0], STEPS),
    "lstm both ways": (lambda x: recurrent(nn.LSTM, 4, direction="bidirect")(x)[0], STEPS),
    "lstm state": (lambda x: recurrent(nn.LSTM, 4, direction="bidirect")(x)[1][1], STEPS),
    "gru from": (lambda x, h: recurrent(nn.GRU, 3)(x, h)[0], STEPS, R.randn(1, 2, 5).astype("float32")),
    "gru lengths": (lambda x, n: recurrent(nn.GRU, 3)(x, None, n)[0], STEPS, np.array([4, 2])),
    "gru lengths, state": (lambda x, n: recurrent(nn.GRU, 3, direction="bidirect")(x, None, n)[1], STEPS, np.array([4, 2])),
    "gru by time": (lambda x: recurrent(nn.GRU, 3, time_major=True)(x)[0], STEPS),
    "lstm cell": (lambda x: recurrent(nn.LSTMCell, 4)(x[:, 0])[0], STEPS),
    "bilinear up": (lambda x: F.interpolate(x, size=[15, 10], mode="bilinear"), IMAGE),
    "bilinear corners": (lambda x: F.interpolate(x, size=[15, 10], mode="bilinear", align_corners=True), IMAGE),
    "bilinear mode 1": (lambda x: F.interpolate(x, scale_factor=1.5, mode="bilinear", align_mode=1), IMAGE),
    "bilinear down": (lambda x: F.interpolate(x, size=[3, 4], mode="bilinear"), IMAGE),
    "nearest down": (lambda x: F.interpolate(x, size=[3, 4]), IMAGE),
    "diag": (lambda x: paddle.diag(x[0]), X), "diag up": (lambda x: paddle.diag(x[0], 2), X),
    "diag down": (lambda x: paddle.diag(x[0], -1, padding_value=3.0), X), "diag of": (lambda x: paddle.diag(x, 1), X),
    "diagonal": (lambda x: paddle.diagonal(x, -1), X), "trace": (lambda x: paddle.trace(x, 1, 2, 3), IMAGE),
    "meshgrid": (lambda x: paddle.stack(paddle.meshgrid(x[0], x[:, 1])), X), "kron": (paddle.kron, X, LINEAR),
    "cross": (lambda x, y: paddle.cross(x, y, axis=1), X[:, :3].copy(), X[:, 3:].copy()),
    "tensordot": (lambda x, y: paddle.tensordot(x, y, axes=[[1, 3], [1, 2]]), IMAGE, W[:3, :, :1, :1].repeat(7, 2)),
    "tensordot 1": (lambda x, y: paddle.tensordot(x, y, 1), X, LINEAR),
    "einsum": (lambda x, y: paddle.einsum("ij,jk->ki", x, y), X, LINEAR),
    "einsum batch": (lambda x, y: paddle.einsum("bchw,bcw->bhc", x, y), IMAGE, IMAGE[:, :, 0].copy()),
    "einsum three": (lambda x, y, z: paddle.einsum("ij,jk,i->k", x, y, z), X, LINEAR, B[:4].copy()),
    "einsum sum": (lambda x: paddle.einsum("ij->j", x), X),
    "moveaxis": (lambda x: paddle.moveaxis(x, [0, 2], [1, -1]), IMAGE),
    "take_along_axis": (lambda x, i: paddle.take_along_axis(x, i, 1), X, R.randint(0, 6, (4, 6))),
    "index_sample": (paddle.index_sample, X, R.randint(0, 6, (4, 3))),
    "repeat_interleave": (lambda x: paddle.repeat_interleave(x, 3, 1), X),
    "scatter_nd": (lambda i, u: paddle.scatter_nd(i, u, [4, 5, 6]), np.array([[1, 2], [3, 4], [1, 2]]), X[:3].copy()),
    "scatter_nd_add": (lambda x, i, u: paddle.scatter_nd_add(x, i, u), X, np.array([[1], [1], [0]]), X[1:].copy()),
    "crop": (lambda x: paddle.crop(x, [2, -1], [1, 2]), X), "lerp": (lambda x, y: paddle.lerp(x, y, 0.3), X, X * X),
    "shard_index": (lambda x: paddle.shard_index(x, 6, 2, 1), LABEL),
    "bilinear": (F.bilinear, X, X[:, :3].copy(), R.randn(5, 6, 3).astype("float32")),
}
FUNCTIONS.update({name: (lambda x, n=name: getattr(F, n)(x), X * 2) for name in ELEMENTWISE})
FUNCTIONS.update({"paddle." + name: (lambda x, n=name: getattr(paddle, n)(x), np.abs(X) + 0.1) for name in ARITHMETIC})

O = paddle.optimizer
OPTIMIZERS = {
    "sgd": lambda: O.SGD(0.1), "momentum": lambda: O.Momentum(0.1, 0.9), "adam": lambda: O.Adam(0.1),
    "nesterov": lambda: O.Momentum(0.1, 0.9, use_nesterov=True), "momentum, l2": lambda: O.Momentum(0.1, 0.9, weight_decay=0.3),
    "adam, l2": lambda: O.Adam(0.1, weight_decay=0.3), "adamw": lambda: O.AdamW(0.1, weight_decay=0.3),
    "adamax": lambda: O.Adamax(0.1, 0.8, 0.9), "adagrad": lambda: O.Adagrad(0.1), "rmsprop": lambda: O.RMSProp(0.1), "adadelta": lambda: O.Adadelta(0.5),
    "rmsprop centered": lambda: O.RMSProp(0.1, momentum=0.5, centered=True), "lamb": lambda: O.Lamb(0.1),
    "l1": lambda: O.SGD(0.1, weight_decay=paddle.regularizer.L1Decay(0.1)),
    "global norm": lambda: O.SGD(0.5, grad_clip=nn.ClipGradByGlobalNorm(0.1)),
    "norm": lambda: O.SGD(0.5, grad_clip=nn.ClipGradByNorm(0.1)),
}


def schedule(make):
    made, values = make(), []
    for _ in range(25):
        values.append(made())
        made.step()
    return values


def run(build, feeds):
    with static.program_guard(static.Program(), static.Program()):
        names = [f"in{i}" for i in range(len(feeds))]
        out = build(*[static.data(n, list(f.shape), str(f.dtype)) for n, f in zip(names, feeds)])
        exe = static.Executor(paddle.CPUPlace())
        exe.run(static.default_startup_program())
        return exe.run(static.default_main_program(), feed=dict(zip(names, feeds)), fetch_list=[out])[0]


def train(name, make):
    with static.program_guard(static.Program(), static.Program()):
        x = static.data("x", [4, 6], "float32")
        attr = paddle.ParamAttr(name="w " + name, initializer=nn.initializer.Assign(LINEAR))
        loss = paddle.mean(paddle.square(nn.Linear(6, 3, weight_attr=attr, bias_attr=False)(x) - 1.0))
        make().minimize(loss)
        exe = static.Executor(paddle.CPUPlace())
        exe.run(static.default_startup_program())
        main = static.default_main_program()
        return [np.asarray(exe.run(main, feed={"x": X}, fetch_list=[loss])[0]).ravel()[0] for _ in range(4)]


def main():
    paddle.enable_static()
    out = {"schedule " + n: schedule(m) for n, m in SCHEDULES.items()}
    out.update({"function " + n: run(build, feeds) for n, (build, *feeds) in FUNCTIONS.items()})
    out.update({"optimizer " + n: train(n, m) for n, m in OPTIMIZERS.items()})
    np.savez(sys.argv[1], **{k: np.asarray(v, "float64").ravel() for k, v in out.items()})


if __name__ == "__main__":
    main()
