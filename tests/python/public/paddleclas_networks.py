"""Every network of PaddleClas, the first of each file: built in a static program for a batch of two pictures, trained a step."""
import importlib
import pathlib
import re
import sys
import types

import numpy as np
import paddle

paddle.enable_static()
home = pathlib.Path(sys.argv[1]) / "paddleclas"
sys.path.insert(0, str(home))
for name in ("ppcls", "ppcls.arch", "ppcls.arch.backbone"):  # their __init__ would import all files, or none
    module = types.ModuleType(name)
    module.__path__ = [str(home / name.replace(".", "/"))]
    sys.modules[name] = module
importlib.import_module("ppcls.utils.logger").init_logger()
SIZES = {"swin_transformer_v2": 256, "adaface_ir_net": 112, "wideresnet": 32, "inception_v3": 299, "inception_v4": 299, "xception": 299,
         "xception_deeplab": 299}
ARGUMENTS = {"adaface_ir_net": {}, "wideresnet": {"depth": 28, "widen_factor": 2, "dropout": 0.0, "num_classes": 10}}


def train(network, size):
    main, startup = paddle.static.Program(), paddle.static.Program()
    with paddle.static.program_guard(main, startup), paddle.utils.unique_name.guard():
        x, y = paddle.static.data("x", [2, 3, size, size]), paddle.static.data("y", [2, 1], "int64")
        out = network()(x)
        while isinstance(out, (list, tuple, dict)):
            out = next(iter(out.values() if isinstance(out, dict) else out))
        loss = paddle.mean(paddle.nn.functional.cross_entropy(out, y))
        paddle.optimizer.Momentum(0.01, 0.9).minimize(loss)
    exe = paddle.static.Executor()
    with paddle.static.scope_guard(paddle.static.Scope()):
        exe.run(startup)
        feed = {"x": np.random.rand(2, 3, size, size).astype("float32"), "y": np.zeros((2, 1), "int64")}
        assert np.isfinite(exe.run(main, feed=feed, fetch_list=[loss])[0]).all(), "the loss is not finite"


for path, names in re.findall(r"^from \.([\w.]+) import (.+)$", (home / "ppcls/arch/backbone/__init__.py").read_text(), re.M):
    if not path.startswith(("legendary_models", "model_zoo")):
        continue
    file, first = path.split(".")[-1], names.split(",")[0].split(" as ")[0].strip()
    try:
        module = importlib.import_module("ppcls.arch.backbone." + path)
        train(lambda: getattr(module, first)(**ARGUMENTS.get(file, {"class_num": 10})), SIZES.get(file, 224))
        print("RUNS", file, first, flush=True)
    except BaseException as error:
        print("STOPS", file, type(error).__name__ + ":", str(error).replace("\n", " ")[:200], flush=True)
